"""How well a reward model ranks completions. Pure numpy, host side.

NaN is an unknown score: there are fewer candidates, or the model failed.
"""
import numpy as np
import numpy.typing as npt

from rlx.evals import accuracy


def pair_accuracy(chosen_N: npt.ArrayLike, rejected_N: npt.ArrayLike) -> float:
  """Share of pairs whose better completion has the higher score.

    acc = mean 1[r_chosen > r_rejected],  a tie is a loss

  Source: RewardBench, Lambert et al. 2024, arXiv:2403.13787. Differs from the paper:
  pairs without both scores are excluded.

  Args:
    chosen_N, rejected_N: scores.
  Returns:
    float, NaN without pairs.
  Example:
    >>> reward_model.pair_accuracy([2., 0., 1., 1., np.nan], [1., 1., 1., 0., 0.])
    0.5
  """
  chosen_N, rejected_N = np.asarray(chosen_N, float), np.asarray(rejected_N, float)
  known_N = ~np.isnan(chosen_N) & ~np.isnan(rejected_N)
  return accuracy.mean((chosen_N > rejected_N)[known_N])


def one_to_many(score_PG: npt.ArrayLike, right_PG: npt.ArrayLike) -> dict[str, float]:
  """How right completions of a prompt rank among wrong ones.

    accuracy = mean 1[min right > max wrong]
    mrr      = mean 1 / rank of the best right one; wrong ones of equal score rank first
    top      = mean share of right ones among those with the highest score

  Source: accuracy and mrr, RewardMATH, Kim et al. 2024, arXiv:2410.01729; top,
  RewardBench 2, Malik et al. 2025, arXiv:2506.01937, where one of four is right.
  Differs from the papers: prompts without a right or a wrong one are excluded.

  Args:
    score_PG: NaN where there is no candidate.
    right_PG: bool.
  Returns:
    dict(accuracy, mrr, top), NaN without prompts.
  Example:
    >>> reward_model.one_to_many([[3., 1., 2.], [2., 2., 0.]],
    ...                          [[True, False, False], [True, False, False]])
    {'accuracy': 0.5, 'mrr': 0.75, 'top': 0.75}
  """
  score_PG, right_PG = np.asarray(score_PG, float), np.asarray(right_PG, bool)
  known_PG = ~np.isnan(score_PG)
  highest = lambda part_PG: np.max(score_PG, axis=1, initial=-np.inf, where=part_PG)
  # +-inf if there are no right, or no wrong ones.
  best_P, wrong_P = highest(known_PG & right_PG), highest(known_PG & ~right_PG)
  least_P = np.min(score_PG, axis=1, initial=np.inf, where=known_PG & right_PG)
  has_P = np.isfinite(best_P) & np.isfinite(wrong_P)
  ahead_PG = ~right_PG & (score_PG >= best_P[:, None])
  is_top_PG = score_PG == np.maximum(best_P, wrong_P)[:, None]
  top_P = (is_top_PG & right_PG).sum(1) / np.maximum(is_top_PG.sum(1), 1)
  parts = dict(accuracy=least_P > wrong_P, mrr=1 / (1 + ahead_PG.sum(1)), top=top_P)
  return {name: accuracy.mean(value_P[has_P]) for name, value_P in parts.items()}


def consistency(better_N: npt.ArrayLike, group_N: npt.ArrayLike) -> float:
  """How often two wordings of a pair have the same better completion.

    consistency = mean over groups of the share of pairs of its rows with equal better_N

  Source: the idea of reWordBench, Wu et al. 2025, arXiv:2503.11751. Differs from the paper: it
  reports the accuracy that is left on reworded rows; this is agreement, whoever is right.

  Args:
    better_N: 1 if the first completion of a row is preferred, 0 if the second is, 1/2 for a tie;
      NaN is unknown.
    group_N: equal for the wordings of a pair.
  Returns:
    float, NaN unless a group has two known rows.
  Example:
    >>> reward_model.consistency([1., 1., 0., 1., .5, np.nan], [0, 0, 0, 1, 1, 1])
    0.1666...
  """
  better_N, group_N = np.asarray(better_N, float), np.asarray(group_N)
  shares = []
  for group in np.unique(group_N):
    known = better_N[(group_N == group) & ~np.isnan(better_N)]
    n, (_, counts) = len(known), np.unique(known, return_counts=True)
    if n > 1: shares.append(np.sum(counts * (counts - 1)) / (n * (n - 1)))
  return accuracy.mean(shares)


