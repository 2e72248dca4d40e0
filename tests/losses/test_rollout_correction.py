import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlx.core import records, resolve
from rlx.losses import rollout_correction

nan = np.nan
MASK = np.array([[True, True, True], [True, False, False], [False] * 3])
OLD = np.array([[-1., -2., -3.], [-1., nan, nan], [nan] * 3])
# pi_old / mu; their product is 4 in the first row.
RATIO = np.array([[2., .5, 4.], [.25, nan, nan], [nan] * 3])
SAMPLER = OLD - np.log(RATIO)


@pytest.mark.parametrize("fn, options, expected", [
    (rollout_correction.tis, dict(cap=3.), [[2, .5, 3], [.25, 0, 0], [0] * 3]),
    (rollout_correction.tis, dict(cap=3., level="sequence"), [[3] * 3, [.25, 0, 0], [0] * 3]),
    (rollout_correction.icepop, dict(low=.4, high=3.), [[2, .5, 0], [0] * 3, [0] * 3]),
    (rollout_correction.seq_mis, {}, [[0] * 3, [.25, 0, 0], [0] * 3]),
    (rollout_correction.seq_mis, dict(cap=5.), [[4] * 3, [.25, 0, 0], [0] * 3]),
], ids=["token", "sequence", "icepop", "seq_mis", "seq_mis_5"])
def test_weights(fn, options, expected):
  got = fn(OLD, SAMPLER, MASK, **options)
  np.testing.assert_allclose(got, expected, rtol=1e-5, atol=0)


def test_opsm():
  # mean log(mu / pi) is .3 in the first row and .6 in the second.
  logps_BT = np.array([[-1., -1., nan], [-1., -1., -1.]])
  sampler_BT = logps_BT + np.array([[.1, .5, 0.], [.6, .6, .6]])
  mask_BT = np.array([[True, True, False], [True] * 3])
  a_BT = np.array([[-1., -1., nan], [-1., 1., 0.]])
  got = rollout_correction.opsm(logps_BT, sampler_BT, a_BT, mask_BT)
  np.testing.assert_array_equal(got, [[1, 1, 0], [0, 1, 1]])
  got = rollout_correction.opsm(logps_BT, sampler_BT, a_BT, mask_BT, delta=.2)
  np.testing.assert_array_equal(got, [[0, 0, 0], [0, 1, 1]])


@pytest.mark.parametrize("name", resolve.list_functions(rollout_correction))
def test_agreement_weighs_one_and_nothing_is_learned_through_it(name):
  fn = resolve.resolve("losses", {"name": f"rollout_correction.{name}"})
  scored = records.Batch(action_BT=MASK, outcome_B=np.zeros(3), old_logps_BT=OLD,
                          advantages_BT=-np.ones((3, 3)))
  weigh = lambda x_BT: fn(scored.replace(logps_BT=x_BT, sampler_logps_BT=x_BT))
  np.testing.assert_array_equal(weigh(OLD), 1.0 * MASK)
  grad = jax.grad(lambda x, y: jnp.sum(fn(scored.replace(
      old_logps_BT=x, logps_BT=x, sampler_logps_BT=y))), argnums=(0, 1))
  for g in grad(OLD, SAMPLER): np.testing.assert_array_equal(g, 0)


def test_far_apart_stays_finite():
  far_BT = np.array([[-1e4, 0.]])
  for old, sampler in ((far_BT, 0 * far_BT), (0 * far_BT, far_BT)):
    got = rollout_correction.icepop(old, sampler, np.ones((1, 2), bool), low=0., high=np.inf)
    assert np.isfinite(got).all()
