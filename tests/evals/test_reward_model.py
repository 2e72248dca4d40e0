import numpy as np
import pytest

from rlx.evals import reward_model

nan = np.nan


def test_pair_accuracy():
  # Right, wrong, a tie (a loss), one without a score.
  got = reward_model.pair_accuracy([2., 0., 1., nan], [1., 1., 1., 0.])
  assert got == pytest.approx(1/3)
  assert np.isnan(reward_model.pair_accuracy([nan], [1.]))


def test_one_to_many():
  score_PG = np.array([[3., 1., 2., nan],     # First of three.
                       [1., 2., 3., 0.],      # Third.
                       [2., 2., 0., nan],     # Tied: second, half of the top.
                       [5., 1., nan, nan],    # Nothing wrong: left out.
                       [nan, 1., 2., 3.],     # Nothing right: left out.
                       [nan, nan, nan, nan]])
  right_PG = np.array([[1, 0, 0, 0]] * 3 + [[1, 1, 0, 0]] + [[1, 0, 0, 0]] * 2, bool)
  got = reward_model.one_to_many(score_PG, right_PG)
  assert got == pytest.approx(
      dict(accuracy=1/3, mrr=(1 + 1/3 + 1/2) / 3, top=(1 + 0 + .5) / 3))
  # Two right ones around a wrong one: the best has rank 1, the least is below.
  got = reward_model.one_to_many([[3., 1., 2.]], [[True, True, False]])
  assert got == dict(accuracy=0, mrr=1, top=1)
  assert np.isnan(reward_model.one_to_many([[1.]], [[True]])["mrr"])


def test_ties():
  # tied gaps 2, .5, 1; spreads 1, 1, 0; reference gaps 3, 2, -1.
  tied_PG = np.array([[4., 3., 1.], [3., 2., 1.5], [2., 2., 1.]])
  ref_PG = np.array([[4., 1., nan], [3., 1., 0.], [1., 2., 0.]])
  right_PG = np.array([[1, 1, 0]] * 3, bool)
  ref_right_PG = np.array([[1, 0, 0]] * 3, bool)
  got = reward_model.ties(ref_PG, ref_right_PG, tied_PG, right_PG)
  margin = (np.tanh(2 / 1 - 1) + np.tanh(.5 / 1 - 1) - 1) / 3   # The last: -1 / 0.
  assert got == pytest.approx(dict(
      ref=2/3, tied=1, preferred=2/3, preferred_hard=1/3, margin=margin,
      score=.3 * 2/3 + .3 + .2 * 2/3 + .2 / 3 + .01 * margin))
  # No spread and clear of the wrong ones: the most there is.
  best = reward_model.ties(ref_PG[:1], ref_right_PG[:1], tied_PG[2:], right_PG[:1])
  assert best["score"] == pytest.approx(1.01)
  with pytest.raises(ValueError, match="Every prompt needs a right and a wrong answer"):
    reward_model.ties(ref_PG, ~ref_right_PG & False, tied_PG, right_PG)


def test_section_means():
  got = reward_model.section_means(
      dict(easy=1., hard=.5, code=.2), dict(easy=1, hard=3, code=7),
      dict(chat=["easy", "hard"], reasoning=["code"]))
  assert got == pytest.approx(dict(chat=2.5 / 4, reasoning=.2, mean=(.625 + .2) / 2))


def test_implicit_gap():
  got = reward_model.implicit_gap(
      dict(train=([1.], [0.]), shifted=([1., 0.], [0., 1.])),
      dict(train=([2.], [0.]), shifted=([1., 2.], [0., 1.])))
  assert got == dict(train=dict(implicit=1, explicit=1, gap=0),
                     shifted=dict(implicit=.5, explicit=1, gap=.5))


def test_group_variance():
  # 2, left out, 0. A shift of a prompt's rewards changes nothing.
  reward_PG = np.array([[1., 3., nan], [7., nan, nan], [2., 2., 2.]])
  assert reward_model.group_variance(reward_PG) == 1
  assert reward_model.group_variance(reward_PG + [[5.], [0.], [-1.]]) == 1
  assert np.isnan(reward_model.group_variance(reward_PG[1:2]))
