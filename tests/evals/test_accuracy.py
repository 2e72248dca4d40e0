import types

import jax
import numpy as np
import pytest

from rlx.evals import accuracy

nan = np.nan


def test_interval_is_wilson_for_one_completion_per_prompt():
  # n=10, 8 right: (0.8 + 1.9208/10 +- 1.96 sqrt(.016 + .9604/100)) / 1.38416.
  out = accuracy.interval(np.array([[1.]] * 8 + [[0.]] * 2))
  assert out["mean"] == pytest.approx(.8)
  assert out["low"] == pytest.approx(.4902, abs=1e-4)
  assert out["high"] == pytest.approx(.9433, abs=1e-4)


def test_repeating_a_completion_does_not_narrow_the_interval():
  one = np.array([[1.]] * 8 + [[0.]] * 2)
  assert accuracy.interval(np.repeat(one, 7, axis=1)) == pytest.approx(
      accuracy.interval(one))


def test_independent_completions_narrow_the_interval():
  some = np.array([[1., 0.]] * 5 + [[1., 1.]] * 3 + [[0., 0.]] * 2)
  wide = accuracy.interval(some[:, :1])
  narrow = accuracy.interval(some)
  assert narrow["high"] - narrow["low"] < wide["high"] - wide["low"]


@pytest.mark.parametrize("outcomes, mean, n", [
    ([[nan, 1.], [nan, nan], [0., 0.]], .5, 2), ([[nan]], nan, 0)])
def test_unknown_verdicts_are_excluded(outcomes, mean, n):
  out = accuracy.interval(np.array(outcomes))
  np.testing.assert_equal(out["mean"], mean)
  assert out["prompts"] == n


def test_outcomes_of_all_prompts_in_equal_batches():
  asked = []
  def sample(prompts, key):
    asked.append(list(prompts))
    return types.SimpleNamespace()
  verify = lambda prompts, _: np.array([[float(p)] for p in prompts])
  out = accuracy.outcomes(sample, verify, [0, 1, 2], batch=2, repeats=2,
                          key=jax.random.key(0))
  assert out.tolist() == [[0, 0], [1, 1], [2, 2]]
  assert asked == [[0, 1], [2, 0]] * 2


def test_bootstrap_of_a_mean_is_its_normal_interval():
  x_P = np.random.default_rng(1).normal(size=400)
  out = accuracy.bootstrap(lambda p: x_P[p].mean(), 400)
  half = 1.96 * x_P.std() / 20
  assert out["mean"] == x_P.mean() and out["prompts"] == 400
  assert out["low"] == pytest.approx(x_P.mean() - half, abs=.2 * half)
  assert out["high"] == pytest.approx(x_P.mean() + half, abs=.2 * half)
  assert out == accuracy.bootstrap(lambda p: x_P[p].mean(), 400)


def test_bootstrap_excludes_samples_without_a_value():
  # 3 if the first prompt is in the sample, NaN otherwise.
  out = accuracy.bootstrap(lambda p: 3.0 if 0 in p else nan, 2)
  assert (out["mean"], out["low"], out["high"]) == (3, 3, 3)
  assert np.isnan(accuracy.bootstrap(None, 0)["mean"])


def test_by_value_and_by_ranges():
  outcome_PG = np.array([[1.], [0.], [1.], [1.], [0.], [0.]])
  by_name = accuracy.by(outcome_PG, ["b", "a", "b", "b", "a", "b"], buckets=2)
  assert {k: (x["mean"], x["prompts"]) for k, x in by_name.items()} == {
      "a": (0, 2), "b": (.75, 4)}
  by_range = accuracy.by(outcome_PG, [3, 1, 2, 9, 5, 4], buckets=3)
  assert list(by_range) == ["1..2", "3..4", "5..9"]
  assert [x["mean"] for x in by_range.values()] == [.5, .5, .5]
  # Equal values are in one range, even if its size differs.
  assert list(accuracy.by(outcome_PG, [1, 1, 1, 1, 2, 7], buckets=2)) == ["1..1", "2..7"]
