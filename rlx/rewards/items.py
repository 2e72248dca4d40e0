"""Rewards that read the parts of a verdict, its items (`verifier.by_item`)."""
from typing import Annotated, Literal

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
from jax import Array

from rlx.core import masked, ranges
from rlx.core.method import method


@method
def weighted(items_BI: Array, item_weight_BI: Array, item_veto_BI: Array, learn_B: Array, *,
             kind: Literal["mean", "sum", "all"] = "mean", threshold: ranges.Share | None = None,
             level: Annotated[float, ranges.Range(1e-6, 1)] = 1.0, slope: ranges.Share = 0.0,
             power: Annotated[float, ranges.Range(1e-3, 1e3)] = 1.0) -> Array:
  """One reward from the parts of a verdict: a weighted mean, sum or all of them, with vetoes.

    s'_j = 1[s_j >= threshold]                       if there is a threshold, else s_j
    u_j  = (min(s'_j, level) + slope max(s'_j - level, 0)) / (level + slope (1 - level))
    mean:  m = sum_j w_j u_j / sum_j max(w_j, 0)
    sum:   m = sum_j w_j u_j
    all:   m = min_j of u_j where w_j > 0 and 1 - u_j where w_j < 0
    r = m^power if every veto has s'_j > 0, else 0

  Parts of negative weight are faults: a mean with them can be below 0, where it has no power.
  In a sum a prompt with more parts has larger rewards, in a mean it has not.
  A part of weight 0 counts by its veto alone. Above the level a part counts `slope` times as much
  per unit as below it: with a slope below 1, raising a low part gains more than raising a high one.

  Source: mean with w_j > 0 and met items is the explicit form of Gunjal et al. 2025,
  arXiv:2507.17746 (Rubrics as Rewards); veto, saturation and a non-linear map that sets apart what
  is good (power > 1) are those of Huang et al. 2025, arXiv:2508.12790 (Rubric Anchors); sum is the
  term of checks of Peng et al. 2025, arXiv:2502.19328 (RewardAgent). Differs
  from the papers: the second states its three aggregations in words alone, so that their
  formulas, level, slope and power are ours, and has interactions of pairs of items, too.

  Args:
    items_BI: values in [0, 1]; anything where learn_B is False.
    item_weight_BI: of the parts; 0 beyond their number.
    item_veto_BI: bool.
    learn_B: bool.
    kind: mean, sum or all.
    threshold: from which on a part counts as 1, else 0; None: its value counts.
    level, slope: of the saturation; level 1 has none.
    power: of the reward.
  Returns:
    rewards_B, 0 where not valid; in [0, 1] without negative weights, but for sum.
  Raises:
    ValueError: an unknown kind.
  Example:
    >>> values_BI, weight_BI = jnp.array([[1., .5], [0., 1.]]), jnp.array([[3., 1.]] * 2)
    >>> veto_BI = jnp.array([[True, False]] * 2)
    >>> items.weighted(values_BI, weight_BI, veto_BI, jnp.ones(2, bool))
    Array([0.875, 0.   ], dtype=float32)
  """
  if threshold is not None: items_BI = (items_BI >= threshold).astype(item_weight_BI.dtype)
  gain_BI = (jnp.minimum(items_BI, level) + slope * jnp.maximum(items_BI - level, 0)
             ) / (level + slope * (1 - level))
  if kind in ("mean", "sum"):
    reward_B = jnp.sum(item_weight_BI * gain_BI, axis=1)
    if kind == "mean":
      reward_B = reward_B / jnp.maximum(jnp.sum(jnp.maximum(item_weight_BI, 0), axis=1), 1e-12)
  else:
    met_BI = jnp.where(item_weight_BI < 0, 1 - gain_BI, gain_BI)
    reward_B = jnp.min(met_BI, axis=1, initial=1.0, where=item_weight_BI != 0)
  if power != 1: reward_B = jnp.where(reward_B > 0, jnp.maximum(reward_B, 1e-12)**power, reward_B)
  return jnp.where(jnp.any(item_veto_BI & (items_BI <= 0), axis=1), 0, reward_B)


