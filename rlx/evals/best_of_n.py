"""Choosing among completions with an implicit PRM. Pure numpy, host side.

Free Process Rewards without Process Labels, Yuan et al. 2024, arXiv:2412.01981.
"""
import numpy as np

from rlx.evals import pass_at_k

AGGREGATES = ("min", "sum", "last")


def step_values(log_ratio_BT, mask_BT, ends_BJ, *, scale=1.0):
  """The PRM's value at the end of each step.

    Q_j = scale * sum over tokens up to the end of step j of the log-ratio

  Args:
    log_ratio_BT: log pi_phi - log pi_ref, or log pi_phi alone; anything on padding.
    mask_BT: bool, the tokens that count.
    ends_BJ: column of each step's last token, -1 where a row has fewer steps.
    scale: monotone; matters only to a sigmoid of the result.
  Returns:
    values_BJ, NaN where there is no step.
  """
  log_ratio_BT, ends_BJ = np.asarray(log_ratio_BT), np.asarray(ends_BJ)
  running_BT = scale * np.cumsum(np.where(mask_BT, log_ratio_BT, 0.0), axis=1)
  values_BJ = np.take_along_axis(running_BT, np.maximum(ends_BJ, 0), axis=1)
  return np.where(ends_BJ >= 0, values_BJ, np.nan)


def step_rewards(values_BJ):
  """r_j = Q_j - Q_{j-1}: what each step added. NaN where there is no step."""
  return np.diff(values_BJ, axis=1, prepend=0.0)


def score(steps_BJ, aggregate="min"):
  """One score per completion from its step rewards or values.

  Source: arXiv:2412.01981: the minimum over steps.

  Args:
    steps_BJ: NaN where there is no step.
    aggregate: min, sum, or last (the last step there is).
  Returns:
    score_B, -inf for a completion without steps.
  Raises:
    ValueError: unknown aggregate.
  """
  if aggregate not in AGGREGATES:
    raise ValueError(f"aggregate={aggregate!r}: one of {AGGREGATES}.")
  steps_BJ = np.asarray(steps_BJ)
  has_BJ = ~np.isnan(steps_BJ)
  if aggregate == "min":
    score_B = np.where(has_BJ, steps_BJ, np.inf).min(axis=1)
  elif aggregate == "sum":
    score_B = np.where(has_BJ, steps_BJ, 0.0).sum(axis=1)
  else:
    last_B = has_BJ.shape[1] - 1 - np.argmax(has_BJ[:, ::-1], axis=1)
    score_B = np.take_along_axis(steps_BJ, last_B[:, None], axis=1)[:, 0]
  return np.where(has_BJ.any(axis=1), score_B, -np.inf)


def best_of_n(score_PG, outcome_PG):
  """Share of prompts whose completion of highest score is right.

  Ties go to the first. A prompt whose chosen completion has no known verdict
  is left out.

  Args:
    score_PG: NaN and -inf are never chosen while there is another.
    outcome_PG: verdicts; right means > 1/2.
  Returns:
    float, NaN if nothing is known.
  """
  score_PG = np.where(np.isnan(score_PG), -np.inf, score_PG)
  chosen_P = np.take_along_axis(
      np.asarray(outcome_PG), np.argmax(score_PG, axis=1)[:, None], axis=1)[:, 0]
  known_P = ~np.isnan(chosen_P)
  return float(np.mean(chosen_P[known_P] > 0.5)) if known_P.any() else float("nan")


def weighted_majority(answers, score_G):
  """The answer whose completions have the largest sum of sigmoid(score).

  Source: arXiv:2412.01981. Args: as `pass_at_k.majority`.
  """
  score_G = np.asarray(score_G, float)
  return pass_at_k.majority(answers, 1 / (1 + np.exp(-score_G)))


def first_error(steps, threshold):
  """Index of the first step with sigmoid(step) < threshold, -1 if there is none."""
  below = 1 / (1 + np.exp(-np.asarray(steps, float))) < threshold
  return int(np.argmax(below)) if below.any() else -1


def error_threshold(steps, labels, *, count=2001):
  """The threshold that finds first errors best.

    F1 = 2 a b / (a + b)    a, b = share of solutions with an error, and without
                            one, for which `first_error` is right

  Source: ProcessBench, Zheng et al. 2024, arXiv:2412.06559, with
  the sigmoid of the code of arXiv:2412.01981.

  Args:
    steps: per solution a list of step values.
    labels: index of the first wrong step, -1 for none.
    count: thresholds tried, evenly from 0 to 1; the first of the best wins.
  Returns:
    (threshold, F1).
  """
  labels = np.asarray(labels)
  best = (0.0, -1.0)
  for threshold in np.linspace(0, 1, count):
    right = np.array([first_error(s, threshold) for s in steps]) == labels
    a, b = (float(right[part].mean()) if part.any() else 0.0
            for part in (labels != -1, labels == -1))
    f1 = 2 * a * b / (a + b) if a + b else 0.0
    if f1 > best[1]: best = (float(threshold), f1)
  return best
