"""Advantages of the turns of an episode: the policy's actions, between which it reads.

A discount is per turn: within a turn, and over the tokens that were read, it is 1. Estimators
that compare turns give all tokens of a turn the same advantage. What a turn earned is the sum of
the rewards on its tokens.

Episodes that are not valid are part of no baseline and get 0. Where all that a turn is compared
with has earned the same, its advantage is exactly 0.
"""
from typing import Literal

import jax
import jax.numpy as jnp
from jax import Array

from rlx.advantages import group
from rlx.core import masked, ranges
from rlx.core.method import method


@method
def to_go(rewards_BT: Array, turn_ends_BT: Array, learn_BT: Array, *,
          gamma: ranges.Share = 1.0) -> Array:
  """Rewards from each token on, discounted per turn, no baseline.

    G_t = r_t + d_t G_{t+1}     d_t = gamma if a turn ends with token t, else 1

  Source: the discounted return of a step in GiGPO, Feng et al. 2025, arXiv:2505.10978, eq. 5.
  Differs from the paper: it has one reward per step; of rewards on several tokens of a turn, a
  token has those from itself on.

  Args:
    rewards_BT: anything on padding and on tokens that were read.
    turn_ends_BT: bool.
    learn_BT: bool.
    gamma: discount per turn.
  Returns:
    advantages_BT, 0 outside of the mask.
  Example:
    >>> rewards_BT, ends_BT = jnp.array([[0., 1., 0., 2.]]), jnp.array([[0, 1, 0, 1]], bool)
    >>> turns.to_go(rewards_BT, ends_BT, jnp.ones((1, 4), bool), gamma=.5)
    Array([[2., 2., 2., 2.]], dtype=float32)
  """
  decay_BT = jnp.where(turn_ends_BT & learn_BT, jnp.asarray(gamma, rewards_BT.dtype), 1)
  return masked.accumulate(rewards_BT, decay_BT, reverse=True)


@method
def gae(rewards_BT: Array, turn_ends_BT: Array, learn_BT: Array, values_BT: Array, *,
        gamma: ranges.Share = 1.0, lam: ranges.Share = 1.0, token_lam: ranges.Share = 1.0) -> Array:
  """Generalized advantage estimation in which time is counted in turns.

    delta_t = r_t + d_t V_{t+1} - V_t      V after the last token = 0
    A_t = delta_t + d_t l_t A_{t+1}
    d_t, l_t = gamma, lam if a turn ends with token t, else 1, token_lam

  where t + 1 is the next token that the policy drew. With token_lam=1 the first token of a turn
  has the advantage of the turn as one action. temporal.gae has gamma and lam per token.

  Source: Schulman et al. 2016, arXiv:1506.02438, eq. 11-16. Differs from the paper: the steps
  have different discounts. Not whitened.

  Args:
    rewards_BT, values_BT: anything on padding and on tokens that were read. values_BT[b, t] is
      the value of the state in which token t is drawn.
    turn_ends_BT: bool.
    learn_BT: bool.
    gamma, lam: per turn.
    token_lam: per token within a turn.
  Returns:
    advantages_BT, 0 outside of the mask.
  Example:
    >>> rewards_BT, values_BT = jnp.array([[0., 1.]]), jnp.array([[.25, .5]])
    >>> turns.gae(rewards_BT, jnp.ones((1, 2), bool), jnp.ones((1, 2), bool), values_BT, gamma=.5)
    Array([[0.25, 0.5 ]], dtype=float32)
  """
  ends_BT = turn_ends_BT & learn_BT
  gamma_BT = jnp.where(ends_BT, jnp.asarray(gamma, values_BT.dtype), 1)
  # The value at this token or, outside of the mask, at the next one inside.
  carried_BT = masked.accumulate(values_BT, ~learn_BT, reverse=True)
  next_BT = jnp.pad(carried_BT[:, 1:], ((0, 0), (0, 1)))
  delta_BT = masked.where_valid(rewards_BT + gamma_BT * next_BT - values_BT, learn_BT)
  decay_BT = jnp.where(learn_BT, gamma_BT * jnp.where(ends_BT, lam, token_lam), 1)
  return masked.accumulate(delta_BT, decay_BT, reverse=True)


