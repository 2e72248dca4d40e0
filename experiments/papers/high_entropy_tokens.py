"""A completion of five tokens has one fork (verdicts.fork): there the initial policy is nearly
uniform, and at the other tokens its entropy is about 0.02 nats (in the paper half of the tokens
have less than 0.01). One completion per prompt is right. Learning from the fifth of the tokens
with the highest entropy is compared with learning from all tokens; it counts as equally good
from 95% of the accuracy.
"""
import functools

from configs.papers import high_entropy_tokens
from experiments.environments import tabular
from experiments.environments import verdicts

CLAIM = 0
MEASURE = "accuracy after 12 steps from a fifth of the tokens minus 95% of that from all tokens"
MARGIN, RATE = 0.05, 20.0
FIRST = ("opposite", "the initial policy was not certain enough of the tokens other than the fork")
ILLUSTRATION = ("All tokens except the fork, one token in five, are known at the start, so there "
                "is nothing else to learn.")


def compare(some, every):
  return some - 0.95 * every


def arms():
  tree = tabular.Tree(prompts=8, vocab=4, length=5)
  environment = functools.partial(verdicts.fork, tree=tree)
  def config(fraction):
    return tabular.changed(high_entropy_tokens.get_config(), learner__epochs=4,
                           learner__token_weight__fraction=fraction)
  return tabular.arms({"a fifth": config(0.2), "all tokens": config(1.0)},
                      tree, environment, "accuracy", steps=12)
