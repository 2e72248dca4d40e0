"""Losses of a reward model that gives one score per completion.

N counts the pairs or rows of a preference data set, not completions of a step. A
pair or row with valid_N False may hold anything, NaN too: it gives no loss and no
gradient. All losses return Weighted, a mean over what is valid.

  D = r_chosen - r_rejected

Training language models to follow instructions, Ouyang et al. 2022, arXiv:2203.02155.
"""
import functools
from typing import Annotated

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt
import optax
from jax import Array

from rlx.core import masked, ranges, records
from rlx.core.method import method
from rlx.losses import aggregate


@method
def bradley_terry(chosen_N: Array, rejected_N: Array, valid_N: Array, margin_N: Array | None = None,
                  *,
                  smoothing: Annotated[float, ranges.Range(0, 0.499999)] = 0.0) -> records.Weighted:
  """Bradley-Terry, optionally with a margin and smoothed labels.

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
  Example:
    >>> reward_model.bradley_terry(jnp.array([2.]), jnp.array([1.]),
    ...                            jnp.array([True])).mean().round(2)
    Array(0.31, dtype=float32)
  """
  gap_N = chosen_N - rejected_N
  if margin_N is not None: gap_N = gap_N - margin_N
  return aggregate.mean((1 - smoothing) * jax.nn.softplus(-gap_N)
                        + smoothing * jax.nn.softplus(gap_N), valid_N)


@method
def scaled_bradley_terry(chosen_N: Array, rejected_N: Array, strength_N: Array,
                         valid_N: Array) -> records.Weighted:
  """Bradley-Terry, weighted by the strength of the preference.

    l = m softplus(-D)

  Source: HelpSteer2-Preference, Wang et al. 2024, arXiv:2410.01257. Differs from
  the paper: nothing known; the mean is over pairs, not over their strengths.

  Args:
    strength_N: m, there 1, 2 or 3. Otherwise, and Returns: as `bradley_terry`.
  Example:
    >>> reward_model.scaled_bradley_terry(jnp.array([2.]), jnp.array([1.]), jnp.array([3.]),
    ...                                   jnp.array([True])).mean().round(2)
    Array(0.94, dtype=float32)
  """
  return aggregate.mean(strength_N * jax.nn.softplus(rejected_N - chosen_N), valid_N)


@method
def soft_bradley_terry(chosen_N: Array, rejected_N: Array, strength_N: Array,
                       valid_N: Array) -> records.Weighted:
  """Bradley-Terry with soft labels: how probable a label is, by the strength of the preference.

    l = p softplus(-D) + (1 - p) softplus(D),   p = sigmoid(s)

  The least loss is at D = s; a pair with s < 0 is learned the other way round.

  Source: Secrets of RLHF, Wang et al. 2024, arXiv:2401.06080, with the strength that an ensemble
  gives, `evals.preferences.measure_strength` (from memory, unverified). Differs from the paper:
  all pairs have soft labels, there perhaps the weak ones alone.

  Args:
    strength_N: s, in units of the score. Otherwise, and Returns: as `bradley_terry`.
  Example:
    >>> loss = reward_model.soft_bradley_terry(jnp.array([2.]), jnp.array([2.]), jnp.array([3.]),
    ...                                        jnp.array([True])).mean()
    >>> round(float(loss), 2)
    0.69
  """
  gap_N, label_N = chosen_N - rejected_N, jax.nn.sigmoid(strength_N)
  return aggregate.mean(label_N * jax.nn.softplus(-gap_N) + (1 - label_N) * jax.nn.softplus(gap_N),
                        valid_N)


@method
def focal(chosen_N: Array, rejected_N: Array, valid_N: Array, *,
          gamma: ranges.NotNegative = 2.0) -> records.Weighted:
  """Bradley-Terry with less weight for pairs that are ranked right already.

    l = (1 - 2 max(0, p - 1/2))^gamma softplus(-D),   p = sigmoid(D)

  Source: InternLM2, Cai et al. 2024, arXiv:2403.17297, with gamma 2, as in the released code
  (InternLM/xtuner, xtuner/model/reward.py); Skywork-Reward, Liu et al. 2024, arXiv:2410.18451,
  compares it with Bradley-Terry. Differs from the code: no penalty keeps scores in a range.

  Args:
    chosen_N, rejected_N, valid_N: as `bradley_terry`.
    gamma: 0 is Bradley-Terry.
  Returns:
    Weighted over pairs.
  Example:
    >>> reward_model.focal(jnp.array([1.]), jnp.array([1.]), jnp.array([True])).mean().round(2)
    Array(0.69, dtype=float32)
  """
  gap_N = chosen_N - rejected_N
  weight_N = (1 - 2 * jax.nn.relu(jax.nn.sigmoid(gap_N) - 0.5))**gamma
  return aggregate.mean(weight_N * jax.nn.softplus(-gap_N), valid_N)


