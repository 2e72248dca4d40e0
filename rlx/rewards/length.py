"""Rewards and penalties of a completion's length, in tokens."""
from typing import Annotated

import jax.numpy as jnp
from jax import Array

from rlx.core import ranges
from rlx.core.method import method


@method
def cosine(outcome_B: Array, lengths_B: Array, learn_B: Array, *, max_length: ranges.Count,
           right: ranges.Numbers = (2.0, 1.0), wrong: ranges.Numbers = (-10.0, 0.0),
           exceeded: ranges.Number = -10.0) -> Array:
  """The cosine length reward: right completions should be short, wrong ones long.

    r = b + (a - b) (1 + cos(pi L / L_max)) / 2,  a at length 0, b at L_max
    r = exceeded  if L >= L_max

  Source: Yeo et al. 2025, arXiv:2502.03373. Differs from the paper: a fractional
  verdict is right above 1/2; its repetition penalty is not here.

  Args:
    outcome_B: verdicts; anything where learn_B is False.
    lengths_B: tokens, EOS included.
    learn_B: bool.
    max_length: L_max, in tokens.
    right, wrong: (a, b) of right and of wrong completions.
    exceeded: reward of completions that reach max_length.
  Returns:
    rewards_B, 0 where not valid.
  Example:
    >>> outcome_B, lengths_B = jnp.array([1., 0., 1.]), jnp.array([0, 0, 10])
    >>> length.cosine(outcome_B, lengths_B, jnp.ones(3, bool), max_length=10)
    Array([  2., -10., -10.], dtype=float32, weak_type=True)
  """
  is_right_B = outcome_B > 0.5
  start_B, end_B = (jnp.where(is_right_B, r, w) for r, w in zip(right, wrong))
  falling_B = (1 + jnp.cos(jnp.pi * lengths_B / max_length)) / 2
  rewards_B = end_B + (start_B - end_B) * falling_B
  return jnp.where(lengths_B >= max_length, exceeded, rewards_B)


@method
def overlong(lengths_B: Array, learn_B: Array, *, max_length: ranges.Count,
             buffer: ranges.Count) -> Array:
  """DAPO's soft overlong punishment.

    r = 0 if L <= L_max - buffer,  (L_max - buffer - L) / buffer after,  -1 if L > L_max

  Source: Yu et al. 2025, arXiv:2503.14476, eq. 13. Differs from the paper: nothing
  known. Use it as a second reward term next to the verdict, with the estimator `total`.

  Args:
    lengths_B: tokens, EOS included.
    learn_B: bool.
    max_length: L_max, in tokens.
    buffer: tokens before L_max over which the penalty grows.
  Returns:
    rewards_B in [-1, 0].
  Raises:
    ValueError: buffer is more than max_length.
  Example:
    >>> length.overlong(jnp.array([5, 6, 9]), jnp.ones(3, bool), max_length=8, buffer=4)
    Array([-0.25, -0.5 , -1.  ], dtype=float32)
  """
  if buffer > max_length: raise ValueError(f"buffer={buffer!r}: at most max_length={max_length}.")
  over_B = (lengths_B - (max_length - buffer)) / buffer
  return -jnp.clip(over_B, 0, 1)


@method
def surrogate(scores_BE: Array, lengths_B: Array, learn_B: Array, *, max_length: ranges.Count,
              peak: Annotated[float, ranges.Range(1e-6, 0.999999)] = 0.5) -> Array:
  """A reward of format and length that replaces the verdict.

    f = mean of the scores     x = L / L_max
    l = 1 - (1 - x / p)^2  if x <= p,   1 - 2 ((x - p) / (1 - p))^2  after
    r = f + l  if the first score is > 1/2,  else min(0, l)

  Source: Xin et al. 2025, arXiv:2505.19439, with verifier.scores=("format.boxed",
  "format.tags"): can an answer be read, are the tags there. Differs from the paper:
  nothing known for these two.

  Args:
    scores_BE: of format verifiers; the first says whether an answer can be read.
    lengths_B: tokens, EOS included.
    learn_B: bool.
    max_length: L_max, in tokens.
    peak: p, the share of max_length that is paid best.
  Returns:
    rewards_B, 0 where not valid.
  Example:
    >>> scores_BE, lengths_B = jnp.array([[1., 1.], [0., 1.]]), jnp.array([5, 5])
    >>> length.surrogate(scores_BE, lengths_B, jnp.ones(2, bool), max_length=10)
    Array([2., 0.], dtype=float32)
  """
  x_B = lengths_B / max_length
  length_B = jnp.where(x_B <= peak, 1 - (1 - x_B / peak)**2, 1 - 2 * ((x_B - peak) / (1 - peak))**2)
  return jnp.where(scores_BE[:, 0] > 0.5, jnp.mean(scores_BE, axis=1) + length_B,
                   jnp.minimum(length_B, 0))
