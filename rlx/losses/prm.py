"""Losses of the implicit PRM: outcome labels against summed log-ratios.

  d_i = sum_t log [ pi_phi(y_t | x, y_<t) / pi_ref(y_t | x, y_<t) ]
  z_i = beta d_i     beta: prm_beta

All return Weighted. Rows that are not valid (unknown verdict, empty) give no
gradient. A function that asks for a `_PG` array compares completions of one
prompt; a microbatch has whole groups. What is computed of the whole minibatch is an
argument, see core/method.py; left at None it is of the rows given. Nothing but
`prefix_ce` is normalised by length.

Free Process Rewards without Process Labels, Yuan et al. 2024, arXiv:2412.01981.
"""
from typing import Literal

import jax
import jax.numpy as jnp
from jax import Array

from rlx.core import masked, ranges, records
from rlx.core.method import COMPUTED, method
from rlx.losses import aggregate


@method
def ce(prm_logps_BT: Array, prm_ref_logps_BT: Array, learn_BT: Array, outcome_B: Array,
       learn_B: Array, prm_beta: Array | float) -> records.Weighted:
  """Cross-entropy of the outcome. PRIME's default.

    l_i = softplus(z_i) - outcome_i z_i,  mean over rows

  Source: PRIME, Cui et al. 2025, arXiv:2502.01456, eq. 4; Yuan et al. 2024,
  arXiv:2412.01981. Differs from the papers: nothing known (the
  minus sign missing in one README and one figure is here).

  Args:
    prm_logps_BT: differentiable, nats, temperature 1; anything on padding.
    prm_ref_logps_BT: constants.
    learn_BT: bool, EOS included.
    outcome_B: labels in [0, 1], fractions allowed; anything where not valid.
    learn_B: bool.
    prm_beta: scale of the log-ratio.
  Example:
    >>> prm_BT, ref_BT = jnp.log(jnp.array([[.9], [.5]])), jnp.log(jnp.full((2, 1), .5))
    >>> learn_B = jnp.ones(2, bool)
    >>> prm.ce(prm_BT, ref_BT, jnp.ones((2, 1), bool), jnp.array([1., 0.]), learn_B,
    ...        1.).mean().round(2)
    Array(0.57, dtype=float32)
  """
  z_B = prm_beta * _log_ratio(prm_logps_BT, prm_ref_logps_BT)
  return aggregate.mean(jax.nn.softplus(z_B) - outcome_B * z_B, learn_B)


@method
def dpo(prm_logps_BT: Array, prm_ref_logps_BT: Array, learn_BT: Array, outcome_PG: Array,
        learn_PG: Array, prm_beta: Array | float) -> records.Weighted:
  """DPO on every pair of a better and a worse completion of a prompt.

    l = softplus(-(z_w - z_l)),  mean over pairs

  Source: Rafailov et al. 2023, arXiv:2305.18290, eq. 7; all pairs as in Yuan et
  al. 2024, arXiv:2412.01981. Differs from the papers: with fractional verdicts
  w is any completion with a higher verdict than l.

  Args: outcome_PG, learn_PG by group; otherwise as `ce`.
  Example:
    >>> prm_BT, ref_BT = jnp.log(jnp.array([[.9], [.5]])), jnp.log(jnp.array([[.5], [.5]]))
    >>> outcome_PG, learn_PG = jnp.array([[1., 0.]]), jnp.ones((1, 2), bool)
    >>> prm.dpo(prm_BT, ref_BT, jnp.ones((2, 1), bool), outcome_PG, learn_PG, 1.).mean().round(2)
    Array(0.44, dtype=float32)
  """
  z_PG = prm_beta * _log_ratio(prm_logps_BT, prm_ref_logps_BT).reshape(learn_PG.shape)
  margin_PGG = z_PG[:, :, None] - z_PG[:, None, :]
  return aggregate.mean(jax.nn.softplus(-margin_PGG), _pairs(outcome_PG, learn_PG))


