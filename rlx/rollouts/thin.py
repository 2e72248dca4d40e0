"""Which completions of a group learn. Host side, numpy.

Each function reads fields of `records.Scored` and returns keep_PG, bool. A
completion that is left out stays in the batch without a verdict: it has no
advantage, is nobody's baseline and no example for the PRM.
"""
import numpy as np

from rlx.core import ranges
from rlx.core import records

KINDS = ("best_worst", "best_random", "best")


def nothing(outcome_PG):
  """Leaves none out."""
  return np.ones(outcome_PG.shape, bool)


def truncated(finish_PG):
  """DAPO's overlong filtering: completions that were cut at the length limit do not learn.

    keep_i = (finish_i != length)

  Being cut says nothing about the reasoning so far, yet such a completion counts as wrong.

  Source: Yu et al. 2025, arXiv:2503.14476, section 3.4. Differs from the paper: it masks
  their loss alone, here they are nobody's baseline either, nor an example for the PRM.

  Args:
    finish_PG: index into records.FINISH.
  """
  return np.asarray(finish_PG) != records.FINISH.index("length")


def prof(outcome_PG, scores_PG, learn_PG, *, keep: ranges.COUNT, side="both"):
  """PROF: of right completions those scored highest, of wrong ones lowest.

    keep k_right = min(max(ceil(keep / 2), keep - n_wrong), n_right) and keep - k_right

  so that both are as even in number as the group allows. A good score for
  a wrong answer, or a bad one for a right answer, is a sign of a wrong step or verdict.

  Source: Ye et al. 2025, arXiv:2509.03403. Differs from the paper: scores are those of
  the first verifier in verifier.scores, its are means of a PRM over steps; how
  many of each it drops is read off its summary.

  Args:
    outcome_PG: verdicts, right above 1/2.
    scores_PG: anything where learn_PG is False.
    learn_PG: bool; others are left out.
    keep: completions kept of each group.
    side: both, or right: wrong ones are taken as they come, scores unread.
  Raises:
    ValueError: keep is more than G, or an unknown side.
  """
  outcome_PG, scores_PG, learn_PG = map(np.asarray, (outcome_PG, scores_PG, learn_PG))
  if keep > learn_PG.shape[1]:
    raise ValueError(f"keep={keep!r}: at most rollouts.per_prompt={learn_PG.shape[1]}.")
  if side not in ("both", "right"):
    raise ValueError(f"side={side!r}: both or right.")
  right_PG, wrong_PG = learn_PG & (outcome_PG > 0.5), learn_PG & ~(outcome_PG > 0.5)
  n_right_P, n_wrong_P = right_PG.sum(axis=1), wrong_PG.sum(axis=1)
  k_right_P = np.clip(-(-keep // 2), keep - n_wrong_P, n_right_P)
  order_PG = scores_PG if side == "both" else np.zeros_like(scores_PG)
  return (_lowest(-scores_PG, right_PG, k_right_P)
          | _lowest(order_PG, wrong_PG, keep - k_right_P))


def extremes(scores_PG, learn_PG, *, kind="best_worst"):
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
  Raises:
    ValueError: an unknown kind.
  """
  scores_PG, learn_PG = map(np.asarray, (scores_PG, learn_PG))
  if kind not in KINDS: raise ValueError(f"kind={kind!r}: one of {KINDS}.")
  ones_P = np.ones(len(scores_PG), int)
  best_PG = _lowest(-scores_PG, learn_PG, ones_P)
  if kind == "best": return best_PG
  order_PG = scores_PG if kind == "best_worst" else np.zeros_like(scores_PG)
  return best_PG | _lowest(order_PG, learn_PG & ~best_PG, ones_P)


def _lowest(values_PG, mask_PG, count_P):
  """The count_P lowest masked values of each row, the first of equal ones."""
  order_PG = np.argsort(np.where(mask_PG, values_PG, np.inf), axis=1, kind="stable")
  rank_PG = np.argsort(order_PG, axis=1, kind="stable")
  return mask_PG & (rank_PG < count_P[:, None])
