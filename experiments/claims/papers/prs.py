"""An episode makes two calls and answers. Of the 6 calls of each turn 2 can be parsed, and of the 6
answers one is right and two resemble it. An answer is right only after calls that could be parsed:
1 in 54 episodes of the initial policy. Learning from rewards in stages is compared with learning
from the verdict.

Which calls can be parsed, which answer is right and which resemble it is drawn for every prompt.
"""
import jax
import jax.numpy as jnp

from configs.papers import prs
from experiments.claims.environments import tabular

MEASURE = "mean accuracy over 100 steps with rewards in stages minus that with verdicts"
MARGIN, RATE = 0.05, 30.0
FIRST = ("opposite", None)
P, V = 8, 6
TREE = tabular.Tree(prompts=P, vocab=V, length=3)


def environment(key):
  keys = jax.random.split(key)
  # Calls of rank 0 and 1 can be parsed; the answer of rank 0 is right, 1 and 2 resemble it.
  rank_P3V = jnp.argsort(jax.random.uniform(keys[0], (P, 3, V)), axis=2)
  near = tabular.around(keys[1], [0.5], spread=0.1)[0]

  def ranks(prompt_B, tokens_BT):
    return rank_P3V[prompt_B[:, None], jnp.arange(3)[None], tokens_BT]

  def verify(batch, **_):
    ranks_BT = ranks(batch.prompt_B, batch.tokens_BT)
    parsed_B, answer_B = (ranks_BT[:, :2] < 2).all(axis=1), ranks_BT[:, 2]
    overlap_B = jnp.where(answer_B == 0, 1.0, jnp.where(answer_B < 3, near, 0.0))
    return dict(outcome_B=1.0 * (parsed_B & (answer_B == 0)),
                scores_BE=jnp.stack([1.0 * parsed_B, overlap_B], axis=1))

  leaves_LT = jnp.asarray(TREE.leaves[0])

  def right_L(prompt):
    ranks_LT = ranks(jnp.full(len(leaves_LT), prompt), leaves_LT)
    return (ranks_LT[:, :2] < 2).all(axis=1) & (ranks_LT[:, 2] == 0)

  return tabular.Environment(verify, TREE.means(accuracy=jax.vmap(right_L)(jnp.arange(P))))


def arms():
  c = prs.get_config()
  return tabular.arms({"stages": c, "verdicts": tabular.grpo(c)}, TREE, environment,
                      tabular.mean("accuracy"), steps=100)
