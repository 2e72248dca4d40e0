"""The environment of PRIME's check: right answers are rare, and any wrong one of five turns, of
one token each, makes the answer wrong. Learning from step rewards is compared with learning
from outcomes alone.

An accuracy counts as reached when the curve first passes it. PRIME is not an arm.
"""
from configs.papers import oprl
from experiments.claims.environments import steps

MEASURE = ("share of training steps that step rewards save, compared with outcomes alone, to an "
           "accuracy that both reach")
MARGIN, RATE = 0.05, 10.0
FIRST = ("not recorded",
         "at the same learning rate, step rewards led to larger updates than outcomes; then the "
         "config took tokens instead of turns, each with a baseline of its own position")
compare = steps.saved


def arms():
  c = oprl.get_config()
  return {"step rewards": steps.curve(c), "outcomes alone": steps.curve(steps.outcomes_alone(c))}
