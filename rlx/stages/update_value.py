"""The update of the value model."""
from typing import Callable

import jax

from rlx.losses import aggregate
from rlx.losses import diagnostics
from rlx.losses import value as value_loss
from rlx.stages import learner as learner_lib
from rlx.stages import passes as passes_lib


def value(learner: learner_lib.Learner, *, clip: float | None) -> tuple[Callable, jax.stages.Wrapped]:
  """The value model's regression on the returns.

  Args:
    clip: value.clip.
  Returns:
    learn(state, placed, step) -> (state, metrics), and the jitted step.
  """
  def loss(params, part):
    rollouts, batch, plan = part
    values_BT = passes_lib.values(params, learner.config, rollouts, plan)
    args = values_BT, batch.old_values_BT, batch.returns_BT, batch.learn_BT
    metrics = {} if clip is None else dict(
        clip=diagnostics.value_clip_fraction(*args, clip=clip))
    return aggregate.aggregate(value_loss.clipped(*args, clip=clip), batch.learn_BT,
                               mode="token-mean"), metrics, None

  update = learner.make(loss)

  def learn(state, placed, step):
    if state.value is None: return state, {}
    return learner.learn(update, state, "value", placed, step=step)[:2]

  return learn, update
