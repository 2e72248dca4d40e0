"""Collects a batch: samples and verifies completions until enough groups pass the filter."""
import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

import numpy as np

from rlx.core import records, resolve, rng
from rlx.core.options import key
from rlx.evals import accuracy
from rlx.io import progress
from rlx.learner import hosts
from rlx.prompts import iterator
from rlx.rollouts import budget, filter_groups, padding
from rlx.stages import (
    columns as columns_lib, derive as derive_lib, dialogue, host_state, methods as methods_lib,
    outcomes as outcomes_lib, sampling as sampling_lib, sizes as sizes_lib, texts as texts_lib)
from rlx.verifiers import pool

FILTERED, NOT_DRAWN, STORED = map(records.EXCLUDED.index, ("filtered", "not_drawn", "stored"))
Sample = Callable[[list[records.Prompt]], records.Rollouts]


class Collected(NamedTuple):
  """A batch on the host, before it is annotated."""
  prompts: list[records.Prompt]
  rollouts: records.Rollouts
  reward_B: np.ndarray       # what the verifiers returned; NaN: unknown
  excluded_B: np.ndarray | None  # int8, index into records.EXCLUDED; None: no row is excluded
  texts: list[str] | None = None  # of the completions; None: they are decoded where they are read
  columns: dict[str, np.ndarray] = {}  # fields that the filter of groups has read

  def join(self, other: "Collected") -> "Collected":
    """The rows of both, which have texts and excluded_B, without `columns`."""
    assert self.texts is not None and other.texts is not None
    assert self.excluded_B is not None and other.excluded_B is not None
    return Collected(self.prompts + other.prompts, padding.join([self.rollouts, other.rollouts]),
                     np.append(self.reward_B, other.reward_B),
                     np.append(self.excluded_B, other.excluded_B), self.texts + other.texts)


