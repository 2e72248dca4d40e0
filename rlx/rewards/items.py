"""Rewards that read the parts of a verdict, its items (`verifier.by_item`)."""
from typing import Annotated, Literal

import jax.numpy as jnp
from jax import Array

from rlx.core import masked, ranges
from rlx.core.method import method


@method
def weighted(items_BI: Array, item_weight_BI: Array, item_veto_BI: Array, learn_B: Array, *,
             kind: Literal["mean", "all"] = "mean", threshold: ranges.Share | None = None,
             level: Annotated[float, ranges.Range(1e-6, 1)] = 1.0, slope: ranges.Share = 0.0,
             power: Annotated[float, ranges.Range(1e-3, 1e3)] = 1.0) -> Array:
  """One reward from the parts of a verdict: a weighted mean or all of them, with vetoes.

    s'_j = 1[s_j >= threshold]                       if there is a threshold, else s_j
    u_j  = (min(s'_j, level) + slope max(s'_j - level, 0)) / (level + slope (1 - level))
    mean:  m = sum_j w_j u_j / sum_j max(w_j, 0)
    all:   m = min_j of u_j where w_j > 0 and 1 - u_j where w_j < 0
    r = m^power if every veto has s'_j > 0, else 0

  Parts of negative weight are faults: a mean with them can be below 0, where it has no power.
  A part of weight 0 counts by its veto alone. Above the level a part counts `slope` times as much
  per unit as below it: with a slope below 1, raising a low part gains more than raising a high one.

  Source: mean with w_j > 0 and met items is the explicit form of Gunjal et al. 2025,
  arXiv:2507.17746 (Rubrics as Rewards); veto, saturation and a non-linear map that sets apart what
  is good (power > 1) are those of Huang et al. 2025, arXiv:2508.12790 (Rubric Anchors). Differs
  from the papers: the second states its three aggregations in words alone, so that their
  formulas, level, slope and power are ours, and has interactions of pairs of items, too.

  Args:
    items_BI: values in [0, 1]; anything where learn_B is False.
    item_weight_BI: of the parts; 0 beyond their number.
    item_veto_BI: bool.
    learn_B: bool.
    kind: mean or all.
    threshold: from which on a part counts as 1, else 0; None: its value counts.
    level, slope: of the saturation; level 1 has none.
    power: of the reward.
  Returns:
    rewards_B in [0, 1] without negative weights, 0 where not valid.
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
  if kind == "mean":
    reward_B = jnp.sum(item_weight_BI * gain_BI, axis=1) / jnp.maximum(
        jnp.sum(jnp.maximum(item_weight_BI, 0), axis=1), 1e-12)
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
