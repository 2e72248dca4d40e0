"""Collects a batch: samples and verifies completions until enough groups pass the filter."""
import dataclasses
from typing import Callable, NamedTuple

import numpy as np

from rlx.core.options import key
from rlx.core import records
from rlx.core import rng
from rlx.io import progress
from rlx.learner import hosts
from rlx.prompts import iterator
from rlx.rollouts import budget
from rlx.rollouts import filter_groups
from rlx.rollouts import padding
from rlx.stages import annotate
from rlx.stages import host_state
from rlx.stages import sizes as sizes_lib
from rlx.verifiers import pool

FILTERED, NOT_DRAWN, STORED = map(records.EXCLUDED.index, ("filtered", "not_drawn", "stored"))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Collector:
  """The stages that batches are collected with, as functions, and their options."""
  prompts: iterator.PromptIterator
  sizes: sizes_lib.Sizes
  encode: Callable           # prompts -> tokens_PX, prompt_len_P, prompt_P on the mesh
  sample: Callable           # (params, prompts, key, factor_T, weights) -> Rollouts on the host
  lay_out: Callable          # params -> weights as decoding reads them
  anneal: Callable           # RL iterations done -> factor_T of the temperature, or None
  demonstrate: Callable      # (prompts, Rollouts) -> Rollouts with a demonstration in each group
  decode: Callable           # Rollouts -> the texts of the completions
  verify: Callable           # (prompts, Rollouts, texts=None) -> reward_PG; NaN: unknown
  pool: pool.Pool
  budget: Callable | None    # right_P of a first pass -> completions that a second pass adds
  filter_groups: Callable    # Batch -> keep_P
  played: Callable           # () -> {metric: number} of the episodes since the last call
  seed: int = key("seed")
  max_draws: int = key("rollouts.max_draws")
  fill: str = key("rollouts.fill")  # drop | failed | error
  max_error_rate: float = key("verifier.max_error_rate")


class Collected(NamedTuple):
  """A batch on the host, before it is annotated."""
  prompts: list
  rollouts: records.Rollouts
  reward_B: np.ndarray       # what the verifiers returned; NaN: unknown
  excluded_B: np.ndarray | None  # int8, index into records.EXCLUDED; None: no row is excluded
  texts: list | None = None  # of the completions; None: they are decoded where they are read


class Draw(NamedTuple):
  """The verified completions of the prompts of one draw."""
  prompts: list
  rollouts: records.Rollouts
  texts: list
  reward_PG: np.ndarray
  excluded_PG: np.ndarray
  first_PG: np.ndarray       # reward_PG of the first pass, see rollouts.budget
  keep_P: np.ndarray         # the groups that pass the filter


def batch(c: Collector, state: records.TrainState, host: host_state.HostState, step: int,
          clock: progress.Clock) -> tuple[Collected, dict]:
  """Samples groups until a batch of them passes the filter.

  If more prompts pass than the batch holds, the ids of the others are kept in `host.buffer`.
  These prompts are sampled again in the next step, so that every completion is on-policy (or
  as old as rollouts.sync_every allows). After `max_draws` draws the batch is completed with
  groups that failed the filter. They are trained on (fill="failed"), excluded from training
  ("drop"), or the run ends with an error ("error").

  Args:
    c: Collector.
    host: HostState.
  Returns:
    Collected, metrics.
  """
  params, factor_T = state.full(state.sampled_from), c.anneal(step)
  weights = c.lay_out(params)
  draws: list[Draw] = []
  clock.lap("hand-over", weights)
  while sum(d.keep_P.sum() for d in draws) < c.sizes.trained and len(draws) < c.max_draws:
    waiting, host.buffer = host.buffer[:c.sizes.draw], host.buffer[c.sizes.draw:]
    prompts = c.prompts.by_id(waiting)
    prompts += c.prompts.take(c.sizes.draw - len(prompts), skip=[*waiting, *(host.rehearsed or ())])
    random = rng.key(c.seed, "sample", step, len(draws))
    sample = lambda prompts, random=random: c.sample(params, prompts, random, factor_T, weights)
    draws.append(_draw(c, prompts, sample, clock))
  collected, waiting = _chosen(c, draws, step)
  host.buffer += waiting
  metrics = _metrics(c, draws, collected.rollouts)
  if c.sizes.rehearsal: collected = _joined(collected, _rehearsal(c, host.rehearsed, step))
  return collected._replace(rollouts=padding.trim(collected.rollouts, c.sizes.bucket)), metrics


