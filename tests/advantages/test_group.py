import functools
import itertools

import jax
import numpy as np
import pytest

from rlx.advantages import batch, combine, group
from tests import whole

batch, group = map(whole.compile_module, (batch, group))

nan = np.nan


def one(fn, rewards, valid, *more, **options):
  arrays = [np.array([rewards]), np.array([valid], bool), *more]
  return fn(*arrays, **options)[0]


@pytest.mark.parametrize("rewards, valid, expected", [
    # Solved: 1 - (0+0+1)/3. Failed: 0 - (1+0+1)/3.
    ([1, 0, 0, 1], [1, 1, 1, 1], [2/3, -2/3, -2/3, 2/3]),
    # The verifier failed on the second: two rivals remain, not three.
    ([1, nan, 0, 1], [1, 0, 1, 1], [1/2, 0, -1, 1/2]),
    ([1, nan, nan, nan], [1, 0, 0, 0], [0, 0, 0, 0]),  # No rival, no signal.
    ([.9, .9, .9, .9], [1, 1, 1, 1], [0, 0, 0, 0]),    # Exactly 0: see atol.
], ids=["mixed", "verifier_failed", "lone", "tied"])
def test_rloo(rewards, valid, expected):
  got = one(jax.jit(group.rloo), [float(r) for r in rewards], valid)
  np.testing.assert_allclose(got, expected, rtol=1e-6, atol=0)


@pytest.mark.parametrize("rewards, valid, demo, expected", [
    # The mean of the sampled is 1/3, the demonstration is the fourth.
    ([1, 0, 0, 1], [1, 1, 1, 1], [0, 0, 0, 1], [2/3, -1/3, -1/3, 2/3]),
    ([0, 0, 0, 1], [1, 1, 1, 1], [0, 0, 0, 1], [0, 0, 0, 1]),  # Never solved alone.
    ([1, 1, 1, 1], [1, 1, 1, 1], [0, 0, 0, 1], [0, 0, 0, 0]),
    ([1, nan, 0, 1], [1, 0, 1, 1], [0, 0, 0, 1], [1/2, 0, -1/2, 1/2]),
    ([nan, 1], [0, 1], [0, 1], [0, 0]),  # Nothing to compare with.
])
def test_against_sampled(rewards, valid, demo, expected):
  got = group.against_sampled(np.array([rewards], float), np.array([valid], bool),
                              np.array([demo], bool))
  np.testing.assert_allclose(got[0], expected, rtol=1e-6)


def test_demonstrations_that_are_cloned_have_no_advantage():
  got = group.against_sampled(np.array([[1., 0, 1]]), np.ones((1, 3), bool),
                              np.array([[False, False, True]]), demonstrations="cloned")
  np.testing.assert_allclose(got, [[.5, -.5, 0]], rtol=1e-6)


@pytest.mark.parametrize("fn", [group.rloo, group.mean_baseline, group.grpo, group.gpg,
                                group.best_minus_second,
                                functools.partial(group.pass_at_k_training, k=1),
                                batch.group_mean_batch_std])
@pytest.mark.parametrize("rewards, valid", [
    ([.9, .9, .9], [1, 1, 1]), ([.9, nan, nan], [1, 0, 0]), ([nan, nan, nan], [0, 0, 0]),
], ids=["tied", "lone", "nobody"])
def test_no_signal_is_exactly_zero(fn, rewards, valid):
  np.testing.assert_array_equal(one(jax.jit(fn), rewards, valid), 0)


def test_passk_is_grpo_over_all_draws():
  rewards, valid = np.array([0, 1, 0, nan, 0, .5, 0]), np.array([1, 1, 1, 0, 1, 1, 1])
  rows = np.flatnonzero(valid)
  draws = list(itertools.combinations(rows, 3))
  best = np.array([max(rewards[list(d)]) > 0 for d in draws])
  z = (best - best.mean()) / best.std()
  want = [np.mean([a for a, d in zip(z, draws) if i in d]) if v else 0 for i, v in enumerate(valid)]
  np.testing.assert_allclose(one(group.pass_at_k_training, rewards, valid, k=3), want, rtol=1e-5)


def test_passk_needs_a_group_larger_than_k():
  with pytest.raises(ValueError, match="k=4: less than the group's 4"):
    group.pass_at_k_training(np.zeros((1, 4)), np.ones((1, 4), bool), k=4)


def test_variance_weighted_weighs_prompts_not_completions():
  rewards_PG = np.array([[1., 0., nan], [1., 0., .5], [1., 0., 0.]])
  scores_PG = np.array([[.2, .6, nan], [.1, .5, .9], [.5, nan, nan]])
  learn_PG = np.array([[1, 1, 0], [1, 1, 1], [1, 0, 0]], bool)
  got = group.variance_weighted(rewards_PG, scores_PG, learn_PG, low=.5, high=2., k=5.)
  # Unbiased std of the scores: .4 / sqrt(2) and .4; the lone one has none.
  spread = np.array([.4 / np.sqrt(2), .4])
  weight = .5 + 1.5 / (1 + np.exp(-5 * (spread - spread.mean())))
  plain = np.asarray(group.grpo(rewards_PG, learn_PG))
  np.testing.assert_allclose(got[:2], weight[:, None] * plain[:2], rtol=1e-5, atol=1e-6)
  np.testing.assert_array_equal(got[2], [0, 0, 0])


