"""The mixture against loops over tokens and their experts, in float64."""
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlx.models import experts

U, D, E, F = 7, 6, 4, 5


@pytest.fixture(scope="module")
def arrays():
  rng = np.random.default_rng(0)
  return [rng.normal(size=shape) for shape in
          ((U, D), (D, E), (E, D, F), (E, D, F), (E, F, D))]


def gated(gate, up):
  return jnp.tanh(gate) * up


def by_loops(x, router, gate, up, down, per_token, norm_topk):
  out = np.zeros_like(x)
  for m in range(U):
    p = np.exp(x[m] @ router)
    p /= p.sum()
    chosen = np.argsort(-p)[:per_token]
    for e in chosen:
      w = p[e] / (p[chosen].sum() if norm_topk else 1)
      out[m] += w * ((np.tanh(x[m] @ gate[e]) * (x[m] @ up[e])) @ down[e])
  return out


@pytest.mark.parametrize("per_token, norm_topk", [(1, False), (2, True), (2, False), (E, True)])
def test_mix(arrays, per_token, norm_topk):
  x = arrays[0].copy()
  x[3:] = x[3]  # Most tokens have the same experts; some experts have none.
  y_UD = jax.jit(functools.partial(
      experts.mix, per_token=per_token, norm_topk=norm_topk, activated=gated))(
          *(jnp.asarray(a, jnp.float32) for a in (x, *arrays[1:])))
  np.testing.assert_allclose(y_UD, by_loops(x, *arrays[1:], per_token, norm_topk), atol=2e-5)


def test_gradients(arrays):
  """Against finite differences of the loops, along a random direction of each argument."""
  weights = np.random.default_rng(1).normal(size=(U, D))
  total = lambda *args: jnp.sum(weights * experts.mix(
      *args, per_token=2, norm_topk=True, activated=gated))
  gradients = jax.jit(jax.grad(total, argnums=range(5)))(
      *(jnp.asarray(a, jnp.float32) for a in arrays))
  step = 1e-6
  for i, gradient in enumerate(gradients):
    direction = np.random.default_rng(2 + i).normal(size=arrays[i].shape)
    at = lambda s, i=i, d=direction: [*arrays[:i], arrays[i] + s * d, *arrays[i + 1:]]
    ends = [np.sum(weights * by_loops(*at(s), 2, True)) for s in (-step, step)]
    expected = (ends[1] - ends[0]) / (2 * step)
    assert abs(expected) > 0.1
    np.testing.assert_allclose(np.sum(gradient * direction), expected, rtol=1e-4)
