import jax.numpy as jnp
import numpy as np
import pytest

from rlx.rollouts import budget

RIGHT = jnp.arange(9)


@pytest.mark.parametrize("most, options, expected", [
    # 1 of 8: S = .21875, n S = 1.75: (4 - 1.75) / S = 10.3, (7 - 1.75) / S = 24.
    (32, {}, [24, 11, 3, 1, 0, 0, 0, 0, 0]),
    (64, dict(schedule="hard"), [56, 24, 8, 3, 0, 0, 0, 0, 0]),
    (8, {}, [0] * 9),
    # 0 of 8 counts as 1/16: S = 2 sqrt(15) / 16 = .4841, (8 - 3.873) / S = 8.5.
    # 1: S = .6614, 4.1; 2: S = .8660, 1.2; 3: S = .9682, .3.
    (32, dict(divides_by_std=True), [9, 5, 2, 1, 0, 0, 0, 0, 0]),
], ids=str)
def test_dars(most, options, expected):
  assert budget.dars(RIGHT, 8, most, **options).tolist() == expected


def test_rows_of_both_passes():
  """3 prompts x 2, then 3 more of the second and 2 of the last, in groups of 5."""
  again, row_PG = budget.rows(np.array([0, 3, 2]), 2, 5)
  assert again == [(1, 0), (1, 1), (2, 0)]
  # The first pass has rows 0 to 5; the second 6 to 9 of prompt 1, 10 and 11 of prompt 2.
  assert row_PG.tolist() == [[0, 1, -1, -1, -1], [2, 3, 6, 7, 8], [4, 5, 10, 11, -1]]
