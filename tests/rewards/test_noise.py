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
