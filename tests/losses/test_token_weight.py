import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlx.losses import token_weight
from tests import whole

token_weight = whole.compile_module(token_weight)

nan = np.nan
MASK = np.array([[True, True, True], [True, False, False], [False] * 3])


def test_top_of_each_completion():
  entropy_BT = np.array([[1., 2., 3., 6.], [9., nan, nan, nan], [4., 5., nan, nan], [nan] * 4])
  mask_BT = ~np.isnan(entropy_BT)
  # Edges 2.5, 9 and 4.5. Of all seven together the edge would be 4.
  got = token_weight.top(entropy_BT, mask_BT, fraction=0.5, over="completion")
  np.testing.assert_array_equal(got, [[0, 0, 1, 1], [1, 0, 0, 0], [0, 1, 0, 0], [0] * 4])


# omega: |.99 (ln .01 + 2)| = 2.5791; half of it by half the advantage; (about) none
# where ln p = -H; and |2 * -2 * .5 (ln .5 + 1)| = .6137 by a ratio of 2.
LOGPS = np.log(np.array([[.01, .01, .5], [.5, nan, nan], [nan] * 3]))
OLD = LOGPS - np.log(np.array([[1., 1., 1.], [2., 1., 1.], [1.] * 3]))
A = np.array([[1., -.5, 3.], [-2., nan, nan], [nan] * 3])
ENTROPY = np.array([[2., 2., np.log(2)], [1., nan, nan], [nan] * 3])
SHARE = np.array([[1, .5, 0], [.6137056 / 2.5791187, 0, 0], [0] * 3])


@pytest.mark.parametrize("shape, expected", [
    ("exponential", .8 ** SHARE), ("linear", 1.2 - .4 * SHARE)])
def test_steer(shape, expected):
  got = token_weight.steer(LOGPS, OLD, A, ENTROPY, MASK, shape=shape)
  np.testing.assert_allclose(got, np.where(MASK, expected, 0), rtol=1e-5, atol=0)


def test_steer_where_nothing_changes_the_entropy():
  small = token_weight.steer(LOGPS, OLD, A * .01 / 2.5791187, ENTROPY, MASK, low=.5)
  np.testing.assert_allclose(small[0, 0], .5 ** .5, rtol=1e-5)   # .02 at least.
  none = token_weight.steer(LOGPS, OLD, 0 * A, ENTROPY, MASK, shape="linear")
  np.testing.assert_allclose(none, 1.2 * MASK, rtol=1e-6)


def test_nothing_is_learned_through_a_weight():
  grad = jax.grad(lambda x, h: jnp.sum(token_weight.steer(x, OLD, A, h, MASK)
                                       + token_weight.top(h, MASK)), argnums=(0, 1))
  for g in grad(LOGPS, ENTROPY): np.testing.assert_array_equal(g, 0)
