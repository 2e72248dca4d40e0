import itertools

import jax.numpy as jnp
import numpy as np
import pytest

from rlx.rewards import noise

nan = np.nan
OUTCOME_PG = jnp.array([[1., 1., 0., 0.], [1., nan, 0., .25]])
VALID_PG = ~jnp.isnan(OUTCOME_PG)
NOISE_PG = jnp.array([[.1, .5, .1, .5], [.5, .1, .5, .1]])


@pytest.mark.parametrize("options, expected", [
    (dict(), [1, 1, 0, 0, 1, 0, 0, .25]),
    # u = 0.1 is below both rates, 0.5 below neither; 0.25 becomes 0.75.
    (dict(false_positive=.2, false_negative=.3), [0, 1, 1, 0, 1, 0, 0, .75]),
    (dict(false_negative=.3), [0, 1, 0, 0, 1, 0, 0, .25]),
    # The group's first draw for all: 0.1 flips the first, 0.5 leaves the second.
    (dict(false_positive=.2, false_negative=.2, level="group"), [0, 0, 1, 1, 1, 0, 0, .25]),
    # As the second line, then (r - .2) / .5 and r - .7.
    (dict(false_positive=.2, false_negative=.3, correction="backward"),
     [-.4, 1.6, 1.6, -.4, 1.6, 0, -.4, 1.1]),
    (dict(false_positive=.2, false_negative=.3, correction="forward"),
     [-.7, .3, .3, -.7, .3, 0, -.7, .05]),
], ids=["clean", "both", "false_negative", "group", "backward", "forward"])
def test_channel(options, expected):
  got = noise.channel(OUTCOME_PG, NOISE_PG, VALID_PG, **options)
  np.testing.assert_allclose(got, expected, rtol=1e-6, atol=1e-7)


FP, FN = .15, .35
TRUE = np.array([1., 0., 0.])  # A bandit of three arms, the first is right.
PI = np.array([.2, .5, .3])


def test_corrections_recover_the_clean_update_of_a_bandit():
  """Exactly: a sum over arms and over the verifier's errors."""
  def mean_update(reward_of):  # E[r grad_logits log pi]
    expectation = np.zeros(3)
    for arm, wrong in itertools.product(range(3), (False, True)):
      rate = FN if TRUE[arm] else FP
      verdict = 1 - TRUE[arm] if wrong else TRUE[arm]
      expectation += PI[arm] * (rate if wrong else 1 - rate) * reward_of(verdict) * (
          np.eye(3)[arm] - PI)
    return expectation
  one = lambda fn, **o: lambda v: float(fn(jnp.array([v]), jnp.array([True]), **o)[0])
  clean = sum(PI[a] * TRUE[a] * (np.eye(3)[a] - PI) for a in range(3))
  backward = one(noise.backward, false_positive=FP, false_negative=FN)
  np.testing.assert_allclose(mean_update(backward), clean, atol=1e-7)
  forward = one(noise.forward, false_negative=FN)
  np.testing.assert_allclose(mean_update(forward), (1 - FP - FN) * clean, atol=1e-7)
  assert np.abs(mean_update(lambda v: v) - clean).max() > .05
  # Reward by reward: the mean is the true verdict.
  for true, rate in ((1, FN), (0, FP)):
    mean = (1 - rate) * backward(float(true)) + rate * backward(1. - true)
    assert mean == pytest.approx(true, abs=1e-6)


@pytest.mark.parametrize("options, expected", [
    (dict(), [1, 0, 1, 0, 0, 0, 0, 1]),
    (dict(rate=.6), [1, 1, 1, 1, 1, 0, 1, 1]),
    (dict(kind="constant", rate=.25), [.25] * 5 + [0] + [.25] * 2),
    (dict(kind="inverse"), [0, 0, 1, 1, 0, 0, 1, .75])], ids=str)
def test_control(options, expected):
  got = noise.control(*(x.reshape(-1) for x in (OUTCOME_PG, NOISE_PG, VALID_PG)), **options)
  np.testing.assert_array_equal(got, expected)


def test_refuses_a_channel_that_tells_nothing():
  with pytest.raises(ValueError, match="false_positive=0.5, false_negative=0.5: their sum"):
    noise.backward(TRUE, TRUE == 1, false_positive=.5, false_negative=.5)
