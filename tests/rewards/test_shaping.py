import numpy as np
import pytest

from rlx.rewards import shaping
from tests import whole

shaping = whole.compile_module(shaping)

nan = np.nan
SCORES_PG = np.array([[.2, .6, 1., nan], [.5, .5, nan, nan], [.3, nan, nan, nan]])
VALID_PG = ~np.isnan(SCORES_PG)


def sigmoid(x): return 1 / (1 + np.exp(-np.asarray(x, float)))


@pytest.mark.parametrize("options, expected", [
    (dict(), [.2, .6, 1., .5, .5, .3]),
    (dict(k=2., centre=.6), [-.8, 0, .8, -.2, -.2, -.6]),
    (dict(kind="sigmoid", k=5., centre=.6), sigmoid([-2, 0, 2, -.5, -.5, -1.5])),
    (dict(kind="tanh", centre=.6), np.tanh([-.4, 0, .4, -.1, -.1, -.3])),
    (dict(kind="clip", centre=.6, limit=.25), [-.25, 0, .25, -.1, -.1, -.25]),
    # Mean .6, unbiased std .4; ties and lone ones have no rank.
    (dict(kind="zscore"), [-1, 0, 1, 0, 0, 0]),
    (dict(kind="minmax"), [0, .5, 1, .5, .5, .5]),
], ids=str)
def test_plain(options, expected):
  got = shaping.plain(SCORES_PG, VALID_PG, **options).reshape(3, 4)
  np.testing.assert_allclose(np.asarray(got)[np.asarray(VALID_PG)], expected, atol=1e-6)
  assert not np.asarray(got)[~np.asarray(VALID_PG)].any()


def test_par_is_the_mean_preference_over_the_others():
  got = shaping.par(SCORES_PG, VALID_PG, k=2.).reshape(3, 4)
  s = sigmoid([.8, 1.6])  # Differences of .4 and .8.
  np.testing.assert_allclose(got[0], [1 - s.mean(), .5, s.mean(), 0], rtol=1e-6)
  np.testing.assert_allclose(got[1:], [[.5, .5, 0, 0], [.5, 0, 0, 0]])
  got = shaping.par(SCORES_PG, VALID_PG, k=2., reference=.6)
  np.testing.assert_allclose(got[:4], [*sigmoid([-.8, 0, .8]), 0], rtol=1e-6)


def test_lsc_saturates_above_the_quantile():
  got = shaping.lsc(SCORES_PG, VALID_PG, k=2., quantile=.5).reshape(3, 4)
  np.testing.assert_allclose(got[0], [*np.log(sigmoid([-.8, 0, .8])), 0], rtol=1e-5)
  # Halfway from .6 to 1 is the 75% quantile.
  got = shaping.lsc(SCORES_PG, VALID_PG, quantile=.75)
  np.testing.assert_allclose(got[:3], np.log(sigmoid([-.6, -.2, .2])), rtol=1e-5)
  np.testing.assert_allclose(shaping.lsc(SCORES_PG, VALID_PG, reference=.2)[0], np.log(.5))


def test_nominal_is_the_score_of_the_least_spread():
  """Scores .2 .9 .4, of which the second is surest, and .6 .1 .3, of which the first is."""
  got = shaping.nominal(np.array([[.2, .9, .4], [.6, .1, .3], [nan] * 3]),
                        np.array([[.3, .1, .2], [.1, .2, .3], [nan] * 3]),
                        np.array([True, True, False]), weight=.25)
  np.testing.assert_allclose(got, [.25 * .9 + .75 * .2, .25 * .6 + .75 * .1, 0], rtol=1e-6)


@pytest.mark.parametrize("options, expected", [
    (dict(), [.5, .6]), (dict(kind="median"), [.4, .6]), (dict(kind="min"), [.2, .6]),
    # Population variance of .2 .4 .9: (.09 + .01 + .16) / 3.
    (dict(kind="uwo", weight=.5), [.5 - .5 * .26 / 3, .6]),
    (dict(kind="mean_minus_std"), [.5 - np.sqrt(.26 / 3), .6]),
    (dict(kind="nominal_min", weight=.25), [.25 * .4 + .75 * .2, .6]),
    (dict(kind="quantile", quantile=.25), [.3, .6]),  # Halfway between .2 and .4.
    (dict(kind="logsig_sum", k=2., thresholds=(.4, .2, .9)),
     [3 * np.log(.5), np.log(sigmoid([.4, .8, -.6])).sum()]),
], ids=lambda o: o.get("kind", "mean") if isinstance(o, dict) else "")
def test_ensemble(options, expected):
  scores_BE = np.array([[.4, .2, .9], [.6, .6, .6], [nan] * 3])
  got = shaping.ensemble(scores_BE, np.array([True, True, False]), **options)
  np.testing.assert_allclose(got, expected + [0], rtol=1e-5)


