"""VerifyBench: Benchmarking Reference-based Reward Systems for Large Language Models
(arXiv:2505.15801).

Small judges are trained on 800 texts and tested on 400 others, half of which are right. With
and without the reference answer, a judge knows the question and thus how many steps of a text
are right. A text can have a wrong step and still be right, or have no wrong step and state a
different answer (`judges.texts`). The claim is that a judge that also sees the reference answer
is more accurate.

Confidence in the formula: medium.
"""
import functools

import numpy as np

from experiments.environments import judges
from rlx.evals import verifier

CLAIMS = ("a judge that sees the reference answer is more accurate than one that does not",
          "small models are worse on answers on which verifiers disagree")
CLAIM = 0
MEASURE = "accuracy of a judge that sees the reference minus that of one that does not"
MARGIN, RATE = 0.05, 0.05
FIRST = ("not recorded", "the errors in a text did not depend on its label")
ILLUSTRATION = ("A text is right if it states the reference answer, and the judge that sees the "
                "reference is told whether the answers agree.")


@functools.cache
def texts(seed, count, reference):
  """Returns (features_NF, labels_N)."""
  prompts, completions, labels = zip(*judges.texts(seed, count))
  return judges.features(prompts, completions, reference=reference), np.array(labels)


def arms():
  def accuracy(reference):
    def arm(seeds, rates):
      train = [texts(f"{seed}/train", 800, reference) for seed in seeds]
      test = [texts(f"{seed}/test", 400, reference) for seed in seeds]
      weights_IF = judges.fit(*map(np.stack, zip(*train)), rates)
      return [verifier.report(x_NF @ weights_F > 0, labels_N)["all"]["accuracy"]
              for (x_NF, labels_N), weights_F in zip(test, np.asarray(weights_IF))]
    return arm
  return {"with the reference": accuracy(True), "without": accuracy(False)}
