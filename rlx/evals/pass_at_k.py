"""pass@k and maj@k from n completions per prompt. Pure numpy, host side."""
import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from rlx.evals import accuracy


def pass_at_k(outcome_PG: npt.ArrayLike, k: int) -> float:
  """Mean of `estimate_each` over prompts; NaN if no prompt has k known verdicts.

  Example:
    >>> pass_at_k.pass_at_k([[1., np.nan, 0.], [0., np.nan, np.nan]], 1)
    0.25
    >>> pass_at_k.pass_at_k([[1., np.nan, 0.], [0., np.nan, np.nan]], 2)
    1.0
  """
  value_P = estimate_each(outcome_PG, k)
  return accuracy.mean(value_P[~np.isnan(value_P)])


def estimate_each(outcome_PG: npt.ArrayLike, k: int) -> np.ndarray:
  """For every prompt, the unbiased probability that one of k completions is right.

    pass@k = 1 - C(n - c, k) / C(n, k)     n completions, c of them right

  Source: Chen et al. 2021, arXiv:2107.03374, eq. 1. Differs from the paper:
  completions with an unknown verdict (NaN) do not count.

  Args:
    outcome_PG: verdicts; right means > 1/2.
    k: >= 1.
  Returns:
    value_P, NaN for a prompt with fewer than k known verdicts.
  Raises:
    ValueError: k < 1.
  Example:
    >>> pass_at_k.estimate_each([[1., 0., 0., 0.]], 2)
    array([0.5])
  """
  if k < 1: raise ValueError(f"k={k} must be >= 1.")
  outcome_PG = np.asarray(outcome_PG)
  known_P = (~np.isnan(outcome_PG)).sum(axis=1)
  right_P = (outcome_PG > 0.5).sum(axis=1)
  return np.array([1 - math.comb(int(n - c), k) / math.comb(int(n), k)
                   if n >= k else math.nan for n, c in zip(known_P, right_P)])


def cot_pass_at_k(outcome_PG: npt.ArrayLike, steps_right_PG: npt.ArrayLike, k: int) -> float:
  """pass@k where a completion is right if its answer and its reasoning are.

    CoT-pass@k = 1 - C(n - d, k) / C(n, k)    d of n with both right

  Source: Wen et al. 2025, arXiv:2506.14245. Differs from the paper: its steps are
  judged by a language model; steps_right_PG may come from any verifier.

  Args:
    outcome_PG: verdicts on answers; right means > 1/2.
    steps_right_PG: verdicts on all steps together; as outcome_PG. A completion
      with one verdict NaN and the other not wrong is unknown.
    k: >= 1.
  Returns, Raises: as `pass_at_k`.
  Example:
    >>> pass_at_k.cot_pass_at_k([[1., 1., 1., 0.]], [[1., 0., np.nan, np.nan]], 2)
    0.6666...
  """
  # The lower verdict; NaN if one is unknown and the other is not wrong.
  both_PG = np.stack([outcome_PG, steps_right_PG])
  is_wrong_PG = (both_PG <= 0.5).any(axis=0)
  return pass_at_k(np.where(is_wrong_PG, 0.0, both_PG.min(axis=0)), k)


def majority(answers: Sequence, weights: Sequence[float] | None = None) -> Any:
  """The answer with the largest sum of weights; of equal sums, the first answer.

  Args:
    answers: hashable answers of one prompt; None is no answer and has no vote.
    weights: numbers, default 1 each.
  Returns:
    an answer, or None if there is none.
  Example:
    >>> pass_at_k.majority(["a", "b", "b", None, None, None])
    'b'
    >>> pass_at_k.majority(["a", "b"])
    'a'
    >>> pass_at_k.majority(["a", "b", "b"], [3, 1, 1])
    'a'
  """
  votes: dict[Any, float] = {}
  for i, answer in enumerate(answers):
    if answer is None: continue
    votes[answer] = votes.get(answer, 0.0) + (1.0 if weights is None else float(weights[i]))
  return max(votes, key=votes.__getitem__) if votes else None


def maj_at_k(answers: Sequence, outcome_G: npt.ArrayLike, k: int,
             weight_G: npt.ArrayLike | None = None, *, subsets: int = 500) -> float:
  """Unbiased probability that the majority answer of k completions is right.

    maj@k = mean over sets S of k of the n completions of 1[a_S right]
    a_S   = argmax_a  sum of w_i over i in S with a_i = a

  If there are more than `subsets` sets, the mean is over that many random ones, the same for every
  prompt. Answers with equal sums are chosen with equal probability, as if completions were in
  random order. Completions with an unknown verdict (NaN) do not count; a set without an answer is
  wrong.

  Source: Wang et al. 2022, arXiv:2203.11171; with weights, arXiv:2412.01981. Differs
  from the papers: the mean over sets, where they sample k completions once.

  Args:
    answers: of one prompt's completions, see `majority`.
    outcome_G: their verdicts; an answer is right if any completion with it is (> 1/2).
    k: 1 to the number of completions.
    weight_G: numbers >= 0, default 1 each.
  Returns:
    float, NaN with fewer than k known verdicts.
  Raises:
    ValueError: k is out of range.
  Example:
    >>> pass_at_k.maj_at_k(["a", "b", "a", "b"], [0., 1., np.nan, 0.], 3)
    1.0
    >>> pass_at_k.maj_at_k([None, None], [0., 0.], 1)
    0.0
  """
  if not 1 <= k <= len(answers):
    raise ValueError(f"k={k} must be in 1..{len(answers)}, the completions given.")
  outcome_G = np.asarray(outcome_G, float)
  known = np.flatnonzero(~np.isnan(outcome_G))
  if len(known) < k: return math.nan
  given = [answers[int(i)] for i in known]
  names = dict.fromkeys(answer for answer in given if answer is not None)
  if not names: return 0.0
  gave_GA = np.array([[answer == name for name in names] for answer in given], dtype=float)
  right_A = (outcome_G[known] > 0.5) @ gave_GA > 0
  sets_MG = _sets(len(known), k, subsets)
  votes_MA = count_MA = sets_MG @ gave_GA
  if weight_G is not None:
    votes_MA = sets_MG @ (np.asarray(weight_G, float)[known, None] * gave_GA)
  votes_MA = np.where(count_MA > 0, votes_MA, -1.0)
  first_MA = (votes_MA == votes_MA.max(axis=1, keepdims=True)) & (votes_MA >= 0)
  return float(np.mean((first_MA & right_A).sum(axis=1) / np.maximum(first_MA.sum(axis=1), 1)))


@functools.lru_cache(maxsize=None)
def _sets(n, k, most):
  """0 or 1 [M, n]: sets of k of n, all of them or `most` at random."""
  if math.comb(n, k) <= most:
    chosen_Mk = np.array(list(itertools.combinations(range(n), k)))
  else:
    chosen_Mk = np.argsort(np.random.default_rng(0).random((most, n)), axis=1)[:, :k]
  sets_MG = np.zeros((len(chosen_Mk), n))
  np.put_along_axis(sets_MG, chosen_Mk, 1.0, axis=1)
  return sets_MG