def test_stratified_ranks_within_a_verdict_and_never_across():
  scores_PG = np.array([[.9, .1, .5, .3, nan], [.2, .2, .7, nan, nan]])
  outcome_PG = np.array([[0., 1., 0., 0., 1.], [1., 1., 0., nan, nan]])
  got = shaping.stratified(scores_PG, outcome_PG, ~np.isnan(scores_PG),
                           wrong_range=.1, right_range=.2)
  # Wrong: .3 .5 .9 -> 0, 1/3, 1. A lone one and ties are in the middle.
  np.testing.assert_allclose(
      got.reshape(2, 5), [[.1, 1, -.1 / 3, -.1, 0], [1, 1, 0, 0, 0]], atol=1e-6)
  got = shaping.stratified(np.array([[0., 1., .5]]), np.ones((1, 3)),
                           np.ones((1, 3), bool), right_range=.2)
  np.testing.assert_allclose(got, [.8, 1.2, 1], rtol=1e-6)


def test_a_score_behind_a_gate():
  """The first, third and fourth of a prompt are compared; one alone and ties have 1/2."""
  scores_BE = np.array([[3., 9, 1], [-9, 9, 0], [5, 9, 1], [4, 9, 1], [99, 9, 1],
                        [1, 9, 1], [2, 9, 0], [3, 9, 0], [np.nan] * 3, [7, 9, .5]])
  learn_PG = np.array([[True] * 4 + [False], [True] * 3 + [False, True]])
  got = shaping.gated(scores_BE, learn_PG, gate=2)
  np.testing.assert_allclose(got, [0, 0, 1, .5, 0, .5, 0, 0, 0, 0])
  np.testing.assert_allclose(shaping.gated(scores_BE, learn_PG, index=1, gate=2),
                             [.5, 0, .5, .5, 0, .5, 0, 0, 0, 0])
  with pytest.raises(ValueError, match="^gate=3: below 3, as verifier.scores names 3; needed"):
    shaping.gated(scores_BE, learn_PG, gate=3)


@pytest.mark.parametrize("call, message", [
    (lambda: shaping.ensemble(np.ones((2, 3)), np.ones(2, bool), kind="logsig_sum"),
     "thresholds=None: logsig_sum needs 3, one for each"),
    (lambda: shaping.ensemble(np.ones((2, 3)), np.ones(2, bool), kind="logsig_sum",
                             thresholds=(1, 2)), r"thresholds=\(1, 2\): logsig_sum needs 3")])
def test_refuses(call, message):
  with pytest.raises(ValueError, match=message): call()


def test_ranked_factors():
  """A difference of the first above 1/4 decides, else one of the second above 0."""
  # The first beats the second by the second factor and loses to the fourth by the first; the third
  # is as good as the fourth; the fifth is not valid.
  scores = np.array([[.5, .9], [.6, .1], [1., .5], [1., .5], [np.nan, np.nan]])
  options = dict(thresholds=(.25, 0.))
  got = shaping.hierarchical(scores, np.array([[1, 1, 1, 1, 0]], bool), **options)
  np.testing.assert_allclose(got, [1 / 3, 0, 2.5 / 3, 2.5 / 3, 0], rtol=1e-6)
  np.testing.assert_allclose(  # Alone, and exactly at the threshold.
      shaping.hierarchical(np.array([[.5, 0], [.25, 1], [0, 0], [0, 0]]),
                           np.array([[1, 1], [1, 0]], bool), **options), [0, 1, .5, 0])
  with pytest.raises(ValueError, match="2 numbers of at least 0"):
    shaping.hierarchical(scores, np.ones((1, 5), bool), thresholds=(.25,))
