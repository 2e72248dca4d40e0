import jax
import numpy as np

from rlx.advantages import process, temporal
from tests import whole

process, temporal = map(whole.compile_module, (process, temporal))

nan = np.nan
# The third token is an observation: it is no time and carries nothing.
MASK = np.array([[True, True, False, True, False], [False] * 5])
REWARDS = np.array([[1., 2., nan, 4., nan], [nan] * 5])


def test_return_to_go_skips_holes():
  got = temporal.return_to_go(REWARDS, MASK, gamma=0.5)
  # 4; 2 + 4/2; 1 + 4/2.
  np.testing.assert_allclose(got, [[3, 4, 0, 4, 0], [0] * 5])


def test_long_rows_do_not_overflow():
  # gamma^t underflows long before 4000; the recursion must not divide by it.
  ones_BT = np.ones((1, 4000))
  got = jax.jit(temporal.return_to_go)(ones_BT, ones_BT > 0, gamma=0.9)
  np.testing.assert_allclose(got[0, :10], 10, rtol=1e-5)
  np.testing.assert_allclose(got[0, -1], 1)


def test_process_grpo_std_floor():
  mask_BT, learn_PG = np.ones((2, 1), bool), np.ones((1, 2), bool)
  rewards_BT = np.array([[1e-6], [3e-6]])    # std sqrt(2) e-6 is far below the floor.
  got = process.grpo(rewards_BT, mask_BT, learn_PG, eps=0.0, std_floor=1e-3)
  np.testing.assert_allclose(got, [[-1e-3], [1e-3]], rtol=1e-5)
