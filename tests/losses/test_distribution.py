import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlx.losses import distribution, policy
from rlx.rewards import implicit
from tests import whole

distribution = whole.compile_module(distribution)

nan = np.nan
MASK = np.array([[True, True, True], [True, False, False], [False] * 3])
DRAW = np.random.default_rng(0)


def draw(low=-2.0, high=-0.1, shape=(3, 3)):
  x = jnp.asarray(DRAW.uniform(low, high, shape), jnp.float32)
  return jnp.where(MASK.reshape(3, 3, *[1] * (len(shape) - 2)), x, nan)


def test_rover():
  # Q = 2 (.1, .3, -.2), 2 (.5); V of the next token 2 (.2, -.1), 0; A = 1 and -1.
  #   (.2 - 1 - .4)^2 = 1.44, (.6 - 1 + .2)^2 = .04, (-.4 - 1)^2 = 1.96, (1 + 1)^2 = 4
  change_BT = np.array([[.1, .3, -.2], [.5, nan, nan], [nan] * 3])
  mean_BT = np.array([[9., .2, -.1], [9., nan, nan], [nan] * 3])
  a_BT = np.array([[1.] * 3, [-1., nan, nan], [nan] * 3])
  old_BT, old_mean_BT = draw(), draw()
  args = old_BT + change_BT, old_BT, old_mean_BT + mean_BT, old_mean_BT, a_BT, MASK
  np.testing.assert_allclose(distribution.rover(*args, rho=2.),
                             [[1.44, .04, 1.96], [4., 0, 0], [0] * 3], rtol=1e-5)
  np.testing.assert_allclose(distribution.rover(*args, rho=2., next_coef=0.),
                             [[.64, .16, 1.96], [4., 0, 0], [0] * 3], rtol=1e-5)
  # Nothing is learned through the target.
  grad = jax.grad(lambda m: jnp.sum(distribution.rover(*args[:2], m, *args[3:])))(args[2])
  np.testing.assert_array_equal(grad, 0)


def test_rover_at_rest_is_twice_reinforce():
  logps_BT, mean_BT, a_BT = draw(), draw(), draw(-1., 1.)
  gradient = lambda fn: jax.grad(lambda x: jnp.sum(fn(x)))(logps_BT)
  np.testing.assert_allclose(
      gradient(lambda x: distribution.rover(x, logps_BT, mean_BT, mean_BT, a_BT, MASK)),
      2 * gradient(lambda x: policy.reinforce(x, a_BT, MASK)), rtol=1e-6)


# Entropies of a row of 5 and its .5 quantile, 3: tokens 3 and 4 are forks. Token 4 is
# the most likely one, token 3 is not.
ROW = np.ones((1, 5), bool)
ENTROPY = np.array([[1., 2., 3., 4., 5.]])
LOGPS = np.log(np.array([[.2, .3, .4, .1, .5]]))
TOP = np.log(np.array([[[.6, .2], [.4, .3], [.4, .3], [.7, .1], [.5, .2]]]))
RATIO = np.array([[1., 1.1, .9, 1.1, .9]])


@pytest.mark.parametrize("sign", [1., -1.])
def test_simko_keeps_the_value_and_shares_the_gradient(sign):
  args = LOGPS - np.log(RATIO), TOP, ENTROPY, sign * np.ones((1, 5)), ROW
  simko = lambda x, top: distribution.simko(x, args[0], top, *args[2:], alpha=.2, quantile=.5,
                                            penalty=1.5)[0]
  loss = simko(LOGPS, TOP)
  scale = np.array([[1, 1, 1, 1, 1.5 if sign < 0 else 1]])
  np.testing.assert_allclose(loss, -sign * scale * RATIO, rtol=1e-6)
  grads = jax.grad(lambda *x: jnp.sum(simko(*x)), argnums=(0, 1))(LOGPS, TOP)
  share = np.array([[0, 0, 0, .2, .2]]) * (sign > 0)
  np.testing.assert_allclose(grads[0], loss * (1 - share), rtol=1e-5)
  np.testing.assert_allclose(grads[1], (loss * share / 2)[..., None] * np.ones((1, 1, 2)),
                             rtol=1e-5)


def test_simko_without_its_parts_is_ppo():
  logps_BT, old_BT, entropy_BT, a_BT = draw(), draw(), draw(.1, 2.), draw(-1., 1.)
  top_BTK = draw(shape=(3, 3, 2))
  loss = lambda **o: distribution.simko(logps_BT, old_BT, top_BTK, entropy_BT, a_BT, MASK, **o)[0]
  ppo, _ = policy.ppo_clip(logps_BT, old_BT, a_BT, MASK)
  np.testing.assert_array_equal(loss(alpha=0., penalty=1.), ppo)
  np.testing.assert_array_equal(loss(quantile=1., alpha=1., penalty=9.), ppo)  # No forks.


