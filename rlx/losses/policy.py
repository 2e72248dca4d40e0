"""Policy losses: advantages -> a loss per token.

All take (logps_BT, old_logps_BT, advantages_BT, learn_BT), where

  logps_BT       log pi_theta of the policy being updated, differentiable, nats
  old_logps_BT   the policy before the update, same graph and temperature
  advantages_BT  constants
  learn_BT       bool, the tokens that count; elsewhere anything, NaN too

and return loss_BT, 0 outside the mask, for losses/aggregate.py, those that clip also
{name: bool_BT}, whose gradient which clip removes (`resolve.split_metrics`). rho below is
exp(logps - old_logps), with the log clamped to [-20, 20]; sg stops gradients.
What is decided by a statistic of the whole minibatch (kl_cov, clip_cov,
stable_reinforce) is an argument of the loss, see core/method.py. Ratios of more than a
token are in sequence.py.
"""
import math
from typing import Annotated

import jax
import jax.numpy as jnp
from jax import Array

from rlx.core import masked, ranges
from rlx.core.method import COMPUTED, method
from rlx.losses import _ratio


@method
def ppo_clip(logps_BT: Array, old_logps_BT: Array, advantages_BT: Array, learn_BT: Array, *,
             clip_low: ranges.NotNegative = 0.2, clip_high: ranges.NotNegative = 0.2,
             dual_clip: Annotated[float, ranges.Range(1, 1e12)] | None = None,
             ratio_cap: ranges.Positive | None = None) -> _ratio.Clipped:
  """PPO's clipped surrogate.

    l = max(-A rho, -A clip(rho, 1 - clip_low, 1 + clip_high))
    dual_clip c, where A < 0:  l = min(l, -A c)

  Source: Schulman et al. 2017, arXiv:1707.06347, eq. 7; clip_high > clip_low:
  DAPO, arXiv:2503.14476; dual_clip: Ye et al. 2019, arXiv:1912.09729;
  ratio_cap: INTELLECT-2, arXiv:2505.07291. Differs from the papers: the clamp
  of the log-ratio.

  Args:
    clip_low, clip_high: how far the ratio may move down and up.
    dual_clip: c > 1, bounds the loss where A < 0; None is off.
    ratio_cap: caps rho in the unclipped term, > 1 + clip_high; None is off.
  Example:
    >>> logps_BT, old_logps_BT = jnp.log(jnp.array([[.5, .9]])), jnp.log(jnp.array([[.5, .5]]))
    >>> advantages_BT, learn_BT = jnp.ones((1, 2)), jnp.ones((1, 2), bool)
    >>> policy.ppo_clip(logps_BT, old_logps_BT, advantages_BT, learn_BT)[0]
    Array([[-1. , -1.2]], dtype=float32)
  """
  return _ratio.clip_loss(_ratio.importance_ratio(logps_BT, old_logps_BT), advantages_BT, clip_low,
                          clip_high, dual_clip, ratio_cap)


@method
def cispo(logps_BT: Array, old_logps_BT: Array, advantages_BT: Array, learn_BT: Array, *,
          clip_low: ranges.NotNegative | None = None, clip_high: ranges.NotNegative = 0.28,
          level: _ratio.Level = "token") -> Array:
  """CISPO: REINFORCE with a clipped weight; every token keeps its gradient.

    l = -sg(clip(rho, 1 - clip_low, 1 + clip_high)) A log pi_theta(y_t)

  Source: MiniMax-M1, arXiv:2506.13585. Differs from the paper: the
  clamp of the log-ratio. TRL's epsilon_high caps rho itself: clip_high + 1.

  Args:
    clip_low: None leaves the ratio free to fall.
    level: token, or sequence for the ratio of `gspo`.
  Example:
    >>> logps_BT, old_logps_BT = jnp.log(jnp.array([[.5, .9]])), jnp.log(jnp.array([[.5, .5]]))
    >>> advantages_BT, learn_BT = jnp.ones((1, 2)), jnp.ones((1, 2), bool)
    >>> policy.cispo(logps_BT, old_logps_BT, advantages_BT, learn_BT).round(2)
    Array([[0.69, 0.13]], dtype=float32)
  """
  low = None if clip_low is None else 1 - clip_low
  ratio_BT = _ratio.importance_ratio(logps_BT, old_logps_BT, level, learn_BT)
  weight_BT = jnp.clip(ratio_BT, low, 1 + clip_high)
  return -jax.lax.stop_gradient(weight_BT) * advantages_BT * logps_BT


