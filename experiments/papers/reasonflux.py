"""One right completion of 256 for each prompt, four steps of four choices each, and a
PRM whose scores of steps are 0.8 or 0.2 with a fixed error of 0.25: the blend of
PRM and verdict against the verdict alone."""
import jax
import jax.numpy as jnp

from configs.papers import reasonflux
from experiments.worlds import tabular
from experiments.worlds import verdicts

CLAIM = 0
MEASURE = "accuracy learned from the blend less that from verdicts alone, 300 steps"
REVISED = "not seen with chains of three, where both arms ended near 1"


def effects(seeds):
  world = tabular.Tree(prompts=8, vocab=4, length=4)
  keys = jax.random.split(jax.random.key(0))
  right_PN1 = jax.random.randint(keys[0], (8, world.nodes, 1), 0, 4)
  right_PNV = right_PN1 == jnp.arange(4)
  score_PNV = jnp.clip(0.2 + 0.6 * right_PNV
                       + 0.25 * jax.random.normal(keys[1], right_PNV.shape), 0, 1)
  at = lambda table_PNV, batch: table_PNV[
      batch.prompt_B[:, None], batch.nodes_BT, batch.tokens_BT]
  right_PL = verdicts.of_leaves(world, lambda batch: at(right_PNV, batch).all(axis=1))

  def judge(key, logits_PNV, batch):
    del key, logits_PNV
    return dict(outcome_B=1.0 * at(right_PNV, batch).all(axis=1),
                step_scores_BT=at(score_PNV, batch), step_ends_BT=batch.mask_BT)

  def accuracy(**changes):
    c = tabular.changed(reasonflux.get_config(), **changes)
    found, _ = tabular.train(c, world, judge, verdicts.accuracy(world, right_PL),
                             seeds=seeds, steps=300, lr=10.0)
    return found["accuracy"][:, -1]

  return accuracy() - accuracy(rewards__process__coef=0.0)
