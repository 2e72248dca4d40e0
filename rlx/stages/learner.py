"""What the updates of all models share: minibatches, and optimizer steps on them."""
import dataclasses
import functools
from collections.abc import Callable, Iterator
from typing import Any

import flax.struct
import jax

from rlx.core import records, resolve, rng
from rlx.learner import hosts, optimizer, sharding, step as learner_step
from rlx.models import packing, transformer
from rlx.stages import place


class Minibatch(flax.struct.PyTreeNode):
  """What a loss reads: whole groups on the mesh, or one of the microbatches of such a part."""
  rollouts: records.Rollouts
  batch: records.Batch
  plan: packing.Plan | None
  kl_coef_B: jax.Array | None = None  # the coefficient of the policy's KL, the same in all rows
  whole: Any = None                   # what was computed over the whole minibatch, by row


@dataclasses.dataclass(frozen=True)
class Learner:
  """The parts of a model's update other than its loss."""
  name: str                 # the model's field of TrainState, or its section scorers.NAME
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

  @property
  def has_one_step(self) -> bool:
    """Whether a batch is one optimizer step."""
    return self.epochs * self.minibatches == 1

  def make(self, loss: Callable, whole_minibatch: Callable | None = None) -> jax.stages.Wrapped:
    """`learner.step.make` with these microbatches and shards."""
    return learner_step.make(loss, self.optimizer, microbatches=self.microbatches,
                             shards=self.shards, group=self.group, whole_minibatch=whole_minibatch,
                             pinned=functools.partial(sharding.pin, mesh=self.mesh))

  def make_minibatches(self, placed: place.Placed, kl_coef_B: jax.Array | None = None,
                       step: int | None = None) -> Iterator[Minibatch]:
    """Yields the minibatches of every epoch, on the mesh.

    Groups are shuffled if `step` is given and there is more than one minibatch.
    """
    whole = placed.rollouts.rows(), placed.batch, kl_coef_B
    groups = len(placed.rollouts.tokens_BS) // self.group
    for epoch in range(self.epochs):
      order_P = None
      if step is not None and self.minibatches > 1:
        order_P = hosts.fetch(jax.random.permutation(
            rng.key(self.seed, "minibatches", step, epoch), groups))
      for rows_B in learner_step.minibatch_rows(groups, self.group, self.minibatches, order_P):
        part = whole if rows_B is None else _take(whole, rows_B)
        rollouts, batch, coef_B = sharding.place_rows(part, self.mesh)
        plan = placed.plan(self.config, self.microbatches, rows_B)
        yield Minibatch(rollouts, batch, plan, coef_B)

  def learn(self, program: Callable, state: records.TrainState, minibatches: Iterator[Minibatch],
            score: Callable | None = None) -> tuple[records.TrainState, dict, Any, list]:
    """Applies `program`, a result of `make`, to the model on every minibatch.

    Args:
      score: (params, Minibatch) -> rows, with the parameters before each step; None: no rows.
    Returns:
      state, metrics averaged over the steps, rows of the last minibatch, rows of `score`.
    """
    params, opt_state = state.get_trained(self.name)
    if self.offload: opt_state = sharding.move_to_memory(opt_state, None)
    metrics, scores, rows = [], [], None
    for part in minibatches:
      if score: scores.append(score(records.join(state.frozen, params), part))
      params, opt_state, measured, rows = program(params, opt_state, part, state.frozen)
      metrics.append(measured)
    # Each operation outside of jit is a program to compile.
    mean = metrics[0] if len(metrics) == 1 else {
        k: sum(m[k] for m in metrics) / len(metrics) for k in metrics[0]}
    mean = {f"{self.name}/{k}": x for k, x in mean.items()}
    # The next stage needs the memory that is free only after the transfer.
    if self.offload:
      opt_state = jax.block_until_ready(sharding.move_to_memory(opt_state, "pinned_host"))
    return state.with_trained(self.name, params, opt_state), mean, rows, scores

  def add_whole(self, params: records.Params, part: Minibatch,
                compute: Callable[[records.Batch], Any], forward: Callable | None) -> Minibatch:
    """The minibatch with compute(batch) as `whole`, for the argument whole_minibatch of `make`.

    It is {} if there is one microbatch, because the loss then sees the whole minibatch.

    Args:
      forward: (params, Minibatch) -> {field: rows} of the model, where `compute` reads them, for
        one more forward pass; None: it does not.
    """
    if self.microbatches == 1: return part.replace(whole={})
    batch = part.batch
    if forward: batch = batch.replace(**learner_step.map_microbatches(
        lambda cut: forward(params, cut), part, self.microbatches, self.shards))
    return part.replace(whole=compute(batch))


@jax.jit
def _take(tree: Any, rows_B: jax.Array) -> Any:
  return jax.tree.map(lambda x: x[rows_B], tree)


def compute_whole(method: resolve.Method | None, batch: records.Batch) -> dict[str, Any]:
  """{argument: rows}: a method's statistics of the whole minibatch, see core/method.py."""
  return {name: fn(batch) for name, fn in method.whole.items()} if method else {}


def reads_whole(fields: set[str], *methods: resolve.Method | None) -> bool:
  """Whether any method has a minibatch statistic that reads one of these fields of Batch."""
  return any(f in fields for method in methods if method
             for fn in method.whole.values() for f in fn.fields)
