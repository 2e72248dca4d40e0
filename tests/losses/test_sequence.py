import jax
import jax.numpy as jnp
import numpy as np

from rlx.advantages import group
from rlx.losses import aggregate, policy, sequence
from tests import whole

sequence, policy, group = map(whole.compile_module, (sequence, policy, group))

nan = np.nan
D = np.array([[.2, -.1, .4, 0., .05, -.3]])   # log rho of six tokens.
OLD = np.full((1, 6), -1.0)
ALL = np.ones((1, 6), bool)
wide = dict(clip_low=9., clip_high=9.)


def test_a_shared_ratio_has_the_gradient_of_each_token():
  a_BT = np.array([[1., -1., 2., 1., -1., .5]])
  grad = lambda fn: jax.grad(lambda x: jnp.sum(fn(x, OLD, a_BT, ALL, **wide)[0]))(OLD + D)
  np.testing.assert_allclose(grad(sequence.gspo), -a_BT * np.exp(.25 / 6), rtol=1e-6)


def test_dro():
  """The gradient of (A - tau d)^2 / (2 tau), of each completion of two."""
  ref_BT = np.array([[-1., -2., -1.5], [-1., -.5, nan]])
  logps_BT = ref_BT + np.array([[.2, .1, .3], [-.4, .1, nan]])   # d = .6 and -.3.
  mask_BT = ~np.isnan(ref_BT)
  a_BT = np.array([[1.] * 3, [-.5] * 3])
  # -(A - 2 d) = -(1 - 1.2) and -(-.5 + .6).
  grad_BT = jax.grad(lambda x: jnp.sum(sequence.dro(x, ref_BT, a_BT, mask_BT, tau=2.)))(logps_BT)
  np.testing.assert_allclose(grad_BT, [[.2] * 3, [-.1, -.1, 0]], atol=1e-6)


def test_vespo_is_finite_far_from_the_sampler():
  logps_BT, mask_BT = np.array([[-1., -2.]]), np.ones((1, 2), bool)
  for far in (-100., 100.):   # Products of infinity and of 0.
    got = sequence.vespo(logps_BT, logps_BT + far, np.ones((1, 2)), mask_BT)
    np.testing.assert_array_equal(got, 0)


def test_pacs():
  # Scores 1, -1 and 3; z against the other's mean: 0, -3, 3. The fourth has no verdict.
  d_BT = np.array([[.5, .5], [-1., nan], [2., 1.], [7., 7.]])
  mask_BT = np.array([[True, True], [True, False], [True, True], [True, True]])
  outcome_PG = np.array([[1., 0., .25, nan]])
  got = sequence.pacs(d_BT, 0 * d_BT, mask_BT, outcome_PG, ~np.isnan(outcome_PG))
  soft = lambda x: np.log1p(np.exp(x))
  right = soft(3.) - .25 * 3
  np.testing.assert_allclose(got, [[np.log(2)] * 2, [soft(-3.), 0], [right] * 2, [0, 0]], rtol=1e-6)
  # Nobody to compare with.
  alone = sequence.pacs(d_BT, 0 * d_BT, mask_BT, outcome_PG, np.arange(4)[None] == 0)
  np.testing.assert_array_equal(alone, 0)


def test_dpo():
  # z of the first group: .1, -.2, .3 and one without a verdict. The first of the right
  # against the first of the wrong: .1 + .2. In the second group all are right.
  d_BT = np.array([[.5, .5], [-2., nan], [2., 1.], [7., 7.]] * 2)
  mask_BT = np.array([[True, True], [True, False], [True, True], [True, True]] * 2)
  outcome_PG = np.array([[1., 0., 1., nan], [1., 1., 1., 1.]])
  learn_PG = ~np.isnan(outcome_PG)
  mask_BT = mask_BT & learn_PG.reshape(-1, 1)
  def loss(d_BT):
    return sequence.dpo(d_BT, jnp.zeros_like(d_BT), mask_BT, outcome_PG, learn_PG, dpo_beta=0.1)
  pair = np.log1p(np.exp(-.3))
  np.testing.assert_allclose(
      loss(d_BT), [[pair] * 2, [pair, 0], [pair] * 2] + [[0, 0]] * 5, rtol=1e-6)
  # On every row of the group, so that the mean over rows is the mean over groups.
  grads_BT = jax.grad(lambda d: aggregate.aggregate(
      loss(d), mask_BT, mode="seq-mean-token-mean").total)(d_BT)
  slope = 3 * .1 / (1 + np.exp(.3))  # Of three rows with a token.
  np.testing.assert_allclose(grads_BT, [[-slope] * 2, [slope, 0]] + [[0, 0]] * 6, rtol=1e-6)


