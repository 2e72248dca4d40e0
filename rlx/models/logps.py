"""Log-probs and entropy of completions; all shifts by one token are in this file.

Column t of a completion is scored by the hidden state of the column before it. The head is
applied to completion columns only, in chunks of columns, so that logits of shape [B, T, V] exist
neither forward nor backward.
"""
import functools
import math

import jax
import jax.numpy as jnp

from rlx.core import axes, masked
from rlx.models import packing, transformer

REMOVED = -1e4  # nats, the log-prob of a token that a filter removes
_CUT = transformer.OUTSIDE  # Logit of a token that the sampler could not draw.


def logps(params, config, tokens_BS, positions_BS, valid_BS, *, completion_width,
          temperature=1.0, chunk=1024, with_entropy=True, statistics=(), plan=None,
         kept_BTK=None):
  """Log-probs of the completion tokens and entropy of their distributions.

    logps[b, t] = log softmax(logits[b, X - 1 + t] / temperature)[tokens[b, X + t]]

  With kept_BTK the softmax is over the kept tokens alone: what a sampler with top_k draws from.
  Which tokens these are is fixed, so that the gradient is that of log p(y) - log sum of p(kept).

  Source: the definition; fixed kept tokens, DeepSeek-AI 2025, arXiv:2512.02556. Differs from the
  papers: nothing known.

  Args:
    params, config, tokens_BS, positions_BS, valid_BS: see `transformer.hidden`.
    completion_width: T; the completions are the last T of the S columns.
    temperature: divides the logits; static, > 0.
    chunk: see `from_hidden`.
    with_entropy: False skips the entropy and returns None for it.
    statistics: of the scaled distributions, see `distribution_statistics`; static.
    plan: packing.Plan, to compute on tokens only; None computes on padding too.
    kept_BTK: int32, ids of the tokens that are kept, or -1; only -1 or None: all are.
  Returns:
    logps_BT: float32 nats, 0 on padding.
    entropy_BT: float32 nats of the scaled distribution, 0 on padding.
    one array for each of `statistics`, float32, 0 on padding.
  """
  hidden_BTD, targets_BT, mask_BT, spread = compute_hidden(
      params, config, tokens_BS, positions_BS, valid_BS, completion_width, plan)
  out = from_hidden(params, config, hidden_BTD, targets_BT, mask_BT, temperature=temperature,
                    chunk=chunk, with_entropy=with_entropy, statistics=statistics,
                    kept_BTK=None if kept_BTK is None else list_tokens(config, kept_BTK, plan))
  return jax.tree.map(spread, out)


def of_rollouts(params, config, rollouts, plan=None, *, among_kept=False, **options):
  """`logps` of the completions of records.Rollouts; other options are those of `logps`.

  Args:
    among_kept: whether the distributions are those over the tokens that the sampler could draw.
  """
  return logps(params, config, rollouts.tokens_BS, rollouts.positions_BS, rollouts.valid_BS,
               completion_width=rollouts.sampler_logps_BT.shape[1], plan=plan,
               kept_BTK=rollouts.kept_BTK if among_kept else None, **options)


def logits(params, config, rollouts):
  """The whole distributions that the completion tokens of records.Rollouts are drawn from.

    logits[b, t, v] = logit of token v after the tokens before column X + t

  Unlike `logps`, this holds all logits at once, B T V float32 numbers, and as many in a gradient.

  Args:
    params, config: see `transformer.hidden`.
  Returns:
    logits_BTV: float32, at temperature 1; any finite numbers on padding (`rollouts.mask_BT`).
  """
  hidden_BTD, *_ = compute_hidden(params, config, rollouts.tokens_BS, rollouts.positions_BS,
                                  rollouts.valid_BS, rollouts.sampler_logps_BT.shape[1])
  return transformer.logits(params, config, hidden_BTD)


@transformer.exact_products
def log_odds(params, config, rollouts, answer_ids, plan=None):
  """The log-odds of one token against another in place of each completion token.

    s[b, t] = logit of answer_ids[0] - logit of answer_ids[1], after the tokens before column X + t

  Args:
    params, config, rollouts, plan: see `of_rollouts`.
    answer_ids: two token ids.
  Returns:
    scores_BT: float32, 0 on padding.
  """
  hidden_BTD, _, mask_BT, spread = compute_hidden(
      params, config, rollouts.tokens_BS, rollouts.positions_BS, rollouts.valid_BS,
      rollouts.sampler_logps_BT.shape[1], plan)
  logits_BTV = transformer.logits(params, config, hidden_BTD)
  odds_BT = logits_BTV[..., answer_ids[0]] - logits_BTV[..., answer_ids[1]]
  return spread(masked.where_valid(odds_BT, mask_BT))


