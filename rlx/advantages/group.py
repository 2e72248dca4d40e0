"""Advantages from the G completions of a prompt.

A completion that is not valid (unknown verdict, empty) is part of no baseline
and gets 0. A prompt with fewer than two valid completions gets 0, and so does,
exactly, one whose completions tie.
"""
from typing import Literal

import jax
import jax.numpy as jnp
from jax import Array

from rlx.core import masked, prefixes, ranges
from rlx.core.method import method


@method(centres=True)
def rloo(rewards_PG: Array, learn_PG: Array) -> Array:
  """REINFORCE leave-one-out: each completion against the mean of the others.

    A_i = r_i - 1/(n-1) sum_{j != i} r_j     n = valid completions of a prompt

  Source: Ahmadian et al. 2024, arXiv:2402.14740. Differs from the
  paper: completions with valid=False (verifier failed, dropped as truncated)
  are part of no baseline and get advantage 0, as do groups with n < 2.

  Args:
    rewards_PG: outcome rewards; anything, NaN too, where learn_PG is False.
    learn_PG: bool.
  Returns:
    advantages_PG in reward units; sum to 0 over a prompt's valid completions.
  Example:
    >>> group.rloo(jnp.array([[1., 0., 0.]]), jnp.ones((1, 3), bool))
    Array([[ 1. , -0.5, -0.5]], dtype=float32)
  """
  rivals_P1 = jnp.sum(learn_PG, axis=1, keepdims=True) - 1
  return _against(rewards_PG, learn_PG) / jnp.maximum(rivals_P1, 1)


@method(centres=True)
def mean_baseline(rewards_PG: Array, learn_PG: Array) -> Array:
  """Dr. GRPO: each completion against the mean of its group, itself included.

    A_i = r_i - 1/n sum_j r_j

  Source: Liu et al. 2025, arXiv:2503.20783. Differs from the paper: n
  counts valid completions only.

  Args, Returns: as `rloo`.
  Example:
    >>> group.mean_baseline(jnp.array([[1., 0., 0., 0.]]), jnp.ones((1, 4), bool))
    Array([[ 0.75, -0.25, -0.25, -0.25]], dtype=float32)
  """
  n_P1 = jnp.sum(learn_PG, axis=1, keepdims=True)
  return _against(rewards_PG, learn_PG) / jnp.maximum(n_P1, 1)


@method(centres=True, scales=True)
def grpo(rewards_PG: Array, learn_PG: Array, *, eps: ranges.Positive = 1e-6) -> Array:
  """GRPO: the group's z-scores.

    A_i = (r_i - mean_j r_j) / (std_j r_j + eps)

  Source: Shao et al. 2024, arXiv:2402.03300, section 4.1.2. Differs from the
  paper: it gives neither the convention of std nor eps; std is unbiased and eps
  1e-6 as in verl (TRL has 1e-4). Statistics over valid completions only.

  Args, Returns: as `rloo`; eps in reward units.
  Example:
    >>> group.grpo(jnp.array([[1., 0.]]), jnp.ones((1, 2), bool)).round(2)
    Array([[ 0.71, -0.71]], dtype=float32)
  """
  return mean_baseline(rewards_PG, learn_PG) / (_std(rewards_PG, learn_PG) + eps)


@method(centres=True)
def opo(rewards_PG: Array, learn_PG: Array, lengths_PG: Array) -> Array:
  """OPO: the baseline of least variance, a length-weighted mean.

    A_i = r_i - sum_j L_j r_j / sum_j L_j

  Source: Hao et al. 2025, arXiv:2505.23585. Differs from the paper:
  the sums are over valid completions only.

  Args:
    lengths_PG: tokens of each completion; the rest as `rloo`.
  Example:
    >>> group.opo(jnp.array([[1., 0.]]), jnp.ones((1, 2), bool), jnp.array([[1, 3]]))
    Array([[ 0.75, -0.25]], dtype=float32)
  """
  total_P1 = jnp.sum(lengths_PG, axis=1, keepdims=True, where=learn_PG)
  return (_against(rewards_PG, learn_PG, lengths_PG)
          / jnp.maximum(total_P1, 1).astype(rewards_PG.dtype))


