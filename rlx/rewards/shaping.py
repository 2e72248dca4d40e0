"""Rewards from the scores of verifiers other than the one that gives the verdict.

Scores are in [0, 1], as verifiers give them; papers that shape the logits of a
reward model get their units back through a factor `k`.
"""
from collections.abc import Sequence
from typing import Literal

import jax
import jax.numpy as jnp
from jax import Array

from rlx.core import masked, ranges
from rlx.core.method import method


@method(cancelled=tuple(
    ("scales", dict(kind=kind), "the plain score") for kind in ("zscore", "minmax")))
def plain(scores_PG: Array, learn_PG: Array, *,
          kind: Literal["linear", "sigmoid", "tanh", "clip", "zscore", "minmax"] = "linear",
          k: ranges.Positive = 1.0, centre: ranges.Number = 0.0,
          limit: ranges.Positive = 1.0) -> Array:
  """A second verifier's score, as it is or transformed.

    linear: r = z    sigmoid: 1 / (1 + exp(-z))    tanh: tanh(z)
    clip: min(max(z, -limit), limit),   z = k (s - centre)
    zscore: (s - mean_j s_j) / std_j s_j
    minmax: (s - min_j s_j) / (max_j s_j - min_j s_j)

  Source: the shapings that Fu et al. 2025, arXiv:2502.18770, compare theirs with.
  Differs from the paper: zscore and minmax are over the prompt's completions, the
  paper's over a running batch; where they tie the first is 0, the second 1/2.

  Args:
    scores_PG: anything where learn_PG is False.
    learn_PG: bool.
    kind: one of the above.
    k, centre: factor and zero of the scores, not of zscore and minmax.
    limit: of clip.
  Returns:
    rewards_B, 0 where not valid.
  Raises:
    ValueError: an unknown kind.
  Example:
    >>> shaping.plain(jnp.array([[0., .5, 1.]]), jnp.ones((1, 3), bool), kind="zscore")
    Array([-1.,  0.,  1.], dtype=float32)
  """
  if kind == "minmax": return _unit(scores_PG, learn_PG).reshape(-1)
  if kind == "zscore":
    centred_PG = scores_PG - masked.mean(scores_PG, learn_PG, axis=1, keepdims=True)
    std_P1 = masked.root(masked.var(scores_PG, learn_PG, axis=1, keepdims=True))
    # A mean of equal floats can be off by one bit: the range decides whether they tie.
    low_P1, high_P1 = _range(scores_PG, learn_PG)
    is_tie_P1 = low_P1 >= high_P1
    rewards_PG = jnp.where(is_tie_P1, 0, centred_PG / jnp.where(is_tie_P1, 1, std_P1))
  else:
    z_PG = k * (scores_PG - centre)
    rewards_PG = dict(linear=lambda z: z, sigmoid=jax.nn.sigmoid, tanh=jnp.tanh,
                      clip=lambda z: jnp.clip(z, -limit, limit))[kind](z_PG)
  return rewards_PG.reshape(-1)


@method
def par(scores_PG: Array, learn_PG: Array, *, k: ranges.Positive = 1.0,
        reference: ranges.Number | None = None) -> Array:
  """PAR, Preference As Reward: how likely it is preferred to reference completions.

    r_i = 1/M sum_m sigmoid(k (s_i - s_m))

  Source: Fu et al. 2025, arXiv:2502.18770. Differs from the paper: its M references
  are completions of the model's start; here they are the prompt's other completions,
  or one constant score. A completion without another gets 1/2.

  Args:
    scores_PG: anything where learn_PG is False.
    learn_PG: bool.
    k: steepness, per unit of the scores.
    reference: a score to compare with; None: those of the others.
  Returns:
    rewards_B in (0, 1), 0 where not valid.
  Example:
    >>> shaping.par(jnp.array([[1., 0.]]), jnp.ones((1, 2), bool), k=2.).round(2)
    Array([0.88, 0.12], dtype=float32)
  """
  if reference is not None: return jax.nn.sigmoid(k * (scores_PG - reference)).reshape(-1)
  prefers_PGG = jax.nn.sigmoid(k * (scores_PG[:, :, None] - scores_PG[:, None, :]))
  others_PGG = learn_PG[:, None, :] & ~jnp.eye(learn_PG.shape[1], dtype=bool)[None]
  return jnp.where(jnp.any(others_PGG, axis=2),
                   masked.mean(prefers_PGG, others_PGG, axis=2), 0.5).reshape(-1)


