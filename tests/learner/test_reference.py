import jax.numpy as jnp
import numpy as np
import pytest

from rlx.learner import reference


@pytest.mark.parametrize("mix, expected", [
    # .4 (1, 0) + .6 (2, -5).
    (0.6, [1.6, -3.0]), (1.0, [2.0, -5.0])])
def test_moves_by_the_share_of_the_policy(mix, expected):
  moved = reference.move(dict(w=jnp.array([1., 0.])), dict(w=jnp.array([2., -5.])), mix=mix)
  np.testing.assert_allclose(moved["w"], expected, rtol=1e-6)


def test_a_reset_is_a_copy_that_outlives_the_policy():
  policy = jnp.arange(3.0)
  moved = reference.move(jnp.zeros(3), policy, mix=1)
  assert moved.unsafe_buffer_pointer() != policy.unsafe_buffer_pointer()
  policy.delete()  # As a donation to the next update does.
  np.testing.assert_array_equal(moved, [0, 1, 2])
