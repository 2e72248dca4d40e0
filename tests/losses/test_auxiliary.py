import numpy as np

from rlx.losses import auxiliary
from tests import whole

auxiliary = whole.compile_module(auxiliary)

nan = np.nan


def test_last_token():
  # r = 0.1 (l + 20): 1.5, 0, 0.5, 0.2; one is not valid, one was cut off.
  logps_B = np.array([-5., -20, -15, -18, nan, 0.])
  outcome_B = np.array([1., 0, 0, 0, nan, 1])
  learn_B = np.array([1, 1, 1, 1, 0, 1], bool)
  finish_B = np.array([1, 1, 2, 1, 1, 0])
  loss = lambda **o: auxiliary.last_token(logps_B, outcome_B, learn_B, finish_B, c_ref=-20., **o)
  # (1.5 - 1)^2 = 0.25; 0, 0.25 and 0.04.
  got = loss(balanced=False)
  np.testing.assert_allclose([got.total, got.weight], [.54, 4], rtol=1e-5)
  # One right, three wrong: weights 4 / 2 and 4 / 6.
  got = loss()
  np.testing.assert_allclose([got.total, got.weight], [.25 * 2 + .29 * 2 / 3, 4], rtol=1e-5)


def test_rehearsal_is_a_mean_over_stored_tokens():
  logps_BT = np.log(np.array([[.1, .5], [.4, .9]]))
  ref_BT = np.log(np.array([[.2, nan], [.2, .9]]))
  stored_BT = np.array([[1, 0], [1, 1]], bool)
  # u = 1/2, 2 and 1: u - 1 - log u = .193 and .307, of the catalogue's vector.
  got = auxiliary.rehearsal(logps_BT, ref_BT, stored_BT)
  np.testing.assert_allclose([got.total, got.weight], [.19315 + .30685, 3], atol=1e-5)
  # u log u - u + 1.
  got = auxiliary.rehearsal(logps_BT, ref_BT, stored_BT, kind="reverse")
  np.testing.assert_allclose(got.total, .15343 + .38629, atol=1e-5)


def test_cloning_is_a_mean_over_demonstrated_tokens():
  logps_BT = np.array([[-1., -2, nan], [-4., -8, -16]])
  learn_BT = np.array([[1, 1, 0], [1, 1, 1]], bool)
  got = auxiliary.cloning(logps_BT, learn_BT, np.array([True, False]))
  np.testing.assert_allclose([got.total, got.weight], [3, 2])
  got = auxiliary.cloning(logps_BT, learn_BT, np.array([False, False]))
  np.testing.assert_allclose([got.total, got.weight], [0, 0])
