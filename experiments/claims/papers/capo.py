"""Simulates completions of four steps, each of which is right with two of its four
tokens; the answer is right if all steps are. The verifier of steps is wrong about one in
ten of them, drawn anew each time.

The check measures the accuracy over training: CAPO, with penalties for wrong steps in
addition to the outcome, less GRPO with the outcome alone.
"""
from configs.papers import capo
from experiments.claims.environments import steps, tabular

MEASURE = "accuracy over 150 steps with penalties for wrong steps minus that with outcomes alone"
MARGIN, RATE = 0.05, 10.0
FIRST = ("confirmed", None)
TREE = tabular.Tree(prompts=8, vocab=4, length=4)


def environment(key):
  return steps.environment_with_judge(key, TREE, lambda scores_BT, batch: dict(
      step_scores_BT=scores_BT, step_ends_BT=batch.mask_BT))


def arms():
  c = capo.get_config()
  return tabular.arms({"penalties": c, "GRPO on outcomes": tabular.grpo(c)},
                      TREE, environment, tabular.mean("accuracy"), steps=150)