@method
def hinge(chosen_N: Array, rejected_N: Array, valid_N: Array, *,
          margin: ranges.Positive = 1.0) -> records.Weighted:
  """A margin between the scores of a pair, beyond which nothing is learned.

    l = max(0, m - D)

  Source: Skywork-Reward, Liu et al. 2024, arXiv:2410.18451, which compares it with Bradley-Terry.
  Differs from the paper: the margin is ours; that of the paper could not be confirmed.

  Args:
    chosen_N, rejected_N, valid_N: as `bradley_terry`.
    margin: m.
  Returns:
    Weighted over pairs.
  Example:
    >>> reward_model.hinge(jnp.array([2.]), jnp.array([1.5]), jnp.array([True])).mean()
    Array(0.5, dtype=float32)
  """
  return aggregate.mean(jax.nn.relu(margin - (chosen_N - rejected_N)), valid_N)


@method
def squared_margin(chosen_N: Array, rejected_N: Array, valid_N: Array,
                   margin_N: Array | None = None, *,
                   margin: ranges.Positive = 1.0) -> records.Weighted:
  """Regression of the difference of a pair's scores: its squared error from a margin.

    l = (D - m)^2

  Unlike `hinge` it also pulls pairs together that are farther apart than the margin.

  Source: Margin-MSE, Hofstaetter et al. 2020, arXiv:2010.02666, where m is the difference of a
  teacher's scores; Skywork-Reward, Liu et al. 2024, arXiv:2410.18451, compares such a loss with
  Bradley-Terry (from memory, unverified). Differs from the papers: the constant margin is ours.

  Args:
    chosen_N, rejected_N, valid_N: as `bradley_terry`.
    margin_N: m of each pair, in units of the score; None is `margin`.
    margin: m where margin_N is None.
  Returns:
    Weighted over pairs.
  Example:
    >>> reward_model.squared_margin(jnp.array([2.]), jnp.array([1.5]), jnp.array([True])).mean()
    Array(0.25, dtype=float32)
  """
  margin_N = jnp.full_like(chosen_N, margin) if margin_N is None else margin_N
  return aggregate.mean((chosen_N - rejected_N - margin_N)**2, valid_N)


@method
def bce(scores_N: Array, labels_N: Array, valid_N: Array, weight_N: Array | None = None, *,
        balanced: bool = False) -> records.Weighted:
  """Cross-entropy of a label, the score being its log-odds.

    l = w (softplus(s) - y s)
    w = weight, or 1, or with balanced n / (2 n_class),  class = (y > 1/2)

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
    weight_N: such as the `class_weights` of more rows than those given; None: as balanced says.
    balanced: both classes have half of the weight; an absent one gives 0.
  Returns:
    Weighted over rows.
  Example:
    >>> reward_model.bce(jnp.array([0.]), jnp.array([1.]), jnp.array([True])).mean().round(2)
    Array(0.69, dtype=float32)
  """
  loss_N = jax.nn.softplus(scores_N) - labels_N * scores_N
  if balanced and weight_N is None: weight_N = class_weights(labels_N, valid_N)
  if weight_N is not None: loss_N = weight_N * loss_N
  return aggregate.mean(loss_N, valid_N)


@method
def mse(scores_N: Array, labels_N: Array, valid_N: Array, *,
        balanced: bool = False) -> records.Weighted:
  """Regression of a rating or a value.

    l = w (s - y)^2,   w as in `bce`

  Source: ratings, HelpSteer2-Preference, Wang et al. 2024, arXiv:2410.01257;
  values of prefixes, Lee et al. 2024, arXiv:2407.12863; balanced, LaSeR, Yang et
  al. 2025, arXiv:2510.14943. Differs from the papers: as `bce`.

  Args, Returns: as `bce`; labels_N may be anything if not balanced.
  Example:
    >>> reward_model.mse(jnp.array([3., 0.]), jnp.array([1., 0.]), jnp.ones(2, bool)).mean()
    Array(2., dtype=float32)
  """
  loss_N = (scores_N - labels_N)**2
  if balanced: loss_N = class_weights(labels_N, valid_N) * loss_N
  return aggregate.mean(loss_N, valid_N)


