from typing import get_args

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from configs import base
from rlx.build import methods, options
from rlx.core import records
from rlx.losses import divergence
from rlx.stages import update_policy

RATIOS = {"forward": [.193147, 0, .306853],      # u - 1 - ln u
          "reverse": [.153426, 0, .386294],      # u ln u - u + 1
          "js": [.084950, 0, .169899],
          "js_mixture": [.042475, 0, .084950],
          "alpha": [.160318, 0, .368118]}


@pytest.mark.parametrize("kind", get_args(divergence.Rehearsal))
def test_rehearsal_at_half_one_and_two(kind):
  ref_BT = np.full((1, 3), -2.)
  got = divergence.rehearsal(ref_BT + np.log(np.array([[.5, 1., 2.]])), ref_BT,
                             np.ones((1, 3), bool), kind=kind)
  np.testing.assert_allclose(got, [RATIOS[kind]], atol=2e-5)


@pytest.mark.parametrize("is_off_policy", [False, True])
@pytest.mark.parametrize("kind", divergence.KINDS)
def test_with_the_ratio_the_gradient_of_k1_and_k3_is_that_of_the_kl(kind, is_off_policy):
  """Of a policy over six outcomes, as the mean over the outcomes that the old policy draws."""
  draw = np.random.default_rng(0)
  theta, old, ref = draw.normal(size=(3, 6))
  if not is_off_policy: old = theta
  def expected(theta, corrected):
    logps, old_logps, ref_logps = (jax.nn.log_softmax(x)[None] for x in (theta, old, ref))
    kl = divergence.estimate(logps, ref_logps, kind=kind)
    if corrected:
      kl = divergence.correct_off_policy(kl, logps, old_logps, jnp.ones((1, 6), bool))
    return jnp.sum(jnp.exp(old_logps) * kl)
  def kl(theta):
    logps, ref_logps = jax.nn.log_softmax(theta), jax.nn.log_softmax(ref)
    return jnp.sum(jnp.exp(logps) * (logps - ref_logps))
  with jax.enable_x64(True):
    want = jax.grad(kl)(theta)
    with_ratio, without = (np.abs(jax.grad(expected)(theta, x) - want).max() for x in (True, False))
  assert (with_ratio < 1e-12) == (kind in ("k1", "k3")), with_ratio
  assert (without < 1e-12) == (kind == "k2" or kind.endswith("+")) * (not is_off_policy), without


def test_padding_reaches_neither_the_value_nor_the_gradient_of_the_correction():
  learn_BT, nan = jnp.array([[True, False]]), np.nan
  fn = lambda x: divergence.correct_off_policy(
      x - jnp.array([[-3., nan]]), x, jnp.array([[-1., nan]]), learn_BT).sum()
  value, grad = jax.value_and_grad(fn)(jnp.array([[-1., nan]]))
  assert value == 2 and grad.tolist() == [[3, 0]]


@pytest.mark.parametrize("off_policy", [False, True])
def test_the_policys_loss_has_the_ratio_where_the_config_says_so(off_policy):
  c = base.get_config()
  c.kl.update(coef=1.0, kind="k1", off_policy=off_policy)
  loss = options.read_options(update_policy.PolicyLoss, c, methods=methods.resolve_methods(c))
  batch = records.Batch(
      action_BT=np.ones((1, 2), bool), outcome_B=np.ones(1), group=1, entropy_BT=np.zeros((1, 2)),
      logps_BT=np.log([[.5, .25]]), old_logps_BT=np.log([[.25, .25]]),
      ref_logps_BT=np.log([[.25, .5]]), advantages_BT=np.zeros((1, 2)))
  total, _ = loss(batch, np.float32([2]))
  kl, ratio = np.log([2, .5]), [2, 1] if off_policy else 1
  np.testing.assert_allclose(total.mean(), 2 * np.mean(ratio * kl), rtol=1e-6)
