import jax
import numpy as np
import pytest

from rlx.advantages import reward_std_filter

nan = np.nan
# Spread 1 / sqrt(2) = .707, .0707, 0; of the last one a single reward is known.
REWARDS = np.array([[1., 0.], [.5, .4], [.3, .3], [9., nan]])
VALID = np.array([[1, 1], [1, 1], [1, 1], [1, 0]], bool)
MEAN = (.5**.5 + .1 * .5**.5) / 4


@pytest.mark.parametrize("step, ema, kept, expected", [
    (4, nan, [1, 1, 1, 1], nan),            # Nothing counts yet.
    (5, nan, [1, 1, 1, 1], MEAN),           # The first mean.
    (9, .4, [1, 1, 1, 1], .99 * .4 + .01 * MEAN),
    (10, .4, [1, 0, 0, 0], .99 * .4 + .01 * MEAN),  # At least .2.
    (10, .14, [1, 1, 0, 0], .99 * .14 + .01 * MEAN),  # .0707 >= .07.
    (10, nan, [1, 1, 1, 1], MEAN),
])
def test_ema_std(step, ema, kept, expected):
  keep_P, metrics, state = jax.jit(reward_std_filter.running_mean)(
      REWARDS, VALID, step, ema=np.float32(ema))
  assert keep_P.tolist() == [bool(k) for k in kept]
  np.testing.assert_allclose([state["ema"], metrics["std_ema"]], expected, rtol=1e-6)


def test_a_mean_of_zero_keeps_all():
  keep_P, _, state = reward_std_filter.running_mean(
      np.ones((2, 3)), np.ones((2, 3), bool), 20, ema=np.float32(0))
  assert keep_P.all() and state["ema"] == 0


def test_the_mean_is_known_before_it_filters():
  with pytest.raises(ValueError, match="filter_from=4: must be >= start=5"):
    reward_std_filter.running_mean(REWARDS, VALID, 0, start=5, filter_from=4)
