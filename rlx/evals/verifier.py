"""Errors of a verifier. Pure numpy, host side."""
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING: from rlx.core import records

# Zhao et al. 2025, arXiv:2507.08794: texts without content that LLM judges accepted as right
# answers: symbols, openers, and "solution" in other languages. Blank, comma, "解" and "Respuesta"
# could not be checked against the paper's table.
MASTER_KEYS = (" ", ".", ",", ":", "Thought process:", "Let's solve this problem step by step.",
               "Solution", "解", "かいせつ", "Respuesta")


def report(verdict_N: npt.ArrayLike, label_N: npt.ArrayLike,
           strata_N: npt.ArrayLike | None = None) -> dict[str, dict[str, float]]:
  """Metrics of a verifier's confusion matrix, of all rows and by stratum.

    precision = TP / (TP + FP)      fpr = FP / (FP + TN)      f1 = 2 TP / (2 TP + FP + FN)
    recall    = TP / (TP + FN)      fnr = FN / (FN + TP)      youden = recall - fpr

  Source: the classification metrics of VerifyBench, Yan et al. 2025,
  arXiv:2505.15801, VerifyBench, Li et al. 2025, arXiv:2507.09884, and Huang et al.
  2025, arXiv:2505.22203. Differs from the papers: an unknown verdict is not an error; it
  is counted separately.

  Args:
    verdict_N: right means > 1/2; NaN = could not tell.
    label_N: the true verdicts; all known.
    strata_N: the stratum of each row, such as its domain; None: all rows only.
  Returns:
    {stratum: dict(count, unknown, accuracy, precision, recall, f1, fpr, fnr, youden)}
    with "all" first; a ratio without cases is NaN, `unknown` is a share.
  Example:
    >>> counts = verifier.report([1., 1., 1., 0., 0., np.nan], [1., 1., 0., 1., 0., 1.])['all']
    >>> counts['accuracy'], counts['fpr'], counts['count']
    (0.6, 0.5, 6)
  """
  verdict_N, label_N = np.asarray(verdict_N, float), np.asarray(label_N, float) > 0.5
  parts = {"all": np.ones(len(verdict_N), bool)}
  if strata_N is not None:
    parts |= {s: np.asarray(strata_N) == s for s in np.unique(strata_N).tolist()}
  return {name: _metrics(verdict_N[part_N], label_N[part_N]) for name, part_N in parts.items()}


def false_positive_rates(verify: Callable, prompts: Sequence["records.Prompt"],
                         texts: Sequence[str] = MASTER_KEYS) -> dict[str, float]:
  """How often a verifier accepts texts that contain no answer.

    rate(text) = share of prompts with verdict > 1/2, of those with a verdict

  Source: the master keys of Zhao et al. 2025, arXiv:2507.08794; other texts that
  deceived verifiers are in Huang et al. 2025, arXiv:2505.22203. Differs from the
  papers: unknown verdicts are neither acceptances nor rejections.

  Args:
    verify: (prompts, texts) -> verdicts, as `verifiers.pool.Pool.verify`.
    prompts: list of Prompt.
    texts: each is verified as the completion of every prompt.
  Returns:
    {text: rate}, NaN where no verdict is known.
  Example:
    >>> verdicts = {':': [1., 0.], '.': [0., np.nan]}
    >>> verifier.false_positive_rates(lambda prompts, texts: verdicts[texts[0]], [None] * 2,
    ...                               [':', '.'])
    {':': 0.5, '.': 0.0}
  """
  rates = {}
  for text in texts:
    verdict_P = np.asarray(verify(prompts, [text] * len(prompts)), float)
    rates[text] = _ratio(np.sum(verdict_P > 0.5), np.sum(~np.isnan(verdict_P)))
  return rates


def _metrics(verdict_N, label_N):
  known_N = ~np.isnan(verdict_N)
  said_N, is_N = verdict_N[known_N] > 0.5, label_N[known_N]
  tp, fp = np.sum(said_N & is_N), np.sum(said_N & ~is_N)
  fn, tn = np.sum(~said_N & is_N), np.sum(~said_N & ~is_N)
  recall, fpr = _ratio(tp, tp + fn), _ratio(fp, fp + tn)
  return dict(count=len(verdict_N), unknown=_ratio(np.sum(~known_N), len(verdict_N)),
              accuracy=_ratio(tp + tn, len(said_N)), precision=_ratio(tp, tp + fp),
              recall=recall, f1=_ratio(2 * tp, 2 * tp + fp + fn), fpr=fpr,
              fnr=_ratio(fn, fn + tp), youden=recall - fpr)


def _ratio(part, whole): return float(part / whole) if whole else np.nan
