import numpy as np
import pytest

from rlx.rewards import noise
from tests import whole

noise = whole.compile_module(noise)

nan = np.nan
OUTCOME_PG = np.array([[1., 1., 0., 0.], [1., nan, 0., .25]])
VALID_PG = ~np.isnan(OUTCOME_PG)
NOISE_PG = np.array([[.1, .5, .1, .5], [.5, .1, .5, .1]])


@pytest.mark.parametrize("options, expected", [
    (dict(), [1, 1, 0, 0, 1, 0, 0, .25]),
    # u = 0.1 is below both rates, 0.5 below neither; 0.25 becomes 0.75.
    (dict(false_positive=.2, false_negative=.3), [0, 1, 1, 0, 1, 0, 0, .75]),
    (dict(false_negative=.3), [0, 1, 0, 0, 1, 0, 0, .25]),
    # The group's first draw for all: 0.1 flips the first, 0.5 leaves the second.
    (dict(false_positive=.2, false_negative=.2, level="group"), [0, 0, 1, 1, 1, 0, 0, .25]),
    # As the second line, then (r - .2) / .5 and r - .7.
    (dict(false_positive=.2, false_negative=.3, correction="backward"),
     [-.4, 1.6, 1.6, -.4, 1.6, 0, -.4, 1.1]),
    (dict(false_positive=.2, false_negative=.3, correction="forward"),
     [-.7, .3, .3, -.7, .3, 0, -.7, .05]),
], ids=["clean", "both", "false_negative", "group", "backward", "forward"])
def test_channel(options, expected):
  got = noise.channel(OUTCOME_PG, NOISE_PG, VALID_PG, **options)
  np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("options, expected", [
    (dict(), [1, 0, 1, 0, 0, 0, 0, 1]),
    (dict(rate=.6), [1, 1, 1, 1, 1, 0, 1, 1]),
    (dict(kind="constant", rate=.25), [.25] * 5 + [0] + [.25] * 2),
    (dict(kind="inverse"), [0, 0, 1, 1, 0, 0, 1, .75])], ids=str)
def test_control(options, expected):
  got = noise.control(*(x.reshape(-1) for x in (OUTCOME_PG, NOISE_PG, VALID_PG)), **options)
  np.testing.assert_array_equal(got, expected)


def test_corrected_verdicts_are_unbiased():
  """On average, true verdicts of 1 and 0 give 1 and 0 or, with forward, 0 and -(1 - fp - fn)."""
  fp, fn = .15, .35
  errors_VV = np.array([[fn, 1 - fn], [1 - fp, fp]])  # True 1 and 0, stated 0 and 1.
  stated_B, ok_B = np.array([0., 1.]), np.ones(2, bool)
  backward_B = noise.backward(stated_B, ok_B, false_positive=fp, false_negative=fn)
  np.testing.assert_allclose(errors_VV @ backward_B, [1, 0], atol=1e-6)
  forward_B = noise.forward(stated_B, ok_B, false_negative=fn)
  np.testing.assert_allclose(errors_VV @ forward_B, [0, -(1 - fp - fn)], atol=1e-6)


def test_refuses_a_channel_that_tells_nothing():
  with pytest.raises(ValueError, match="false_positive=0.5, false_negative=0.5: their sum"):
    noise.backward(NOISE_PG[0], VALID_PG[0], false_positive=.5, false_negative=.5)


def test_appealed_estimates_how_many_right_completions_are_rejected():
  """Two accepted; of three rejected and appealed two are right; the others are not read."""
  nan = np.nan
  outcome_B = np.float32([1, .6, 0, .5, .2, 0, nan, nan])
  scores_B = np.float32([0, 1, 1, .9, .1, 1, nan, 1])   # The second verdict of rejected ones.
  noise_B = np.float32([0, 0, .1, .4, .4, .6, .1, .1])  # Below 1/2: appealed.
  learn_B = ~np.isnan(outcome_B)
  now = 4 / 6  # Two appealed ones stand for four.
  for before, after in ((nan, now), (.2, .75 * .2 + .25 * now)):
    rewards_B, metrics, state = noise.appealed(outcome_B, scores_B, noise_B, learn_B, appeals=.5,
                                               decay=.75, rate=np.float32(before))
    np.testing.assert_allclose([state["rate"], metrics["false_negative"]], after, rtol=1e-4)
    np.testing.assert_allclose(rewards_B, [*outcome_B[:6] - (1 - after), 0, 0], rtol=1e-4)
  for before, used in ((nan, .5), (.2, .2)):  # None is right by either verdict: the rate stays.
    rewards_B, metrics, state = noise.appealed(
        outcome_B, np.zeros(8, np.float32), noise_B, learn_B & (outcome_B <= .5), appeals=.5,
        rate=np.float32(before))
    np.testing.assert_array_equal(state["rate"], np.float32(before))
    assert metrics["false_negative"] == np.float32(used)
    np.testing.assert_allclose(rewards_B[2:6], outcome_B[2:6] - (1 - used), rtol=1e-5)