@method
def unit_tests(items_BI: Array, item_weight_BI: Array, learn_PG: Array, *,
               weight: Literal["uniform", "exp", "density"] = "density",
               alpha: ranges.NotNegative = 2.0,
               width: Annotated[float, ranges.Range(1e-6, 1e6)] = 0.1) -> Array:
  """VeRPO: passed unit tests, with more weight on those that few completions pass.

    r_i = sum_j w_j s_ij,   rho_j = mean of s_j over the prompt's completions
    uniform: w = 1 / number of tests    exp: w = exp(-alpha rho)
    density: w = exp(-alpha rho_j) / N_j,   N_j = sum_k exp(-(rho_j - rho_k)^2 / (2 width^2))

  Without N_j the many tests that are easy would be most of the sum. The paper adds the
  advantage of passing all of them: the term outcome.verdict, with an estimator of its own.

  Source: Wang et al. 2026, arXiv:2601.03525, eq. 7 to 10 of its third version (uniform
  and exp are its ablations). Differs from the paper: nothing is added to N_j, which is
  at least 1. Weights that the prompt gives its parts are not read.

  Args:
    items_BI: 1 for a test passed, or a share; anything where not valid.
    item_weight_BI: 0 where a prompt has no such test.
    learn_PG: bool.
    weight: one of the above.
    alpha: of exp and density.
    width: of density, in units of the rates.
  Returns:
    rewards_B, 0 where not valid.
  Raises:
    ValueError: an unknown weight.
  Example:
    >>> items.unit_tests(jnp.array([[1., 1., 0.], [1., 0., 0.]]), jnp.array([[1., 1., 0.]] * 2),
    ...                  jnp.ones((1, 2), bool), weight="uniform")
    Array([1. , 0.5], dtype=float32)
  """
  passed_PGI = items_BI.reshape(*learn_PG.shape, -1)
  # A completion that is not valid has no weights.
  is_test_PI = jnp.any((item_weight_BI != 0).reshape(passed_PGI.shape), axis=1)
  if weight == "uniform":
    weight_PI = is_test_PI / jnp.maximum(jnp.sum(is_test_PI, axis=1, keepdims=True), 1)
  else:
    rate_PI = masked.mean(passed_PGI, learn_PG[:, :, None], axis=1)
    weight_PI = jnp.where(is_test_PI, jnp.exp(-alpha * rate_PI), 0)
  if weight == "density":
    apart_PII = (rate_PI[:, :, None] - rate_PI[:, None, :]) / width
    near_PII = jnp.where(is_test_PI[:, None, :], jnp.exp(-apart_PII**2 / 2), 0)
    weight_PI = weight_PI / jnp.maximum(jnp.sum(near_PII, axis=2), 1)
  return jnp.sum(passed_PGI * weight_PI[:, None, :], axis=2).reshape(-1)


@method
def pareto(items_BI: Array, item_weight_BI: Array, learn_PG: Array) -> Array:
  """DG-PRM: 1 for the completions of a prompt that no other one dominates, by several criteria.

    r_i = 1[no k has u_kj >= u_ij for all items j and u_kj > u_ij for one]
    u = 1 - s of a fault, else s

  Criteria that no common scale makes comparable are not added up: a completion counts as worse if
  another one is at least as good by all and better by one. Equal ones do not dominate each other.

  Source: Yin et al. 2025, arXiv:2507.17849, whose positive examples are the Pareto front and whose
  negative ones are dominated by it. Differs from the paper: it compares steps, in pairs for DPO,
  by criteria that a judge chooses for each step; here completions are compared, and of the weights
  of items the sign alone is read.

  Args:
    items_BI: values in [0, 1]; anything where not valid.
    item_weight_BI: below 0 of faults, 0 beyond the number of items.
    learn_PG: bool.
  Returns:
    rewards_B, 0 where not valid.
  Example:
    >>> items_BI = jnp.array([[1., 0.], [0., 1.], [0., .5]])
    >>> items.pareto(items_BI, jnp.ones((3, 2)), jnp.ones((1, 3), bool))
    Array([1., 1., 0.], dtype=float32)
  """
  values_PGI = jnp.where(item_weight_BI == 0, 0, jnp.where(
      item_weight_BI < 0, 1 - items_BI, items_BI)).reshape(*learn_PG.shape, -1)
  own_PG1I, other_P1GI = values_PGI[:, :, None], values_PGI[:, None]
  is_worse_PGG = jnp.all(other_P1GI >= own_PG1I, axis=3) & jnp.any(other_P1GI > own_PG1I, axis=3)
  is_dominated_PG = jnp.any(is_worse_PGG & learn_PG[:, None], axis=2)
  return (~is_dominated_PG).astype(values_PGI.dtype).reshape(-1)