@method
def nca(prm_logps_BT: Array, prm_ref_logps_BT: Array, learn_BT: Array, outcome_PG: Array,
        learn_PG: Array, prm_beta: Array | float) -> records.Weighted:
  """NCA on every pair: the better completion's reward must also be positive.

    l = softplus(-z_w) + 1/2 softplus(z_w) + 1/2 softplus(z_l),  mean over pairs

  Source: Chen et al. 2024, arXiv:2402.05369, with two completions (TRL's
  nca_pair). Differs from the paper: pairs as in `dpo`.

  Args: as `dpo`.
  Example:
    >>> prm_BT, ref_BT = jnp.log(jnp.array([[.9], [.5]])), jnp.log(jnp.array([[.5], [.5]]))
    >>> outcome_PG, learn_PG = jnp.array([[1., 0.]]), jnp.ones((1, 2), bool)
    >>> prm.nca(prm_BT, ref_BT, jnp.ones((2, 1), bool), outcome_PG, learn_PG, 1.).mean().round(2)
    Array(1.3, dtype=float32)
  """
  z_PG = prm_beta * _log_ratio(prm_logps_BT, prm_ref_logps_BT).reshape(learn_PG.shape)
  up_PG, down_PG = jax.nn.softplus(-z_PG), jax.nn.softplus(z_PG)
  pair_PGG = (up_PG + down_PG / 2)[:, :, None] + down_PG[:, None, :] / 2
  return aggregate.mean(pair_PGG, _pairs(outcome_PG, learn_PG))


def _estimate_kl(kl_ratio_B):
  """The K of `kto` on every row."""
  return jnp.full_like(kl_ratio_B, jax.lax.stop_gradient(jnp.maximum(
      masked.mean(kl_ratio_B, ~jnp.isnan(kl_ratio_B)), 0)))


@method(unmasked=("kl_ratio_B",), whole=dict(baseline_B=_estimate_kl))
def kto(prm_logps_BT: Array, prm_ref_logps_BT: Array, learn_BT: Array, outcome_B: Array,
        learn_B: Array, kl_ratio_B: Array, prm_beta: Array | float, baseline_B: Array = COMPUTED,
        *, weight_correct: ranges.NotNegative = 1.0,
        weight_wrong: ranges.NotNegative = 1.0) -> records.Weighted:
  """KTO, unpaired.

    l_i = weight_correct (1 - sigmoid(beta (d_i - K)))   if outcome_i > 1/2
    l_i = weight_wrong   (1 - sigmoid(beta (K - d_i)))   otherwise
    K = sg max(0, mean of d over mismatched prompt-completion rows)

  Source: Ethayarajh et al. 2024, arXiv:2402.01306. Differs from the
  paper: nothing known; the mean K is of a minibatch.

  Arguments that are not listed are those of `ce`.

  Args:
    kl_ratio_B: d of each prompt with another prompt's completion; NaN rows do
      not count.
    baseline_B: K.
    weight_correct, weight_wrong: for unbalanced data.
  Example:
    >>> prm_BT, ref_BT = jnp.log(jnp.array([[.9], [.5]])), jnp.log(jnp.full((2, 1), .5))
    >>> learn_B = jnp.ones(2, bool)
    >>> outcome_B, kl_ratio_B = jnp.array([1., 0.]), jnp.zeros(2)
    >>> prm.kto(prm_BT, ref_BT, jnp.ones((2, 1), bool), outcome_B, learn_B, kl_ratio_B,
    ...         1.).mean().round(1)
    Array(0.4, dtype=float32)
  """
  d_B = _log_ratio(prm_logps_BT, prm_ref_logps_BT)
  is_correct_B = outcome_B > 0.5
  sign_B = jnp.where(is_correct_B, jnp.ones_like(d_B), -1)
  weight_B = jnp.where(is_correct_B, jnp.asarray(weight_correct, d_B.dtype), weight_wrong)
  return aggregate.mean(weight_B * jax.nn.sigmoid(-prm_beta * sign_B * (d_B - baseline_B)), learn_B)


