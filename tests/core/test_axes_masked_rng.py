import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlx.core import axes, masked, records, rng
from tests import whole

masked = whole.compile_module(masked)

nan = np.nan


def test_dims_reads_names():
  assert axes.dims(a_BT=np.zeros((2, 3)), b_B1=np.zeros((2, 1))) == {"1": 1, "B": 2, "T": 3}


@pytest.mark.parametrize("arrays, match", [
    (dict(a_BT=np.zeros(2)), r"a_BT must have axes \[B, T\], got shape \(2,\)"),
    (dict(a_BT=np.zeros((2, 3)), b_BT=np.zeros((2, 4))), "Axis T is 3 above but 4 in b_BT"),
    (dict(a_B1=np.zeros((2, 2))), "Axis 1 is 1 above but 2 in a_B1"),
], ids=["rank", "size", "one"])
def test_dims_refuses(arrays, match):
  with pytest.raises(ValueError, match=match): axes.dims(**arrays)


X = np.array([[1., nan, 3.], [nan, nan, 5.]])
M = np.array([[1, 0, 1], [0, 0, 1]], bool)


@pytest.mark.parametrize("fn, expected", [
    (masked.mean, 3.0),           # (1 + 3 + 5) / 3
    (masked.var, 4.0),            # (4 + 0 + 4) / 2
    (masked.total, 9.0)])
def test_reductions_skip_what_is_masked(fn, expected):
  assert float(fn(X, M)) == expected
  assert np.isfinite(jax.grad(lambda x: fn(x, M))(X)).all()


def test_whitened_values_have_mean_0_and_unbiased_variance_1():
  np.testing.assert_allclose(masked.whiten(X, M), [[-1, 0, 0], [0, 0, 1]], atol=1e-6)


def test_nothing_unmasked_is_zero():
  none = np.zeros_like(M)
  assert float(masked.mean(X, none)) == float(masked.var(X, none)) == 0


def test_last_is_the_last_true_column():
  m = np.array([[1, 1, 0], [0, 0, 0], [1, 0, 1]], bool)
  assert masked.last(m).astype(int).tolist() == [[0, 1, 0], [0, 0, 0], [0, 0, 1]]


def test_weighted_adds_exactly():
  a, b = (records.Weighted(jnp.float32(t), jnp.float32(w)) for t, w in ((6, 2), (3, 1)))
  assert float((a + b).mean()) == 3
  assert float(records.Weighted(jnp.float32(7), jnp.float32(0)).mean()) == 7


def test_keys_differ_by_seed_stream_and_path_and_are_stable():
  data = lambda *a: tuple(jax.random.key_data(rng.key(*a)).tolist())
  keys = [data(0, "sample", 1), data(1, "sample", 1), data(0, "shuffle", 1),
          data(0, "sample", 2), data(0, "sample"), data(0, "sample", 1, 0)]
  assert len(set(keys)) == 6
  assert data(0, "sample", 1) == data(0, "sample", jnp.uint32(1))
  assert rng.number("a") == 0xE8B7BE43  # CRC-32, the same everywhere.
