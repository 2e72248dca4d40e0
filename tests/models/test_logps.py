"""Log-probs by chunks against those of all logits, and that [B, T, V] never exists."""
import dataclasses
import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlx.core import records
from rlx.models import logps, transformer
from tests import tiny

B, X, T, V = 3, 3, 5, 31
CONFIG = transformer.DecoderConfig(
    vocab_size=V, d_model=16, n_layers=1, n_heads=2, n_kv_heads=1, head_dim=8, d_ff=16)


@pytest.fixture(scope="module")
def params():
  return tiny.draw_decoder(CONFIG)


@pytest.fixture(scope="module")
def batch():
  """Rows of prompt + completion lengths (3, 5), (1, 2) and (2, 0)."""
  columns = np.arange(X + T)[None, :]
  start = np.array([0, 2, 1])[:, None]
  valid = (columns >= start) & (columns < X + np.array([5, 2, 0])[:, None])
  tokens = np.random.default_rng(0).integers(0, V, (B, X + T))
  return tokens, np.maximum(columns - start, 0), valid


@jax.jit
def plain(params, batch, temperature):
  """Log-probs and entropy from all logits at once; 0 on padding."""
  tokens, _, valid = batch
  hidden_BSD = transformer.hidden(params, CONFIG, *batch)
  return from_all_logits(params, CONFIG, hidden_BSD[:, X - 1:-1], tokens[:, X:], valid[:, X:],
                         temperature)[:2]


def from_all_logits(params, config, hidden, targets, mask, temperature=0.7):
  """Log-probs, entropy and ALL from all logits at once; 0 on padding."""
  z = transformer.logits(params, config, hidden) / temperature
  p = jax.nn.softmax(z)
  kept = jnp.where(p >= 0.2 * jnp.max(p, -1, keepdims=True), p, 0)
  kept = kept / jnp.sum(kept, -1, keepdims=True)
  of_target = lambda x: jnp.take_along_axis(x, targets[..., None], -1)[..., 0]
  left = of_target(kept)
  out = (jnp.log(of_target(p)), -jnp.sum(p * jnp.log(p), -1), jnp.mean(jnp.log(p), -1),
         jnp.log(jnp.sort(p, -1)[..., :-4:-1]), of_target(z),
         jnp.where(left > 0, jnp.log(jnp.where(left > 0, left, 1)), logps.REMOVED),
         jnp.sum(p * p, -1))
  return [jnp.where(mask if x.ndim == 2 else mask[..., None], x, 0) for x in out]


@functools.cache
def scorer(chunk, temperature):
  fn = functools.partial(logps.logps, completion_width=T, chunk=chunk, temperature=temperature)
  return jax.jit(fn, static_argnums=1)


# 6: two columns of three rows, with one column left over. 1: fewer than a column.
@pytest.mark.parametrize("chunk, temperature", [(6, 0.7), (1, 0.7), (1000, 1.3)])
def test_against_plain(params, batch, chunk, temperature):
  computed = scorer(chunk, temperature)(params, CONFIG, *batch)
  expected = plain(params, batch, temperature)
  assert np.ptp(expected[0][0]) > 0.5 and np.ptp(expected[1][0]) > 0.05
  for a, b in zip(computed, expected):
    assert a.dtype == jnp.float32
    np.testing.assert_allclose(a, b, atol=5e-6, rtol=0)
    np.testing.assert_array_equal(np.asarray(a)[~batch[2][:, X:]], 0.0)


ALL = (("mean",), ("top", 3), ("logit",), ("min_p", 0.2), ("squared",))


