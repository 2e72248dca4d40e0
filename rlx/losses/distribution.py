"""Policy losses that read more of a distribution than the token drawn from it.

Arguments and results are those of policy.py, with in addition, per token,

  top_logps_BTK        log-probs of the K most likely tokens, the most likely first
  mean_logps_BT        mean log-prob of all tokens of the vocabulary
  old_mean_logps_BT    the same before the update
  old_min_p_logps_BT   log-prob of the token drawn among those that min_p leaves,
                       before the update
  all_logps_BTV        log-probs of all tokens; a batch of them must fit into memory
  old_all_logps_BTV    the same before the update

all of the distribution the token was drawn from, at its temperature; see
`distribution_statistics` of models/logps.py.
"""
from typing import Annotated, Literal

import jax
import jax.numpy as jnp
from jax import Array

from rlx.core import masked, ranges
from rlx.core.method import COMPUTED, method
from rlx.losses import _ratio, divergence

_TIE = 1e-5  # nats, within which a token is as likely as the most likely one


@method
def rover(logps_BT: Array, old_logps_BT: Array, mean_logps_BT: Array, old_mean_logps_BT: Array,
          advantages_BT: Array, learn_BT: Array, *, rho: ranges.Positive = 1.0,
          next_coef: ranges.Number = 1.0) -> Array:
  """ROVER: values of a uniform policy, represented by log-ratios to the old policy.

    l_t = (Q_t - sg(A_t + next_coef V_{t+1}))^2
    Q_t = rho (log pi_theta - log pi_old)(y_t)
    V_{t+1} = rho mean_v (log pi_theta - log pi_old)(v | y_<=t),   0 after the last token

  V is the value of a policy that takes each token of the vocabulary alike, and l_t
  the error of its Bellman equation. In a tree of deterministic moves whose rewards are
  0 or R and come at the end, the largest Q leads to R wherever R can be reached. The
  policy is a softmax of Q, so that nothing else is done for exploration. A is the
  centred reward, on every token.

  Source: He et al. 2025, arXiv:2509.24981, eq. 6 to 8 and released code. Differs from
  the paper: nothing known; the code's clip of Q, off there, is left out. At rest its
  gradient is twice that of -A log pi.

  Args:
    rho: of Q.
    next_coef: of the next state's value; 0 regresses on the reward alone.
  Example:
    >>> logps_BT, old_logps_BT = jnp.log(jnp.array([[.5, .9]])), jnp.log(jnp.array([[.5, .5]]))
    >>> advantages_BT, learn_BT = jnp.ones((1, 2)), jnp.ones((1, 2), bool)
    >>> mean_BT = jnp.full((1, 2), -3.)
    >>> distribution.rover(logps_BT, old_logps_BT, mean_BT, mean_BT, advantages_BT,
    ...                    learn_BT).round(2)
    Array([[1.  , 0.17]], dtype=float32)
  """
  v_BT = rho * (mean_logps_BT - old_mean_logps_BT)
  after_BT = jnp.pad(v_BT[:, 1:], ((0, 0), (0, 1)))
  target_BT = jax.lax.stop_gradient(advantages_BT + next_coef * after_BT)
  q_BT = rho * (logps_BT - old_logps_BT)
  return (q_BT - target_BT)**2


