"""Advantages that configs of papers give, worked by hand."""
import importlib
import types

import jax.numpy as jnp
import numpy as np
import pytest

from rlx import build
from rlx import methods
from rlx.core import records

# Two completions of a prompt, of two steps of two tokens each.
ENDS_BT = jnp.array([[False, True, False, True]] * 2)


def advantages(key, outcome_B, *, changes=(), **fields):
  """Of completions of four tokens, two of each prompt."""
  c = importlib.import_module(f"configs.papers.{key}").get_config()
  for section, values in dict(changes).items(): c.rewards[section].update(values)
  scored = records.Batch(action_BT=jnp.ones((len(outcome_B), 4), bool), group=2,
                          outcome_B=jnp.array(outcome_B), **fields)
  of = build.advantage_of(c, methods.resolved(c))
  state = types.SimpleNamespace(kl_coef=c.kl.coef, step=1000)
  return of(state, scored)[0].advantages_BT


def test_pav():
  # Values 1 to 1 to 1 and 1 to 1 to 0; leave-one-out of the verdicts is 1 and -1.
  scores_BT = jnp.array([[np.nan, 1., np.nan, 1.], [np.nan, 1., np.nan, 0.]])
  got_BT = advantages("pav", [1., 0.], step_scores_BT=scores_BT, step_ends_BT=ENDS_BT)
  np.testing.assert_allclose(got_BT, [[1, 1, 1, 1], [-1, -1, -6, -6]], atol=1e-6)


@pytest.mark.parametrize("outcome, steps, expected", [(3.0, 1.0, 1), (1.0, 3.0, -1)])
def test_gdpo(outcome, steps, expected):
  # The rewards rank the completions oppositely, with equal z-scores: the weights decide,
  # and not that the verdicts are further apart than the shares of right steps.
  scores_BT = jnp.array([[0., .5, 0., .5], [0., .5, 0., .6]])
  got_BT = advantages("gdpo", [1., 0.], step_scores_BT=scores_BT, step_ends_BT=ENDS_BT,
                      changes=dict(outcome=dict(coef=outcome), steps=dict(coef=steps)))
  np.testing.assert_allclose(got_BT, [[expected] * 4, [-expected] * 4], rtol=.1)


def test_capo():
  # Token rewards 2, 2, 1, 1 of a right answer with a wrong second step, and 0, 0, 0, 0:
  # mean 3/4 and variance (2 * 1.25^2 + 2 * .25^2 + 4 * .75^2) / 7 = 11/14.
  scores_BT = jnp.array([[0., 1., 0., 0.], [0., 1., 0., 1.]])
  got_BT = advantages("capo", [1., 0.], step_scores_BT=scores_BT, step_ends_BT=ENDS_BT)
  np.testing.assert_allclose(
      got_BT, np.array([[1.25, 1.25, .25, .25], [-.75] * 4]) / np.sqrt(11 / 14), rtol=1e-5)


def test_verpo():
  # Both pass the first test, one the second: rates 1 and 1/2, not near each other, so
  # that only the second counts, with e^-1, and the verdict with 1.
  got_BT = advantages("verpo", [1., 0.], scores_BE=jnp.array([[1., 1.], [1., 0.]]))
  gain = (1 + np.exp(-1)) / 2
  np.testing.assert_allclose(got_BT, [[gain] * 4, [-gain] * 4], rtol=1e-4)


@pytest.mark.parametrize("outcome_B, size", [([1., 1.], 1 / np.sqrt(2)), ([0., 0.], 0)])
def test_gra(outcome_B, size):
  # Two right answers differ by their steps, two wrong ones by nothing.
  scores_BT = jnp.array([[0., 1., 0., 1.], [0., 1., 0., 0.]])
  got_BT = advantages("gra", outcome_B, step_scores_BT=scores_BT, step_ends_BT=ENDS_BT)
  np.testing.assert_allclose(got_BT, [[size] * 4, [-size] * 4], atol=1e-5)