@method(centres=True)
def gpg(rewards_PG: Array, learn_PG: Array) -> Array:
  """GPG: centred rewards, divided by the share of the batch with a non-zero reward.

    A_i = N / |{j : r_j != 0}| * (r_i - mean of its group)

  Source: Chu et al. 2025, arXiv:2504.02546, in the form of verl: the
  count is of non-zero rewards of the batch, the paper's of groups with
  signal. Differs from the paper in that, and in counting valid ones only.

  Args, Returns: as `rloo`.
  Example:
    >>> group.gpg(jnp.array([[1., 0.]]), jnp.ones((1, 2), bool))
    Array([[ 1., -1.]], dtype=float32)
  """
  count = jnp.sum(rewards_PG != 0)
  scale = jnp.sum(learn_PG) / jnp.maximum(count, 1).astype(rewards_PG.dtype)
  return scale * mean_baseline(rewards_PG, learn_PG)


@method(centres=True)
def best_minus_second(rewards_PG: Array, learn_PG: Array, *, eps: ranges.Positive = 1e-6,
                      use_std: bool = True) -> Array:
  """The gradient of the group's best reward: only the best completion learns.

    A_best = (r_best - r_second) / (std_j r_j + eps), 0 for the others

  This is not the advantage of Pass@k Training, which is `pass_at_k_training`.

  Source: Tang et al. 2025, arXiv:2503.19595, in the form of verl's grpo_passk.
  Differs from the paper: the division by std. A tie for the best gives 0.

  Args:
    eps: as `grpo`.
    use_std: False leaves the gap in reward units.
    Otherwise, and Returns: as `grpo`.
  Example:
    >>> group.best_minus_second(jnp.array([[1., .5, 0.]]), jnp.ones((1, 3), bool), use_std=False)
    Array([[0.5, 0. , 0. ]], dtype=float32)
  """
  low_PG = jnp.where(learn_PG, rewards_PG, -jnp.inf)
  best_P1 = jnp.max(low_PG, axis=1, keepdims=True)
  is_best_PG = learn_PG & (low_PG == best_P1)
  others_PG = jnp.where(is_best_PG, -jnp.inf, low_PG)
  second_P1 = jnp.max(others_PG, axis=1, keepdims=True)
  # One best and one rival, or no signal. Guarded: inf - inf has a NaN gradient.
  has_P1 = (jnp.sum(is_best_PG, axis=1, keepdims=True) == 1) & (second_P1 > -jnp.inf)
  gap_P1 = jnp.where(has_P1, best_P1, 0) - jnp.where(has_P1, second_P1, 0)
  if use_std: gap_P1 = gap_P1 / (_std(rewards_PG, learn_PG) + eps)
  return masked.where_valid(gap_P1, is_best_PG & has_P1)


@method(centres=True)
def pass_at_k_training(rewards_PG: Array, learn_PG: Array, *, k: ranges.Count = 4) -> Array:
  """Pass@k Training: GRPO on the best of k, averaged over all k of the n completions.

    A = (1 - rho) / sigma                                   reward > 0
    A = (1 - rho - C(n-c-1, k-1) / C(n-1, k-1)) / sigma     otherwise
    rho = 1 - C(n-c, k) / C(n, k)    sigma = sqrt(rho (1 - rho))

  with c completions of reward > 0 among the n valid ones of a prompt. A prompt with
  c > n - k, which solves any k draws, gives 0; k = 1 is GRPO with the biased std.
  `best_minus_second` is another method, in which the best completion alone learns.

  Source: Chen et al. 2025, arXiv:2508.10751, analytical derivation. Differs from
  the paper: n counts valid completions only.

  Args:
    k: draws of which one has to succeed, less than G.
    Otherwise, and Returns: as `rloo`; without unit.
  Raises:
    ValueError: k is not below G.
  Example:
    >>> group.pass_at_k_training(jnp.array([[1., 0., 0., 0.]]), jnp.ones((1, 4), bool),
    ...                          k=2).round(1)
    Array([[ 1. , -0.3, -0.3, -0.3]], dtype=float32)
  """
  if k >= (group := learn_PG.shape[1]): raise ValueError(f"k={k!r}: less than the group's {group}.")
  good_PG = learn_PG & (rewards_PG > 0)
  n_P1 = jnp.sum(learn_PG, axis=1, keepdims=True)
  c_P1 = jnp.sum(good_PG, axis=1, keepdims=True)
  def misses(n_P1, k):
    """C(n-c, k) / C(n, k): the share of k draws without a success."""
    left_Pk = n_P1 - jnp.arange(k)[None, :]
    share_Pk = jnp.maximum(left_Pk - c_P1, 0) / jnp.maximum(left_Pk, 1)
    return jnp.prod(share_Pk, axis=1, keepdims=True).astype(rewards_PG.dtype)
  miss_P1 = misses(n_P1, k)
  sigma_P1 = masked.root(miss_P1 * (1 - miss_P1))
  bad_P1 = miss_P1 - misses(n_P1 - 1, k - 1)
  return masked.where_valid(jnp.where(good_PG, miss_P1, bad_P1)
                            / jnp.where(sigma_P1 > 0, sigma_P1, 1), learn_PG & (sigma_P1 > 0))