@method
def rl_plus(logps_BT: Array, old_logps_BT: Array, advantages_BT: Array, learn_BT: Array,
            demo_B: Array | None = None, *, focal_exponent: ranges.NotNegative = 0.5) -> Array:
  """RL-PLUS: samples without a clip, demonstrations by a ratio to a mixture.

    sampled         l = -A rho
    demonstrated    l = -A (1 - sg(pi))^gamma 2 pi / (pi_old + omega)
                    omega = (pi_old + 1) / 2

  pi and pi_old are of the token. Who wrote a demonstration is unknown: omega stands for
  its probability. The power of 1 - pi turns to tokens that the policy would not have
  drawn. With `group.against_sampled` for the advantages.

  Source: Dong et al. 2025, arXiv:2508.00222, and its code. Differs from the paper: it
  describes omega as a mixture of pi_old with a uniform distribution, the code and this
  function have the constant 1; the clamp of the log-ratio.

  Args:
    demo_B: bool, rows that are demonstrations; None: there are none.
    focal_exponent: gamma; 0 is off.
  Example:
    >>> logps_BT, old_logps_BT = jnp.log(jnp.array([[.5, .9]])), jnp.log(jnp.array([[.5, .5]]))
    >>> advantages_BT, learn_BT = jnp.ones((1, 2)), jnp.ones((1, 2), bool)
    >>> policy.rl_plus(logps_BT, old_logps_BT, advantages_BT, learn_BT)
    Array([[-1. , -1.8]], dtype=float32)
  """
  loss_BT = -advantages_BT * _ratio.importance_ratio(logps_BT, old_logps_BT)
  if demo_B is None: return loss_BT
  probs_BT, old_BT = jnp.exp(logps_BT), jnp.exp(old_logps_BT)
  rare_BT = jax.lax.stop_gradient(jnp.maximum(1 - probs_BT, 0)) ** focal_exponent
  ratio_BT = 2 * probs_BT / (old_BT + (old_BT + 1) / 2)
  return jnp.where(demo_B[:, None] & learn_BT, -advantages_BT * rare_BT * ratio_BT, loss_BT)


@method(aggregation="seq-mean-token-mean")
def sapo(logps_BT: Array, old_logps_BT: Array, advantages_BT: Array, learn_BT: Array, *,
         tau_pos: ranges.Positive = 1.0, tau_neg: ranges.Positive = 1.05,
         level: _ratio.Level = "token") -> Array:
  """SAPO: a smooth gate in place of the clip.

    l = -A 4/tau sigmoid(tau (rho - 1)),    tau = tau_pos if A > 0 else tau_neg

  At rho = 1 its gradient is that of -A rho. Defined for aggregation
  seq-mean-token-mean.

  Source: Gao et al. 2025, arXiv:2511.20347. Differs from the paper: the clamp
  of the log-ratio.

  Args:
    tau_pos, tau_neg: steepness; larger forgets off-policy tokens sooner.
    level: token, or sequence for the ratio of `gspo`.
  Example:
    >>> logps_BT, old_logps_BT = jnp.log(jnp.array([[.5, .9]])), jnp.log(jnp.array([[.5, .5]]))
    >>> advantages_BT, learn_BT = jnp.ones((1, 2)), jnp.ones((1, 2), bool)
    >>> policy.sapo(logps_BT, old_logps_BT, advantages_BT, learn_BT).round(2)
    Array([[-2.  , -2.76]], dtype=float32)
  """
  ratio_BT = _ratio.importance_ratio(logps_BT, old_logps_BT, level, learn_BT)
  tau_BT = jnp.where(advantages_BT > 0, jnp.asarray(tau_pos, ratio_BT.dtype), tau_neg)
  return -advantages_BT * 4 / tau_BT * jax.nn.sigmoid(tau_BT * (ratio_BT - 1))


