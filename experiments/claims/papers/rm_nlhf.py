"""A judgement of a pair has two tokens of critique and a verdict, for which two of the four tokens
each stand. The critique of a human is one of the 16, drawn for the pair. The initial policy writes
any critique; its log-odds of the right verdict are one for each token of its critique that is the
human's, beside noise with a standard deviation of 0.5: a verdict without them is a guess.

The config rewards the right verdict and the share of the human's tokens. The accuracy over training
is compared with that from the verdict alone. Judges are tables: accuracy is that on the pairs that
they learn from.
"""
import jax
import jax.numpy as jnp

from configs.papers import rm_nlhf
from experiments.claims.environments import tabular, verdicts

MEASURE = "accuracy over 100 steps with rewards for critiques and verdicts minus that with verdicts"
MARGIN, RATE = 0.05, 10.0
FIRST = ("not seen", None)
TREE = tabular.Tree(prompts=16, vocab=4, length=3)


def environment(key):
  keys = jax.random.split(key, 3)
  human_P2 = jax.random.randint(keys[0], (TREE.prompts, 2), 0, 4)
  side_P = jax.random.randint(keys[1], (TREE.prompts,), 0, 2)
  def similarity(batch):
    return jnp.mean(batch.tokens_BT[:, :2] == human_P2[batch.prompt_B], axis=1)
  def is_right(batch): return batch.tokens_BT[:, 2] // 2 == side_P[batch.prompt_B]

  # Each of the last 16 nodes stands behind a critique.
  same_PN = jnp.sum(jnp.stack(jnp.divmod(jnp.arange(16), 4), axis=1)[None] == human_P2[:, None],
                    axis=2)
  is_side_PV = jnp.arange(4)[None] // 2 == side_P[:, None]
  start_PNV = TREE.start(keys[2], 0.5).at[:, -16:].add(same_PN[:, :, None] * is_side_PV[:, None])
  return tabular.Environment(
      lambda batch, **_: dict(outcome_B=1.0 * is_right(batch),
                              scores_BE=similarity(batch)[:, None]),
      TREE.means(accuracy=verdicts.of_leaves(TREE, is_right)), start=start_PNV)


def arms():
  c = rm_nlhf.get_config()
  alone = tabular.changed(c, rewards=dict(outcome=c.rewards.outcome))
  return tabular.arms({"critiques": c, "verdicts alone": alone}, TREE, environment,
                      tabular.mean("accuracy"), steps=100)