def compute_hidden(params, config, tokens_BS, positions_BS, valid_BS, completion_width, plan=None):
  """The hidden states that predict the completion tokens.

  Returns:
    hidden_BTD, targets_BT (the completion tokens), mask_BT, and a function that brings an array
    of the shape of mask_BT, or with more axes after it, to [B, T]. With a plan, the first three
    have one row for each device, which lists the completion tokens of its part of the batch.
  """
  start = tokens_BS.shape[1] - completion_width
  if start < 1:
    raise ValueError(f"completion_width={completion_width} leaves no prompt "
                     f"column; it must be < {tokens_BS.shape[1]}.")
  targets_BT = tokens_BS[:, start:]
  if plan is None:
    hidden_BSD = transformer.hidden(params, config, tokens_BS, positions_BS, valid_BS)
    return hidden_BSD[:, start - 1:-1], targets_BT, valid_BS[:, start:], lambda x: x
  shards = transformer.row_shards(config)
  listed = lambda x, index, inverse: packing.take(
      x.reshape(-1, *x.shape[2:]), index.reshape(-1), inverse.reshape(-1), shards)
  hidden_OUD = packing.hidden(params, config, tokens_BS, positions_BS, plan)
  spread = lambda x_OU: listed(x_OU, plan.token_BT, plan.target_U).reshape(
      *targets_BT.shape, *x_OU.shape[2:])
  return (hidden_OUD, list_tokens(config, targets_BT, plan),
          plan.target_U.reshape(shards, -1) >= 0, spread)


def list_tokens(config, x_BT, plan):
  """An array [B, T, ...] in the order in which `compute_hidden` returns the hidden states."""
  if plan is None: return x_BT
  shards = transformer.row_shards(config)
  x_U = packing.take(x_BT.reshape(-1, *x_BT.shape[2:]), plan.target_U.reshape(-1),
                     plan.token_BT.reshape(-1), shards)
  return x_U.reshape(shards, -1, *x_BT.shape[2:])


def find_kept(kept_UK, vocabulary):
  """bool [U, V]: the tokens with these ids, or -1; all, if there are none."""
  at_UK = jnp.where(kept_UK >= 0, kept_UK, vocabulary)
  is_kept_UV = jnp.zeros((len(kept_UK), vocabulary), bool).at[
      jnp.arange(len(kept_UK))[:, None], at_UK].set(True, mode="drop")
  return is_kept_UV | ~jnp.any(kept_UK >= 0, axis=1, keepdims=True)


def from_hidden(params, config, hidden_BTD, targets_BT, mask_BT, *, temperature=1.0,
                chunk=1024, with_entropy=True, statistics=(), kept_BTK=None):
  """As `logps`, given the hidden states that predict the tokens.

  Args:
    hidden_BTD: after the final norm; see `compute_hidden`.
    targets_BT: int32, the tokens.
    mask_BT: bool; where it is False, results are 0 and have no gradient.
    temperature, with_entropy, statistics, kept_BTK: see `logps`.
    chunk: tokens whose logits exist at once on a device, rounded to whole columns of B (at
      least one).
  """
  axes.dims(hidden_BTD=hidden_BTD, targets_BT=targets_BT, mask_BT=mask_BT)
  # Only the leaf that logits() reads, because its gradient is carried from chunk to chunk.
  name, leaf = _LEAVES[config.tied_head]
  out = _score(params[name][leaf], masked.where_valid(hidden_BTD, mask_BT[:, :, None]),
               masked.where_valid(targets_BT, mask_BT), kept_BTK,
               (config, temperature, chunk, with_entropy, statistics))
  return jax.tree.map(lambda x: masked.where_valid(
      x, mask_BT.reshape(*mask_BT.shape, *[1] * (x.ndim - 2))), out)


_LEAVES = {True: ("embed", "w_VD"), False: ("head", "w_DV")}