@method
def lsc(scores_PG: Array, learn_PG: Array, *, k: ranges.Positive = 1.0,
        quantile: ranges.Share = 0.85, reference: ranges.Number | None = None) -> Array:
  """The log-sigmoid-centred reward, which saturates above a reference score.

    r_i = log sigmoid(k (s_i - s_ref)),   s_ref = a high quantile of reference scores

  Source: Wang et al. 2024, arXiv:2402.00742. Differs from the paper: its quantile is
  over completions of the model's start; here over the prompt's completions, or it is
  one constant score.

  Args:
    scores_PG: anything where learn_PG is False.
    learn_PG: bool.
    k: steepness, per unit of the scores.
    quantile: of the prompt's scores.
    reference: s_ref; None: the quantile.
  Returns:
    rewards_B below 0, 0 where not valid.
  Example:
    >>> shaping.lsc(jnp.array([[0., 1.]]), jnp.ones((1, 2), bool), reference=0.).round(2)
    Array([-0.69, -0.31], dtype=float32)
  """
  centre_P1 = reference if reference is not None else jnp.nanquantile(
      jnp.where(learn_PG, scores_PG, jnp.nan), quantile, axis=1, keepdims=True)
  return jax.nn.log_sigmoid(k * (scores_PG - centre_P1)).reshape(-1)


@method
def ensemble(scores_BE: Array, learn_B: Array, *,
             kind: Literal["mean", "median", "min", "quantile", "uwo", "mean_minus_std",
                           "nominal_min", "logsig_sum"] = "mean",
             weight: ranges.NotNegative = 0.1, quantile: ranges.Share = 0.25,
             k: ranges.Positive = 1.0, thresholds: ranges.Numbers | None = None) -> Array:
  """One reward from an ensemble of scores.

    mean, median, min (WCO), quantile:  of the E scores      mean_minus_std:  mean - std
    uwo:          mean - weight var          nominal_min:  weight s_1 + (1 - weight) min
    logsig_sum:   sum_e log sigmoid(k (s_e - threshold_e))

  var and std are over the E scores, divided by E.

  Source: WCO and UWO, Coste et al. 2023, arXiv:2310.02743; mean, median and
  mean_minus_std, Eisenstein et al. 2023, arXiv:2312.09244; nominal_min, Yan et al.
  2024, arXiv:2409.15360; logsig_sum, Wang et al. 2024, arXiv:2402.00742. Differs from
  the papers: nominal is the first scorer (the paper's is the head of least predicted
  std, as in `nominal`); quantile, between the minimum and the median, is our addition, interpolated
  linearly. Weights that are learned: `constrained.lagrangian`.

  Args:
    scores_BE: anything where learn_B is False.
    learn_B: bool.
    kind: one of the above.
    weight: of uwo (the paper's for PPO is 0.1) and nominal_min.
    quantile: which one of the scores, for quantile.
    k: steepness of logsig_sum, per unit of the scores.
    thresholds: a score for each verifier, for logsig_sum.
  Returns:
    rewards_B, 0 where not valid.
  Raises:
    ValueError: an unknown kind, or thresholds are missing or not one for each.
  Example:
    >>> shaping.ensemble(jnp.array([[1., .5, 0.]]), jnp.array([True]), kind="nominal_min",
    ...                  weight=.5)
    Array([0.5], dtype=float32)
  """
  mean_B, least_B = jnp.mean(scores_BE, axis=1), jnp.min(scores_BE, axis=1)
  if kind == "mean": return mean_B
  if kind == "median": return jnp.median(scores_BE, axis=1)
  if kind == "min": return least_B
  if kind == "quantile": return jnp.quantile(scores_BE, quantile, axis=1)
  if kind == "uwo": return mean_B - weight * jnp.var(scores_BE, axis=1)
  if kind == "mean_minus_std": return mean_B - jnp.std(scores_BE, axis=1)
  if kind == "nominal_min": return weight * scores_BE[:, 0] + (1 - weight) * least_B
  if thresholds is None or len(thresholds) != scores_BE.shape[1]:
    raise ValueError(f"thresholds={thresholds!r}: {kind} needs {scores_BE.shape[1]}, "
                     "one for each verifier.")
  threshold_1E = jnp.asarray(thresholds, scores_BE.dtype)[None]
  return jnp.sum(jax.nn.log_sigmoid(k * (scores_BE - threshold_1E)), axis=1)