class Draw(NamedTuple):
  """The verified completions of the prompts of one draw, or of several."""
  prompts: list[records.Prompt]
  rollouts: list[records.Rollouts]  # of each draw
  texts: list[str]
  reward_PG: np.ndarray
  excluded_PG: np.ndarray
  first_PG: np.ndarray       # reward_PG of the first pass, see rollouts.budget
  keep_P: np.ndarray         # the groups that pass the filter
  columns: dict[str, np.ndarray]  # the fields that it reads and the verifiers do not give

  @classmethod
  def concatenate(cls, draws: list["Draw"]) -> "Draw":
    """All draws as one."""
    def join(parts: tuple) -> Any:
      if isinstance(parts[0], dict): return {name: join(tuple(x[name] for x in parts))
                                             for name in parts[0]}
      return np.concatenate(parts) if isinstance(parts[0], np.ndarray) else sum(parts, [])
    return cls._make(map(join, zip(*draws)))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Collect:
  """The stage that samples and verifies a batch.

  Attributes:
    budget: see rollouts.budget; None: all completions come from one pass.
    demonstrations: {prompt id: token ids} of the completions that groups end with; None: there
      are none.
    dialogues: of the run's environment; None: prompts have one completion each.
    columns: the fields that filter_groups reads; None: it reads what verifiers give, and nothing
      is computed for it.
    derive: makes prompts of the completions of the others (prompts.derived); None: there are none.
  """
  prompts: iterator.PromptIterator
  sizes: sizes_lib.Sizes
  texts: texts_lib.Texts
  sampling: sampling_lib.Sampling
  outcomes: outcomes_lib.Outcomes
  pool: pool.Pool
  filter_groups: resolve.Method
  anneal: methods_lib.Anneal
  budget: methods_lib.Budget | None
  demonstrations: dict[str, list[int]] | None
  dialogues: dialogue.Dialogues | None
  columns: columns_lib.Columns | None
  derive: derive_lib.Derive | None
  seed: int = key("seed")
  max_draws: int = key("rollouts.max_draws")
  fill: str = key("rollouts.fill")  # drop | failed | error
  max_error_rate: float = key("verifier.max_error_rate")

  def __call__(self, state: records.TrainState, host: host_state.HostState, step: int,
               clock: progress.Clock) -> tuple[Collected, dict]:
    """Samples groups until a batch of them passes the filter.

    If more prompts pass than the batch holds, the ids of the others are kept in `host.buffer`.
    These prompts are sampled again in the next step, so that every completion is on-policy (or
    as old as rollouts.sync_every allows). After `max_draws` draws the batch is completed with
    groups that failed the filter. They are trained on (fill="failed"), excluded from training
    ("drop"), or the run ends with an error ("error").

    Returns:
      Collected, metrics.
    """
    self.outcomes.hold(state)
    params, factor_T = state.join_params(state.sampled_from), self.anneal(step)
    weights = self.sampling.lay_out(params)
    draws: list[Draw] = []
    clock.lap("hand-over", weights)
    while sum(d.keep_P.sum() for d in draws) < self.sizes.trained and len(draws) < self.max_draws:
      random = rng.key(self.seed, "sample", step, len(draws))
      sample = lambda prompts, random=random: self.sampling.train(
          params, prompts, random, factor_T, weights)
      draws.append(self._draw(state, self._next_prompts(host), sample, clock))
    draw = Draw.concatenate(draws)
    chosen = filter_groups.fill(draw.keep_P, self.sizes.trained)
    if self.fill == "error" and not draw.keep_P[chosen].all(): self._refuse(draw, step, len(draws))
    collected = self._take(draw, chosen)
    host.buffer += [draw.prompts[i].id for i in np.flatnonzero(draw.keep_P) if i not in chosen]
    of_data, more = collected.rollouts, dict[str, float]()
    if self.derive:
      random = rng.key(self.seed, "derived", step)
      collected, more = self._add_derived(state, collected, step, lambda prompts: (
          self.sampling.train(params, prompts, random, factor_T, weights)), clock)
    metrics = self._measure(draw, len(draws), of_data) | more
    metrics["rollouts/tokens"] += more.get("derived/tokens", 0)  # All that were drawn.
    if self.sizes.rehearsal: collected = collected.join(self._rehearse(host.rehearsed, step))
    return collected._replace(
        rollouts=padding.trim(collected.rollouts, self.sizes.multiple)), metrics

  def _next_prompts(self, host: host_state.HostState) -> list[records.Prompt]:
    """The prompts of a draw: first those that wait in the buffer."""
    waiting, host.buffer = host.buffer[:self.sizes.draw], host.buffer[self.sizes.draw:]
    prompts = self.prompts.by_id(waiting)
    return prompts + self.prompts.take(
        self.sizes.draw - len(prompts), skip=[*waiting, *(host.rehearsed or ())])

  def _draw(self, state: records.TrainState, prompts: list[records.Prompt], sample: Sample,
            clock: progress.Clock) -> Draw:
    """Samples and verifies completions of these prompts: a Draw."""
    rollouts = sample(prompts)
    if self.demonstrations is not None:
      rollouts = padding.put_last(rollouts, [self.demonstrations[p.id] for p in prompts],
                                  records.FINISH.index("eos"))
    clock.lap("sample")
    texts = self.texts.completions(rollouts)
    reward_PG = first_PG = self.outcomes.rewards(prompts, rollouts, texts, keep=True)
    excluded_PG = np.zeros(reward_PG.shape, np.int8)
    if self.budget:
      rollouts, texts, reward_PG, excluded_PG = self._add_second_pass(
          prompts, rollouts, texts, reward_PG, sample, clock)
    self.pool.check(self.max_error_rate)
    clock.lap("verify")
    columns, given = {}, outcomes_lib.make_columns(
        rollouts, reward_PG.ravel().astype(np.float32), excluded_PG.ravel())
    if self.columns:
      columns = self.columns(state, prompts, rollouts, given, texts, self.sizes.multiple)
      self.pool.check(self.max_error_rate)
      clock.lap("score")
    keep_P = self.filter_groups(records.Batch(self.sizes.group, **given, **columns))
    return Draw(prompts, [rollouts], texts, reward_PG, excluded_PG, first_PG, np.asarray(keep_P),
                columns)

  def _add_derived(self, state: records.TrainState, collected: Collected, step: int,
                   sample: Sample, clock: progress.Clock) -> tuple[Collected, dict[str, float]]:
    """Adds groups of prompts about these completions: (Collected, metrics).

    Where the completions give fewer prompts than wanted, their own prompts are asked once more.
    Groups that fail the filter are not replaced.
    """
    assert self.derive is not None and collected.texts is not None
    made = self.derive(collected.prompts, collected.texts, collected.reward_B, step)
    asked = [p for some in made.values() for p in some]
    again = [p.repeat(0) for p in collected.prompts[:self.sizes.derived - len(asked)]]
    draw = self._draw(state, asked + again, sample, clock)
    outcome_PG = iter(outcomes_lib.clip_rewards(draw.reward_PG))
    metrics = {"derived/tokens": float(draw.rollouts[0].action_BT.sum())} | {
        f"derived/{name}/prompts": float(len(some)) for name, some in made.items()}
    for name, some in made.items():
      x_PG = np.array([next(outcome_PG) for _ in some])
      if known := x_PG[~np.isnan(x_PG)].tolist():
        metrics[f"derived/{name}/accuracy"] = float(np.mean(known))
    return collected.join(self._take(draw, np.arange(self.sizes.derived))), metrics

  def _take(self, draw: Draw, chosen: np.ndarray) -> Collected:
    """The chosen groups of a Draw as Collected."""
    excluded_PG = draw.excluded_PG
    if self.fill != "failed":
      excluded_PG = np.where((excluded_PG == 0) & ~draw.keep_P[:, None], FILTERED, excluded_PG)
    rows_B = (chosen[:, None] * self.sizes.group + np.arange(self.sizes.group)).ravel()
    return Collected(
        [draw.prompts[i] for i in chosen], padding.select(draw.rollouts, rows_B, chosen),
        draw.reward_PG[chosen].ravel().astype(np.float32),
        excluded_PG[chosen].ravel().astype(np.int8), [draw.texts[i] for i in rows_B],
        {name: x[rows_B] for name, x in draw.columns.items()})

  def _refuse(self, draw: Draw, step: int, draws: int) -> NoReturn:
    raise ValueError(
        f"step {step}: {draw.keep_P.sum()} of {len(draw.keep_P)} prompts passed "
        f"rollouts.filter_groups in {draws} draws, {self.sizes.trained} are needed; mean accuracy "
        f"of the groups was {np.nanmean(outcomes_lib.clip_rewards(draw.reward_PG)):.3f}. Widen the "
        "band, raise rollouts.max_draws or set rollouts.fill=drop.")

  def _measure(self, draw: Draw, draws: int, rollouts: records.Rollouts) -> dict[str, Any]:
    """{metric: number} of all draws and of the completions of the batch."""
    lengths_B = rollouts.completion_len_B[rollouts.completion_len_B > 0]
    outcome_PG = outcomes_lib.clip_rewards(draw.first_PG)
    is_cut_B = rollouts.finish_B == records.FINISH.index("length")
    metrics = {
        "rollouts/accuracy": np.nanmean(outcome_PG),
        **{f"rollouts/accuracy/{source}": accuracy.mean(x_PG[~np.isnan(x_PG)])
           for source, x_PG in accuracy.split_by_source(outcome_PG, draw.prompts).items()},
        "rollouts/pass_fraction": draw.keep_P.mean(),
        "rollouts/draws": draws,
        "rollouts/filled": max(self.sizes.trained - draw.keep_P.sum(), 0),
        "rollouts/tokens": sum(r.action_BT.sum() for r in draw.rollouts),
        "rollouts/length": lengths_B.mean(),
        "rollouts/length_max": lengths_B.max(),
        "rollouts/truncated": is_cut_B.sum() / len(lengths_B),
        "verifiers/unknown": np.isnan(draw.first_PG).mean(),
        # Share of the verdicts since the last update that are 0 because the completion made its
        # verifier fail (rlx/verifiers/pool.py).
        "verifiers/failed": self.pool.take_failed_share(),
    } | (self.dialogues.metrics() if self.dialogues else {})
    if self.budget: metrics["rollouts/per_prompt"] = len(lengths_B) / self.sizes.trained
    return metrics

  def find_solved(self, state: records.TrainState) -> dict[str, list[int]]:
    """{id: token ids}: a completion of each training prompt that the policy always solves.

    A prompt counts as solved if all of its per_prompt completions are right; the first one is
    stored. rollouts.rehearsal puts them into batches; without it the result is empty.
    """
    if not self.sizes.rehearsal: return {}
    self.outcomes.hold(state)
    ids_of: dict[str, list[int]] = {}
    for prompts in padding.batches(self.prompts.all(), self.sizes.draw):
      rollouts = self.sampling.train(
          state.join_params("policy"), prompts, rng.key(self.seed, "rehearsal"))
      first_P = padding.completions(rollouts)[::self.sizes.group]
      for prompt, ids, outcome_G in zip(prompts, first_P, self.outcomes(prompts, rollouts)):
        if (outcome_G == 1).all(): ids_of[prompt.id] = ids
    if len(ids_of) < self.sizes.rehearsal:
      raise ValueError(
          f"rollouts.rehearsal={self.sizes.rehearsal}: the initial policy solves only "
          f"{len(ids_of)} of {len(self.prompts.all())} training prompts in all of its "
          f"{self.sizes.group} completions; at least {self.sizes.rehearsal} are needed.")
    return ids_of

  def _add_second_pass(
      self, prompts: list[records.Prompt], rollouts: records.Rollouts, texts: list[str],
      reward_PG: np.ndarray, sample: Sample, clock: progress.Clock
      ) -> tuple[records.Rollouts, list[str], np.ndarray, np.ndarray]:
    """Samples more completions of the prompts that rollouts.budget selects.

    Groups get per_prompt rows. Rows without a completion are empty and excluded as "not_drawn";
    no method reads their reward, 0. The random key depends on the prompt and the round, so
    that no two completions are drawn with the same key.

    Returns:
      rollouts, texts, reward_PG, excluded_PG.
    """
    assert self.budget is not None
    known_PG = ~np.isnan(reward_PG)
    outcome_PG = np.where(known_PG, outcomes_lib.clip_rewards(reward_PG), 0)
    right_P = outcome_PG.sum(axis=1) * reward_PG.shape[1] / np.maximum(known_PG.sum(axis=1), 1)
    again, row_PG = budget.rows(
        hosts.fetch(self.budget(right_P)), reward_PG.shape[1], self.sizes.group)
    batches = list(padding.batches(again, len(prompts)))
    clock.lap("verify")
    parts = [sample([prompts[p].repeat(i) for p, i in pairs]) for pairs in batches]
    clock.lap("sample")
    part_texts = list(map(self.texts.completions, parts))
    reward_B = np.concatenate([reward_PG.ravel()] + [
        self.outcomes.rewards([prompts[p] for p, _ in pairs], part, some, keep=True).ravel()
        for pairs, part, some in zip(batches, parts, part_texts)])
    is_drawn_PG, texts = row_PG >= 0, sum(part_texts, texts)
    whole = padding.select([rollouts, *parts], np.maximum(row_PG, 0).ravel(),
                           np.arange(len(prompts)))
    return (padding.empty_rows(whole, ~is_drawn_PG.ravel()),
            [texts[row] if row >= 0 else "" for row in row_PG.ravel()],
            np.where(is_drawn_PG, reward_B[row_PG], 0.0), np.where(is_drawn_PG, 0, NOT_DRAWN))

  def _rehearse(self, rehearsed: dict[str, list[int]] | None, step: int) -> Collected:
    """Stored completions as Collected: each is the last row of an otherwise empty group.

    Each had the verdict right when it was stored.
    """
    assert rehearsed is not None  # The loop has called `find_solved`.
    ids = sorted(rehearsed)
    at = np.random.default_rng([self.seed, rng.number("rehearsal"), step]).choice(
        len(ids), self.sizes.rehearsal, replace=False)
    prompts = self.prompts.by_id([ids[i] for i in at])
    tokens_PX, len_P, prompt_P = hosts.fetch(self.sampling.encode(prompts))
    empty = padding.make_empty(tokens_PX, len_P, prompt_P, self.sizes.group,
                               self.sizes.completion_tokens, self.sampling.train.kept)
    rollouts = padding.put_last(empty, [rehearsed[p.id] for p in prompts],
                                records.FINISH.index("eos"))
    is_stored_B = np.asarray(rollouts.completion_len_B) > 0
    return Collected(prompts, rollouts, is_stored_B.astype(np.float32),
                     np.where(is_stored_B, STORED, NOT_DRAWN).astype(np.int8),
                     self.texts.completions(rollouts))
