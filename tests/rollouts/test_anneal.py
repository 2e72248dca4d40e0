import numpy as np
import pytest

from rlx.rollouts import anneal


@pytest.mark.parametrize("step, column, factor", [
    (10, 0, 1.2),      # 2.2 - e^0
    (95, 25, 1.1487),  # d = 25 + 5 95 = 500: 2.2 - e^.05
    (95, 100, 0.9786),
    (10, 30, 0.70818),  # d = 75: 2.2 - e^.4
    (10, 74, 0.1),     # 2.2 - e^.98667 = -.482: the floor
    (10, 20000, 0.1),  # e^267 overflows
    (9, 60, 1.0),      # warm-up
    (10**6, 25, 1.19937),  # d = 40000
])
def test_ead(step, column, factor):
  found_T = anneal.ead(np.arange(20001), step)
  assert found_T.dtype == np.float32
  np.testing.assert_allclose(found_T[column], factor, rtol=1e-4)


def test_a_fixed_rate_cools_within_nineteen_tokens():
  found_T = anneal.ead(np.arange(20001), 100, growth=0.0)[:20]
  assert found_T[18] > 0.1 and found_T[19] == np.float32(0.1)  # 25 ln 2.1 = 18.5
  assert (np.diff(found_T) < 0).all()
