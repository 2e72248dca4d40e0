"""Advantages from the whole batch, or from a baseline rollout."""
import jax.numpy as jnp
from jax import Array

from rlx.advantages import group, temporal
from rlx.core import masked, ranges
from rlx.core.method import method


@method
def reinforce(rewards_PG: Array, learn_PG: Array, *, use_mean: bool = False) -> Array:
  """The reward itself, or minus the mean of the batch.

    A_i = r_i            use_mean:  A_i = r_i - 1/N sum_j r_j

  Source: Williams 1992; its use for language models, Ahmadian et al. 2024,
  arXiv:2402.14740; the outcome part of PRIME's eq. 8, arXiv:2502.01456.
  Differs from the papers: completions that are not valid get 0 and do not
  enter the mean.

  Args:
    rewards_PG: anything where learn_PG is False.
    learn_PG: bool.
    use_mean: take the batch mean off.
  Returns:
    advantages_PG.
  Example:
    >>> batch.reinforce(jnp.array([[1., 0.]]), jnp.ones((1, 2), bool), use_mean=True)
    Array([[ 0.5, -0.5]], dtype=float32)
  """
  return rewards_PG - masked.mean(rewards_PG, learn_PG) if use_mean else rewards_PG


@method(centres=True)
def group_mean_batch_std(rewards_PG: Array, learn_PG: Array, *,
                         eps: ranges.Positive = 1e-4) -> Array:
  """Lite PPO: rewards minus the group's mean, divided by the std of the batch.

    A_i = (r_i - mean of its group) / (std_{p,g} r + eps)

  A batch's std does not blow up on prompts whose completions nearly agree.

  Source: Liu et al. 2025, arXiv:2508.08221; TRL's
  scale_rewards="batch". Differs from the paper: eps is TRL's.

  Args: as `reinforce`; eps in reward units, std unbiased.
  Returns:
    advantages_PG; a tied group gets exactly 0.
  Example:
    >>> batch.group_mean_batch_std(jnp.array([[1., 0.]]), jnp.ones((1, 2), bool)).round(2)
    Array([[ 0.71, -0.71]], dtype=float32)
  """
  std = masked.root(masked.var(rewards_PG, learn_PG))
  return group.mean_baseline(rewards_PG, learn_PG) / (std + eps)


@method
def reinforce_pp(rewards_BT: Array, learn_BT: Array, learn_B: Array, *,
                 gamma: ranges.Share = 1.0, centre: bool = False) -> Array:
  """REINFORCE++: rewards to go, whitened over all tokens of the batch.

    A = (G - mean G) / std G,    G_t = r_t + gamma G_{t+1}

  centre:  r_t - mean r, over all tokens of the batch, takes the place of r_t. Each further token
  of a completion then costs mean r, whatever its own reward is, as in `process.rloo`.

  Source: Hu et al. 2025, arXiv:2501.03262; with centre the advantage of IPVRM, Gao et al. 2026,
  arXiv:2604.13197, from its released code. Differs from the paper: KL
  is a reward term of its own here, added before.

  Args:
    rewards_BT: anything on padding.
    learn_BT: bool.
    learn_B: bool; other rows get 0 and do not enter the statistics.
    gamma: discount per token.
    centre: see above.
  Returns:
    advantages_BT, 0 on padding.
  Example:
    >>> rewards_BT, learn_BT = jnp.array([[0., 1.], [0., -1.]]), jnp.ones((2, 2), bool)
    >>> batch.reinforce_pp(rewards_BT, learn_BT, jnp.ones(2, bool)).round(2)
    Array([[ 0.87,  0.87],
           [-0.87, -0.87]], dtype=float32)
  """
  if centre: rewards_BT = masked.where_valid(
      rewards_BT - masked.mean(rewards_BT, learn_BT), learn_BT)
  return masked.whiten(temporal.return_to_go(rewards_BT, learn_BT, gamma=gamma), learn_BT)


