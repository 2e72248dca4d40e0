import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlx.rollouts import decoding
from tests import whole

decoding = whole.compile_module(decoding)

inf = np.inf
LOGITS = np.log(np.array([[.1, .4, .2, .3]], np.float32))


@pytest.mark.parametrize("options, kept", [
    (dict(), [1, 1, 1, 1]),
    (dict(top_k=2), [0, 1, 0, 1]),
    (dict(top_k=9), [1, 1, 1, 1]),
    # Mass before each, in order of probability: 0, .4, .7, .9.
    (dict(top_p=.7), [0, 1, 0, 1]),
    (dict(top_p=.71), [0, 1, 1, 1]),
    (dict(top_p=1e-9), [0, 1, 0, 0]),  # Never empty.
    # min_p .6: probability >= .24.
    (dict(min_p=.6), [0, 1, 0, 1]),
    # top-p on what top-k left, .4/.7 and .3/.7: .571 reaches .5.
    (dict(top_k=2, top_p=.5), [0, 1, 0, 0]),
], ids=str)
def test_truncate(options, kept):
  out_BV = decoding.truncate(jnp.array(LOGITS), **options)
  np.testing.assert_array_equal(np.isfinite(out_BV), np.array([kept], bool))


def kept_by_sorting(logits_V, top_k=0, top_p=1.0, min_p=0.0):
  """The tokens that `truncate` keeps, in float64; no two are alike."""
  p_V, order = np.exp(np.float64(logits_V) - logits_V.max()), np.argsort(-logits_V, kind="stable")
  least = p_V[order[top_k - 1]] if top_k else 0
  p_V = np.where(p_V >= least, p_V, 0)
  if top_p < 1:
    before = np.cumsum(p_V[order]) - p_V[order]
    p_V = np.where(p_V >= p_V[order][before < top_p * p_V.sum()].min(), p_V, 0)
  return p_V >= max(min_p * p_V.max(), 1e-300)


V = 2 * 64 * 128 + 100  # More than twice the blocks of top_p; the last one is not full.


@pytest.mark.parametrize("options", [
    dict(top_k=50), dict(top_p=.9), dict(top_k=40, top_p=.8), dict(top_p=.95, min_p=.002)], ids=str)
@pytest.mark.parametrize("spread", [5.0, 0.05], ids=["peaked", "flat"])
def test_a_large_vocabulary_is_cut_as_if_it_were_sorted(options, spread):
  """top_p is found among a few blocks of peaked rows; one flat row makes it sort all of them."""
  logits_BV = np.random.default_rng(0).gumbel(size=(3, V)).astype(np.float32)
  logits_BV[:2] *= 5.0
  logits_BV[2] *= spread
  kept_BV = np.array([kept_by_sorting(x, **options) for x in logits_BV])
  np.testing.assert_array_equal(np.isfinite(decoding.truncate(logits_BV, **options)), kept_BV)
  # At n evenly spaced uniforms a token of probability p is drawn n p times, give or take one.
  n, p_BV = 64, np.exp(np.float64(logits_BV))
  uniforms_U = (np.arange(n, dtype=np.float32) + .5) / n
  tokens_UB, logps_UB = jax.jit(lambda logits_BV, uniforms_U: jax.lax.map(
      lambda u: decoding.next_token(logits_BV, jnp.full(3, u), temperature=1.0, **options),
      uniforms_U))(logits_BV, uniforms_U)
  counts_BV = np.stack([np.bincount(x, minlength=V) for x in np.asarray(tokens_UB).T])
  cut_BV = np.where(kept_BV, p_BV, 0)
  assert np.abs(counts_BV - n * cut_BV / cut_BV.sum(1, keepdims=True)).max() < 1.01
  assert not counts_BV[~kept_BV].any()
  np.testing.assert_allclose(logps_UB, np.take_along_axis(
      np.log(p_BV / cut_BV.sum(1, keepdims=True)), np.asarray(tokens_UB).T, 1).T, atol=1e-5)


@pytest.mark.parametrize("options, sorts", [
    (dict(), False), (dict(min_p=.1), False), (dict(top_k=2), False),
    (dict(top_k=2, top_p=.5), False), (dict(top_p=.5), True)], ids=str)
def test_only_top_p_without_top_k_sorts_the_vocabulary(options, sorts):
  program = jax.make_jaxpr(lambda logits_BV, uniform_B: decoding.next_token(
      logits_BV, uniform_B, temperature=1.0, **options))(LOGITS, np.zeros(1, np.float32))
  assert (" sort[" in str(program)) == sorts


