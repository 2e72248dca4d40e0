import numpy as np
import pytest

from rlx.rewards import items
from tests import whole

select_items = items.select
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
    (dict(kind="sum"), [3 + .6 - .5, 1.5 + 1 - 2, 1.2]),
    (dict(kind="sum", threshold=.6), [4, -1, 1]),
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


def test_pareto_by_hand():
  """Of a prompt: better by one criterion; by the other; worse than both; not valid, above all; equal
  to the first. The third item is a fault, the fourth is none. A second prompt is compared alone."""
  values_BI = np.array([[1, 0, .5, 0], [0, 1, .5, 0], [0, 0, .5, 1], [nan] * 4, [1, 0, .5, 1],
                        [.5, .5, 1, 0], [.5, .5, 0, 0], [0, 0, 0, 0], [0, .75, 1, 0], [0, 1, 1, 0]])
  weight_BI = np.array([[2., 1, -1, 0]] * 10)
  weight_BI[3] = nan
  learn_PG = np.array([[True, True, True, False, True], [True] * 5])
  got = items.pareto(values_BI, weight_BI, learn_PG)
  np.testing.assert_array_equal(got, [1, 1, 0, 0, 1, 0, 1, 0, 0, 1])


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


def test_whitened_counts_items_that_agree_once():
  """Of a prompt whose first two items agree and whose third is independent, and one with none.

  S = [[v, v, 0], [v, v, 0], [0, 0, v]] has the eigenvalues 2v, 0 and v, so that w is
  (2v + ridge)^(-1/2) for each of the two and (v + ridge)^(-1/2).
  """
  v, ridge = 1/3, .5  # Of 1, 1, 0, 0: 4 (1/2)^2 / 3. A power of 1/2 keeps the numbers short.
  weights = np.array([*[(2 * v + ridge)**-.5] * 2, (v + ridge)**-.5])
  values = np.array([[1., 1, 0, 0], [1, 1, 1, 0], [0, 0, 0, 0], [0, 0, 1, 0]])
  items_BI = np.concatenate([values, np.full((2, 4), nan), np.full((6, 4), nan)])
  weight_BI = np.concatenate([[[1., 3, 1, 0]] * 4, np.full((2, 4), nan), np.full((6, 4), nan)])
  learn_PG = np.array([[1, 1, 1, 1, 0, 0], [0] * 6], bool)
  expected = values[:, :3] @ weights / weights.sum()
  options = dict(ridge=ridge)
  got = items.whitened(items_BI, weight_BI, learn_PG, **options)
  np.testing.assert_allclose(got, [*expected, *[0] * 8], atol=1e-6)
  # A fault that is not there counts as an item that is met.
  fault_BI = np.where(np.arange(4) == 2, -weight_BI, weight_BI)
  flipped_BI = np.where(np.arange(4) == 2, 1 - items_BI, items_BI)
  np.testing.assert_allclose(items.whitened(flipped_BI, fault_BI, learn_PG, **options), got,
                             atol=1e-6)


def test_select_drops_items_that_misrank_or_repeat():
  # Of four pairs: right in three and wrong in one; the same; its opposite; a tie always; right in
  # one and wrong in one; right in two.
  better_NI = np.array([[1., 1, 0, 1, 1, 1], [1, 1, 0, 1, 0, 1], [1, 1, 0, 1, 0, 0],
                        [0, 0, 1, 1, 0, 0]])
  worse_NI = np.array([[0., 0, 1, 1, 0, 0], [0, 0, 1, 1, 0, 0], [0, 0, 1, 1, 0, 0],
                       [1, 1, 0, 1, 1, 0]])
  select = lambda **options: select_items(better_NI, worse_NI, **options).tolist()
  assert select() == [True, False, False, False, False, True]
  assert select(edge=.5) == [False] * 6  # 3 of 4 less 1 of 4 is not above it.
  assert select(edge=.4) == [True, False, False, False, False, True]
  # Both halves of the first are 1, 2 of 8 of the last: r = 1 / sqrt(3), and .58 is above it.
  assert select(most=.57) == [True, *[False] * 5] and select(most=.58)[5]
  for bad, edge, message in ((better_NI[:1], 0, "must be"), (better_NI * nan, 0, "holds NaN"),
                             (better_NI, -.1, "edge=-0.1")):
    with pytest.raises(ValueError, match=message): select_items(bad, worse_NI, edge=edge)