@method
def simko(logps_BT: Array, old_logps_BT: Array, top_logps_BTK: Array, entropy_BT: Array,
          advantages_BT: Array, learn_BT: Array, *, alpha: ranges.Share = 0.01,
          penalty: Annotated[float, ranges.Range(1, 1e12)] = 1.1, quantile: ranges.Share = 0.8,
          clip_low: ranges.NotNegative = 0.2,
          clip_high: ranges.NotNegative = 0.2) -> _ratio.Clipped:
  """SimKO: at uncertain tokens the gain is shared with the most likely tokens.

    l = max(-A' rho', -A' clip(rho', 1 - clip_low, 1 + clip_high))
    rho' = (1 - alpha) rho + alpha/K sum_k sg(rho / rho_k) rho_k    forks, A > 0
    A' = penalty A                   forks, A < 0, y_t the most likely token
    rho' = rho,  A' = A              elsewhere

  with rho_k the ratio of the k-th most likely token. A fork is a token whose entropy
  is above the quantile of its completion. rho' is rho in value; its gradient is
  rho ((1 - alpha) grad log pi(y_t) + alpha/K sum_k grad log pi(k)), in which the old
  log-probs of the K do not occur.

  Source: Peng et al. 2025, arXiv:2510.14807, and released code. Differs from the
  paper: the sign of A decides what is right, as a verdict of 0 or 1 does;
  within 1e-5 nats of the most likely token is as likely; the clamp of the log-ratio.

  Args:
    alpha: share of the gradient that the K tokens get.
    penalty: of A < 0.
    quantile: of the entropies of a completion.
    clip_low, clip_high: as `policy.ppo_clip`.
  Example:
    >>> logps_BT, old_logps_BT = jnp.log(jnp.array([[.5, .9]])), jnp.log(jnp.array([[.5, .5]]))
    >>> advantages_BT, learn_BT = jnp.ones((1, 2)), jnp.ones((1, 2), bool)
    >>> top_BTK, entropy_BT = jnp.log(jnp.full((1, 2, 2), .45)), jnp.array([[.6, .3]])
    >>> distribution.simko(logps_BT, old_logps_BT, top_BTK, entropy_BT, advantages_BT, learn_BT)[0]
    Array([[-1. , -1.2]], dtype=float32)
  """
  is_fork_BT = learn_BT & (entropy_BT > _quantile(entropy_BT, learn_BT, quantile, axis=1))
  mixed_BT = jnp.where(is_fork_BT & (advantages_BT > 0),
                       (1 - alpha) * logps_BT + alpha * jnp.mean(top_logps_BTK, axis=2), logps_BT)
  # The value of one with the gradient of the other: x - x is 0 whatever x is.
  logps_BT = jax.lax.stop_gradient(logps_BT) + (mixed_BT - jax.lax.stop_gradient(mixed_BT))
  is_top_BT = logps_BT >= top_logps_BTK[:, :, 0] - _TIE
  advantages_BT = jnp.where(is_fork_BT & is_top_BT & (advantages_BT < 0),
                            penalty * advantages_BT, advantages_BT)
  return _ratio.clip_loss(_ratio.importance_ratio(logps_BT, old_logps_BT), advantages_BT, clip_low,
                          clip_high)


def _find_rare(logps_BT, old_min_p_logps_BT, advantages_BT, learn_BT, *, fraction):
  """True on the tokens that `lp_reg` guards."""
  pushed_BT = learn_BT & (advantages_BT < 0)
  return pushed_BT & (logps_BT < old_min_p_logps_BT) & (
      logps_BT < _quantile(logps_BT, pushed_BT, fraction))


@method(whole=dict(guarded_BT=_find_rare))
def lp_reg(logps_BT: Array, old_logps_BT: Array, old_min_p_logps_BT: Array, advantages_BT: Array,
           learn_BT: Array, guarded_BT: Array = COMPUTED, *, fraction: ranges.Share = 0.01,
           kl_coef: ranges.NotNegative = 1.0, clip_low: ranges.NotNegative = 1.0,
           clip_high: ranges.NotNegative = 9.0) -> _ratio.Clipped:
  """Lp-Reg: regularises rare tokens of wrong completions towards a denoised policy.

    l = -A rho + coef k3(proxy, pi_theta)                       guarded
    l = max(-A rho, -A clip(rho, 1 - clip_low, 1 + clip_high))  elsewhere
    guarded: A < 0, log pi_theta(y_t) below its `fraction` quantile over the minibatch's
             tokens with A < 0, and below log proxy(y_t)
    proxy: the old policy without tokens of p < min_p max p, renormalised

  A token that the filter takes for noise has no proxy and is never guarded. k3 is
  exp(-d) + d - 1 with d = log pi_theta - log proxy.

  Source: Huang et al. 2025, arXiv:2510.03222, and released code. Differs from the
  paper: the quantile interpolates; the code takes floor(fraction n) tokens of n, and
  none where that is one. k3 and the log-ratio are clamped.

  Args:
    guarded_BT: bool; None: its quantile is of the rows given (see core/method.py).
    fraction: share of the tokens with A < 0 that may be guarded.
    kl_coef: coef, of k3.
    clip_low, clip_high: as `policy.ppo_clip`; the defaults let rho be 0 to 10.
  Example:
    >>> logps_BT, old_logps_BT = jnp.log(jnp.array([[.5, .9]])), jnp.log(jnp.array([[.5, .5]]))
    >>> advantages_BT, learn_BT = jnp.ones((1, 2)), jnp.ones((1, 2), bool)
    >>> min_p_BT = jnp.full((1, 2), -jnp.inf)
    >>> distribution.lp_reg(logps_BT, old_logps_BT, min_p_BT, advantages_BT, learn_BT)[0]
    Array([[-1. , -1.8]], dtype=float32)
  """
  ratio_BT = _ratio.importance_ratio(logps_BT, old_logps_BT)
  pull_BT = divergence.estimate(logps_BT, old_min_p_logps_BT, guarded_BT, kind="k3")
  loss_BT, removed = _ratio.clip_loss(ratio_BT, advantages_BT, clip_low, clip_high)
  return (jnp.where(guarded_BT, -advantages_BT * ratio_BT + kl_coef * pull_BT, loss_BT),
          {name: x_BT & ~guarded_BT for name, x_BT in removed.items()})