@method
def reinforce(logps_BT: Array, advantages_BT: Array, learn_BT: Array) -> Array:
  """The policy gradient itself; also the loss of GPG.

    l = -A log pi_theta(y_t)

  Source: Williams 1992; GPG, Chu et al. 2025, arXiv:2504.02546. Differs from
  the papers: nothing known.

  Example:
    >>> policy.reinforce(jnp.array([[-1., -2.]]), jnp.array([[1., -1.]]), jnp.ones((1, 2), bool))
    Array([[ 1., -2.]], dtype=float32)
  """
  return -advantages_BT * logps_BT


def _find_costly(logps_BT, advantages_BT, learn_BT, *, fraction):
  """True on the tokens that `kl_cov` holds back."""
  return _find_largest(_covariance(logps_BT, advantages_BT, learn_BT), learn_BT, learn_BT, fraction)


@method(whole=dict(held_BT=_find_costly))
def kl_cov(logps_BT: Array, old_logps_BT: Array, advantages_BT: Array, learn_BT: Array,
           held_BT: Array = COMPUTED, *, fraction: ranges.Share = 2e-4,
           kl_coef: ranges.NotNegative = 1.0) -> Array:
  """KL-Cov: a KL penalty on the tokens whose update costs most entropy.

    l = -A rho + coef |log rho|  on the k tokens of largest covariance
    l = -A rho                   elsewhere
    cov_t = (A_t - mean A)(log pi_theta(y_t) - mean log pi_theta)

  with k = max(1, floor(fraction n)) of the n valid tokens of the minibatch.

  Source: Cui et al. 2025, arXiv:2505.22617. Differs from the paper:
  nothing known.

  Args:
    held_BT: bool, the k tokens.
    fraction: share of the valid tokens; 0 is off.
    kl_coef: coef, of the penalty.
  Example:
    >>> logps_BT, old_logps_BT = jnp.log(jnp.array([[.5, .9]])), jnp.log(jnp.array([[.5, .5]]))
    >>> advantages_BT, learn_BT = jnp.ones((1, 2)), jnp.ones((1, 2), bool)
    >>> policy.kl_cov(logps_BT, old_logps_BT, advantages_BT, learn_BT)
    Array([[-1. , -1.8]], dtype=float32)
  """
  d_BT = logps_BT - old_logps_BT
  loss_BT = -advantages_BT * jnp.exp(d_BT)
  if not fraction: return loss_BT
  return loss_BT + masked.where_valid(kl_coef * masked.absolute(d_BT), held_BT)


def _find_costly_unclipped(logps_BT, old_logps_BT, advantages_BT, learn_BT, *, clip_low,
                           clip_high, fraction, cov_low, cov_high):
  """True on the tokens that `clip_cov` clips in addition to those that PPO clips."""
  _, removed = _ratio.clip_loss(jnp.exp(logps_BT - old_logps_BT), advantages_BT, clip_low,
                                clip_high)
  cov_BT = _covariance(logps_BT, advantages_BT, learn_BT)
  candidate_BT = (learn_BT & ~removed["clip_low"] & ~removed["clip_high"]
                  & (cov_BT > cov_low) & (cov_BT < cov_high))
  return _find_largest(cov_BT, candidate_BT, learn_BT, fraction)


