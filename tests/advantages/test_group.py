import functools
import itertools

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
                                group.pass_at_k, functools.partial(group.passk, k=1), batch.group_mean_batch_std])
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


@pytest.mark.parametrize("solved, good, bad", [
    # 1 - C(7,4)/C(8,4) = 1/2 of the draws have the one success.
    (1, 1.0, -.142857), (2, .522233, -.174078), (4, .120386, -.120386),
    (5, 0, 0), (8, 0, 0), (0, 0, 0)])
def test_passk(solved, good, bad):
  got = one(group.passk, [1.] * solved + [0.] * (8 - solved), [1] * 8, k=4)
  np.testing.assert_allclose(got, [good] * solved + [bad] * (8 - solved), rtol=1e-5, atol=0)


def test_passk_is_grpo_over_all_draws():
  rewards, valid = np.array([0, 1, 0, nan, 0, .5, 0]), np.array([1, 1, 1, 0, 1, 1, 1])
  rows = np.flatnonzero(valid)
  draws = list(itertools.combinations(rows, 3))
  best = np.array([max(rewards[list(d)]) > 0 for d in draws])
  z = (best - best.mean()) / best.std()
  want = [np.mean([a for a, d in zip(z, draws) if i in d]) if v else 0
          for i, v in enumerate(valid)]
  np.testing.assert_allclose(one(group.passk, rewards, valid, k=3), want, rtol=1e-5)
  binary = np.array([1., 0, 0, 1, 0])
  np.testing.assert_allclose(one(group.passk, binary, [1] * 5, k=1),
                             (binary - binary.mean()) / binary.std(), rtol=1e-6)


def test_passk_needs_a_group_larger_than_k():
  for k in (0, 4):
    with pytest.raises(ValueError, match=f"k={k}: at least 1 and less than the group's 4"):
      group.passk(jnp.zeros((1, 4)), jnp.ones((1, 4), bool), k=k)


def test_pass_at_k_rewards_the_best_only():
  got = one(group.pass_at_k, [.2, .9, nan, .5], [1, 1, 0, 1], use_std=False)
  np.testing.assert_allclose(got, [0, .4, 0, 0], rtol=1e-6)
  tied = one(group.pass_at_k, [.9, .9, 0., 0.], [1, 1, 1, 1])
  np.testing.assert_array_equal(tied, 0)


def test_variance_weighted_weighs_prompts_not_completions():
  rewards_PG = jnp.array([[1., 0., nan], [1., 0., .5], [1., 0., 0.]])
  scores_PG = jnp.array([[.2, .6, nan], [.1, .5, .9], [.5, nan, nan]])
  valid_PG = jnp.array([[1, 1, 0], [1, 1, 1], [1, 0, 0]], bool)
  got = group.variance_weighted(rewards_PG, scores_PG, valid_PG, low=.5, high=2., k=5.)
  # Unbiased std of the scores: .4 / sqrt(2) and .4; the lone one has none.
  spread = np.array([.4 / np.sqrt(2), .4])
  weight = .5 + 1.5 / (1 + np.exp(-5 * (spread - spread.mean())))
  plain = np.asarray(group.grpo(rewards_PG, valid_PG))
  np.testing.assert_allclose(got[:2], weight[:, None] * plain[:2], rtol=1e-5, atol=1e-6)
  np.testing.assert_array_equal(got[2], [0, 0, 0])
  # On the reward the weight would be gone.
  np.testing.assert_allclose(group.grpo(rewards_PG * 3, valid_PG), plain, atol=1e-5)