def test_ucas():
  # Two prompts of two. Prompt 0: rewards 1, 0, A = +-1/sqrt 2; sure 2 + 2 and 1 + 1, so
  # that c = +-1/sqrt 2. Prompt 1 ties: the penalty alone. Logits 0 .. 4.
  nan, root = np.nan, 2**-.5
  mask = np.array([[1, 1], [1, 1], [1, 0], [1, 0]], bool)
  means = -np.array([[2., 2.], [1., 1.], [3., nan], [4., nan]])
  logits = np.array([[0., 4.], [1., 2.], [3., nan], [4., nan]])
  args = np.array([[1., 0.], [1., 1.]]), np.ones((2, 2), bool), mask, means, logits
  good, bad = root * np.exp(-.25 * root), -root * np.exp(.35 * -root)
  expected = [[good, good - .05], [bad - .0125, bad - .025], [-.0375, 0], [-.05, 0]]
  np.testing.assert_allclose(group.ucas(*args), expected, rtol=1e-5)
  # What is right is not turned into wrong; without its parts it is GRPO.
  high = group.ucas(*args, penalty=5.)
  np.testing.assert_allclose(high[:2], [[good, 0], [bad - 1.25, bad - 2.5]], rtol=1e-5)
  plain = group.ucas(*args, beta_pos=0., beta_neg=0., penalty=0.)
  np.testing.assert_array_equal(plain, combine.spread(group.grpo(*args[:2]), mask))
  equal = group.ucas(*args[:4], np.where(mask, 7., nan))
  np.testing.assert_allclose(equal[2:], [[-.025, 0], [-.025, 0]], rtol=1e-5)


def test_self_rewarded_mixes_where_the_self_rewards_differ():
  rewards_PG = np.array([[1., 0, 0, 1], [1, 0, 0, 1], [1, 0, 0, 1]])
  learn_PG = np.array([[1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 0, 1]], bool)
  # s = 0.1 (l + 20), clipped: 1 0 .5 .5 | .5 .5 .5 .5 | .2 0 (gone) .1
  logps_B = np.array([-5., -25, -15, -15, -15, -15, -15, -15, -18, -20, np.nan, -19])
  got = group.self_rewarded(rewards_PG, logps_B, learn_PG, c_ref=-20., tau=.25, eps=0.)
  plain = group.grpo(rewards_PG, learn_PG, eps=0.)
  # Std of 1 0 .5 .5 is sqrt(1/6): scores sqrt(6)/2, -sqrt(6)/2, 0, 0.
  mixed = .75 * np.array([1, -1, -1, 1]) * np.sqrt(3) / 2 + .25 * np.sqrt(6) / 2 * np.array(
      [1, -1, 0, 0])
  np.testing.assert_allclose(got[0], mixed, rtol=1e-5)
  # No spread; and a std of 0.1, which is not above 0.1 once it is 0.11.
  np.testing.assert_array_equal(got[1], plain[1])
  again = group.self_rewarded(rewards_PG, logps_B, learn_PG, c_ref=-20., tau=.25, eps=0.,
                              least_std=.11)
  np.testing.assert_array_equal(again[2], plain[2])
  # 1 0 1 and .2 0 .1, of which the third is not there.
  np.testing.assert_allclose(
      group.self_rewarded(rewards_PG, logps_B, learn_PG, c_ref=-20., tau=1., eps=0.,
                          least_std=.09)[2], [1, -1, 0, 0], atol=1e-5)


def test_tempo():
  # a a1 twice, right and wrong; a a2, right; b, wrong. V(root) = 1/2, V(a) = 2/3,
  # V(a1) = 1/2, V(a2) = 1, V(b) = 0; the std is 1 / sqrt(3).
  tokens_BT = np.array([[1, 2], [1, 2], [1, 3], [4, 9]])
  mask_BT = np.array([[1, 1], [1, 1], [1, 1], [1, 0]], bool)
  rewards_PG, learn_PG = np.array([[1., 0, 1, 0]]), np.ones((1, 4), bool)
  want = np.sqrt(3) * np.array([[1/2 + 1/6, 1/2 - 1/6], [-1/2 + 1/6, -1/2 - 1/6],
                                [1/2 + 1/6, 1/2 + 1/3], [-1/2 - 1/2, 0]])
  got = group.tempo(rewards_PG, tokens_BT, mask_BT, learn_PG, eps=0.)
  np.testing.assert_allclose(got, want, atol=1e-6)
  # Nothing shared: GRPO, but for the token in which they part.
  apart_BT = tokens_BT + np.array([[0], [8], [16], [24]])
  got = group.tempo(rewards_PG, apart_BT, mask_BT, learn_PG, eps=0.)
  np.testing.assert_allclose(got[:3, 1], group.grpo(rewards_PG, learn_PG, eps=0.)[0, :3], rtol=1e-5)
  # a, an observation, b. V(root) = 1/2, V(a) = 1/2, V(a, 7) = 1, V(a, 8) = 0, V(c) = 1/2: what is
  # read tells the outcomes apart, and not the action after it.
  tokens_BT = np.array([[1, 7, 2], [1, 8, 2], [4, 7, 2], [4, 7, 2]])
  learn_BT = np.array([[1, 0, 1]] * 4, bool)
  got = group.tempo(rewards_PG, tokens_BT, learn_BT, learn_PG, eps=0.)
  want = np.sqrt(3) / 2 * np.array([[1, 0, 1], [-1, 0, -1]] * 2)
  np.testing.assert_allclose(got, want, atol=1e-6)
  # After the same observation two actions tell them apart.
  got = group.tempo(rewards_PG, np.array([[1, 7, 2], [1, 7, 3], *tokens_BT[2:]]), learn_BT,
                    learn_PG, eps=0.)
  np.testing.assert_allclose(got[:2, 2], np.sqrt(3) * np.array([1, -1]), atol=1e-6)
  # A tie gives exactly 0, although 0.9 and its mean differ in float32.
  got = group.tempo(np.full((1, 4), .9), tokens_BT, learn_BT, learn_PG)
  np.testing.assert_array_equal(got, 0)