@method(centres=True)
def reinforce_pp_baseline(rewards_PG: Array, learn_PG: Array, learn_BT: Array) -> Array:
  """REINFORCE++-baseline: rewards minus the group's mean, whitened over all tokens.

    A = (D - mean D) / std D,    D_{i,t} = r_i - mean of its group

  Source: Hu et al. 2025, arXiv:2501.03262. Differs from the
  paper: nothing known. Long completions weigh more in mean and std.

  Args: as in `group.rloo` and `reinforce_pp`.
  Returns:
    advantages_BT, 0 on padding and where not valid.
  Example:
    >>> rewards_PG, learn_PG = jnp.array([[1., 0.]]), jnp.ones((1, 2), bool)
    >>> batch.reinforce_pp_baseline(rewards_PG, learn_PG, jnp.ones((2, 1), bool)).round(2)
    Array([[ 0.71],
           [-0.71]], dtype=float32)
  """
  centred_B = group.mean_baseline(rewards_PG, learn_PG).reshape(-1)
  return masked.whiten(jnp.broadcast_to(centred_B[:, None], learn_BT.shape), learn_BT)


@method
def remax(rewards_PG: Array, learn_PG: Array, greedy_B: Array) -> Array:
  """ReMax: minus the reward of the prompt's greedy completion.

    A_i = r_i - r(greedy completion of the same prompt)

  Source: Li et al. 2023, arXiv:2310.10505. Differs from the paper:
  nothing known. Needs one more rollout per prompt.

  Args:
    greedy_B: verdict of the greedy completion, repeated for each row; a row
      where it is NaN gets 0.
    Otherwise, and Returns: as `reinforce`.
  Example:
    >>> batch.remax(jnp.array([[1., 0.]]), jnp.ones((1, 2), bool), jnp.array([1., 1.]))
    Array([[ 0., -1.]], dtype=float32)
  """
  greedy_PG = greedy_B.reshape(learn_PG.shape)
  return masked.where_valid(rewards_PG - greedy_PG, ~jnp.isnan(greedy_PG))


@method
def optimal_token_baseline(rewards_BT: Array, learn_BT: Array, learn_PG: Array, old_logps_BT: Array,
                           old_sum_pi_squared_BT: Array) -> Array:
  """Per column, the baseline of least variance from the completions of a prompt.

    A_{i,t} = G_{i,t} - sum_j G_{j,t} W_{j,t} / sum_j W_{j,t}
    W_{j,t} = sum_{s <= t} (1 - 2 pi(y_s) + sum_v pi(v)^2)

  W is the squared norm of the score of softmax logits, summed so far: noisy
  prefixes count more.

  Source: Li et al. 2026, arXiv:2602.07078, in the form of verl
  (compute_optimal_token_baseline_advantage). Differs from the paper: no
  importance weights; prompts with fewer than two valid completions get 0. As in
  verl, a column that only one completion reaches has baseline 0.

  Args:
    rewards_BT, old_logps_BT: anything on padding.
    old_sum_pi_squared_BT: sum over the vocabulary of squared probabilities.
    learn_BT: bool.
    learn_PG: bool.
  Returns:
    advantages_BT, 0 on padding and where not valid.
  Example:
    >>> rewards_BT, learn_PG = jnp.array([[1.], [0.]]), jnp.ones((1, 2), bool)
    >>> old_logps_BT, sum_pi_squared_BT = jnp.log(jnp.full((2, 1), .5)), jnp.full((2, 1), .5)
    >>> batch.optimal_token_baseline(rewards_BT, jnp.ones((2, 1), bool), learn_PG, old_logps_BT,
    ...                              sum_pi_squared_BT)
    Array([[ 0.5],
           [-0.5]], dtype=float32)
  """
  counts_PG = learn_PG & (jnp.sum(learn_PG, axis=1, keepdims=True) > 1)
  learn_BT = learn_BT & counts_PG.reshape(-1)[:, None]
  returns_BT = temporal.return_to_go(rewards_BT, learn_BT)
  score_BT = masked.where_valid(1 - 2 * jnp.exp(old_logps_BT) + old_sum_pi_squared_BT, learn_BT)
  weight_BT = masked.where_valid(jnp.cumsum(score_BT, axis=1), learn_BT)
  by_group = lambda x_BT: x_BT.reshape(*learn_PG.shape, -1)
  total_P1T = jnp.sum(by_group(weight_BT), axis=1, keepdims=True)
  baseline_P1T = (jnp.sum(by_group(returns_BT * weight_BT), axis=1, keepdims=True)
                  / jnp.where(total_P1T > 0, total_P1T, 1))
  is_alone_P1T = jnp.sum(by_group(learn_BT), axis=1, keepdims=True) < 2
  baseline_P1T = masked.where_valid(baseline_P1T, ~is_alone_P1T)
  advantages = by_group(returns_BT) - baseline_P1T
  return masked.where_valid(advantages.reshape(learn_BT.shape), learn_BT)
