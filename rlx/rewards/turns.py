"""Rewards of the turns of an episode, as the environment gave them.

`turn_rewards_BT` has the environment's reward of a turn on the turn's last token, where
`turn_ends_BT` is True; NaN: it gave none. What is returned is 0 on tokens that were read, on
padding and on rows that are not valid.

The verdict on an episode is the environment's. Of an environment that gives none, it is the sum of
the turns' rewards, clipped to [0, 1]. `top="last"` takes the reward of the last turn for the
outcome instead.
"""
from typing import Literal

import jax.numpy as jnp
from jax import Array

from rlx.core import masked, ranges
from rlx.core.method import method
from rlx.rewards import _segments


@method
def environment(turn_rewards_BT: Array, turn_ends_BT: Array, learn_BT: Array) -> Array:
  """The environment's rewards, each on the last token of its turn.

    r_t = reward of the turn that ends with token t, 0 where there is none

  An environment also gives what papers compute from the effect of an action, such as
  2 solved / (calls + 1) for tool calls of which some solve a sub-question, Ye et al. 2025,
  arXiv:2508.08791, or the decrease of the number of diagnostics, Zhang et al. 2025,
  arXiv:2510.22907.

  Source: the rewards r_t of GiGPO, Feng et al. 2025, arXiv:2505.10978. Differs from the paper:
  a turn without a reward has 0.

  Args:
    turn_rewards_BT: one per turn, NaN for none; anything on other tokens.
    turn_ends_BT: bool.
    learn_BT: bool.
  Returns:
    rewards_BT.
  Example:
    >>> turn_rewards_BT = jnp.array([[jnp.nan, .25, jnp.nan, 1.]])
    >>> ends_BT, learn_BT = jnp.array([[0, 1, 0, 1]], bool), jnp.array([[1, 1, 0, 1]], bool)
    >>> turns.environment(turn_rewards_BT, ends_BT, learn_BT)
    Array([[0.  , 0.25, 0.  , 1.  ]], dtype=float32)
  """
  return _segments.select_known(turn_rewards_BT, turn_ends_BT, learn_BT)[0]


@method(unread=dict(scores_BE=lambda options: len(options["thresholds"]) == 1))
def gate(turn_rewards_BT: Array, turn_ends_BT: Array, learn_BT: Array, outcome_B: Array,
         learn_B: Array, scores_BE: Array | None = None, *, thresholds: ranges.Numbers = (0.5,),
         top: Literal["verdict", "last"] = "verdict") -> Array:
  """G-RA: the rewards of turns count only if all that matters more is good enough.

    R = o + g_0 (s_1 + g_1 (s_2 + ... + g_E sum_k r_k))    g_e = 1[s_e >= threshold_e],  s_0 = o

  with r_k the environment's reward of turn k and s_1, s_2, ... the scores of verifier.scores, in
  the order of their priority. r_k is on the last token of turn k, s_e on the last token.

    verdict  o is the verdict. It is not in this reward, but a reward term of its own.
    last     o is the environment's reward of the last turn, 0 if it gave none. It is in this
             reward, and the r_k are those of the turns before.

  Source: Sun et al. 2025, arXiv:2508.10548, where a reward counts if all those of a higher
  priority meet their thresholds; its outcome is the reward of the last turn.
  Differs from the paper: the levels between outcome and turns are scores of the whole episode;
  how the paper's rewards of a turn open the gates of others could not be confirmed. The default
  of thresholds is ours.

  Args:
    turn_rewards_BT, turn_ends_BT, learn_BT: as `environment`.
    outcome_B: verdicts, NaN where not valid.
    learn_B: bool.
    scores_BE: anything where learn_B is False.
    thresholds: of the outcome and of each of the scores, in units of them. With one threshold
      no scores are read, and there are no levels in between.
    top: one of the above.
  Returns:
    rewards_BT.
  Raises:
    ValueError: an unknown top, or a number of thresholds that fits no levels.
  Example:
    >>> turn_rewards_BT, ends_BT = jnp.array([[.25, .5], [.25, 0.]]), jnp.ones((2, 2), bool)
    >>> learn_BT, learn_B, outcome_B = ends_BT, jnp.ones(2, bool), jnp.array([.75, .25])
    >>> turns.gate(turn_rewards_BT, ends_BT, learn_BT, outcome_B, learn_B)
    Array([[0.25, 0.5 ],
           [0.  , 0.  ]], dtype=float32)
  """
  between = [] if scores_BE is None else jnp.split(scores_BE, scores_BE.shape[1], axis=1)
  if len(thresholds) not in (1, 1 + len(between)):
    raise ValueError(f"thresholds={thresholds!r}: 1 for the outcome, and none or one for each of "
                     f"verifier.scores ({len(between)}).")
  rewards_BT, _, outcome_B1, own_BT = _levels(turn_rewards_BT, turn_ends_BT, learn_BT, outcome_B,
                                              top)
  is_open_B1, last_BT = outcome_B1 >= thresholds[0], masked.last(learn_BT)
  for score_B1, threshold in zip(between, thresholds[1:]):
    own_BT = own_BT + masked.where_valid(score_B1, is_open_B1 & last_BT)
    is_open_B1 = is_open_B1 & (score_B1 >= threshold)
  return own_BT + masked.where_valid(rewards_BT, is_open_B1)


