from typing import get_args

import numpy as np
import pytest

from rlx.losses import divergence

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
