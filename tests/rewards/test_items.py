import numpy as np
import pytest

from rlx.rewards import items
from tests import whole

items = whole.compile_module(items)

nan = np.nan
# Four items of weights 3, 1, 0, and of a fault; a row that is not valid; two items of six.
VALUES_BI = np.array([[1., .6, .5, .25], [.5, 1., 0., 1.], [nan] * 4, [.2, 1., 0., 0.]])
WEIGHT_BI = np.array([[3., 1, 0, -2]] * 2 + [[nan] * 4, [1, 1, 0, 0]])
NO_VETO_BI = np.zeros((4, 4), bool)
LEARN_B = np.array([True, True, False, True])


@pytest.mark.parametrize("options, expected", [
    (dict(), [(3 + .6 - .5) / 4, (1.5 + 1 - 2) / 4, .6]),
    (dict(threshold=.6), [4 / 4, (1 - 2) / 4, .5]),
    # min(s, 1/2) / (1/2): what is above half counts as whole.
    (dict(level=.5), [(3 + 1 - 1) / 4, (3 + 1 - 2) / 4, .7]),
    # (min(s, 1/2) + max(s - 1/2, 0) / 2) / (3/4).
    (dict(level=.5, slope=.5), [(3 + .55 / .75 - 2 * .25 / .75) / 4, (2 + 1 - 2) / 4,
                                (.2 / .75 + 1) / 2]),
    (dict(power=2.), [.775**2, .125**2, .36]),
    (dict(threshold=.6, power=2.), [1, -.25, .25]),  # Below 0 there is no power.
    # The least of s and, of a fault, 1 - s; a weight 0 has no part in it.
    (dict(kind="all"), [.6, 0, .2]), (dict(kind="all", threshold=.25), [0, 0, 0]),
    (dict(kind="all", threshold=.5), [1, 0, 0])], ids=str)
def test_weighted(options, expected):
  got = items.weighted(VALUES_BI, WEIGHT_BI, NO_VETO_BI, LEARN_B, **options)
  np.testing.assert_allclose(got, [*expected[:2], 0, expected[2]], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("veto, options, expected", [
    (2, dict(), [.775, 0, .6]), (0, dict(), [.775, .125, .6]),
    (0, dict(threshold=.5), [1, 1, 0]),  # Below the threshold is 0.
    (3, dict(kind="all"), [.6, 0, .2])])
def test_a_veto_that_is_0_makes_the_reward_0(veto, options, expected):
  veto_BI = NO_VETO_BI.copy()
  veto_BI[:3, veto] = True
  if veto == 0: veto_BI[3, 0] = True
  weight_BI = np.where(np.arange(4) == 3, 0, WEIGHT_BI) if "threshold" in options else WEIGHT_BI
  got = items.weighted(VALUES_BI, weight_BI, veto_BI, LEARN_B, **options)
  np.testing.assert_allclose(got, [*expected[:2], 0, expected[2]], rtol=1e-5, atol=1e-6)


NEAR = np.exp(-.5**2 / (2 * .1**2))   # Of rates 1/2 apart, 3.7e-6.


@pytest.mark.parametrize("options, weights", [
    (dict(weight="uniform"), [1/3, 1/3, 1/3]),
    (dict(weight="exp"), np.exp([-2, -1, -1])),  # Pass rates 1, 1/2, 1/2.
    (dict(weight="exp", alpha=4.), np.exp([-4, -2, -2])),
    # The last two have the same rate, and each counts half.
    (dict(), np.exp([-2, -1, -1]) / [1 + 2 * NEAR, 2 + NEAR, 2 + NEAR]),
    (dict(alpha=0., width=.5), 1 / np.array([1 + 2 * np.exp(-.5), *[2 + np.exp(-.5)] * 2])),
], ids=str)
def test_unit_tests(options, weights):
  """Of a prompt with three tests and one with a single test that both pass; room is for four."""
  passed = np.array([[1, 1, 0, 0], [1, 0, 1., 0]])
  items_BI = np.array([*passed, [nan] * 4, [nan] * 4, *[[1., 0, 0, 0]] * 2, [nan] * 4, [nan] * 4])
  weight_BI = np.array([[1., 1, 1, 0]] * 4 + [[5., 0, 0, 0]] * 4)
  learn_PG = np.array([[1, 1, 0, 0], [1, 1, 0, 0]], bool)
  got = items.unit_tests(items_BI, weight_BI, learn_PG, **options)
  alone = {"uniform": 1, "exp": np.exp(-options.get("alpha", 2.))}.get(
      options.get("weight"), np.exp(-options.get("alpha", 2.)))
  np.testing.assert_allclose(got, [*(passed[:, :3] @ weights), 0, 0, alone, alone, 0, 0], rtol=1e-6)
