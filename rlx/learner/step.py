"""The training step: gradients over microbatches and one optimizer update.

Policy, PRM, value model and SFT all use `make`; they differ in the loss function that they pass.
"""
from typing import Any, Callable

import jax
import jax.numpy as jnp
import numpy as np
import optax

from rlx.core import records
from rlx.learner.optimizer import Optimizer


def split(batch: Any, n: int, shards: int = 1, group: int = 1) -> Any:
  """Splits [B, ...] leaves into n microbatches of whole groups, [n, B / n, ...].

  No row moves to another device: with `shards` blocks of rows, microbatch i consists of the i-th
  part of every block.

  Args:
    batch: tree whose first leaf has the B rows; the rows of a group are consecutive.
    group: rows per group; a group is not split.
  Raises:
    ValueError: the number of groups is not divisible.
  """
  if (rows := len(jax.tree.leaves(batch)[0])) % (shards * n * group):
    raise ValueError(f"{rows} rows in groups of {group} do not divide into {n} "
                     f"microbatches on {shards} devices.")
  def leaf(x):
    x = x.reshape(shards, n, -1, *x.shape[1:]).swapaxes(0, 1)
    return x.reshape(n, -1, *x.shape[3:])
  return jax.tree.map(leaf, batch)


def join(parts: Any, shards: int = 1) -> Any:
  """The inverse of `split`."""
  def leaf(x):
    x = x.reshape(len(x), shards, -1, *x.shape[2:]).swapaxes(0, 1)
    return x.reshape(-1, *x.shape[3:])
  return jax.tree.map(leaf, parts)


def map_microbatches(fn: Callable, batch: Any, n: int, shards: int = 1) -> Any:
  """Computes fn(batch) over n microbatches in turn and returns the rows in order."""
  if n == 1: return fn(batch)
  return join(jax.lax.map(fn, split(batch, n, shards)), shards)


def make(loss_fn: Callable, optimizer: Optimizer, *, microbatches: int = 1, shards: int = 1,
         group: int = 1, whole_minibatch: Callable | None = None,
         pinned: Callable = lambda tree: tree) -> jax.stages.Wrapped:
  """Builds `step(params, opt_state, batch, frozen) -> (params, opt_state, metrics, rows)`.

    gradient = (sum over microbatches of d total / d params) / (sum of weights)

  Gradients are summed in float32, whatever the dtype of the parameters, so the update is the same
  for any number of microbatches and devices. A loss may compare the rows of a group, because all
  of them are in one microbatch.

  Non-finite updates and updates with a zero gradient (an empty batch, no signal) are skipped:
  parameters and optimizer state do not change. They are counted in `nonfinite` and `empty`.

  Args:
    loss_fn: (params joined with `frozen`, batch) -> (Weighted loss, {name: Weighted metric},
      rows); rows are [B, ...] arrays of the forward pass that the step returns, or None.
    optimizer: optimizer.Optimizer.
    microbatches: number of parts into which the batch is split.
    shards, group: see `split`.
    whole_minibatch: (params joined with `frozen`, batch) -> batch; adds, before the split and
      without gradient, quantities that need the whole batch. None: the batch is not changed.
    pinned: a tree of parameters or optimizer state -> the same, constrained to its sharding.
  Returns:
    the jitted function; params and opt_state are donated. Metrics are device scalars: loss,
    grad_norm, lr (of this step), nonfinite, empty and those of loss_fn. The returned rows are in
    the order of the batch.
  """
  def total(params, frozen, batch):
    loss, metrics, rows = loss_fn(records.join(frozen, params), batch)
    return loss.total, ((loss, metrics), rows)

  def gradient(params, frozen, batch):
    grad_fn = jax.grad(total, has_aux=True)
    if microbatches == 1:
      grads, outputs = grad_fn(params, frozen, batch)
      return jax.tree.map(lambda g: g.astype(_at_least_float32(g.dtype)), grads), outputs
    parts = split(batch, microbatches, shards, group)
    grads, (sums, _) = jax.eval_shape(grad_fn, params, frozen, jax.tree.map(lambda x: x[0], parts))
    zero = jax.tree.map(lambda s: jnp.zeros(s.shape, _at_least_float32(s.dtype)), (grads, sums))
    def add(carry, part):
      grads, (sums, rows) = grad_fn(params, frozen, part)
      return jax.tree.map(jnp.add, carry, (grads, sums)), rows
    (grads, sums), rows = jax.lax.scan(add, zero, parts)
    return grads, (sums, join(rows, shards))

  def step(params, opt_state, batch, frozen=None):
    if whole_minibatch: batch = whole_minibatch(records.join(frozen, params), batch)
    grads, ((loss, metrics), rows) = gradient(params, frozen, batch)
    scale = 1 / jnp.where(loss.weight > 0, loss.weight, 1)
    norm = scale * optax.tree.norm(grads)
    is_finite = jnp.isfinite(norm) & jnp.isfinite(loss.total)
    ok = is_finite & (norm > 0)
    lr = optimizer.rate(opt_state)
    def apply(params, opt_state, grads):
      grads = jax.tree.map(lambda g: g * scale, grads)
      updates, opt_state = optimizer.update(grads, opt_state, params)
      return optax.apply_updates(params, updates), opt_state
    # A jnp.where over every array after the update would hold old and new arrays at once: 860 ms
    # for norm and AdamW on 36M parameters instead of 520 on two CPU cores, and 260 MB of
    # temporaries instead of 143. The scaling is inside the cond to fuse with the update.
    params, opt_state = pinned(jax.lax.cond(
        ok, lambda *args: pinned(apply(*args)), lambda params, opt_state, _: (params, opt_state),
        *pinned((params, opt_state)), grads))
    return (params, opt_state,
            dict({k: m.mean() for k, m in metrics.items()}, loss=loss.mean(),
                 grad_norm=norm, lr=lr, empty=1.0 * (norm == 0), nonfinite=1.0 * ~is_finite), rows)

  return jax.jit(step, donate_argnums=(0, 1))


def _at_least_float32(dtype):
  return jnp.promote_types(dtype, jnp.float32)


def minibatch_rows(groups: int, group: int, n: int, order_P: np.ndarray | None = None) -> list:
  """Returns the row indices of n equal minibatches of whole groups, as numpy arrays.

  Args:
    groups: number of groups, divisible by n.
    group: rows per group, G.
    order_P: indices of the groups in their new order; None keeps the order of the batch.
  Returns:
    a list of n arrays; [None] stands for the whole batch in its order.
  Example:
    >>> step.minibatch_rows(groups=2, group=3, n=2)
    [array([0, 1, 2]), array([3, 4, 5])]
  """
  if n == 1 and order_P is None: return [None]
  order_P = np.arange(groups) if order_P is None else np.asarray(order_P)
  return np.split((order_P[:, None] * group + np.arange(group)[None, :]).reshape(-1), n)