@pytest.mark.parametrize("options, expected", [
    # p = 1/2, 1/4, 1/4; the teacher's 1/8, 3/8, 1/2; 7/32, 11/32, 14/32 with mix = 3/4.
    (dict(), (2 * np.log(4) + np.log(2/3) + np.log(1/2)) / 4),
    (dict(kind="forward"), (np.log(1/4) + 3 * np.log(3/2) + 4 * np.log(2)) / 8),
    (dict(kind="js", mix=.75),
     3/4 * (np.log(4/7) + 3 * np.log(12/11) + 4 * np.log(8/7)) / 8
     + 1/4 * (2 * np.log(16/7) + np.log(8/11) + np.log(4/7)) / 4)], ids=str)
def test_distil(options, expected):
  p, teacher = np.log(np.array([1/2, 1/4, 1/4])), np.log(np.array([1/8, 3/8, 1/2]))
  distil = lambda x: distribution.distil(x[None, None], teacher[None, None], np.ones((1, 1), bool),
                                         **options)
  np.testing.assert_allclose(distil(p), [[expected]], rtol=1e-5)
  np.testing.assert_allclose(distil(teacher), [[0]], atol=1e-7)


def test_the_sampled_distillation_has_the_gradient_of_the_full_one_in_the_mean():
  logits, teacher = np.array([.3, -1., .5]), np.log(np.array([.2, .3, .5]))
  logps = jax.nn.log_softmax
  full = jax.grad(lambda z: distribution.distil(
      logps(z)[None, None], teacher[None, None], np.ones((1, 1), bool))[0, 0])(logits)
  rewards = implicit.teacher(teacher[:, None], logps(logits)[:, None], np.ones((3, 1), bool),
                             np.ones(3, bool))[:, 0]
  sampled = jax.grad(lambda z: -jnp.sum(np.exp(logps(logits)) * rewards * logps(z)))(logits)
  np.testing.assert_allclose(sampled, full, rtol=1e-4)


def test_lp_reg():
  # Of four tokens with A < 0, p = .01, .02, .3, .4, the half quantile is about .08: two
  # may be guarded, the first has a proxy above it, the second was taken for noise. The
  # last token is rarer than all, but right. Ratios 1 and, for the first, 20: its plain
  # loss is 20, elsewhere rho is clipped to 10. k3 at d = ln(.01 / .02): 2 - ln 2 - 1.
  p = np.array([[.01, .02, .3, .4, .001]])
  proxy = np.array([[jnp.log(.02), -1e4, 0., 0., 0.]])
  ratio = np.array([[20., 1., 1., 20., 20.]])
  a = np.array([[-1., -1., -1., -1., 1.]])
  lp_reg = lambda x, **o: distribution.lp_reg(
      x, np.log(p / ratio), proxy, a, ROW, fraction=.5, kl_coef=3., **o)[0]
  np.testing.assert_allclose(
      lp_reg(np.log(p)), [[20 + 3 * (1 - np.log(2)), 1, 1, 20, -10]], rtol=1e-5)
  # The pull: d/d log pi of k3 is 1 - proxy / pi = -1. The gradient of rho is rho.
  grad = jax.grad(lambda x: jnp.sum(lp_reg(x)))(np.log(p))
  np.testing.assert_allclose(grad, [[20 - 3, 1, 1, 20, 0]], rtol=1e-5)


def test_lp_reg_without_candidates_is_ppo():
  logps_BT, old_BT, proxy_BT, a_BT = draw(), draw(), draw(), draw(-1., 1.)
  for a, fraction in ((a_BT, 0.), (np.abs(a_BT), 1.)):
    ppo, _ = policy.ppo_clip(logps_BT, old_BT, a, MASK, clip_low=1., clip_high=9.)
    got, _ = distribution.lp_reg(logps_BT, old_BT, proxy_BT, a, MASK, fraction=fraction)
    np.testing.assert_array_equal(got, ppo)


def distrl_of(all_BTV, old_BTV, prm_BTV, ref_BTV, tokens_BT, a_BT, learn_BT, beta=2., **options):
  """The loss, with the log-probs of the drawn tokens taken from those of all tokens."""
  drawn = lambda x: jnp.take_along_axis(jnp.asarray(x), tokens_BT[..., None], axis=2)[..., 0]
  return distribution.distrl(drawn(all_BTV), drawn(old_BTV), all_BTV, old_BTV, prm_BTV, ref_BTV,
                             drawn(prm_BTV), drawn(ref_BTV), a_BT, learn_BT, beta, **options)


