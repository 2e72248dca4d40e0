"""Logits -> next token. Pure; one uniform number decides a row."""
import jax
from jax import Array
import jax.numpy as jnp

from rlx.core import axes
from rlx.models import logps


def uniform(key: Array) -> Array:
  """One float32 of the open interval (0, 1): (k + 1/2) 2^-23, k in [0, 2^23).

  `jax.random.uniform` gives k 2^-23, where k = 0 would draw the first token of any mass,
  however small. The midpoints are exact in float32.
  """
  return jax.random.uniform(key) + 2.0**-24


def truncate(logits_BV: Array, *, top_k: int = 0, top_p: float = 1.0, min_p: float = 0.0) -> Array:
  """Sets the logits outside the allowed set to -inf.

  Applied in this order, each to the distribution the one before left:
    top_k  the k most likely tokens, of equal ones those with lower ids; 0 is off.
    top_p  the smallest set of most likely tokens whose mass reaches p; 1 is off. Without top_k,
           tokens as likely as the last one stay too.
    min_p  tokens with probability >= min_p * max probability; 0 is off.

  Source: top-p, Holtzman et al. 2019, arXiv:1904.09751; min-p, Nguyen et al.
  2024, arXiv:2407.01082. Differs from the papers: nothing known.

  Example:
    >>> decoding.truncate(jnp.log(jnp.array([[.1, .4, .2, .3]])), top_k=2) > -jnp.inf
    Array([[False,  True, False,  True]], dtype=bool)
  """
  axes.dims(logits_BV=logits_BV)
  if not top_k and top_p == 1.0 and min_p == 0.0: return logits_BV
  if top_k:
    mass_BK, ids_BK = _find_few(_in_blocks(logits_BV), top_k, top_p, min_p)
    return jnp.where(logps.find_kept(jnp.where(mass_BK > 0, ids_BK, -1), logits_BV.shape[1]),
                     logits_BV, -jnp.inf)
  _, least_B1, _ = _find_cut(_in_blocks(logits_BV), top_p, min_p)
  return jnp.where(logits_BV >= least_B1, logits_BV, -jnp.inf)


