"""The environment of ttrl.py: a vote on a question can be wrong, but what is learned applies to the
next question, too. Votes by the confidence of drawn tokens, in two subgroups, are compared with
majority votes of the group.
"""
from configs.papers import scope, ttrl
from experiments.claims.environments import tabular
from experiments.claims.papers import ttrl as votes

MEASURE = "accuracy learned from votes by confidence in subgroups minus that from majority votes"
MARGIN, RATE = 0.05, 16.0
FIRST = ("confirmed", None)


def arms():
  return tabular.arms({"confidence": scope.get_config(), "majority": ttrl.get_config()},
                      votes.TREE, votes.environment, "accuracy", steps=200)