@method
def nominal(scores_BE: Array, score_spreads_BE: Array, learn_B: Array, *,
            weight: ranges.Share = 0.5) -> Array:
  """A robust mixture of the score that is surest of itself and of the worst one.

    r = weight s_n + (1 - weight) min_e s_e,   n = argmin_e sigma_e

  Source: Yan et al. 2024, arXiv:2409.15360, with a weight between 0.4 and 0.6. Differs from the
  paper: E models with a head each, where the paper has one model with several heads.

  Args:
    scores_BE, score_spreads_BE: s and sigma that scorers with the head spread predict; anything
      where learn_B is False.
    learn_B: bool.
    weight: of the nominal score.
  Returns:
    rewards_B, 0 where not valid.
  Example:
    >>> shaping.nominal(jnp.array([[1., .5, 0.]]), jnp.array([[.3, .1, .2]]), jnp.array([True]))
    Array([0.25], dtype=float32)
  """
  surest_B1 = jnp.argmin(score_spreads_BE, axis=1)[:, None]
  nominal_B = jnp.take_along_axis(scores_BE, surest_B1, axis=1)[:, 0]
  return weight * nominal_B + (1 - weight) * jnp.min(scores_BE, axis=1)


@method
def stratified(scores_PG: Array, outcome_PG: Array, learn_PG: Array, *,
               wrong_range: ranges.NotNegative = 0.05,
               right_range: ranges.NotNegative = 0.05) -> Array:
  """HERO: the verdict, plus a score that ranks completions of equal verdict.

    r = -alpha + 2 alpha u  if wrong,   1 - beta + 2 beta u  if right
    u = (s - min s) / (max s - min s)   over the prompt's completions of that verdict

  Source: Tao et al. 2025, arXiv:2510.07242. Differs from the paper: scores that tie,
  or stand alone, have u = 1/2 (with the paper's epsilon u = 0); alpha and beta are
  those of a re-implementation of its table 6, 0.1 where verdicts are unreliable. Its
  weight of prompts is the estimator group.variance_weighted.

  Args:
    scores_PG: anything where learn_PG is False.
    outcome_PG: verdicts, right above 1/2.
    learn_PG: bool.
    wrong_range, right_range: alpha and beta, half the range of wrong and of right
      completions.
  Returns:
    rewards_B in [-alpha, alpha] and [1 - beta, 1 + beta], 0 where not valid.
  Example:
    >>> scores_PG, outcome_PG = jnp.array([[0., 1., 0., 1.]]), jnp.array([[1., 1., 0., 0.]])
    >>> shaping.stratified(scores_PG, outcome_PG, jnp.ones((1, 4), bool), right_range=.25)
    Array([ 0.75,  1.25, -0.05,  0.05], dtype=float32)
  """
  is_right_PG = outcome_PG > 0.5
  good_PG = 1 + right_range * (2 * _unit(scores_PG, learn_PG & is_right_PG) - 1)
  bad_PG = wrong_range * (2 * _unit(scores_PG, learn_PG & ~is_right_PG) - 1)
  return jnp.where(is_right_PG, good_PG, bad_PG).reshape(-1)


