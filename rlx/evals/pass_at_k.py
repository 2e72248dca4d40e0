"""pass@k and maj@k from n completions per prompt. Pure numpy, host side."""
import math

import numpy as np


def pass_at_k(outcome_PG, k):
  """Unbiased probability that one of k completions is right, mean over prompts.

    pass@k = 1 - C(n - c, k) / C(n, k)     n completions, c of them right

  Source: Chen et al. 2021, arXiv:2107.03374, eq. 1. Differs from the paper: a
  verdict that is not known (NaN) is not a completion; a prompt with fewer than
  k known verdicts is left out.

  Args:
    outcome_PG: verdicts; right means > 1/2.
    k: >= 1.
  Returns:
    float, NaN if no prompt has k known verdicts.
  Raises:
    ValueError: k < 1.
  """
  if k < 1: raise ValueError(f"k={k} must be >= 1.")
  outcome_PG = np.asarray(outcome_PG)
  known_P = (~np.isnan(outcome_PG)).sum(axis=1)
  right_P = (outcome_PG > 0.5).sum(axis=1)
  values = [1 - math.comb(int(n - c), k) / math.comb(int(n), k)
            for n, c in zip(known_P, right_P) if n >= k]
  return float(np.mean(values)) if values else math.nan


def cot_pass_at_k(outcome_PG, steps_right_PG, k):
  """pass@k of completions whose answer and whose reasoning are right.

    CoT-pass@k = 1 - C(n - d, k) / C(n, k)    d of n with both right

  Source: Wen et al. 2025, arXiv:2506.14245. Differs from the paper: its steps are
  judged by a language model, here by whoever gives steps_right_PG.

  Args:
    outcome_PG: verdicts on answers; right means > 1/2.
    steps_right_PG: verdicts on all steps together; as outcome_PG. A completion
      with one verdict NaN and the other not wrong is unknown.
    k: >= 1.
  Returns, Raises: as `pass_at_k`.
  """
  # The lower of both verdicts: NaN, too, unless the other one is wrong already.
  both_PG = np.stack([outcome_PG, steps_right_PG])
  is_wrong_PG = (both_PG <= 0.5).any(axis=0)
  return pass_at_k(np.where(is_wrong_PG, 0.0, both_PG.min(axis=0)), k)


def majority(answers, weights=None):
  """The answer with the largest sum of weights; ties go to the one given first.

  Args:
    answers: hashable answers of one prompt; None is no answer and has no vote.
    weights: numbers, default 1 each.
  Returns:
    an answer, or None if nobody has one.
  """
  votes = {}
  for i, answer in enumerate(answers):
    if answer is None: continue
    votes[answer] = votes.get(answer, 0.0) + (1.0 if weights is None else float(weights[i]))
  return max(votes, key=votes.get) if votes else None


def maj_at_k(answers, outcome_G, k):
  """1 if the majority answer of the first k completions is right, else 0.

  Args:
    answers: of one prompt's completions, see `majority`.
    outcome_G: their verdicts; an answer is right if any completion that gave
      it among the first k is (> 1/2).
    k: >= 1, at most the number of completions.
  Raises:
    ValueError: k is out of range.
  """
  if not 1 <= k <= len(answers):
    raise ValueError(f"k={k} must be in 1..{len(answers)}, the completions given.")
  winner = majority(answers[:k])
  return float(any(a == winner and o > 0.5
                   for a, o in zip(answers[:k], outcome_G[:k]) if a is not None))
