"""Which prompts a policy can solve after training and before it. Pure numpy, host side."""
import numpy as np
import numpy.typing as npt

from rlx.evals import accuracy, pass_at_k


def compare_support(before_PG: npt.ArrayLike, after_PG: npt.ArrayLike,
                    k: int) -> dict[str, dict[str, float]]:
  """Shares of prompts whose right answers training keeps, gains and loses, at k completions.

    preserved P = sum_p b_p a_p        lost    S = sum_p b_p (1 - a_p)      b_p, a_p: pass@k of a
    gained    E = sum_p (1 - b_p) a_p  outside O = sum_p (1 - b_p)(1 - a_p) prompt before and after

    retention = P / (P + S)   of what was solved before, still is (SRR of the paper)
    discovery = E / (P + E)   of what is solved after, was not before (NDR)
    dynamic   = 2 P E / (P^2 + 2 P E + E S), the harmonic mean of these two (SDS)
    change    = (E - S) / (P + E + S)   (NSCR)

  The support of a policy is what it finds with many completions, so k is to be large. With k
  completions per prompt each b and a is 0 or 1, and the sums are counts of prompts.

  Source: Wu et al. 2025, The Invisible Leash, arXiv:2507.14843, definition 3.3. Differs from the
  paper: it defines the counts over right completions with a probability above a threshold; here
  the unit is a prompt, solved if one of k completions is right. With more than k completions the
  counts are expected ones, over independent sets of k before and after.

  Args:
    before_PG, after_PG: verdicts on the same prompts; right means > 1/2, NaN is unknown. The
      numbers of completions may differ.
    k: >= 1. Prompts with fewer known verdicts, before or after, are left out.
  Returns:
    {"preserved", "gained", "lost", "outside", as shares of the prompts, and the four metrics:
    as `accuracy.bootstrap`}; a metric without a denominator is NaN.
  Raises:
    ValueError: different numbers of prompts; k < 1.
  Example:
    >>> before_PG = [[1., 0.], [0., 1.], [0., 0.], [0., 0.]]
    >>> got = support.compare_support(before_PG, [[1., 1.], [0., 0.], [0., 1.], [0., 0.]], k=2)
    >>> {name: x["mean"] for name, x in got.items()}
    {'preserved': 0.25, 'gained': 0.25, ... 'retention': 0.5, 'discovery': 0.5, ... 'change': 0.0}
  """
  b_P, a_P = (pass_at_k.estimate_each(x_PG, k) for x_PG in (before_PG, after_PG))
  if len(b_P) != len(a_P):
    raise ValueError(f"{len(b_P)} prompts before and {len(a_P)} after: give the same prompts.")
  known_P = ~np.isnan(b_P + a_P)
  b_P, a_P = b_P[known_P], a_P[known_P]
  parts_4P = np.stack([b_P * a_P, (1 - b_P) * a_P, b_P * (1 - a_P), (1 - b_P) * (1 - a_P)])
  names = _measure(np.ones(4))
  return {name: accuracy.bootstrap(lambda chosen: _measure(parts_4P[:, chosen].sum(axis=1))[name],
                                   len(b_P)) for name in names}


def _measure(parts_4):
  p, e, s, o = map(float, parts_4)
  ratio = lambda part, whole: part / whole if whole else float("nan")
  return dict(preserved=ratio(p, p + e + s + o), gained=ratio(e, p + e + s + o),
              lost=ratio(s, p + e + s + o), outside=ratio(o, p + e + s + o),
              retention=ratio(p, p + s), discovery=ratio(e, p + e),
              dynamic=ratio(2 * p * e, p * p + 2 * p * e + e * s), change=ratio(e - s, p + e + s))
