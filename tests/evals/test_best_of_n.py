import itertools

import numpy as np
import pytest

from rlx.evals import best_of_n, pass_at_k

nan = np.nan


@pytest.mark.parametrize("n", [1, 2, 5])
def test_at_n_is_the_mean_over_all_subsets(n):
  rng = np.random.default_rng(0)
  proxy_G, gold_G = rng.integers(0, 4, 6).astype(float), rng.normal(size=6)  # With ties.
  proxy_G[1] = nan
  def best(subset):
    top = max(p for p, _ in subset)
    return top, np.mean([g for p, g in subset if p == top])
  known = [(p, g) for p, g in zip(proxy_G, gold_G) if not np.isnan(p)]
  each = [best(subset) for subset in itertools.combinations(known, n)]
  np.testing.assert_allclose(best_of_n.at_n(proxy_G, gold_G, n), np.mean(each, axis=0))


def test_at_n_without_steps_or_verdicts():
  assert best_of_n.at_n([-np.inf, -np.inf], [1., 0.], 1)[1] == .5
  assert np.isnan(best_of_n.at_n([1.], [nan], 1)).all()
  with pytest.raises(ValueError, match="n=0: must be >= 1"):
    best_of_n.at_n([1.], [1.], 0)


def test_scores_and_the_weights_of_votes():
  steps_BJ = best_of_n.pad([[0., -2., 1.], [-1.], []])
  scores = best_of_n.scores(steps_BJ)
  sigmoid = lambda x: 1 / (1 + np.exp(-x))
  np.testing.assert_allclose(scores["min"], [-2, -1, -np.inf])
  np.testing.assert_allclose(scores["mean"], [-1/3, -1, -np.inf], rtol=1e-6)
  product = sigmoid(0) * sigmoid(-2) * sigmoid(1)
  np.testing.assert_allclose(np.exp(scores["product"]), [product, sigmoid(-1), 0], rtol=1e-6)
  weights = best_of_n.weights(scores)
  np.testing.assert_allclose(weights["product"], [product, sigmoid(-1), 0], rtol=1e-6)
  np.testing.assert_allclose(weights["sum"], [sigmoid(-1), sigmoid(-1), 0], atol=1e-30)
  # A hundred steps with odds of e^-8: their product is 0 in float32, but the order is kept.
  low = best_of_n.scores(np.full((2, 100), -8.) + np.array([[0.], [.1]]))["product"]
  assert np.isfinite(low).all() and low[1] > low[0]


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("weight_G", [None, (3., 1., 1., .5, 1.)], ids=["plain", "weighted"])
def test_majority_is_the_mean_over_all_orders_of_all_sets(k, weight_G):
  answers, outcome_G = ["a", "b", "b", None, "c"], [1., 0., 0., 0., 1.]
  def right(order):
    won = pass_at_k.majority([answers[i] for i in order], weight_G and [weight_G[i] for i in order])
    return won in ("a", "c")
  want = np.mean([right(order) for order in itertools.permutations(range(5), k)])
  assert pass_at_k.maj_at_k(answers, outcome_G, k, weight_G) == pytest.approx(want)


def test_majority_of_known_verdicts():
  assert np.isnan(pass_at_k.maj_at_k(["a", "b"], [0., nan], 2))
  with pytest.raises(ValueError, match="k=4 must be in 1..3"):
    pass_at_k.maj_at_k(["a", "b", "b"], [1., 0., 0.], 4)


def test_random_sets_are_near_the_mean_over_all_sets():
  answers, outcome_G = ["a"] * 5 + ["b"] * 4, [1.] * 5 + [0.] * 4
  exact = pass_at_k.maj_at_k(answers, outcome_G, 3)
  sampled = pass_at_k.maj_at_k(answers, outcome_G, 3, subsets=60)
  assert sampled == pytest.approx(exact, abs=.15) and sampled != exact and 0.5 < exact < 1


@pytest.mark.parametrize("k", [1, 2, 3, 5])
def test_pass_at_k_counts_subsets(k):
  outcome = [1., 0., 0., 1., 0.]
  subsets = list(itertools.combinations(outcome, k))
  want = np.mean([max(s) for s in subsets])
  np.testing.assert_allclose(pass_at_k.pass_at_k(np.array([outcome]), k), want)


def test_pass_at_k_needs_k_verdicts():
  assert np.isnan(pass_at_k.pass_at_k(np.array([[1., nan, 0.]]), 3))
  with pytest.raises(ValueError, match="k=0"): pass_at_k.pass_at_k(np.ones((1, 3)), 0)