def test_distrl_by_hand():
  # One completion of three tokens; the reference is uniform over 4, beta 2.
  #   log-ratios of the drawn tokens: log 2, -log 2, log 2; V = 2 log 2 (1, 0, 1)
  #   sigma_V = 2 log 2 sqrt(2) / 3, so that A(v) = 3/sqrt(2) log2(pi_phi / pi_ref)(v)
  old_BTV = np.log([[[.5, .3, .15, .05]] * 3])
  prm_BTV = np.log([[[.5, .125, .25, .125]] * 3])
  ref_BTV = np.log(np.full((1, 3, 4), .25))
  ratio_BTV = np.array([[[1.1, .9, 1., 1.], [.9, 1.5, .2, 3.], [1., 1., 1., 1.]]])
  tokens_BT, a_BT = jnp.array([[0, 1, 0]]), np.array([[1., -1., 2.]])
  learn_BT = np.ones((1, 3), bool)
  args = old_BTV + np.log(ratio_BTV), old_BTV, prm_BTV, ref_BTV, tokens_BT, a_BT, learn_BT
  unit = 3 / np.sqrt(2)
  # Token 1: A = (1, -1, 0) unit on tokens of p >= .1. Token 2: the same, ratio .9, 1.5 -> of A < 0
  # the unclipped. Token 3 is the last. The fourth token of the vocabulary is unlikely.
  others_BT = -unit * np.array([[.5 * 1.1 - .3 * .9, .5 * .9 - .3 * 1.5, 0]])
  ppo_BT = -np.array([[1.1, -1.5, 2.]])
  for alpha in (0., .1, 1.):
    loss_BT, _ = distrl_of(*args, alpha=alpha, dual_clip=None)
    np.testing.assert_allclose(loss_BT, ppo_BT + alpha * others_BT, rtol=1e-5)
  # A wider clip, and the bound where A < 0: 1.5 -> 1.2.
  loss_BT, _ = distrl_of(*args, alpha=1., clip=.05, dual_clip=1.2)
  others_BT = -unit * np.array([[.5 * 1.05 - .3 * .95, .5 * .9 - .3 * 1.2, 0]])
  np.testing.assert_allclose(loss_BT, -np.array([[1.1, -1.2, 2.]]) + others_BT, rtol=1e-5)
  # With all tokens: the unlikely one has A = -unit.
  loss_BT, _ = distrl_of(*args, alpha=1., min_p=0., dual_clip=None)
  np.testing.assert_allclose(loss_BT[0, 0], -1.1 - unit * (.5 * 1.1 - .3 * .9 - .05), rtol=1e-5)


def test_distrl_has_the_gradient_of_the_expected_advantage():
  """By enumeration of the vocabulary: d/dlogits of -alpha sum_v pi(v) A(v), per prefix."""
  logits_BTV, prm_BTV, ref_BTV = (jnp.asarray(DRAW.normal(size=(2, 3, 5)), jnp.float32)
                                  for _ in range(3))
  logps = lambda x: jax.nn.log_softmax(x)
  old_BTV, prm_BTV, ref_BTV = logps(logits_BTV), logps(prm_BTV), logps(ref_BTV)
  learn_BT = np.array([[True, True, True], [True, True, False]])
  tokens_BT, zeros_BT = jnp.array([[0, 1, 2], [3, 4, 0]]), jnp.zeros((2, 3))
  loss = lambda x: jnp.sum(distrl_of(logps(x), old_BTV, prm_BTV, ref_BTV, tokens_BT, zeros_BT,
                                     learn_BT, alpha=.3, min_p=0., value_std_B=jnp.ones(2))[0])
  probs_BTV, a_BTV = np.exp(old_BTV), 2 * np.asarray(prm_BTV - ref_BTV)
  expected_BT1 = np.sum(probs_BTV * a_BTV, axis=2, keepdims=True)
  counts_BT1 = np.array([[1, 1, 0], [1, 0, 0]])[..., None]  # The last token of each is left out.
  np.testing.assert_allclose(
      jax.grad(loss)(logits_BTV), -.3 * counts_BT1 * probs_BTV * (a_BTV - expected_BT1), atol=1e-5)


def test_distrl_of_tokens_that_cannot_be_drawn():
  """-inf on a token, in all four models, is no NaN in value or gradient."""
  all_BTV = np.log(np.array([[[.5, .5, 0.]] * 2]), where=[[[True, True, False]] * 2],
                   out=np.full((1, 2, 3), -np.inf))
  args = all_BTV, all_BTV, all_BTV, jnp.array([[0, 1]]), np.ones((1, 2)), np.ones((1, 2), bool)
  loss = lambda x: jnp.sum(distrl_of(x, *args, alpha=1., min_p=0.)[0])
  value, grad = jax.value_and_grad(loss)(all_BTV)
  assert np.isfinite(value) and np.isfinite(grad).all()
