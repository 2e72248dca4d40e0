"""Advantages of process rewards against those of the prompt's other completions.

The token forms of PRIME, Process Reinforcement through Implicit Rewards, Cui et
al. 2025, arXiv:2502.01456. Their baseline is made of means per token, so that a long
completion counts as much as a short one in it. It is subtracted once for each remaining
token, so its weight in A_1 is the completion's own length:

  A_1 = R_i - L_i b_i     for rloo with loo="strict" and gamma=1

The policy chooses L_i, so this is no baseline in the sense of the policy gradient. It pays -b_i for
each further token: where the rewards are negative on average, long completions are preferred, and
short ones where they are positive, whatever their totals are. `totals_loo` has no such term.

Completions that are not valid are part of no baseline and get 0; so does, where a
baseline is used, a prompt with fewer than two valid ones.
"""
from typing import Literal

import jax.numpy as jnp
from jax import Array

from rlx.advantages import temporal
from rlx.core import masked, ranges
from rlx.core.method import method


@method(adds_later=True)
def rloo(rewards_BT: Array, learn_BT: Array, learn_PG: Array, *, gamma: ranges.Share = 1.0,
         loo: Literal["code", "strict"] = "code") -> Array:
  """PRIME's leave-one-out advantage of process rewards.

    A_t = sum_{s >= t} gamma^(s-t) p_s,    m_j = mean of r over tokens of y_j
    code:    p_s = n/(n-1) (r_s - 1/n sum_j m_j)
    strict:  p_s = r_s - 1/(n-1) sum_{j != i} m_j

  They differ by (r_s - m_i)/(n-1), which adds up to 0 over the completion: with
  gamma=1 the first token's advantage is the same.

  Source: arXiv:2502.01456, eq. 5; "code" is compute_rloo_returns of the
  released trainer, "strict" the equation. Differs from the paper: its eq. 5
  prints the baseline without the division by |y_j| that its figure, eq. 7 and
  code have. Not whitened. Both contain the length term that this module describes.

  Args:
    rewards_BT: process rewards; anything on padding.
    learn_BT: bool.
    learn_PG: bool.
    gamma: discount per token.
    loo: code or strict.
  Returns:
    advantages_BT, 0 on padding and where not valid.
  Example:
    >>> process.rloo(jnp.array([[0., 1.], [0., 0.]]), jnp.ones((2, 2), bool),
    ...              jnp.ones((1, 2), bool))
    Array([[ 1. ,  1.5],
           [-1. , -0.5]], dtype=float32)

    Two completions of 2 and 10 tokens with a total of 1 each: the first tokens have 0.8 and -4.

    >>> learn_BT = jnp.arange(10)[None] < jnp.array([[2], [10]])
    >>> rewards_BT = learn_BT / jnp.array([[2.], [10.]])
    >>> advantages_BT = process.rloo(rewards_BT, learn_BT, jnp.ones((1, 2), bool))
    >>> [round(float(x), 2) for x in advantages_BT[:, 0]]
    [0.8, -4.0]
  """
  rewards_PGT, mean_PG, n_P1 = _groups(rewards_BT, learn_BT, learn_PG)
  rivals_P1 = jnp.maximum(n_P1 - 1, 1).astype(mean_PG.dtype)
  total_P1 = jnp.sum(mean_PG, axis=1, keepdims=True)
  if loo == "code":
    mean_P1 = total_P1 / jnp.maximum(n_P1, 1)
    centred_PGT = (n_P1 / rivals_P1)[:, :, None] * (rewards_PGT - mean_P1[:, :, None])
  else:
    baseline_PG = (total_P1 - mean_PG) / rivals_P1
    centred_PGT = rewards_PGT - baseline_PG[:, :, None]
  return _to_go(centred_PGT, learn_BT, learn_PG & (n_P1 > 1), gamma)


