"""Questions with eight answers of which a fourth are right, and a network that answers them and
judges its own answers through one hidden layer (environments/own_answers.py). All heads start at
random, so that requests about answers are as new to the policy as the questions.

The config's prompts are half questions and half requests about their answers: second attempts,
verdicts and pairs. The rival has as many groups of questions alone, and so twice as many verdicts
on first answers. Measured are new questions after 200 steps.
"""
from configs.papers import spark
from experiments.claims.environments import own_answers

MEASURE = ("accuracy on new questions with requests about own answers minus that of as many groups "
           "of questions alone")
MARGIN, RATE = 0.05, 1.0
FIRST = ("not seen", None)


def compare(mine_I2, rival_I2): return mine_I2[:, 0] - rival_I2[:, 0]


def arms():
  return own_answers.arms({"own answers": spark.get_config(),
                           "questions alone": spark.get_config("policy")})