def _find_few(logits_BnC, top_k, top_p, min_p):
  """The k most likely tokens of each row, the most likely first: all that top_k can keep.

  The k highest logits are in the k blocks with the highest maxima.

  Returns:
    mass_BK, exp(logits - max), 0 where a token is not kept; ids_BK.
  """
  b, n, c = logits_BnC.shape
  few = 2 * top_k <= n
  if few:
    # In the order of their ids: of equal logits, `top_k` takes the first.
    index_Bn = jnp.sort(jax.lax.top_k(jnp.max(logits_BnC, axis=2), top_k)[1], axis=1)
    logits_BnC = jnp.take_along_axis(logits_BnC, index_Bn[..., None], 1)
  sorted_BK, ids_BK = jax.lax.top_k(logits_BnC.reshape(b, -1), min(top_k, n * c))
  if few: ids_BK = jnp.take_along_axis(index_Bn, ids_BK // c, axis=1) * c + ids_BK % c
  # Not the first column: XLA for CPUs would sort all of them to take it.
  mass_BK = jnp.exp(sorted_BK - jnp.max(sorted_BK, axis=1, keepdims=True))
  # A token stays if the mass of those before it has not reached p.
  if top_p < 1.0:
    mass_BK = jnp.where(_stays(mass_BK / jnp.sum(mass_BK, axis=1, keepdims=True), top_p), mass_BK,
                        0.0)
  return jnp.where(mass_BK >= min_p, mass_BK, 0.0), ids_BK


def _stays(probs_BV, top_p):
  """Whether each of the sorted tokens is in the set of top_p."""
  return jnp.cumsum(probs_BV, axis=1) - probs_BV < top_p


def _find_cut(logits_BnC, top_p, min_p):
  """What `truncate` keeps without top_k, in two passes over the logits.

  The set of top_p is in the blocks with the highest maxima if its lowest logit is above the lowest
  of these maxima; only where it is not are all logits sorted.

  Returns:
    max_B1 and the lowest logit that is kept.
    kept_Bn: sums of exp(logits - max) over what is kept of each block.
  """
  b, n, _ = logits_BnC.shape
  few = 2 * _BLOCKS <= n and top_p < 1.0
  max_Bn = jnp.max(logits_BnC, axis=2)
  if few:
    highest_Bn, index_Bn = jax.lax.top_k(max_Bn, _BLOCKS)
    max_B1, among_BnC = highest_Bn[:, :1], jnp.take_along_axis(logits_BnC, index_Bn[..., None], 1)
  else: max_B1 = jnp.max(max_Bn, axis=1, keepdims=True)
  floor_B1 = max_B1 + jnp.log(min_p)  # -inf without min_p
  mass_of = lambda logits_BnC: jnp.exp(logits_BnC - max_B1[..., None])

  def keep(logits_BnC, least_B1):
    least_B1 = jnp.maximum(least_B1, floor_B1)
    is_kept_BnC = logits_BnC >= least_B1[..., None]
    return least_B1, jnp.sum(jnp.where(is_kept_BnC, mass_of(logits_BnC), 0.0), axis=2)

  def nucleus(sorted_BV, probs_BV):
    return jnp.min(jnp.where(_stays(probs_BV, top_p), sorted_BV, jnp.inf), axis=1, keepdims=True)

  def keep_of_all(_):
    sorted_BV = -jnp.sort(-logits_BnC.reshape(b, -1), axis=1)
    return keep(logits_BnC, nucleus(sorted_BV, jax.nn.softmax(sorted_BV, axis=1)))

  if top_p == 1.0: return max_B1, *keep(logits_BnC, floor_B1)
  if not few: return max_B1, *keep_of_all(None)
  sorted_BV = -jnp.sort(-among_BnC.reshape(b, -1), axis=1)
  total_B1 = jnp.cumsum(jnp.sum(mass_of(logits_BnC), axis=2), axis=1)[:, -1:]
  nucleus_B1 = nucleus(sorted_BV, jnp.exp(sorted_BV - max_B1) / total_B1)
  def keep_of_few(_):
    least_B1, kept_Bn = keep(among_BnC, nucleus_B1)
    return least_B1, jnp.zeros((b, n), kept_Bn.dtype).at[
        jnp.arange(b)[:, None], index_Bn].set(kept_Bn, unique_indices=True)
  return max_B1, *jax.lax.cond(
      jnp.all(nucleus_B1 > highest_Bn[:, -1:]), keep_of_few, keep_of_all, None)


def _in_blocks(logits_BV):
  """[B, V] -> [B, n, C]; the last block is padded with -inf."""
  b, v = logits_BV.shape
  if extra := -v % _BLOCK:
    logits_BV = jnp.pad(logits_BV, ((0, 0), (0, extra)), constant_values=-jnp.inf)
  return logits_BV.reshape(b, -1, _BLOCK)


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
  axes.dims(logits_BV=logits_BV, uniform_B=uniform_B)
  logits_BnC = _in_blocks(logits_BV)
  max_B1 = jnp.max(logits_BnC, axis=(1, 2))[:, None]
  mass_Bn = jnp.sum(jnp.exp(logits_BnC - max_B1[..., None]), axis=2)
  return _invert(logits_BnC, uniform_B, max_B1, None, mass_Bn)


def _invert(logits_BnC, uniform_B, max_B1, least_B1, kept_Bn):
  """`draw` from what `_find_cut` returns; without least, nothing is cut."""
  until_Bn = jnp.cumsum(kept_Bn, axis=1)
  wanted_B1 = uniform_B[:, None] * until_Bn[:, -1:]
  block_B1 = _first_beyond(until_Bn, wanted_B1)
  logits_BC = jnp.take_along_axis(logits_BnC, block_B1[..., None], axis=1)[:, 0]
  before_B1 = jnp.where(block_B1 > 0, jnp.take_along_axis(
      until_Bn, jnp.maximum(block_B1 - 1, 0), axis=1), 0.0)
  mass_BC = jnp.exp(logits_BC - max_B1)
  if least_B1 is not None: mass_BC = jnp.where(logits_BC >= least_B1, mass_BC, 0.0)
  chosen_B1 = _first_beyond(before_B1 + jnp.cumsum(mass_BC, axis=1), wanted_B1)
  total_B1 = until_Bn[:, -1:]
  logps_B1 = jnp.take_along_axis(logits_BC, chosen_B1, axis=1) - max_B1 - jnp.log(total_B1)
  return (block_B1 * _BLOCK + chosen_B1)[:, 0], logps_B1[:, 0]


_BLOCK = 128
_BLOCKS = 64  # Among whose tokens the set of top_p without top_k is looked for first.


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
    logps_B: log-prob under what the token was drawn from, softmax(logits / temperature) among
      the tokens that are kept (all of them, at temperature 1, when greedy).
  Example: of .4 and .3, which are kept, .4 has the share 4/7.
    >>> logits_BV, half_B = jnp.log(jnp.array([[.1, .4, .2, .3]])), jnp.array([.5])
    >>> decoding.next_token(logits_BV, half_B, temperature=1.0, top_k=2)[1]
    Array([-0.5596158], dtype=float32)
  """
  return draw_kept(logits_BV, uniform_B, temperature=temperature, top_k=top_k, top_p=top_p,
                   min_p=min_p)[:2]


def draw_kept(logits_BV: Array, uniform_B: Array, *, temperature: float, top_k: int = 0,
              top_p: float = 1.0, min_p: float = 0.0) -> tuple[Array, Array, Array | None]:
  """As `next_token`, and which tokens were kept.

  Returns:
    tokens_B, logps_B.
    kept_BK: their ids, the most likely first, then -1; None without top_k, which alone limits
      their number.
  """
  if not temperature:
    tokens_B = jnp.argmax(logits_BV, axis=1).astype(jnp.int32)
    chosen_B = jnp.take_along_axis(logits_BV, tokens_B[:, None], axis=1)[:, 0]
    return tokens_B, chosen_B - jax.nn.logsumexp(logits_BV, axis=1), None
  scaled_BV = logits_BV / temperature
  if top_k:
    mass_BK, ids_BK = _find_few(_in_blocks(scaled_BV), top_k, top_p, min_p)
    until_BK = jnp.cumsum(mass_BK, axis=1)
    at_B1 = _first_beyond(until_BK, uniform_B[:, None] * until_BK[:, -1:])
    take = lambda x_BK: jnp.take_along_axis(x_BK, at_B1, axis=1)[:, 0]
    return (take(ids_BK), jnp.log(take(mass_BK)) - jnp.log(until_BK[:, -1]),
            jnp.where(mass_BK > 0, ids_BK, -1))
  if top_p == 1.0 and min_p == 0.0: return *draw(scaled_BV, uniform_B), None
  logits_BnC = _in_blocks(scaled_BV)
  return *_invert(logits_BnC, uniform_B, *_find_cut(logits_BnC, top_p, min_p)), None
