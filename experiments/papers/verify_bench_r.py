"""Judges trained on 800 texts, asked about 400 others, half of them right. With or
without the reference they see how many steps are right, from the question; a text may
slip and be right, or not slip and state something else (`judges.texts`).
"""
import numpy as np

from experiments.worlds import judges
from rlx.evals import verifier

PAPER = dict(
    title="VerifyBench: Benchmarking Reference-based Reward Systems for Large Language "
          "Models",
    arxiv="2505.15801",
    claims=(
        "a judge that sees the reference answer is more accurate than without it",
        "small models fall behind on answers that verifiers disagree about",
    ),
    confidence="medium")
CLAIM = 0
MEASURE = "accuracy of a judge that sees the reference less that of one that does not"
REVISED = "what was wrong in a text did not depend on its label"


def effects(seeds):
  return [_accuracy(seed, True) - _accuracy(seed, False) for seed in seeds]


def _accuracy(seed, reference):
  train, test = (judges.texts(f"{seed}/{part}", n)
                 for part, n in (("train", 800), ("test", 400)))
  (train_NF, train_N), (test_NF, test_N) = (
      (judges.features([r[0] for r in rows], [r[1] for r in rows], reference=reference),
       np.array([r[2] for r in rows])) for rows in (train, test))
  verdict_N = test_NF @ np.asarray(judges.fit(train_NF, train_N)) > 0
  return verifier.report(verdict_N, test_N)["all"]["accuracy"]