@method(centres=True)
def loo(rewards_BT: Array, turn_BT: Array, learn_BT: Array, learn_PG: Array, *,
        gamma: ranges.Share = 1.0) -> Array:
  """Each turn against the turns of the same number of the prompt's other episodes.

    A_ik = G_ik - mean_{j != i} G_jk      G_ik = R_ik + gamma G_i,k+1

  with R_ik the sum of the rewards of turn k of episode i; the mean is over the episodes that
  have a turn k. The others were in other states: this baseline removes what all turns k have in
  common. `prefix` compares with the same state.

  Source: RLOO, Ahmadian et al. 2024, arXiv:2402.14740, at each turn. Differs from the paper: it
  has one action, the completion. With gamma=1 turn 0 has the paper's advantage.

  Args:
    rewards_BT: anything on padding and on tokens that were read.
    turn_BT: number of the turn of each token; anything where learn_BT is False.
    learn_BT: bool.
    learn_PG: bool.
    gamma: discount per turn.
  Returns:
    advantages_BT, 0 outside of the mask and where no other episode has such a turn.
  Example:
    >>> rewards_BT, turn_BT = jnp.array([[1., 1.], [0., 0.]]), jnp.array([[0, 1], [0, 0]])
    >>> turns.loo(rewards_BT, turn_BT, jnp.ones((2, 2), bool), jnp.ones((1, 2), bool))
    Array([[ 2.,  0.],
           [-2., -2.]], dtype=float32)
  """
  rewards_BK, has_BK = _turns(rewards_BT, turn_BT, learn_BT, learn_PG)
  returns_BK = masked.accumulate(rewards_BK, gamma, reverse=True)
  kind_BK = jnp.broadcast_to(jnp.arange(has_BK.shape[1])[None], has_BK.shape)
  return _spread_over_tokens(_leave_one_out(returns_BK, kind_BK, has_BK, learn_PG), turn_BT,
                             learn_BT)


@method(centres=True)
def totals_loo(rewards_BT: Array, turn_BT: Array, learn_BT: Array, learn_PG: Array, *,
               gamma: ranges.Share = 1.0) -> Array:
  """Each turn's rewards to go against the totals of the prompt's other episodes.

    A_ik = G_ik - mean_{j != i} G_j0      G as in `loo`

  The baseline is one number for all turns of an episode and a function of the other episodes only,
  so that it adds nothing to the expected gradient, whatever the numbers of turns are. `loo` gives 0
  to the turns that no other episode has; the joint baseline of `grpo` is subtracted once for each
  later turn, so that its weight is the number of turns, which the policy chooses.

  Source: RLOO, Ahmadian et al. 2024, arXiv:2402.14740, with the sum of the rewards of turns, see
  `process.totals_loo`. Differs from the paper: it has one action, the completion.

  Args, Returns: as `loo`, but that all turns count.
  Example:
    Verdicts 1, 1 and 0 after one, two and one turns.

    >>> rewards_BT, turn_BT = jnp.array([[1., 0.], [0., 1.], [0., 0.]]), jnp.array([[0, 1]] * 3)
    >>> learn_BT = jnp.array([[True, False], [True, True], [True, False]])
    >>> turns.totals_loo(rewards_BT, turn_BT, learn_BT, jnp.ones((1, 3), bool))
    Array([[ 0.5,  0. ],
           [ 0.5,  0.5],
           [-1. ,  0. ]], dtype=float32)
  """
  rewards_BK, has_BK = _turns(rewards_BT, turn_BT, learn_BT, learn_PG)
  returns_BK = masked.accumulate(rewards_BK, gamma, reverse=True)
  total_PG = returns_BK[:, 0].reshape(learn_PG.shape)
  n_P1 = jnp.sum(learn_PG, axis=1, keepdims=True)
  baseline_PG = (jnp.sum(total_PG, axis=1, keepdims=True) - total_PG) / jnp.maximum(n_P1 - 1, 1)
  has_BK = has_BK & (learn_PG & (n_P1 > 1)).reshape(-1, 1)
  return _spread_over_tokens(masked.where_valid(returns_BK - baseline_PG.reshape(-1, 1), has_BK),
                             turn_BT, learn_BT)


