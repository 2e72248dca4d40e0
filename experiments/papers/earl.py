"""Text of templates: of five tokens four are nearly certain from the start and have to
stay, one (verdicts.fork) is a decision of 4. One verdict of ten is wrong, which shakes all
tokens that learn: the fifth of highest entropy against all."""
import functools

from configs.papers import earl
from experiments.environments import tabular
from experiments.environments import verdicts

CLAIM = 0
MEASURE = "accuracy learned from a fifth of the tokens less that from all, 150 steps"
MARGIN, RATE = 0.05, 10.0
FIRST = ("not recorded", "templates capped the accuracy of both arms")


def arms():
  world, c = tabular.Tree(prompts=8, vocab=4, length=5), earl.get_config()
  environment = functools.partial(verdicts.fork, world=world, flip=0.1)
  def accuracy(c):
    return lambda seeds, rates: tabular.train(
        c, world, environment, seeds=seeds, lr=rates, steps=150)[0]["accuracy"][:, -1]
  return {"a fifth": accuracy(c),
          "all tokens": accuracy(tabular.changed(c, learner__token_weight=dict(name=None)))}
