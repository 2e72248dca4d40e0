import numpy as np
import pytest

from rlx.evals import reward_model

nan = np.nan


def test_one_to_many():
  score_PG = np.array([[3., 1., 2., nan],     # First of three.
                       [1., 2., 3., 0.],      # Third.
                       [2., 2., 0., nan],     # Tied: second, half of the top.
                       [5., 1., nan, nan],    # Nothing wrong: excluded.
                       [nan, 1., 2., 3.],     # Nothing right: excluded.
                       [nan, nan, nan, nan]])
  right_PG = np.array([[1, 0, 0, 0]] * 3 + [[1, 1, 0, 0]] + [[1, 0, 0, 0]] * 2, bool)
  got = reward_model.one_to_many(score_PG, right_PG)
  assert got == pytest.approx(dict(accuracy=1/3, mrr=(1 + 1/3 + 1/2) / 3, top=(1 + 0 + .5) / 3))
  # Two right ones around a wrong one: the best has rank 1, the least is below.
  got = reward_model.one_to_many([[3., 1., 2.]], [[True, True, False]])
  assert got == dict(accuracy=0, mrr=1, top=1)
  assert np.isnan(reward_model.one_to_many([[1.]], [[True]])["mrr"])


def test_consistency_by_enumeration():
  draw = np.random.default_rng(0)
  better_N, group_N = draw.choice([0., .5, 1., nan], 200), draw.integers(0, 60, 200)
  shares = []
  for g in set(group_N.tolist()):
    known = [x for x in better_N[group_N == g] if x == x]
    pairs = [a == b for i, a in enumerate(known) for b in known[:i]]
    if pairs: shares.append(np.mean(pairs))
  assert reward_model.consistency(better_N, group_N) == pytest.approx(np.mean(shares))
  assert np.isnan(reward_model.consistency([1., nan], [0, 0]))


def test_contrast_sets():
  score_NKK = np.array([
      # x_1 prefers y_1 (3 > 1), but y_1 is scored higher after x_2 (4 > 3); x_2 prefers y_2
      # (5 > 4), which is scored lower after x_1 (5 > 1).
      [[3., 1., nan], [4., 5., nan], [nan, nan, nan]],
      # x_1 ties; y_1 is right after x_1 (2 > 0). x_3 has a score with y_3 alone.
      [[2., 2., nan], [0., 1., nan], [nan, nan, 9.]]])
  # Pairs: of the first set (1, 2), (2, 1), of the second (1, 2), and (2, 1): 1 > 0, but 1 < 2.
  assert reward_model.contrast(score_NKK) == dict(response=3/4, instruction=2/4, both=1/4)
  assert all(np.isnan(x) for x in reward_model.contrast([[[1.]]]).values())
  with pytest.raises(ValueError, match=r"shape \(2, 2\): \[N, K, K\]"):
    reward_model.contrast([[1., 0.], [0., 1.]])


def test_errors_among_the_best():
  """The two that the first proxy likes best are ranked right, those of the second wrongly."""
  proxy = [[4., 3., 2., 1.], [4., 3., 2., 1.], [1., nan, 1., 0.], [1., 2., nan, nan]]
  gold = [[4., 3., 1., 2.], [3., 4., nan, 1.], [0., 9., 5., 9.], [1., 1., 3., 3.]]
  # One right, one wrong, one tie of the proxy, none of a gold tie.
  assert reward_model.tail_error(proxy, gold) == (0 + 1 + .5) / 3
  # Six pairs with one wrong; three with one wrong; the tie, and two that 0 loses wrongly.
  assert reward_model.tail_error(proxy, gold, best=4) == (1 + 1 + 2.5) / (6 + 3 + 3)
  assert np.isnan(reward_model.tail_error([[1., nan]], [[1., 2.]]))
  with pytest.raises(ValueError, match="best=1"): reward_model.tail_error(proxy, gold, best=1)


def test_rates_of_a_feature():
  got = reward_model.feature_rates([[1, 0, np.nan], [1, 1, 0], [np.nan] * 3], reference=1)
  np.testing.assert_allclose(got["rate"], [1 / 2, 2 / 3, np.nan])
  np.testing.assert_allclose(got["rise"], [-1 / 6, 0, np.nan], atol=1e-12)


def test_scores_are_mixed_with_those_of_the_most_similar_examples():
  """Length plays no part, and an example without a score is never the nearest."""
  examples = [[1., 0.], [0., 5.], [1., 1.]]
  of = lambda known, **options: reward_model.fuse_nearest(
      [1., 0., np.nan], [[9., 1.], [1., 2.], [0., 1.]], known, examples, **options)
  # Cosines of [1, 2]: 0.45, 0.89 and 0.95.
  np.testing.assert_allclose(of([3., -1., 7.], weight=.25), [.75 + .75, .25 * 7, np.nan])
  np.testing.assert_allclose(of([3., -1., np.nan]), [2, -.5, np.nan])
  with pytest.raises(ValueError, match="weight=2: a number in"): of([3., -1., 7.], weight=2)
  with pytest.raises(ValueError, match="no example has a score"): of([np.nan] * 3)