def distribution_statistics(logits_UV, targets_U, statistics, is_outside_V=None):
  """What methods read of a distribution, other than the token's log-prob and the entropy.

    mean            1/V sum_v log p_v
    squared         sum_v p_v^2
    all             log p_v of every v: all logits of the batch at once
    logit           z_y as the model computes it, including any shift of all logits
    top, n          log p of the n most likely tokens, the most likely first
    min_p, share    log (p_y / sum of p_v over p_v >= share max p); REMOVED if p_y is less

  with p the softmax of the logits z and y the target. Source: the definitions; min_p,
  Nguyen et al. 2024, arXiv:2407.01082. Differs from the papers: nothing known.

  Args:
    statistics: tuple of (name, *options), such as (("mean",), ("top", 3)).
    is_outside_V: ids that do not count in the mean; None: all count.
  Returns:
    a tuple of float32 arrays in the order of `statistics`, [U], for top [U, n] and for all [U, V];
    nats.
  """
  norm_U = jax.nn.logsumexp(logits_UV, axis=-1)
  target_U = jnp.take_along_axis(logits_UV, targets_U[..., None], axis=-1)[..., 0]

  def top(n):
    return jax.lax.top_k(logits_UV, n)[0] - norm_U[..., None]

  def min_p(share):
    least_U1 = jnp.max(logits_UV, axis=-1, keepdims=True) + math.log(share)
    kept_UV = jnp.where(logits_UV >= least_U1, logits_UV, -jnp.inf)
    return jnp.where(target_U >= least_U1[..., 0],
                     target_U - jax.nn.logsumexp(kept_UV, axis=-1), REMOVED)

  def mean():
    counts_V = None if is_outside_V is None else ~is_outside_V
    return jnp.mean(logits_UV, axis=-1, where=counts_V) - norm_U

  functions = dict(mean=mean,
                   squared=lambda: jnp.sum(jnp.exp(2 * (logits_UV - norm_U[..., None])), axis=-1),
                   all=lambda: logits_UV - norm_U[..., None], logit=lambda: target_U, top=top,
                   min_p=min_p)
  return tuple(functions[name](*options) for name, *options in statistics)


@functools.partial(jax.custom_vjp, nondiff_argnums=(4,))
def _score(head, hidden_BTD, targets_BT, kept_BTK, options):
  """(logps_BT, entropy_BT, *statistics). No logits are stored for backward.

    d logps / d logit_j   = [j = target] - p_j
    d entropy / d logit_j = -p_j (log p_j + entropy)

  Backward recomputes the logits and applies these formulas, where `jax.checkpoint` would also
  repeat the sums and differentiate each. With entropy it takes 0.5-0.65 of that time, without
  0.9-1.05 ([4096, 512] x 8192 and [512, 576] x 49152, two busy CPU cores); storing all logits
  takes 0.6-1.2. The statistics are differentiated by JAX, from the logits of the chunk.

  On a mesh each device scores its own rows with a whole head. XLA would sum the head's gradient
  over devices once per chunk, and for TPUs multiply by one part of the head after the other.

  Args:
    options: (config, temperature, chunk, with_entropy, statistics), see `from_hidden`.
  """
  return _forward(head, hidden_BTD, targets_BT, kept_BTK, options)[0]


def _forward(head, hidden_BTD, targets_BT, kept_BTK, options):
  config = options[0]
  whole = transformer.gather_weight(config, head, _LEAVES[config.tied_head][1][-2:])
  out, norm_BT = transformer.run_on_each(config, functools.partial(_score_shard, options))(
      whole, hidden_BTD, targets_BT, kept_BTK)
  return out, (head, hidden_BTD, targets_BT, kept_BTK, norm_BT, out[1])


def _backward(options, saved, cotangents):
  config, head = options[0], saved[0]
  letters = _LEAVES[config.tied_head][1][-2:]
  d_head_O, d_hidden_BTD = transformer.run_on_each(config, functools.partial(_pull_back, options))(
      transformer.gather_weight(config, head, letters), *saved[1:], cotangents)
  return (transformer.sum_gradients(config, d_head_O, letters).astype(head.dtype), d_hidden_BTD,
          None, None)


_score.defvjp(_forward, _backward)


