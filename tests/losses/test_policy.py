import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlx.core import records, resolve
from rlx.losses import aggregate, policy, sequence
from tests import whole

ONE = np.ones((1, 1), bool)
MASK = np.arange(4)[None] < np.array([[4], [2], [1], [3]])
# All but those that read no advantages, or no ratio.
RULES = [f"policy.{n}" for n in resolve.list_functions(policy) if n != "reinforce"] + [
    f"sequence.{n}" for n in resolve.list_functions(sequence)
    if n not in ("pacs", "dpo", "crew_dpo", "dro")]
policy = whole.compile_module(policy)


@pytest.mark.parametrize("name", RULES)
def test_all_rules_agree_where_nothing_has_moved(name):
  """With logps == old_logps the gradient is that of REINFORCE."""
  with jax.enable_x64(True):
    draw = np.random.default_rng(0)
    logps_BT = jnp.asarray(np.where(MASK, draw.uniform(-3, -.1, MASK.shape), np.nan))
    scored = records.Batch(
        action_BT=jnp.asarray(MASK), outcome_B=np.zeros(4), old_logps_BT=logps_BT,
        sampler_logps_BT=logps_BT, entropy_BT=-logps_BT,
        advantages_BT=jnp.broadcast_to(np.array([[.5], [-.4], [.2], [-.3]]), MASK.shape))
    def gradient(name):
      fn = resolve.resolve("losses", dict(name=name))
      loss = lambda x_BT: aggregate.aggregate(
          resolve.split_metrics(fn(scored.replace(logps_BT=x_BT)))[0], scored.action_BT,
          mode="seq-mean-token-mean")
      return jax.jit(jax.grad(lambda x_BT: loss(x_BT).total))(logps_BT)
    np.testing.assert_allclose(gradient(name), gradient("policy.reinforce"), rtol=1e-12)


@pytest.mark.parametrize("ratio, drawn, advantage, expected", [
    # (pi / pi_old, pi / mu, A): -min(pi / mu, 5) A log pi, with log pi = -2.
    (1.2, 1.5, 1., 3.), (0.5, 8.0, 1., 10.),
    (1.3, 1.5, 1., 0.), (1.3, 1.5, -1., -3.),    # Too far up for A > 0 only.
    (0.7, 0.5, -1., 0.), (0.7, 0.5, 1., 1.),     # Too far down for A < 0 only.
])
def test_minirl(ratio, drawn, advantage, expected):
  logps_BT = np.array([[-2.]])
  args = (logps_BT - np.log(ratio), logps_BT - np.log(drawn), np.array([[advantage]]), ONE)
  got, _ = policy.minirl(logps_BT, *args)
  np.testing.assert_allclose(got, [[expected]], rtol=1e-6, atol=0)
  grad = jax.grad(lambda x: jnp.sum(policy.minirl(x, *args)[0]))(logps_BT)
  np.testing.assert_allclose(grad, [[expected / -2.]], rtol=1e-6, atol=0)


def test_stable_reinforce_guards_the_advantages():
  # Mean 2: -1.5 is further than 3 from it, 5 is not.
  a_BT = np.array([[5., -1.5, 2., 2.5]])
  logps_BT = np.log(np.array([[.1, .2, .3, .4]]))
  mask_BT = np.ones((1, 4), bool)
  got, _ = policy.stable_reinforce(logps_BT, logps_BT, a_BT, mask_BT)
  np.testing.assert_allclose(got, [[-5, 0, -2, -2.5]], rtol=1e-6, atol=0)
  args = logps_BT, logps_BT - .1, a_BT, mask_BT
  np.testing.assert_array_equal(policy.stable_reinforce(*args, width=9.)[0],
                                policy.ppo_clip(*args)[0])


def test_stable_reinforce_guards_the_ratio():
  old_BT, a_BT = np.array([[-100.]]), np.array([[-1.]])
  fn = lambda x: jnp.sum(policy.stable_reinforce(x, old_BT, a_BT, ONE, width=9.)[0])
  np.testing.assert_allclose(fn(np.array([[-1.]])), 1e3, rtol=1e-5)
  np.testing.assert_array_equal(jax.grad(fn)(np.array([[-1.]])), 0)


@pytest.mark.parametrize("old, new, gamma, ratio", [
    # 2 pi / (pi_old + (pi_old + 1) / 2); (1 - pi)^gamma.
    (.1, .1, 0., .3077), (.01, .3, 0., 1.1650), (.9, .9, 0., .9730),
    (.1, .1, .5, .3077 * .9**.5), (.9, .9, .5, .9730 * .1**.5)])
def test_rl_plus(old, new, gamma, ratio):
  """The first row is a demonstration, the second was sampled: rho, not clipped."""
  logs = lambda p: np.log(np.full((2, 1), p))
  mask_BT, demo_B = np.ones((2, 1), bool), np.array([True, False])
  loss = lambda x_BT: policy.rl_plus(x_BT, logs(old), np.full((2, 1), 2.), mask_BT, demo_B,
                                     focal_exponent=gamma)
  np.testing.assert_allclose(loss(logs(new)), [[-2 * ratio], [-2 * new / old]], rtol=1e-3)
  # d pi = pi d log pi: the gradient is the loss, the power has none.
  grads_BT = jax.grad(lambda x: loss(x).sum())(logs(new))
  np.testing.assert_allclose(grads_BT, loss(logs(new)), rtol=1e-5)
  alone = policy.rl_plus(logs(new), logs(old), np.full((2, 1), 2.), mask_BT)
  np.testing.assert_allclose(alone, -2 * new / old, rtol=1e-5)
