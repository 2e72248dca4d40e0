"""Losses of a reward model that gives one score per completion.

N counts the pairs or rows of a preference data set, not completions of a step. A
pair or row with valid_N False may hold anything, NaN too: it gives no loss and no
gradient. All losses return Weighted, a mean over what is valid.

  D = r_chosen - r_rejected

Training language models to follow instructions, Ouyang et al. 2022, arXiv:2203.02155.
"""
from typing import Annotated, Literal

import jax
import jax.numpy as jnp
from jax import Array

from rlx.core import axes
from rlx.core import masked
from rlx.core import ranges
from rlx.core import records
from rlx.core.method import method


@method
def bradley_terry(chosen_N: Array, rejected_N: Array, valid_N: Array, margin_N: Array | None = None,
                  *,
                  smoothing: Annotated[float, ranges.Range(0, 0.499999)] = 0.0) -> records.Weighted:
  """Bradley-Terry, with a margin and smoothed labels if wanted.

    l = (1 - smoothing) softplus(-(D - m)) + smoothing softplus(D - m)

  Source: Ouyang et al. 2022, arXiv:2203.02155, eq. 1; the margin is Llama 2,
  Touvron et al. 2023, arXiv:2307.09288, eq. 2, compared by Wang et al. 2024
  (HelpSteer2-Preference), arXiv:2410.01257; smoothing is Wang et al. 2024,
  arXiv:2401.06080. Differs from the papers: margin and smoothing can be combined.

  Args:
    chosen_N, rejected_N: scores of the better and the worse completion.
    valid_N: bool.
    margin_N: m, strength of the preference in units of the score; None is 0.
    smoothing: probability that a label is the wrong way round.
  Returns:
    Weighted over pairs.
  """
  gap_N = _gap(chosen_N, rejected_N, valid_N)
  if margin_N is not None:
    axes.dims(chosen_N=chosen_N, margin_N=margin_N)
    gap_N = gap_N - masked.where_valid(margin_N, valid_N)
  return _mean((1 - smoothing) * jax.nn.softplus(-gap_N)
               + smoothing * jax.nn.softplus(gap_N), valid_N)


@method
def scaled_bradley_terry(chosen_N: Array, rejected_N: Array, strength_N: Array,
                         valid_N: Array) -> records.Weighted:
  """Bradley-Terry, each pair as often as its preference is strong.

    l = m softplus(-D)

  Source: HelpSteer2-Preference, Wang et al. 2024, arXiv:2410.01257. Differs from
  the paper: nothing known; the mean is over pairs, not over their strengths.

  Args:
    strength_N: m, there 1, 2 or 3. Otherwise, and Returns: as `bradley_terry`.
  """
  gap_N = _gap(chosen_N, rejected_N, valid_N)
  return _mean(masked.where_valid(strength_N, valid_N) * jax.nn.softplus(-gap_N), valid_N)


@method
def focal(chosen_N: Array, rejected_N: Array, valid_N: Array, *,
          focal_exponent: ranges.NotNegative = 2.0,
          discount: Literal["all", "right"] = "all") -> records.Weighted:
  """Bradley-Terry with less weight on pairs that are already right.

    all:    l = (1 - P)^gamma softplus(-D)                      P = sigmoid(D)
    right:  l = (1 - 2 max(0, P - 1/2))^gamma softplus(-D)

  Source: "all" as compared in Skywork-Reward, Liu et al. 2024, arXiv:2410.18451;
  "right" is InternLM2, Cai et al. 2024, arXiv:2403.17297. Differs from the
  papers: nothing known. The weight is differentiated, too.

  Args:
    focal_exponent: gamma; 0 is Bradley-Terry.
    discount: all, or right (pairs ordered wrong keep their whole weight).
    Otherwise, and Returns: as `bradley_terry`.
  Raises:
    ValueError: unknown discount.
  """
  gap_N = _gap(chosen_N, rejected_N, valid_N)
  log_weight_N = -jax.nn.softplus(gap_N)  # log(1 - P): a power of 0 has no slope.
  if discount == "right": log_weight_N = jnp.minimum(log_weight_N + jnp.log(2.0), 0)
  return _mean(jnp.exp(focal_exponent * log_weight_N) * jax.nn.softplus(-gap_N), valid_N)


@method
def hinge(chosen_N: Array, rejected_N: Array, valid_N: Array, *,
          margin: ranges.Number = 1.0) -> records.Weighted:
  """Pairs that are right by less than a margin.

    l = max(0, margin - D)

  Source: as compared in Skywork-Reward, Liu et al. 2024, arXiv:2410.18451.
  Differs from the paper: its margin is not known; 1 is assumed.

  Args:
    margin: in units of the score. Otherwise, and Returns: as `bradley_terry`.
  """
  return _mean(jax.nn.relu(margin - _gap(chosen_N, rejected_N, valid_N)), valid_N)