@pytest.mark.parametrize("uniform, token", [
    # Cumulative: .1 .5 .7 1.
    (2.0**-24, 0), (.09, 0), (.11, 1), (.49, 1), (.51, 2), (.69, 2), (.71, 3),
    (np.nextafter(np.float32(1), np.float32(0)), 3)])
def test_draw_inverts_the_cumulative_sum(uniform, token):
  out_B, logps_B = decoding.draw(jnp.array(LOGITS), jnp.array([uniform], jnp.float32))
  assert out_B.tolist() == [token]
  np.testing.assert_allclose(logps_B, np.log([[.1, .4, .2, .3][token]]), rtol=1e-5)


# Keys whose uniform is the least and the largest that the generator gives.
@pytest.mark.parametrize("fold, k", [(15405709, 0), (7848376, 2**23 - 1)])
def test_uniforms_lie_inside_of_the_open_interval(fold, k):
  key = jax.random.fold_in(jax.random.key(0), fold)
  assert jax.random.uniform(key) == k / 2**23
  uniform = decoding.uniform(key)
  assert float(uniform) == (k + .5) / 2**23
  # Tokens of 2e-17 first and last: neither is within 2^-24 of its end.
  tokens_B, _ = decoding.next_token(
      jnp.array([[np.log(2e-17), 0., np.log(2e-17)]]), uniform[None], temperature=1.0)
  assert tokens_B.tolist() == [1]


def test_draw_skips_a_tiny_token_that_begins_a_block():
  logits = np.full((1, 256), -np.inf, np.float32)
  logits[0, [5, 128, 200]] = 0, np.log(2e-17), 0
  # Half of the mass is what the first block holds: the next token of any weight is 200.
  tokens_B, _ = decoding.draw(jnp.array(logits), jnp.array([.5]))
  assert tokens_B.tolist() == [200]


def test_draw_never_takes_a_token_without_mass():
  logits = jnp.array([[-inf, 0., -inf, 1., -inf]], jnp.float32)
  uniforms = jnp.append(jnp.linspace(0, 1, 200)[:-1], np.nextafter(np.float32(1), np.float32(0)))
  out = jax.vmap(lambda u: decoding.draw(logits, u[None])[0][0])(uniforms)
  assert set(out.tolist()) == {1, 3}


@pytest.mark.parametrize("options", [
    dict(), dict(top_k=5), dict(top_p=.7), dict(min_p=.2), dict(top_k=6, top_p=.8, min_p=.05)],
    ids=str)
def test_logps_are_those_of_the_distribution_that_200_000_draws_have(options):
  n, logits_V = 200_000, np.random.default_rng(0).normal(size=12).astype(np.float32) * 2
  uniforms_B = np.random.default_rng(1).uniform(size=n).astype(np.float32)
  tokens_B, logps_B, kept_BK = map(np.asarray, decoding.draw_kept(
      jnp.repeat(logits_V[None], n, 0), uniforms_B, temperature=1.5, **options))
  seen_V = np.bincount(tokens_B, minlength=12) / n
  said_V = np.zeros(12)
  said_V[tokens_B] = np.exp(logps_B)
  np.testing.assert_allclose(said_V.sum(), 1, atol=1e-5)  # Each token that is kept was drawn.
  np.testing.assert_allclose(seen_V, said_V, atol=5 * np.sqrt(.25 / n))
  kept_V = kept_by_sorting(logits_V / 1.5, **options)
  np.testing.assert_array_equal(seen_V > 0, kept_V)
  if "top_k" in options:
    np.testing.assert_array_equal(np.sort(kept_BK[0])[-kept_V.sum():], np.flatnonzero(kept_V))
    assert (kept_BK[0] >= 0).sum() == kept_V.sum() and (kept_BK == kept_BK[0]).all()
  else: assert kept_BK.item() is None


def test_top_k_keeps_k_of_equal_tokens():
  logits_BV = np.zeros((1, 128 * 9), np.float32)
  logits_BV[0, [300, 900]] = 1
  *_, kept_BK = decoding.draw_kept(logits_BV, np.array([.5], np.float32), temperature=1., top_k=4)
  assert kept_BK.tolist() == [[300, 900, 0, 1]]
  assert np.flatnonzero(np.isfinite(decoding.truncate(logits_BV, top_k=4))[0]).tolist() == [
      0, 1, 300, 900]


def test_greedy_is_argmax_at_temperature_one():
  tokens_B, logps_B = decoding.next_token(jnp.array(LOGITS), jnp.array([.99]), temperature=0.0)
  assert tokens_B.tolist() == [1]
  np.testing.assert_allclose(logps_B, [np.log(.4)], rtol=1e-6)
