"""Selects the completions of each group that are trained on. Runs on the host, with numpy.

Each function reads fields of `records.Batch` and returns keep_PG, bool. A completion
that is not selected stays in the batch without a verdict: its advantage is 0, no
baseline includes it, and the PRM is not trained on it.
"""
from typing import Literal

import numpy as np

from rlx.core import ranges, records


def everything(learn_PG: np.ndarray) -> np.ndarray:
  """Selects every completion."""
  return np.ones(learn_PG.shape, bool)


def truncated(finish_PG: np.ndarray) -> np.ndarray:
  """DAPO's overlong filtering: completions that were cut at the length limit do not learn.

    keep_i = (finish_i != length)

  A truncated completion counts as wrong, although its reasoning so far may be right.

  Source: Yu et al. 2025, arXiv:2503.14476, section 3.4. Differs from the paper: it masks
  their loss alone, here baselines and the PRM's examples exclude
  them as well.

  Args:
    finish_PG: index into records.FINISH.
  """
  return np.asarray(finish_PG) != records.FINISH.index("length")


def prof(outcome_PG: np.ndarray, scores_PG: np.ndarray, learn_PG: np.ndarray, *,
         count: ranges.Count, side: Literal["both", "right"] = "both") -> np.ndarray:
  """PROF: of right completions those scored highest, of wrong ones lowest.

    k_right = min(max(ceil(count / 2), count - n_wrong), n_right),  k_wrong = count - k_right

  so that right and wrong ones are as equal in number as the group allows. A high score of
  a wrong answer, or a low one of a right answer, suggests a wrong step or verdict.

  Source: Ye et al. 2025, arXiv:2509.03403. Differs from the paper: scores are those of
  the first verifier in verifier.scores, its are means of a PRM over steps; how many
  of each it drops follows the summary of the paper.

  Args:
    outcome_PG: verdicts, right above 1/2.
    scores_PG: anything where learn_PG is False.
    learn_PG: bool; others are left out.
    count: completions selected of each group.
    side: both, or right: the first wrong ones are taken, their scores are not read.
  Raises:
    ValueError: count is more than G.
  """
  outcome_PG, scores_PG, learn_PG = map(np.asarray, (outcome_PG, scores_PG, learn_PG))
  if count > learn_PG.shape[1]:
    raise ValueError(f"count={count!r}: at most rollouts.per_prompt={learn_PG.shape[1]}.")
  right_PG, wrong_PG = learn_PG & (outcome_PG > 0.5), learn_PG & ~(outcome_PG > 0.5)
  n_right_P, n_wrong_P = right_PG.sum(axis=1), wrong_PG.sum(axis=1)
  k_right_P = np.clip(-(-count // 2), count - n_wrong_P, n_right_P)
  order_PG = scores_PG if side == "both" else np.zeros_like(scores_PG)
  return (_lowest(-scores_PG, right_PG, k_right_P) | _lowest(order_PG, wrong_PG, count - k_right_P))


def prof_steps(outcome_PG: np.ndarray, step_scores_BT: np.ndarray, step_ends_BT: np.ndarray,
               learn_PG: np.ndarray, *, count: ranges.Count,
               side: Literal["both", "right"] = "both") -> np.ndarray:
  """`prof` by the mean score of a completion's steps, as in the paper.

  Source: Ye et al. 2025, arXiv:2509.03403. Differs from the paper: as `prof`; a completion
  without a step has the score 0.

  Arguments that are not listed are those of `prof`.

  Args:
    step_scores_BT: of verifier.steps, on the last token of each step; NaN is left out.
    step_ends_BT: bool.
  """
  is_known_BT = np.asarray(step_ends_BT) & ~np.isnan(step_scores_BT)
  total_B = np.sum(np.where(is_known_BT, step_scores_BT, 0), axis=1)
  mean_B = total_B / np.maximum(is_known_BT.sum(axis=1), 1)
  return prof(outcome_PG, mean_B.reshape(np.shape(learn_PG)), learn_PG, count=count, side=side)


def superior(outcome_PG: np.ndarray, pair_PG: np.ndarray, bare_PG: np.ndarray,
             learn_PG: np.ndarray) -> np.ndarray:
  """RAIF: only completions whose reasoning gains something over an answer without any.

    keep_i = 1[o_i >= mean_j o'_j]    o' the verdicts of the same question asked without reasoning

  Reasoning that only repeats the question makes answers worse; what is not better than an answer at
  once does not learn. Completions without reasoning are a measure and do not learn, either. Without
  a known o' all are kept.

  Source: Qin et al. 2025, arXiv:2506.01413, with its released code (yuleiqin/RAIF,
  openrlhf/trainer/ppo_utils/experience_maker.py, enforce_superior_CoT). Differs from the code:
  there the verdict without reasoning is stored once, of the initial policy, and a quarter of the
  group is sampled without reasoning and learns by the same rule; masked completions still count in
  the group's mean.

  Args:
    outcome_PG: verdicts.
    pair_PG: int, the same in a row: which row asks the same question in the other way.
    bare_PG: 1 in rows that ask for an answer without reasoning.
    learn_PG: bool; others are left out.
  """
  outcome_PG, bare_PG, learn_PG = map(np.asarray, (outcome_PG, bare_PG, learn_PG))
  other_P = np.asarray(pair_PG)[:, 0]
  total_P = np.where(learn_PG, outcome_PG, 0).sum(axis=1)
  mean_P = np.where(learn_PG.any(axis=1), total_P / np.maximum(learn_PG.sum(axis=1), 1), -np.inf)
  # Verdicts are float32: a mean of equal ones may be a bit above them.
  return learn_PG & (bare_PG < 0.5) & (outcome_PG >= mean_P[other_P][:, None] - 1e-6)


def extremes(scores_PG: np.ndarray, learn_PG: np.ndarray, *,
             kind: Literal["best_worst", "best_random", "best"] = "best_worst") -> np.ndarray:
  """PF-PPO: only the completions whose score can be relied on, the extreme ones.

    keep argmax_i s_i and, best_worst: argmin_i s_i, best_random: one of the others

  Source: Shen and Zhang 2024, arXiv:2409.06957. Differs from the paper: each is kept
  once, the paper samples as many as before, by weight and with replacement (0.4 for
  the best and 0.1 for others in best_random); the one at random is the first
  in order, completions being drawn independently.

  Args:
    scores_PG: anything where learn_PG is False.
    learn_PG: bool; others are left out.
    kind: best_worst, best_random or best.
  """
  scores_PG, learn_PG = map(np.asarray, (scores_PG, learn_PG))
  ones_P = np.ones(len(scores_PG), int)
  best_PG = _lowest(-scores_PG, learn_PG, ones_P)
  if kind == "best": return best_PG
  order_PG = scores_PG if kind == "best_worst" else np.zeros_like(scores_PG)
  return best_PG | _lowest(order_PG, learn_PG & ~best_PG, ones_P)


def agreed(std_scores_PG: np.ndarray, learn_PG: np.ndarray, *,
           most: ranges.NotNegative) -> np.ndarray:
  """Only completions on whose score an ensemble agrees.

    keep_i = std_e s_ie <= most

  Scorers of different seeds differ most where none has seen anything like the completion, which
  is where a policy learns to exploit one of them (arXiv:2310.02743). Our own form of it: the
  paper subtracts the variance from the reward (shaping.ensemble with kind=uwo).

  Args:
    std_scores_PG: of the scores in verifier.scores; anything where learn_PG is False.
    learn_PG: bool; others are left out.
    most: in units of the score.
  """
  return np.asarray(learn_PG) & (np.asarray(std_scores_PG) <= most)


def derived(derived_PG: np.ndarray) -> np.ndarray:
  """Only completions of prompts about other completions (prompts.derived).

  The completions that they are about are drafts: nothing is learned from them.

  Source: Hatamizadeh et al. 2026, arXiv:2602.09000. Differs from the paper: a draft may also be
  one that is asked to be judged.
  """
  return np.asarray(derived_PG)


def _lowest(values_PG, mask_PG, count_P):
  """The count_P lowest masked values of each row, the first of equal ones."""
  order_PG = np.argsort(np.where(mask_PG, values_PG, np.inf), axis=1, kind="stable")
  rank_PG = np.argsort(order_PG, axis=1, kind="stable")
  return mask_PG & (rank_PG < count_P[:, None])
