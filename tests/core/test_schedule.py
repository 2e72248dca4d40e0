import jax
import numpy as np
import optax
import pytest

from rlx.core import schedule


@pytest.mark.parametrize("name, other", [
    ("linear", lambda n: optax.linear_schedule(1.0, 0.2, n)),
    ("cosine", lambda n: optax.cosine_decay_schedule(1.0, n, 0.2))])
def test_decays_as_optax_does_after_the_warm_up(name, other):
  factor = schedule.Schedule(1.0, 3, name, 13, 0.2)
  expected = [1/3, 2/3, 1] + [float(other(10)(k)) for k in range(15)]
  np.testing.assert_allclose([factor(k) for k in range(18)], expected, rtol=1e-6)
  np.testing.assert_allclose(jax.vmap(factor)(np.arange(18)), expected, rtol=1e-6)
