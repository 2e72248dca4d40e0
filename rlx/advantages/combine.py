"""Combines reward terms to one advantage per token.

A term is one reward (outcome, process, a penalty ...). PRIME estimates each
term's advantages and adds them; most papers add the terms and then estimate.
Both are `estimate`, called once per term or once on the sum of placed terms.
"""
import jax.numpy as jnp
from jax import Array

from rlx.core import masked, ranges, resolve
from rlx.core.method import method


def estimate(rewards, scored, gamma, fn, **state):
  """Advantages of one term.

  Args:
    rewards: [B] or [B, T].
    scored: the batch.
    gamma: discount of `spread`; estimators that know time have their own.
    fn: estimator, see `resolve.resolve`; gives [P, G], which is spread over
      the tokens, or [B, T], which is taken as it is.
    state: what the estimator keeps between steps.
  Returns:
    advantages_BT, 0 on padding and on rows that are not valid.
    {name: metric} and {name: next state} of the estimator, see `resolve.split`.
  """
  advantages, metrics, state = resolve.split(fn(with_rewards(scored, rewards), **state))
  if advantages.shape != scored.learn_BT.shape:
    return spread(advantages, scored.learn_BT, gamma=gamma), metrics, state
  return masked.where_valid(advantages, scored.learn_BT), metrics, state


def with_rewards(scored, rewards):
  """The batch with the rewards of one term as estimators read them.

  Args:
    rewards: [B] or [B, T].
  Returns:
    a batch with rewards_B, in which token rewards are summed over the completion, and rewards_BT,
    in which the reward of a completion is on its last token.
  """
  learn_BT = scored.learn_BT
  if rewards.ndim == 1:
    return scored.replace(rewards_B=rewards, rewards_BT=place(rewards, learn_BT))
  return scored.replace(rewards_B=masked.total(rewards, learn_BT, axis=1), rewards_BT=rewards)


@method
def spread(advantages_PG: Array, learn_BT: Array, *, gamma: ranges.Share = 1.0) -> Array:
  """An advantage of the completion on each of its tokens.

    A_t = gamma^(L - 1 - t) A     L = tokens of the completion

  which is the discounted return-to-go of A placed on the last token. Tokens
  outside the mask do not count as time.

  Example:
    >>> combine.spread(jnp.array([[1.]]), jnp.ones((1, 3), bool), gamma=.5)
    Array([[0.25, 0.5 , 1.  ]], dtype=float32)
  """
  advantages_BT = jnp.broadcast_to(advantages_PG.reshape(-1, 1), learn_BT.shape)
  if gamma != 1.0:
    after_BT = jnp.sum(learn_BT, axis=1, keepdims=True) - jnp.cumsum(learn_BT, axis=1)
    base = jnp.asarray(gamma, advantages_BT.dtype)
    advantages_BT = advantages_BT * base ** jnp.maximum(after_BT, 0)
  return advantages_BT


@method
def place(rewards: Array, learn_BT: Array) -> Array:
  """Rewards per token: [B] goes to the last valid token, [B, T] stays where it is.

  An empty completion has no token and gets nothing.

  Example:
    >>> combine.place(jnp.array([1.]), jnp.array([[True, True, False]]))
    Array([[0., 1., 0.]], dtype=float32)
  """
  if rewards.ndim == 2: return rewards
  return masked.where_valid(rewards[:, None], masked.last(learn_BT))
