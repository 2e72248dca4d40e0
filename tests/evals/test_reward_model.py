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
