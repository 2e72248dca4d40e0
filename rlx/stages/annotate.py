"""From completions to the columns of a batch that are computed on the host."""
import dataclasses
from typing import Any

import numpy as np

from rlx.core import fields, records, resolve
from rlx.core.options import key
from rlx.stages import collect, columns as columns_lib, outcomes as outcomes_lib
from rlx.verifiers import items, pool

THINNED = records.EXCLUDED.index("thinned")


@dataclasses.dataclass(frozen=True)
class Annotated:
  """Rollouts on the host with the fields that are computed there."""
  rollouts: records.Rollouts   # numpy
  batch: records.Batch         # numpy
  values: dict[str, Any]       # host values without axes, which model fields read

  def measure_items(self) -> dict[str, float]:
    """{items/<name>: mean over completions} of the items that all prompts share."""
    rows = [row for row, n in zip(self.values.get("items", ()), self.rollouts.completion_len_B)
            if n]
    return {f"items/{name}": mean for name, mean in items.mean_by_name(rows).items()}


@dataclasses.dataclass(frozen=True, kw_only=True)
class Annotate:
  """The stage that computes, once, every field that needs texts or token ids. On the host.

  What models compute belongs to `score`, except what the selection of completions reads.

  Attributes:
    select: Batch -> keep_PG, the completions to train on (rollouts.select_completions).
    selecting: the fields that it reads, each after those that it reads itself.
  """
  columns: columns_lib.Columns
  select: resolve.Method
  selecting: list[fields.Field]
  pool: pool.Pool
  group: int = key("rollouts.per_prompt")
  max_error_rate: float = key("verifier.max_error_rate")

  def __call__(self, state: records.TrainState, collected: collect.Collected) -> Annotated:
    prompts, rollouts, reward_B, excluded_B, texts, known = collected
    given = outcomes_lib.make_columns(rollouts, reward_B, excluded_B) | columns_lib.fit(
        known, rollouts.sampler_logps_BT.shape[1])
    # On the host, learn_B does not yet know of rows that `select` leaves out.
    values = self.columns.host_values(state, prompts, rollouts, given, texts)
    self.pool.check(self.max_error_rate)
    given |= self.columns.model_values(state, rollouts, values, self.selecting)
    hosted = [f for f in self.columns.planned if f.where == "host"]
    batch = records.Batch(self.group, **given | {
        f.name: values[f.name] for f in hosted if f.axes})
    keep_B = np.ravel(self.select(batch))
    excluded_B = np.where((batch.excluded_B == 0) & ~keep_B, THINNED, batch.excluded_B)
    return Annotated(rollouts, batch.replace(excluded_B=excluded_B.astype(np.int8)),
                     {f.name: values[f.name] for f in hosted if not f.axes})
