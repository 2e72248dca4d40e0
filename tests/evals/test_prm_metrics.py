import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlx.evals import accuracy as accuracy_lib, prm_metrics

nan = np.nan


_accuracy = jax.jit(prm_metrics.accuracy, static_argnames="ties")


def accuracy(scores, outcome, **options):
  outcome_PG = np.array([outcome])
  scores_B1 = np.array(scores)[:, None]
  return float(_accuracy(scores_B1, np.zeros_like(scores_B1), np.ones_like(scores_B1, bool),
                         outcome_PG, ~np.isnan(outcome_PG), **options))


@pytest.mark.parametrize("scores, outcome, expected", [
    ([3., 2., 1.], [1., .5, 0.], 1.0), ([1., 2., 3.], [1., .5, 0.], 0.0),
    # Pairs (1,0) right, (1,0) wrong.
    ([2., 1., 3.], [1., 0., 0.], 0.5),
    # Weights 1, .5, .5: the far pair is right, one near one wrong.
    ([2., 3., 1.], [1., .5, 0.], 0.75),
    ([1., 1., 1.], [1., 0., 0.], 0.5),      # Ties are worth half.
    ([1., 2., 3.], [1., 1., 1.], 0.5),      # Nothing to order.
    ([1., nan, 0.], [1., nan, 0.], 1.0),    # The unknown one is excluded.
])
def test_accuracy(scores, outcome, expected):
  np.testing.assert_allclose(accuracy(scores, outcome), expected, rtol=1e-6)


def test_ties_of_the_reference_depend_on_the_order():
  assert accuracy([1., 1.], [1., 0.], ties="reference") == 0
  assert accuracy([1., 1.], [0., 1.], ties="reference") == 1


@pytest.mark.parametrize("outcome_PG, expected", [
    ([[1., 0.], [1., 1.], [0., 0.], [0.2, 0.7]], 0.5),
    ([[1., nan], [nan, nan], [nan, 0.], [1., 0.]], 0.25),  # The unknown differs from nothing.
])
def test_share_of_prompts_that_the_accuracy_is_about(outcome_PG, expected):
  outcome_PG = np.array(outcome_PG)
  for bad in (nan, -1.0, 2.0):  # Anything where not valid.
    filled_PG = np.where(np.isnan(outcome_PG), bad, outcome_PG)
    assert jax.jit(prm_metrics.share_of_varied)(filled_PG, ~np.isnan(outcome_PG)) == expected


def test_correlation():
  x_B, y_B = jnp.array([1., 2., 4., nan]), jnp.array([2., 1., 5., 0.])
  got = prm_metrics.correlation(x_B, y_B, jnp.arange(4) < 3)
  np.testing.assert_allclose(got, np.corrcoef(x_B[:3], y_B[:3])[0, 1], rtol=1e-5)
  assert prm_metrics.correlation(x_B, jnp.ones(4), jnp.arange(4) < 3) == 0


def test_pairs_alone_count_where_prompts_without_pairs_are_taken_out():
  """Two prompts with verdicts that differ, of which the PRM ranks one right, and six without."""
  score_BT = jnp.arange(16.)[:, None]
  outcome_PG = jnp.array([[0, 1], [1, 0], *[[1, 1]] * 6], jnp.float32)
  got, share = (f(*x) for f, x in (
      (prm_metrics.accuracy, (score_BT, 0 * score_BT, score_BT >= 0, outcome_PG, outcome_PG >= 0)),
      (prm_metrics.share_of_varied, (outcome_PG, outcome_PG >= 0))))
  assert accuracy_lib.take_out_ties(float(got), float(share)) == 0.5
  right = prm_metrics.accuracy(score_BT[:4], 0 * score_BT[:4], score_BT[:4] >= 0,
                               jnp.array([[0., 1.], [1., 1.]]), jnp.ones((2, 2), bool))
  assert float(right) == 0.75 and accuracy_lib.take_out_ties(float(right), 0.5) == 1
  assert np.isnan(accuracy_lib.take_out_ties(0.5, 0.0))
