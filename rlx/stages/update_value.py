"""The update of the value model."""
import dataclasses
import functools

import jax

from rlx.core import records, resolve
from rlx.losses import aggregate, diagnostics, value as value_loss
from rlx.stages import learner as learner_lib, passes as passes_lib, place


@dataclasses.dataclass(frozen=True)
class UpdateValue:
  """The stage that trains the value model, if there is one, by regression on the returns.

  Attributes:
    clip: value.clip.
  """
  learner: learner_lib.Learner
  clip: float | None

  def __call__(self, state: records.TrainState, placed: place.Placed,
               step: int) -> tuple[records.TrainState, dict]:
    """(state, metrics)."""
    if state.value is None: return state, {}
    return self.learner.learn(self.program, state,
                              self.learner.make_minibatches(placed, step=step))[:2]

  @functools.cached_property
  def program(self) -> jax.stages.Wrapped:
    """The jitted optimizer step, see `learner.step.make`."""
    return self.learner.make(self._loss)

  def _loss(self, params: records.Params,
            part: learner_lib.Minibatch) -> tuple[records.Weighted, dict, None]:
    batch = part.batch
    values_BT = passes_lib.values(params, self.learner.config, part.rollouts, part.plan)
    loss_BT, metrics = resolve.split_metrics(value_loss.clipped(
        values_BT, batch.old_values_BT, batch.returns_BT, batch.learn_BT, clip=self.clip))
    return (aggregate.aggregate(loss_BT, batch.learn_BT, mode="token-mean"),
            diagnostics.means(metrics, batch.learn_BT), None)
