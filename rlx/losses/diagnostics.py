"""Metrics of a policy update: means kept as (total, weight)."""
import jax.numpy as jnp
from jax import Array

from rlx.core import masked, records
from rlx.losses import aggregate


def policy(scored: records.Batch) -> dict[str, records.Weighted]:
  """{name: Weighted} of the metrics whose arrays the batch has.

    old_kl       mean of old_logps - logps, k1 of KL(old policy, policy), nats
    ratio_far    share of tokens with |rho - 1| > 0.2
    entropy      of the policy being updated, nats
    sampler_gap  mean |old_logps - sampler_logps|: trainer against sampler, nats

  Args:
    scored: Batch; learn_BT chooses the tokens.
  """
  s, out = scored, {}
  if "logps_BT" in s and "old_logps_BT" in s:
    d_BT = masked.where_valid(s.logps_BT - s.old_logps_BT, s.learn_BT)
    out["old_kl"] = aggregate.mean(-d_BT, s.learn_BT)
    out["ratio_far"] = aggregate.mean(jnp.abs(jnp.expm1(d_BT)) > 0.2, s.learn_BT)
  if "entropy_BT" in s:
    out["entropy"] = aggregate.mean(s.entropy_BT, s.learn_BT)
  if "sampler_logps_BT" in s and "old_logps_BT" in s:
    out["sampler_gap"] = aggregate.mean(jnp.abs(s.old_logps_BT - s.sampler_logps_BT), s.learn_BT)
  return out


def means(metrics: dict[str, Array], learn_BT: Array) -> dict[str, records.Weighted]:
  """{name: Weighted} of the metrics that a method returns.

  [B, T] is a mean over the tokens in the mask, [B] over the rows that have one; a scalar
  counts once in each microbatch.
  """
  def mean(x):
    x = jnp.asarray(x)
    if x.ndim == 2: return aggregate.mean(x, learn_BT)
    if x.ndim == 1: return aggregate.mean(x[:, None], jnp.any(learn_BT, axis=1, keepdims=True))
    return records.Weighted(x, jnp.ones_like(x))
  return {name: mean(x) for name, x in metrics.items()}