@method
def facts(scores_BE: Array, learn_B: Array, *, most: ranges.Positive,
          detail: ranges.NotNegative = 0.01, win: ranges.NotNegative = 0.1) -> Array:
  """Factual precision, number of supported claims, and whether a reference is beaten.

    r = S / (C + 1) + detail log(1 + S) + win 1[p > 1/2]

  with S = most s_0 the supported ones of the C = most s_1 claims, as a judge counts them, and
  p = s_2 its preference over a reference. Precision alone pays for saying little.

  Source: Chen et al. 2025, arXiv:2508.05618. Differs from the paper: its claims are checked
  against retrieved documents, and the defaults of the two weights could not be confirmed.

  Args:
    scores_BE: shares of `most` of supported claims and of claims, and the preference, of the
      verifiers in verifier.scores; anything where not valid. Without the third, no term for it.
    learn_B: bool.
    most: the number of claims that a score of 1 means, verifier.judges.NAME.full.
    detail, win: weights of the second and third term.
  Returns:
    rewards_B, 0 where not valid.
  Raises:
    ValueError: verifier.scores does not name two or three verifiers.
  Example:
    >>> scores_BE = jnp.array([[.3, .4, 1.], [.1, .1, 0.]])
    >>> shaping.facts(scores_BE, jnp.ones(2, bool), most=10., detail=0.).round(2)
    Array([0.7, 0.5], dtype=float32)
  """
  if scores_BE.shape[1] not in (2, 3):
    raise ValueError(f"most={most!r}: verifier.scores names {scores_BE.shape[1]} verifiers; it "
                     "needs those of supported claims, of claims and, if any, of a comparison.")
  supported_B, claims_B = most * scores_BE[:, 0], most * scores_BE[:, 1]
  reward_B = supported_B / (claims_B + 1) + detail * jnp.log1p(supported_B)
  return reward_B + win * (scores_BE[:, 2] > 0.5) if scores_BE.shape[1] > 2 else reward_B


def order(first_NE: Array, second_NE: Array, *, thresholds: Sequence[float]) -> Array:
  """Labels of pairs by ranked factors: the first factor that differs enough decides.

    y = 1[a_e > b_e]  of the first e with |a_e - b_e| > threshold_e,  1/2 without one

  The scale of a factor has no effect beyond its threshold, nor has what stands after the one that
  decides. Labels like these need not be transitive: where thresholds are above 0, the differences
  of a and b and of b and c can be too small while that of a and c is not.

  Source: HERON, Bukharin et al. 2023, arXiv:2309.02632. Differs from the paper: a pair that no
  factor decides has the label 1/2 and is for the caller to leave out, and thresholds are in units
  of the scores.

  Args:
    first_NE, second_NE: scores of E factors in order of importance, of any leading axes.
    thresholds: at least 0, one for each factor.
  Returns:
    labels_N: 1 where the first is better, 0 where the second one is, 1/2 otherwise.
  Raises:
    ValueError: there are not as many thresholds as factors, or one is below 0.
  Example:
    >>> first_NE, second_NE = jnp.array([[1., 0.], [.6, 0.], [.6, .2]]), jnp.array([[0., 1.],
    ...                                  [.5, 1.], [.5, .2]])
    >>> shaping.order(first_NE, second_NE, thresholds=(.2, 0.))
    Array([1. , 0. , 0.5], dtype=float32)
  """
  if len(thresholds) != first_NE.shape[-1] or min(thresholds) < 0:
    raise ValueError(f"thresholds={thresholds!r}: {first_NE.shape[-1]} numbers of at least 0, one "
                     "for each factor.")
  gap_NE = first_NE - second_NE
  differs_NE = jnp.stack(
      [jnp.abs(gap_NE[..., e]) > least for e, least in enumerate(thresholds)], axis=-1)
  decides_NE = differs_NE & (jnp.cumsum(differs_NE, axis=-1) == 1)
  return 0.5 + jnp.sum(jnp.where(decides_NE, jnp.sign(gap_NE), 0), axis=-1) / 2