@method
def grpo(rewards_BT: Array, turn_BT: Array, learn_BT: Array, learn_PG: Array, *,
         gamma: ranges.Share = 1.0, norm: Literal["joint", "separate"] = "joint",
         use_std: bool = True, eps: ranges.Positive = 1e-6) -> Array:
  """IGPO: z-scores of the rewards over all turns of the prompt's episodes, then to go.

    A_ik = sum_{l >= k} gamma^(l-k) z_il      z = (R - mean R) / (std R + eps)

  with R_ik the sum of the rewards of turn k of episode i. In "joint" mean and std are over all
  turns, in "separate" the last turns, which have the outcome, are apart from the others. The mean
  is subtracted once for each later turn, so with "joint" and gamma > 0 an episode of more turns
  is preferred where it is negative, and one of fewer where it is positive (`totals_loo`). With
  gamma=0 and use_std=False a turn has its own reward against the mean over all turns.

  Source: IGPO, Wang et al. 2025, arXiv:2510.14967, and its released code. gamma=0 with
  use_std=False is the step part of iStar, Liu et al. 2025, arXiv:2509.19199.
  Differs from the papers: std is unbiased (IGPO's code divides by the number of turns), and a
  turn whose reward is 0 counts (the code takes it for a token without a reward).

  Args:
    gamma: discount per turn.
    norm: joint or separate.
    use_std: False leaves the differences in units of the rewards.
    eps: in units of the rewards.
    Otherwise: as `loo`.
  Returns:
    advantages_BT, 0 outside of the mask and for a prompt with fewer than two valid episodes.
  Raises:
    ValueError: unknown norm.
  Example:
    >>> rewards_BT, turn_BT = jnp.array([[1., 3.], [2., 2.]]), jnp.array([[0, 1], [0, 1]])
    >>> turns.grpo(rewards_BT, turn_BT, jnp.ones((2, 2), bool), jnp.ones((1, 2), bool),
    ...            gamma=.5, use_std=False)
    Array([[-0.5,  1. ],
           [ 0. ,  0. ]], dtype=float32)
  """
  rewards_BK, has_BK = _turns(rewards_BT, turn_BT, learn_BT, learn_PG)
  counts_PG = learn_PG & (jnp.sum(learn_PG, axis=1, keepdims=True) > 1)
  has_BK = has_BK & counts_PG.reshape(-1, 1)
  kind_BK = (masked.last(has_BK) if norm == "separate" else jnp.zeros_like(has_BK)).astype(int)
  scores_BK = _scores(rewards_BK, kind_BK, has_BK, learn_PG, use_std, eps)[0]
  return _spread_over_tokens(masked.accumulate(scores_BK, gamma, reverse=True), turn_BT, learn_BT)


@method(centres=True)
def prefix(rewards_BT: Array, turn_BT: Array, turn_prefix_BT: Array, learn_BT: Array,
           learn_PG: Array, *, gamma: ranges.Share = 1.0,
           alone: Literal["zero", "episode"] = "zero") -> tuple[Array, dict[str, Array]]:
  """Each turn against the prompt's other turns after the same history.

    A_ik = G_ik - mean G_jl     over the (j, l) != (i, k) with the same tokens before them

  with G as in `loo`. This baseline is an estimate of the value of the state in which the turn is
  drawn and does not depend on the turn. A turn that is alone after its history has, for `alone`,

    zero     0
    episode  R_i - mean_{j != i} R_j, the leave-one-out advantage of its episode's sum of rewards

  With gamma=1 and "episode" all tokens have RLOO's advantage, unless a later turn has rivals.

  Source: the anchor states of GiGPO, Feng et al. 2025, arXiv:2505.10978, eq. 6 and 7, and the
  baseline of RLOO, Ahmadian et al. 2024, arXiv:2402.14740. Differs from the papers: the state is
  the whole history, see `gigpo`; the turn itself is not in its baseline; "episode" is neither's.

  Args:
    turn_prefix_BT: on each token of a turn a number that is equal for two turns of a prompt if
      their histories are; anything where learn_BT is False.
    gamma: discount per turn.
    alone: zero or episode.
    Otherwise: as `loo`.
  Returns:
    advantages_BT, 0 outside of the mask and for a prompt with fewer than two valid episodes.
    {"alone": share of the turns without a rival}.
  Raises:
    ValueError: unknown alone.
  Example:
    >>> rewards_BT, turn_BT = jnp.array([[0., 3.], [0., 1.], [1., 1.]]), jnp.array([[0, 1]] * 3)
    >>> prefix_BT = jnp.array([[0, 1], [0, 1], [0, 2]])
    >>> turns.prefix(rewards_BT, turn_BT, prefix_BT, jnp.ones((3, 2), bool),
    ...              jnp.ones((1, 3), bool))[0]
    Array([[ 1.5,  2. ],
           [-1.5, -2. ],
           [ 0. ,  0. ]], dtype=float32)
  """
  rewards_BK, has_BK = _turns(rewards_BT, turn_BT, learn_BT, learn_PG)
  returns_BK = masked.accumulate(rewards_BK, gamma, reverse=True)
  kind_BK = _histories(turn_prefix_BT, turn_BT, has_BK, learn_BT, learn_PG)
  advantages_BK = _leave_one_out(returns_BK, kind_BK, has_BK, learn_PG)
  alone_BK = has_BK & (_count(kind_BK, has_BK, learn_PG) < 2)
  if alone == "episode":
    episode_B1 = group.rloo(_episodes(rewards_BK, learn_PG), learn_PG).reshape(-1, 1)
    advantages_BK = jnp.where(alone_BK, episode_B1, advantages_BK)
  return (_spread_over_tokens(advantages_BK, turn_BT, learn_BT),
          {"alone": masked.mean(alone_BK.astype(rewards_BT.dtype), has_BK)})