@method
def distil(all_logps_BTV: Array, teacher_all_logps_BTV: Array, learn_BT: Array, *,
           kind: Literal["reverse", "forward", "js"] = "reverse",
           mix: Annotated[float, ranges.Range(1e-6, 0.999999)] = 0.5) -> Array:
  """On-policy distillation: the divergence of a token's whole distribution from the teacher's.

    reverse  KL(pi, pi_T) = sum_v pi(v) (log pi(v) - log pi_T(v))
    forward  KL(pi_T, pi)
    js       mix KL(pi_T, m) + (1 - mix) KL(pi, m),   m = mix pi_T + (1 - mix) pi

  The prefixes are the policy's own and have no gradient. Advantages are not read.

  Source: GKD, Agarwal et al. 2023, arXiv:2306.13649, eq. 1 and section 3 (with lambda = 1, all data
  from the student). Differs from the paper: nothing known.

  Args:
    all_logps_BTV: of the policy, differentiable, nats, at the sampling temperature.
    teacher_all_logps_BTV: constants.
    learn_BT: bool.
    kind: reverse, forward or js.
    mix: beta of GKD, for js.
  Example:
    >>> all_BTV, teacher_BTV = jnp.log(jnp.array([[[.5, .5]]])), jnp.log(jnp.array([[[.9, .1]]]))
    >>> distribution.distil(all_BTV, teacher_BTV, jnp.ones((1, 1), bool)).round(2)
    Array([[0.51]], dtype=float32)
  """
  if kind == "reverse": return _kl(all_logps_BTV, teacher_all_logps_BTV)
  if kind == "forward": return _kl(teacher_all_logps_BTV, all_logps_BTV)
  mixed_BTV = jnp.logaddexp(jnp.log(mix) + teacher_all_logps_BTV, jnp.log1p(-mix) + all_logps_BTV)
  return (mix * _kl(teacher_all_logps_BTV, mixed_BTV)
          + (1 - mix) * _kl(all_logps_BTV, mixed_BTV))


def _spread_of_values(prm_logps_BT, prm_ref_logps_BT, learn_BT, prm_beta):
  """sigma_V of `distrl`, the same in every row."""
  values_BT = prm_beta * jnp.cumsum(
      masked.where_valid(prm_logps_BT - prm_ref_logps_BT, learn_BT), axis=1)
  gap_BT = values_BT - masked.mean(values_BT, learn_BT)
  return jax.lax.stop_gradient(
      jnp.full(len(learn_BT), masked.root(masked.mean(gap_BT**2, learn_BT))))


