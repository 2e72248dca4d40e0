"""Filters groups by the std of their rewards; `rollouts/filter_groups.py` uses verdicts."""
import jax.numpy as jnp
from jax import Array

from rlx.core import masked, ranges
from rlx.core.method import INITIAL, method


@method(state=dict(ema=jnp.nan))
def running_mean(rewards_PG: Array, learn_PG: Array, step: Array | int, *,
                 fraction: ranges.NotNegative = 0.5, decay: ranges.BelowOne = 0.99,
                 start: ranges.Whole = 5, filter_from: ranges.Whole = 10, ema: Array = INITIAL
                 ) -> tuple[Array, dict[str, Array], dict[str, Array]]:
  """Keeps groups whose reward std is at least a fraction of its running mean.

    keep_p = std_g r[p, g] >= fraction ema        from iteration filter_from on
    ema <- decay ema + (1 - decay) mean_p std_g r[p, g]     from iteration start on

  The running mean starts at the first batch's mean. For rewards whose scale is unknown,
  to which a band of accuracies does not apply.

  Source: RLPR, Yu et al. 2025, arXiv:2506.18254; decay and iterations of its code,
  which counts from 1. Differs from the paper: a batch is filtered by the mean of the
  batches before it, and the groups left out are not replaced.

  Args:
    rewards_PG: anything where learn_PG is False.
    learn_PG: bool; a group with fewer than two valid completions has spread 0.
    step: RL iterations done.
    fraction: of the running mean; the code has 0.5, 0.9 and 1.
    decay: of the running mean.
    start: first iteration that enters the mean, counted from 0.
    filter_from: first iteration that is filtered, >= start.
    ema: the running mean so far, in the unit of rewards; NaN before the first batch.
  Returns:
    keep_P bool, {"std_ema": the next ema}, {"ema": likewise}.
  Raises:
    ValueError: filter_from is before start.
  Example:
    >>> rewards_PG = jnp.array([[1., 0.], [1., 1.]])
    >>> keep_P, _, state = reward_std_filter.running_mean(
    ...     rewards_PG, jnp.ones((2, 2), bool), 10, ema=jnp.array(1.))
    >>> keep_P
    Array([ True, False], dtype=bool)
  """
  if filter_from < start: raise ValueError(f"filter_from={filter_from}: must be >= start={start}.")
  std_P = masked.root(masked.var(rewards_PG, learn_PG, axis=1))
  # A comparison with NaN is False: nothing is left out before there is a mean.
  keep_P = ~((step >= filter_from) & (std_P < fraction * ema))
  mean = masked.mean(std_P, jnp.any(learn_PG, axis=1))
  next_ema = jnp.where(jnp.isnan(ema), mean, decay * ema + (1 - decay) * mean)
  next_ema = jnp.where(step >= start, next_ema, ema)
  return keep_P, dict(std_ema=next_ema), dict(ema=next_ema)
