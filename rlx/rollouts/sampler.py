"""Completions from a decoder: one prefill per prompt, then decoding in chunks.

A prompt's keys and values are computed and stored once and shared by its G
completions. Rows are decoded together, at most `slots` at once, in chunks on the
device. A chunk ends when its columns are full or, if it is not the only one, when a quarter
of its rows have ended and others wait, or half of them. The host then synchronises once: rows
that ended are removed, waiting rows take their slots, and otherwise the remaining rows are packed
into a smaller batch (`slots.py` plans this). The suffix cache is as wide as the longest row needs,
in whole chunks, so that a step reads only columns that may be in use. On accelerators its width
doubles, so that there are few programs.

On a mesh each device decodes the rows of its own prompts and ends its chunks on its own; nothing is
sent to others between the prefill and the end. With a tensor axis, whose devices share their rows,
chunks end together: XLA expects the same collectives of all devices.
"""
import bisect
import dataclasses
import functools
import math

import flax.struct
import jax
import jax.numpy as jnp
import numpy as np

from rlx.core import axes, records
from rlx.models import decode as decoder, transformer
from rlx.rollouts import decoding, slots as slots_lib

RUNNING = -1  # In finish_W while a row is being decoded.
_EOS, _LENGTH, _STOP = map(records.FINISH.index, ("eos", "length", "stop"))


@dataclasses.dataclass(frozen=True)
class Options:
  """What the compiled functions depend on; see `make`. Hashable: static under jit."""
  config: transformer.DecoderConfig
  group: int
  max_tokens: int
  chunk: int
  rule: tuple     # items of the keyword arguments of decoding.next_token
  eos_ids: tuple
  pad_id: int
  stop_ids: tuple = ()
  kept: int = 0   # K, ids of the tokens that could be drawn which are recorded; 0: none are
  together: tuple = ()  # mesh axes whose devices end their chunks together


@flax.struct.dataclass
class _Rows:
  """The inputs of each of the P * G rows, whether it is decoded yet or not."""
  last_token_B: jax.Array  # of its prompt
  prompt_len_B: jax.Array
  keys_B: jax.Array        # one key per row, folded with the column for each draw
  most_B: jax.Array        # tokens at which it ends


@flax.struct.dataclass
class _Working:
  """The W rows being decoded."""
  row_W: jax.Array      # number of the row; B where the slot is empty
  fed_W: jax.Array      # the next input token
  count_W: jax.Array    # completion tokens drawn so far
  finish_W: jax.Array   # index into FINISH, or RUNNING
  suffix: decoder.Suffix  # before a chunk: ends with a chunk of free columns
  steps_O: jax.Array    # number of these free columns that the chunk has filled


@flax.struct.dataclass
class _Drawn:
  """The tokens of all rows that have been drawn so far."""
  tokens_BT: jax.Array
  logps_BT: jax.Array
  len_B: jax.Array
  finish_B: jax.Array
  kept_BTK: jax.Array | None = None