@method(whole=dict(held_BT=_find_costly_unclipped))
def clip_cov(logps_BT: Array, old_logps_BT: Array, advantages_BT: Array, learn_BT: Array,
             held_BT: Array = COMPUTED, *, clip_low: ranges.NotNegative = 0.2,
             clip_high: ranges.NotNegative = 0.2, fraction: ranges.Share = 2e-4,
             cov_low: ranges.Number = 1.0, cov_high: ranges.Number = 5.0) -> _ratio.Clipped:
  """Clip-Cov: PPO's clip, and no gradient for some tokens of high covariance.

    l = 0 on up to max(1, floor(fraction n)) tokens with cov_low < cov_t < cov_high
    l = max(-A rho, -A clip(rho, 1 - clip_low, 1 + clip_high)) elsewhere

  cov as in `kl_cov`; tokens that PPO clips are not candidates.

  Source: Cui et al. 2025, arXiv:2505.22617. Differs from the paper:
  of the candidates those of largest covariance are taken, not random ones, so
  that the loss is a function of its inputs.

  Args:
    held_BT: bool, the tokens of loss 0.
    fraction: largest share of the valid tokens that loses its gradient.
    cov_low, cov_high: which covariances are candidates.
  Example:
    >>> logps_BT, old_logps_BT = jnp.log(jnp.array([[.5, .9]])), jnp.log(jnp.array([[.5, .5]]))
    >>> advantages_BT, learn_BT = jnp.ones((1, 2)), jnp.ones((1, 2), bool)
    >>> policy.clip_cov(logps_BT, old_logps_BT, advantages_BT, learn_BT)[0]
    Array([[-1. , -1.2]], dtype=float32)
  """
  loss_BT, removed = _ratio.clip_loss(jnp.exp(logps_BT - old_logps_BT), advantages_BT, clip_low,
                                      clip_high)
  removed = {name: x_BT & ~held_BT for name, x_BT in removed.items()}
  return masked.where_valid(loss_BT, ~held_BT), removed | dict(
      clip_cov=held_BT & (advantages_BT != 0))


@method
def dppo_tv(logps_BT: Array, old_logps_BT: Array, advantages_BT: Array, learn_BT: Array, *,
            low: ranges.NotNegative = 0.15, high: ranges.NotNegative = 0.15,
            ratio_cap: ranges.Positive = 20.0) -> _ratio.Clipped:
  """DPPO: no gradient where the token's probability has moved far enough.

    l = -A sg(min(rho, ratio_cap)) log pi_theta(y_t) if near else 0
    near: p - p_old <= high (A > 0), p - p_old >= -low (A <= 0)

  Source: DPPO (Binary-TV), arXiv:2602.04879. Differs from the paper: nothing
  known.

  Args:
    low, high: largest change of a probability.
    ratio_cap: of the weight.
  Example:
    >>> logps_BT, old_logps_BT = jnp.log(jnp.array([[.5, .9]])), jnp.log(jnp.array([[.5, .5]]))
    >>> advantages_BT, learn_BT = jnp.ones((1, 2)), jnp.ones((1, 2), bool)
    >>> policy.dppo_tv(logps_BT, old_logps_BT, advantages_BT, learn_BT)[0].round(2)
    Array([[0.69, 0.  ]], dtype=float32)
  """
  moved_BT = jnp.exp(logps_BT) - jnp.exp(old_logps_BT)
  near_BT = jnp.where(advantages_BT > 0, moved_BT <= high, moved_BT >= -low)
  return _weigh_near(near_BT, logps_BT, old_logps_BT, advantages_BT, ratio_cap)


@method
def dppo_kl(logps_BT: Array, old_logps_BT: Array, advantages_BT: Array, learn_BT: Array, *,
            low: ranges.NotNegative = 0.05, high: ranges.NotNegative = 0.05,
            ratio_cap: ranges.Positive = 20.0) -> _ratio.Clipped:
  """DPPO with the divergence of "this token or another".

    l = -A sg(min(rho, ratio_cap)) log pi_theta(y_t) if near else 0
    near: KL(p_old, p) <= high or p <= p_old (A > 0), <= low or p >= p_old (A <= 0)
    KL = p_old log(p_old / p) + (1 - p_old) log((1 - p_old) / (1 - p))

  Source: DPPO (Binary-KL), arXiv:2602.04879. Differs from the paper: 1e-8 is
  added to 1 - p and 1 - p_old.

  Args:
    low, high: nats.
    ratio_cap: of the weight.
  Example:
    >>> logps_BT, old_logps_BT = jnp.log(jnp.array([[.5, .9]])), jnp.log(jnp.array([[.5, .5]]))
    >>> advantages_BT, learn_BT = jnp.ones((1, 2)), jnp.ones((1, 2), bool)
    >>> policy.dppo_kl(logps_BT, old_logps_BT, advantages_BT, learn_BT)[0].round(2)
    Array([[0.69, 0.  ]], dtype=float32)
  """
  p_BT, old_p_BT = jnp.exp(logps_BT), jnp.exp(old_logps_BT)
  kl_BT = (old_p_BT * (old_logps_BT - logps_BT)
           + (1 - old_p_BT) * jnp.log((1 - old_p_BT + 1e-8) / (1 - p_BT + 1e-8)))
  near_BT = jnp.where(advantages_BT > 0, (kl_BT <= high) | (p_BT <= old_p_BT),
                      (kl_BT <= low) | (p_BT >= old_p_BT))
  return _weigh_near(near_BT, logps_BT, old_logps_BT, advantages_BT, ratio_cap)