@pytest.mark.parametrize("tied", [True, False])
def test_statistics_of_the_distribution(params, batch, tied):
  """Values and gradients in float64. Statistics that are not asked for are not returned; those that
  are not used do not change the gradient: their cotangents are 0."""
  with jax.enable_x64(True):
    config = dataclasses.replace(CONFIG, tied_head=tied, dtype="float64")
    hidden = np.random.default_rng(1).normal(size=(B, T, 16))
    targets, mask = batch[0][:, X:].copy(), batch[2][:, X:]
    w_VD = np.asarray(params["embed"]["w_VD"], np.float64)
    params = dict(embed=dict(w_VD=w_VD), head=dict(w_DV=w_VD[::-1].T.copy()))
    # The most likely token in row 0, those that were drawn in the others.
    targets[0] = np.argmax(hidden[0] @ (w_VD.T if tied else params["head"]["w_DV"]), axis=-1)
    def chunked(params, hidden, statistics=ALL):
      return logps.from_hidden(params, config, hidden, targets, mask, temperature=0.7,
                              chunk=6, statistics=statistics)
    def computed(fn):
      def loss(params, hidden, weights):
        out = fn(params, hidden)
        return sum(jnp.sum(w * x) for w, x in zip(weights, out)), out
      return jax.jit(jax.grad(loss, argnums=(0, 1), has_aux=True))
    weights = [np.random.default_rng(i).normal(size=(B, T, *[3] * (i == 3)))
               for i in range(2 + len(ALL))]
    gradient = computed(chunked)
    got = gradient(params, hidden, weights)
    want = computed(lambda p, h: from_all_logits(p, config, h, targets, mask))(
        params, hidden, weights)
    jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-10, atol=1e-11),
                 got[1], tuple(want[1]))
    jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-10),
                 got[0], want[0])
    removed = np.asarray(got[1][5]) == logps.REMOVED
    assert removed.any() and not removed[0].any()      # Both sides of the filter.
    np.testing.assert_allclose(got[1][3][0, :, 0], got[1][0][0], rtol=1e-12)
    few = computed(lambda p, h: chunked(p, h, ()))(params, hidden, weights)
    assert len(few[1]) == 2
    unused = gradient(params, hidden, [*weights[:2], *(0 * w for w in weights[2:])])
    jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-12, atol=1e-13),
                 few, (unused[0], unused[1][:2]))


@pytest.mark.parametrize("chunk", [6, 1000])
def test_among_kept_tokens(params, batch, chunk):
  """Values and gradients in float64 against the softmax of the kept logits; where no tokens are
  given, of all."""
  with jax.enable_x64(True):
    config, draw = dataclasses.replace(CONFIG, dtype="float64"), np.random.default_rng(2)
    hidden, weights_2BT = draw.normal(size=(B, T, 16)), draw.normal(size=(2, B, T))
    targets, mask = batch[0][:, X:], batch[2][:, X:]
    kept_BTK = np.stack([targets, *draw.integers(-1, V, (3, B, T))], axis=2)
    kept_BTK[0, ::2] = -1
    params = dict(embed=dict(w_VD=np.asarray(params["embed"]["w_VD"], np.float64)))
    def plain(params, hidden):
      z = transformer.logits(params, config, hidden) / 0.7
      is_kept = (kept_BTK[..., None] == np.arange(V)).any(2) | (kept_BTK < 0).all(2)[..., None]
      all_logps = jax.nn.log_softmax(jnp.where(is_kept, z, -1e30))
      chosen = jnp.take_along_axis(all_logps, targets[..., None], -1)[..., 0]
      return chosen, -jnp.sum(jnp.where(is_kept, jnp.exp(all_logps) * all_logps, 0), -1)
    def chunked(params, hidden):
      return logps.from_hidden(params, config, hidden, targets, mask, temperature=0.7,
                               chunk=chunk, kept_BTK=kept_BTK.astype(np.int32))
    def computed(fn):
      def loss(params, hidden):
        out = [jnp.where(mask, x, 0) for x in fn(params, hidden)]
        return sum(jnp.sum(w * x) for w, x in zip(weights_2BT, out)), out
      return jax.jit(jax.grad(loss, argnums=(0, 1), has_aux=True))(params, hidden)
    jax.tree.map(functools.partial(np.testing.assert_allclose, rtol=1e-9, atol=1e-11),
                 computed(chunked), computed(plain))


def test_padding_is_selected_away(params):
  """NaN hidden states on padding change neither values nor gradients."""
  mask = np.array([[True, True, False]])
  hidden = np.where(mask[..., None], 1.0, np.nan) * np.ones((1, 3, 16))
  def total(p, h):
    scored, entropy = logps.from_hidden(p, CONFIG, h, np.array([[4, 5, 10**6]]), mask, chunk=2)
    return jnp.sum(scored + entropy)
  value, grads = jax.jit(jax.value_and_grad(total, argnums=(0, 1)))(params, hidden)
  assert np.isfinite(value)
  assert all(np.isfinite(x).all() for x in jax.tree.leaves(grads))


def sizes(jaxpr):
  """Elements of every value in a jaxpr and all jaxprs inside it."""
  for equation in jaxpr.eqns:
    yield from (math.prod(v.aval.shape) for v in equation.outvars)
    for inner in jax.tree.leaves(
        list(equation.params.values()), is_leaf=lambda x: hasattr(x, "eqns")):
      inner = getattr(inner, "jaxpr", inner)
      if hasattr(inner, "eqns"): yield from sizes(inner)


