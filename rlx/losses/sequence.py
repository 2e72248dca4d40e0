"""Policy losses whose ratio is of a completion.

Arguments as in policy.py, and as there loss_BT is 0 outside the mask. A ratio
that several tokens share has on each the gradient of that token's own log-prob:

  s_t = sg(s) pi_theta(y_t) / sg(pi_theta(y_t))

With the plain s, advantages that differ by token would count by their mean only.
"""
import jax
import jax.numpy as jnp
from jax import Array

from rlx.core import masked, ranges
from rlx.core.method import method
from rlx.losses import _ratio


@method(aggregation="seq-mean-token-mean")
def gspo(logps_BT: Array, old_logps_BT: Array, advantages_BT: Array, learn_BT: Array, *,
         clip_low: ranges.NotNegative = 3e-4,
         clip_high: ranges.NotNegative = 4e-4) -> _ratio.Clipped:
  """GSPO: the clip acts on the ratio of the whole completion.

    s = exp(1/L sum_t log rho_t)
    s_t = sg(s) pi_theta(y_t) / sg(pi_theta(y_t))
    l = max(-A s_t, -A clip(s_t, 1 - clip_low, 1 + clip_high))

  With one advantage per completion its mean over tokens has the gradient of
  the sequence form. Defined for aggregation seq-mean-token-mean.

  Source: Zheng et al. 2025, arXiv:2507.18071 (GSPO-token).
  Differs from the paper: log s_t is capped at 10.

  Args:
    clip_low, clip_high: of a ratio near 1, hence small.
  Example:
    >>> logps_BT, old_logps_BT = jnp.log(jnp.array([[.5, .9]])), jnp.log(jnp.array([[.5, .5]]))
    >>> advantages_BT, learn_BT = jnp.ones((1, 2)), jnp.ones((1, 2), bool)
    >>> sequence.gspo(logps_BT, old_logps_BT, advantages_BT, learn_BT)[0]
    Array([[-1.0004, -1.0004]], dtype=float32)
  """
  ratio_BT = _ratio.importance_ratio(logps_BT, old_logps_BT, "sequence", learn_BT)
  return _ratio.clip_loss(ratio_BT, advantages_BT, clip_low, clip_high)


@method(aggregation="seq-mean-token-sum")
def luspo(logps_BT: Array, old_logps_BT: Array, advantages_BT: Array, learn_BT: Array, *,
          clip_low: ranges.NotNegative = 2e-3,
          clip_high: ranges.NotNegative = 2.5e-3) -> _ratio.Clipped:
  """LUSPO: GSPO with every completion weighted by its length.

    l_i = T_i max(-A s, -A clip(s, 1 - clip_low, 1 + clip_high))

  which is the loss of `gspo` summed over tokens: defined for aggregation
  seq-mean-token-sum.

  Source: Liu et al. 2026, arXiv:2602.05261; clip ranges of its section 5.1.
  Differs from the paper: log s_t is capped at 10.

  Args: as `gspo`.
  Example:
    >>> logps_BT, old_logps_BT = jnp.log(jnp.array([[.5, .9]])), jnp.log(jnp.array([[.5, .5]]))
    >>> advantages_BT, learn_BT = jnp.ones((1, 2)), jnp.ones((1, 2), bool)
    >>> sequence.luspo(logps_BT, old_logps_BT, advantages_BT, learn_BT)[0]
    Array([[-1.0025, -1.0025]], dtype=float32)
  """
  return gspo(logps_BT, old_logps_BT, advantages_BT, learn_BT, clip_low=clip_low,
              clip_high=clip_high)


