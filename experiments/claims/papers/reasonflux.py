"""ReasonFlux's blend of PRM and verdict against the verdict alone.

Each prompt has one right completion of 256: four steps of four choices each. The PRM scores
right steps at about 0.8 and wrong ones at about 0.2, with a fixed error of standard deviation
0.25. The accuracy is measured.
"""
import jax
import jax.numpy as jnp

from configs.papers import reasonflux
from experiments.claims.environments import steps, tabular

MEASURE = "accuracy after 300 steps learned from the blend minus that from verdicts alone"
MARGIN, RATE = 0.05, 10.0
FIRST = ("not seen", "with chains of three steps both arms ended with an accuracy near 1")
TREE = tabular.Tree(prompts=8, vocab=4, length=4)


def environment(key):
  keys = jax.random.split(key, 3)
  ok_PNV = steps.right_steps(keys[0], TREE, 1)
  low, gain, error = tabular.around(keys[1], (0.2, 0.6, 0.25))
  score_PNV = jnp.clip(low + gain * ok_PNV + error * jax.random.normal(keys[2], ok_PNV.shape), 0, 1)

  def verify(batch, **_):
    return dict(outcome_B=steps.verdict_B(ok_PNV, batch), step_ends_BT=batch.mask_BT,
                step_scores_BT=score_PNV[
                    batch.prompt_B[:, None], batch.nodes_BT, batch.tokens_BT])

  return tabular.Environment(verify, TREE.means(accuracy=steps.right_leaves(TREE, ok_PNV)))


def arms():
  c = reasonflux.get_config()
  return tabular.arms({"blend": c, "verdicts": tabular.changed(c, rewards__process__coef=0.0)},
                      TREE, environment, "accuracy", steps=300)