def _draw(c, prompts, sample, clock):
  """Samples and verifies completions of these prompts: a Draw."""
  rollouts = c.demonstrate(prompts, sample(prompts))
  clock.lap("sample")
  texts = c.decode(rollouts)
  reward_PG = first_PG = c.verify(prompts, rollouts, texts)
  excluded_PG = np.zeros(reward_PG.shape, np.int8)
  if c.budget:
    rollouts, texts, reward_PG, excluded_PG = _second_pass(
        c, prompts, rollouts, texts, reward_PG, sample, clock)
  c.pool.check(c.max_error_rate)
  clock.lap("verify")
  keep_P = c.filter_groups(records.Batch(c.sizes.group, **annotate.columns(
      rollouts, reward_PG.ravel().astype(np.float32), excluded_PG.ravel())))
  return Draw(prompts, rollouts, texts, reward_PG, excluded_PG, first_PG, np.asarray(keep_P))


def _chosen(c, draws, step):
  """Returns Collected, the groups of a batch, and the ids of prompts that wait for the next."""
  keep_P, reward_PG, excluded_PG = (np.concatenate([getattr(d, name) for d in draws]) for name in (
      "keep_P", "reward_PG", "excluded_PG"))
  if keep_P.sum() < c.sizes.trained and c.fill == "error":
    raise ValueError(
        f"step {step}: {keep_P.sum()} of {len(keep_P)} prompts passed rollouts.filter_groups in "
        f"{len(draws)} draws, {c.sizes.trained} are needed; mean accuracy of the groups was "
        f"{np.nanmean(annotate.verdicts(reward_PG)):.3f}. Widen the band, raise "
        "rollouts.max_draws or set rollouts.fill=drop.")
  chosen = filter_groups.fill(keep_P, c.sizes.trained)
  if c.fill != "failed":
    excluded_PG = np.where((excluded_PG == 0) & ~keep_P[:, None], FILTERED, excluded_PG)
  prompts, texts = (sum((getattr(d, name) for d in draws), []) for name in ("prompts", "texts"))
  rows_B = (chosen[:, None] * c.sizes.group + np.arange(c.sizes.group)).ravel()
  return Collected(
      [prompts[i] for i in chosen],
      padding.select([d.rollouts for d in draws], rows_B, chosen),
      reward_PG[chosen].ravel().astype(np.float32),
      excluded_PG[chosen].ravel().astype(np.int8), [texts[i] for i in rows_B]), [
          prompts[i].id for i in np.flatnonzero(keep_P) if i not in chosen]


def _metrics(c, draws, rollouts):
  """{metric: number} of all draws and of the completions of the batch."""
  keep_P, first_PG = (np.concatenate([getattr(d, name) for d in draws])
                      for name in ("keep_P", "first_PG"))
  lengths_B = rollouts.completion_len_B[rollouts.completion_len_B > 0]
  is_cut_B = rollouts.finish_B == records.FINISH.index("length")
  metrics = {
      "rollouts/accuracy": np.nanmean(annotate.verdicts(first_PG)),
      "rollouts/pass_fraction": keep_P.mean(),
      "rollouts/draws": len(draws),
      "rollouts/filled": max(c.sizes.trained - keep_P.sum(), 0),
      "rollouts/tokens": sum(d.rollouts.action_BT.sum() for d in draws),
      "rollouts/length": lengths_B.mean(),
      "rollouts/length_max": lengths_B.max(),
      "rollouts/truncated": is_cut_B.sum() / len(lengths_B),
      "verifiers/unknown": np.isnan(first_PG).mean(),
      # Share of the verdicts since the last update that are 0 because the completion made its
      # verifier fail (rlx/verifiers/pool.py).
      "verifiers/failed": c.pool.failed_share(),
  } | c.played()
  if c.budget: metrics["rollouts/per_prompt"] = len(lengths_B) / c.sizes.trained
  return metrics


