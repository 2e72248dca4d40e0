"""PRIME's dense rewards against outcome rewards alone, with rare right answers.

One completion in 32 is right: it has five steps, and any wrong one makes it wrong. Both arms
have the filter of accuracies, the whitening and all other settings of the published run. The
PRM has the policy's initial weights and is trained online. Compared is the number of training
steps until an arm first has the accuracy that both arms reach.
"""
from configs.papers import prime
from experiments.claims.environments import steps

MEASURE = "share of the steps of outcomes alone that dense rewards save to the accuracy both reach"
MARGIN, RATE = 0.05, 10.0
FIRST = ("confirmed", "beta was the quickstart's, not the config's")
compare = steps.saved


def arms():
  c = prime.get_config()
  return {"dense rewards": steps.curve(c), "outcomes alone": steps.curve(steps.outcomes_alone(c))}
