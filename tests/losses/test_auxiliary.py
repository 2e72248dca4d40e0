import jax.numpy as jnp
import numpy as np
import pytest

from rlx.losses import auxiliary

nan = np.nan


def test_last_token():
  # r = 0.1 (l + 20): 1.5, 0, 0.5, 0.2; one is not valid, one was cut off.
  logps_B = jnp.array([-5., -20, -15, -18, nan, 0.])
  outcome_B = jnp.array([1., 0, 0, 0, nan, 1])
  valid_B = jnp.array([1, 1, 1, 1, 0, 1], bool)
  finish_B = jnp.array([1, 1, 2, 1, 1, 0])
  loss = lambda **o: auxiliary.last_token(
      logps_B, outcome_B, valid_B, finish_B, c_ref=-20., **o)
  # (1.5 - 1)^2 = 0.25; 0, 0.25 and 0.04.
  got = loss(balanced=False)
  np.testing.assert_allclose([got.total, got.weight], [.54, 4], rtol=1e-5)
  # One right, three wrong: weights 4 / 2 and 4 / 6.
  got = loss()
  np.testing.assert_allclose([got.total, got.weight], [.25 * 2 + .29 * 2 / 3, 4], rtol=1e-5)
  with pytest.raises(ValueError, match="beta=-1: must be > 0"): loss(beta=-1)