def contrast(score_NKK: npt.ArrayLike) -> dict[str, float]:
  """How often a reward model tells apart similar prompts with different right completions.

    response    = mean 1[r(x_i, y_i) > r(x_i, y_j)]     over pairs i != j of all sets
    instruction = mean 1[r(x_i, y_i) > r(x_j, y_i)]
    both        = mean 1[both of these],                a tie is a loss

  Source: contrast instructions, Shen et al. 2023, arXiv:2309.16155 (from memory, unverified).
  Differs from the paper: pairs (i, j) without all three scores are excluded, and sets may have
  more than two prompts; their pairs, not the sets, have the same weight.

  Args:
    score_NKK: r(x_i, y_j) in row i, column j, of N sets of K prompts, each with the completion
      that is right for it; NaN is unknown, or there are fewer prompts.
  Returns:
    dict(response, instruction, both), NaN without pairs.
  Raises:
    ValueError: the last two axes differ.
  Example:
    >>> reward_model.contrast([[[2., 1.], [3., 4.]]])
    {'response': 1.0, 'instruction': 0.5, 'both': 0.5}
  """
  score_NKK = np.asarray(score_NKK, float)
  if score_NKK.ndim != 3 or score_NKK.shape[1] != score_NKK.shape[2]:
    raise ValueError(f"score_NKK has the shape {score_NKK.shape}: [N, K, K], of each prompt with "
                     "each completion of its set.")
  own_NK1 = np.diagonal(score_NKK, axis1=1, axis2=2)[:, :, None]
  other_NKK = np.swapaxes(score_NKK, 1, 2)  # r(x_j, y_i)
  known_NKK = ~(np.isnan(own_NK1) | np.isnan(score_NKK) | np.isnan(other_NKK))
  known_NKK &= ~np.eye(score_NKK.shape[1], dtype=bool)[None]
  response_NKK, instruction_NKK = own_NK1 > score_NKK, own_NK1 > other_NKK
  parts = dict(response=response_NKK, instruction=instruction_NKK,
               both=response_NKK & instruction_NKK)
  return {name: accuracy.mean(value_NKK[known_NKK]) for name, value_NKK in parts.items()}


def implicit_gap(implicit: dict[str, tuple],
                 explicit: dict[str, tuple]) -> dict[str, dict[str, float]]:
  """How much less accurate an implicit reward model is than one with a head, by split.

    gap = acc_explicit - acc_implicit

  Source: Lin et al. 2024, arXiv:2409.03650: near 0 on the training distribution,
  above where prompts or completions shift. Differs from the paper: nothing known.

  Args:
    implicit: {split: (chosen_N, rejected_N)}, scores beta log pi / pi_ref.
    explicit: the same splits and pairs, scores of the head.
  Returns:
    {split: dict(implicit, explicit, gap)}.
  Example:
    >>> reward_model.implicit_gap({'test': ([1., 0.], [0., 1.])}, {'test': ([1., 2.], [0., 1.])})
    {'test': {'implicit': 0.5, 'explicit': 1.0, 'gap': 0.5}}
  """
  pairs = {split: (pair_accuracy(*implicit[split]), pair_accuracy(*explicit[split]))
           for split in implicit}
  return {split: dict(implicit=a, explicit=b, gap=b - a) for split, (a, b) in pairs.items()}