@method
def renorm(turn_rewards_BT: Array, turn_ends_BT: Array, learn_BT: Array, outcome_B: Array,
           learn_B: Array, *, mu: ranges.Number = 1.0,
           top: Literal["verdict", "last"] = "verdict") -> Array:
  """PPR: the score of each turn before the last, shifted by the outcome o of its episode.

    r_k = p_k + o - mu    for k < K

  with p_k the environment's reward of turn k. The last turn has what `top` of `gate` says: with
  "verdict" nothing, since the outcome is a reward term of its own, with "last" o. With p_k and o
  in [0, 1] and mu=1 no turn of a failed episode has a reward above 0, and none of a solved one a
  reward below.

  Source: ReNorm of Principle Process Reward, Xu et al. 2025, arXiv:2509.25598, in the form of
  its released code, see steps.mix. Differs from the paper: the environment gives the scores,
  there a judge does. The code gives a turn without a score o - mu, here it has 0.

  Args:
    mu: centre, in units of the rewards.
    Otherwise: as `gate`.
  Returns:
    rewards_BT.
  Raises:
    ValueError: an unknown top.
  Example:
    >>> turn_rewards_BT, ends_BT = jnp.array([[.25, 1.], [.25, 0.]]), jnp.ones((2, 2), bool)
    >>> learn_BT, learn_B, outcome_B = ends_BT, jnp.ones(2, bool), jnp.array([1., .25])
    >>> turns.renorm(turn_rewards_BT, ends_BT, learn_BT, outcome_B, learn_B, top="last")
    Array([[ 0.25,  1.  ],
           [-0.75,  0.  ]], dtype=float32)
  """
  rewards_BT, known_BT, outcome_B1, own_BT = _levels(turn_rewards_BT, turn_ends_BT, learn_BT,
                                                     outcome_B, top)
  before_BT = known_BT & ~masked.last(learn_BT)
  return own_BT + masked.where_valid(rewards_BT + outcome_B1 - mu, before_BT)


def _levels(turn_rewards_BT, turn_ends_BT, learn_BT, outcome_B, top):
  """The rewards of turns and where there are any, the outcome [B, 1], and what is part of the
  reward as it is."""
  rewards_BT, known_BT = _segments.select_known(turn_rewards_BT, turn_ends_BT, learn_BT)
  if top == "verdict": return rewards_BT, known_BT, outcome_B[:, None], jnp.zeros_like(rewards_BT)
  last_BT = masked.last(learn_BT)
  own_BT = masked.where_valid(rewards_BT, last_BT)
  return (masked.where_valid(rewards_BT, ~last_BT), known_BT & ~last_BT,
          jnp.sum(own_BT, axis=1, keepdims=True), own_BT)
