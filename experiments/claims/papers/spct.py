"""Four answers are judged by eight principles, on each of which they have a normal score. Four of
the principles count: the best answer has the highest mean of these. A judgement draws three of the
eight principles at random and gives an answer the mean of its scores on them, with noise of a
standard deviation of 1/2, as a whole number from 1 to 10. A further model says how good a judgement
is: the share of its principles that count, with noise of a standard deviation of 0.3.

The sum of the better half of 32 judgements, as the further model says, is compared with the sum of
all, with the better half of 8, and with a single one. Nothing is trained.
"""
import numpy as np

from rlx.evals import judgements

MEASURE = "accuracy of the best answer by the better half of 32 judgements minus that by the rival"
MARGIN = 0.05
FIRST = ("confirmed", None)
SETS, ANSWERS, PRINCIPLES, MOST = 200, 4, 8, 32


def judged(rng):
  """Returns (the best answer, score_KN, quality_K) of one set of answers."""
  score_NR = rng.normal(size=(ANSWERS, PRINCIPLES))
  drawn_KR = rng.permuted(np.tile(np.arange(PRINCIPLES) < 3, (MOST, 1)), axis=1)
  seen_KN = drawn_KR @ score_NR.T / 3 + 0.5 * rng.normal(size=(MOST, ANSWERS))
  counts_K = drawn_KR[:, :PRINCIPLES // 2].sum(axis=1) / 3
  return (np.argmax(score_NR[:, :PRINCIPLES // 2].mean(axis=1)),
          np.clip(np.round(5.5 + 2 * seen_KN), 1, 10), counts_K + 0.3 * rng.normal(size=MOST))


def accuracies(seed):
  """Returns how often each way finds the best answer."""
  rng, hits = np.random.default_rng(seed), []
  for best, score_KN, quality_K in (judged(rng) for _ in range(SETS)):
    sums = (judgements.sum_scores(score_KN, quality_K), judgements.sum_scores(score_KN),
            judgements.sum_scores(score_KN[:8], quality_K[:8]), score_KN[0])
    # Of equal sums one is drawn.
    hits.append([rng.permutation(np.flatnonzero(s_N == s_N.max()))[0] == best for s_N in sums])
  return np.mean(hits, axis=0)


def effects(seeds):
  chosen_I, *rivals = np.transpose([accuracies(int(seed)) for seed in seeds])
  return {name: chosen_I - rival_I
          for name, rival_I in zip(("all 32", "the better half of 8", "a single one"), rivals)}
