"""Logits -> next token. Pure; one uniform number decides a row."""
import jax
from jax import Array
import jax.numpy as jnp

from rlx.core import axes


def uniform(key: Array) -> Array:
  """One float32 of the open interval (0, 1): (k + 1/2) 2^-23, k in [0, 2^23).

  `jax.random.uniform` gives k 2^-23, where k = 0 would draw the first token of any mass,
  however small. The midpoints are exact in float32.
  """
  return jax.random.uniform(key) + 2.0**-24


def truncate(logits_BV: Array, *, top_k: int = 0, top_p: float = 1.0, min_p: float = 0.0) -> Array:
  """Sets the logits outside the allowed set to -inf.

  Applied in this order, each to the distribution the one before left:
    top_k  the k most likely tokens (ties with the k-th stay); 0 is off.
    top_p  the smallest set of most likely tokens whose mass reaches p; 1 is off.
    min_p  tokens with probability >= min_p * max probability; 0 is off.

  Source: top-p, Holtzman et al. 2019, arXiv:1904.09751; min-p, Nguyen et al.
  2024, arXiv:2407.01082. Differs from the papers: nothing known.

  The vocabulary is sorted only by top_p without top_k.

  Example:
    >>> decoding.truncate(jnp.log(jnp.array([[.1, .4, .2, .3]])), top_k=2) > -jnp.inf
    Array([[False,  True, False,  True]], dtype=bool)
  """
  axes.dims(logits_BV=logits_BV)
  if top_k:
    sorted_BV = jax.lax.top_k(logits_BV, min(top_k, logits_BV.shape[1]))[0]
    logits_BV = jnp.where(logits_BV >= sorted_BV[:, -1:], logits_BV, -jnp.inf)
  if top_p < 1.0:
    if not top_k:
      sorted_BV = -jnp.sort(-logits_BV, axis=1)
    probs_BV = jax.nn.softmax(sorted_BV, axis=1)
    # A token stays if the mass of those before it has not reached p.
    stays_BV = jnp.cumsum(probs_BV, axis=1) - probs_BV < top_p
    least_B1 = jnp.min(jnp.where(stays_BV, sorted_BV, jnp.inf), axis=1, keepdims=True)
    logits_BV = jnp.where(logits_BV >= least_B1, logits_BV, -jnp.inf)
  if min_p > 0.0:
    floor_B1 = jnp.max(logits_BV, axis=1, keepdims=True) + jnp.log(min_p)
    logits_BV = jnp.where(logits_BV >= floor_B1, logits_BV, -jnp.inf)
  return logits_BV


def draw(logits_BV: Array, uniform_B: Array) -> tuple[Array, Array]:
  """Samples softmax(logits) by inverting its cumulative sum at `uniform_B`.

  One uniform per row instead of one Gumbel per token: a row's draw needs only
  its own key. The sum is over blocks of 128 tokens first and then within one
  block, so no cumulative sum runs over the vocabulary: at [32, 49152] on 2 CPU
  cores a quarter of the time of one that does. A token is drawn only if it adds to
  the sum over all tokens in float32, wherever in its block it stands.

  Args:
    logits_BV: float32; -inf is never drawn.
    uniform_B: float32 in (0, 1), see `uniform`.
  Returns:
    tokens_B: int32.
    logps_B: their log-probs.
  Example: cumulative probabilities are 0.1, 0.5, 0.7 and 1.
    >>> decoding.draw(jnp.log(jnp.array([[.1, .4, .2, .3]])), jnp.array([0.6]))[0]
    Array([2], dtype=int32)
  """
  sizes = axes.dims(logits_BV=logits_BV, uniform_B=uniform_B)
  b, v = sizes["B"], sizes["V"]
  blocks = -(-v // _BLOCK)
  if extra := blocks * _BLOCK - v:
    logits_BV = jnp.pad(logits_BV, ((0, 0), (0, extra)), constant_values=-jnp.inf)
  logits_BnC = logits_BV.reshape(b, blocks, _BLOCK)
  max_B1 = jnp.max(logits_BV, axis=1, keepdims=True)
  until_Bn = jnp.cumsum(jnp.sum(jnp.exp(logits_BnC - max_B1[..., None]), axis=2), axis=1)
  total_B1 = until_Bn[:, -1:]
  wanted_B1 = uniform_B[:, None] * total_B1
  block_B1 = _first_beyond(until_Bn, wanted_B1)
  logits_BC = jnp.take_along_axis(logits_BnC, block_B1[..., None], axis=1)[:, 0]
  before_B1 = jnp.where(block_B1 > 0, jnp.take_along_axis(
      until_Bn, jnp.maximum(block_B1 - 1, 0), axis=1), 0.0)
  until_BC = before_B1 + jnp.cumsum(jnp.exp(logits_BC - max_B1), axis=1)
  chosen_B1 = _first_beyond(until_BC, wanted_B1)
  logps_B1 = (jnp.take_along_axis(logits_BC, chosen_B1, axis=1) - max_B1 - jnp.log(total_B1))
  return (block_B1 * _BLOCK + chosen_B1)[:, 0], logps_B1[:, 0]


_BLOCK = 128


def _first_beyond(until_Bn, wanted_B1):
  """The first column whose cumulative sum exceeds what is wanted. int32 [B, 1].

  Rounding can want all there is, or more: then the last column that adds mass.
  """
  below_B1 = jnp.sum(until_Bn <= wanted_B1, axis=1, keepdims=True, dtype=jnp.int32)
  last_B1 = jnp.argmax(until_Bn == until_Bn[:, -1:], axis=1, keepdims=True)
  return jnp.minimum(below_B1, last_B1.astype(jnp.int32))


def next_token(logits_BV: Array, uniform_B: Array, *, temperature: float, top_k: int = 0,
               top_p: float = 1.0, min_p: float = 0.0) -> tuple[Array, Array]:
  """Draws the next token and its log-prob.

  Args:
    logits_BV: float32.
    uniform_B: float32 in (0, 1), see `uniform`.
    temperature: divides the logits; 0 takes the most likely token.
    top_k, top_p, min_p: see `truncate`.
  Returns:
    tokens_B: int32.
    logps_B: log-prob under softmax(logits / temperature) *before* truncation
      (temperature 1 when greedy): what the trainer computes for the same
      token, so that the two can be compared and a ratio formed.
  """
  scaled_BV = logits_BV / temperature if temperature else logits_BV
  if temperature and not top_k and top_p == 1.0 and min_p == 0.0:
    return draw(scaled_BV, uniform_B)
  if temperature:
    tokens_B, _ = draw(truncate(scaled_BV, top_k=top_k, top_p=top_p, min_p=min_p), uniform_B)
  else:
    tokens_B = jnp.argmax(scaled_BV, axis=1).astype(jnp.int32)
  chosen_B = jnp.take_along_axis(scaled_BV, tokens_B[:, None], axis=1)[:, 0]
  return tokens_B, chosen_B - jax.nn.logsumexp(scaled_BV, axis=1)
