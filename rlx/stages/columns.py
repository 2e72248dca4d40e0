"""Fields of completions on the host: those of texts, and those of models that a filter reads."""
import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from rlx.core import fields, records, rng
from rlx.core.options import key
from rlx.learner import hosts, sharding
from rlx.rollouts import padding
from rlx.stages import (
    outcomes as outcomes_lib, passes as passes_lib, sampling as sampling_lib, texts as texts_lib)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Columns:
  """Computes planned fields of completions before they are a batch on devices.

  Attributes:
    planned: the fields, each after those that it reads.
    field_options: {field: options of its producer}.
    resources: {name: value} that producers read, see host_fields.py.
    microbatch: the most rows of a device's microbatch, that of the batch's passes.
  """
  planned: list[fields.Field]
  field_options: dict[str, dict[str, Any]]
  resources: dict[str, Any]
  texts: texts_lib.Texts
  outcomes: outcomes_lib.Outcomes
  sampling: sampling_lib.Sampling
  passes: passes_lib.Options
  microbatch: int
  group: int = key("rollouts.per_prompt")
  seed: int = key("seed")

  def __call__(self, state: records.TrainState, prompts: list[records.Prompt],
               rollouts: records.Rollouts, given: Mapping[str, Any], texts: list[str],
               multiple: int) -> dict[str, np.ndarray]:
    """{field: column} of all planned fields, of completions that are not in a batch yet.

    Args:
      given: `outcomes.make_columns` of them.
      multiple: of `padding.trim`, as for a batch.
    """
    short = padding.trim(rollouts, multiple)
    values = self.host_values(state, prompts, short, fit(
        given, short.sampler_logps_BT.shape[1]), texts)
    values |= self.model_values(state, short, values, self.planned)
    return fit({f.name: values[f.name] for f in self.planned
                if f.axes and f.where in ("host", "model")}, rollouts.sampler_logps_BT.shape[1])

  def host_values(self, state: records.TrainState, prompts: list[records.Prompt],
                  rollouts: records.Rollouts, known: Mapping[str, Any],
                  texts: list[str] | None) -> dict[str, Any]:
    """{name: value} of the host fields, of `known`, which has their columns, and of resources.

    Args:
      texts: of the completions; None: they are decoded where they are read.
    """
    rows = None
    if any({"prompts", "texts"} & {*f.reads, f.name} for f in self.planned):
      texts = self.texts.completions(rollouts) if texts is None else texts
      rows = self.outcomes.prompt_rows(prompts, rollouts, texts)
    return fields.compute(self.planned, "host", dict(
        self.resources, **known, rollouts=rollouts, group_prompts=prompts, prompts=rows,
        texts=texts, greedy_outcome=lambda prompts: self._reward_greedy(state, prompts)),
                          self.field_options, records.Batch(self.group).view)

  def model_values(self, state: records.TrainState, rollouts: records.Rollouts,
                   values: dict[str, Any], planned: list[fields.Field]) -> dict[str, np.ndarray]:
    """{field: column} of those of `planned` that models compute, by the passes of `score`.

    Args:
      values: what they read, of `host_values`.
    """
    wanted = [f for f in planned if f.where == "model" and f.name not in values]
    if not wanted: return {}
    rows = len(rollouts.tokens_BS) // self.passes.shards
    parts = next(n for n in range(1, rows + 1) if rows % n == 0 and rows // n <= self.microbatch)
    o = dataclasses.replace(self.passes, parts=parts, value_parts=parts)
    columns, prompt_P = sharding.place_rows(
        ({name: x for name, x in values.items() if fields.axes_of(name)}, rollouts.prompt_P),
        o.mesh)
    values = fields.compute(wanted, "model", dict(
        values, **columns, passes=passes_lib.make_passes(o, state, rollouts.rows()),
        prompt_P=prompt_P), self.field_options, records.Batch(self.group).view)
    return hosts.fetch({f.name: values[f.name] for f in wanted if f.axes})

  def _reward_greedy(self, state: records.TrainState, prompts: list[records.Prompt]) -> np.ndarray:
    """Rewards of the policy's greedy completions of the prompts."""
    rollouts = self.sampling.baseline(state.join_params("policy"), prompts,
                                      rng.key(self.seed, "greedy"))
    return self.outcomes.rewards(prompts, rollouts)[:, 0]


def fit(columns: Mapping[str, Any], width: int) -> dict[str, Any]:
  """The columns with an axis T of this width: cut, or padded with zeros, as padding may be."""
  def change(name: str, x: np.ndarray) -> np.ndarray:
    at = fields.axes_of(name).find("T")
    if at < 0 or x.shape[at] == width: return x
    if x.shape[at] > width: return x[(slice(None),) * at + (slice(width),)]
    return np.pad(x, [(0, (width - n) * (i == at)) for i, n in enumerate(x.shape)])
  return {name: change(name, x) for name, x in columns.items()}
