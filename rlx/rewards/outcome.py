"""Rewards of whole completions."""
import jax.numpy as jnp

from rlx.core import axes


def verdict(outcome_B, valid_B):
  """The verifier's verdict, as it is.

    r_i = outcome_i

  Source: the verifiable reward of Lambert et al. 2024 (Tulu 3),
  arXiv:2411.15124, without its scale. Differs from the paper: a
  verdict may be fractional, and an unknown one (NaN) gives 0 and is marked by
  valid_B, so that it is nobody's baseline.

  Args:
    outcome_B: verdicts in [0, 1], NaN = could not tell.
    valid_B: bool.
  Returns:
    rewards_B, one per completion, 0 where not valid.
  """
  axes.dims(outcome_B=outcome_B, valid_B=valid_B)
  return jnp.where(valid_B, outcome_B, 0)
