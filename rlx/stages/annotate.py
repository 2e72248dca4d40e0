"""From rollouts on the host to a batch on devices: annotate, place, compute log-probs.

  annotate   computes texts, steps and scores once, from the rollouts on the host
  place      transfers rollouts and columns to the devices
  score      computes the log-probs that methods read, by forward passes
"""
import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, Callable

import jax
import numpy as np

from rlx.core import fields
from rlx.core import records
from rlx.learner import hosts
from rlx.learner import sharding
from rlx.rollouts import padding
from rlx.stages import passes as passes_lib
from rlx.verifiers import pool

THINNED = records.EXCLUDED.index("thinned")


@dataclasses.dataclass(frozen=True)
class Annotated:
  """Rollouts on the host with the fields that are computed there."""
  rollouts: records.Rollouts   # numpy
  batch: records.Batch         # numpy
  values: dict[str, Any]       # host values without axes, which model fields read

  def replace(self, **changes: Any) -> "Annotated":
    return dataclasses.replace(self, **changes)


@dataclasses.dataclass(frozen=True)
class Placed:
  """Annotated rollouts on devices, with the packing plans of forward passes over them."""
  rollouts: records.Rollouts
  batch: records.Batch
  plan: Callable               # see logps.planner
  values: dict[str, Any]
  host: records.Rollouts       # the host's copy of rollouts
  placer: "Placer"             # that placed it

  def replace(self, **changes: Any) -> "Placed":
    return dataclasses.replace(self, **changes)

  def append(self, token_id: int) -> "Placed":
    """Returns a copy with this token after every completion, in one more column."""
    return self.placer.place_rollouts(self, padding.append(self.host, token_id))


@dataclasses.dataclass(frozen=True)
class Placer:
  """Puts annotated rollouts on a mesh."""
  mesh: jax.sharding.Mesh
  pack: bool

  def __call__(self, annotated):
    rollouts, batch = sharding.place_rows((annotated.rollouts, annotated.batch), self.mesh)
    return Placed(rollouts, batch, passes_lib.planner(annotated.rollouts, self.mesh, pack=self.pack),
                  annotated.values, annotated.rollouts, self)

  def place_rollouts(self, placed: Placed, rollouts: records.Rollouts) -> Placed:
    """Returns `placed` with other rollouts (numpy) and the same columns."""
    return placed.replace(rollouts=sharding.place_rows(rollouts, self.mesh), host=rollouts,
                          plan=passes_lib.planner(rollouts, self.mesh, pack=self.pack))


def verdicts(rewards: np.ndarray) -> np.ndarray:
  """Verdicts, which filters, accuracies and PRMs read: the rewards clipped to [0, 1]."""
  return np.clip(rewards, 0, 1)


class Verifiers:
  """The verifiers of a run; each process asks its pool about its share of the completions.

  A function of verifier.step_rewards may also be the verifier of prompts: their reward is then
  the mean of its list. The lists are kept until `steps` asks for them, so that the function is
  called once for each completion.
  """

  def __init__(self, pool_: pool.Pool, step_rewards: Sequence[str]):
    """`step_rewards`: paths of verifiers that give a list."""
    self._pool, self._step_rewards = pool_, step_rewards
    self._kept: dict[tuple[str, str, str], Any] = {}

  def rewards(self, prompts: list[records.Prompt], texts: list[str], *,
              keep: bool = False) -> np.ndarray:
    """The reward of each text by the verifier of its prompt, NaN where it is unknown.

    Args:
      keep: the lists of functions that give some are kept for `steps`.
    """
    has_list_B = np.array([p.verifier in self._step_rewards for p in prompts], bool)
    reward_B = np.empty(len(texts))
    reward_B[~has_list_B] = self._shared(
        self._pool.verify, prompts, texts, np.flatnonzero(~has_list_B))
    rows = np.flatnonzero(has_list_B)
    lists = self._shared(self._pool.verify_steps, prompts, texts, rows)
    reward_B[rows] = [_mean(rewards, texts[i]) for i, rewards in zip(rows, lists)]
    if keep: self._kept |= {_key(prompts[i], texts[i]): x for i, x in zip(rows, lists)}
    return reward_B

  def scores(self, path: str, prompts: list[records.Prompt], texts: list[str]) -> list[float]:
    """The verdict of each text by the verifier at a path."""
    return self._shared(self._pool.verify, _verified_by(path, prompts), texts, range(len(texts)))

  def steps(self, path: str, prompts: list[records.Prompt], texts: list[str]) -> list:
    """The verdicts or rewards of the steps of each text, see `Pool.verify_steps`."""
    prompts = _verified_by(path, prompts)
    keys = [_key(p, text) for p, text in zip(prompts, texts)]
    rows = [i for i, key in enumerate(keys) if key not in self._kept]
    asked = dict(zip(rows, self._shared(self._pool.verify_steps, prompts, texts, rows)))
    lists = [asked[i] if i in asked else self._kept[key] for i, key in enumerate(keys)]
    self._kept = {key: x for key, x in self._kept.items() if key[0] != path}
    return lists

  def _shared(self, verify, prompts, texts, rows):
    """What `verify` returns for these rows, in order; each process computes its share."""
    return hosts.shared(lambda part: list(verify(
        [prompts[rows[i]] for i in part], [texts[rows[i]] for i in part])), len(rows))


