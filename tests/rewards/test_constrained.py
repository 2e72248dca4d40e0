"""Constrained RLHF, by hand: two valid completions of two and one token, one of unknown score."""
import jax
import numpy as np
import pytest

from rlx.rewards import constrained

LEARN_BT = np.array([[1, 1], [1, 0], [0, 0]], bool)
SCORES_BE = np.array([[1., .5], [0., .5], [np.nan, np.nan]])  # z: +-1 / sqrt(2), and a tie.
OLD_BT = np.array([[-1., -1.], [-2., 9.], [9., 9.]])
REF_BT = np.array([[-2., -2.], [-2., np.nan], [9., 9.]])  # K: 1, 1; 0. Sums: mean 1, variance 2.
ROOT = .5**.5


def call(learn_BT=LEARN_BT, **options):
  rewards_BT, metrics, state = jax.jit(lambda **state: constrained.lagrangian(
      SCORES_BE, OLD_BT, REF_BT, learn_BT, learn_BT.any(axis=1), **options, **state))(
          multiplier_E=np.float32([0, np.log(3)]), velocity_E=np.float32([1, -1]))
  return rewards_BT, [metrics["weight_0"], metrics["weight_1"]], state


@pytest.mark.parametrize("constraint, weights, slopes", [
    ("at_least", [.5, .75], [.25, .1875]), ("equal", [0, .8], [1, .36])])
def test_lagrangian(constraint, weights, slopes):
  rewards_BT, got, state = call(thresholds=(.8, .1), constraint=constraint, rate=2., momentum=.1)
  paid, share = weights[0] * ROOT, 2 - sum(weights)
  np.testing.assert_allclose(got, weights, rtol=1e-6)
  np.testing.assert_allclose(rewards_BT, [
      [-share * ROOT, paid], [share * ROOT - paid, 0], [0, 0]], atol=1e-6)
  velocity_E = [.1 + slopes[0] * (.5 - .8), -.1 + slopes[1] * (.5 - .1)]
  np.testing.assert_allclose(state["velocity_E"], velocity_E, rtol=1e-5)
  np.testing.assert_allclose(state["multiplier_E"],
                             [-2 * velocity_E[0], np.log(3) - 2 * velocity_E[1]], rtol=1e-5)


def test_a_batch_in_which_nothing_learns_moves_no_multiplier():
  _, _, state = call(np.zeros((3, 2), bool), thresholds=(.8, .1))
  assert state["velocity_E"].tolist() == [1, -1] and state["multiplier_E"][0] == 0


@pytest.mark.parametrize("constraint, start", [("at_least", 0.), ("at_least", 2.), ("equal", -1.)])
def test_a_multiplier_rises_while_the_constraint_is_violated_and_falls_otherwise(constraint, start):
  """With any past: without momentum every step has this sign, with it after enough steps."""
  draw, ones = np.random.default_rng(0), np.ones((8, 1), bool)
  for threshold in (-1., .2, .8, 2.):
    state = dict(multiplier_E=np.float32([start]), velocity_E=np.float32([0]))
    for _ in range(5):
      scores_BE, before = draw.uniform(size=(8, 1)), state["multiplier_E"][0]
      logps_BT = draw.normal(size=(2, 8, 1))
      state = constrained.lagrangian(scores_BE, *logps_BT, ones, ones[:, 0], rate=.5, momentum=0.,
                                     thresholds=(threshold,), constraint=constraint, **state)[2]
      assert np.sign(state["multiplier_E"][0] - before) == np.sign(threshold - scores_BE.mean())


def test_one_threshold_for_each_score():
  with pytest.raises(ValueError, match=r"thresholds=\(1,\): 2 numbers, one for each verifier"):
    call(thresholds=(1,))