@method
def hierarchical(scores_BE: Array, learn_PG: Array, *, thresholds: ranges.Numbers) -> Array:
  """HERON's comparisons by ranked factors: how many of the prompt's others a completion beats.

    r_i = mean over j != i of y_ij,   y as in `order`

  Source: Bukharin et al. 2023, arXiv:2309.02632, for y. Differs from the paper: a reward model is
  trained on y there; here the comparisons within the group are the reward themselves, without
  anything learned. A completion without another gets 1/2.

  Args:
    scores_BE: of the verifiers in verifier.scores, the most important first; anything where not
      valid.
    learn_PG: bool.
    thresholds: what each score must differ by to decide, one for each verifier.
  Returns:
    rewards_B in [0, 1], 0 where not valid.
  Raises:
    ValueError: as `order`.
  Example:
    >>> scores_BE = jnp.array([[1., 0.], [1., 1.], [0., 1.]])
    >>> shaping.hierarchical(scores_BE, jnp.ones((1, 3), bool), thresholds=(.5, .5))
    Array([0.5, 1. , 0. ], dtype=float32)
  """
  scores_PGE = scores_BE.reshape(*learn_PG.shape, -1)
  beats_PGG = order(scores_PGE[:, :, None], scores_PGE[:, None], thresholds=thresholds)
  others_PGG = learn_PG[:, None, :] & ~jnp.eye(learn_PG.shape[1], dtype=bool)[None]
  return jnp.where(jnp.any(others_PGG, axis=2),
                   masked.mean(beats_PGG, others_PGG, axis=2), 0.5).reshape(-1)


@method
def gated(scores_BE: Array, learn_PG: Array, *, index: ranges.Whole = 0,
          gate: ranges.Whole = 1) -> Array:
  """AlphaAlign: one score, where another one allows it, on the scale of the prompt's completions.

    r_i = g_i (s_i - min s) / (max s - min s)     g_i = 1[gate_i > 1/2]

  Minimum and maximum are those of the prompt's completions with g = 1. The gate may say, for
  example, that a harmless prompt is answered, and the score how helpful the answer is: refusals,
  and whatever is replied to a harmful prompt, get nothing.

  Source: the normalised reward for helpfulness of Zhang et al. 2025, arXiv:2507.14987. Differs from
  the paper: its scale is not known to us; scores that tie, or stand alone, count 1/2.

  Args:
    scores_BE: anything where not valid.
    learn_PG: bool.
    index, gate: of the verifiers in verifier.scores that give s and the gate, from 0.
  Returns:
    rewards_B in [0, 1], 0 where not valid.
  Raises:
    ValueError: there is no such verifier.
  Example:
    >>> scores_BE = jnp.array([[2., 1.], [7., 0.], [4., 1.]])
    >>> shaping.gated(scores_BE, jnp.ones((1, 3), bool))
    Array([0., 0., 1.], dtype=float32)
  """
  for key, i in dict(index=index, gate=gate).items():
    if i >= (n := scores_BE.shape[1]):
      raise ValueError(f"{key}={i}: below {n}, as verifier.scores names {n}; needed are a score "
                       "and what allows it.")
  score_PG, gate_PG = (scores_BE[:, i].reshape(learn_PG.shape) for i in (index, gate))
  open_PG = learn_PG & (gate_PG > 0.5)
  return masked.where_valid(_unit(score_PG, open_PG), open_PG).reshape(-1)


def _unit(scores_PG, mask_PG):
  """Scores of a prompt onto [0, 1] over its masked ones; 1/2 where they tie."""
  low_P1, high_P1 = _range(scores_PG, mask_PG)
  differs_P1 = high_P1 > low_P1
  return jnp.where(differs_P1, (scores_PG - low_P1)
                   / jnp.where(differs_P1, high_P1 - low_P1, 1), 0.5)


def _range(scores_PG, mask_PG):
  """Least and largest masked score of each prompt, [P, 1]; inf and -inf of none."""
  over = dict(axis=1, keepdims=True, where=mask_PG)
  return (jnp.min(scores_PG, initial=jnp.inf, **over), jnp.max(scores_PG, initial=-jnp.inf, **over))