@method
def dro(logps_BT: Array, old_logps_BT: Array, advantages_BT: Array, learn_BT: Array, *,
        ratio_penalty: ranges.NotNegative = 0.5) -> Array:
  """DRO of tokens: the policy gradient with a quadratic pull to the old policy.

    l = -(A log pi_theta(y_t) - beta/2 (log rho)^2)

  Source: verl and Tinker, after Richemond et al. 2024, arXiv:2405.19107. Differs from
  the paper, which is `sequence.dro`: the log-ratio is to the policy before the update,
  per token, and clamped.

  Args:
    ratio_penalty: beta, strength of the pull, > 0.
  Example:
    >>> logps_BT, old_logps_BT = jnp.log(jnp.array([[.5, .9]])), jnp.log(jnp.array([[.5, .5]]))
    >>> advantages_BT, learn_BT = jnp.ones((1, 2)), jnp.ones((1, 2), bool)
    >>> policy.dro(logps_BT, old_logps_BT, advantages_BT, learn_BT).round(2)
    Array([[0.69, 0.19]], dtype=float32)
  """
  d_BT = jnp.clip(logps_BT - old_logps_BT, -_ratio.MAX_LOG_RATIO, _ratio.MAX_LOG_RATIO)
  return -(advantages_BT * logps_BT - ratio_penalty / 2 * d_BT**2)


@method
def minirl(logps_BT: Array, old_logps_BT: Array, sampler_logps_BT: Array, advantages_BT: Array,
           learn_BT: Array, *, clip_low: ranges.NotNegative = 0.2,
           clip_high: ranges.NotNegative = 0.27,
           weight_cap: ranges.Positive = 5.0) -> _ratio.Clipped:
  """MiniRL: REINFORCE with importance weights to the sampler, where PPO would not clip.

    l = -M sg(min(pi_theta / mu, weight_cap)) A log pi_theta(y_t)
    M = 0 where A > 0 and rho > 1 + clip_high, or A < 0 and rho < 1 - clip_low

  mu is the sampler: the weight corrects its mismatch with the trainer and the
  staleness of the sample in one. Published with advantages r - mean and a sum
  over tokens (seq-mean-token-sum).

  Source: Zheng et al. 2025, arXiv:2512.01374, eq. 7. Differs from the paper: the
  clamp of the log-ratios.

  Args:
    sampler_logps_BT: log mu of the tokens drawn.
    clip_low, clip_high: of pi_theta / pi_old.
    weight_cap: of pi_theta / mu.
  Example:
    >>> logps_BT, old_logps_BT = jnp.log(jnp.array([[.5, .9]])), jnp.log(jnp.array([[.5, .5]]))
    >>> advantages_BT, learn_BT = jnp.ones((1, 2)), jnp.ones((1, 2), bool)
    >>> policy.minirl(logps_BT, old_logps_BT, old_logps_BT, advantages_BT, learn_BT)[0].round(2)
    Array([[0.69, 0.  ]], dtype=float32)
  """
  ratio_BT = _ratio.importance_ratio(logps_BT, old_logps_BT)
  near_BT = jnp.where(advantages_BT > 0, ratio_BT <= 1 + clip_high, ratio_BT >= 1 - clip_low)
  return _weigh_near(near_BT, logps_BT, sampler_logps_BT, advantages_BT, weight_cap)


