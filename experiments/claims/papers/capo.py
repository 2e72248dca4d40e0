"""Simulates completions of four steps, each of which is right with two of its four
tokens; the answer is right if all steps are. The verifier of steps is wrong about one in
ten of them, drawn anew each time.

The check measures the accuracy over training: CAPO, with penalties for wrong steps in
addition to the outcome, less GRPO with the outcome alone.
"""
import jax

from configs.papers import capo
from experiments.claims.environments import steps, tabular

MEASURE = "accuracy over 150 steps with penalties for wrong steps minus that with outcomes alone"
MARGIN, RATE = 0.05, 10.0
FIRST = ("confirmed", None)
TREE = tabular.Tree(prompts=8, vocab=4, length=4)


def environment(key):
  keys = jax.random.split(key)
  ok_PNV = steps.right_steps(keys[0], TREE, 2)
  mistakes = tabular.around(keys[1], 0.1)

  def verify(batch, key, **_):
    ok_BT = ok_PNV[batch.prompt_B[:, None], batch.nodes_BT, batch.tokens_BT]
    mistaken_BT = jax.random.bernoulli(key, mistakes, ok_BT.shape)
    return dict(outcome_B=steps.verdict_B(ok_PNV, batch),
                step_scores_BT=1.0 * (ok_BT ^ mistaken_BT), step_ends_BT=batch.mask_BT)

  return tabular.Environment(verify, TREE.means(accuracy=steps.right_leaves(TREE, ok_PNV)))


def arms():
  c = capo.get_config()
  return tabular.arms({"penalties": c, "GRPO on outcomes": tabular.grpo(c)},
                      TREE, environment, tabular.mean("accuracy"), steps=150)