@method(centres=True, scales=True)
def variance_weighted(rewards_PG: Array, scores_PG: Array, learn_PG: Array, *,
                      low: ranges.NotNegative = 0.4, high: ranges.NotNegative = 3.0,
                      k: ranges.Number = 6.0, eps: ranges.Positive = 1e-6) -> Array:
  """HERO: GRPO, with more weight on prompts whose completions score differently.

    A_i = w (r_i - mean_j r_j) / (std_j r_j + eps)
    w = low + (high - low) sigmoid(k (s - mean of s over the batch)),  s = std_j score_j

  The weight is put on the advantage: on the reward, the division by std would
  take it out again.

  Source: Tao et al. 2025, arXiv:2510.07242, with rewards.shaping.stratified.
  Differs from the paper: it compares s with a running mean. The defaults are those
  of a re-implementation of its table 6.

  Args:
    scores_PG: of a second verifier; anything where learn_PG is False.
    low, high: least and largest weight.
    k: steepness, per unit of the scores.
    Otherwise, and Returns: as `grpo`.
  Example:
    >>> rewards_PG, scores_PG = jnp.array([[1., 0.]]), jnp.array([[1., 0.]])
    >>> group.variance_weighted(rewards_PG, scores_PG, jnp.ones((1, 2), bool), low=1.,
    ...                         high=3.).round(2)
    Array([[ 1.41, -1.41]], dtype=float32)
  """
  spread_P1 = _std(scores_PG, learn_PG)
  has_P1 = jnp.sum(learn_PG, axis=1, keepdims=True) > 1
  above_P1 = spread_P1 - masked.mean(spread_P1, has_P1)
  weight_P1 = low + (high - low) / (1 + jnp.exp(-k * above_P1))
  return weight_P1 * grpo(rewards_PG, learn_PG, eps=eps)


@method(centres=True)
def against_sampled(rewards_PG: Array, learn_PG: Array, demo_PG: Array | None = None, *,
                    demonstrations: Literal["compared", "cloned"] = "compared") -> Array:
  """Rewards, also of demonstrations, minus the mean of the sampled completions.

    A_i = r_i - 1/n sum_{j sampled} r_j     n = valid sampled completions of a prompt

  A demonstration that the policy always matches gets 0, and demonstrations are part of
  no baseline. Without any this is `mean_baseline`.

  Source: RL-PLUS, Dong et al. 2025, arXiv:2508.00222, and its code (no division by
  the spread). Differs from the paper: nothing known.

  Args:
    rewards_PG, learn_PG: as `rloo`.
    demo_PG: bool, None: all are sampled.
    demonstrations: compared, or cloned: their advantage is 0, for `auxiliary.cloning`.
  Returns: as `rloo`; 0 where nothing valid was sampled.
  Example:
    >>> demo_PG = jnp.array([[False, False, True]])
    >>> group.against_sampled(jnp.array([[1., 0., 1.]]), jnp.ones((1, 3), bool), demo_PG)
    Array([[ 0.5, -0.5,  0.5]], dtype=float32)
  """
  if demo_PG is None: return mean_baseline(rewards_PG, learn_PG)
  n_P1 = jnp.sum(learn_PG & ~demo_PG, axis=1, keepdims=True)
  advantages_PG = _against(rewards_PG, learn_PG, ~demo_PG) / jnp.maximum(n_P1, 1)
  return masked.where_valid(advantages_PG, ~demo_PG) if demonstrations == "cloned" else (
      advantages_PG)


