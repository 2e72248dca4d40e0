"""Sums over segments of a completion or episode, and the scale of their returns."""
import jax.numpy as jnp

from rlx.core import masked


def ends(learn_BT, granularity, step_ends_BT=None, turn_BT=None):
  """True where a segment (a token, a step, a turn or the completion) ends.

  The last valid token always ends a segment.

  Raises:
    ValueError: granularity="step" without step_ends_BT, or "turn" without turn_BT.
  """
  if granularity == "token": return learn_BT
  if granularity == "completion": return masked.last(learn_BT)
  if granularity == "turn":
    if turn_BT is None: raise ValueError("granularity='turn' needs turn_BT.")
    turn_BT = jnp.where(learn_BT, turn_BT, -1)
    next_BT = jnp.pad(turn_BT[:, 1:], ((0, 0), (0, 1)), constant_values=-1)
    return learn_BT & (turn_BT != next_BT)
  if step_ends_BT is None: raise ValueError("granularity='step' needs step_ends_BT.")
  return (step_ends_BT & learn_BT) | masked.last(learn_BT)


def sums(x_BT, ends_BT):
  """Sum of `x_BT` over each segment, placed on its end, 0 elsewhere.

  A one-token segment gives its token unchanged, bit for bit: the sum restarts
  after every end instead of being a difference of running sums.
  """
  starts_BT = jnp.pad(ends_BT[:, :-1], ((0, 0), (1, 0)), constant_values=True)
  return masked.where_valid(masked.accumulate(x_BT, ~starts_BT), ends_BT)


def preceding(x_BT, ends_BT):
  """At each end, `x_BT` at the previous end; 0 at the first end and between ends."""
  held_BT = masked.accumulate(masked.where_valid(x_BT, ends_BT), ~ends_BT)
  return masked.where_valid(jnp.pad(held_BT[:, :-1], ((0, 0), (1, 0))), ends_BT)


def following(x_BT, ends_BT):
  """At each end, `x_BT` at the next end; 0 at the last end and between ends."""
  held_BT = masked.accumulate(masked.where_valid(x_BT, ends_BT), ~ends_BT, reverse=True)
  return masked.where_valid(jnp.pad(held_BT[:, 1:], ((0, 0), (0, 1))), ends_BT)


def select_known(x_BT, ends_BT, learn_BT):
  """(x, 0 where there is none; True where there is one); x is NaN at ends without one."""
  ends_BT = ends_BT & learn_BT & ~jnp.isnan(x_BT)
  return masked.where_valid(x_BT, ends_BT), ends_BT


def denominator(scores_BT, *, floor=0.0, shards=1):
  """The divisor of `norm="max_return"`, one number per block of rows.

    max(max_{i,t} |sum_{s >= t} scores[i, s]|, floor) + 1e-6

  Args:
    scores_BT: token rewards, 0 on padding and on rows that are not valid.
    floor: least maximum. Keeps rounding noise from being scaled up to 1 when
      the PRM equals its reference.
    shards: blocks of B / shards consecutive rows, each with its own maximum;
      1 is the whole batch.
  Returns:
    array [shards].
  """
  if scores_BT.shape[0] % shards:
    raise ValueError(f"norm_shards={shards} must divide the "
                     f"{scores_BT.shape[0]} rows of the batch.")
  togo_BT = jnp.cumsum(scores_BT[:, ::-1], axis=1)[:, ::-1]
  largest = jnp.max(jnp.abs(togo_BT).reshape(shards, -1), axis=1)
  return jnp.maximum(largest, floor) + 1e-6
