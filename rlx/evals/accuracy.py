"""Accuracy of a policy on held-out prompts, with an interval."""
import math
from collections.abc import Callable, Sequence

import jax
import numpy as np
import numpy.typing as npt
from jax import Array

from rlx.core import records


def outcomes(sample: Callable, verify: Callable, prompts: Sequence[records.Prompt], *, batch: int,
             repeats: int, key: Array) -> np.ndarray:
  """Verdicts of sampled completions.

  Args:
    sample: (prompts, key) -> Rollouts, on the host, of len(prompts) * G completions.
    verify: (prompts, rollouts) -> outcome_PG.
    prompts: list of Prompt.
    batch: prompts per call. The last call is filled up with the first prompts, so that every
      call has the same shape; their verdicts are dropped.
    repeats: how many times every prompt is sampled, with different random keys.
    key: the random key.
  Returns:
    outcome_PG with G * repeats columns; NaN = could not tell.
  """
  def once(r):
    batches = ([prompts[j % len(prompts)] for j in range(i, i + batch)]
               for i in range(0, len(prompts), batch))
    rows = [verify(x, sample(x, jax.random.fold_in(key, r))) for x in batches]
    return np.concatenate(rows)[:len(prompts)]
  return np.concatenate([once(r) for r in range(repeats)], axis=1)


def mean(values: Sequence[float] | np.ndarray) -> float:
  """The mean as a float; NaN without values."""
  return float(np.mean(values)) if len(values) else math.nan


def interval(outcome_PG: np.ndarray, z: float = 1.96) -> dict[str, float]:
  """Mean verdict with a 95% Wilson interval over prompts.

    n_eff = m (1 - m) / Var(mean over prompts),    m = mean verdict

  Completions of one prompt are not independent: n_eff is the number of independent verdicts that
  have the variance between prompts. With one completion per prompt it is the number of prompts.

  Source: Wilson 1927. Args: outcome_PG; NaN verdicts are excluded.
  Returns:
    dict(mean, low, high, prompts, unknown), all NaN if nothing is known.
  Example:
    >>> accuracy.interval(np.array([[1.]] * 8 + [[0.]] * 2))
    {'mean': 0.8, 'low': 0.4901..., 'high': 0.9433..., 'prompts': 10, 'unknown': 0.0}
    >>> accuracy.interval(np.array([[np.nan, 1.], [np.nan, np.nan], [0., 0.]]))
    {'mean': 0.5, 'low': 0.0945..., 'high': 0.9054..., 'prompts': 2, 'unknown': 0.5}
    >>> accuracy.interval(np.array([[np.nan]]))
    {'mean': nan, 'low': nan, 'high': nan, 'prompts': 0, 'unknown': 1.0}
  """
  known_P = ~np.isnan(outcome_PG).all(axis=1)
  n = int(known_P.sum())
  unknown = float(np.isnan(outcome_PG).mean()) if outcome_PG.size else 0.0
  if not n:
    return dict(mean=math.nan, low=math.nan, high=math.nan, prompts=0, unknown=unknown)
  mean_P = np.nanmean(outcome_PG[known_P], axis=1)
  m, variance = float(mean_P.mean()), float(mean_P.var())
  n_eff = n * m * (1 - m) / variance if variance > 0 else n
  centre = (m + z * z / (2 * n_eff)) / (1 + z * z / n_eff)
  half = (z / (1 + z * z / n_eff) * math.sqrt(m * (1 - m) / n_eff + z * z / (4 * n_eff * n_eff)))
  # Rounding may put an end on the other side of a mean of 0 or 1.
  return dict(mean=m, low=max(min(centre - half, m), 0.0), high=min(max(centre + half, m), 1.0),
              prompts=n, unknown=unknown)


