"""VerifyBench: A Systematic Benchmark for Evaluating Reasoning Verifiers Across Domains
(arXiv:2507.09884).

Two verifiers of rlx check texts that state an answer in six forms, half of them right. The
strict one reads only boxed answers; the looser one takes the last number if there is no other
statement of the answer. The claim is that the strict verifier has a higher precision and a lower
recall.

Confidence in the formula: medium.
"""
import contextlib
import dataclasses

from experiments.environments import judges
from rlx.evals import verifier
from rlx.verifiers import pool

CLAIMS = ("specialised verifiers have a higher precision than general ones and miss more right "
          "answers",
          "verdicts depend on whether the whole response or an extracted answer is judged")
CLAIM = 0
MEASURE = ("the smaller of two differences: precision that the strict verifier gains over the "
           "looser one, recall that it loses")
MARGIN, FIRST = 0.05, ("not seen", None)
ILLUSTRATION = ("Only one of the six forms is a box, and in one form the last number is not the "
                "answer.")


def effects(seeds):
  return {"looser verifier": [_effect(seed) for seed in seeds]}


def _effect(seed):
  prompts, texts, labels = zip(*judges.texts(seed, 300))

  def report(path):
    with contextlib.closing(pool.Pool(1, 10.0)) as workers:
      verdict_N = workers.verify([dataclasses.replace(p, verifier=path) for p in prompts], texts)
    return verifier.report(verdict_N, labels)["all"]

  strict, loose = report("math_answer.boxed"), report("math_answer.final")
  return min(strict["precision"] - loose["precision"], loose["recall"] - strict["recall"])