@method
def class_weights(labels_N: Array, valid_N: Array) -> Array:
  """Weights with which both classes have half of the total, as in `bce`: n / (2 n_class).

  labels_N may be anything where valid_N is False.

  Example:
    >>> reward_model.class_weights(jnp.array([1., 0., 0., 0.]), jnp.ones(4, bool)).round(1)
    Array([2. , 0.7, 0.7, 0.7], dtype=float32)
  """
  is_high_N = labels_N > 0.5
  high, low = (jnp.sum(part_N & valid_N) for part_N in (is_high_N, ~is_high_N))
  return (high + low) / (2 * jnp.maximum(jnp.where(is_high_N, high, low), 1))


@method
def yes_no(yes_N: Array, no_N: Array, labels_N: Array, valid_N: Array, *,
           balanced: bool = False) -> records.Weighted:
  """A language model's answer to "is this right?" as a verifier.

    l = w (softplus(s) - y s),   s = logit(Yes) - logit(No),   w as in `bce`

  Source: GenRM, Zhang et al. 2024, arXiv:2408.15240; its second term, the
  likelihood of right solutions, is `losses.sft` with a coefficient near 1/3.
  Differs from the paper: the probability is of Yes against No, there of Yes among
  all tokens.

  Args:
    yes_N, no_N: logits (or logps) of the two tokens, differentiable.
    Otherwise, and Returns: as `bce`.
  Example:
    >>> reward_model.yes_no(jnp.array([1.]), jnp.array([1.]), jnp.array([1.]),
    ...                     jnp.array([True])).mean().round(2)
    Array(0.69, dtype=float32)
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
  Example:
    >>> reward_model.yes_no_score(jnp.array([[1., 0.]]), jnp.array([[1., 0.]]),
    ...                           jnp.ones((1, 2), bool))
    Array([0.5], dtype=float32)
  """
  return masked.mean(jax.nn.sigmoid(yes_NR - no_NR), valid_NR, axis=1)


@method
def plackett_luce(scores_PG: Array, labels_PG: Array, valid_PG: Array) -> records.Weighted:
  """The likelihood of the order of a list, of which the better are drawn first.

    l = sum_i log sum_{j = i or y_j < y_i} exp(s_j - s_i),  over i with some y_j < y_i

  Of two completions it is Bradley-Terry.

  Source: Plackett 1975 (Applied Statistics 24) and ListMLE, Xia et al. 2008; for reward models Zhu
  et al. 2023, arXiv:2301.11270, eq. 5 (from memory, unverified). Differs from the sources: equal
  labels have no order among them, so that each is compared with those below it alone.

  Args:
    scores_PG: of the completions of a prompt, differentiable.
    labels_PG: ratings or verdicts, of which only the order matters.
    valid_PG: bool.
  Returns:
    Weighted over lists with two different labels.
  Example:
    >>> reward_model.plackett_luce(jnp.array([[2., 1., 0.]]), jnp.array([[1., .5, 0.]]),
    ...                            jnp.ones((1, 3), bool)).mean()
    Array(0.720..., dtype=float32)
  """
  below_PGG = (valid_PG[:, None, :] & valid_PG[:, :, None]
               & (labels_PG[:, None, :] < labels_PG[:, :, None]))
  among_PGG = below_PGG | jnp.eye(valid_PG.shape[1], dtype=bool)[None]
  gap_PGG = jnp.where(among_PGG, scores_PG[:, None, :] - scores_PG[:, :, None], -jnp.inf)
  has_below_PG = jnp.any(below_PGG, axis=2)
  loss_PG = jax.nn.logsumexp(gap_PGG, axis=2)
  return aggregate.mean(masked.total(loss_PG, has_below_PG, axis=1), jnp.any(has_below_PG, axis=1))