def _verified_by(path, prompts):
  return [dataclasses.replace(p, verifier=path) for p in prompts]


def _key(prompt, text):
  return prompt.verifier, prompt.id, text


def _mean(rewards, text):
  """The mean of the known rewards of a text's steps; NaN if none is known."""
  if not isinstance(rewards, list): return rewards  # Of every step.
  known = [x for x in rewards if not np.isnan(x)]
  # Without steps the list is empty, and also where it is unknown.
  return sum(known) / len(known) if known else np.nan if text else 0.0


def columns(rollouts: records.Rollouts, reward_B: np.ndarray,
            excluded_B: np.ndarray | None = None) -> dict[str, Any]:
  """The columns that every batch has. Numpy."""
  given = dict(action_BT=np.asarray(rollouts.action_BT), reward_B=reward_B,
               outcome_B=verdicts(reward_B),
               sampler_logps_BT=rollouts.sampler_logps_BT, finish_B=rollouts.finish_B,
               excluded_B=np.zeros(len(reward_B), np.int8) if excluded_B is None else excluded_B)
  given |= {name: x for name in ("turn_BT", "turn_rewards_BT")
            if (x := getattr(rollouts, name)) is not None}
  return given


def _view(group):
  """(values, name) -> outcome_PG, learn_B and other views of the columns in values.

  On the host, learn_B does not yet know of rows that select_completions leaves out.
  """
  return lambda values, name: getattr(records.Batch(
      group, **{key: x for key, x in values.items() if fields.axes_of(key)}), name)


def annotator(planned: list[fields.Field], options: Callable, *, select: Callable, group: int,
              decode: Callable, rows_of: Callable, resources: dict[str, Any],
              greedy_outcome: Callable, check: Callable[[], None]) -> Callable:
  """Returns annotate(state, Collected) -> Annotated.

  Args:
    planned: Fields of `fields.plan`.
    options: (Field) -> {keyword: value} of its producer.
    select: Batch -> keep_PG, the completions to train on (rollouts.select_completions).
    group: G.
    decode: Rollouts -> the texts of the completions.
    rows_of: (prompts, Rollouts, texts) -> each completion's prompt.
    resources: {name: value} that producers read.
    greedy_outcome: (state, prompts) -> verdicts of greedy completions.
    check: called after all verifiers; raises if too many of them failed.
  """
  needs_texts = any({"prompts", "texts"} & {*f.reads, f.name} for f in planned)
  hosted = [f for f in planned if f.where == "host"]

  def annotate(state, collected):
    prompts, rollouts, reward_B, excluded_B, texts = collected
    given, rows = columns(rollouts, reward_B, excluded_B), None
    if needs_texts:
      texts = decode(rollouts) if texts is None else texts
      rows = rows_of(prompts, rollouts, texts)
    values = fields.compute(planned, "host", dict(
        resources, **given, rollouts=rollouts, group_prompts=prompts, prompts=rows, texts=texts,
        greedy_outcome=functools.partial(greedy_outcome, state)), options, view=_view(group))
    check()
    batch = records.Batch(group, **given, **{f.name: values[f.name] for f in hosted if f.axes})
    keep_B = np.ravel(select(batch))
    excluded_B = np.where((batch.excluded_B == 0) & ~keep_B, THINNED, batch.excluded_B)
    return Annotated(rollouts, batch.replace(excluded_B=excluded_B.astype(np.int8)),
                     {f.name: values[f.name] for f in hosted if not f.axes})

  return annotate


def scorer(planned: list[fields.Field], options: Callable, pass_options: passes_lib.Options) -> Callable:
  """Returns score(state, placed) -> placed with the columns of the model fields."""
  def score(state, placed):
    passes = passes_lib.Passes(pass_options, state, placed.rollouts.rows(), placed.plan)
    values = fields.compute(planned, "model", dict(
        placed.values, **placed.batch.columns, passes=passes,
        prompt_P=placed.rollouts.prompt_P), options, view=_view(placed.batch.group))
    return placed.replace(batch=placed.batch.replace(
        **{f.name: values[f.name] for f in planned if f.where == "model"}))

  return score
