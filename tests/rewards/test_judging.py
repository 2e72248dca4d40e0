import jax.numpy as jnp
import numpy as np

from rlx.rewards import judging


def test_scores_of_a_pair_by_hand():
  """Prompts 0 and 1 are a pair, 0 about the better completion; one judgement states no score, one
  has an unknown verdict."""
  sigmoid = lambda x: 1 / (1 + np.exp(-x))
  score_PG = jnp.array([[.9, .4, 0.], [.6, .5, np.nan]])
  learn_PG = jnp.array([[True] * 3, [True, True, False]])
  got = judging.bradley_terry(score_PG, jnp.array([[1] * 3, [0] * 3]),
                              jnp.array([[1.] * 3, [0.] * 3]), learn_PG)
  of = lambda *gaps: np.mean([sigmoid(10 * x) for x in gaps])
  np.testing.assert_allclose(got, [of(.3, .4), of(-.2, -.1), 0, of(.3, -.2), of(.4, -.1), 0],
                             rtol=1e-5)
  none = judging.bradley_terry(jnp.array([[.9], [0.]]), jnp.array([[1], [0]]),
                               jnp.array([[1.], [0.]]), jnp.ones((2, 1), bool))
  np.testing.assert_array_equal(none, [0, 0])  # Nothing to compare with.
