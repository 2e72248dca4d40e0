"""Puts an annotated batch on the devices."""
import dataclasses
from typing import Any

import jax

from rlx.core import records
from rlx.learner import sharding
from rlx.rollouts import padding
from rlx.stages import annotate, passes as passes_lib


@dataclasses.dataclass(frozen=True)
class Placed:
  """Annotated rollouts on devices, with the packing plans of forward passes over them."""
  rollouts: records.Rollouts
  batch: records.Batch
  plan: passes_lib.Planner
  values: dict[str, Any]       # host values without axes, which model fields read
  passes: passes_lib.Passes | None = None  # set by the stage `score`
  method_state: Any = None     # of TrainState after this step, set by `rewards_advantages`

  @property
  def host(self) -> records.Rollouts:
    """The rollouts on the host."""
    return self.plan.rollouts

  def replace(self, **changes: Any) -> "Placed":
    return dataclasses.replace(self, **changes)

  def with_columns(self, **columns: Any) -> "Placed":
    """Returns a copy whose batch has these columns too."""
    return self.replace(batch=self.batch.replace(**columns))

  def append(self, token_id: int) -> "Placed":
    """Returns a copy with this token after every completion, in one more column."""
    host = padding.append(self.host, token_id)
    return self.replace(rollouts=sharding.place_rows(host, self.plan.mesh),
                        plan=dataclasses.replace(self.plan, rollouts=host, _plans={}))


@dataclasses.dataclass(frozen=True)
class Place:
  """The stage that copies a batch to the devices of a mesh."""
  mesh: jax.sharding.Mesh
  pack: bool

  def __call__(self, annotated: annotate.Annotated) -> Placed:
    rollouts, batch = sharding.place_rows((annotated.rollouts, annotated.batch), self.mesh)
    plan = passes_lib.Planner(annotated.rollouts, self.mesh, self.pack)
    return Placed(rollouts, batch, plan, annotated.values)
