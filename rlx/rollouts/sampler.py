"""Completions from a decoder: one prefill per prompt, then decoding in chunks.

The prompt's keys and values are computed and stored once and shared by its G
completions. Decoding runs on the device in chunks; the host looks once per
chunk whether every row has ended. The suffix cache is as wide as the chunks
decoded so far, so a step reads what can be live, not what may be allocated.
"""
import functools

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np

from rlx.core import axes
from rlx.core import records
from rlx.models import transformer
from rlx.rollouts import decoding

_RUNNING = -1  # In finish_B while a row is being decoded.


@flax.struct.dataclass
class _State:
  """What decoding carries from one token to the next."""
  column: jax.Array        # int32 scalar, completion columns drawn so far
  tokens_BT: jax.Array
  logps_BT: jax.Array
  len_B: jax.Array
  finish_B: jax.Array      # index into FINISH, or _RUNNING
  prompt_len_B: jax.Array
  keys_B: jax.Array        # one key per row, folded with the column for each draw
  cache: transformer.Cache


def make(config, *, group, max_tokens, chunk, temperature=1.0, top_k=0,
         top_p=1.0, min_p=0.0, eos_ids=(), pad_id=0, stops=(), decode=None):
  """Builds `sample(params, tokens_PX, prompt_len_P, prompt_P, key) -> Rollouts`.

  Results depend on the key, the prompt's number and the sample's index only,
  not on which prompts share the batch, the chunk size or the device count:
  position t of sample g of prompt p is drawn with
  fold_in(fold_in(fold_in(key, p), g), t).

  Args:
    config: DecoderConfig.
    group: G, completions per prompt.
    max_tokens: T, the most tokens of a completion.
    chunk: tokens decoded between two looks from the host.
    temperature, top_k, top_p, min_p: see `decoding.next_token`.
    eos_ids: tokens that end a completion; the token is part of it.
    pad_id: what fills the columns after the end.
    stops: strings that end a completion; it keeps every token up to the one
      that completes the string.
    decode: token ids -> text; needed by `stops`.
  """
  if stops and decode is None:
    raise ValueError("Stop strings need a function that decodes tokens.")
  rule = dict(temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p)
  eos = np.asarray(sorted(eos_ids), np.int32)
  chunk = min(chunk, max_tokens)

  def put(state, logits_BV):
    """Draws column `state.column` from its logits and records it."""
    uniform_B = jax.vmap(lambda k: jax.random.uniform(
        jax.random.fold_in(k, state.column)))(state.keys_B)
    drawn_B, logps_B = decoding.next_token(logits_BV, uniform_B, **rule)
    live_B = state.finish_B == _RUNNING
    ends_B = jnp.any(drawn_B[:, None] == eos[None, :], axis=1)
    column = state.column + 1
    finish_B = jnp.where(ends_B, records.FINISH.index("eos"),
                         jnp.where(column == max_tokens,
                                   records.FINISH.index("length"), _RUNNING))
    write = jax.lax.dynamic_update_slice_in_dim
    return state.replace(
        column=column,
        tokens_BT=write(state.tokens_BT, jnp.where(
            live_B, drawn_B, pad_id)[:, None], state.column, axis=1),
        logps_BT=write(state.logps_BT, jnp.where(
            live_B, logps_B, 0.0)[:, None], state.column, axis=1),
        len_B=state.len_B + live_B,
        finish_B=jnp.where(live_B, finish_B, state.finish_B))

  @jax.jit
  def start(params, tokens_PX, prompt_len_P, prompt_P, key):
    """Prefill, an empty cache for the first chunk, and the first token."""
    sizes = axes.dims(tokens_PX=tokens_PX, prompt_len_P=prompt_len_P,
                      prompt_P=prompt_P)
    width, b = sizes["X"], sizes["P"] * group
    columns_1X = jnp.arange(width)[None, :]
    start_P1 = (width - prompt_len_P)[:, None]
    hidden_P1D, prompt_cache = transformer.prefill(
        params, config, tokens_PX, jnp.maximum(columns_1X - start_P1, 0),
        columns_1X >= start_P1)
    keys_P = jax.vmap(lambda p: jax.random.fold_in(key, p))(prompt_P)
    keys_PG = jax.vmap(lambda k: jax.vmap(
        lambda g: jax.random.fold_in(k, g))(jnp.arange(group)))(keys_P)
    state = _State(
        column=jnp.int32(0),
        tokens_BT=jnp.full((b, max_tokens), pad_id, jnp.int32),
        logps_BT=jnp.zeros((b, max_tokens), jnp.float32),
        len_B=jnp.zeros(b, jnp.int32),
        finish_B=jnp.full(b, _RUNNING, jnp.int32),
        prompt_len_B=jnp.repeat(prompt_len_P, group),
        keys_B=keys_PG.reshape(b),
        cache=transformer.empty_cache(config, prompt_cache, group, chunk))
    logits_PV = transformer.logits(params, config, hidden_P1D)[:, 0]
    return put(state, jnp.repeat(logits_PV, group, axis=0))

  @functools.partial(jax.jit, donate_argnums=1)
  def advance(params, state):
    """Decodes until the cache is full, every row has ended, or T is reached."""
    end = min(state.cache.suffix_k_LBTKH.shape[2] + 1, max_tokens)

    def one(state):
      fed_B1 = jax.lax.dynamic_slice_in_dim(
          state.tokens_BT, state.column - 1, 1, axis=1)
      positions_B1 = (state.prompt_len_B + state.column - 1)[:, None]
      hidden_B1D, new_k, new_v = transformer.decode(
          params, config, fed_B1, positions_B1, state.cache)
      state = state.replace(
          cache=transformer.append(state.cache, new_k, new_v))
      return put(state, transformer.logits(params, config, hidden_B1D)[:, 0])

    state = jax.lax.while_loop(
        lambda s: (s.column < end) & jnp.any(s.finish_B == _RUNNING), one, state)
    return state, jnp.any(state.finish_B == _RUNNING)

  def sample(params, tokens_PX, prompt_len_P, prompt_P, key):
    state = start(params, tokens_PX, prompt_len_P, prompt_P, key)
    while True:
      state, is_running = advance(params, state)
      if stops:
        state, is_running = _cut_at_stops(state, stops, decode, pad_id)
      if not is_running: break
      width = state.cache.suffix_k_LBTKH.shape[2]
      state = state.replace(cache=transformer.grow(
          state.cache, min(width + chunk, max_tokens)))
    return records.Rollouts(
        tokens_BS=jnp.concatenate(
            [jnp.repeat(tokens_PX, group, axis=0), state.tokens_BT], axis=1),
        prompt_len_B=state.prompt_len_B, completion_len_B=state.len_B,
        sampler_logps_BT=state.logps_BT, finish_B=state.finish_B,
        prompt_P=prompt_P)

  return sample