@method
def gaussian(scores_N: Array, spreads_N: Array, labels_N: Array,
             valid_N: Array) -> records.Weighted:
  """Regression of a rating by a mean and a spread: its negative log-likelihood.

    l = (s - y)^2 / (2 sigma^2) + log sigma

  Source: heads with a spread of their own, Reward-Robust RLHF, Yan et al. 2024, arXiv:2409.15360;
  the loss is that of Nix and Weigend 1994. Differs from the sources: the constant is left out.

  Args:
    spreads_N: sigma > 0, differentiable. Otherwise, and Returns: as `mse`.
  Example:
    >>> reward_model.gaussian(jnp.array([3.]), jnp.array([1.]), jnp.array([1.]),
    ...                       jnp.array([True])).mean()
    Array(2., dtype=float32)
  """
  return aggregate.mean(((scores_N - labels_N) / spreads_N)**2 / 2 + jnp.log(spreads_N), valid_N)


@method
def uncertain_bradley_terry(chosen_N: Array, rejected_N: Array, chosen_spread_N: Array,
                            rejected_spread_N: Array, valid_N: Array) -> records.Weighted:
  """Bradley-Terry of scores that are normal variables with a mean and a spread.

    l = softplus(-D / sqrt(1 + pi v / 8)),   v = sigma_chosen^2 + sigma_rejected^2

  approximately -log E[sigmoid(z)] of z ~ N(D, v). A pair that is ranked wrong costs less if a
  spread is large, one that is ranked right costs more.

  Source: PURM, Sun et al. 2025, arXiv:2503.22480 (from memory, unverified); the approximation is
  that of MacKay 1992. Differs from the paper: there the expectation is a mean of samples.

  Args:
    chosen_spread_N, rejected_spread_N: sigma > 0, differentiable.
    Otherwise, and Returns: as `bradley_terry`.
  Example:
    >>> reward_model.uncertain_bradley_terry(jnp.array([2.]), jnp.array([0.]), jnp.array([2.]),
    ...                                      jnp.array([2.]), jnp.array([True])).mean().round(2)
    Array(0.32, dtype=float32)
  """
  variance_N = chosen_spread_N**2 + rejected_spread_N**2
  gap_N = (chosen_N - rejected_N) / jnp.sqrt(1 + jnp.pi / 8 * variance_N)
  return aggregate.mean(jax.nn.softplus(-gap_N), valid_N)


@method
def contrast_pairs(chosen_ND: Array, rejected_ND: Array, key: Array, valid_N: Array, *,
                   temperature: ranges.Positive = 0.05,
                   dropout: Annotated[float, ranges.Range(0, 0.99)] = 0.1) -> records.Weighted:
  """Contrastive learning of the differences of pairs in the features of the reward model.

    l_n = -log exp(cos(u_n, v_n) / temperature) / sum_m exp(cos(u_n, v_m) / temperature)

  with u and v = h drawn twice with dropout, h = x_chosen - x_rejected, and m over all valid pairs.

  Source: SimCSE, Gao et al. 2021, arXiv:2104.08821, on the differences of pairs as in Secrets of
  RLHF, Wang et al. 2024, arXiv:2401.06080 (from memory, unverified). Differs from the papers: the
  dropout is that of h alone, there of all layers; with microbatches m is over the pairs of one.

  Args:
    chosen_ND, rejected_ND: features of the better and the worse completion, differentiable.
    key: of jax.random, of both dropouts.
    valid_N: bool.
    temperature: that of SimCSE.
    dropout: probability that a number of h is 0 in u, and likewise in v.
  Returns:
    Weighted over pairs.
  Example:
    >>> far_ND = jnp.eye(2)
    >>> reward_model.contrast_pairs(far_ND, 0 * far_ND, jax.random.key(0), jnp.ones(2, bool),
    ...                             temperature=1., dropout=0.).mean().round(2)
    Array(0.31, dtype=float32)
  """
  gap_ND = chosen_ND - rejected_ND
  def draw(key: Array) -> Array:
    kept_ND = jax.random.bernoulli(key, 1 - dropout, gap_ND.shape)
    x_ND = jnp.where(kept_ND, gap_ND, 0)
    return x_ND / jnp.maximum(masked.root(jnp.sum(x_ND**2, axis=1, keepdims=True)), 1e-6)
  cosine_NN = jnp.einsum("ND,MD->NM", *map(draw, jax.random.split(key)))
  is_read_NN = valid_N[None] | jnp.eye(len(valid_N), dtype=bool)
  z_NN = jnp.where(is_read_NN, cosine_NN / temperature, -jnp.inf)
  return aggregate.mean(jax.nn.logsumexp(z_NN, axis=1) - jnp.diagonal(z_NN), valid_N)