@method(aggregation="seq-mean-token-mean")
def gmpo(logps_BT: Array, old_logps_BT: Array, advantages_BT: Array, learn_BT: Array, *,
         clip_low: ranges.NotNegative = 0.4, clip_high: ranges.NotNegative = 0.4) -> _ratio.Clipped:
  """GMPO: the geometric mean of clipped token ratios, once per completion.

    l_i = -(mean_t A) exp(mean_t c_t),   on every token of row i
    c = log rho clipped to [-clip_low, clip_high] on the side that A pushes to

  Defined for aggregation seq-mean-token-mean, whose row mean is l_i.

  Source: Zhao et al. 2025, arXiv:2507.20673. Differs from the paper: nothing
  known; verl's geo_mean also counts empty rows in the mean over rows.

  Args:
    clip_low, clip_high: of the log-ratio, nats.
  Example:
    >>> logps_BT, old_logps_BT = jnp.log(jnp.array([[.5, .9]])), jnp.log(jnp.array([[.5, .5]]))
    >>> advantages_BT, learn_BT = jnp.ones((1, 2)), jnp.ones((1, 2), bool)
    >>> sequence.gmpo(logps_BT, old_logps_BT, advantages_BT, learn_BT)[0].round(2)
    Array([[-1.22, -1.22]], dtype=float32)
  """
  d_BT = logps_BT - old_logps_BT
  sign_BT = jnp.sign(advantages_BT)
  c_BT = sign_BT * jnp.minimum(sign_BT * d_BT, sign_BT * jnp.clip(d_BT, -clip_low, clip_high))
  mean = lambda x_BT: masked.mean(x_BT, learn_BT, axis=1, keepdims=True)
  return jnp.broadcast_to(-mean(advantages_BT) * jnp.exp(mean(c_BT)), c_BT.shape), dict(
      clip_low=(advantages_BT < 0) & (d_BT < -clip_low),
      clip_high=(advantages_BT > 0) & (d_BT > clip_high))


@method
def vespo(logps_BT: Array, sampler_logps_BT: Array, advantages_BT: Array, learn_BT: Array, *,
          k_pos: ranges.Positive = 2.0, lambda_pos: ranges.Positive = 3.0,
          k_neg: ranges.Positive = 3.0, lambda_neg: ranges.Positive = 2.0) -> Array:
  """VESPO: REINFORCE with a smooth weight of the whole completion's probability.

    l = -sg(phi(w)) A log pi_theta(y_t)
    w = prod_t pi_theta(y_t) / mu(y_t)
    phi(w) = w^k exp(lambda (1 - w)),   phi(1) = 1

  The ratio is a product, not a mean: phi falls to 0 on both sides of its maximum
  at k / lambda. mu is what drew the tokens, so that no further correction of the
  sampler's mismatch is due.

  Source: Shen et al. 2026, arXiv:2602.10693. Differs from the paper: nothing
  known; constants as in TRL, which clamps the log-ratios to [-20, 20].

  Args:
    sampler_logps_BT: log mu of the tokens drawn.
    k_pos, lambda_pos: k and lambda where A >= 0; both > 0.
    k_neg, lambda_neg: where A < 0.
  Example:
    >>> logps_BT, sampler_logps_BT = jnp.log(jnp.array([[.5, .9]])), jnp.log(jnp.array([[.5, .5]]))
    >>> advantages_BT, learn_BT = jnp.ones((1, 2)), jnp.ones((1, 2), bool)
    >>> sequence.vespo(logps_BT, sampler_logps_BT, advantages_BT, learn_BT).round(1)
    Array([[0.2, 0. ]], dtype=float32)
  """
  log_w_B1 = jnp.sum(logps_BT - sampler_logps_BT, axis=1, keepdims=True)
  phi = lambda k, lam: jnp.exp(k * log_w_B1 + lam * (1 - jnp.exp(log_w_B1)))
  phi_BT = jnp.where(advantages_BT >= 0, phi(k_pos, lambda_pos), phi(k_neg, lambda_neg))
  return -jax.lax.stop_gradient(phi_BT) * advantages_BT * logps_BT


