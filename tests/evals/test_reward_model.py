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