def test_dpo_takes_the_best_and_the_worst_of_graded_verdicts():
  outcome_PG, learn_PG = np.array([[.2, .9, .1, .5]]), np.ones((1, 4), bool)
  d_BT = np.array([[1.], [2.], [4.], [8.]])
  got = sequence.dpo(d_BT, 0 * d_BT, d_BT > 0, outcome_PG, learn_PG, dpo_beta=1.0)
  np.testing.assert_allclose(got, np.log1p(np.exp(2.)), rtol=1e-6)  # -(2 - 4)


def test_crew_dpo():
  # Right with .5, .9 and wrong with .8, .3 (the mean of .2 and .4); not valid, sure and
  # unsure. Then a group without a wrong one.
  p_BT = np.array([[nan, .5], [nan, .9], [nan, .8], [.2, .4], [nan, 1.], [nan, .1]] * 2)
  span_BT = ~np.isnan(p_BT)
  outcome_PG = np.array([[1., .75, .25, 0., nan, nan], [1.] * 6])
  learn_PG = ~np.isnan(outcome_PG)
  mask_BT = np.broadcast_to(learn_PG.reshape(-1, 1), p_BT.shape)
  d_BT = np.array([[1., 0], [2, 0], [4, 0], [3, 5], [9, 9], [9, 9]] * 2)
  got = sequence.crew_dpo(d_BT, 0 * d_BT, np.log(p_BT), span_BT, mask_BT, outcome_PG,
                          learn_PG, dpo_beta=0.1)
  # 2 of the surer right against 8 of the less sure wrong.
  pair = np.log1p(np.exp(.8 - .2))
  np.testing.assert_allclose(got, [[pair] * 2] * 4 + [[0, 0]] * 8, rtol=1e-6)
  # Without an answer nobody is sure: 0 is below .3.
  got = sequence.crew_dpo(d_BT, 0 * d_BT, np.log(p_BT), span_BT & (p_BT[:, 1:] != .8),
                          mask_BT, outcome_PG, learn_PG, dpo_beta=0.1)
  np.testing.assert_allclose(got[0], np.log1p(np.exp(.4 - .2)), rtol=1e-6)


def test_first_gradient_of_pacs_is_rloo():
  mask_BT = np.arange(4)[None] < np.array([[4], [2], [1], [3], [2], [4]])
  logps_BT = np.linspace(-3., -.1, 24).reshape(6, 4)
  outcome_PG = np.array([[1., 0., 0.], [1., nan, 0.]])
  learn_PG = ~np.isnan(outcome_PG)
  counts_BT = mask_BT & learn_PG.reshape(6, 1)
  rloo_BT = jnp.broadcast_to(group.rloo(outcome_PG, learn_PG).reshape(6, 1), (6, 4))
  def gradient(fn, mode):
    return jax.grad(lambda x_BT: aggregate.aggregate(
        fn(x_BT), counts_BT, mode=mode).total)(logps_BT)
  pacs = lambda x_BT: sequence.pacs(x_BT, logps_BT, counts_BT, outcome_PG, learn_PG, score_scale=.3)
  reinforce = lambda x_BT: policy.reinforce(x_BT, rloo_BT, counts_BT)
  np.testing.assert_allclose(
      gradient(pacs, sequence.pacs.aggregation),
      .3 * gradient(reinforce, "seq-mean-token-sum"), rtol=1e-5, atol=1e-7)
