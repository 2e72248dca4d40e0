"""How often the verdicts of a generative verifier are the labels, with intervals over questions.

Also how judgements of several answers are joined.
"""
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from rlx.evals import accuracy, pass_at_k


def measure(stated_PG: Sequence[Sequence[str | None]], label_P: Sequence[str],
            question_P: Sequence[str], p_yes: Mapping[str, npt.ArrayLike] | None = None,
            yes: str = "yes") -> dict[str, dict[str, float]]:
  """Accuracy of single verdicts, of votes and of p(yes), by label.

    accuracy      mean over prompts of the share of right verdicts
    balanced      mean over labels of the accuracy of their prompts
    accuracy@k    the same of the most frequent verdict of k (`pass_at_k.maj_at_k`); balanced@k
    p_yes         a prompt is judged yes if p > 1/2, and half right if p = 1/2

  Source: GenRM, Zhang et al. 2024, arXiv:2408.15240, which averages p(yes) over K rationales; votes
  of K verdicts are those of GenPRM, Zhao et al. 2025, arXiv:2504.00891. Differs from the papers:
  the mean of votes is over sets of k, where they draw k once.

  Args:
    stated_PG: verdicts of G judgements of each prompt; None where none is stated, which is wrong.
    label_P: the right ones; question_P: what prompts with the same judged question share.
    p_yes: {name: p_P}, the probability of `yes`; NaN counts as half right.
  Returns:
    {"accuracy", "balanced", "label/LABEL", "no_verdict", "accuracy@K", "balanced@K",
    "NAME/accuracy", "NAME/balanced": dict(mean, low, high, prompts)}, the interval a 95% percentile
    bootstrap over the questions, of which `prompts` is the number.
  Example:
    >>> got = judgements.measure([["yes", "no"], ["no", "no"], ["yes", None]], ["yes", "no", "no"],
    ...                          ["a", "b", "b"], {"p_yes": [0.9, 0.2, 0.5]})
    >>> rows = map(got.get, ("accuracy", "balanced", "label/no", "p_yes/balanced"))
    >>> [row["mean"] for row in rows]
    [0.5, 0.5, 0.5, 0.875]
  """
  labels_P, questions = np.asarray(label_P), list(dict.fromkeys(question_P))
  place = {question: i for i, question in enumerate(questions)}
  question_of_P = np.array([place[question] for question in question_P])
  right_PG = np.array([[x == label for x in row] for row, label in zip(stated_PG, labels_P)], float)

  def interval(value_P: np.ndarray, average: Callable) -> dict[str, float]:
    def statistic(chosen: np.ndarray) -> float:
      return average(value_P, np.bincount(chosen, minlength=len(questions))[question_of_P])
    return accuracy.bootstrap(statistic, len(questions))

  def weigh(value_P: np.ndarray, weight_P: np.ndarray) -> float:
    return float(value_P @ weight_P / weight_P.sum()) if weight_P.any() else np.nan

  def balance(value_P: np.ndarray, weight_P: np.ndarray) -> float:
    return float(np.mean([weigh(value_P, weight_P * (labels_P == x)) for x in np.unique(labels_P)]))

  means = {"accuracy": weigh, "balanced": balance}
  metrics = {name: interval(right_PG.mean(axis=1), average)
             for name, average in means.items()}
  for label in np.unique(labels_P):
    metrics[f"label/{label}"] = interval(right_PG.mean(axis=1), lambda value_P, weight_P: weigh(
        value_P, weight_P * (labels_P == label)))  # pylint: disable=cell-var-from-loop
  none_P = np.mean([[x is None for x in row] for row in stated_PG], axis=1)
  metrics["no_verdict"] = interval(none_P, weigh)
  for k in [2**i for i in range(right_PG.shape[1].bit_length()) if 2**i <= right_PG.shape[1]]:
    vote_P = np.array([pass_at_k.maj_at_k(row, right_G, k)
                       for row, right_G in zip(stated_PG, right_PG)])
    metrics |= {f"{name}@{k}": interval(vote_P, average) for name, average in means.items()}
  for name, p_P in (p_yes or {}).items():
    sign_P = np.sign(np.nan_to_num(np.asarray(p_P, float), nan=0.5) - 0.5)
    right_P = (1 + np.where(labels_P == yes, sign_P, -sign_P)) / 2
    metrics |= {f"{name}/{key}": interval(right_P, average) for key, average in means.items()}
  return metrics


def knockout(count: int, wins: Callable[[int, int], float]) -> int:
  """The winner of a tournament of answers in which a judge compares two at a time.

  Neighbours meet, winners meet again, and the last one of an odd number waits for the next round:
  n - 1 comparisons. A tie is won by the first of the two.

  Source: the knockout tournament of Reward Reasoning Model, Guo et al. 2025, arXiv:2505.14674.
  Differs from the paper: it draws the pairs at random; here they follow the order of the answers,
  which the caller may shuffle. Its Elo ratings are `judge.fit_strengths` of all pairs.

  Args:
    count: of answers, at least one.
    wins: (i, j) -> share of judgements that prefer answer i, such as a vote over both orders.
  Returns:
    the index of the winner.
  Example:
    >>> quality = [3, 1, 4, 1, 5]
    >>> judgements.knockout(5, lambda i, j: float(quality[i] > quality[j]))
    4
  """
  left = list(range(count))
  while len(left) > 1:
    met = [i if wins(i, j) >= 0.5 else j for i, j in zip(left[::2], left[1::2])]
    left = met + left[len(left) - len(left) % 2:]
  return left[0]


def sum_scores(score_KN: npt.ArrayLike, quality_K: npt.ArrayLike | None = None,
               most: int | None = None) -> np.ndarray:
  """The sums of the scores that K judgements give N answers, over the best judgements.

    S_n = sum over the `most` judgements k of the highest quality of s_kn

  Source: voting with a meta reward model of arXiv:2504.02495, Liu et al. 2025. Differs from the
  paper: of equal qualities the first judgement counts.

  Args:
    score_KN: NaN in a judgement without scores, which is left out.
    quality_K: what a further model says of each judgement; None: all count.
    most: how many of them; None: half, at least one.
  Example:
    >>> judgements.sum_scores([[7, 3], [2, 9], [8, 3]], quality_K=[0.9, 0.1, 0.8], most=2)
    array([15.,  6.])
  """
  score_KN = np.asarray(score_KN, float)
  known = np.flatnonzero(~np.isnan(score_KN).any(axis=1))
  if quality_K is not None:
    order = known[np.argsort(-np.asarray(quality_K, float)[known], kind="stable")]
    known = order[:max(len(score_KN) // 2, 1) if most is None else most]
  return score_KN[known].sum(axis=0)
