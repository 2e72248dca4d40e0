"""Log-probs and entropy of completions. The only place that shifts by one.

Column t of a completion is scored by the hidden state of the column before it.
Only completion columns reach the head, and they do so in chunks of columns, so
logits of shape [B, T, V] exist neither forward nor backward.
"""
import functools
import math

import jax
import jax.numpy as jnp

from rlx.core import axes
from rlx.core import masked
from rlx.models import packing
from rlx.models import transformer

REMOVED = -1e4  # nats, of a token that a filter takes out


def logps(params, config, tokens_BS, positions_BS, valid_BS, *, completion_width,
          temperature=1.0, chunk=1024, with_entropy=True, more=(), plan=None):
  """Log-probs of the completion tokens and entropy of their distributions.

    logps[b, t] = log softmax(logits[b, X - 1 + t] / temperature)[tokens[b, X + t]]

  Source: the definition. Differs from the papers: nothing known.

  Args:
    params, config, tokens_BS, positions_BS, valid_BS: see `transformer.hidden`.
    completion_width: T; the completions are the last T of the S columns.
    temperature: divides the logits; static, > 0.
    chunk: see `of_hidden`.
    with_entropy: False skips the entropy and returns None for it.
    more: what else is wanted of the scaled distributions, see `beyond`; static.
    plan: packing.Plan, to compute on tokens only; None computes on padding too.
  Returns:
    logps_BT: float32 nats, 0 on padding.
    entropy_BT: float32 nats of the scaled distribution, 0 on padding.
    then an array of each of `more`, float32, 0 on padding.
  """
  hidden_BTD, targets_BT, mask_BT, spread = before(
      params, config, tokens_BS, positions_BS, valid_BS, completion_width, plan)
  out = of_hidden(params, config, hidden_BTD, targets_BT, mask_BT,
                  temperature=temperature, chunk=chunk, with_entropy=with_entropy,
                  more=more)
  return jax.tree.map(spread, out)


def before(params, config, tokens_BS, positions_BS, valid_BS, completion_width,
           plan=None):
  """The hidden states that saw everything before each completion token.

  Returns:
    hidden_BTD, targets_BT (the completion tokens), mask_BT, and what brings a
    result of the shape of mask_BT, or with axes behind it, to [B, T]. With a plan
    the first three are lists of the batch's completion tokens, as one row.
  """
  start = tokens_BS.shape[1] - completion_width
  if start < 1:
    raise ValueError(f"completion_width={completion_width} leaves no prompt "
                     f"column; it must be < {tokens_BS.shape[1]}.")
  targets_BT = tokens_BS[:, start:]
  if plan is None:
    hidden_BSD = transformer.hidden(params, config, tokens_BS, positions_BS, valid_BS)
    return hidden_BSD[:, start - 1:-1], targets_BT, valid_BS[:, start:], lambda x: x
  hidden_UD = packing.hidden(params, config, tokens_BS, positions_BS, plan)
  spread = lambda x_1U: packing.take(
      x_1U[0], plan.token_BT.reshape(-1), plan.target_U).reshape(
          *targets_BT.shape, *x_1U.shape[2:])
  return (hidden_UD[None], targets_BT.reshape(-1)[plan.target_U][None],
          (plan.target_U >= 0)[None], spread)


