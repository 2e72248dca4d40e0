"""Values: zero at first, then a linear function of the state before each token."""
import dataclasses

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


def test_one_score_of_several_numbers():
  """o_BTC by hand; the router of a mixture reads the end of the prompt, the first column."""
  o_BTC = np.random.default_rng(0).normal(size=(2, 3, 4)).astype(np.float32)
  sigmoid = lambda x: 1 / (1 + np.exp(-x))
  head = lambda kind: dataclasses.replace(CONFIG, score_head=kind, outputs=4)
  weight_BK = np.exp(o_BTC[:, 0, 2:]) / np.exp(o_BTC[:, 0, 2:]).sum(axis=1, keepdims=True)
  np.testing.assert_allclose(value.combine(head("mixture"), o_BTC),
                             np.einsum("BTK,BK->BT", o_BTC[..., :2], weight_BK), rtol=1e-5)
  np.testing.assert_allclose(sigmoid(value.combine(head("product"), o_BTC)),
                             sigmoid(o_BTC[..., 0]) * sigmoid(o_BTC[..., 1]), rtol=1e-5)
  for kind in ("plain", "spread"):
    np.testing.assert_array_equal(value.combine(head(kind), o_BTC), o_BTC[..., 0])
  np.testing.assert_allclose(value.spreads(o_BTC), np.log1p(np.exp(o_BTC[..., 1])) + .001, rtol=1e-5)
  assert {kind: value.count_outputs(kind, 3) for kind in value.HEADS} == dict(
      plain=1, spread=2, product=2, mixture=6)
  # The heads of a mixture differ from the start, others give 0.
  for kind, is_zero in (("mixture", False), ("product", True)):
    own = value.init(head(kind), tiny.draw_decoder(CONFIG))["value"]["w_D1"]
    assert own.shape == (8, 4) and (np.unique(own).size == 1) == is_zero
