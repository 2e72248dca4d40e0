"""Text of templates: of five tokens four are nearly certain from the start and have to
stay, one is a decision of 4. One verdict of ten is wrong, which shakes all tokens
that learn: the fifth of highest entropy against all."""
import jax
import jax.numpy as jnp
import numpy as np

from configs.papers import earl
from experiments.worlds import tabular
from experiments.worlds import verdicts

CLAIM = 0
MEASURE = "accuracy learned from a fifth of the tokens less that from all, 200 steps"
REVISED = "templates capped the accuracy of both arms"
DECISIONS = (2,)


def effects(seeds):
  world = tabular.Tree(prompts=8, vocab=4, length=5)
  choice_PT = jax.random.randint(jax.random.key(0), (8, 5), 0, 4)
  right_PT = jnp.where(np.isin(np.arange(5), DECISIONS)[None], choice_PT, 0)
  right_PL = verdicts.of_leaves(world, lambda batch: jnp.all(
      batch.tokens_BT == right_PT[batch.prompt_B], axis=1))
  depth_N = np.repeat(np.arange(5), 4 ** np.arange(5))
  is_template_N = ~np.isin(depth_N, DECISIONS)
  start_NV = 7.0 * is_template_N[:, None] * (np.arange(4) == 0)

  def accuracy(**changes):
    c = tabular.changed(earl.get_config(), **changes)
    found, _ = tabular.train(
        c, world, verdicts.judge(world, right_PL, flip=0.1),
        verdicts.accuracy(world, right_PL), seeds=seeds, steps=200, lr=10.0,
        start=lambda key: start_NV + world.start(key, 0.5))
    return found["accuracy"][:, -1]

  return accuracy() - accuracy(learner__token_weight=dict(name=None))
