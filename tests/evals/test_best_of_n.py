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


def test_votes():
  assert pass_at_k.majority(["a", "b", "b", None, None, None]) == "b"
  assert pass_at_k.majority(["a", "b"]) == "a"       # The first of a tie.
  assert pass_at_k.majority([None]) is None
  # sigmoid(3) > sigmoid(0) + sigmoid(-1).
  assert best_of_n.weighted_majority(["a", "b", "b"], [3., 0., -1.]) == "a"
  assert best_of_n.weighted_majority(["a", "b", "b"], [0., 0., -1.]) == "b"
  assert pass_at_k.maj_at_k(["a", "b", "b"], [1., 0., 0.], 1) == 1.0
  assert pass_at_k.maj_at_k(["a", "b", "b"], [1., 0., 0.], 3) == 0.0
  with pytest.raises(ValueError, match="k=4 must be in 1..3"):
    pass_at_k.maj_at_k(["a", "b", "b"], [1., 0., 0.], 4)


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


def test_error_threshold():
  # Values around 0: sigmoid below 1/2 means negative.
  steps, labels = [[1., -1.], [1., 1.]], [1, -1]
  threshold, f1 = best_of_n.error_threshold(steps, labels, count=11)
  assert f1 == 1.0 and 0.2 < threshold < 0.8
  assert best_of_n.first_error([1., -1.], threshold) == 1
  assert best_of_n.first_error([1., 1.], threshold) == -1