@method
def mixture(chosen_NK: Array, rejected_NK: Array, routing_NK: Array,
            valid_N: Array) -> records.Weighted:
  """Bradley-Terry of one of K heads, which a router of the prompt draws.

    l = -log sum_k pi_k(x) sigmoid(D_k)

  Source: MiCRo, Shen et al. 2025, arXiv:2505.24846 (from memory, unverified). Differs from the
  paper: its second stage, which adapts the router to a context, is `adapt_routing`.

  Args:
    chosen_NK, rejected_NK: scores of the heads.
    routing_NK: pi, differentiable; sums to 1 over heads.
    valid_N: bool.
  Returns:
    Weighted over pairs.
  Example:
    >>> reward_model.mixture(jnp.array([[2., 0.]]), jnp.zeros((1, 2)), jnp.full((1, 2), .5),
    ...                      jnp.array([True])).mean().round(2)
    Array(0.37, dtype=float32)
  """
  logps_NK = jnp.log(routing_NK) + jax.nn.log_sigmoid(chosen_NK - rejected_NK)
  return aggregate.mean(-jax.nn.logsumexp(logps_NK, axis=1), valid_N)


@method
def energy_nce(positive_N: Array, negative_NM: Array, log_noise_N: Array, log_noise_NM: Array,
               valid_N: Array, *, decay: ranges.NotNegative = 0.05) -> records.Weighted:
  """Noise-contrastive estimation of an energy of scores, `models.energy`.

    l = -g_0 + log sum_{m = 0}^M exp g_m + decay mean_m f_m^2,   g_m = f_m - log q(r_m)

  f_0 is the energy of a score close to the reward model's, f_1, ..., f_M those of draws from q.

  Source: EBRM, Lochab and Zhang 2025, arXiv:2504.13134, as in its released code
  (AnamikaLochab/EBRM). Differs from the code: nothing known.

  Args:
    positive_N, negative_NM: energies, differentiable.
    log_noise_N, log_noise_NM: log q of the scores, as `models.energy.draw_noise` gives them.
    valid_N: bool; the paper learns from pairs alone that the reward model ranks right.
    decay: of the energies.
  Returns:
    Weighted over scores.
  Example:
    >>> zero_N, zero_NM = jnp.zeros(1), jnp.zeros((1, 3))
    >>> reward_model.energy_nce(zero_N, zero_NM, zero_N, zero_NM,
    ...                         jnp.array([True])).mean().round(2)
    Array(1.39, dtype=float32)
  """
  f_NM = jnp.concatenate([positive_N[:, None], negative_NM], axis=1)
  g_NM = f_NM - jnp.concatenate([log_noise_N[:, None], log_noise_NM], axis=1)
  return aggregate.mean(jax.nn.logsumexp(g_NM, axis=1) - g_NM[:, 0]
                        + decay * jnp.mean(f_NM**2, axis=1), valid_N)


@method
def latent_user(gap_NS: Array, mean_ND: Array, log_var_ND: Array, count_N: Array, valid_N: Array,
                *, coef: ranges.NotNegative = 1.0) -> records.Weighted:
  """Bradley-Terry of a user's taste z, which is not known but inferred from their pairs.

    l = 1/S sum_s softplus(-D_s) + coef / n KL(q || N(0, 1)),   q = N(mu, sigma^2)
    KL = 1/2 sum_d (mu_d^2 + sigma_d^2 - 1 - log sigma_d^2)

  with D_s the gap of a pair's scores under the s-th draw of z from q; summed over the n pairs of a
  user it is their negative ELBO.

  Source: VPL, Poddar et al. 2024, arXiv:2408.10075 (from memory, unverified). Differs from the
  paper: the encoder of q and the head that reads z are the caller's.

  Args:
    gap_NS: D, differentiable, also through the draws.
    mean_ND, log_var_ND: mu and log sigma^2 of the user whose pair it is.
    count_N: n, how many pairs that user has.
    valid_N: bool.
    coef: of the KL; 1 is the ELBO.
  Returns:
    Weighted over pairs.
  Example:
    >>> zero_ND, one_N = jnp.zeros((1, 2)), jnp.ones(1)
    >>> reward_model.latent_user(jnp.zeros((1, 4)), zero_ND, zero_ND, one_N,
    ...                          jnp.array([True])).mean().round(2)
    Array(0.69, dtype=float32)
  """
  kl_N = jnp.sum(mean_ND**2 + jnp.exp(log_var_ND) - 1 - log_var_ND, axis=1) / 2
  return aggregate.mean(jnp.mean(jax.nn.softplus(-gap_NS), axis=1) + coef * kl_N / count_N, valid_N)


