"""Simulates completions of four tokens, each of which is right with two of its four; the answer is
right if all are. The critic marks right tokens as good spans and wrong ones as bad, and is wrong
about one in ten of them, drawn anew each time.

The check measures the accuracy over training: PPO with the spans in addition to the outcome, less
PPO with the outcome alone.
"""
from configs.papers import drlc
from experiments.claims.environments import steps, tabular

MEASURE = "accuracy over 150 steps with rewards of spans minus that with the outcome alone"
MARGIN, RATE = 0.05, 10.0
FIRST = ("not seen", None)
TREE = tabular.Tree(prompts=8, vocab=4, length=4)


def environment(key):
  return steps.environment_with_judge(key, TREE, lambda scores_BT, _: dict(
      span_scores_BT=scores_BT))


def arms():
  c = drlc.get_config()
  sparse = tabular.changed(c, rewards=dict(outcome=dict(name="outcome.verdict", coef=1.0)))
  return tabular.arms({"spans": c, "outcome alone": sparse}, TREE, environment,
                      tabular.mean("accuracy"), steps=150)
