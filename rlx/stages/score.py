"""Computes the log-probs and values of the models that do not learn in this step, or not yet."""
import dataclasses
from typing import Any

from rlx.core import fields, records
from rlx.stages import passes as passes_lib, place


@dataclasses.dataclass(frozen=True)
class Score:
  """The stage that computes the model fields of a batch, by forward passes.

  These are the log-probs of references, values, and the log-probs of the policy where a reward or
  an estimator reads them. All other log-probs of PRM and policy come from their updates.
  """
  planned: list[fields.Field]
  field_options: dict[str, dict[str, Any]]  # {field: options of its producer}
  passes: passes_lib.Options

  def __call__(self, state: records.TrainState, placed: place.Placed) -> place.Placed:
    """`placed` with the columns of the model fields and with the passes that computed them."""
    passes = passes_lib.Passes(self.passes, state, placed.rollouts.rows(), placed.plan)
    values = fields.compute(self.planned, "model", dict(
        placed.values, **placed.batch.columns, passes=passes,
        prompt_P=placed.rollouts.prompt_P), self.field_options, placed.batch.view)
    return placed.replace(passes=passes, batch=placed.batch.replace(
        **{f.name: values[f.name] for f in self.planned if f.where == "model" and f.axes}))