def adapt_routing(routing_K: Array, chosen_NK: Array, rejected_NK: Array, valid_N: Array, *,
                  rate: ranges.Positive = 1.0) -> Array:
  """The weights of a mixture's heads for one user, from few pairs: exponential weights.

    pi'_k = pi_k exp(-rate sum_n softplus(-D_nk)) / sum over k of the same

  With rate 1 they are the posterior of heads that label pairs as Bradley-Terry says.

  Source: MiCRo, Shen et al. 2025, arXiv:2505.24846 (from memory, unverified), which updates its
  router as Hedge does, Freund and Schapire 1997. Differs from the paper: the pairs are given at
  once, which is the same as one after the other.

  Args:
    routing_K: pi of the router, sums to 1.
    chosen_NK, rejected_NK: scores of the heads for the user's pairs.
    valid_N: bool.
    rate: how much a pair counts.
  Returns:
    routing_K, sums to 1.
  Example:
    >>> routing_K = reward_model.adapt_routing(
    ...     jnp.array([.5, .5]), jnp.array([[2., 0.]]), jnp.zeros((1, 2)), jnp.array([True]))
    >>> [round(float(x), 2) for x in routing_K]
    [0.64, 0.36]
  """
  gap_NK = masked.where_valid(chosen_NK - rejected_NK, valid_N[:, None])
  losses_K = masked.total(jax.nn.softplus(-gap_NK), valid_N[:, None], axis=0)
  return jax.nn.softmax(jnp.log(routing_K) - rate * losses_K)


def fit_linear(chosen_NF: npt.ArrayLike, rejected_NF: npt.ArrayLike, *,
               decay: ranges.Positive = 0.1) -> np.ndarray:
  """Weights of named features, from few pairs, by Bradley-Terry with a penalty of their size.

    min_w sum_n softplus(-w . (x_chosen - x_rejected)) + decay / 2 |w|^2

  Newton's method, on the host: the minimum is unique, as decay > 0. The score is w . x.

  Source: Nath et al. 2024, arXiv:2402.15473, which scores the features that a domain names (seven
  of a summary) with a model and learns from pairs how they make a preference. Differs from the
  paper: the score is linear in the features, where the paper has a network; the penalty is ours.

  Args:
    chosen_NF, rejected_NF: features of the better and of the worse completion of N pairs, such as
      the scores of verifier.scores.
    decay: above 0; with less, pairs that are separable have larger weights.
  Returns:
    float64 [F].
  Raises:
    ValueError: the arrays differ in shape, are empty or hold NaN or inf, or decay is not above 0.
  Example:
    >>> weight_F = reward_model.fit_linear(chosen_NF=((1., 0.), (1., 1.)),
    ...                                    rejected_NF=((0., 0.), (0., 1.)))
    >>> [round(float(w), 1) for w in weight_F]
    [2.1, 0.0]
  """
  chosen_NF, rejected_NF = _check_features(chosen_NF, rejected_NF, decay)
  gap_NF = chosen_NF - rejected_NF
  weight_F = np.zeros(gap_NF.shape[1])
  loss = lambda w_F: (np.logaddexp(0, -gap_NF @ w_F).sum() + decay / 2 * w_F @ w_F)
  for _ in range(100):
    wrong_N = 1 / (1 + np.exp(np.clip(gap_NF @ weight_F, -700, 700)))
    slope_F = decay * weight_F - gap_NF.T @ wrong_N
    curve_FF = (gap_NF.T * (wrong_N * (1 - wrong_N))) @ gap_NF + decay * np.eye(len(weight_F))
    step_F = np.linalg.solve(curve_FF, slope_F)
    if np.abs(step_F).max() < 1e-10 * max(1, np.abs(weight_F).max()): break
    while loss(weight_F - step_F) > loss(weight_F): step_F /= 2
    weight_F = weight_F - step_F
  return weight_F


