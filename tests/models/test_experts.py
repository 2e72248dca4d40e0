"""The mixture against loops in float64; test_parity.py has its gradients."""
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
  return [rng.normal(size=shape) for shape in ((U, D), (D, E), (E, D, F), (E, D, F), (E, F, D))]


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
          *(a.astype(np.float32) for a in (x, *arrays[1:])))
  np.testing.assert_allclose(y_UD, by_loops(x, *arrays[1:], per_token, norm_topk), atol=2e-5)