@method(aggregation="seq-mean-token-mean")
def pacs(logps_BT: Array, old_logps_BT: Array, learn_BT: Array, outcome_PG: Array, learn_PG: Array,
         *, score_scale: ranges.Positive = 1.0) -> Array:
  """PACS: the verdict as the label of a completion's score within its group.

    l_i = -r_i log sigmoid(z_i) - (1 - r_i) log sigmoid(-z_i),   on every token of row i
    z_i = s_i - 1/(n-1) sum_{j != i} s_j     n = valid completions of a prompt
    s_i = beta sum_t log rho_t

  It reads verdicts, not advantages, and has no clip: sigmoid(z) takes the baseline's
  part. The first step's gradient, at z = 0, is beta times that of REINFORCE with
  RLOO. Defined for aggregation seq-mean-token-mean, whose row mean is l_i.

  Source: Li et al. 2025, arXiv:2509.02522. Differs from the paper: its variants of s
  (log pi without the old policy), of z and its weights by class are left out.
  Completions without a verdict or a rival have loss 0.

  Args:
    outcome_PG: verdicts in [0, 1]; anything where learn_PG is False.
    learn_PG: bool.
    score_scale: beta, of the score, > 0.
  Example:
    >>> logps_BT, old_logps_BT = jnp.log(jnp.array([[.9], [.5]])), jnp.log(jnp.array([[.5], [.5]]))
    >>> outcome_PG, learn_PG = jnp.array([[1., 0.]]), jnp.ones((1, 2), bool)
    >>> sequence.pacs(logps_BT, old_logps_BT, jnp.ones((2, 1), bool), outcome_PG, learn_PG).round(2)
    Array([[0.44],
           [0.44]], dtype=float32)
  """
  score_PG = score_scale * jnp.sum(logps_BT - old_logps_BT, axis=1).reshape(learn_PG.shape)
  n_P1 = jnp.sum(learn_PG, axis=1, keepdims=True)
  z_PG = ((n_P1 * score_PG - jnp.sum(score_PG, axis=1, keepdims=True)) / jnp.maximum(n_P1 - 1, 1))
  loss_PG = masked.where_valid(jax.nn.softplus(z_PG) - outcome_PG * z_PG, n_P1 > 1)
  return jnp.broadcast_to(loss_PG.reshape(-1, 1), logps_BT.shape)


@method(aggregation="seq-mean-token-sum")
def dro(logps_BT: Array, ref_logps_BT: Array, advantages_BT: Array, learn_BT: Array, *,
        tau: ranges.Positive = 1.0) -> Array:
  """DRO: the completion's log-ratio is fitted to its advantage.

    l_t = -(A_t - tau sg(d)) log pi_theta(y_t),   d = sum_t log [ pi_theta(y_t) / pi_ref(y_t) ]

  Summed over a completion whose A_t is r - V it has the gradient of
  (r - V - tau d)^2 / (2 tau), which needs no second completion and no ratio to who
  sampled. Defined for aggregation seq-mean-token-sum.

  Source: Richemond et al. 2024, arXiv:2405.19107, algorithm 1 (DRO-V). Differs from the
  paper: V is the advantages' business. Learned with temporal.gae, lam=1, its target is
  r instead of r - tau d; on-policy what V lacks has no gradient on average.

  Args:
    ref_logps_BT: nats, at the sampling temperature; see kl.sync_every.
    tau: strength of the pull to the reference.
  Example:
    >>> logps_BT, ref_logps_BT = jnp.log(jnp.array([[.5, .9]])), jnp.log(jnp.array([[.5, .5]]))
    >>> advantages_BT, learn_BT = jnp.ones((1, 2)), jnp.ones((1, 2), bool)
    >>> sequence.dro(logps_BT, ref_logps_BT, advantages_BT, learn_BT).round(2)
    Array([[0.29, 0.04]], dtype=float32)
  """
  ratio_B1 = jnp.sum(logps_BT - ref_logps_BT, axis=1, keepdims=True)
  return -(advantages_BT - tau * jax.lax.stop_gradient(ratio_B1)) * logps_BT


@method(aggregation="seq-mean-token-mean")
def dpo(logps_BT: Array, ref_logps_BT: Array, learn_BT: Array, outcome_PG: Array, learn_PG: Array,
        *, dpo_beta: ranges.Positive = 0.1) -> Array:
  """DPO of the policy on one pair of each group, its best and its worst completion.

    l_p = softplus(-(z_w - z_l)),   on every token of group p
    z_i = beta sum_t log [ pi_theta(y_t) / pi_ref(y_t) ]

  w is the first completion of the highest verdict and l the first of the lowest: as
  completions are exchangeable, a random right and a random wrong one. It reads
  verdicts, not advantages, and no old policy: who sampled is rollouts.sync_every's
  choice. Defined for aggregation seq-mean-token-mean, whose row mean is l_p.

  Source: Rafailov et al. 2023, arXiv:2305.18290, eq. 7; on the fly, Lanchantin et
  al. 2025, arXiv:2506.21495. Differs from the papers: groups of one verdict have
  loss 0 and count in the mean, unless rollouts.filter_groups drops them.

  Args:
    ref_logps_BT: nats, at the sampling temperature; see kl.sync_every.
    outcome_PG: verdicts; anything where learn_PG is False.
    learn_PG: bool.
    dpo_beta: beta, scale of the log-ratio, > 0.
  Example:
    >>> logps_BT, ref_logps_BT = jnp.log(jnp.array([[.9], [.5]])), jnp.log(jnp.array([[.5], [.5]]))
    >>> outcome_PG, learn_PG = jnp.array([[1., 0.]]), jnp.ones((1, 2), bool)
    >>> sequence.dpo(logps_BT, ref_logps_BT, jnp.ones((2, 1), bool), outcome_PG, learn_PG,
    ...              dpo_beta=1.).round(2)
    Array([[0.44],
           [0.44]], dtype=float32)
  """
  low_P1 = jnp.min(outcome_PG, axis=1, keepdims=True, where=learn_PG, initial=jnp.inf)
  high_P1 = jnp.max(outcome_PG, axis=1, keepdims=True, where=learn_PG, initial=-jnp.inf)
  better_PG, worse_PG = learn_PG & (outcome_PG > low_P1), learn_PG & (outcome_PG < high_P1)
  return _pair(logps_BT, ref_logps_BT, outcome_PG, better_PG, worse_PG, dpo_beta)


