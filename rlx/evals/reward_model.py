"""How well a reward model ranks, and how much it tells apart. Pure numpy, host side.

NaN is a score that is not there: fewer candidates, or a model that failed.
"""
import numpy as np


def pair_accuracy(chosen_N, rejected_N):
  """Share of pairs whose better completion has the higher score.

    acc = mean 1[r_chosen > r_rejected],  a tie is a loss

  Source: RewardBench, Lambert et al. 2024, arXiv:2403.13787. Differs from the paper:
  pairs without both scores are left out.

  Args:
    chosen_N, rejected_N: scores.
  Returns:
    float, NaN without pairs.
  """
  chosen_N, rejected_N = np.asarray(chosen_N, float), np.asarray(rejected_N, float)
  known_N = ~np.isnan(chosen_N) & ~np.isnan(rejected_N)
  return _mean((chosen_N > rejected_N)[known_N])


def one_to_many(score_PG, right_PG):
  """Right against wrong completions of a prompt, all at once.

    accuracy = mean 1[min right > max wrong]
    mrr      = mean 1 / rank of the best right one; equal wrong ones rank before it
    top      = mean share of right ones among those of the highest score

  Source: accuracy and mrr, RewardMATH, Kim et al. 2024, arXiv:2410.01729; top,
  RewardBench 2, Malik et al. 2025, arXiv:2506.01937, where one of four is right.
  Differs from the papers: prompts without a right or a wrong one are left out.

  Args:
    score_PG: NaN = no candidate.
    right_PG: bool.
  Returns:
    dict(accuracy, mrr, top), NaN without prompts.
  """
  score_PG, right_PG = np.asarray(score_PG, float), np.asarray(right_PG, bool)
  least_P, best_P, wrong_P = _extremes(score_PG, right_PG)
  has_P = np.isfinite(best_P) & np.isfinite(wrong_P)
  ahead_PG = ~right_PG & (score_PG >= best_P[:, None])
  is_top_PG = score_PG == np.maximum(best_P, wrong_P)[:, None]
  top_P = (is_top_PG & right_PG).sum(1) / np.maximum(is_top_PG.sum(1), 1)
  return dict(accuracy=_mean((least_P > wrong_P)[has_P]),
              mrr=_mean((1 / (1 + ahead_PG.sum(1)))[has_P]), top=_mean(top_P[has_P]))


def ties(ref_PG, ref_right_PG, tied_PG, tied_right_PG):
  """Whether equally right answers score alike, and above the wrong ones.

    gap = min right - max wrong,   spread = max right - min right (of tied)
    score = 0.3 P(gap_tied > 0) + 0.3 P(gap_ref > 0) + 0.2 P(gap_tied > spread)
            + 0.2 P(least > spread) + 0.01 mean tanh(least / spread - 1)
    least = min(gap_ref, gap_tied)

  Source: the Ties subset of RewardBench 2, Malik et al. 2025, arXiv:2506.01937, as
  in process_single_model of the released code, whose highest value is 1.01.
  Differs from the paper: nothing known; 0 / 0 counts 0 there, too.

  Args:
    ref_PG: scores for prompts with one right answer; NaN = no candidate.
    ref_right_PG: bool.
    tied_PG, tied_right_PG: row p is the same prompt with several right answers.
  Returns:
    dict(score, ref, tied, preferred, preferred_hard, margin); NaN without prompts.
  Raises:
    ValueError: a prompt without a right or without a wrong answer.
  """
  least_P, best_P, wrong_P = _extremes(
      np.asarray(tied_PG, float), np.asarray(tied_right_PG, bool))
  ref_P, _, ref_wrong_P = _extremes(
      np.asarray(ref_PG, float), np.asarray(ref_right_PG, bool))
  if not np.isfinite([least_P, wrong_P, ref_P, ref_wrong_P]).all():
    raise ValueError("Every prompt needs a right and a wrong answer with a score.")
  spread_P, tied_P, ref_P = best_P - least_P, least_P - wrong_P, ref_P - ref_wrong_P
  gap_P = np.minimum(ref_P, tied_P)
  with np.errstate(divide="ignore", invalid="ignore"):
    margin_P = np.nan_to_num(np.tanh(gap_P / spread_P - 1))
  parts = dict(ref=_mean(ref_P > 0), tied=_mean(tied_P > 0),
               preferred=_mean(tied_P > spread_P),
               preferred_hard=_mean(gap_P > spread_P), margin=_mean(margin_P))
  weights = dict(ref=0.3, tied=0.3, preferred=0.2, preferred_hard=0.2, margin=0.01)
  return dict(parts, score=sum(w * parts[k] for k, w in weights.items()))


def section_means(accuracy, counts, sections):
  """Accuracy of subsets -> of sections -> one number.

    section = sum n_s acc_s / sum n_s over its subsets,   mean = mean over sections

  Source: RewardBench, Lambert et al. 2024, arXiv:2403.13787. Differs from the paper:
  nothing known; its counts are not all numbers of pairs (math-prm is given the weight
  of all code subsets), so they are an argument.

  Args:
    accuracy: {subset: float}.
    counts: {subset: weight in its section}.
    sections: {section: list of subsets}.
  Returns:
    {section: float}, and under "mean" their mean.
  """
  means = {name: float(np.average([accuracy[s] for s in subsets],
                                  weights=[counts[s] for s in subsets]))
           for name, subsets in sections.items()}
  return dict(means, mean=_mean(list(means.values())))


def implicit_gap(implicit, explicit):
  """What an implicit reward model loses against one with a head, split by split.

    gap = acc_explicit - acc_implicit

  Source: Lin et al. 2024, arXiv:2409.03650: near 0 on the training distribution,
  above where prompts or completions shift. Differs from the paper: nothing known.

  Args:
    implicit: {split: (chosen_N, rejected_N)}, scores beta log pi / pi_ref.
    explicit: the same splits and pairs, scores of the head.
  Returns:
    {split: dict(implicit, explicit, gap)}.
  """
  found = {}
  for split in implicit:
    low, high = pair_accuracy(*implicit[split]), pair_accuracy(*explicit[split])
    found[split] = dict(implicit=low, explicit=high, gap=high - low)
  return found


def group_variance(reward_PG):
  """How far a reward model tells apart what the policy samples.

    mean over prompts of Var_{y ~ pi} r(x, y),  unbiased

  Source: Razin et al. 2025, arXiv:2503.15477: the flatter, the slower the policy
  learns, however accurate the reward model. Differs from the paper: estimated from
  G completions; a prompt with fewer than two known rewards is left out.

  Args:
    reward_PG: NaN = unknown.
  Returns:
    float in squared reward units, NaN if no prompt has two.
  """
  reward_PG = np.asarray(reward_PG, float)
  known_P = (~np.isnan(reward_PG)).sum(axis=1) >= 2
  return _mean(np.nanvar(reward_PG[known_P], axis=1, ddof=1))


def _extremes(score_PG, right_PG):
  """Lowest and highest score of right, highest of wrong ones; +-inf without any."""
  known_PG = ~np.isnan(score_PG)
  highest = lambda part_PG: np.max(score_PG, axis=1, initial=-np.inf, where=part_PG)
  return (np.min(score_PG, axis=1, initial=np.inf, where=known_PG & right_PG),
          highest(known_PG & right_PG), highest(known_PG & ~right_PG))


def _mean(x): return float(np.mean(x)) if len(x) else float("nan")
