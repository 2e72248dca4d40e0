import jax
import jax.numpy as jnp
import numpy as np

from rlx.core import prefixes

nan = np.nan


def test_values_of_a_tree():
  # a a1: right and wrong; a a2: right; b: wrong. 9 is padding.
  tokens_BT = jnp.array([[1, 2], [1, 2], [1, 3], [4, 9]])
  mask_BT = jnp.array([[True, True]] * 3 + [[True, False]])
  outcome_PG, valid_PG = jnp.array([[1., 0., 1., 0.]]), jnp.ones((1, 4), bool)
  got = prefixes.values(tokens_BT, mask_BT, outcome_PG, valid_PG)
  np.testing.assert_allclose(got, [[2/3, .5], [2/3, .5], [2/3, 1], [0, 0]], rtol=1e-6)
  # Without the first the others have less to share.
  got = prefixes.values(tokens_BT, mask_BT, jnp.array([[nan, 0., 1., 0.]]),
                                  valid_PG.at[0, 0].set(False))
  np.testing.assert_allclose(got, [[0, 0], [.5, 0], [.5, 1], [0, 0]], rtol=1e-6)


def test_values_by_counting():
  rng = np.random.default_rng(0)
  prompts, group, width = 3, 5, 4
  tokens = rng.integers(0, 2, (prompts * group, width))
  lengths = rng.integers(0, width + 1, prompts * group)
  mask = np.arange(width) < lengths[:, None]
  outcome = rng.uniform(size=(prompts, group))
  valid = rng.uniform(size=(prompts, group)) < .8
  want = np.zeros(mask.shape)
  for i, t in zip(*np.nonzero(mask)):
    p = i // group
    if not valid.reshape(-1)[i]: continue
    shared = [outcome.reshape(-1)[j] for j in range(p * group, (p + 1) * group)
              if valid.reshape(-1)[j] and lengths[j] > t
              and (tokens[j, :t + 1] == tokens[i, :t + 1]).all()]
    want[i, t] = np.mean(shared)
  args = jnp.asarray(tokens), jnp.asarray(mask)
  poisoned = jnp.asarray(np.where(valid, outcome, nan), jnp.float32)
  fn = lambda x: prefixes.values(*args, x, jnp.asarray(valid))
  np.testing.assert_allclose(fn(poisoned), want, rtol=1e-6)
  np.testing.assert_allclose(jax.jit(fn)(poisoned), want, rtol=1e-6)
  grad = jax.grad(lambda x: jnp.sum(fn(x)))(poisoned)
  assert np.isfinite(grad).all() and not np.any(grad[~valid])
