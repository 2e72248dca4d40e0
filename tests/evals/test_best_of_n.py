import itertools

import numpy as np
import pytest

from rlx.evals import best_of_n
from rlx.evals import pass_at_k

nan = np.nan


def test_steps():
  ratio_BT = np.array([[nan, 1., 2., -4.], [nan, 3., nan, nan]])
  mask_BT = np.array([[False, True, True, True], [False, True, False, False]])
  values_BJ = best_of_n.step_values(ratio_BT, mask_BT, np.array([[2, 3], [1, -1]]), scale=0.5)
  np.testing.assert_allclose(values_BJ, [[1.5, -.5], [1.5, nan]])
  rewards_BJ = best_of_n.step_rewards(values_BJ)
  np.testing.assert_allclose(rewards_BJ, [[1.5, -2], [1.5, nan]])
  np.testing.assert_allclose(best_of_n.score(rewards_BJ), [-2, 1.5])
  np.testing.assert_allclose(best_of_n.score(rewards_BJ, "sum"), [-.5, 1.5])
  np.testing.assert_allclose(best_of_n.score(rewards_BJ, "last"), [-2, 1.5])
  np.testing.assert_allclose(best_of_n.score(np.full((1, 2), nan)), [-np.inf])
  with pytest.raises(ValueError, match="kind='median': one of"):
    best_of_n.score(rewards_BJ, "median")


@pytest.mark.parametrize("aggregate, expected", [
    ("min", .2), ("max", .8), ("sum", 1.5), ("mean", .5), ("last", .2), ("prod", .08),
    ("geo", .08**(1/3)), ("mean_odds", 1.75), ("mean_logit", 0.0)])
def test_scores_of_probabilities(aggregate, expected):
  got_B = best_of_n.score(np.array([[.5, .8, .2, nan], [.5, .5, .5, .5], [nan] * 4]), aggregate)
  np.testing.assert_allclose(got_B[0], expected, rtol=1e-5, atol=1e-6)
  assert got_B[2] == -np.inf and np.isfinite(got_B[1])


def test_min_at_last_share():
  # At the last; tied with it; elsewhere; one step and none are left out.
  steps_BJ = np.array([[.9, .1, nan], [.1, .5, .1], [.2, .1, .9],
                       [.1, nan, nan], [nan] * 3])
  assert best_of_n.min_at_last_share(steps_BJ) == pytest.approx(1/3)
  assert np.isnan(best_of_n.min_at_last_share(steps_BJ[3:]))


def test_best_of_n():
  # Right; wrong; the chosen one is unknown and the prompt is left out.
  got = best_of_n.best_of_n(np.array([[1., 2.], [3., 0.], [nan, 1.]]),
                            np.array([[0., 1.], [0., 1.], [1., nan]]))
  assert got == 0.5


def test_curve_is_the_mean_over_all_subsets():
  rng = np.random.default_rng(0)
  proxy_PG = rng.integers(0, 4, (3, 6)).astype(float)      # With ties.
  gold_PG = rng.normal(size=(3, 6))
  proxy_PG[1, 0] = gold_PG[2, 3] = nan                     # Five known.
  def best(subset):
    top = max(p for p, _ in subset)
    return top, np.mean([g for p, g in subset if p == top])
  got = best_of_n.curve(proxy_PG, gold_PG, [1, 2, 3, 6, 7])
  for found in got[:4]:
    each = []
    for proxy_G, gold_G in zip(proxy_PG, gold_PG):
      known = [(p, g) for p, g in zip(proxy_G, gold_G) if not np.isnan(p + g)]
      subsets = list(itertools.combinations(known, found["n"]))
      if subsets: each.append(np.mean([best(s) for s in subsets], axis=0))
    np.testing.assert_allclose([found["proxy"], found["gold"]], np.mean(each, axis=0))
  np.testing.assert_allclose([f["kl"] for f in got[:2]], [0, np.log(2) - 1/2])
  assert np.isnan(got[4]["gold"])
  with pytest.raises(ValueError, match="n=0: must be >= 1"):
    best_of_n.curve(proxy_PG, gold_PG, [0])


def test_curve_of_a_perfect_proxy_is_pass_at_k():
  outcome_PG = np.array([[1., 0., 0., 1., 0.], [0., 0., 0., 1., 0.]])
  for found in best_of_n.curve(outcome_PG, outcome_PG, [1, 2, 4]):
    np.testing.assert_allclose(found["gold"], pass_at_k.pass_at_k(outcome_PG, found["n"]))


def test_at_n_of_one_prompt():
  # Of three pairs the best are b, c, c: c is wrong. Equal scores share.
  assert best_of_n.at_n([1., 2., 3.], [0., 1., 0.], 2) == pytest.approx((8/3, 1/3))
  assert best_of_n.at_n([1., 1.], [0., 1.], 2) == (1, .5)
  # Without steps a completion is chosen last; without a verdict it is not there.
  assert best_of_n.at_n([-np.inf, 1., 2.], [1., 0., nan], 2) == (1, 0)
  assert best_of_n.at_n([-np.inf, -np.inf], [1., 0.], 1)[1] == .5
  assert np.isnan(best_of_n.at_n([1.], [nan], 1)).all()


