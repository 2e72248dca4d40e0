"""Simulates text from templates: four of five tokens are nearly certain from the start
and have to stay so, and one (verdicts.fork) is a choice among 4. One verdict of ten
is wrong, which disturbs all tokens that learn. One arm learns from the fifth of the
tokens that has the highest entropy, the other from all tokens, and the accuracies are
compared.
"""
import functools

from configs.papers import earl
from experiments.claims.environments import tabular, verdicts

MEASURE = "accuracy after 150 steps from a fifth of the tokens minus that from all tokens"
MARGIN, RATE = 0.05, 10.0
FIRST = ("not recorded", "the templates limited the accuracy of both arms")


def arms():
  tree, c = tabular.Tree(prompts=8, vocab=4, length=5), earl.get_config()
  environment = functools.partial(verdicts.fork, tree=tree, flip=0.1)
  return tabular.arms(
      {"a fifth": c, "all tokens": tabular.changed(c, learner__token_weight=dict(name=None))},
      tree, environment, "accuracy", steps=150)
