"""Metrics of k completions: pass@k, majority votes, best of k; and of their texts."""
from collections.abc import Sequence

import numpy as np

from rlx.core import records
from rlx.evals import accuracy, best_of_n, pass_at_k

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


def at_k(outcome_PG: np.ndarray, answers: list[str | None],
         scores: dict[str, np.ndarray]) -> dict[str, dict]:
  """Computes pass@k, maj@k and, with PRM scores, weighted@k and best@k for k = 1, 2, 4, ...

  Each is the mean over all sets of k completions, or over a sample of them (`maj_at_k`).

  Args:
    outcome_PG: verdicts.
    answers: [B] extracted answers, None where there is none.
    scores: {name: score_B} of the PRM, see `prm_sets.scores`; empty without one.
  Returns:
    {"pass@K", "maj@K", "weighted@K/NAME", "best@K/NAME": as `accuracy.interval`}. There are no
    votes where completions are right and none states an answer, as those of people's ratings.
  """
  p, g = outcome_PG.shape
  answers_PG = [answers[i * g:(i + 1) * g] for i in range(p)]
  groups = lambda by_name: {k: np.asarray(v, float).reshape(p, g) for k, v in by_name.items()}
  weights, scores = groups(best_of_n.weights(scores)), groups(scores)
  right_PG = np.where(np.isnan(outcome_PG), np.nan, outcome_PG > 0.5)
  votes = any(a is not None for a in answers) or not np.any(outcome_PG > 0.5)
  values: dict[str, Sequence | np.ndarray] = {}
  def vote(k, weight_PG=(None,) * p):
    return [pass_at_k.maj_at_k(*row, k, w) for *row, w in zip(answers_PG, outcome_PG, weight_PG)]
  for k in [2**i for i in range(g.bit_length()) if 2**i <= g]:
    values[f"pass@{k}"] = pass_at_k.estimate_each(outcome_PG, k)
    if votes:
      values[f"maj@{k}"] = vote(k)
      values |= {f"weighted@{k}/{name}": vote(k, w_PG) for name, w_PG in weights.items()}
    values |= {f"best@{k}/{name}": [best_of_n.at_n(*row, k)[1] for row in zip(
        score_PG, right_PG)] for name, score_PG in scores.items()}
  return {name: accuracy.interval(np.array(value_P)[:, None]) for name, value_P in values.items()}


def text_metrics(outcome_PG: np.ndarray, answers: list[str | None], finish_B: np.ndarray,
                 length_B: Sequence[int]) -> dict[str, dict]:
  """Computes the shares of completions without an answer and truncated, and their lengths.

  Returns:
    {"no_answer", "truncated": as `accuracy.interval`; "length": in tokens, dict(mean, low, high,
    quantiles, right, wrong)}, where right and wrong are the mean lengths of right and wrong
    completions.
  """
  by_prompt = lambda x_B: np.asarray(x_B, float).reshape(outcome_PG.shape)
  length_PG = by_prompt(length_B)
  mean = lambda part_PG: float(length_PG[part_PG].mean()) if part_PG.any() else float("nan")
  return {
      "no_answer": accuracy.interval(by_prompt([a is None for a in answers])),
      "truncated": accuracy.interval(by_prompt(
          np.asarray(finish_B) == records.FINISH.index("length"))),
      "length": accuracy.bootstrap_mean(length_PG.mean(axis=1)) | dict(
          quantiles=dict(zip(map(str, QUANTILES), np.quantile(length_B, QUANTILES).tolist())),
          right=mean(outcome_PG > 0.5), wrong=mean(outcome_PG <= 0.5))}
