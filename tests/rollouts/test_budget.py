import jax.numpy as jnp
import pytest

from rlx.rollouts import budget

RIGHT = jnp.arange(9)


@pytest.mark.parametrize("options, expected", [
    # 1 of 8: S = .21875, n S = 1.75: (4 - 1.75) / S = 10.3, (7 - 1.75) / S = 24.
    (dict(most=32), [24, 11, 3, 1, 0, 0, 0, 0, 0]),
    (dict(schedule="hard", most=64), [56, 24, 8, 3, 0, 0, 0, 0, 0]),
    (dict(most=8), [0] * 9),
    # 0 of 8 counts as 1/16: S = 2 sqrt(15) / 16 = .4841, (8 - 3.873) / S = 8.5.
    # 1: S = .6614, 4.1; 2: S = .8660, 1.2; 3: S = .9682, .3.
    (dict(divides_by_std=True), [9, 5, 2, 1, 0, 0, 0, 0, 0]),
], ids=str)
def test_dars(options, expected):
  assert budget.dars(RIGHT, 8, **options).tolist() == expected


@pytest.mark.parametrize("options, message", [
    (dict(schedule="easy"), "schedule='easy': one of"), (dict(most=7), "most=7: must be >= n=8")])
def test_refuses(options, message):
  with pytest.raises(ValueError, match=message): budget.dars(RIGHT, 8, **options)
