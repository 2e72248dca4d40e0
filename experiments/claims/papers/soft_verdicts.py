"""One completion in five is right. A rule reads four in ten of the right ones, whose answers have
the form that it expects, and accepts no wrong one. The judge's log-odds of yes are 2 for right
completions and -2 for wrong ones, with noise of its own for each completion with a standard
deviation of 1.5, so that it is wrong about one in ten, always in the same way. Measured is the
share of right completions after 150 steps.
"""
import jax

from configs.papers import soft_verdicts
from experiments.claims.environments import tabular, verdicts

MEASURE = "accuracy after 150 steps with the judge's probabilities minus that with the rule"
MARGIN, RATE = 0.05, 10.0
FIRST = ("not recorded", "it was underpowered")
TREE = tabular.Tree(prompts=8, vocab=6, length=2)


def environment(key):
  keys = jax.random.split(key, 4)
  right_PL = verdicts.drawn(keys[0], TREE, 0.2)
  read_PL = right_PL & verdicts.drawn(keys[1], TREE, tabular.around(keys[2], 0.4))
  odds_PL = 4.0 * right_PL - 2 + 1.5 * jax.random.normal(keys[3], right_PL.shape)
  return tabular.Environment(
      TREE.verifier(outcome_B=read_PL, scores_BE=jax.nn.sigmoid(odds_PL)[..., None]),
      TREE.means(accuracy=right_PL))


def arms():
  c = soft_verdicts.get_config()
  rule = tabular.changed(c, rewards=dict(outcome=dict(name="outcome.verdict", coef=1.0)))
  return tabular.arms({"probabilities": c, "rule": rule}, TREE, environment, "accuracy", steps=150)