def test_scores_and_the_weights_of_votes():
  steps_BJ = best_of_n.padded([[0., -2., 1.], [-1.], []])
  found = best_of_n.scores(steps_BJ)
  sigmoid = lambda x: 1 / (1 + np.exp(-x))
  np.testing.assert_allclose(found["min"], [-2, -1, -np.inf])
  np.testing.assert_allclose(found["mean"], [-1/3, -1, -np.inf], rtol=1e-6)
  product = sigmoid(0) * sigmoid(-2) * sigmoid(1)
  np.testing.assert_allclose(np.exp(found["product"]), [product, sigmoid(-1), 0], rtol=1e-6)
  weights = best_of_n.weights(found)
  np.testing.assert_allclose(weights["product"], [product, sigmoid(-1), 0], rtol=1e-6)
  np.testing.assert_allclose(weights["sum"], [sigmoid(-1), sigmoid(-1), 0], atol=1e-30)
  # A hundred steps of 1 in e^8: their product is 0 in float32, its order is not lost.
  low = best_of_n.scores(np.full((2, 100), -8.) + np.array([[0.], [.1]]))["product"]
  assert np.isfinite(low).all() and low[1] > low[0]


def test_stacking_keeps_rows_and_fills_with_nan():
  np.testing.assert_array_equal(
      best_of_n.stacked([np.ones((1, 1)), np.full((1, 2), 2.)]), [[1, nan], [2, 2]])


def test_votes():
  assert pass_at_k.majority(["a", "b", "b", None, None, None]) == "b"
  assert pass_at_k.majority(["a", "b"]) == "a"       # The first of a tie.
  assert pass_at_k.majority([None]) is None
  with pytest.raises(ValueError, match="k=4 must be in 1..3"):
    pass_at_k.maj_at_k(["a", "b", "b"], [1., 0., 0.], 4)


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("weight_G", [None, (3., 1., 1., .5, 1.)], ids=["plain", "weighted"])
def test_majority_is_the_mean_over_all_orders_of_all_sets(k, weight_G):
  answers, outcome_G = ["a", "b", "b", None, "c"], [1., 0., 0., 0., 1.]
  def right(order):
    won = pass_at_k.majority([answers[i] for i in order],
                             weight_G and [weight_G[i] for i in order])
    return won in ("a", "c")
  want = np.mean([right(order) for order in itertools.permutations(range(5), k)])
  assert pass_at_k.maj_at_k(answers, outcome_G, k, weight_G) == pytest.approx(want)


def test_majority_of_what_is_known():
  # The third is no completion; "b" is right since one that gave it is.
  assert pass_at_k.maj_at_k(["a", "b", "a", "b"], [0., 1., nan, 0.], 3) == 1
  assert np.isnan(pass_at_k.maj_at_k(["a", "b"], [0., nan], 2))
  assert pass_at_k.maj_at_k([None, None], [0., 0.], 1) == 0
  # Sets at random where there are too many: near the mean over all of them.
  answers, outcome_G = ["a"] * 5 + ["b"] * 4, [1.] * 5 + [0.] * 4
  whole = pass_at_k.maj_at_k(answers, outcome_G, 3)
  some = pass_at_k.maj_at_k(answers, outcome_G, 3, subsets=60)
  assert some == pytest.approx(whole, abs=.15) and some != whole
  assert 0.5 < whole < 1


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_pass_at_k_counts_subsets(k):
  outcome = [1., 0., 0., 1., 0.]
  subsets = list(itertools.combinations(outcome, k))
  want = np.mean([max(s) for s in subsets])
  np.testing.assert_allclose(pass_at_k.pass_at_k(np.array([outcome]), k), want)


def test_pass_at_k_leaves_out_what_is_unknown():
  outcome_PG = np.array([[1., nan, 0.], [0., nan, nan]])
  assert pass_at_k.pass_at_k(outcome_PG, 2) == 1.0    # The second has one verdict.
  assert pass_at_k.pass_at_k(outcome_PG, 1) == 0.25
  assert np.isnan(pass_at_k.pass_at_k(outcome_PG, 3))
  with pytest.raises(ValueError, match="k=0"): pass_at_k.pass_at_k(outcome_PG, 0)


def test_cot_pass_at_k_asks_for_right_steps():
  # Both right; a lucky answer; steps unknown (left out); wrong, so not both.
  outcome_PG, steps_PG = np.array([[1., 1., 1., 0.]]), np.array([[1., 0., nan, nan]])
  np.testing.assert_allclose(pass_at_k.cot_pass_at_k(outcome_PG, steps_PG, 1), 1/3)
  np.testing.assert_allclose(pass_at_k.cot_pass_at_k(outcome_PG, steps_PG, 2), 2/3)
  np.testing.assert_allclose(pass_at_k.cot_pass_at_k(steps_PG, outcome_PG, 2), 2/3)
  assert pass_at_k.cot_pass_at_k(outcome_PG, np.ones((1, 4)), 2) == (
      pass_at_k.pass_at_k(outcome_PG, 2))