@method(centres=True)
def gigpo(rewards_BT: Array, turn_BT: Array, turn_prefix_BT: Array, learn_BT: Array,
          learn_PG: Array, *, omega: ranges.Number = 1.0, gamma: ranges.Share = 1.0,
          use_std: bool = False, eps: ranges.Positive = 1e-6) -> tuple[Array, dict[str, Array]]:
  """GiGPO: an advantage of the episode, and one of the turn among those after the same history.

    A_ik = A^E_i + omega A^S_ik
    A^E_i = (R_i - mean_j R_j) / F      A^S_ik = (G_ik - mean G_jl) / F

  with R_i the sum of the rewards of episode i, G as in `loo`, and the mean of A^S over the turns
  with the history of turn k, itself included; F is 1, or with use_std the std plus eps. A turn
  that is alone after its history has A^S = 0.

  Source: Feng et al. 2025, arXiv:2505.10978, eq. 3 and 5-8. Differs from the paper: its states
  are equal if what the environment shows is equal, here only if all tokens before are, so that
  states are never met twice in an episode and groups are smaller. Its released code
  (langfengQ/verl-agent) counts an episode once for each of its steps in the mean of A^E; here,
  as in the paper, once. std is unbiased as in the code. The defaults are the code's, except for
  gamma, for which its scripts have 0.95.

  Args:
    omega: weight of A^S.
    gamma: discount per turn of G.
    use_std: whether F is the std.
    eps: in units of the rewards.
    Otherwise, and Returns: as `prefix`.
  Example:
    >>> rewards_BT, turn_BT = jnp.array([[0., 3.], [0., 1.], [1., 1.]]), jnp.array([[0, 1]] * 3)
    >>> prefix_BT = jnp.array([[0, 1], [0, 1], [0, 2]])
    >>> turns.gigpo(rewards_BT, turn_BT, prefix_BT, jnp.ones((3, 2), bool),
    ...             jnp.ones((1, 3), bool))[0]
    Array([[ 2.,  2.],
           [-2., -2.],
           [ 0.,  0.]], dtype=float32)
  """
  rewards_BK, has_BK = _turns(rewards_BT, turn_BT, learn_BT, learn_PG)
  returns_BK = masked.accumulate(rewards_BK, gamma, reverse=True)
  kind_BK = _histories(turn_prefix_BT, turn_BT, has_BK, learn_BT, learn_PG)
  turn_BK, n_BK = _scores(returns_BK, kind_BK, has_BK, learn_PG, use_std, eps)
  episode_PG = _episodes(rewards_BK, learn_PG)
  episode_PG = (group.grpo(episode_PG, learn_PG, eps=eps) if use_std else
                group.mean_baseline(episode_PG, learn_PG))
  advantages_BK = episode_PG.reshape(-1, 1) + omega * turn_BK
  return (_spread_over_tokens(advantages_BK, turn_BT, learn_BT),
          {"alone": masked.mean((n_BK < 2).astype(rewards_BT.dtype), has_BK)})