def of_hidden(params, config, hidden_BTD, targets_BT, mask_BT, *,
              temperature=1.0, chunk=1024, with_entropy=True, more=()):
  """Scores `targets_BT`, given the hidden states that predict them.

  Args:
    hidden_BTD: after the final norm; see `before`.
    targets_BT: int32.
    mask_BT: bool; the rest gets 0 and no gradient.
    temperature, with_entropy, more: see `logps`.
    chunk: tokens whose logits exist at once on a device. Rounded to whole columns of
      B (at least one), so that on a mesh every row stays on its device. The head's
      gradient is summed over devices once a chunk.
  Returns:
    logps_BT, entropy_BT (None without entropy), then an array of each of `more`.
  """
  sizes = axes.dims(hidden_BTD=hidden_BTD, targets_BT=targets_BT, mask_BT=mask_BT)
  b, t, d = sizes["B"], sizes["T"], sizes["D"]
  if temperature <= 0:
    raise ValueError(f"temperature={temperature} must be > 0.")
  columns = min(max(chunk * transformer.row_shards(config) // b, 1), t)
  n = -(-t // columns)
  extra = n * columns - t
  targets_BT = jnp.pad(masked.keep(targets_BT, mask_BT), ((0, 0), (0, extra)))
  hidden_BTD = jnp.pad(masked.keep(hidden_BTD, mask_BT[:, :, None]),
                       ((0, 0), (0, extra), (0, 0)))

  # A chunk is a flat list of M tokens: with a B of 1 in front, XLA on CPU takes 2.5 times as
  # long for the sums over V.
  def split(x_BT):
    x_nBC = jnp.moveaxis(x_BT.reshape(b, n, columns, *x_BT.shape[2:]), 1, 0)
    return x_nBC.reshape(n, b * columns, *x_BT.shape[2:])

  def join(x_nM):  # [n, M], or with K behind.
    x_BnC = jnp.moveaxis(x_nM.reshape(n, b, columns, *x_nM.shape[2:]), 0, 1)
    x_BT = x_BnC.reshape(b, n * columns, *x_nM.shape[2:])[:, :t]
    return masked.keep(x_BT, mask_BT.reshape(b, t, *[1] * (x_BT.ndim - 2)))

  # What logits() reads, and nothing else: its gradient is carried along the chunks.
  name = "embed" if config.tied_head else "head"
  out = _score({name: params[name]}, split(hidden_BTD), split(targets_BT),
               config, temperature, with_entropy, more)

  return jax.tree.map(join, out)


def beyond(logits_MV, targets_M, more):
  """What a method may ask of a distribution beside the token's log-prob and entropy.

    mean            1/V sum_v log p_v
    squared         sum_v p_v^2
    logit           z_y, as the model gives it: any shift of all logits is in it
    top, K          log p of the K most likely tokens, the most likely first
    min_p, share    log (p_y / sum of p_v over p_v >= share max p); REMOVED if p_y is less

  with p the softmax of the logits z and y the target. Source: the definitions; min_p,
  Nguyen et al. 2024, arXiv:2407.01082. Differs from the papers: nothing known.

  Args:
    more: tuple of (name, *options), such as (("mean",), ("top", 3)).
  Returns:
    a tuple of float32 arrays in the order of `more`, [M] and [M, K] for top; nats.
  """
  norm_M = jax.nn.logsumexp(logits_MV, axis=-1)
  target_M = jnp.take_along_axis(logits_MV, targets_M[..., None], axis=-1)[..., 0]

  def top(k):
    return jax.lax.top_k(logits_MV, k)[0] - norm_M[..., None]

  def min_p(share):
    least_M1 = jnp.max(logits_MV, axis=-1, keepdims=True) + math.log(share)
    kept_MV = jnp.where(logits_MV >= least_M1, logits_MV, -jnp.inf)
    return jnp.where(target_M >= least_M1[..., 0],
                     target_M - jax.nn.logsumexp(kept_MV, axis=-1), REMOVED)

  of = dict(mean=lambda: jnp.mean(logits_MV, axis=-1) - norm_M,
            squared=lambda: jnp.sum(jnp.exp(2 * (logits_MV - norm_M[..., None])), axis=-1),
            logit=lambda: target_M, top=top, min_p=min_p)
  return tuple(of[name](*options) for name, *options in more)


@functools.partial(jax.custom_vjp, nondiff_argnums=(3, 4, 5, 6))
def _score(head, hidden_nMD, targets_nM, config, temperature, with_entropy, more):
  """(logps_nM, entropy_nM, *more) of n chunks, of which backward keeps no logits.

    d logps / d logit_j   = [j = target] - p_j
    d entropy / d logit_j = -p_j (log p_j + entropy)

  Backward computes the logits once more and goes from them straight to these,
  where `jax.checkpoint` also repeats the sums and differentiates each. With
  entropy it takes 0.5-0.65 of that time, without 0.9-1.05 ([4096, 512] x 8192 and
  [512, 576] x 49152, two busy CPU cores); keeping all logits takes 0.6-1.2.
  `more` is differentiated from the logits of the chunk.
  """
  return _forward(
      head, hidden_nMD, targets_nM, config, temperature, with_entropy, more)[0]


def _forward(head, hidden_nMD, targets_nM, config, temperature, with_entropy, more):
  def chunk(xs):
    hidden_MD, targets_M = xs
    logits_MV = transformer.logits(head, config, hidden_MD) / temperature
    norm_M = jax.nn.logsumexp(logits_MV, axis=-1)
    chosen_M = jnp.take_along_axis(logits_MV, targets_M[:, None], axis=1)[:, 0]
    entropy_M = None
    if with_entropy:
      probs_MV = jnp.exp(logits_MV - norm_M[:, None])
      entropy_M = norm_M - jnp.sum(probs_MV * logits_MV, axis=-1)
    found = beyond(logits_MV, targets_M, more) if more else ()
    return (chosen_M - norm_M, entropy_M, *found), norm_M

  out, norm_nM = jax.lax.map(chunk, (hidden_nMD, targets_nM))
  return out, (head, hidden_nMD, targets_nM, norm_nM, out[1])


def _backward(config, temperature, with_entropy, more, saved, cotangents):
  head, *xs = saved

  def chunk(d_head, xs):
    hidden_MD, targets_M, norm_M, entropy_M, d_out = xs
    d_logps_M, d_entropy_M, *d_more = d_out
    logits_MV, pull = jax.vjp(
        lambda w, h: transformer.logits(w, config, h) / temperature, head, hidden_MD)
    all_logps_MV = logits_MV - norm_M[:, None]
    factor = -d_logps_M[:, None]
    if with_entropy:
      factor = factor - d_entropy_M[:, None] * (all_logps_MV + entropy_M[:, None])
    is_target_MV = targets_M[:, None] == jnp.arange(logits_MV.shape[1])[None]
    d_logits_MV = (jnp.exp(all_logps_MV) * factor
                   + masked.keep(d_logps_M[:, None], is_target_MV))
    if more:
      _, pull_more = jax.vjp(lambda x: beyond(x, targets_M, more), logits_MV)
      d_logits_MV = d_logits_MV + pull_more(tuple(d_more))[0]
    d_chunk, d_hidden_MD = pull(d_logits_MV)
    return jax.tree.map(jnp.add, d_head, d_chunk), d_hidden_MD

  d_head, d_hidden_nMD = jax.lax.scan(
      chunk, jax.tree.map(jnp.zeros_like, head), (*xs, cotangents))
  return d_head, d_hidden_nMD, None


_score.defvjp(_forward, _backward)
