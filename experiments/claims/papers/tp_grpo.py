"""Simulates completions of four steps, each of which is right with two of its four tokens; the
answer is right if all steps are. The verifier of steps is wrong about one in ten of them, drawn
anew each time.

The mean accuracy over training, which is higher if fewer samples are needed, is that with rewards
for thoughts in addition to the outcome, less that with the outcome alone.
"""
from configs.papers import tp_grpo
from experiments.claims.environments import steps, tabular

MEASURE = "mean accuracy over 150 steps with rewards for thoughts minus that with outcomes alone"
MARGIN, RATE = 0.05, 10.0
FIRST = ("not seen", None)
TREE = tabular.Tree(prompts=8, vocab=4, length=4)


def environment(key):
  return steps.environment_with_judge(key, TREE, lambda scores_BT, batch: dict(
      step_scores_BT=scores_BT, step_ends_BT=batch.mask_BT))


def arms():
  c = tp_grpo.get_config()
  return tabular.arms({"thoughts": c, "outcomes alone": steps.outcomes_alone(c)},
                      TREE, environment, tabular.mean("accuracy"), steps=150)