@method(centres=True, scales=True)
def ucas(rewards_PG: Array, learn_PG: Array, learn_BT: Array, old_mean_logps_BT: Array,
         old_logits_BT: Array, *, beta_pos: ranges.Number = 0.25, beta_neg: ranges.Number = 0.35,
         penalty: ranges.Number = 0.05, eps: ranges.Positive = 1e-6) -> Array:
  """UCAS: GRPO, larger for uncertain right and smaller for certain wrong completions.

    A_t = A w - penalty z_t,   and not below 0 where A > 0
    w = exp(-beta_pos c) where A > 0, exp(beta_neg c) elsewhere
    c = the group's z-score of sum_t -(mean_v log pi_old(v | y_<t))
    z_t = (logit of y_t - min) / (max - min + 1e-6) over the tokens of the batch

  A is `grpo`'s. c is how sure a completion was: far from uniform, summed over its
  tokens, so that a long one is surer. A group that ties has the penalty alone, and a
  batch whose logits are equal z = 1/2.

  Source: Xie et al. 2025, arXiv:2510.10649, and released code. Differs from the paper:
  its first version has KL(uniform, pi) in c; the code's is log V more for each token.

  Arguments that are not listed are those of `grpo`.

  Args:
    learn_BT: bool, tokens of valid completions.
    old_mean_logps_BT: mean log-prob of all tokens of the vocabulary, nats.
    old_logits_BT: logit of the token drawn.
    beta_pos, beta_neg: steepness of w.
    penalty: in units of the advantages.
  Returns:
    advantages_BT, 0 outside the mask.
  Example:
    >>> rewards_PG, learn_PG = jnp.array([[1., 0.]]), jnp.ones((1, 2), bool)
    >>> learn_BT = jnp.ones((2, 1), bool)
    >>> group.ucas(rewards_PG, learn_PG, learn_BT, jnp.full((2, 1), -2.), jnp.ones((2, 1)),
    ...            penalty=.2).round(2)
    Array([[ 0.61],
           [-0.81]], dtype=float32)
  """
  sure_B = -masked.total(old_mean_logps_BT, learn_BT, axis=1)
  sure_PG = grpo(sure_B.reshape(learn_PG.shape), learn_PG, eps=eps)
  advantages_PG = grpo(rewards_PG, learn_PG, eps=eps)
  shaped_B1 = (advantages_PG * jnp.exp(jnp.where(
      advantages_PG > 0, -beta_pos, beta_neg) * sure_PG)).reshape(-1, 1)
  low = jnp.min(old_logits_BT, where=learn_BT, initial=jnp.inf)
  high = jnp.max(old_logits_BT, where=learn_BT, initial=-jnp.inf)
  apart = high > low
  z_BT = jnp.where(apart, (old_logits_BT - jnp.where(apart, low, 0))
                   / (jnp.where(apart, high - low, 1) + 1e-6), 0.5)
  less_BT = shaped_B1 - penalty * z_BT
  return jnp.where(shaped_B1 > 0, jnp.maximum(less_BT, 0), less_BT)


@method(centres=True, scales=True)
def self_rewarded(rewards_PG: Array, self_logps_B: Array, learn_PG: Array, *, c_ref: ranges.Number,
                  beta_v: ranges.Positive = 0.1, tau: ranges.Share = 0.1,
                  least_std: ranges.NotNegative = 0.1, eps: ranges.Positive = 1e-6) -> Array:
  """LaSeR: GRPO on verdicts, mixed with GRPO on the policy's self-rewards.

    A = (1 - tau) A^v + tau A^s      where std_j s_j > least_std, else A^v
    A^x_i = (x_i - mean_j x_j) / (std_j x_j + eps)
    s = clip(beta_v (log pi(z_c | x, y) - c_ref), 0, 1)

  Source: Yang et al. 2025, arXiv:2510.14943, in the form of its released code. Differs
  from the code: the mix is there from the first step, there after a warm-up of 400.

  Args:
    self_logps_B: log pi(likelihood.token | x, y), nats; anything where not valid.
    c_ref: what a model before training says of that token.
    beta_v: scale of the self-reward, as in losses.auxiliary.last_token,
      which gives it a meaning.
    tau: share of the self-reward.
    least_std: prompts whose self-rewards differ less keep A^v.
    Otherwise, and Returns: as `grpo`.
  Example:
    >>> rewards_PG, self_logps_B = jnp.array([[1., 0.]]), jnp.array([-18., -23.])
    >>> group.self_rewarded(rewards_PG, self_logps_B, jnp.ones((1, 2), bool), c_ref=-23.,
    ...                     tau=.5).round(2)
    Array([[ 0.71, -0.71]], dtype=float32)
  """
  self_PG = jnp.clip(beta_v * (self_logps_B.reshape(learn_PG.shape) - c_ref), 0, 1)
  plain_PG = grpo(rewards_PG, learn_PG, eps=eps)
  mixed_PG = (1 - tau) * plain_PG + tau * grpo(self_PG, learn_PG, eps=eps)
  return jnp.where(_std(self_PG, learn_PG) > least_std, mixed_PG, plain_PG)


