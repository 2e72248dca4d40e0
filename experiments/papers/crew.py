"""Simulates policies that have some knowledge of the answer: after two tokens of
reasoning they draw two tokens of answer from that knowledge, more or less sharply, and
the reference answer is drawn from the same knowledge. Without any training, all 256
completions of 24 prompts are ranked by the confidence in the answer and by the confidence
in all tokens, as mean probability or as geometric mean. The check measures how often
right completions rank above wrong ones.
"""
import jax
import jax.numpy as jnp

from configs.papers import crew
from experiments.environments import tabular
from rlx.core import resolve

CLAIM = 0
MEASURE = ("probability that a right completion ranks above a wrong one: by the confidence in the "
           "answer minus by that in all tokens")
MARGIN = 0.01
FIRST = ("confirmed", None)
ILLUSTRATION = ("The tokens before the answer are drawn independently of it, so confidence in them "
                "is only noise.")
TREE = tabular.Tree(prompts=24, vocab=4, length=4)


def ranked(score_L, right_L, chance_L):
  """Returns the chance that a right completion scores above a wrong one; ties count half."""
  above_LL = jnp.heaviside(score_L[:, None] - score_L[None, :], 0.5)
  weight_LL = (chance_L * right_L)[:, None] * (chance_L * ~right_L)[None, :]
  return jnp.sum(weight_LL * above_LL) / jnp.sum(weight_LL)


def of_seed(seed):
  keys = jax.random.split(jax.random.key(seed), 5)
  known_PA = 1.5 * jax.random.normal(keys[0], (24, 16))
  sharp_PZ1 = jax.random.uniform(keys[1], (24, 16, 1), maxval=2.0)
  answer_PZVV = (sharp_PZ1 * known_PA[:, None]
                 + 0.5 * jax.random.normal(keys[2], (24, 16, 16))).reshape(24, 16, 4, 4)
  logits_PNV = jnp.concatenate([
      jax.random.normal(keys[3], (24, 5, 4)), jax.nn.logsumexp(answer_PZVV, axis=3),
      answer_PZVV.reshape(24, 64, 4)], axis=1)
  gold_P = jax.random.categorical(keys[4], known_PA)
  tokens_LT, mask_LT = map(jnp.asarray, TREE.leaves)

  def of_prompt(prompt, gold):
    batch = TREE.batch(jnp.full(256, prompt), tokens_LT, mask_LT)
    logps_LT = tabular.logps(logits_PNV, batch)[0]
    right_L = tokens_LT[:, 2] * 4 + tokens_LT[:, 3] == gold
    def score(agg, first):
      spec = dict(name=crew.get_config().rewards.outcome.name, agg=agg)
      return ranked(resolve.resolve("rewards", spec)(tabular.record(
          mask_LT, jnp.zeros(256), old_logps_BT=logps_LT,
          answer_span_BT=mask_LT & (jnp.arange(4)[None] >= first))),
                    right_L, jnp.exp(logps_LT.sum(axis=1)))
    return jnp.stack([score("mean_p", 2), score("mean_p", 0), score("geo_p", 0)])

  answer, mean, geometric = jax.vmap(of_prompt)(jnp.arange(24), gold_P).mean(axis=0)
  return {"mean probability": answer - mean, "geometric mean": answer - geometric}


def effects(seeds):
  # Seeds run one after the other, because all pairs of completions take much memory.
  return jax.jit(lambda seeds_I: jax.lax.map(of_seed, seeds_I))(jnp.asarray(seeds))
