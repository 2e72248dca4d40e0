"""An episode makes two lookups, each one of 8 tokens, and then answers. The initial policy
knows the answer with a probability of about 0.01, 0.2 or 0.8 after none, one or both of the right
lookups, so most groups contain only wrong answers. Learning from each turn's gain and the outcome
is compared with GRPO on outcomes alone.

The probability of the answer after each lookup is computed with the remaining lookups
replaced by token 0, which looks up nothing.
"""
import jax
import jax.numpy as jnp

from configs.papers import igpo
from experiments.claims.environments import tabular, turns

MEASURE = "mean accuracy over 200 steps with the gain of each turn minus that with outcomes alone"
MARGIN, RATE = 0.05, 30.0
FIRST = ("confirmed", "its turns were the steps of a completion, with another estimator")
P, V = 8, 8
TREE = tabular.Tree(prompts=P, vocab=V, length=3)


def environment(key):
  keys = jax.random.split(key)
  draws_P3 = jax.random.randint(keys[0], (P, 3), 1, V)
  asked_P2, gold_P = draws_P3[:, :2], draws_P3[:, 2]
  chance_3 = tabular.around(keys[1], [0.01, 0.2, 0.8])
  leaves_LT = jnp.asarray(TREE.leaves[0])
  facts_PN = jnp.sum(leaves_LT[None, ::V, :2] == asked_P2[:, None], axis=2)
  known_PN = chance_3[facts_PN]
  start_PNV = TREE.start().at[
      jnp.arange(P)[:, None], 1 + V + jnp.arange(V * V)[None], gold_P[:, None]].set(
          jnp.log((V - 1) * known_PN / (1 - known_PN)))
  right_PL = leaves_LT[None, :, 2] == gold_P[:, None]

  def verify(batch, logits_PNV, **_):
    def after(turns):
      tokens_BT = jnp.where(jnp.arange(3)[None] < turns, batch.tokens_BT, 0)
      asked = TREE.batch(batch.prompt_B, tokens_BT.at[:, 2].set(gold_P[batch.prompt_B]),
                          batch.mask_BT)
      return tabular.logps(logits_PNV, asked)[0][:, 2:]
    return dict(outcome_B=1.0 * (batch.tokens_BT[:, 2] == gold_P[batch.prompt_B]),
                step_answer_logps_BJM=jnp.stack(list(map(after, range(3))), axis=1),
                answer_mask_BM=jnp.ones((len(batch.tokens_BT), 1), bool),
                step_ends_BT=batch.mask_BT, **turns.columns(batch))

  return tabular.Environment(verify, TREE.means(accuracy=right_PL), start=start_PNV)


def arms():
  c = igpo.get_config()
  return tabular.arms({"gains": c, "outcomes alone": tabular.grpo(c)},
                      TREE, environment, tabular.mean("accuracy"), steps=200)