def _find_near_mean(advantages_BT, learn_BT, *, width):
  """True where `stable_reinforce` keeps the advantage."""
  return jnp.abs(advantages_BT - masked.mean(advantages_BT, learn_BT)) <= width


@method(whole=dict(near_BT=_find_near_mean))
def stable_reinforce(logps_BT: Array, old_logps_BT: Array, advantages_BT: Array, learn_BT: Array,
                     near_BT: Array = COMPUTED, *, clip_low: ranges.NotNegative = 0.2,
                     clip_high: ranges.NotNegative = 0.2,
                     ratio_max: Annotated[float, ranges.Range(1, 1e12)] = 1e3,
                     width: ranges.Positive = 3.0) -> _ratio.Clipped:
  """StableReinforce: PPO's clip with bounds on the ratio and on the advantages.

    l = max(-A' rho', -A' clip(rho', 1 - clip_low, 1 + clip_high))
    rho' = exp(clip(log rho, -log ratio_max, log ratio_max))
    A'_t = A_t if |A_t - mean A| <= width else 0

  Beyond ratio_max a token has no gradient (clip_max), nor where A' = 0 and A is not
  (clip_advantage). Published with advantages whitened over the batch.

  Source: Zhang et al. 2025, arXiv:2505.02835 (R1-Reward). Differs from the paper:
  it keeps what is within 3 standard deviations; the released code, as here,
  within 3 of the mean, which is the same for whitened advantages. Its further
  rule, 0 where |A| > 10, is implied unless the mean is above 7.

  Args:
    near_BT: bool, where |A_t - mean A| <= width, the mean over the minibatch's tokens.
    ratio_max: > 1.
    width: in units of the advantages.
  Example:
    >>> logps_BT, old_logps_BT = jnp.log(jnp.array([[.5, .9]])), jnp.log(jnp.array([[.5, .5]]))
    >>> advantages_BT, learn_BT = jnp.ones((1, 2)), jnp.ones((1, 2), bool)
    >>> policy.stable_reinforce(logps_BT, old_logps_BT, advantages_BT, learn_BT)[0]
    Array([[-1. , -1.2]], dtype=float32)
  """
  limit = math.log(ratio_max)
  d_BT = logps_BT - old_logps_BT
  kept_BT = masked.where_valid(advantages_BT, near_BT)
  loss_BT, removed = _ratio.clip_loss(jnp.exp(jnp.clip(d_BT, -limit, limit)), kept_BT,
                                      clip_low, clip_high)
  by_ppo_BT = removed["clip_low"] | removed["clip_high"]
  return loss_BT, removed | dict(clip_advantage=~near_BT & (advantages_BT != 0),
                                 clip_max=(jnp.abs(d_BT) > limit) & (kept_BT != 0) & ~by_ppo_BT)


def _weigh_near(near_BT, logps_BT, old_logps_BT, advantages_BT, ratio_cap):
  """REINFORCE with a capped ratio as weight, on tokens whose probability has not moved too far."""
  weight_BT = jnp.minimum(_ratio.importance_ratio(logps_BT, old_logps_BT), ratio_cap)
  loss_BT = -advantages_BT * jax.lax.stop_gradient(weight_BT) * logps_BT
  return masked.where_valid(loss_BT, near_BT), dict(clip_low=~near_BT & (advantages_BT < 0),
                                                    clip_high=~near_BT & (advantages_BT > 0))


def _covariance(logps_BT, advantages_BT, learn_BT):
  centred = lambda x_BT: x_BT - masked.mean(x_BT, learn_BT)
  return jax.lax.stop_gradient(centred(advantages_BT) * centred(logps_BT))


def _find_largest(x_BT, candidate_BT, learn_BT, fraction):
  """True on the max(1, floor(fraction n)) largest candidates, with n the tokens that learn."""
  count = jnp.maximum(jnp.floor(jnp.sum(learn_BT).astype(x_BT.dtype) * fraction), 1)
  order = jnp.argsort(jnp.where(candidate_BT, -x_BT, jnp.inf), axis=None)
  rank_BT = jnp.argsort(order).reshape(x_BT.shape)
  return candidate_BT & (rank_BT < count)
