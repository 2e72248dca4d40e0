import numpy as np
import pytest

from rlx.rewards import _segments, implicit, outcome
from tests import whole

implicit, outcome = map(whole.compile_module, (implicit, outcome))

nan = np.nan
MASK = np.array([[True, True, True, True], [True, True, False, False], [False] * 4])
RATIO = np.array([[1., 2., 4., 8.], [16., 32., nan, nan], [nan] * 4])
VALID = np.array([True, True, False])


def rewards(**options):
  options = dict(dict(norm="none", prm_beta=1.0), **options)
  return implicit.process(RATIO, np.zeros_like(RATIO), MASK, VALID, **options)[0]


@pytest.mark.parametrize("options, expected", [
    (dict(), [1, .75, .5, 0]), (dict(weight=.5), [1, .375, .25, 0]),
    (dict(mode="only"), [0, .75, .5, 0]),
    (dict(mode="mixed", weight=.25), [.75, .1875, .3125, 0])], ids=str)
def test_cascade(options, expected):
  # The second verifier's word counts where the first says no, 0.25 included.
  np.testing.assert_allclose(outcome.cascade(
      np.array([1., 0., .25, nan]), np.array([0., .75, .5, 1.]),
      np.array([True, True, True, False]), **options), expected)


@pytest.mark.parametrize("options, expected", [
    (dict(), [1, -.5, .25, -1, 0]), (dict(wrong=0., missing=-2.), [1, 0, .5, -2, 0])], ids=str)
def test_stated(options, expected):
  # Right, wrong, half right, a right verdict without an answer, unknown.
  np.testing.assert_allclose(outcome.stated(
      np.array([1., 0., .5, 1., nan]), np.array([4, 0, 2, -1, 1]),
      np.array([True, True, True, True, False]), **options), expected)


@pytest.mark.parametrize("options, expected", [
    (dict(), [1, .3, 0, 0]), (dict(thresholds=(0., .75)), [1, .3, .9, 0]),
    (dict(weights=(1., 0., 0.)), [1, 1, 0, 0])], ids=str)
def test_stages(options, expected):
  # Right; parsed and half of the answer; right after a call that could not be parsed.
  np.testing.assert_allclose(outcome.stages(
      np.array([1., 0., 1., nan]), np.array([[1., 1.], [1., .5], [0., 1.], [nan, nan]]),
      np.array([True, True, True, False]), **options), expected, rtol=1e-6)


def test_filled():
  # Known; not known, where the third score stands in; invalid.
  scores_BE = np.array([[.2, 1., .6, .9], [0., 0., .6, .9], [nan, nan, nan, nan]])
  valid_B = np.array([True, True, False])
  np.testing.assert_allclose(outcome.filled(scores_BE, valid_B), [.2, .6, 0], rtol=1e-6)
  np.testing.assert_allclose(outcome.filled(scores_BE, valid_B, index=3, known=2, otherwise=1),
                             [.9, .9, 0], rtol=1e-6)
  with pytest.raises(ValueError, match="otherwise=4: below 4, as verifier.scores names 4"):
    outcome.filled(scores_BE, valid_B, otherwise=4)


def test_network():
  """Two hidden units of two scores: 2 tanh(s_1 - s_2 + 1) - tanh(3 s_2)."""
  np.testing.assert_allclose(outcome.network(
      np.array([[1., 2.], [0., .5], [nan, nan]]), np.array([True, True, False]),
      weights=((1., -1., 1., 2.), (0., 3., 0., -1.))),
      [-np.tanh(6), 2 * np.tanh(.5) - np.tanh(1.5), 0], rtol=1e-6, atol=1e-6)
  for weights in ((), (1., -1., 1., 2.), ((1., -1., 2.),)):
    with pytest.raises(ValueError, match="a list of 4 numbers"):
      outcome.network(np.ones((1, 2)), np.ones(1, bool), weights=weights)


@pytest.mark.parametrize("options", [dict(weights=(1., 1.)), dict(thresholds=(1.,))])
def test_stages_of_other_scores_are_refused(options):
  with pytest.raises(ValueError, match="3 weights and 2 thresholds"):
    outcome.stages(np.ones(1), np.ones((1, 2)), np.ones(1, bool), **options)


def test_own():
  np.testing.assert_allclose(implicit.own(RATIO, np.ones_like(RATIO), MASK, VALID, beta=.5),
                             [[0, .5, 1.5, 3.5], [7.5, 15.5, 0, 0], [0] * 4])


@pytest.mark.parametrize("options, expected", [
    (dict(), [[1, 2, 4, 8], [16, 32, 0, 0]]),
    (dict(prm_beta=0.5), [[.5, 1, 2, 4], [8, 16, 0, 0]]),
    (dict(prm_beta=0.5, scale_by_beta=False), [[1, 2, 4, 8], [16, 32, 0, 0]]),
    (dict(granularity="completion"), [[0, 0, 0, 15], [0, 48, 0, 0]]),
    # Steps end after the second token; the last token always ends one.
    (dict(granularity="step", step_ends_BT=np.array([[0, 1, 0, 0]] * 3, bool)),
     [[0, 3, 0, 12], [0, 48, 0, 0]]),
    (dict(include_last=False), [[1, 2, 4, 0], [16, 0, 0, 0]]),
    (dict(include_last=False, granularity="completion"), [[0, 0, 0, 7], [0, 16, 0, 0]]),
    # r_t + lam r_{t+1} + ...
    (dict(lam=0.5), [[4, 6, 8, 8], [32, 32, 0, 0]]),
    # The last token makes the sum the verdict: 1 - 7 and 0 - 16.
    (dict(use_outcome=True, outcome_B=np.array([1., 0., nan])),
     [[1, 2, 4, -6], [16, -16, 0, 0]]),
], ids=["token", "beta", "no_beta", "completion", "step", "no_last", "no_last_completion",
        "lam", "outcome"])
def test_process(options, expected):
  np.testing.assert_allclose(rewards(**options), expected + [[0] * 4], rtol=1e-6)


def test_normalizer():
  # Largest |return to go|: 15 and 48; rows that are not valid do not count.
  np.testing.assert_allclose(_segments.denominator(rewards()), [48 + 1e-6])
  np.testing.assert_allclose(rewards(norm="max_return")[1], [16/48, 32/48, 0, 0], rtol=1e-6)
  np.testing.assert_allclose(rewards(norm="max_return", floor=96.)[1, 0], 16/96, rtol=1e-6)
  # Each row by itself.
  np.testing.assert_allclose(rewards(norm="max_return", norm_shards=3)[:2, 0], [1/15, 16/48],
                             rtol=1e-6)


@pytest.mark.parametrize("options, message", [
    (dict(granularity="step"), "needs step_ends_BT"),
    (dict(use_outcome=True), "use_outcome=True needs outcome_B"),
    (dict(norm="max_return", norm_shards=2), "norm_shards=2 must divide the 3 rows"),
])
def test_refuses(options, message):
  with pytest.raises(ValueError, match=message): rewards(**options)


def test_calibrated():
  # 1 - (c - v)^2, and nothing without a confidence.
  scores_BE = np.array([[1., .75], [1., .75], [0., 0.], [1., 0.]])
  rewards_B = outcome.calibrated(np.array([1., 0., 0., 0.]), scores_BE, np.ones(4, bool),
                                 confidence=1, form=0)
  np.testing.assert_allclose(rewards_B, [15/16, 7/16, 0, 1])
  with pytest.raises(ValueError, match="^form=2: below 2, .*needed are a confidence and"):
    outcome.calibrated(np.ones(4), scores_BE, np.ones(4, bool), form=2)