def _chunks(shape, chunk):
  """(split, join): [B, T, ..] <-> n chunks of columns, each a flat list of U tokens."""
  b, t = shape
  columns = min(max(chunk // b, 1), t)
  n = -(-t // columns)

  # With an axis B of size 1 before it, XLA on CPU takes 2.5 times as long for the sums over V.
  def split(x_BT):
    x_BT = jnp.pad(x_BT, ((0, 0), (0, n * columns - t), *[(0, 0)] * (x_BT.ndim - 2)))
    x = jnp.moveaxis(x_BT.reshape(b, n, columns, *x_BT.shape[2:]), 1, 0)
    return x.reshape(n, b * columns, *x_BT.shape[2:])

  def join(x_nU):  # There may be an axis after U.
    x = jnp.moveaxis(x_nU.reshape(n, b, columns, *x_nU.shape[2:]), 0, 1)
    return x.reshape(b, n * columns, *x_nU.shape[2:])[:, :t]

  return split, join


def _scale(config, head, hidden_UD, temperature, kept_UK):
  """The logits that tokens are drawn from."""
  name, leaf = _LEAVES[config.tied_head]
  logits_UV = transformer.logits({name: {leaf: head}}, config, hidden_UD) / temperature
  if kept_UK is None: return logits_UV
  return jnp.where(find_kept(kept_UK, logits_UV.shape[1]), logits_UV, _CUT)


def _score_shard(options, head, hidden_BTD, targets_BT, kept_BTK):
  """What `_score` returns, and the logarithms of the sums of exp(logits), on one device."""
  config, temperature, chunk_size, with_entropy, statistics = options
  outside_V = transformer.is_outside(config) if config.outside else None
  split, join = _chunks(targets_BT.shape, chunk_size)

  def chunk(xs):
    hidden_UD, targets_U, kept_UK = xs
    logits_UV = _scale(config, head, hidden_UD, temperature, kept_UK)
    norm_U = jax.nn.logsumexp(logits_UV, axis=-1)
    chosen_U = jnp.take_along_axis(logits_UV, targets_U[:, None], axis=1)[:, 0]
    entropy_U = None
    if with_entropy:
      probs_UV = jnp.exp(logits_UV - norm_U[:, None])
      entropy_U = norm_U - jnp.sum(probs_UV * logits_UV, axis=-1)
    others = distribution_statistics(logits_UV, targets_U, statistics,
                                     outside_V) if statistics else ()
    return (chosen_U - norm_U, entropy_U, *others), norm_U

  return jax.tree.map(join, jax.lax.map(chunk, jax.tree.map(
      split, (hidden_BTD, targets_BT, kept_BTK))))


def _pull_back(options, head, hidden_BTD, targets_BT, kept_BTK, norm_BT, entropy_BT, cotangents):
  """Gradients of the head, with an axis for devices before it, and of the hidden states."""
  config, temperature, chunk_size, with_entropy, statistics = options
  outside_V = transformer.is_outside(config) if config.outside else None
  split, join = _chunks(targets_BT.shape, chunk_size)

  def chunk(d_head, xs):
    hidden_UD, targets_U, kept_UK, norm_U, entropy_U, d_out = xs
    d_logps_U, d_entropy_U, *d_others = d_out
    logits_UV, pull = jax.vjp(
        lambda w, h: _scale(config, w, h, temperature, kept_UK), head, hidden_UD)
    all_logps_UV = logits_UV - norm_U[:, None]
    factor = -d_logps_U[:, None]
    if with_entropy:
      factor = factor - d_entropy_U[:, None] * (all_logps_UV + entropy_U[:, None])
    is_target_UV = targets_U[:, None] == jnp.arange(logits_UV.shape[1])[None]
    d_logits_UV = (jnp.exp(all_logps_UV) * factor
                   + masked.where_valid(d_logps_U[:, None], is_target_UV))
    if statistics:
      _, pull_others = jax.vjp(
          lambda x: distribution_statistics(x, targets_U, statistics, outside_V), logits_UV)
      d_logits_UV = d_logits_UV + pull_others(tuple(d_others))[0]
    d_chunk, d_hidden_UD = pull(d_logits_UV)
    return d_head + d_chunk, d_hidden_UD

  zeros = jnp.zeros(head.shape, jnp.promote_types(head.dtype, jnp.float32))
  d_head, d_hidden_nUD = jax.lax.scan(chunk, zeros, jax.tree.map(
      split, (hidden_BTD, targets_BT, kept_BTK, norm_BT, entropy_BT, cotangents)))
  return d_head[None], join(d_hidden_nUD)