def _turns(rewards_BT, turn_BT, learn_BT, learn_PG):
  """The sum of the rewards of each turn, and whether an episode that is valid has the turn.

  There are as many columns of turns (K) as tokens. Sums over turns add up in the same order in
  all episodes, whatever the lengths of their turns: equal rewards have equal returns.
  """
  has_BT = learn_BT & learn_PG.reshape(-1, 1)
  at = jnp.arange(len(turn_BT))[:, None], jnp.where(has_BT, turn_BT, 0)
  return (jnp.zeros_like(rewards_BT).at[at].add(masked.where_valid(rewards_BT, has_BT)),
          jnp.zeros_like(has_BT).at[at].max(has_BT))


def _histories(turn_prefix_BT, turn_BT, has_BK, learn_BT, learn_PG):
  """A number below G K for the history of each turn, equal where a prompt's histories are."""
  at = jnp.arange(len(turn_BT))[:, None], jnp.where(learn_BT, turn_BT, 0)
  number_BK = jnp.full(has_BK.shape, -1).at[at].max(jnp.where(learn_BT, turn_prefix_BT, -1))
  number_PN = number_BK.reshape(len(learn_PG), -1)
  return jax.vmap(lambda x: jnp.searchsorted(jnp.sort(x), x))(number_PN).reshape(has_BK.shape)


def _spread_over_tokens(x_BK, turn_BT, learn_BT):
  """For each token the entry of its turn."""
  return jnp.take_along_axis(x_BK, jnp.where(learn_BT, turn_BT, 0), axis=1)


def _episodes(rewards_BK, learn_PG):
  """The sum of each episode's rewards, [P, G]."""
  return jnp.sum(rewards_BK, axis=1).reshape(learn_PG.shape)


def _reduce_by_kind(x_BK, kind_BK, learn_PG, combine):
  """For each turn the sum ("add") or maximum ("max") over the prompt's turns of its kind."""
  x_PN, kind_PN = (a.reshape(len(learn_PG), -1) for a in (x_BK, kind_BK))
  at = jnp.arange(len(x_PN))[:, None], kind_PN
  start_PN = jnp.full_like(x_PN, -jnp.inf) if combine == "max" else jnp.zeros_like(x_PN)
  return getattr(start_PN.at[at], combine)(x_PN)[at].reshape(x_BK.shape)


def _count(kind_BK, has_BK, learn_PG):
  """Turns of the same kind as each turn, itself included."""
  return _reduce_by_kind(has_BK.astype(jnp.int32), kind_BK, learn_PG, "add")


def _subtract_mean(x_BK, kind_BK, has_BK, learn_PG):
  """What exceeds the mean of the turns of the same kind, and their number; 0 for no turn."""
  # Below the largest: exactly 0 where all are equal, also under jit.
  largest_BK = _reduce_by_kind(jnp.where(has_BK, jax.lax.stop_gradient(x_BK), -jnp.inf), kind_BK,
                               learn_PG, "max")
  below_BK = masked.where_valid(x_BK - jnp.where(has_BK, largest_BK, 0), has_BK)
  n_BK = _count(kind_BK, has_BK, learn_PG)
  mean_BK = _reduce_by_kind(below_BK, kind_BK, learn_PG, "add") / jnp.maximum(n_BK, 1)
  return masked.where_valid(below_BK - mean_BK, has_BK), n_BK


def _leave_one_out(x_BK, kind_BK, has_BK, learn_PG):
  """Each turn minus the mean of the others of its kind; 0 where there is no other."""
  centred_BK, n_BK = _subtract_mean(x_BK, kind_BK, has_BK, learn_PG)
  return centred_BK * (n_BK.astype(x_BK.dtype) / jnp.maximum(n_BK - 1, 1))


def _scores(x_BK, kind_BK, has_BK, learn_PG, use_std, eps):
  """Each turn minus the mean of those of its kind, over their std if asked; their number."""
  centred_BK, n_BK = _subtract_mean(x_BK, kind_BK, has_BK, learn_PG)
  if not use_std: return centred_BK, n_BK
  var_BK = _reduce_by_kind(centred_BK**2, kind_BK, learn_PG, "add") / jnp.maximum(n_BK - 1, 1)
  return centred_BK / (masked.root(var_BK) + eps), n_BK