@method(centres=True, scales=True)
def tempo(rewards_PG: Array, tokens_BT: Array, learn_BT: Array, learn_PG: Array, *,
          eps: ranges.Positive = 1e-6) -> Array:
  """TEMPO: GRPO, plus the change of the prefix's value by each token.

    A_t = ((r_i - mean_j r_j) + V(y_{<=t}) - V(y_{<t})) / (std_j r_j + eps)

  with V the mean reward of the prompt's completions that begin so, and V of nothing
  their mean. In an episode y_{<t} has the observations before t, so that what an observation
  changes is credited to no token. Where no other completion goes another way the second part is
  0; along a completion that no other equals, and without observations, it adds up to what GRPO
  gives. Long completions that are drawn independently share little: there this is GRPO.

  Source: Tran et al. 2025, arXiv:2509.18314. Differs from the paper: its std's
  convention is not known, here it is unbiased; no released code to compare with.

  Arguments that are not listed are those of `grpo`.

  Args:
    tokens_BT: completion tokens; anything on padding.
    learn_BT: bool.
  Returns:
    advantages_BT, 0 on padding, where not valid and where rewards tie.
  Example:
    >>> rewards_PG, tokens_BT = jnp.array([[1., 0.]]), jnp.array([[5, 1], [5, 2]])
    >>> group.tempo(rewards_PG, tokens_BT, jnp.ones((2, 2), bool), jnp.ones((1, 2), bool)).round(2)
    Array([[ 0.71,  1.41],
           [-0.71, -1.41]], dtype=float32)
  """
  # Centred before: a prompt whose rewards tie has no rounding error to scale up.
  centred_PG = mean_baseline(rewards_PG, learn_PG)
  # Observations lie between two actions: all that comes before an action is its prefix.
  is_before_BT = jax.lax.cummax(learn_BT.astype(jnp.int32), axis=1, reverse=True) > 0
  values_BT = prefixes.values(tokens_BT, is_before_BT, centred_PG, learn_PG)
  change_BT = values_BT - jnp.pad(values_BT[:, :-1], ((0, 0), (1, 0)))
  std_PG = jnp.broadcast_to(_std(rewards_PG, learn_PG) + eps, learn_PG.shape)
  return masked.where_valid((centred_PG.reshape(-1, 1) + change_BT) / std_PG.reshape(-1, 1),
                            learn_BT)


def _against(rewards_PG, learn_PG, weight_PG=None):
  """sum_j w_j (r_i - r_j) over valid j: exactly 0 for ties, also under jit."""
  diff_PGG = rewards_PG[:, :, None] - rewards_PG[:, None, :]
  if weight_PG is not None:
    diff_PGG = diff_PGG * weight_PG[:, None, :].astype(diff_PGG.dtype)
  return jnp.sum(diff_PGG, axis=2, where=learn_PG[:, None, :])


def _std(rewards_PG, learn_PG):
  """Unbiased std of each group, [P, 1]; exactly 0 where it ties."""
  square_P1 = jnp.sum(mean_baseline(rewards_PG, learn_PG)**2, axis=1, keepdims=True)
  return masked.root(square_P1 / jnp.maximum(jnp.sum(learn_PG, axis=1, keepdims=True) - 1, 1))