@method(aggregation="seq-mean-token-mean")
def crew_dpo(logps_BT: Array, ref_logps_BT: Array, old_logps_BT: Array, answer_span_BT: Array,
             learn_BT: Array, outcome_PG: Array, learn_PG: Array, *,
             dpo_beta: ranges.Positive = 0.1) -> Array:
  """CRew-DPO: `dpo` on the pair with the largest difference in answer confidence.

    w = the right completion of the highest c, l = the wrong one of the lowest
    c_i = mean of pi_old(y_t) over the tokens of the answer in y_i

  so that c_w - c_l is the largest of all pairs of right and wrong.

  Source: Du et al. 2025, arXiv:2510.13501, section 3.2. Differs from the paper: one
  pair a prompt; it takes the K largest differences, of a fixed set of completions.
  A completion without an answer has c = 0. As in `dpo`, groups without a pair have
  loss 0.

  Arguments that are not listed are those of `dpo`.

  Args:
    old_logps_BT: nats, at the sampling temperature; anything off the answer.
    answer_span_BT: bool, the tokens after likelihood.separator.
    outcome_PG: verdicts, right above 1/2; anything where learn_PG is False.
  Example:
    >>> logps_BT, ref_logps_BT = jnp.log(jnp.array([[.9], [.5]])), jnp.log(jnp.array([[.5], [.5]]))
    >>> outcome_PG, learn_PG = jnp.array([[1., 0.]]), jnp.ones((1, 2), bool)
    >>> learn_BT = jnp.ones((2, 1), bool)
    >>> sequence.crew_dpo(logps_BT, ref_logps_BT, logps_BT, learn_BT, learn_BT, outcome_PG,
    ...                   learn_PG).round(1)
    Array([[0.7],
           [0.7]], dtype=float32)
  """
  span_BT = answer_span_BT & learn_BT
  sure_PG = masked.mean(jnp.exp(old_logps_BT), span_BT, axis=1).reshape(learn_PG.shape)
  right_PG = outcome_PG > 0.5
  return _pair(logps_BT, ref_logps_BT, sure_PG, learn_PG & right_PG, learn_PG & ~right_PG, dpo_beta)


def _pair(logps_BT, ref_logps_BT, score_PG, better_PG, worse_PG, beta):
  """DPO's loss of the better completion of the highest score and the worse one of the lowest.

  It is on every token of the group; 0 in a group that lacks one of the two.
  """
  best_P1 = jnp.argmax(jnp.where(better_PG, score_PG, -jnp.inf), axis=1, keepdims=True)
  worst_P1 = jnp.argmin(jnp.where(worse_PG, score_PG, jnp.inf), axis=1, keepdims=True)
  z_PG = beta * jnp.sum(logps_BT - ref_logps_BT, axis=1).reshape(score_PG.shape)
  z = lambda which_P1: jnp.take_along_axis(z_PG, which_P1, axis=1)
  has_pair_P1 = jnp.any(better_PG, 1, keepdims=True) & jnp.any(worse_PG, 1, keepdims=True)
  loss_P1 = masked.where_valid(jax.nn.softplus(z(worst_P1) - z(best_P1)), has_pair_P1)
  loss_B1 = jnp.repeat(loss_P1, z_PG.shape[1], axis=0)
  return jnp.broadcast_to(loss_B1, logps_BT.shape)
