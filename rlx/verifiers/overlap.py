"""Similarity of an answer and a reference, for partial credit."""
import collections
import math
from collections.abc import Hashable, Sequence


def bleu(answer: Sequence[Hashable], reference: Sequence[Hashable], *, order: int = 4) -> float:
  """BLEU of one answer, with n-grams no longer than either of the two sequences.

    exp(min(0, 1 - |reference| / |answer|)) (p_1 ... p_N)^(1/N)
    N = min(order, |answer|, |reference|)
    p_n = matches / n-grams of the answer;  n > 1: one is added to both

  An n-gram matches as often as it is in the reference. A reference of one word would make every
  longer n-gram a miss; here it has N = 1.

  Source: Papineni et al. 2002, with the smoothing of Lin and Och 2004. Differs from them: N is
  also limited by the reference.

  Args:
    answer, reference: texts, then n-grams are of characters, or lists of words.
  Returns:
    A number in [0, 1]: 1 if both are the same, 0 if they have nothing in common.
  Example:
    >>> overlap.bleu("221", "221"), round(overlap.bleu("212", "221"), 3), overlap.bleu("", "221")
    (1.0, 0.693, 0.0)
  """
  if not answer or not reference: return 0.0
  logs = []
  for n in range(1, min(order, len(answer), len(reference)) + 1):
    ours, theirs = (collections.Counter(tuple(x[i:i + n]) for i in range(len(x) - n + 1))
                    for x in (answer, reference))
    matches = (ours & theirs).total()
    if not matches and n == 1: return 0.0
    logs.append(math.log((matches + (n > 1)) / (ours.total() + (n > 1))))
  return math.exp(min(0.0, 1 - len(reference) / len(answer)) + sum(logs) / len(logs))