@method
def bce(scores_N: Array, labels_N: Array, valid_N: Array, *,
        balanced: bool = False) -> records.Weighted:
  """Cross-entropy of a label, the score being its log-odds.

    l = w (softplus(s) - y s)
    w = 1, or with balanced n / (2 n_class),  class = (y > 1/2)

  Source: verifiers of Cobbe et al. 2021, arXiv:2110.14168 (labels of solutions);
  process labels as in Math-Shepherd, Wang et al. 2023, arXiv:2312.08935, and
  OmegaPRM, Luo et al. 2024, arXiv:2406.06592 (fractions); balanced as in
  LaSeR, Yang et al. 2025, arXiv:2510.14943, for SORM, Havrilla et al. 2024,
  arXiv:2402.10963. Differs from the papers: the classes are counted among the
  rows given.

  Args:
    scores_N: log-odds, differentiable.
    labels_N: in [0, 1].
    valid_N: bool.
    balanced: both classes have half of the weight; an absent one gives 0.
  Returns:
    Weighted over rows.
  """
  scores_N, labels_N = masked.where_valid(scores_N, valid_N), masked.where_valid(labels_N, valid_N)
  loss_N = jax.nn.softplus(scores_N) - labels_N * scores_N
  if balanced: loss_N = class_weights(labels_N, valid_N) * loss_N
  return _mean(loss_N, valid_N)


@method
def mse(scores_N: Array, labels_N: Array, valid_N: Array, *,
        balanced: bool = False) -> records.Weighted:
  """Regression of a rating or a value.

    l = w (s - y)^2,   w as in `bce`

  Source: ratings, HelpSteer2-Preference, Wang et al. 2024, arXiv:2410.01257;
  values of prefixes, Lee et al. 2024, arXiv:2407.12863; balanced, LaSeR, Yang et
  al. 2025, arXiv:2510.14943. Differs from the papers: as `bce`.

  Args, Returns: as `bce`; labels_N may be anything if not balanced.
  """
  scores_N, labels_N = masked.where_valid(scores_N, valid_N), masked.where_valid(labels_N, valid_N)
  loss_N = (scores_N - labels_N)**2
  if balanced: loss_N = class_weights(labels_N, valid_N) * loss_N
  return _mean(loss_N, valid_N)


@method
def class_weights(labels_N: Array, valid_N: Array) -> Array:
  """weight_N of rows whose two classes count alike, as in `bce`: n / (2 n_class).

  labels_N may be anything where valid_N is False.
  """
  is_high_N = labels_N > 0.5
  high, low = (jnp.sum(part_N & valid_N) for part_N in (is_high_N, ~is_high_N))
  return (high + low) / (2 * jnp.maximum(jnp.where(is_high_N, high, low), 1))


@method
def gauss_nll(means_N: Array, log_vars_N: Array, labels_N: Array,
              valid_N: Array) -> records.Weighted:
  """A head that says how sure it is: Gaussian negative log-likelihood.

    l = 1/2 (s + (y - mu)^2 exp(-s)),   s = log variance

  Source: Kendall and Gal 2017, arXiv:1703.04977, eq. 8; for reward heads Yan et
  al. 2024, arXiv:2409.15360. Differs from the papers: the second is only known to
  train heads with a mean and a variance; the form is the first's.

  Args:
    means_N, log_vars_N: differentiable.
    labels_N: targets in units of the mean. Otherwise, and Returns: as `bce`.
  """
  error_N = masked.where_valid(labels_N, valid_N) - masked.where_valid(means_N, valid_N)
  return _mean((log_vars_N + error_N**2 * jnp.exp(-log_vars_N)) / 2, valid_N)


@method
def yes_no(yes_N: Array, no_N: Array, labels_N: Array, valid_N: Array, *,
           balanced: bool = False) -> Array:
  """A language model's answer to "is this right?" as a verifier.

    l = w (softplus(s) - y s),   s = logit(Yes) - logit(No),   w as in `bce`

  Source: GenRM, Zhang et al. 2024, arXiv:2408.15240; its second term, the
  likelihood of right solutions, is `losses.sft` with a coefficient near 1/3.
  Differs from the paper: the probability is of Yes against No, there of Yes among
  all tokens.

  Args:
    yes_N, no_N: logits (or logps) of the two tokens, differentiable.
    Otherwise, and Returns: as `bce`.
  """
  return bce(yes_N - no_N, labels_N, valid_N, balanced=balanced)


@method
def yes_no_score(yes_NR: Array, no_NR: Array, valid_NR: Array) -> Array:
  """The score of the verifier that `yes_no` trains, a mean over its rationales.

    r = 1/R sum_j sigmoid(logit_j(Yes) - logit_j(No))    R valid rationales

  Source: GenRM, Zhang et al. 2024, arXiv:2408.15240. Differs from the paper: as
  `yes_no`.

  Args:
    yes_NR, no_NR: logits after each of R rationales (R = 1: asked directly).
    valid_NR: bool.
  Returns:
    scores_N in [0, 1], 0 without a valid rationale.
  """
  odds_NR = masked.where_valid(yes_NR, valid_NR) - masked.where_valid(no_NR, valid_NR)
  return masked.mean(jax.nn.sigmoid(odds_NR), valid_NR, axis=1)


def _gap(chosen_N, rejected_N, valid_N):
  axes.dims(chosen_N=chosen_N, rejected_N=rejected_N, valid_N=valid_N)
  return masked.where_valid(chosen_N - rejected_N, valid_N)


def _mean(loss_N, valid_N):
  return records.Weighted(masked.total(loss_N, valid_N),
                          jnp.sum(valid_N).astype(loss_N.dtype))