@pytest.mark.parametrize("statistics", [(), ALL], ids=["", "statistics"])
@pytest.mark.parametrize("direction", ["forward", "backward"])
def test_all_logits_never_exist(direction, statistics):
  b, x, t, v = 4, 2, 16, 512
  config = transformer.DecoderConfig(vocab_size=v, d_model=8, n_layers=1, n_heads=1,
                                     n_kv_heads=1, head_dim=8, d_ff=8)
  params = jax.eval_shape(functools.partial(transformer.init, config), jax.random.key(0))
  tokens = jnp.zeros((b, x + t), jnp.int32)
  def loss(chunk, params):
    return sum(jnp.sum(y) for y in logps.logps(
        params, config, tokens, tokens, tokens == 0, completion_width=t, chunk=chunk,
        statistics=statistics))
  def largest(chunk):
    fn = functools.partial(loss, chunk)
    fn = fn if direction == "forward" else jax.value_and_grad(fn)
    return max(sizes(jax.make_jaxpr(fn)(params).jaxpr))
  assert largest(b * t) >= b * t * v        # The walk would see them.
  assert largest(8) <= max(8 * v, v * 8)    # A chunk, or the embedding's gradient.


def test_refuses_a_batch_without_prompt_columns(params, batch):
  with pytest.raises(ValueError, match="completion_width=8"):
    logps.logps(params, CONFIG, *batch, completion_width=X + T)


@pytest.mark.parametrize("dtype, atol", [("float32", 1e-6), ("bfloat16", 2e-2)])
def test_remat_keeps_the_gradient_and_needs_less_memory_until_backward(dtype, atol):
  b, s = 8, 64
  wide = dataclasses.replace(CONFIG, n_layers=4, d_model=64, d_ff=256, dtype=dtype)
  tokens = np.random.default_rng(0).integers(0, V, (b, s))
  columns = np.broadcast_to(np.arange(s), (b, s))
  params = tiny.draw_decoder(wide)
  def gradient(remat):
    def loss(p):
      return sum(jnp.mean(x) for x in logps.logps(
          p, dataclasses.replace(wide, remat=remat), tokens, columns, columns >= 0,
          completion_width=s - 1))
    return jax.jit(jax.grad(loss)).lower(params).compile()
  programs = [gradient(remat) for remat in ("none", "dots", "full")]
  none, dots, full = (program.memory_analysis().temp_size_in_bytes for program in programs)
  assert none > 1.2 * dots > 1.2 * full
  expected, *computed = (program(params) for program in programs)
  scale = max(np.abs(x).max() for x in jax.tree.leaves(expected))
  for grads in computed:
    jax.tree.map(functools.partial(np.testing.assert_allclose, atol=atol * scale), expected, grads)


def test_whole_logits_of_rollouts_give_their_log_probs(params, batch):
  """In value and gradient."""
  rollouts = records.Rollouts(
      tokens_BS=batch[0], prompt_len_B=np.array([3, 1, 2]), completion_len_B=np.array([5, 2, 0]),
      sampler_logps_BT=np.zeros((B, T), np.float32), finish_B=np.zeros(B, np.int32), prompt_P=None)
  np.testing.assert_array_equal(rollouts.valid_BS, batch[2])

  def whole(params):
    logps_BTV = jax.nn.log_softmax(logps.logits(params, CONFIG, rollouts))
    logps_BT = jnp.take_along_axis(logps_BTV, rollouts.completions_BT[..., None], axis=2)[..., 0]
    return jnp.where(rollouts.action_BT, logps_BT, 0)

  def by_chunks(params):
    logps_BT, entropy = logps.of_rollouts(params, CONFIG, rollouts, with_entropy=False)
    assert entropy is None
    return logps_BT

  def summed(fn):
    def total(params):
      logps_BT = fn(params)
      return jnp.sum(logps_BT), logps_BT
    return jax.jit(jax.grad(total, has_aux=True))(params)

  gradients, (logps_BT, expected_BT) = zip(summed(by_chunks), summed(whole))
  np.testing.assert_allclose(logps_BT, expected_BT, atol=1e-5)
  jax.tree.map(lambda x, y: np.testing.assert_allclose(x, y, atol=1e-4), *gradients)
