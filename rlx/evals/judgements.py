"""How often the verdicts of a generative verifier are the labels, with intervals over questions."""
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from rlx.evals import accuracy, pass_at_k


def measure(stated_PG: Sequence[Sequence[str | None]], label_P: Sequence[str],
            question_P: Sequence[str], p_yes: dict[str, npt.ArrayLike] | None = None,
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
    >>> [got[name]["mean"] for name in ("accuracy", "balanced", "label/no", "p_yes/balanced")]
    [0.5, 0.5, 0.5, 0.875]
  """
  label_P, questions = np.asarray(label_P), list(dict.fromkeys(question_P))
  place = {question: i for i, question in enumerate(questions)}
  question_of_P = np.array([place[question] for question in question_P])
  right_PG = np.array([[x == label for x in row] for row, label in zip(stated_PG, label_P)], float)

  def interval(value_P: np.ndarray, of: Callable) -> dict[str, float]:
    def statistic(chosen: np.ndarray) -> float:
      return of(value_P, np.bincount(chosen, minlength=len(questions))[question_of_P])
    return accuracy.bootstrap(statistic, len(questions))

  def weigh(value_P: np.ndarray, weight_P: np.ndarray) -> float:
    return float(value_P @ weight_P / weight_P.sum()) if weight_P.any() else np.nan

  def balance(value_P: np.ndarray, weight_P: np.ndarray) -> float:
    return float(np.mean([weigh(value_P, weight_P * (label_P == x)) for x in np.unique(label_P)]))

  means = {"accuracy": weigh, "balanced": balance}
  made = {name: interval(right_PG.mean(axis=1), of) for name, of in means.items()}
  for label in np.unique(label_P):
    made[f"label/{label}"] = interval(right_PG.mean(axis=1), lambda value_P, weight_P: weigh(
        value_P, weight_P * (label_P == label)))  # pylint: disable=cell-var-from-loop
  none_P = np.mean([[x is None for x in row] for row in stated_PG], axis=1)
  made["no_verdict"] = interval(none_P, weigh)
  for k in [2**i for i in range(right_PG.shape[1].bit_length()) if 2**i <= right_PG.shape[1]]:
    vote_P = np.array([pass_at_k.maj_at_k(row, right_G, k)
                       for row, right_G in zip(stated_PG, right_PG)])
    made |= {f"{name}@{k}": interval(vote_P, of) for name, of in means.items()}
  for name, p_P in (p_yes or {}).items():
    sign_P = np.sign(np.nan_to_num(np.asarray(p_P, float), nan=0.5) - 0.5)
    right_P = (1 + np.where(label_P == yes, sign_P, -sign_P)) / 2
    made |= {f"{name}/{key}": interval(right_P, of) for key, of in means.items()}
  return made
