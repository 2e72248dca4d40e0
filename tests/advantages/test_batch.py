import jax.numpy as jnp
import numpy as np

from rlx.advantages import batch

nan = np.nan
REWARDS = jnp.array([[1., 0.], [nan, 1.]])
VALID = jnp.array([[True, True], [False, True]])


def test_reinforce():
  np.testing.assert_array_equal(batch.reinforce(REWARDS, VALID), [[1, 0], [0, 1]])
  np.testing.assert_allclose(batch.reinforce(REWARDS, VALID, use_mean=True),
                             [[1/3, -2/3], [0, 1/3]], rtol=1e-6)


def test_group_mean_batch_std():
  # Group means 1/2 and 1 (of the one valid); rewards 1, 0, 1 have std sqrt(1/3).
  got = batch.group_mean_batch_std(REWARDS, VALID, eps=0.0)
  np.testing.assert_allclose(got, [[.5 * np.sqrt(3), -.5 * np.sqrt(3)], [0, 0]], rtol=1e-6)


def test_reinforce_pp_whitens_returns_over_tokens():
  mask_BT = jnp.array([[True, True], [True, False]])
  rewards_BT = jnp.array([[0., 2.], [-1., nan]])
  got = batch.reinforce_pp(rewards_BT, mask_BT, jnp.ones(2, bool))
  want = (np.array([2., 2., -1.]) - 1) / np.sqrt(3)    # Unbiased variance 3.
  np.testing.assert_allclose(got, [want[:2], [want[2], 0]], rtol=1e-5)


def test_reinforce_pp_baseline_weighs_tokens():
  mask_BT = jnp.array([[True, True], [True, False]])
  got = batch.reinforce_pp_baseline(jnp.array([[1., 0.]]), jnp.ones((1, 2), bool), mask_BT)
  # Centred 1/2 on two tokens, -1/2 on one: mean 1/6, variance 1/3.
  want = (np.array([.5, .5, -.5]) - 1/6) * np.sqrt(3)
  np.testing.assert_allclose(got, [want[:2], [want[2], 0]], rtol=1e-5)


def test_remax():
  got = batch.remax(REWARDS, VALID, jnp.array([.5, .5, .5, nan]))
  np.testing.assert_allclose(got, [[.5, -.5], [0, 0]], rtol=1e-6)
