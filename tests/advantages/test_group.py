import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlx.advantages import batch
from rlx.advantages import group

nan = np.nan


def one(fn, rewards, valid, *more, **options):
  arrays = [jnp.array([rewards]), jnp.array([valid], bool), *more]
  return fn(*arrays, **options)[0]


@pytest.mark.parametrize("rewards, valid, expected", [
    # Solved: 1 - (0+0+1)/3. Failed: 0 - (1+0+1)/3.
    ([1, 0, 0, 1], [1, 1, 1, 1], [2/3, -2/3, -2/3, 2/3]),
    # The verifier failed on the second: two rivals remain, not three.
    ([1, nan, 0, 1], [1, 0, 1, 1], [1/2, 0, -1, 1/2]),
    ([1, nan, nan, nan], [1, 0, 0, 0], [0, 0, 0, 0]),  # No rival, no signal.
    ([.9, .9, .9, .9], [1, 1, 1, 1], [0, 0, 0, 0]),    # Exactly 0: see atol.
], ids=["mixed", "verifier_failed", "lone", "tied"])
@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_rloo(wrap, rewards, valid, expected):
  got = one(wrap(group.rloo), [float(r) for r in rewards], valid)
  np.testing.assert_allclose(got, expected, rtol=1e-6, atol=0)


def test_rloo_rejects_flat_rewards():
  with pytest.raises(ValueError, match=r"rewards_PG must have axes \[P, G\]"):
    group.rloo(jnp.zeros(4), jnp.ones((1, 4), bool))


@pytest.mark.parametrize("fn", [group.rloo, group.mean_baseline, group.grpo, group.gpg,
                                group.pass_at_k, batch.group_mean_batch_std])
@pytest.mark.parametrize("rewards, valid", [
    ([.9, .9, .9], [1, 1, 1]), ([.9, nan, nan], [1, 0, 0]), ([nan, nan, nan], [0, 0, 0]),
], ids=["tied", "lone", "nobody"])
def test_no_signal_is_exactly_zero(fn, rewards, valid):
  np.testing.assert_array_equal(one(jax.jit(fn), rewards, valid), 0)


def test_grpo():
  # Mean 1/2, unbiased std sqrt(1/3).
  got = one(group.grpo, [1., 0, 0, 1], [1, 1, 1, 1], eps=0.0)
  np.testing.assert_allclose(got, np.array([1, -1, -1, 1]) * 0.5 * np.sqrt(3), rtol=1e-6)
  # Without the unknown one: mean 1/3... of [1, 0, 0]; std sqrt(1/3).
  got = one(group.grpo, [1., nan, 0, 0], [1, 0, 1, 1], eps=0.0)
  np.testing.assert_allclose(
      got, np.array([2/3, 0, -1/3, -1/3]) * np.sqrt(3), rtol=1e-6, atol=0)


def test_opo_weighs_by_length():
  # Baseline (3*1 + 1*0) / 4.
  got = one(group.opo, [1., 0, nan], [1, 1, 0], jnp.array([[3, 1, 9]]))
  np.testing.assert_allclose(got, [1/4, -3/4, 0], rtol=1e-6, atol=0)


def test_gpg_scales_by_the_rewards_there_are():
  # 4 valid, 1 of them non-zero: 4 * (r - 1/4).
  got = one(group.gpg, [1., 0, 0, nan, 0], [1, 1, 1, 0, 1])
  np.testing.assert_allclose(got, [3, -1, -1, 0, -1], rtol=1e-6)


def test_pass_at_k_rewards_the_best_only():
  got = one(group.pass_at_k, [.2, .9, nan, .5], [1, 1, 0, 1], use_std=False)
  np.testing.assert_allclose(got, [0, .4, 0, 0], rtol=1e-6)
  tied = one(group.pass_at_k, [.9, .9, 0., 0.], [1, 1, 1, 1])
  np.testing.assert_array_equal(tied, 0)