@method(centres=True, adds_later=True)
def totals_loo(rewards_BT: Array, learn_BT: Array, learn_PG: Array, *,
               gamma: ranges.Share = 1.0) -> Array:
  """Process rewards to go against the totals of the prompt's other completions.

    A_t = G_t - 1/(n-1) sum_{j != i} G_j1    G_t = sum_{s >= t} gamma^(s-t) r_s

  The baseline is one number for all tokens of y_i and a function of the other completions only.
  E[grad log pi(y_t)] = 0 given what comes before t, also where it decides whether there is a
  token t, so that the baseline adds nothing to the expected gradient: with gamma=1 it is that of
  E[sum_t r_t], for completions of any length. `rloo` and `grpo` are biased by their length term.

  Source: RLOO, Ahmadian et al. 2024, arXiv:2402.14740, with the sum of process rewards as its
  reward and the rewards before t, which the token does not change, left out. Differs from the
  paper: it has one reward for the completion.

  Args, Returns: as `rloo`.
  Example:
    Totals of 1 each, in 2 and in 4 tokens.

    >>> learn_BT = jnp.arange(4)[None] < jnp.array([[2], [4]])
    >>> process.totals_loo(learn_BT / jnp.array([[2.], [4.]]), learn_BT, jnp.ones((1, 2), bool))
    Array([[ 0.  , -0.5 ,  0.  ,  0.  ],
           [ 0.  , -0.25, -0.5 , -0.75]], dtype=float32)
  """
  returns_BT = _to_go(rewards_BT, learn_BT, learn_PG, gamma)
  first_B1 = jnp.argmax(learn_BT, axis=1)[:, None]
  total_PG = jnp.take_along_axis(returns_BT, first_B1, axis=1).reshape(learn_PG.shape)
  n_P1 = jnp.sum(learn_PG, axis=1, keepdims=True)
  baseline_PG = (jnp.sum(total_PG, axis=1, keepdims=True) - total_PG) / jnp.maximum(n_P1 - 1, 1)
  counts_B1 = (learn_PG & (n_P1 > 1)).reshape(-1, 1)
  return masked.where_valid(returns_BT - baseline_PG.reshape(-1, 1), learn_BT & counts_B1)


@method
def masked_steps(rewards_BT: Array, learn_BT: Array, learn_PG: Array) -> Array:
  """SPRO's masked step advantage: the sum up to a token against the same place of the others.

    A_t = R_it - mean_j R_jt    R_it = sum_{s <= t} r_is

  The mean is over the completions of the prompt that have a token t, this one included. Unlike in a
  return, the rewards before t count and those after it do not.

  Source: Fei et al. 2025, arXiv:2507.01551, eq. 11 and 12. Differs from the paper: nothing known;
  only descriptions of the equations were found, which do not say whether y_i is part of its mean.

  Args:
    rewards_BT: process rewards, such as rewards.implicit.own; anything on padding.
    learn_BT, learn_PG: bool.
  Returns:
    advantages_BT, 0 on padding, where not valid, and where no other completion has a token t.
  Example:
    >>> learn_BT = jnp.array([[True, True], [True, False]])
    >>> process.masked_steps(jnp.array([[1., 2.], [3., 0.]]), learn_BT, jnp.ones((1, 2), bool))
    Array([[-1.,  0.],
           [ 1.,  0.]], dtype=float32)
  """
  learn_BT = learn_BT & learn_PG.reshape(-1, 1)
  by_group = lambda x_BT: x_BT.reshape(*learn_PG.shape, -1)
  sums_PGT = by_group(jnp.cumsum(masked.where_valid(rewards_BT, learn_BT), axis=1))
  mean_P1T = masked.mean(sums_PGT, by_group(learn_BT), axis=1, keepdims=True)
  return masked.where_valid((sums_PGT - mean_P1T).reshape(learn_BT.shape), learn_BT)


@method(adds_later=True)
def rloo_steps(rewards_BT: Array, step_ends_BT: Array, learn_BT: Array, learn_PG: Array, *,
               unit: Literal["token", "step"] = "token") -> Array:
  """PURE's leave-one-out advantage of step rewards, with a baseline per token or step.

    A_t = sum_{k >= step of t} (r_k - b_i n_k)    R_j = sum of r over y_j
    token:  b_i = sum_{j != i} R_j / sum_{j != i} L_j        n_k = tokens of step k
    step:   b_i = 1/(n-1) sum_{j != i} R_j / K_j             n_k = 1

  with L_j tokens and K_j steps in y_j. With unit="step" short answers of few
  steps win, as the authors warn.

  Source: Cheng et al. 2025, arXiv:2504.15275, in the form of its released code.
  Differs from the code: it gives advantage 0 to the tokens that end a step, which
  are separators and EOS there and need not be here; they count in n_k here.

  Args:
    rewards_BT: step rewards, such as rewards.steps.refine; anything on padding.
    step_ends_BT: bool; what comes after the last step is not paid for.
    learn_BT: bool.
    learn_PG: bool.
    unit: token or step.
  Returns:
    advantages_BT, 0 on padding and where not valid.
  Raises:
    ValueError: unknown unit.
  Example:
    >>> rewards_BT, ends_BT = jnp.array([[0., 1.], [0., 0.]]), jnp.array([[False, True]] * 2)
    >>> process.rloo_steps(rewards_BT, ends_BT, jnp.ones((2, 2), bool), jnp.ones((1, 2), bool))
    Array([[ 1.,  1.],
           [-1., -1.]], dtype=float32)
  """
  ends_BT = step_ends_BT & learn_BT
  counted_BT = learn_BT if unit == "token" else ends_BT
  reward_PG = jnp.sum(rewards_BT, axis=1).reshape(learn_PG.shape)
  size_PG = jnp.sum(counted_BT, axis=1).reshape(learn_PG.shape).astype(reward_PG.dtype)
  n_P1 = jnp.sum(learn_PG, axis=1, keepdims=True)
  if unit == "step":
    reward_PG = reward_PG / jnp.maximum(size_PG, 1)
    size_PG = learn_PG.astype(reward_PG.dtype)
  others = lambda x_PG: jnp.sum(x_PG, axis=1, keepdims=True) - x_PG
  baseline_PG = others(reward_PG) / jnp.maximum(others(size_PG), 1)
  starts_BT = jnp.pad(ends_BT[:, :-1], ((0, 0), (1, 0)), constant_values=True)
  n_BT = masked.accumulate(counted_BT.astype(rewards_BT.dtype), ~starts_BT)
  centred_BT = rewards_BT - masked.where_valid(baseline_PG.reshape(-1, 1) * n_BT, ends_BT)
  return _to_go(centred_BT, learn_BT, learn_PG & (n_P1 > 1), 1.0)


