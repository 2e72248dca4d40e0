"""Simulates twelve prompts of sixteen answers with a shared linear policy: the initial
policy mostly solves six of them, and the other six have one right answer that is
unlikely.

Gradients are exact. RL raises the expected verdict of the six hard prompts. The solved
prompts only contribute the divergence from the initial policy, weighted by the initial
policy's own answers that were right. Both arms give the divergence the paper's
coefficient of 0.05; one uses the forward KL, the other the reverse KL. Learning rates are
tuned for the accuracy on all prompts, and the accuracy on the solved prompts is compared.
"""
import functools

import jax
import jax.numpy as jnp
import optax

from configs.papers import dph
from experiments.claims.environments import learn
from rlx.core import records
from rlx.losses import divergence

MEASURE = ("accuracy on solved prompts with the forward KL to the initial policy minus that with "
           "the reverse KL")
MARGIN, RATE = 0.05, 1.0
FIRST = ("not seen", None)


def accuracies(seed, rate, kind):
  """Returns the accuracies (on solved prompts, on all prompts) after 1000 steps."""
  coef = dph.get_config().learner.auxiliary.coef
  keys = jax.random.split(jax.random.key(seed))
  features_PD = jax.random.normal(keys[0], (12, 6)) / 6**0.5
  start_DV = 3 * jax.random.normal(keys[1], (6, 16))
  base_PV = jax.nn.log_softmax(features_PD @ start_DV)
  best_PV = base_PV >= jax.lax.top_k(base_PV, 4)[0][:, -1:]
  rare_P = jnp.argsort(base_PV, axis=1)[:, 4]
  right_PV = best_PV.at[6:].set(jnp.arange(16)[None] == rare_P[6:, None])
  old, hard = slice(0, 6), slice(6, 12)

  def loss(w_DV, _):
    logps_PV = jax.nn.log_softmax(features_PD @ w_DV)
    reward = jnp.sum(jnp.exp(logps_PV[hard]) * right_PV[hard], axis=1).mean()
    kept_PV = divergence.rehearsal(logps_PV[old], base_PV[old], right_PV[old], kind=kind)
    total = -reward + coef * jnp.sum(jnp.exp(base_PV[old]) * kept_PV, axis=1).mean()
    return records.Weighted(total, jnp.ones(()))

  w_DV = learn.descend(start_DV, loss, optax.sgd(rate), steps=1000)
  accuracy_P = jnp.sum(jax.nn.softmax(features_PD @ w_DV) * right_PV, axis=1)
  return accuracy_P[old].mean(), accuracy_P.mean()


def arms():
  return {f"{kind} KL": learn.arm(functools.partial(accuracies, kind=kind))
          for kind in ("forward", "reverse")}
