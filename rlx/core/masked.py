"""Masked reductions. Padding, masks and epsilons are handled here and nowhere else.

Values outside the mask may be anything, NaN included: they are selected away
with `where`, never multiplied by zero, so they reach neither value nor gradient.
"""
import functools

import jax
import jax.numpy as jnp

AGGREGATES = ("min", "max", "sum", "mean", "last", "prod", "geo", "mean_logit", "mean_odds")


def where_valid(x, mask):
  """`x` where `mask`, else 0. Select first, then compute: NaN-safe gradients."""
  return jnp.where(mask, x, 0)


def total(x, mask, axis=None, keepdims=False):
  """Sum of `x` where `mask`."""
  return jnp.sum(where_valid(x, mask), axis=axis, keepdims=keepdims)


def mean(x, mask, axis=None, keepdims=False):
  """Mean of `x` where `mask`; 0 where nothing is unmasked."""
  count = jnp.sum(mask, axis=axis, keepdims=keepdims)
  return total(x, mask, axis, keepdims) / jnp.maximum(count, 1)


def var(x, mask, axis=None, keepdims=False):
  """Unbiased variance (n - 1) of `x` where `mask`; 0 where n < 2."""
  centred = where_valid(x - mean(x, mask, axis, keepdims=True), mask)
  count = jnp.sum(mask, axis=axis, keepdims=keepdims)
  return (jnp.sum(centred**2, axis=axis, keepdims=keepdims) / jnp.maximum(count - 1, 1))


def root(x):
  """Square root, with slope 0 at 0 instead of an infinite one."""
  is_zero = x == 0
  return where_valid(jnp.sqrt(jnp.where(is_zero, 1, x)), ~is_zero)


def absolute(x):
  """|x| with slope 0 at 0; that of jnp.abs is 1, a push where nothing differs."""
  return x * jax.lax.stop_gradient(jnp.sign(x))


def whiten(x, mask, *, shift_mean=True):
  """Mean 0 and variance 1 over all unmasked entries; 0 elsewhere.

    x <- (x - mean x) / sqrt(var x + 1e-8)     var unbiased; shift_mean=False keeps the mean

  Source: masked_whiten of the released PRIME code, arXiv:2502.01456. Differs
  from the released code: padding gets 0.

  Token-weighted: long completions dominate mean and variance.

  Example:
    >>> masked.whiten(jnp.array([[1., 2., 3.]]), jnp.ones((1, 3), bool))
    Array([[-1.,  0.,  1.]], dtype=float32)
  """
  m = mean(x, mask)
  white = (x - m) * jax.lax.rsqrt(var(x, mask) + 1e-8)
  return where_valid(white if shift_mean else white + m, mask)


def last(mask_BT):
  """One-hot [B, T] of the last True column of each row; all False if none."""
  after_BT = jnp.cumsum(mask_BT[:, ::-1], axis=1)[:, ::-1]
  return mask_BT & (after_BT == 1)


def step_ends(ends_BT, mask_BT):
  """Ends of steps within the mask; the last step ends with the mask's last position.

  Example:
    >>> step_ends(jnp.array([[True, False, True, False]]), jnp.ones((1, 4), bool))
    Array([[ True, False, False,  True]], dtype=bool)
  """
  ends_BT = ends_BT & mask_BT
  return (ends_BT & ~last(ends_BT)) | last(mask_BT)


def aggregate(x_BT, mask_BT, kind):
  """One number per row from its unmasked entries; 0 for a row that has none.

  geo (the geometric mean), mean_logit and mean_odds read probabilities, clipped
  to [1e-6, 1 - 1e-6].

  Raises:
    ValueError: unknown kind.
  """
  if kind not in AGGREGATES: raise ValueError(f"kind={kind!r}: one of {AGGREGATES}.")
  x_BT = where_valid(x_BT, mask_BT)
  if kind == "last": return total(x_BT, last(mask_BT), axis=1)
  if kind == "sum": return jnp.sum(x_BT, axis=1)
  if kind == "mean": return mean(x_BT, mask_BT, axis=1)
  has_B = jnp.any(mask_BT, axis=1)
  if kind in ("min", "max"):
    fn, empty = (jnp.min, jnp.inf) if kind == "min" else (jnp.max, -jnp.inf)
    return where_valid(fn(x_BT, axis=1, where=mask_BT, initial=empty), has_B)
  if kind == "prod": return where_valid(jnp.prod(x_BT, axis=1, where=mask_BT), has_B)
  x_BT = jnp.clip(x_BT, 1e-6, 1 - 1e-6)
  if kind == "geo": return where_valid(jnp.exp(mean(jnp.log(x_BT), mask_BT, axis=1)), has_B)
  odds_BT = x_BT / (1 - x_BT)
  return mean(odds_BT if kind == "mean_odds" else jnp.log(odds_BT), mask_BT, axis=1)


@functools.partial(jax.jit, static_argnames="reverse")
def accumulate(x_BT, decay_BT, reverse=False):
  """y_t = x_t + decay_t y_{t-1} along axis 1; with `reverse`, y_{t+1} instead.

  Logarithmic depth: T sequential steps would cost a kernel launch each. Jitted
  for callers that are not: op by op, each level is a compilation of its own.
  """
  def join(early, late):
    return early[0] * late[0], late[0] * early[1] + late[1]
  decay_BT = jnp.broadcast_to(decay_BT, x_BT.shape).astype(x_BT.dtype)
  return jax.lax.associative_scan(join, (decay_BT, x_BT), reverse=reverse, axis=1)[1]
