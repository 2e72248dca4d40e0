"""A reward model that likes one token, say a flattering one, the more the better, where
two of four would do and four are worse than none.

Its scores spread over several units at the start, as logits do, hence the paper's
k = 1, and have their zero there. PAR compares with the start, as in the paper; the
config compares with a prompt's other completions, which move along. The other arm
learns from the scores as they are.
"""
import jax.numpy as jnp

from configs.papers import par
from experiments.worlds import tabular

CLAIM = 0
MEASURE = "gold score over 300 steps with PAR less that with the plain score"
SLOPE = 2.0  # of the score, per token


def effects(seeds):
  world = tabular.Tree(prompts=4, vocab=4, length=4)
  liked_L = jnp.sum(jnp.asarray(world.leaves[0]) == 1, axis=1)
  gold_L = 3.75 * liked_L - liked_L**2  # 0, 2.75, 3.5, 2.25, -1

  def judge(key, logits_PNV, batch):
    del key, logits_PNV
    liked_B = jnp.sum(batch.tokens_BT == 1, axis=1)
    return dict(outcome_B=jnp.zeros(len(liked_B)),
                scores_BE=SLOPE * (liked_B[:, None] - 1.0))  # One token at the start.

  def gold(**outcome):
    c = tabular.changed(par.get_config(), rewards__outcome=dict(coef=1.0, **outcome))
    found, _ = tabular.train(
        c, world, judge, lambda x: dict(gold=world.expected_P(x, gold_L).mean()),
        seeds=seeds, steps=300, lr=10.0)
    return found["gold"].mean(axis=1)

  return (gold(name="shaping.par", k=1.0, reference=0.0)
          - gold(name="shaping.plain", kind="linear"))