@method(unmasked=("return",))  # With T = 2 it has the shape of learn_BT.
def _balance_losses(prm_logps_BT, prm_ref_logps_BT, learn_BT, outcome_PG, learn_PG, prm_beta):
  """[B, 2]: the loss of each completion in `kto_even`, and d (sum of all losses) / d d_i."""
  d_PG = _log_ratio(prm_logps_BT, prm_ref_logps_BT).reshape(learn_PG.shape)
  better_PG, worse_PG = _better_worse(outcome_PG, learn_PG, d_PG.dtype)
  n = jnp.maximum(jnp.sum(better_PG), 1)

  def total(d_PG):
    mean = lambda weight_PG: jnp.maximum(jnp.sum(weight_PG * d_PG) / n, 0)
    loss_PG = (better_PG * jax.nn.sigmoid(-prm_beta * (d_PG - mean(worse_PG)))
               + worse_PG * jax.nn.sigmoid(-prm_beta * (mean(better_PG) - d_PG)))
    return jnp.sum(loss_PG), loss_PG

  slope_PG, loss_PG = jax.grad(total, has_aux=True)(jax.lax.stop_gradient(d_PG))
  return jnp.stack([loss_PG.reshape(-1), slope_PG.reshape(-1)], axis=1)


@method(whole=dict(even_B2=_balance_losses))
def kto_even(prm_logps_BT: Array, prm_ref_logps_BT: Array, learn_BT: Array, outcome_PG: Array,
             learn_PG: Array, prm_beta: Array | float,
             even_B2: Array = COMPUTED) -> records.Weighted:
  """KTO on pairs, with each side's mean log-ratio as the other's baseline.

    l_w = 1 - sigmoid(beta (d_w - K_l)),   l_l = 1 - sigmoid(beta (K_w - d_l))
    K_w = max(0, mean of d_w over pairs),  K_l likewise; gradients flow into both

  mean over both members of all pairs.

  Source: VanillaKTOLoss of the code of Yuan et al. 2024, arXiv:2412.01981.
  Differs from KTO, arXiv:2402.01306: the baselines, of a minibatch, and their gradient.

  Arguments that are not listed are those of `dpo`.

  Args:
    even_B2: of each completion its loss and the slope of the sum of all losses in d_i. The
      baselines carry d_i into the losses of other microbatches.
  Example:
    >>> prm_BT, ref_BT = jnp.log(jnp.array([[.9], [.5]])), jnp.log(jnp.array([[.5], [.5]]))
    >>> outcome_PG, learn_PG = jnp.array([[1., 0.]]), jnp.ones((1, 2), bool)
    >>> prm.kto_even(prm_BT, ref_BT, jnp.ones((2, 1), bool), outcome_PG, learn_PG,
    ...              1.).mean().round(1)
    Array(0.4, dtype=float32)
  """
  d_B = _log_ratio(prm_logps_BT, prm_ref_logps_BT)
  better_PG, worse_PG = _better_worse(outcome_PG, learn_PG, d_B.dtype)
  loss_B, slope_B = even_B2[:, 0], even_B2[:, 1]
  return records.Weighted(jnp.sum(loss_B + slope_B * (d_B - jax.lax.stop_gradient(d_B))),
                          jnp.sum(better_PG + worse_PG))


