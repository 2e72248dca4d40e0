"""The questions and the network of `spark`'s check (environments/own_answers.py), with PPO. The
critic is a table with a value for each question and kind of request.

The config asks for verdicts on four of the answers of a step, in place of four of the 32 groups of
questions that the rival has. Both are measured on new questions after 200 steps: by the chance of
right answers, and by that of right verdicts over their own answers. "No worse" allows for a loss of
0.02 in answers. The rates are those that answer best.
"""
import numpy as np

from configs.papers import rise
from experiments.claims.environments import own_answers

MEASURE = ("the smaller of two gains over training on questions alone: accuracy of verdicts on own "
           "answers, and that of answers plus 0.02")
MARGIN, RATE = 0.05, 1.0
FIRST = ("confirmed", None)


def compare(mine_I2, rival_I2):
  answers_I, verdicts_I = (mine_I2 - rival_I2).T
  return np.minimum(verdicts_I, answers_I + 0.02)


def arms():
  return own_answers.arms({"own answers": rise.get_config(),
                           "questions alone": rise.get_config("policy")})