@method(whole=dict(value_std_B=_spread_of_values))
def distrl(logps_BT: Array, old_logps_BT: Array, all_logps_BTV: Array, old_all_logps_BTV: Array,
           prm_all_logps_BTV: Array, prm_ref_all_logps_BTV: Array, prm_logps_BT: Array,
           prm_ref_logps_BT: Array, advantages_BT: Array, learn_BT: Array,
           prm_beta: Array | float, value_std_B: Array = COMPUTED, *,
           alpha: ranges.NotNegative = 0.1, min_p: ranges.Share = 0.1,
           clip_low: ranges.NotNegative = 0.2, clip_high: ranges.NotNegative = 0.28,
           clip: ranges.NotNegative = 0.2,
           dual_clip: Annotated[float, ranges.Range(1, 1e12)] | None = None) -> _ratio.Clipped:
  """DistRL: PPO's loss of the drawn token, and one of all tokens that were likely in its place.

    l_t    = ppo(rho(y_t), A_t; clip_low, clip_high) + alpha sum_{v in C_t} pi_old(v) l_t(v)
    l_t(v) = ppo(rho(v), A_t(v); clip, clip)
    C_t    = {v: pi_old(v) >= min_p},  none at the last token of a completion
    A_t(v) = beta (log pi_phi(v) - log pi_ref(v)) / (sigma_V + 1e-6)

  with ppo of `policy.ppo_clip` and rho = pi / pi_old. beta (log pi_phi - log pi_ref)(v) is the
  value of the prefix that ends in v less that of the prefix before it (`prm.prefix_ce`): what the
  PRM thinks of a token needs no completion that has it. sigma_V is the standard deviation of the
  values of all prefixes of the minibatch, sums of the log-ratios of the drawn tokens. Before the
  update the second term's gradient is that of -alpha E_{v ~ pi} A_t(v), without the unlikely
  tokens.

  Source: Gao et al. 2026, arXiv:2604.13197, eq. 10 to 14 and 23 to 25, and released code
  (gaoshiping/IPVRM at b3ddd9a), which has dual_clip=3 and leaves out the last token. Differs from
  the paper: its pi_ref is pi_old, here prm.reference (set it to policy). Differs from the code: it
  divides the sum over all tokens by that of pi_old(v), here both terms are means over the
  same tokens; the drawn token is in its C_t however unlikely; at most its five likeliest count.

  Args:
    all_logps_BTV: of the policy, differentiable, nats, at the sampling temperature.
    old_all_logps_BTV: the same before the update.
    prm_all_logps_BTV, prm_ref_all_logps_BTV: of PRM and reference, nats, at temperature 1.
    prm_logps_BT, prm_ref_logps_BT: those of the drawn tokens.
    prm_beta: beta, the one of the PRM's loss.
    value_std_B: sigma_V, in every row; None: of the rows given.
    alpha: weight of the second term; 0 is `policy.ppo_clip`.
    min_p: least probability of a token that counts.
    clip_low, clip_high: of the drawn token.
    clip: of the others, to both sides.
    dual_clip: bounds both where the advantage is below 0; None is off.
  Example:
    >>> halves_BTV, prm_BTV = jnp.log(jnp.full((1, 2, 2), .5)), jnp.log(jnp.array([[[.6, .4]] * 2]))
    >>> half_BT, zeros_BT, learn_BT = halves_BTV[:, :, 0], jnp.zeros((1, 2)), jnp.ones((1, 2), bool)
    >>> gain = lambda x: jnp.sum(distribution.distrl(
    ...     half_BT, half_BT, x, halves_BTV, prm_BTV, halves_BTV, prm_BTV[:, :, 0], half_BT,
    ...     zeros_BT, learn_BT, 1., jnp.ones(1), alpha=1.)[0])
    >>> jax.grad(gain)(halves_BTV).round(2)  # 0.5 log(0.5 / p): towards what the PRM prefers.
    Array([[[-0.09,  0.11],
            [ 0.  ,  0.  ]]], dtype=float32)
  """
  loss_BT, removed = _ratio.clip_loss(_ratio.importance_ratio(logps_BT, old_logps_BT),
                                      advantages_BT, clip_low, clip_high, dual_clip)
  # Tokens of probability 0 have no ratio.
  is_likely_BTV = (old_all_logps_BTV >= jnp.log(min_p)) & (old_all_logps_BTV > -jnp.inf)
  counts_BTV = is_likely_BTV & (learn_BT & ~masked.last(learn_BT))[:, :, None]
  all_BTV, old_BTV, prm_BTV, ref_BTV = (masked.where_valid(x, counts_BTV) for x in (
      all_logps_BTV, old_all_logps_BTV, prm_all_logps_BTV, prm_ref_all_logps_BTV))
  td_BTV = prm_beta * (prm_BTV - ref_BTV) / (value_std_B[:, None, None] + 1e-6)
  others_BTV, _ = _ratio.clip_loss(_ratio.importance_ratio(all_BTV, old_BTV), td_BTV, clip, clip,
                                   dual_clip)
  candidates_BT = jnp.sum(masked.where_valid(jnp.exp(old_BTV) * others_BTV, counts_BTV), axis=2)
  return loss_BT + alpha * candidates_BT, removed


def _kl(logps_BTV, other_BTV):
  """KL of distributions over V; a token of probability 0 adds nothing."""
  return jnp.sum(jnp.exp(logps_BTV) * jnp.where(
      logps_BTV > -jnp.inf, logps_BTV - other_BTV, 0.0), axis=-1)


def _quantile(x_BT, learn_BT, q, axis=None):
  """Of the unmasked entries, a constant; NaN where there are none."""
  return jnp.nanquantile(jnp.where(learn_BT, jax.lax.stop_gradient(x_BT), jnp.nan), q, axis=axis,
                         keepdims=True)
