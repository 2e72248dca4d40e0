"""Values: zero at first, then a linear function of the state before each token."""
import jax
import numpy as np

from rlx.models import transformer, value
from tests import tiny

CONFIG = transformer.DecoderConfig(
    vocab_size=11, d_model=8, n_layers=1, n_heads=1, n_kv_heads=1, head_dim=8, d_ff=8,
    tied_head=False)
X, T = 2, 3


def test_values():
  decoder = tiny.draw_decoder(CONFIG)
  params = value.init(CONFIG, decoder)
  assert set(params) == {"embed", "layers", "norm", "value"}
  tokens = np.arange(10).reshape(2, 5)
  positions = np.tile(np.arange(5), (2, 1))
  valid = np.arange(5)[None, :] < np.array([5, 3])[:, None]
  batch = tokens, positions, valid
  fn = jax.jit(lambda p: (value.values(p, CONFIG, *batch, completion_width=T),
                          transformer.hidden(p, CONFIG, *batch)))
  np.testing.assert_array_equal(fn(params)[0], np.zeros((2, T)))

  params["value"] = {"w_D1": np.arange(8, dtype=np.float32)[:, None],
                     "b_1": np.array([0.5], np.float32)}
  values, hidden = jax.device_get(fn(params))
  # Token t is column X + t; the state before it is column X + t - 1.
  expected = [[hidden[0, 1] @ np.arange(8) + 0.5, hidden[0, 2] @ np.arange(8) + 0.5,
               hidden[0, 3] @ np.arange(8) + 0.5],
              [hidden[1, 1] @ np.arange(8) + 0.5, 0, 0]]
  np.testing.assert_allclose(values, expected, rtol=1e-5)