def _joined(one, other):
  """Collected with the rows of both."""
  return Collected(one.prompts + other.prompts, padding.join([one.rollouts, other.rollouts]),
                   np.append(one.reward_B, other.reward_B),
                   np.append(one.excluded_B, other.excluded_B), one.texts + other.texts)


def solved(c: Collector, state: records.TrainState) -> dict[str, list[int]]:
  """{id: token ids}: a completion of each training prompt that the initial policy always solves.

  A prompt counts as solved if all of its per_prompt completions are right; the first one is
  stored. rollouts.rehearsal puts them into batches; without it the result is empty.
  """
  if not c.sizes.rehearsal: return {}
  ids_of = {}
  for prompts in padding.batches(c.prompts.all(), c.sizes.draw):
    rollouts = c.sample(state.full("policy"), prompts, rng.key(c.seed, "rehearsal"))
    first_P = padding.completions(rollouts)[::c.sizes.group]
    for prompt, ids, reward_G in zip(prompts, first_P, c.verify(prompts, rollouts)):
      if (annotate.verdicts(reward_G) == 1).all(): ids_of[prompt.id] = ids
  if len(ids_of) < c.sizes.rehearsal:
    raise ValueError(
        f"rollouts.rehearsal={c.sizes.rehearsal}: the initial policy solves only {len(ids_of)} of "
        f"{len(c.prompts.all())} training prompts in all of its {c.sizes.group} completions; "
        f"at least {c.sizes.rehearsal} are needed.")
  return ids_of


def _second_pass(c, prompts, rollouts, texts, reward_PG, sample, clock):
  """Samples more completions of the prompts that rollouts.budget selects.

  Groups get per_prompt rows. Rows without a completion are empty and excluded as "not_drawn";
  no method reads their reward, 0. The random key depends on the prompt and the round, so
  that no two completions are drawn with the same key.

  Returns:
    rollouts, texts, reward_PG, excluded_PG.
  """
  known_PG = ~np.isnan(reward_PG)
  right_P = (np.where(known_PG, annotate.verdicts(reward_PG), 0).sum(axis=1) * reward_PG.shape[1]
             / np.maximum(known_PG.sum(axis=1), 1))
  again, row_PG = budget.rows(hosts.fetch(c.budget(right_P)), reward_PG.shape[1], c.sizes.group)
  batches = list(padding.batches(again, len(prompts)))
  clock.lap("verify")
  parts = [sample([prompts[p].again(i) for p, i in pairs]) for pairs in batches]
  clock.lap("sample")
  part_texts = list(map(c.decode, parts))
  reward_B = np.concatenate([reward_PG.ravel()] + [
      c.verify([prompts[p] for p, _ in pairs], part, some).ravel()
      for pairs, part, some in zip(batches, parts, part_texts)])
  is_drawn_PG, texts = row_PG >= 0, sum(part_texts, texts)
  whole = padding.select([rollouts, *parts], np.maximum(row_PG, 0).ravel(),
                         np.arange(len(prompts)))
  return (padding.emptied(whole, ~is_drawn_PG.ravel()),
          [texts[row] if row >= 0 else "" for row in row_PG.ravel()],
          np.where(is_drawn_PG, reward_B[row_PG], 0.0), np.where(is_drawn_PG, 0, NOT_DRAWN))


def _rehearsal(c, rehearsed, step):
  """Returns stored completions as Collected: each is the last row of an otherwise empty group.

  Each had the verdict right when it was stored.
  """
  ids = sorted(rehearsed)
  at = np.random.default_rng([c.seed, rng.number("rehearsal"), step]).choice(
      len(ids), c.sizes.rehearsal, replace=False)
  prompts = c.prompts.by_id([ids[i] for i in at])
  empty = padding.empty(*hosts.fetch(c.encode(prompts)), c.sizes.group, c.sizes.completion_tokens)
  rollouts = padding.put_last(empty, [rehearsed[p.id] for p in prompts],
                              records.FINISH.index("eos"))
  is_stored_B = rollouts.completion_len_B > 0
  return Collected(prompts, rollouts, is_stored_B.astype(np.float32),
                   np.where(is_stored_B, STORED, NOT_DRAWN).astype(np.int8), c.decode(rollouts))
