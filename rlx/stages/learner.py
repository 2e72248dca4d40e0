"""What the updates of all models share: minibatches and optimizer steps."""
import dataclasses
import functools
from collections.abc import Iterator
from typing import Any, Callable

import jax

from rlx.core import records
from rlx.core import rng
from rlx.learner import hosts
from rlx.learner import optimizer
from rlx.learner import sharding
from rlx.learner import step as learner_step
from rlx.models import transformer
from rlx.stages import annotate


@dataclasses.dataclass(frozen=True)
class Learner:
  """The parts of a model's update other than its loss."""
  config: transformer.DecoderConfig
  optimizer: optimizer.Optimizer
  mesh: jax.sharding.Mesh
  group: int                # G
  epochs: int = 1
  minibatches: int = 1      # optimizer steps per epoch
  microbatches: int = 1     # parts in which the gradient of each step is computed
  seed: int = 0
  offload: bool = False     # whether optimizer states are in the host's memory between updates

  @property
  def shards(self) -> int:
    return sharding.row_shards(self.mesh)

  def make(self, loss: Callable, before: Callable | None = None) -> jax.stages.Wrapped:
    """`learner.step.make` with these microbatches and shards."""
    return learner_step.make(loss, self.optimizer, microbatches=self.microbatches,
                             shards=self.shards, group=self.group, before=before,
                             pinned=functools.partial(sharding.pinned, mesh=self.mesh))

  def parts(self, placed: annotate.Placed, *more: Any, step: int | None = None) -> Iterator[tuple]:
    """Yields (rollouts, batch, *more, plan) of each minibatch of every epoch, on the mesh.

    Groups are shuffled if `step` is given and there is more than one minibatch.
    """
    whole = placed.rollouts.rows(), placed.batch, *more
    groups = len(placed.rollouts.tokens_BS) // self.group
    for epoch in range(self.epochs):
      order_P = None
      if step is not None and self.minibatches > 1:
        order_P = hosts.fetch(jax.random.permutation(
            rng.key(self.seed, "minibatches", step, epoch), groups))
      for rows_B in learner_step.minibatch_rows(groups, self.group, self.minibatches, order_P):
        # pylint: disable-next=cell-var-from-loop
        part = whole if rows_B is None else jax.tree.map(lambda x: x[rows_B], whole)
        yield *sharding.place_rows(part, self.mesh), placed.plan(
            self.config, self.microbatches, rows_B)


  def learn(self, update: Callable, state: records.TrainState, name: str, placed: annotate.Placed,
            *more: Any, step: int | None = None, before: Callable | None = None) -> tuple:
    """Applies `update`, a result of `make`, to a model of the state on every minibatch.

    Args:
      name: field of the TrainState.
      more, step: see `parts`.
      before: (params, minibatch) -> rows that the step does not return; None: there are none.
    Returns:
      state, metrics averaged over the steps, rows of the last minibatch, rows of `before`.
    """
    params, opt_state = getattr(state, name), getattr(state, f"{name}_opt")
    if self.offload: opt_state = sharding.moved(opt_state, None)
    metrics, rows_before = [], []
    for part in self.parts(placed, *more, step=step):
      if before: rows_before.append(before(records.join(state.frozen, params), part))
      params, opt_state, measured, rows = update(params, opt_state, part, state.frozen)
      metrics.append(measured)
    mean = {f"{name}/{k}": sum(m[k] for m in metrics) / len(metrics) for k in metrics[0]}
    # The next stage needs the memory that is free only after the transfer.
    if self.offload: opt_state = jax.block_until_ready(sharding.moved(opt_state, "pinned_host"))
    state = dataclasses.replace(state, **{name: params, f"{name}_opt": opt_state})
    return state, mean, rows, rows_before


def statistics_of(method, batch):
  """{argument: rows}: a method's statistics of the whole minibatch, see core/method.py."""
  return {name: fn(batch) for name, fn in method.whole.items()} if method else {}


def asks_for(fields, *methods):
  """Whether any method has a minibatch statistic that reads one of these fields of Batch."""
  return any(f in fields for method in methods if method
             for fn in method.whole.values() for f in fn.fields)


def add_whole(forward, whole_of, asks, learner):
  """Returns (params, part) -> the part with whole_of(batch) as its last entry.

  It is the argument `before` of `learner.step.make`. The entry is {} if there is one
  microbatch, because the loss then sees the whole minibatch.

  Args:
    forward: (params, rollouts, batch, plan) -> {field: rows} of the model.
    asks: whether whole_of reads these fields; they then take one more forward pass.
  """
  def before(params, part):
    rollouts, batch, *_, plan = part
    if learner.microbatches == 1: return *part, {}
    if asks: batch = batch.replace(**learner_step.mapped(
        lambda cut: forward(params, *cut), (rollouts, batch, plan), learner.microbatches,
        learner.shards))
    return *part, whole_of(batch)

  return before