@method
def detached_dpo(prm_logps_BT: Array, prm_ref_logps_BT: Array, learn_BT: Array, outcome_PG: Array,
                 learn_PG: Array, prm_old_logps_BT: Array, prm_beta: Array | float, *,
                 weighting: Literal["none", "bon_acc", "bon_rm"] = "none") -> records.Weighted:
  """DPO of each row against the mean of its opponents in an earlier pass.

    l_i = softplus(-s_i (z_i - mean_{j in O_i} z_j^old))
    s_i = +1 and O_i = {outcome_j < outcome_i}   if outcome_i > 0
    s_i = -1 and O_i = {outcome_j > outcome_i}   otherwise

  The mean is 0 without opponents. weighting="none" is the mean over rows. The
  others sum l_i n F_i^(n-1) over rows, n = valid rows of the group and F_i =
  the share of them with outcome_j <= outcome_i (bon_acc) or z_j^old <= z_i
  (bon_rm): best-of-n aware.

  Source: compute_detach_dpo_loss_rm of verl's PRIME recipe; the method is PRIME,
  arXiv:2502.01456. Differs from the recipe: in bon_rm a row is always counted
  as <= itself, whatever rounding did between the two passes.

  Arguments that are not listed are those of `dpo`.

  Args:
    prm_old_logps_BT: of the earlier pass (prm.order="reverse" or the scoring
      pass), constants; anything on padding.
    weighting: none, bon_acc or bon_rm.
  Example:
    >>> prm_BT, ref_BT = jnp.log(jnp.array([[.9], [.5]])), jnp.log(jnp.array([[.5], [.5]]))
    >>> outcome_PG, learn_PG = jnp.array([[1., 0.]]), jnp.ones((1, 2), bool)
    >>> prm.detached_dpo(prm_BT, ref_BT, jnp.ones((2, 1), bool), outcome_PG, learn_PG, ref_BT,
    ...                  1.).mean().round(2)
    Array(0.57, dtype=float32)
  """
  z_PG = prm_beta * _log_ratio(prm_logps_BT, prm_ref_logps_BT).reshape(learn_PG.shape)
  old_PG = jax.lax.stop_gradient(
      prm_beta * _log_ratio(prm_old_logps_BT, prm_ref_logps_BT)).reshape(learn_PG.shape)
  mine_PGG, theirs_PGG = outcome_PG[:, :, None], outcome_PG[:, None, :]
  is_positive_PG = outcome_PG > 0
  rival_PGG = learn_PG[:, None, :] & jnp.where(
      is_positive_PG[:, :, None], theirs_PGG < mine_PGG, theirs_PGG > mine_PGG)
  opponents_PG = masked.mean(
      jnp.broadcast_to(old_PG[:, None, :], rival_PGG.shape), rival_PGG, axis=2)
  sign_PG = jnp.where(is_positive_PG, jnp.ones_like(z_PG), -1)
  loss_PG = jax.nn.softplus(-sign_PG * (z_PG - opponents_PG))
  if weighting == "none": return aggregate.mean(loss_PG, learn_PG)
  if weighting == "bon_acc":
    below_PGG = theirs_PGG <= mine_PGG
  else:
    below_PGG = ((old_PG[:, None, :] <= z_PG[:, :, None])
                 | jnp.eye(z_PG.shape[1], dtype=bool)[None])
  n_P1 = jnp.sum(learn_PG, axis=1, keepdims=True).astype(z_PG.dtype)
  share_PG = jnp.sum(below_PGG & learn_PG[:, None, :], axis=2) / jnp.maximum(n_P1, 1)
  weight_PG = n_P1 * share_PG ** jnp.maximum(n_P1 - 1, 0)
  return records.Weighted(
      masked.total(jax.lax.stop_gradient(weight_PG) * loss_PG, learn_PG), jnp.zeros((), z_PG.dtype))


