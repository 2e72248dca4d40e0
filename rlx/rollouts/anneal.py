"""Sampling temperature by position in the completion. Factors of decoding.temperature."""
from typing import Annotated

from jax import Array
import jax.numpy as jnp

from rlx.core import ranges


def ead(columns_T: Array, step: int, *, peak: Annotated[float, ranges.Range(1e-3, 1e3)] = 1.2,
        floor: Annotated[float, ranges.Range(1e-3, 1e3)] = 0.1,
        rate: Annotated[float, ranges.Range(1e-3, 1e9)] = 25.0,
        growth: Annotated[float, ranges.Range(0, 1e9)] = 5.0,
        most: Annotated[float, ranges.Range(1e-3, 1e9)] = 40000.0,
        warmup_steps: ranges.Whole = 10) -> Array:
  """Exploratory annealed decoding: hot at the start of a completion, then cooler.

    tau_t = max(1 + peak - exp(t / d), floor)    d = min(rate + growth step, most)

  and 1 in the first `warmup_steps` iterations. d grows as completions do.

  The sampler's log-probs are those of the temperatures it drew with. Policy, old
  policy and reference are computed at decoding.temperature, 1 in the paper, because this
  is the distribution that is trained. learner.rollout_correction.name=rollout_correction.tis
  with cap 2 corrects for the difference.

  Source: Yang et al. 2025, arXiv:2510.05251; numbers of its released code. Differs
  from the paper: evaluation samples at decoding.temperature.

  Args:
    columns_T: positions in the completion, from 0.
    step: RL iterations done.
    peak: temperature of the first token.
    floor: the least temperature.
    rate: d at the start, tokens.
    growth: of d, tokens per iteration.
    most: the largest d.
    warmup_steps: RL iterations.
  Returns:
    factor_T, float32.
  """
  d = jnp.minimum(rate + growth * step, most)
  # From where exp overflows the floor holds anyway.
  factor_T = 1 + peak - jnp.exp(jnp.minimum(columns_T / d, 80.0))
  return jnp.where(step < warmup_steps, 1.0, jnp.maximum(factor_T, floor)).astype(jnp.float32)