def _cut_at_stops(state, stops, decode, pad_id):
  """Ends rows at the first token that completes a stop string. Host side.

  Exact on text: whatever way the string is split into tokens, and also when
  an EOS was drawn after it within the same chunk.
  """
  tokens_BT, len_B = np.array(state.tokens_BT), np.array(state.len_B)
  finish_B, logps_BT = np.array(state.finish_B), np.array(state.logps_BT)
  for b, n in enumerate(len_B):
    ids = tokens_BT[b, :n].tolist()
    if finish_B[b] == records.FINISH.index("stop"): continue
    if not any(s in decode(ids) for s in stops): continue
    # The shortest prefix that holds a stop string. Monotone, so bisect.
    low, high = 1, n
    while low < high:
      middle = (low + high) // 2
      has = any(s in decode(ids[:middle]) for s in stops)
      low, high = (low, middle) if has else (middle + 1, high)
    len_B[b], finish_B[b] = low, records.FINISH.index("stop")
    tokens_BT[b, low:], logps_BT[b, low:] = pad_id, 0.0
  state = state.replace(tokens_BT=jnp.asarray(tokens_BT), len_B=jnp.asarray(len_B),
                        finish_B=jnp.asarray(finish_B),
                        logps_BT=jnp.asarray(logps_BT))
  return state, bool((finish_B == _RUNNING).any())
