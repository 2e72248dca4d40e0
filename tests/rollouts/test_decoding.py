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


def test_logps_are_those_before_truncation():
  tokens_B, logps_B = decoding.next_token(
      jnp.array(LOGITS), jnp.array([.5]), temperature=2.0, top_k=1)
  p = np.sqrt(np.exp(LOGITS[0]))
  assert tokens_B.tolist() == [1]
  np.testing.assert_allclose(logps_B, [np.log(p[1] / p.sum())], rtol=1e-6)


def test_greedy_is_argmax_at_temperature_one():
  tokens_B, logps_B = decoding.next_token(jnp.array(LOGITS), jnp.array([.99]), temperature=0.0)
  assert tokens_B.tolist() == [1]
  np.testing.assert_allclose(logps_B, [np.log(.4)], rtol=1e-6)