def bootstrap(statistic: Callable[[np.ndarray], float], count: int, *,
              resamples: int = 1000) -> dict[str, float]:
  """A statistic with its 95% percentile interval over prompts.

  Source: Efron 1979. Args:
    statistic: indices of prompts, with repeats -> float.
    count: number of prompts.
    resamples: number of samples of prompts, with a fixed seed.
  Returns:
    dict(mean, low, high, prompts): the statistic of all prompts, and its interval. Samples
    for which it is NaN are excluded; all NaN without prompts.
  """
  if not count: return dict(mean=math.nan, low=math.nan, high=math.nan, prompts=0)
  draw = np.random.default_rng(0)
  values = np.array([statistic(draw.integers(count, size=count)) for _ in range(resamples)])
  values = values[~np.isnan(values)]
  low, high = np.quantile(values, [0.025, 0.975]).tolist() if len(values) else (math.nan,) * 2
  return dict(mean=float(statistic(np.arange(count))), low=low, high=high, prompts=count)


def bootstrap_mean(value_P: npt.ArrayLike) -> dict[str, float]:
  """The mean of one value per prompt, as `bootstrap`; prompts with NaN are excluded.

  Example:
    >>> accuracy.bootstrap_mean([1., 1., np.nan])
    {'mean': 1.0, 'low': 1.0, 'high': 1.0, 'prompts': 2}
  """
  values = np.asarray(value_P, float)
  known = values[~np.isnan(values)]
  return bootstrap(lambda chosen: float(known[chosen].mean()), len(known))


def split_by_source(outcome_PG: np.ndarray,
                    prompts: Sequence[records.Prompt]) -> dict[str, np.ndarray]:
  """{source: the rows of its prompts} of a mixture, in order; {} without one."""
  return {name: outcome_PG[[p.source == name for p in prompts]]
          for name in sorted({p.source for p in prompts} - {""})}


def measure_by(outcome_PG: np.ndarray, value_P: Sequence, *, buckets: int) -> dict[str, dict]:
  """`interval` for every value of a property of prompts, such as their difficulty.

  Args:
    outcome_PG: verdicts.
    value_P: the property. More than `buckets` different numbers are divided into that many
      ranges, with equal numbers of prompts as far as equal values allow.
  Returns:
    {value, or "lowest..highest" of a range: result of `interval`}, in order.
  Example:
    >>> outcome_PG = np.array([[1.], [0.], [1.], [1.], [0.], [0.]])
    >>> {name: x["mean"] for name, x in accuracy.measure_by(outcome_PG, list("babbab"),
    ...                                             buckets=2).items()}
    {'a': 0.0, 'b': 0.75}
    >>> {name: x["mean"] for name, x in accuracy.measure_by(outcome_PG, [3, 1, 2, 9, 5, 4],
    ...                                             buckets=3).items()}
    {'1..2': 0.5, '3..4': 0.5, '5..9': 0.5}
    >>> list(accuracy.measure_by(outcome_PG, [1, 1, 1, 1, 2, 7], buckets=2))
    ['1..1', '2..7']
  """
  values = sorted(set(value_P), key=lambda v: (isinstance(v, str), v))
  if len(values) > buckets and not any(isinstance(v, str) for v in values):
    number_P = np.asarray(value_P, float)
    edges = np.quantile(number_P, np.linspace(0, 1, buckets + 1)[1:-1])
    part_P = np.searchsorted(edges, number_P, side="left")
    name = lambda x_P: f"{x_P.min():g}..{x_P.max():g}"
    parts = {name(number_P[part_P == i]): part_P == i for i in np.unique(part_P)}
  else:
    parts = {str(v): np.array([u == v for u in value_P]) for v in values}
  return {name: interval(outcome_PG[part_P]) for name, part_P in parts.items()}


def take_out_ties(accuracy: float, varied: float) -> float:
  """`prm_metrics.accuracy` of the prompts whose verdicts differ; NaN if there are none.

  It counts the other prompts as 1/2, so that the mean over steps falls to 1/2, whatever the PRM
  says, while the policy learns to be always right.

  Args:
    accuracy: mean of `prm_metrics.accuracy`.
    varied: mean of `prm_metrics.share_of_varied` of the same batches.
  Example:
    >>> accuracy.take_out_ties(0.625, 0.5)
    0.75
  """
  return 0.5 + (accuracy - 0.5) / varied if varied else float("nan")
