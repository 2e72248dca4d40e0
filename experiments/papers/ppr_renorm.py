"""An agent that searches: answer (0), search (1), stray (2), at most four steps.

An answer needs a search before it and no stray step; each further search misleads it
with probability 0.3. The judge of steps likes any search. Both arms have outcome and
steps; with the shift a failed completion keeps no step above 0.
"""
import jax
import jax.numpy as jnp

from configs.papers import ppr_renorm
from experiments.worlds import tabular
from experiments.worlds import verdicts

CLAIM = 0
MEASURE = "accuracy learned from shifted step scores less that from scores as they are"
SCORES = jnp.array([0.6, 0.8, 0.3])  # of answer, search, stray


def chance(batch):
  """Of a right answer."""
  found = lambda token: (batch.tokens_BT == token) & batch.mask_BT
  searches_B = found(1).sum(1)
  can_B = found(0).any(1) & ~found(2).any(1) & (searches_B > 0)
  return jnp.where(can_B, 0.7 ** (searches_B - 1.0), 0.0)


def judge(key, logits_PNV, batch):
  del logits_PNV
  return dict(outcome_B=1.0 * jax.random.bernoulli(key, chance(batch)),
              step_scores_BT=SCORES[batch.tokens_BT], step_ends_BT=batch.mask_BT)


def effects(seeds):
  world = tabular.Tree(prompts=4, vocab=3, length=4, eos=True)
  right_PL = verdicts.of_leaves(world, chance)

  def accuracy(**process):
    c = tabular.changed(ppr_renorm.get_config(),
                        rewards__process=dict(coef=1.0, **process))
    found, _ = tabular.train(c, world, judge, verdicts.accuracy(world, right_PL),
                             seeds=seeds, steps=300, lr=4.0)
    return found["accuracy"][:, -1]

  return (accuracy(name="steps.mix", kind="renorm", mu=1.0)
          - accuracy(name="steps.refine", kind="raw"))
