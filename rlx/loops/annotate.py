"""From rollouts on the host to a batch on devices: annotate, place, compute log-probs.

  annotate   computes texts, steps and scores once, from the rollouts on the host
  place      transfers rollouts and columns to the devices
  score      computes the log-probs that methods read, by forward passes
"""
import dataclasses
import functools
from typing import Any, Callable

import numpy as np

from rlx.core import fields
from rlx.core import records
from rlx.learner import sharding
from rlx.loops import logps
from rlx.rollouts import padding

THINNED = records.EXCLUDED.index("thinned")


@dataclasses.dataclass(frozen=True)
class Annotated:
  """Rollouts on the host with the fields that are computed there."""
  rollouts: records.Rollouts   # numpy
  batch: records.Batch         # numpy
  values: dict                 # host values without axes, which model fields read

  def replace(self, **changes):
    return dataclasses.replace(self, **changes)


@dataclasses.dataclass(frozen=True)
class Placed:
  """Annotated rollouts on devices, with the packing plans of forward passes over them."""
  rollouts: records.Rollouts
  batch: records.Batch
  plan: Callable               # see logps.planner
  values: dict
  host: records.Rollouts       # the host's copy of rollouts
  placer: Any                  # the Placer that placed it

  def replace(self, **changes):
    return dataclasses.replace(self, **changes)

  def append(self, token_id):
    """Returns a copy with this token after every completion, in one more column."""
    return self.placer.place_rollouts(self, padding.append(self.host, token_id))


@dataclasses.dataclass(frozen=True)
class Placer:
  """Puts annotated rollouts on a mesh."""
  mesh: Any
  pack: bool

  def __call__(self, annotated):
    rollouts, batch = sharding.place_rows((annotated.rollouts, annotated.batch), self.mesh)
    return Placed(rollouts, batch, logps.planner(annotated.rollouts, self.mesh, pack=self.pack),
                  annotated.values, annotated.rollouts, self)

  def place_rollouts(self, placed, rollouts):
    """Returns `placed` with other rollouts (numpy) and the same columns."""
    return placed.replace(rollouts=sharding.place_rows(rollouts, self.mesh), host=rollouts,
                          plan=logps.planner(rollouts, self.mesh, pack=self.pack))


def verdicts(rewards):
  """Verdicts, which filters, accuracies and PRMs read: the rewards clipped to [0, 1]."""
  return np.clip(rewards, 0, 1)


def columns(rollouts, reward_B, excluded_B=None):
  """The columns that every batch has. Numpy."""
  given = dict(action_BT=np.asarray(rollouts.action_BT), reward_B=reward_B,
               outcome_B=verdicts(reward_B),
               sampler_logps_BT=rollouts.sampler_logps_BT, finish_B=rollouts.finish_B,
               excluded_B=np.zeros(len(reward_B), np.int8) if excluded_B is None else excluded_B)
  if rollouts.turn_BT is not None: given["turn_BT"] = rollouts.turn_BT
  return given


def _view(group):
  """(values, name) -> outcome_PG, learn_B and other views of the columns in values.

  On the host, learn_B does not yet know of rows that select_completions leaves out.
  """
  return lambda values, name: getattr(records.Batch(
      group, **{key: x for key, x in values.items() if fields.axes_of(key)}), name)


def annotator(planned, options, *, select, group, decode, rows_of, resources, greedy_outcome,
              check):
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


def scorer(planned, options, pass_options):
  """Returns score(state, placed) -> placed with the columns of the model fields."""
  def score(state, placed):
    passes = logps.Passes(pass_options, state, placed.rollouts.rows(), placed.plan)
    values = fields.compute(planned, "model", dict(
        placed.values, **placed.batch.columns, passes=passes,
        prompt_P=placed.rollouts.prompt_P), options, view=_view(placed.batch.group))
    return placed.replace(batch=placed.batch.replace(
        **{f.name: values[f.name] for f in planned if f.where == "model"}))

  return score
