"""Estimators against the exact gradient of a policy that chooses how long its completions are."""
import functools
import itertools

import jax
import numpy as np
import pytest

from rlx.advantages import process, turns

T, G, STOP = 3, 2, 2
REWARDS_TA = np.array([[-.8, 0., -.1], [-.7, .3, -.6], [-1., -.2, -.3]])  # Of action A at step T.
LOGITS_TA = np.array([[.4, -.2, .1], [-.3, .5, .2], [.6, 0., -.4]])


@functools.cache
def completions():
  """All completions that end with STOP or have T tokens: (tokens_BT, lengths_B, probability_B)."""
  rows = [x for n in range(1, T + 1) for x in itertools.product(range(3), repeat=n)
          if STOP not in x[:-1] and (n == T or x[-1] == STOP)]
  tokens_BT = np.array([x + (0,) * (T - len(x)) for x in rows])
  lengths_B = np.array([len(x) for x in rows])
  return tokens_BT, lengths_B, np.exp(np.sum(score(tokens_BT, lengths_B)[0], axis=1))


def score(tokens_BT, lengths_B):
  """(log-probs, their gradients with respect to LOGITS_TA) of tokens; 0 on padding."""
  probs_TA = np.exp(LOGITS_TA) / np.exp(LOGITS_TA).sum(axis=1, keepdims=True)
  mask_BT = np.arange(T) < lengths_B[:, None]
  one_hot_BTA = np.eye(3)[tokens_BT]
  gradient_BTTA = np.einsum("ts,bta->btsa", np.eye(T), one_hot_BTA - probs_TA)
  return (np.log(np.sum(one_hot_BTA * probs_TA, axis=2)) * mask_BT,
          gradient_BTTA * mask_BT[..., None, None])


def expected_gradient(estimate):
  """E[mean_i sum_t A_it grad log pi(y_it)] over all pairs of completions of one prompt."""
  tokens_BT, lengths_B, probability_B = completions()
  pairs_B = np.array(list(itertools.product(range(len(tokens_BT)), repeat=G))).reshape(-1)
  tokens_BT, lengths_B, p_PG = tokens_BT[pairs_B], lengths_B[pairs_B], probability_B[pairs_B]
  learn_BT = np.arange(T) < lengths_B[:, None]
  rewards_BT = np.where(learn_BT, REWARDS_TA[np.arange(T), tokens_BT], np.nan)
  with jax.enable_x64(True):
    learn_PG = np.ones((len(pairs_B) // G, G), bool)
    advantages_BT = np.asarray(estimate(rewards_BT, learn_BT, learn_PG))
  weight_B = np.repeat(np.prod(p_PG.reshape(-1, G), axis=1), G) / G
  return np.einsum("b,bt,btsa->sa", weight_B, advantages_BT, score(tokens_BT, lengths_B)[1])


def exact_gradient():
  """Of E[sum of rewards]."""
  tokens_BT, lengths_B, probability_B = completions()
  learn_BT = np.arange(T) < lengths_B[:, None]
  total_B = np.sum(REWARDS_TA[np.arange(T), tokens_BT] * learn_BT, axis=1)
  return np.einsum("b,btsa->sa", probability_B * total_B, score(tokens_BT, lengths_B)[1])


def of_turns(fn, **options):
  """An estimator of turns for completions in which each token is a turn."""
  return lambda rewards_BT, learn_BT, learn_PG: fn(
      rewards_BT, np.broadcast_to(np.arange(T), learn_BT.shape), learn_BT, learn_PG, **options)


@pytest.mark.parametrize("estimate, bias", [
    (process.totals_loo, 0), (process.reinforce, 0), (of_turns(turns.totals_loo), 0),
    (process.rloo, .509), (functools.partial(process.rloo, loo="strict"), .412),
    (of_turns(turns.grpo, use_std=False), .667), (of_turns(turns.loo), .183)], ids=range(7))
def test_the_bias_of_an_estimator_by_enumeration(estimate, bias):
  """Norm of the error of the expected gradient, divided by that of the exact one."""
  exact = exact_gradient()
  assert completions()[2].sum() == pytest.approx(1) and np.linalg.norm(exact) > .1
  error = np.linalg.norm(expected_gradient(estimate) - exact) / np.linalg.norm(exact)
  assert error == pytest.approx(bias, abs=1e-9 if bias == 0 else 1e-3)