def make(config, *, group, max_tokens, chunk, slots=None, temperature=1.0, top_k=0,
         top_p=1.0, min_p=0.0, eos_ids=(), pad_id=0, stop_ids=(), stops=(), decode=None,
         keeps=False, lay_out=None, fetch=jax.device_get, put=jax.device_put):
  """Builds `sample(params, tokens_PX, prompt_len_P, prompt_P, key, factor_T, weights, most_P)`.

  It returns Rollouts. most_P, if not None, is the largest number of tokens of the completions of
  each prompt, at most max_tokens.

  factor_T, if not None, multiplies the temperature of each position, and log-probs are
  then at that temperature. weights, if not None, is `decode.lay_out` of params, which can
  be used for any number of calls.

  Results depend on the key, the prompt's number and the sample's index only,
  not on which rows share the batch, the chunk size, the number of slots or the
  device count: position t of sample g of prompt p is drawn with
  fold_in(fold_in(fold_in(key, p), g), t), one `decoding.uniform` each.

  Args:
    config: DecoderConfig.
    group: G, completions per prompt.
    max_tokens: T, the largest number of tokens of a completion.
    chunk: the largest number of decode steps per host synchronisation.
    slots: the largest number of rows decoded at once, a multiple of G on each device; None is
      all rows.
    temperature, top_k, top_p, min_p: see `decoding.next_token`.
    eos_ids: tokens that end a completion; the token is part of it.
    pad_id: token that fills the columns after the end.
    stop_ids: further tokens that end a completion, as "stop"; the token is part of it.
    stops: strings that end a completion; it keeps every token up to the one
      that completes the string.
    decode: token ids -> text; needed by `stops`.
    keeps: whether Rollouts have the ids of the tokens that top_k kept.
    lay_out: params -> `decode.lay_out` of them; None: on one device.
    fetch, put: transfer the arrays of a tree from the devices to the host, and back; the second
      argument of `put` is (path, array) -> sharding.
  """
  shards = transformer.row_shards(config)
  options = _options(config, group=group, max_tokens=max_tokens, chunk=chunk, eos_ids=eos_ids,
                     pad_id=pad_id, stop_ids=stop_ids, keeps=keeps, temperature=temperature,
                     top_k=top_k, top_p=top_p, min_p=min_p)
  chunk = options.chunk
  lay_out = lay_out or functools.partial(decoder.lay_out, config=config)
  # Each batch size compiles a program, which does not pay off for a single chunk.
  shrinks = chunk < max_tokens
  place = put if config.rows is None else lambda tree: put(tree, lambda *_: config.rows)
  joined = lambda arrays: place(np.concatenate(list(arrays)))

  def sample(params, tokens_PX, prompt_len_P, prompt_P, key, factor_T=None, weights=None,
             most_P=None):
    if weights is None: weights = lay_out(params)
    prompts, rows, drawn = _start(options, params, tokens_PX, prompt_len_P, prompt_P, most_P, key)
    plans = [slots_lib.start(len(prompt_P) // shards, group, slots and slots // shards)] * shards
    working, read, cuts = None, prompts, {}
    while plans is not None:
      if plans[0].prompt_P is not None:
        read = _gather(options, prompts, joined(p.prompt_P for p in plans))
      columns = max(p.columns for p in plans)
      working = _move(options, rows, working, joined(p.row_W for p in plans),
                      joined(p.source_W for p in plans),
                      width=_find_width(options, columns), is_same=plans[0].is_same)
      working, drawn = _advance(
          options, weights, rows, read, working, drawn, factor_T,
          place(np.array([p.enough if shrinks else 0 for p in plans], np.int32)))
      finish_W, steps_O = fetch((working.finish_W, working.steps_O))
      running_W = finish_W == RUNNING
      if stops:
        running_W &= ~_find_stopped(plans, fetch((drawn.tokens_BT, drawn.len_B)), cuts, stops,
                                    decode)
      plans = slots_lib.plan_next(plans, running_W, steps_O)
    if cuts: drawn = _truncate(drawn, cuts, pad_id, fetch, put)
    return _rollouts(options, tokens_PX, prompt_P, rows, drawn)

  return sample


def _find_width(options, columns):
  """The number of earlier columns of a chunk's suffix for rows that need `columns`: whole chunks.

  Accelerators take the next power of 2 of them, as each width compiles a program. On CPUs
  compilation is short, and attention reads all columns.
  """
  chunks, most = -(-columns // options.chunk), -(-(options.max_tokens - 1) // options.chunk)
  if chunks and transformer.platform(options.config) != "cpu":
    chunks = min(1 << (chunks - 1).bit_length(), most)
  return chunks * options.chunk


def _options(config, *, group, max_tokens, chunk, eos_ids, pad_id, stop_ids=(), keeps=False,
             **rule):
  return Options(config, group, max_tokens, min(chunk, max_tokens), tuple(rule.items()),
                 tuple(sorted(eos_ids)), pad_id, tuple(sorted(stop_ids)),
                 count_kept(config, keeps, rule))


def count_kept(config, keeps, rule):
  """The number of ids that are recorded for each token."""
  return min(rule.get("top_k", 0), config.vocab_size) if keeps else 0


def trace(config, params, weights, place, *, prompts, prompt_tokens, slots=None, columns=None,
          **options):
  """The programs of a call of `sample`, traced for each number of rows that are decoded at once.

  The groups of fewer rows are taken to be as large as possible.

  Args:
    config, slots, options: as in `make`.
    params, weights: shapes of the parameters and of `decode.lay_out` of them.
    place: a tree of shapes whose first axis is that of rows or devices -> with shardings.
    prompts, prompt_tokens: P and X.
    columns: tokens that a row has at most before the chunk; None: as many as it can have.
  Returns:
    {name: (jax.stages.Traced, the parameters that it reads, arrays in use meanwhile that are not
    its arguments)} for "prefill", "decode chunk" and, if there is more than one, "move rows" and
    "decode chunk, N rows" for each smaller number.
  """
  options, shards = _options(config, **options), transformer.row_shards(config)
  array, chunk = jax.ShapeDtypeStruct, options.chunk
  start = _start.trace(
      options, params, *place((array((prompts, prompt_tokens), jnp.int32),
                               array((prompts,), jnp.int32), array((prompts,), jnp.uint32),
                               array((prompts,), jnp.int32))),
      jax.eval_shape(lambda: jax.random.key(0)))
  all_prompts, rows, drawn = place(start.out_info)
  b = prompts * options.group
  most = b if slots is None else min(slots, b)
  if columns is None: columns = 0 if chunk == options.max_tokens else options.max_tokens - 1
  width = _find_width(options, columns)
  read_params = {name: x for name, x in params.items() if name != "head"}
  programs = {"prefill": (start, read_params, weights)}
  for own in slots_lib.sizes(most // shards) if width else [most // shards]:
    w, ints_W = own * shards, place(array((own * shards,), jnp.int32))
    groups = w // math.gcd(own, options.group)
    read = all_prompts if w == b else place(jax.tree.map(
        lambda x: array((groups, *x.shape[1:]), x.dtype), all_prompts))
    working = place(_Working(
        *[ints_W] * 4, jax.eval_shape(lambda: decoder.empty_suffix(
            dataclasses.replace(config, heads=None), w, width + chunk)),
        array((shards,), jnp.int32)))
    advance = _advance.trace(options, weights, rows, read, working, drawn, None,
                             place(array((shards,), jnp.int32)))
    more = None if read is all_prompts else all_prompts
    programs["decode chunk" + (f", {w} rows" if w < most else "")] = advance, (), more
    if width and w == most:
      moved_ = _move.trace(options, rows, working, ints_W, ints_W, width=width, is_same=False)
      programs["move rows"] = moved_, (), (weights, read, more, drawn)
  return programs


@functools.partial(jax.jit, static_argnums=0)
def _start(options, params, tokens_PX, prompt_len_P, prompt_P, most_P, key):
  """Prefills all prompts and returns the initial rows."""
  group = options.group
  b = axes.dims(tokens_PX=tokens_PX, prompt_len_P=prompt_len_P, prompt_P=prompt_P)["P"] * group
  rows = _Rows(last_token_B=jnp.repeat(tokens_PX[:, -1], group),
               prompt_len_B=jnp.repeat(prompt_len_P, group), keys_B=keys_of(key, prompt_P, group),
               most_B=jnp.full(b, options.max_tokens, jnp.int32) if most_P is None else
               jnp.repeat(most_P, group))
  drawn = _Drawn(tokens_BT=jnp.full((b, options.max_tokens), options.pad_id, jnp.int32),
                 logps_BT=jnp.zeros((b, options.max_tokens), jnp.float32),
                 len_B=jnp.zeros(b, jnp.int32), finish_B=jnp.full(b, RUNNING, jnp.int32),
                 kept_BTK=_all_kept(options, b, options.max_tokens))
  return decoder.prompts(params, options.config, tokens_PX, prompt_len_P), rows, drawn


def _all_kept(options, *shape):
  """kept_BTK where no token is known to be excluded; None if it is not recorded."""
  return jnp.full((*shape, options.kept), -1, jnp.int32) if options.kept else None


def keys_of(key, prompt_P, group):
  """The key of each of the P * G rows."""
  keys_P = jax.vmap(lambda p: jax.random.fold_in(key, p))(prompt_P)
  return jax.vmap(lambda k: jax.vmap(
      lambda g: jax.random.fold_in(k, g))(jnp.arange(group)))(keys_P).reshape(-1)


def run_on_each(fn, options, rows, shared=()):
  """fn(options, *rows, *shared) on each device; `rows` are trees of its own rows."""
  config = options.config
  if config.rows is None: return fn(options, *rows, *shared)
  spec = jax.sharding.PartitionSpec
  own = spec(*config.rows.spec)
  axes, mesh = config.rows.spec[0], config.rows.mesh
  # Rows are not spread any further; heads are, over the tensor axis.
  inner = dataclasses.replace(
      options, together=axes if transformer.row_shards(config) < mesh.size else (),
      config=dataclasses.replace(config, rows=None, heads=spec(None, *config.heads.spec[1:])))
  return jax.shard_map(functools.partial(fn, inner), mesh=mesh,
                       in_specs=(own,) * len(rows) + (spec(),) * len(shared), out_specs=own,
                       axis_names=set(axes), check_vma=False)(*rows, *shared)


@functools.partial(jax.jit, static_argnums=0)
def _gather(options, prompts, prompt_P):
  return run_on_each(lambda _, prompts, prompt_P: jax.tree.map(lambda x: x[prompt_P], prompts),
                     options, (prompts, prompt_P))


@functools.partial(jax.jit, static_argnums=0, static_argnames=("width", "is_same"))
def _move(options, rows, old, row_W, source_W, *, width, is_same):
  """Puts rows into slots with `width` columns of earlier tokens and a free chunk.

  `width`, a multiple of the chunk, may be larger than the number of old columns; the
  additional columns are empty.
  """
  return run_on_each(functools.partial(_move_shard, width=width, is_same=is_same), options,
                     (rows, old, row_W, source_W))


def _move_shard(options, rows, old, row_W, source_W, *, width, is_same):
  chunk = options.chunk
  last_token_W = rows.last_token_B.at[row_W].get(mode="clip")
  finish_W = jnp.where(row_W < rows.prompt_len_B.shape[0], RUNNING, _LENGTH)
  if old is None:
    return _Working(row_W, last_token_W, jnp.zeros_like(row_W), finish_W,
                    decoder.empty_suffix(options.config, row_W.shape[0], width + chunk),
                    jnp.zeros(1, jnp.int32))
  at_W = None if is_same else jnp.maximum(source_W, 0)
  take = lambda x: x if is_same else x[at_W]
  is_new_W = source_W < 0
  return _Working(
      row_W, jnp.where(is_new_W, last_token_W, take(old.fed_W)),
      jnp.where(is_new_W, 0, take(old.count_W)), finish_W,
      # The columns in use end where the last chunk ended.
      decoder.move_rows(old.suffix, options.config, at_W, old.suffix.columns - chunk
                        + old.steps_O[0], width=width, free=chunk), jnp.zeros(1, jnp.int32))


@functools.partial(jax.jit, static_argnums=0, donate_argnums=(4, 5))
def _advance(options, weights, rows, prompts, working, drawn, factor_T, enough_O):
  """Decodes until the chunk of columns is full or at most `enough` rows are running."""
  return run_on_each(_advance_shard, options, (rows, prompts, working, drawn, enough_O),
                     (weights, factor_T))


def _advance_shard(options, rows, prompts, working, drawn, enough_O, weights, factor_T):
  row_W, count_W = working.row_W, working.count_W
  by_row = lambda x_B: x_B.at[row_W].get(mode="clip")
  steps, fed_W, finish_W, len_W, tokens_WC, logps_WC, kept_WCK, suffix = decode_chunk(
      options, weights, prompts, working.suffix, working.fed_W, count_W, working.finish_W,
      by_row(rows.most_B), by_row(rows.keys_B), by_row(rows.prompt_len_B), enough_O[0], factor_T)
  at = (row_W[:, None], count_W[:, None] + jnp.arange(options.chunk)[None, :])
  drawn = _Drawn(tokens_BT=drawn.tokens_BT.at[at].set(tokens_WC, mode="drop"),
                 logps_BT=drawn.logps_BT.at[at].set(logps_WC, mode="drop"),
                 kept_BTK=None if kept_WCK is None else drawn.kept_BTK.at[at].set(
                     kept_WCK, mode="drop"),
                 len_B=drawn.len_B.at[row_W].set(len_W, mode="drop"),
                 finish_B=drawn.finish_B.at[row_W].set(finish_W, mode="drop"))
  return _Working(row_W, fed_W, len_W, finish_W, suffix, steps[None]), drawn


def decode_chunk(options, weights, prompts, suffix, fed_W, count_W, finish_W, most_W, keys_W,
                 prompt_len_W, enough, factor_T):
  """Decodes on one device until the free columns are full or at most `enough` rows are running.

  Args:
    suffix: the last `options.chunk` columns are free. The columns before them end with those of
      a row.
    fed_W: the next input token.
    count_W: number of tokens after the prompt so far, each of which has a column.
    finish_W: RUNNING in rows that are decoded.
    most_W: number of tokens after the prompt at which a row ends.
    keys_W: one key per row, folded with the number of tokens for each draw.
  Returns:
    number of steps, then fed_W, finish_W, count_W, tokens_WC, logps_WC, kept_WCK (None if it is
    not recorded) and suffix after them.
  """
  chunk, pad_id = options.chunk, options.pad_id
  columns_T = jnp.arange(suffix.columns)
  first = columns_T.shape[0] - chunk
  start_W = first - count_W          # The column of a row's first token.
  uniform_WC = jax.vmap(jax.vmap(
      lambda k, t: decoding.uniform(jax.random.fold_in(k, t)),
      in_axes=(None, 0)))(keys_W, count_W[:, None] + jnp.arange(chunk)[None, :])
  position_W = prompt_len_W - 1 + count_W

  def one(carry):
    i, fed_W, finish_W, len_W, tokens_WC, logps_WC, kept_WCK, suffix = carry
    live_WT = ((columns_T[None, :] >= start_W[:, None]) & (columns_T[None, :] <= first + i))
    logits_WV, suffix = decoder.step(weights, options.config, fed_W, position_W + i, prompts,
                                     suffix, live_WT, first + i)
    if factor_T is not None:
      logits_WV = logits_WV / factor_T.at[count_W + i].get(mode="clip")[:, None]
    drawn_W, logps_W, kept_WK = decoding.draw_kept(
        logits_WV, jax.lax.dynamic_index_in_dim(uniform_WC, i, 1, keepdims=False),
        **dict(options.rule))
    live_W = finish_W == RUNNING
    finish_W = jnp.where(live_W, _finish(options, drawn_W, count_W + i + 1, most_W), finish_W)
    write = jax.lax.dynamic_update_index_in_dim
    if options.kept:
      kept_WCK = write(kept_WCK, jnp.where(live_W[:, None], kept_WK, -1)[:, :options.kept], i, 1)
    return (i + 1, drawn_W, finish_W, len_W + live_W,
            write(tokens_WC, jnp.where(live_W, drawn_W, pad_id), i, 1),
            write(logps_WC, jnp.where(live_W, logps_W, 0.0), i, 1), kept_WCK, suffix)

  def goes_on(carry):
    is_running = jnp.sum(carry[2] == RUNNING) > enough
    if options.together: is_running = jax.lax.pmax(is_running.astype(int), options.together) > 0
    return (carry[0] < chunk) & is_running

  w = fed_W.shape[0]
  return jax.lax.while_loop(
      goes_on, one,
      (jnp.int32(0), fed_W, finish_W, count_W, jnp.full((w, chunk), pad_id, jnp.int32),
       jnp.zeros((w, chunk), jnp.float32), _all_kept(options, w, chunk), suffix))


def _finish(options, drawn_W, count_W, most_W):
  """How rows of `count_W` tokens end with the token that they have drawn, or RUNNING."""
  is_in = lambda ids: jnp.any(drawn_W[:, None] == np.asarray(ids, np.int32)[None, :], axis=1)
  finish_W = jnp.where(count_W == most_W, _LENGTH, RUNNING)
  if options.stop_ids: finish_W = jnp.where(is_in(options.stop_ids), _STOP, finish_W)
  return jnp.where(is_in(options.eos_ids), _EOS, finish_W)


@functools.partial(jax.jit, static_argnums=0)
def _rollouts(options, tokens_PX, prompt_P, rows, drawn):
  return records.Rollouts(
      tokens_BS=jnp.concatenate(
          [jnp.repeat(tokens_PX, options.group, axis=0), drawn.tokens_BT], axis=1),
      prompt_len_B=rows.prompt_len_B, completion_len_B=drawn.len_B,
      sampler_logps_BT=drawn.logps_BT, finish_B=drawn.finish_B, prompt_P=prompt_P,
      kept_BTK=drawn.kept_BTK)


def _find_stopped(plans, drawn, cuts, stops, decode):
  """bool [W]: rows whose text has a stop string; their lengths are put into `cuts`.

  Runs on the host. It compares texts, so the result does not depend on how the string is
  split into tokens, nor on an EOS drawn after it within the same chunk.

  Args:
    drawn: tokens_BT and len_B on the host.
  """
  tokens_BT, len_B = drawn
  row_W = np.concatenate([p.row_W + i * p.rows for i, p in enumerate(plans)])
  stopped_W = np.zeros(row_W.shape, bool)
  for i in np.flatnonzero(np.concatenate([p.live_W for p in plans])):
    b = int(row_W[i])
    cut = stop_length(tokens_BT[b, :len_B[b]].tolist(), stops, decode)
    if cut is not None: cuts[b], stopped_W[i] = cut, True
  return stopped_W


def stop_length(ids, stops, decode):
  """The length of the shortest prefix of `ids` whose text has a stop string; None without one."""
  has_stop = lambda n: any(s in decode(ids[:n]) for s in stops)
  if not ids or not has_stop(len(ids)): return None
  return 1 + bisect.bisect_left(range(1, len(ids)), True, key=has_stop)


def _truncate(drawn, cuts, pad_id, fetch, put):
  """Truncates the rows of `cuts`, {row: length}."""
  len_B, finish_B = map(np.array, fetch((drawn.len_B, drawn.finish_B)))
  for b, n in cuts.items(): len_B[b], finish_B[b] = n, _STOP
  is_in_BT = put(np.arange(drawn.tokens_BT.shape[1])[None, :] < len_B[:, None])
  return _Drawn(tokens_BT=jnp.where(is_in_BT, drawn.tokens_BT, pad_id),
                logps_BT=jnp.where(is_in_BT, drawn.logps_BT, 0.0),
                len_B=put(len_B), finish_B=put(finish_B),
                kept_BTK=None if drawn.kept_BTK is None else jnp.where(
                    is_in_BT[..., None], drawn.kept_BTK, -1))
