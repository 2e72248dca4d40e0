"""Builds optimizers: schedule, clipping, AdamW, and updates of parameters stored in bfloat16."""
import functools
from typing import Any, Callable, NamedTuple

import jax
import jax.numpy as jnp
import optax

from rlx.core import rng, schedule as schedules

PARAM_UPDATES = ("master", "stochastic")


class Optimizer(NamedTuple):
  """An optax transformation that also returns its learning rate."""
  init: Callable    # params -> state, float32
  update: Callable  # (gradients, state, params) -> (updates, state)
  rate: Callable    # state -> the learning rate of the next update


@functools.cache  # Equal options give the same functions, which jax compiles once per process.
def adamw(*, lr: float, warmup_steps: int = 0, schedule: str = "constant", total_steps: int = 0,
          final_fraction: float = 0.0, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8,
          weight_decay: float = 0.0, decay: str = "matrices", max_grad_norm: float | None = 1.0,
          updates: int = 1) -> Optimizer:
  """Returns AdamW on gradients clipped by their global norm.

  Args:
    lr: peak learning rate.
    warmup_steps, schedule, total_steps, final_fraction: the learning rate's schedule, as in
      core/schedule.py; steps are iterations of the loop.
    b1, b2, eps, weight_decay: as in AdamW (Loshchilov & Hutter,
      arXiv:1711.05101); decay is multiplied by the learning rate.
    decay: "matrices" excludes vectors (norms, biases) from weight decay; "all" includes them, as
      PyTorch does.
    max_grad_norm: largest global norm of the gradient; None disables clipping.
    updates: optimizer steps per iteration; set by build, not a key of the config.
  """
  rate = schedules.Schedule(
      lr, warmup_steps * updates, schedule, total_steps * updates, final_fraction)
  mask = None if decay == "all" else lambda params: jax.tree.map_with_path(
      lambda path, _: not _is_vector(path[-1].key), params)
  clip = (optax.identity() if max_grad_norm is None else optax.clip_by_global_norm(max_grad_norm))
  chain = optax.chain(clip, optax.adamw(rate, b1, b2, eps, weight_decay=weight_decay, mask=mask))
  return Optimizer(chain.init, chain.update, rate=lambda state: rate(count_updates(state)))


def count_updates(state: Any) -> jax.Array:
  """The number of updates that an optimizer's state has seen."""
  return optax.tree.get(
      state, "count", filtering=lambda path, _: path[-1].tuple_name == "ScaleByAdamState")


class Bfloat16State(NamedTuple):
  count: jax.Array  # type: ignore[assignment]  # Updates so far; hides tuple.count.
  inner: Any        # state of the wrapped optimizer
  master: Any       # the parameters in float32; None with stochastic rounding


def wrap_for_bfloat16(optimizer: Optimizer, key: jax.Array, *, param_update: str) -> Optimizer:
  """Wraps an optimizer for parameters that are all stored in bfloat16; its state is float32.

    x = p + u in float32,   p <- x in bfloat16

  With rounding to nearest, every update below 2^-9 |p| would be lost. "master" keeps x, from which
  the next update starts (14 bytes per parameter with two moments; parameters in float32 need 12).
  "stochastic" keeps only p (10 bytes) and rounds x to one of its two neighbours with
  probabilities such that E[p] = x.

  Source: Micikevicius et al. 2017, arXiv:1710.03740 (master copies); Gupta et al. 2015,
  arXiv:1502.02551, and Zamirai et al. 2020, arXiv:2010.06192 (stochastic rounding).
  Differs from the papers: nothing known.

  Args:
    key: random key of the rounding. It is folded with the number of the update and the path of
      the leaf, so that the rounding does not depend on the mesh or on a resume.
    param_update: one of PARAM_UPDATES.
  """
  def init(params):
    wide = optax.tree.cast(params, jnp.float32)
    return Bfloat16State(jnp.zeros((), jnp.int32), optimizer.init(wide),
                         wide if param_update == "master" else None)

  def update(grads, state, params):
    before = optax.tree.cast(params, jnp.float32) if state.master is None else state.master
    updates, inner = optimizer.update(grads, state.inner, before)
    after = optax.apply_updates(before, updates)
    if state.master is None:
      step_key = jax.random.fold_in(key, state.count)
      stored = jax.tree.map_with_path(lambda path, x: _round_stochastically(x, jax.random.fold_in(
          step_key, rng.number(jax.tree_util.keystr(path)))), after)
    else:  # XLA may remove a cast to bfloat16 and back, but never reduce_precision.
      stored = jax.tree.map(lambda x: jax.lax.reduce_precision(x, 8, 7), after)
    updates = jax.tree.map(lambda x, p: x - p.astype(jnp.float32), stored, params)
    return updates, Bfloat16State(state.count + 1, inner, None if state.master is None else after)

  return Optimizer(init, update, lambda state: optimizer.rate(state.inner))


def _round_stochastically(x, key):
  """Rounds x to one of the two nearest bfloat16 numbers at random, without bias."""
  bits = jax.lax.bitcast_convert_type(x, jnp.uint32)
  noise = jax.random.bits(key, x.shape, jnp.uint16).astype(jnp.uint32)
  return jax.lax.bitcast_convert_type((bits + noise) & jnp.uint32(0xffff0000), jnp.float32)


def _is_vector(name):
  """Tells norm scales and biases by name, because stacked layers add axes to them."""
  return name.startswith(("scale_", "b_")) or "_bias_" in name
