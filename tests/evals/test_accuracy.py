import types

import jax
import numpy as np
import pytest

from rlx.evals import accuracy

nan = np.nan


def test_repeating_a_completion_does_not_narrow_the_interval():
  one = np.array([[1.]] * 8 + [[0.]] * 2)
  assert accuracy.interval(np.repeat(one, 7, axis=1)) == pytest.approx(accuracy.interval(one))


@pytest.mark.parametrize("n", [1, 2, 6, 7, 40, 1000])
def test_the_interval_holds_its_mean(n):
  """Also where rounding puts an end beyond it, which plots of error bars do not take."""
  for verdict in (0.0, 0.3, 1.0):
    found = accuracy.interval(np.full((n, 1), verdict))
    assert 0 <= found["low"] <= found["mean"] <= found["high"] <= 1


def test_independent_completions_narrow_the_interval():
  some = np.array([[1., 0.]] * 5 + [[1., 1.]] * 3 + [[0., 0.]] * 2)
  wide = accuracy.interval(some[:, :1])
  narrow = accuracy.interval(some)
  assert narrow["high"] - narrow["low"] < wide["high"] - wide["low"]


def test_outcomes_of_all_prompts_in_equal_batches():
  asked = []
  def sample(prompts, key):
    asked.append(list(prompts))
    return types.SimpleNamespace()
  verify = lambda prompts, _: np.array([[float(p)] for p in prompts])
  out = accuracy.outcomes(sample, verify, [0, 1, 2], batch=2, repeats=2, key=jax.random.key(0))
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