@method(adds_later=True)
def grpo(rewards_BT: Array, learn_BT: Array, learn_PG: Array, *, gamma: ranges.Share = 1.0,
         eps: ranges.Positive = 1e-6, std_floor: ranges.NotNegative = 0.0) -> Array:
  """GRPO with process rewards.

    A_t = sum_{s >= t} gamma^(s-t) (r_s - mean_j m_j) / (std_j m_j + eps)

  Source: arXiv:2502.01456, eq. 7, its process part. Differs from the paper: it
  states neither std's convention nor eps; std is unbiased. Few completions can
  have nearly equal means, hence std_floor. It contains the length term that this
  module describes.

  Args:
    eps, std_floor: in units of the token rewards; std is at least std_floor.
    Otherwise, and Returns: as `rloo`.
  Example:
    >>> process.grpo(jnp.array([[1.], [0.]]), jnp.ones((2, 1), bool),
    ...              jnp.ones((1, 2), bool)).round(2)
    Array([[ 0.71],
           [-0.71]], dtype=float32)
  """
  rewards_PGT, mean_PG, n_P1 = _groups(rewards_BT, learn_BT, learn_PG)
  mean_P1 = masked.mean(mean_PG, learn_PG, axis=1, keepdims=True)
  std_P1 = masked.root(masked.var(mean_PG, learn_PG, axis=1, keepdims=True))
  scaled_PGT = ((rewards_PGT - mean_P1[:, :, None])
                / (jnp.maximum(std_P1, std_floor) + eps)[:, :, None])
  return _to_go(scaled_PGT, learn_BT, learn_PG & (n_P1 > 1), gamma)


@method
def grpo_tokens(rewards_BT: Array, learn_BT: Array, learn_PG: Array, *,
                eps: ranges.Positive = 1e-6) -> Array:
  """GRPO of token rewards, each against all tokens of the prompt's completions.

    A_t = (r_t - mean r) / (std r + eps),   over the tokens of all valid completions

  Source: CAPO, Xie et al. 2025, arXiv:2508.02298. Differs from the paper: its
  convention of std and eps are not known; std is unbiased and eps as in group.grpo.

  Args:
    eps: in units of the rewards.
    Otherwise, and Returns: as `rloo`.
  Example:
    >>> process.grpo_tokens(jnp.array([[1.], [0.]]), jnp.ones((2, 1), bool),
    ...                     jnp.ones((1, 2), bool)).round(2)
    Array([[ 0.71],
           [-0.71]], dtype=float32)
  """
  counts_PG = learn_PG & (jnp.sum(learn_PG, axis=1, keepdims=True) > 1)
  mask_PX = (learn_BT & counts_PG.reshape(-1)[:, None]).reshape(len(learn_PG), -1)
  rewards_PX = masked.where_valid(rewards_BT.reshape(mask_PX.shape), mask_PX)
  # Below the largest: a prompt without signal gets exactly 0, also under jit.
  largest_P1 = jnp.max(rewards_PX, axis=1, where=mask_PX, initial=-jnp.inf, keepdims=True)
  below_PX = masked.where_valid(rewards_PX - largest_P1, mask_PX)
  mean_P1 = masked.mean(below_PX, mask_PX, axis=1, keepdims=True)
  std_P1 = masked.root(masked.var(below_PX, mask_PX, axis=1, keepdims=True))
  return masked.where_valid((below_PX - mean_P1) / (std_P1 + eps), mask_PX).reshape(learn_BT.shape)


