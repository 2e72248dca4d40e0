"""Choosing among completions with two scorers, a cheap and a dear one. Pure numpy, host side."""
import math

import numpy as np
import numpy.typing as npt

from rlx.evals import accuracy


def prune_and_rank(cheap_PG: npt.ArrayLike, dear_PG: npt.ArrayLike, outcome_PG: npt.ArrayLike, *,
                   keep: int | None = None, least: float = -math.inf,
                   cost: float = 0.0) -> dict[str, dict[str, float] | float]:
  """How often the choice is right if a cheap scorer prunes and a dear one ranks the rest.

    kept  = completions with cheap >= least, at most the `keep` with the highest; always the highest
    c*    = argmax of dear over kept
    calls = mean over prompts of the number kept
    speed = G / (G cost + calls): how many times less is spent than by ranking all G

  Calls with several `keep` or `least` give the accuracy against the calls. With `least`, the cheap
  scorer is a weak verifier, such as whether a program passes its first test.

  Source: generate, prune, then rank, Orlanski et al. 2025, arXiv:2506.10056. Differs from the
  paper: it measures programs per second, here calls are counted, weighted by `cost`; that the
  completion with the highest cheap score is never pruned, and `keep`, are ours.

  Args:
    cheap_PG, dear_PG: scores; NaN counts as -inf. Of equal ones the first completion is first.
    outcome_PG: verdicts; right means > 1/2, NaN is unknown.
    keep: how many completions of a prompt the dear scorer sees at most; None: all.
    least: the lowest cheap score that is kept.
    cost: of a call of the cheap scorer, in calls of the dear one.
  Returns:
    dict(accuracy, cheap, dear: as `accuracy.interval`, of both scorers in sequence and of each
    alone; calls, per prompt; speed).
  Raises:
    ValueError: keep < 1; shapes differ.
  Example:
    >>> got = pruning.prune_and_rank(cheap_PG=[[.1, .9, .8]], dear_PG=[[9., 2., 3.]],
    ...                              outcome_PG=[[0., 0., 1.]], keep=2)
    >>> rows = map(got.get, ("accuracy", "cheap", "dear"))
    >>> [row["mean"] for row in rows], got["calls"], got["speed"]
    ([1.0, 0.0, 0.0], 2.0, 1.5)
  """
  cheap_PG, dear_PG = (np.where(np.isnan(x_PG), -np.inf, x_PG) for x_PG in (
      np.asarray(cheap_PG, float), np.asarray(dear_PG, float)))
  outcome_PG = np.asarray(outcome_PG, float)
  if not cheap_PG.shape == dear_PG.shape == outcome_PG.shape:
    raise ValueError(f"cheap_PG, dear_PG and outcome_PG have shapes {cheap_PG.shape}, "
                     f"{dear_PG.shape} and {outcome_PG.shape}: give one of each per completion.")
  if keep is not None and keep < 1: raise ValueError(f"keep={keep} must be >= 1, or None.")
  rank_PG = np.argsort(np.argsort(-cheap_PG, axis=1, kind="stable"), axis=1)
  is_kept_PG = ((cheap_PG >= least) | (rank_PG == 0)) & (
      rank_PG < (cheap_PG.shape[1] if keep is None else keep))
  # Ranks of the dear score, so that one of -inf still goes before what is pruned.
  dear_rank_PG = np.argsort(np.argsort(-dear_PG, axis=1, kind="stable"), axis=1)
  def measure(order_PG):  # The lowest is chosen.
    chosen_P1 = np.take_along_axis(outcome_PG, order_PG.argmin(axis=1)[:, None], axis=1)
    return accuracy.interval(np.where(np.isnan(chosen_P1), np.nan, chosen_P1 > 0.5))
  calls, group = accuracy.mean(is_kept_PG.sum(axis=1)), cheap_PG.shape[1]
  return dict(accuracy=measure(np.where(is_kept_PG, dear_rank_PG, group)),
              cheap=measure(rank_PG), dear=measure(dear_rank_PG), calls=calls,
              speed=group / (group * cost + calls))