def tail_error(proxy_PG: npt.ArrayLike, gold_PG: npt.ArrayLike, *, best: int = 2) -> float:
  """Share of the pairs among a prompt's best completions that a proxy ranks wrongly.

    mean over pairs of the `best` highest proxy scores with gold_i > gold_j of
      1[proxy_i < proxy_j] + 1[proxy_i = proxy_j] / 2

  What is best is what the proxy takes for it, since this is where a policy that is optimised for
  the proxy goes.

  Source: Zhang et al. 2025, arXiv:2509.21500 (Chasing the Tail), which shows that errors among the
  completions of high reward decide over-optimisation. Differs from the paper: it states no such
  rate; this definition is ours.

  Args:
    proxy_PG, gold_PG: NaN where there is no completion or no score.
    best: at least 2; all completions that tie with the last of them count.
  Returns:
    float, NaN without pairs that the gold score tells apart.
  Raises:
    ValueError: best is below 2.
  Example:
    >>> reward_model.tail_error([[3., 2., 1., 0.]], [[0., 1., 2., 3.]])
    1.0
  """
  if best < 2: raise ValueError(f"best={best!r}: a pair needs at least 2.")
  proxy_PG, gold_PG = np.asarray(proxy_PG, float), np.asarray(gold_PG, float)
  known_PG = ~np.isnan(proxy_PG) & ~np.isnan(gold_PG)
  score_PG = np.where(known_PG, proxy_PG, -np.inf)
  least_P = np.sort(score_PG, axis=1)[:, -min(best, score_PG.shape[1])]
  is_best_PG = known_PG & (score_PG >= least_P[:, None])
  asked_PGG = (is_best_PG[:, :, None] & is_best_PG[:, None]
               & (gold_PG[:, :, None] > gold_PG[:, None]))
  wrong_PGG = ((score_PG[:, :, None] < score_PG[:, None])
               + (score_PG[:, :, None] == score_PG[:, None]) / 2)
  return accuracy.mean(wrong_PGG[asked_PGG])


def feature_rates(feature_NB: npt.ArrayLike, *, reference: int = 0) -> dict[str, list[float]]:
  """How often the completions of a run have a feature, by checkpoint, and how much more often.

    rate_n = mean_b f_nb,   rise_n = rate_n - rate_reference

  With a feature that a reward model has learned to like without a reason, a rise says that the
  policy games it; the run of a reward model without the feature says what would rise anyway.

  Source: Pang et al. 2022, arXiv:2211.08714 (Reward Gaming in Conditional Text Generation).
  Differs from the paper: the feature is any that the caller detects.

  Args:
    feature_NB: 1 or True with the feature, of B completions at each of N checkpoints; NaN: none.
    reference: the checkpoint to compare with, the start.
  Returns:
    dict(rate, rise), NaN of a checkpoint without completions.
  Example:
    >>> reward_model.feature_rates([[0, 0, 0, 1], [1, 1, 1, 0]])
    {'rate': [0.25, 0.75], 'rise': [0.0, 0.5]}
  """
  rates = [accuracy.mean(row_B[~np.isnan(row_B)]) for row_B in np.asarray(feature_NB, float)]
  return dict(rate=rates, rise=[rate - rates[reference] for rate in rates])


def fuse_nearest(score_N: npt.ArrayLike, features_ND: npt.ArrayLike, known_score_M: npt.ArrayLike,
                 known_MD: npt.ArrayLike, *, weight: float = 0.5) -> np.ndarray:
  """Mixes each score with that of the most similar example that a reward model learned.

    r_i = (1 - weight) s_i + weight s_m,   m = argmax_m cos(x_i, x_m)

  Two wordings of a completion have the same nearest example more often than the same score.

  Source: reward fusion of The Trickle-down Impact of Reward (In-)consistency on RLHF, Shen et al.
  2023, arXiv:2309.16155 (from memory, unverified). Differs from the paper: how the weight depends
  on the similarity is not stated in the sources at hand; it is constant.

  Args:
    score_N, known_score_M: scores of completions, and of examples of the training set; NaN is
      unknown, and an unknown example is left out.
    features_ND, known_MD: their features, such as sentence embeddings.
    weight: in [0, 1].
  Returns:
    score_N.
  Raises:
    ValueError: weight is outside [0, 1], or no example has a score.
  Example:
    >>> reward_model.fuse_nearest([1., 0.], [[1., 0.], [0., 1.]], [3., -1.], [[2., .1], [0., 1.]]
    ...                           ).tolist()
    [2.0, -0.5]
  """
  if not 0 <= weight <= 1: raise ValueError(f"weight={weight}: a number in [0, 1].")
  known_M = np.asarray(known_score_M, float)
  is_known_M = ~np.isnan(known_M)
  if not is_known_M.any(): raise ValueError("known_score_M: no example has a score.")
  unit = lambda x: x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-12)
  cosine_NM = unit(np.asarray(features_ND, float)) @ unit(np.asarray(known_MD, float))[is_known_M].T
  return ((1 - weight) * np.asarray(score_N, float)
          + weight * known_M[is_known_M][cosine_NM.argmax(axis=1)])
