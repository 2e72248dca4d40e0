import jax
import jax.numpy as jnp
import numpy as np

from rlx.advantages import combine
from rlx.advantages import process
from rlx.advantages import temporal

nan = np.nan
# The third token is an observation: it is no time and carries nothing.
MASK = jnp.array([[True, True, False, True, False], [False] * 5])
REWARDS = jnp.array([[1., 2., nan, 4., nan], [nan] * 5])


def test_return_to_go_skips_holes():
  got = temporal.return_to_go(REWARDS, MASK, gamma=0.5)
  # 4; 2 + 4/2; 1 + 4/2.
  np.testing.assert_allclose(got, [[3, 4, 0, 4, 0], [0] * 5])


def test_gae_by_hand():
  values_BT = jnp.array([[.5, 1., nan, 2., nan], [nan] * 5])
  # delta: 4 - 2 = 2; 2 + .5*2 - 1 = 2; 1 + .5*1 - .5 = 1. Decay .5 * .5.
  got = temporal.gae(REWARDS, MASK, values_BT, gamma=0.5, lam=0.5)
  np.testing.assert_allclose(got, [[1.625, 2.5, 0, 2, 0], [0] * 5])
  np.testing.assert_allclose(combine.value_targets(got, values_BT, MASK),
                             [[2.125, 3.5, 0, 4, 0], [0] * 5])


def test_gae_with_lam_one_is_return_minus_value():
  values_BT = jnp.array([[.5, 1., nan, 2., nan], [nan] * 5])
  returns_BT = temporal.return_to_go(REWARDS, MASK, gamma=0.9)
  got = temporal.gae(REWARDS, MASK, values_BT, gamma=0.9)
  np.testing.assert_allclose(got, jnp.where(MASK, returns_BT - values_BT, 0), rtol=1e-6)


def test_long_rows_do_not_overflow():
  # gamma^t underflows long before 4000; the recursion must not divide by it.
  ones_BT = jnp.ones((1, 4000))
  got = jax.jit(temporal.return_to_go)(ones_BT, ones_BT > 0, gamma=0.9)
  np.testing.assert_allclose(got[0, :10], 10, rtol=1e-5)
  np.testing.assert_allclose(got[0, -1], 1)


def test_lone_and_empty_completions_of_process_rewards():
  mask_BT = jnp.array([[True, True], [False, False]])
  rewards_BT = jnp.array([[1., 2.], [nan, nan]])
  learn_PG = jnp.array([[True, False]])   # An empty completion is not valid.
  for fn in (process.rloo, process.grpo):
    np.testing.assert_array_equal(fn(rewards_BT, mask_BT, learn_PG), 0)
  np.testing.assert_allclose(process.reinforce(rewards_BT, mask_BT, learn_PG),
                             [[3, 2], [0, 0]])
  np.testing.assert_allclose(process.value_baseline(rewards_BT, mask_BT, learn_PG),
                             [[0, -1], [0, 0]])


def test_process_rloo_by_hand():
  mask_BT = jnp.array([[True, True], [True, False]])
  rewards_BT = jnp.array([[1., 3.], [4., nan]])
  learn_PG = jnp.ones((1, 2), bool)
  # Token means 2 and 4; code: 2 (r - 3); strict: r - the other's mean.
  np.testing.assert_allclose(process.rloo(rewards_BT, mask_BT, learn_PG),
                             [[-4 + 0, 0], [2, 0]])
  np.testing.assert_allclose(process.rloo(rewards_BT, mask_BT, learn_PG, loo="strict"),
                             [[-3 - 1, -1], [2, 0]])


def test_process_grpo_std_floor():
  mask_BT, learn_PG = jnp.ones((2, 1), bool), jnp.ones((1, 2), bool)
  rewards_BT = jnp.array([[1e-6], [3e-6]])    # std sqrt(2) e-6 is far below the floor.
  got = process.grpo(rewards_BT, mask_BT, learn_PG, eps=0.0, std_floor=1e-3)
  np.testing.assert_allclose(got, [[-1e-3], [1e-3]], rtol=1e-5)