def fit_network(chosen_NF: npt.ArrayLike, rejected_NF: npt.ArrayLike, *, hidden: ranges.Count = 8,
                decay: ranges.Positive = 0.1, steps: ranges.Count = 2000,
                rate: ranges.Positive = 0.05, seed: ranges.Whole = 0) -> Array:
  """A small network of named features, from few pairs, by Bradley-Terry with a penalty of its size.

    min_theta sum_n softplus(-(s(x_chosen) - s(x_rejected))) + decay / 2 |theta|^2
    s(x) = sum_h v_h tanh(w_h . x + b_h)

  Adam from random weights, on all pairs in each step, with a rate that falls to 0. Unlike that of
  `fit_linear` the score may say that a feature is good only up to a value, or only with another
  one. A constant in s would cancel. Features should be of the order of 1.

  Source: Nath et al. 2024, arXiv:2402.15473 (see `fit_linear`), whose score is a network of its
  seven features; its layers could not be confirmed. Differs from the paper: one hidden layer, and
  the penalty, are ours.

  Args:
    chosen_NF, rejected_NF, decay: as `fit_linear`.
    hidden: H, the number of hidden units.
    seed: of the initial weights; equal arguments give equal results on a machine.
  Returns:
    float32 [H, F + 2]: of each unit w_h, b_h and v_h, as `rewards.outcome.network` reads them.
  Raises:
    ValueError: as `fit_linear`.
  Example:
    >>> network_HF = reward_model.fit_network(chosen_NF=((1., 0.), (1., 1.)),
    ...                                       rejected_NF=((0., 0.), (0., 1.)), hidden=2)
    >>> network_HF.shape
    (2, 4)
  """
  pairs_2NF = jnp.asarray(np.stack(_check_features(chosen_NF, rejected_NF, decay)), jnp.float32)
  draw_HF = jax.random.normal(jax.random.key(seed), (hidden, pairs_2NF.shape[2] + 2))
  return _descend(draw_HF / hidden**0.5, pairs_2NF, decay, rate, steps)


@functools.partial(jax.jit, static_argnames=("steps",))
def _descend(network_HF: Array, pairs_2NF: Array, decay: float, rate: float,
             steps: int) -> Array:
  """The network of `fit_network` after all steps."""
  optimizer = optax.adam(optax.cosine_decay_schedule(rate, steps))
  def objective(network_HF: Array) -> Array:
    hidden_2NH = jnp.tanh(pairs_2NF @ network_HF[:, :-2].T + network_HF[None, None, :, -2])
    chosen_N, rejected_N = hidden_2NH @ network_HF[:, -1]
    return jnp.sum(jax.nn.softplus(rejected_N - chosen_N)) + decay / 2 * jnp.sum(network_HF**2)
  def step(_: int, at: tuple) -> tuple:
    network_HF, moments = at
    change_HF, moments = optimizer.update(jax.grad(objective)(network_HF), moments)
    return network_HF + change_HF, moments
  return jax.lax.fori_loop(0, steps, step, (network_HF, optimizer.init(network_HF)))[0]


def _check_features(chosen_NF: npt.ArrayLike, rejected_NF: npt.ArrayLike,
                    decay: float) -> tuple[np.ndarray, np.ndarray]:
  """The features of pairs as float64 arrays. Raises as `fit_linear`."""
  chosen_NF, rejected_NF = np.asarray(chosen_NF, float), np.asarray(rejected_NF, float)
  if chosen_NF.shape != rejected_NF.shape or chosen_NF.ndim != 2 or not chosen_NF.size:
    raise ValueError(f"chosen_NF {chosen_NF.shape}, rejected_NF {rejected_NF.shape}: both must be "
                     "[pairs, features], with at least one of each.")
  if not np.isfinite(chosen_NF - rejected_NF).all():
    raise ValueError("chosen_NF or rejected_NF holds NaN or inf: leave out pairs whose features "
                     "are not known.")
  if not decay > 0: raise ValueError(f"decay={decay!r}: must be above 0, such as 0.1.")
  return chosen_NF, rejected_NF
