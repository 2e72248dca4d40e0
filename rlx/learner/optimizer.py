"""Options -> optimizer: schedule, clipping, AdamW, and parameters stored in bfloat16."""
from typing import Any, Callable, NamedTuple

import jax
import jax.numpy as jnp
import optax

from rlx.core import rng
from rlx.core import schedule as schedules

PARAM_UPDATES = ("master", "stochastic")


class Optimizer(NamedTuple):
  """An optax transform that reports its learning rate."""
  init: Callable    # params -> state, float32
  update: Callable  # (gradients, state, params) -> (updates, state)
  rate: Callable    # state -> the learning rate of the next update


def adamw(*, lr, warmup_steps=0, schedule="constant", total_steps=0,
          final_fraction=0.0, b1=0.9, b2=0.999, eps=1e-8, weight_decay=0.0,
          decay="matrices", max_grad_norm=1.0, updates=1):
  """AdamW behind a global-norm clip.

  Args:
    lr: peak learning rate.
    warmup_steps, schedule, total_steps, final_fraction: of the learning rate, as in
      core/schedule.py; steps are iterations.
    b1, b2, eps, weight_decay: as in AdamW (Loshchilov & Hutter,
      arXiv:1711.05101); decay is multiplied by the learning rate.
    decay: "matrices" spares vectors (norms, biases), "all" does not (PyTorch).
    max_grad_norm: None is off.
    updates: optimizer steps of an iteration; no key of a config: build gives it.
  """
  if decay not in ("matrices", "all"):
    raise ValueError(f"decay={decay!r}: matrices or all.")
  rate = lambda k: lr * schedules.factor(
      k, warmup_steps=warmup_steps * updates, schedule=schedule,
      total_steps=total_steps * updates, final_fraction=final_fraction)
  rate(0)  # Refuses its options before anything compiles.
  mask = None if decay == "all" else lambda params: jax.tree.map_with_path(
      lambda path, _: not _is_vector(path[-1].key), params)
  clip = (optax.identity() if max_grad_norm is None
          else optax.clip_by_global_norm(max_grad_norm))
  chain = optax.chain(clip, optax.adamw(rate, b1, b2, eps,
                                        weight_decay=weight_decay, mask=mask))
  return Optimizer(*chain, rate=lambda state: rate(optax.tree.get(
      state, "count", filtering=lambda path, _: path[-1].tuple_name == "ScaleByAdamState")))


class Bfloat16State(NamedTuple):
  count: jax.Array  # updates so far
  inner: Any        # of the optimizer
  master: Any       # the parameters in float32; None with stochastic rounding


def over_bfloat16(optimizer, key, *, param_update):
  """The optimizer for parameters that are all stored in bfloat16; its state is float32.

    x = p + u in float32,   p <- x in bfloat16

  Rounded to nearest, an update below 2^-9 |p| would be lost each time. "master" keeps
  x for the next update to start from (14 bytes a parameter with two moments; parameters in
  float32 take 12). "stochastic" keeps p alone (10 bytes) and rounds x to one of its two
  neighbours, each with the probability that makes E[p] = x.

  Source: Micikevicius et al. 2017, arXiv:1710.03740 (master copies); Gupta et al. 2015,
  arXiv:1502.02551, and Zamirai et al. 2020, arXiv:2010.06192 (stochastic rounding).
  Differs from the papers: nothing known.

  Args:
    key: of the rounding, folded with the number of the update and the path of the
      leaf, so that draws depend on nothing else: not on the mesh, nor on a resume.
    param_update: one of PARAM_UPDATES.
  """
  def init(params):
    wide = _wide(params)
    return Bfloat16State(jnp.zeros((), jnp.int32), optimizer.init(wide),
                         wide if param_update == "master" else None)

  def update(grads, state, params):
    before = _wide(params) if state.master is None else state.master
    updates, inner = optimizer.update(grads, state.inner, before)
    after = optax.apply_updates(before, updates)
    if state.master is None:
      step_key = jax.random.fold_in(key, state.count)
      stored = jax.tree.map_with_path(lambda path, x: _stochastic(x, jax.random.fold_in(
          step_key, rng.number(jax.tree_util.keystr(path)))), after)
    else:  # XLA may leave out a cast to bfloat16 and back, this never.
      stored = jax.tree.map(lambda x: jax.lax.reduce_precision(x, 8, 7), after)
    updates = jax.tree.map(lambda x, p: x - p.astype(jnp.float32), stored, params)
    master = None if state.master is None else after
    return updates, Bfloat16State(state.count + 1, inner, master)

  return Optimizer(init, update, lambda state: optimizer.rate(state.inner))


def _wide(params):
  return jax.tree.map(lambda p: p.astype(jnp.float32), params)


def _stochastic(x, key):
  """Rounds x to one of the two nearest bfloat16 numbers at random, without bias."""
  bits = jax.lax.bitcast_convert_type(x, jnp.uint32)
  noise = jax.random.bits(key, x.shape, jnp.uint16).astype(jnp.uint32)
  return jax.lax.bitcast_convert_type((bits + noise) & jnp.uint32(0xffff0000), jnp.float32)


def _is_vector(name):
  """Norm scales and biases, by name: stacked layers give them extra axes."""
  return name.startswith(("scale_", "b_")) or "_bias_" in name