@method(adds_later=True)
def reinforce(rewards_BT: Array, learn_BT: Array, learn_PG: Array, *,
              gamma: ranges.Share = 1.0) -> Array:
  """Process rewards to go, no baseline.

    A_t = sum_{s >= t} gamma^(s-t) r_s

  Source: arXiv:2502.01456, eq. 8, its process part. Differs from the paper:
  nothing known.

  Args, Returns: as `rloo`.
  Example:
    >>> process.reinforce(jnp.array([[1., 2.]]), jnp.ones((1, 2), bool), jnp.array([[True]]))
    Array([[3., 2.]], dtype=float32)
  """
  return _to_go(rewards_BT, learn_BT, learn_PG, gamma)


@method(adds_later=True)
def steps(rewards_BT: Array, step_ends_BT: Array, learn_BT: Array, learn_PG: Array, *,
          gamma: ranges.Share = 0.0) -> Array:
  """Rewards of steps to go on every token of the step, no baseline.

    A_t = sum_{k >= step of t} gamma^(k - step of t) r_k

  With gamma=0 a step, which is one action, has its own reward and no other.

  Source: the process part of PAV, Setlur et al. 2024, arXiv:2410.08146, whose
  gradient weighs a step by Q + alpha A, with gamma=0 and alpha as the term's coef.
  Differs from the paper: nothing known.

  Args:
    rewards_BT: step rewards, such as rewards.steps.refine; anything on padding.
    step_ends_BT: bool; tokens after the last step get 0.
    gamma: discount per step.
    Otherwise, and Returns: as `rloo`.
  Example:
    >>> rewards_BT, ends_BT = jnp.array([[0., 1., 0., 2.]]), jnp.array([[False, True, False, True]])
    >>> process.steps(rewards_BT, ends_BT, jnp.ones((1, 4), bool), jnp.array([[True]]))
    Array([[1., 1., 2., 2.]], dtype=float32)
  """
  ends_BT = step_ends_BT & learn_BT
  return masked.accumulate(masked.where_valid(rewards_BT, ends_BT),
                           jnp.where(ends_BT, gamma, 1.0), reverse=True)


@method
def steps_loo(rewards_BT: Array, step_ends_BT: Array, learn_BT: Array, learn_PG: Array, *,
              clip: ranges.Positive = 1.0, include_last: bool = False) -> Array:
  """A step's own reward against the same step of the prompt's other completions, clipped.

    A_t = clip(R_ik - mean_{j != i} R_jk, -clip, clip)    R_ik = sum of r over step k of y_i

  for the tokens t of step k; the mean is over the completions that have a step k that counts. A sum
  over later steps would add their noise. The baseline removes a reward that all completions have
  at this step, so that the number of steps is not rewarded. The clip limits the effect of an error
  of the PRM.

  Source: the process part of PAV, arXiv:2410.08146, which has no later steps either. Differs
  from the paper: the baseline, which is that of RLOO, arXiv:2402.14740, at each step, and the clip.

  Args:
    rewards_BT: rewards of tokens or steps; anything on padding.
    step_ends_BT: bool; what follows the last end (EOS) belongs to the last step.
    clip: in units of the rewards.
    include_last: whether the last step of a completion counts. It states the answer, which the
      outcome reward covers.
    Otherwise: as `rloo`.
  Returns:
    advantages_BT, 0 on padding, where not valid, and where no other completion has the step.
  Example:
    >>> rewards_BT = jnp.array([[2., 0., 0.], [0., 1., 0.]])
    >>> ends_BT = jnp.array([[True, False, True], [False, True, True]])
    >>> process.steps_loo(rewards_BT, ends_BT, jnp.ones((2, 3), bool), jnp.ones((1, 2), bool))
    Array([[ 1.,  0.,  0.],
           [-1., -1.,  0.]], dtype=float32)
  """
  rewards_BK, has_BK, step_BT = _sum_steps(rewards_BT, step_ends_BT, learn_BT, include_last)
  by_group = lambda x_BK: x_BK.reshape(*learn_PG.shape, -1)
  has_PGK = by_group(has_BK) & learn_PG[:, :, None]
  rewards_PGK = masked.where_valid(by_group(rewards_BK), has_PGK)
  n_P1K = jnp.sum(has_PGK, axis=1, keepdims=True)
  others_PGK = jnp.sum(rewards_PGK, axis=1, keepdims=True) - rewards_PGK
  centred_PGK = jnp.clip(rewards_PGK - others_PGK / jnp.maximum(n_P1K - 1, 1), -clip, clip)
  centred_PGK = masked.where_valid(centred_PGK, has_PGK & (n_P1K > 1))
  return masked.where_valid(
      jnp.take_along_axis(centred_PGK.reshape(learn_BT.shape), step_BT, axis=1), learn_BT)


