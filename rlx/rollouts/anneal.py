"""Sampling temperature by position in the completion. Factors of decoding.temperature."""
import jax.numpy as jnp


def ead(columns_T, step, *, peak=1.2, floor=0.1, rate=25.0, growth=5.0, most=40000.0,
        warmup_steps=10):
  """Exploratory annealed decoding: hot at the start of a completion, then cooler.

    tau_t = max(1 + peak - exp(t / d), floor)    d = min(rate + growth step, most)

  and 1 in the first `warmup_steps` iterations. d grows as completions do.

  The sampler's log-probs are those of the temperatures it drew with. Policy, old
  policy and reference are scored at decoding.temperature, 1 in the paper: they are
  what is learned. learner.behaviour=behaviour.tis with cap 2 corrects for the rest.

  Source: Yang et al. 2025, arXiv:2510.05251; numbers of its released code. Differs
  from the paper: evaluation samples at decoding.temperature.

  Args:
    columns_T: positions in the completion, from 0.
    step: RL iterations done.
    peak: temperature of the first token, > 0.
    floor: the least temperature, > 0.
    rate: d at the start, tokens, > 0.
    growth: of d, tokens per iteration, >= 0.
    most: the largest d.
    warmup_steps: RL iterations.
  Returns:
    factor_T, float32.
  Raises:
    ValueError: an option is out of its range.
  """
  for name, value in (("peak", peak), ("floor", floor), ("rate", rate), ("most", most)):
    if value <= 0: raise ValueError(f"{name}={value}: must be > 0.")
  if growth < 0: raise ValueError(f"growth={growth}: must be >= 0.")
  d = jnp.minimum(rate + growth * step, most)
  # From where exp overflows the floor holds anyway.
  factor_T = 1 + peak - jnp.exp(jnp.minimum(columns_T / d, 80.0))
  return jnp.where(step < warmup_steps, 1.0, jnp.maximum(factor_T, floor)).astype(jnp.float32)