@method
def prefix_ce(prm_logps_BT: Array, prm_ref_logps_BT: Array, learn_BT: Array, outcome_PG: Array,
              learn_PG: Array, prm_beta: Array | float, *, margin: ranges.NotNegative = 5.0,
              balanced: bool = True, adaptive: bool = True) -> records.Weighted:
  """IPVRM: cross-entropy of the outcome for the value of every prefix of a completion.

    l_i = w_i mean_t softplus(m_i - s_i beta/t sum_{s <= t} d_is)    s_i = 1 if right, else -1
    w_i = 1 - p if right, else p, divided by their mean over the group   (balanced)
    m_i = margin - s_i logit(p)                                          (adaptive)

  mean over rows; d_is is the log-ratio of token s, and p the share of right completions of the
  prompt. The other losses of this module constrain the sum over all tokens only, so that
  what they say of a prefix is a by-product. The rewards are the differences of the values
  beta sum_{s <= t} d_is, which are not divided by t: implicit.process with norm="none".

  Source: Gao et al. 2026, arXiv:2604.13197, in the form of its released code (compute_ipvrm_loss,
  build_prompt_level_reward_tensors); its offline training has neither weights nor adaptive margins
  (balanced=False, adaptive=False). Differs from the code: a verdict above 1/2 is right, where the
  code multiplies by 2 v - 1; the offline form is a mean over the tokens of a batch there.

  Arguments that are not listed are those of `dpo`.

  Args:
    margin: in units of the value, so that it is saturated at a mean log-ratio of margin / beta.
    balanced: weights of right and wrong completions; 1 where the group has one kind only.
    adaptive: a smaller margin for what is common in the group; p is clipped to [1e-6, 1 - 1e-6].
  Example:
    >>> prm_BT, ref_BT = jnp.log(jnp.array([[.9, .5], [.5, .5]])), jnp.log(jnp.full((2, 2), .5))
    >>> outcome_PG, learn_PG = jnp.array([[1., 0.]]), jnp.ones((1, 2), bool)
    >>> prm.prefix_ce(prm_BT, ref_BT, jnp.ones((2, 2), bool), outcome_PG, learn_PG, 10.,
    ...               margin=1.).mean().round(2)
    Array(0.69, dtype=float32)
  """
  ratio_BT = prm_logps_BT - jax.lax.stop_gradient(prm_ref_logps_BT)
  value_BT = prm_beta * jnp.cumsum(ratio_BT, axis=1) / jnp.maximum(jnp.cumsum(learn_BT, axis=1), 1)
  is_right_PG = learn_PG & (outcome_PG > 0.5)
  sign_PG = jnp.where(is_right_PG, jnp.ones_like(outcome_PG), -1)
  p_P1 = masked.mean(is_right_PG.astype(outcome_PG.dtype), learn_PG, axis=1, keepdims=True)
  margin_PG, weight_PG = jnp.full_like(outcome_PG, margin), jnp.ones_like(outcome_PG)
  if adaptive:
    log_of = lambda x_P1: jnp.log(jnp.clip(x_P1, 1e-6, 1 - 1e-6))
    margin_PG = margin_PG - sign_PG * (log_of(p_P1) - log_of(1 - p_P1))
  if balanced:
    weight_PG = jnp.where(is_right_PG, 1 - p_P1, p_P1)
    mean_P1 = masked.mean(weight_PG, learn_PG, axis=1, keepdims=True)
    weight_PG = jnp.where(mean_P1 > 0, weight_PG / jnp.where(mean_P1 > 0, mean_P1, 1), 1)
  loss_BT = jax.nn.softplus(margin_PG.reshape(-1, 1) - sign_PG.reshape(-1, 1) * value_BT)
  return aggregate.mean(weight_PG.reshape(-1) * masked.mean(loss_BT, learn_BT, axis=1),
                        learn_PG.reshape(-1))


def _log_ratio(prm_logps_BT, prm_ref_logps_BT):
  """d_i; gradients go to the PRM only."""
  return jnp.sum(prm_logps_BT - jax.lax.stop_gradient(prm_ref_logps_BT), axis=1)


def _pairs(outcome_PG, learn_PG):
  """[P, w, l]: w has the higher verdict. NaN compares as False."""
  return (learn_PG[:, :, None] & learn_PG[:, None, :]
          & (outcome_PG[:, :, None] > outcome_PG[:, None, :]))


def _better_worse(outcome_PG, learn_PG, dtype):
  """How many pairs each completion is the better, and the worse, member of."""
  is_pair_PGG = _pairs(outcome_PG, learn_PG)
  return jnp.sum(is_pair_PGG, axis=2).astype(dtype), jnp.sum(is_pair_PGG, axis=1).astype(dtype)