@method
def whitened(items_BI: Array, item_weight_BI: Array, learn_PG: Array, *,
             ridge: ranges.Positive = 0.1) -> Array:
  """RRD: a mean of items whose weights count what correlated items share only once.

    r_i = sum_j w_j u_ij / sum_j |w_j|,   w = (S + ridge I)^(-1/2) 1
    S = covariance of the items over the prompt's completions;  u = 1 - s of a fault, else s

  Two items that always agree have together less weight than two that vary independently; with a
  large ridge the weights are equal. Weights can be negative where covariances are large.

  Source: Shen et al. 2026, arXiv:2602.05125 (RRD), whose whitened uniform weights are
  proportional to S^(-1/2) 1. Differs from the paper: the ridge, without which S of items that
  never differ has no inverse, its value and the division by sum |w| are ours; completions of the
  policy, as few as a group has, take the place of those from which the paper estimates S. Of a
  prompt's own weights the sign alone is read. Its filter is `select`, which runs before.

  Args:
    items_BI: values in [0, 1]; anything where not valid.
    item_weight_BI: below 0 of faults, 0 beyond the number of items.
    learn_PG: bool.
    ridge: in units of the variance of an item, which is at most about 1/4.
  Returns:
    rewards_B in [-1, 1], 0 where not valid.
  Example:
    >>> items_BI = jnp.array([[1., 1., 0.], [1., 1., 1.], [0., 0., 0.], [0., 0., 1.]])
    >>> items.whitened(items_BI, jnp.ones((4, 3)), jnp.ones((1, 4), bool), ridge=.01).round(2)
    Array([0.59, 1.  , 0.  , 0.41], dtype=float32)
  """
  values_PGI, weight_PGI = (
      x_BI.reshape(*learn_PG.shape, -1) for x_BI in (items_BI, item_weight_BI))
  # A completion that is not valid has no weights.
  learn_PG1 = learn_PG[:, :, None]
  is_item_PGI = weight_PGI != 0
  is_item_PI = jnp.any(is_item_PGI, axis=1)
  values_PGI = jnp.where(is_item_PGI, jnp.where(weight_PGI < 0, 1 - values_PGI, values_PGI), 0)
  centred_PGI = masked.where_valid(
      values_PGI - masked.mean(values_PGI, learn_PG1, axis=1, keepdims=True), learn_PG1)
  count_P11 = jnp.maximum(jnp.sum(learn_PG, axis=1) - 1, 1)[:, None, None]
  covariance_PII = jnp.matmul(
      jnp.swapaxes(centred_PGI, 1, 2), centred_PGI, precision="highest") / count_P11
  variance_PI, axes_PII = jnp.linalg.eigh(covariance_PII)
  # Of no item the row and column are 0, so that its axis is its own: it reaches no other weight.
  scale_PI = jax.lax.rsqrt(jnp.maximum(variance_PI, 0) + ridge)
  sums_PI = jnp.einsum("pij,pi->pj", axes_PII, is_item_PI.astype(axes_PII.dtype),
                       precision="highest")
  weight_PI = masked.where_valid(
      jnp.einsum("pij,pj->pi", axes_PII, scale_PI * sums_PI, precision="highest"), is_item_PI)
  total_P1 = jnp.maximum(jnp.sum(jnp.abs(weight_PI), axis=1, keepdims=True), 1e-12)
  return jnp.sum(values_PGI * (weight_PI / total_P1)[:, None, :], axis=2).reshape(-1)


def select(better_NI: npt.ArrayLike, worse_NI: npt.ArrayLike, *, edge: ranges.BelowOne = 0.0,
           most: ranges.Share = 0.9) -> np.ndarray:
  """Which items of a rubric to keep, by their scores of pairs of known order.

    keep_j = mean_n sign(b_nj - w_nj) > edge  and  |corr(j, k)| < most  for each kept k before j

  The first condition drops an item that ranks more pairs wrong than right, or none at all; the
  second one that repeats an item before it. Correlations are over both completions of all pairs.

  Source: the two filters of Shen et al. 2026, arXiv:2602.05125 (RRD), of misaligned and of
  redundant items. Differs from the paper: it asks a language model whether two items overlap;
  here correlations of their scores say so, and both thresholds are ours.

  Args:
    better_NI, worse_NI: the items' scores of the better and of the worse completion of N pairs.
    edge: in [0, 1), the least excess of right over wrong pairs, exclusive.
    most: in (0, 1], the correlation from which on items are duplicates.
  Returns:
    bool [I].
  Raises:
    ValueError: the arrays differ in shape, are empty or hold NaN, or edge is below 0.
  Example:
    >>> items.select(better_NI=((1., 1., 0.), (1., 1., 0.)),
    ...              worse_NI=((0., 0., 1.), (1., 1., 0.))).tolist()
    [True, False, False]
  """
  better_NI, worse_NI = np.asarray(better_NI, float), np.asarray(worse_NI, float)
  if better_NI.shape != worse_NI.shape or better_NI.ndim != 2 or not better_NI.size:
    raise ValueError(f"better_NI {better_NI.shape}, worse_NI {worse_NI.shape}: both must be "
                     "[pairs, items], with at least one of each.")
  if edge < 0: raise ValueError(f"edge={edge!r}: an item that misranks pairs has no use; write 0.")
  scores_MI = np.concatenate([better_NI, worse_NI])
  if np.isnan(scores_MI).any():
    raise ValueError("better_NI or worse_NI holds NaN: leave out pairs whose scores are not known.")
  keep_I = np.sign(better_NI - worse_NI).mean(axis=0) > edge
  centred_MI = scores_MI - scores_MI.mean(axis=0)
  norm_I = np.sqrt((centred_MI**2).sum(axis=0))
  for j in np.flatnonzero(keep_I):  # One that is kept ranks some pair, so that its norm is not 0.
    before = np.flatnonzero(keep_I[:j])
    correlation = centred_MI[:, before].T @ centred_MI[:, j] / (norm_I[before] * norm_I[j])
    keep_I[j] = not (np.abs(correlation) >= most - 1e-9).any()
  return keep_I