@method
def bounded_steps(rewards_BT: Array, step_ends_BT: Array, learn_BT: Array, learn_PG: Array, *,
                  low: ranges.NotPositive = -5.0, high: ranges.NotNegative = 1.0,
                  include_last: bool = False) -> Array:
  """A step's own reward within bounds, without a baseline (`steps`, gamma=0, has no bounds).

    A_t = clip(R_k, low, high)    R_k = sum of r over step k, for the tokens t of step k

  A PRM's reward of a step is the change of its log-odds. It is large where a step corrects the
  mistake of the step before, so a policy could collect it by making mistakes; `high` limits that.
  In a baseline such a reward would punish the right steps of the other completions. Without a
  baseline, however, a policy whose steps mostly have negative rewards learns to write fewer of
  them: where completions may have any number of steps, use `steps_loo`.

  Source: the process part of PAV, arXiv:2410.08146, which has no later steps and no baseline
  either. Differs from the paper: the bounds.

  Args:
    low, high: in units of the rewards.
    Otherwise: as `steps_loo`.
  Returns:
    advantages_BT, 0 on padding and where not valid.
  Example:
    >>> rewards_BT, ends_BT = jnp.array([[2., -9., .5, 3.]]), jnp.array([[1, 1, 0, 1]], bool)
    >>> process.bounded_steps(rewards_BT, ends_BT, jnp.ones((1, 4), bool), jnp.array([[True]]))
    Array([[ 1., -5.,  0.,  0.]], dtype=float32)
  """
  rewards_BK, has_BK, step_BT = _sum_steps(rewards_BT, step_ends_BT, learn_BT, include_last)
  bounded_BK = masked.where_valid(jnp.clip(rewards_BK, low, high), has_BK & learn_PG.reshape(-1, 1))
  return masked.where_valid(jnp.take_along_axis(bounded_BK, step_BT, axis=1), learn_BT)


@method
def value_baseline(rewards_BT: Array, learn_BT: Array, learn_PG: Array) -> Array:
  """The PRM as a value model: minus the value before the token.

    A_t = - v(y_<t) = - sum_{s < t} r_s

  Added to an outcome spread over the tokens this is A_t = r_o - v(y_<t).

  Source: arXiv:2502.01456, section 5.4, variant 3. Differs from the paper:
  nothing known. Use rewards with norm="none": v is in units of the outcome.

  Args, Returns: as `rloo`.
  Example:
    >>> process.value_baseline(jnp.array([[1., 2.]]), jnp.ones((1, 2), bool), jnp.array([[True]]))
    Array([[ 0., -1.]], dtype=float32)
  """
  return rewards_BT - jnp.cumsum(rewards_BT, axis=1)


def _sum_steps(rewards_BT, step_ends_BT, learn_BT, include_last):
  """The summed reward of each step, whether the step counts, and each token's step.

  There are as many columns of steps (K) as tokens.
  """
  ends_BT = masked.step_ends(step_ends_BT, learn_BT)
  step_BT = jnp.cumsum(ends_BT, axis=1) - ends_BT
  row_B1 = jnp.arange(len(learn_BT))[:, None]
  by_step = lambda x_BT: jnp.zeros(x_BT.shape, x_BT.dtype).at[row_B1, step_BT].add(x_BT)
  counts_BT = ends_BT if include_last else ends_BT & ~masked.last(learn_BT)
  return (by_step(masked.where_valid(rewards_BT, learn_BT)), by_step(counts_BT.astype(int)) > 0,
          step_BT)


def _groups(rewards_BT, learn_BT, learn_PG):
  """rewards_PGT and each completion's token mean, 0 where not valid; n per prompt."""
  mean_PG = masked.mean(rewards_BT, learn_BT, axis=1).reshape(learn_PG.shape)
  return (rewards_BT.reshape(*learn_PG.shape, -1), mean_PG,
          jnp.sum(learn_PG, axis=1, keepdims=True))


def _to_go(rewards, learn_BT, counts_PG, gamma):
  """Return-to-go of the completions that count, [B, T]."""
  learn_BT = learn_BT & counts_PG.reshape(-1)[:, None]
  return temporal.return_to_go(rewards.reshape(learn_BT.shape), learn_BT, gamma=gamma)
