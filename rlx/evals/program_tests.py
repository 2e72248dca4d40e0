"""How well the tests of programming problems tell wrong programs. Pure numpy, host side."""
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from rlx.evals import accuracy


def measure_suite(passes_NT: npt.ArrayLike, right_N: npt.ArrayLike) -> dict[str, float]:
  """Metrics of the tests of one problem, from which programs pass which test.

    x_wt              1 if the wrong program w fails test t, else 0
    detection         mean_w max_t x_wt: share of wrong programs that fail a test (DR of the paper)
    verifier_accuracy 1 if all of them do, else 0 (VAcc)
    auc               area under verifier_accuracy of the first k tests, k = 1..T, by trapezoids,
                      divided by T - 1; with one test, verifier_accuracy (AUC-AccN)
    single            mean_wt x_wt: how often a single test detects a wrong program (p)
    patterns          number of different columns of x that are not all 0 (DEPC)
    diversity         patterns / T
    correlation       rho = mean_{s != t} Cov(x_s, x_t) / mean_t Var(x_t) over wrong programs
    effective         T / (1 + (T - 1) rho): how many independent tests detect as much
    accepted          share of right programs that pass all tests

  Tests that fail together add little: with independent ones, detection would be about
  1 - (1 - p)^T, and with correlated ones it is about 1 - (1 - p)^effective.

  Source: Ma et al. 2025, arXiv:2507.06920, section 2. Differs from the paper: it does not say how
  rho is averaged; here covariances and variances are averaged first, so that a test that all wrong
  programs pass has a rho. `accepted` is ours: a suite that rejects all programs detects all.

  Args:
    passes_NT: 1 if a program passes a test, else 0, as a row of `code_tests.tests`. The order of
      tests matters for auc alone.
    right_N: 1 for a program that is known to be right, else 0.
  Returns:
    {name: value}; NaN where there are no wrong (or right) programs, correlation also where wrong
    programs do not differ in any test or there is one test, effective where rho is -1 / (T - 1).
  Raises:
    ValueError: no test; a value that is not 0 or 1; not one label for each program.
  Example:
    >>> passes_NT = [[1, 0, 0], [0, 1, 1], [1, 1, 1], [1, 1, 1]]
    >>> got = program_tests.measure_suite(passes_NT, right_N=[0, 0, 0, 1])
    >>> got["detection"], got["verifier_accuracy"], got["patterns"], got["accepted"]
    (0.666..., 0.0, 2, 1.0)
  """
  passes_NT, right_N = np.asarray(passes_NT, float), np.asarray(right_N, float)
  if passes_NT.ndim != 2 or not passes_NT.shape[1] or right_N.shape != passes_NT.shape[:1]:
    raise ValueError(f"passes_NT has shape {passes_NT.shape} and right_N {right_N.shape}: give [N, "
                     "T] with at least one test, and [N].")
  if not np.isin(passes_NT, (0, 1)).all() or not np.isin(right_N, (0, 1)).all():
    raise ValueError("passes_NT and right_N must be 0 or 1: leave out programs without an outcome.")
  x_WT, tests = 1 - passes_NT[right_N == 0], passes_NT.shape[1]
  accepted = accuracy.mean(passes_NT[right_N == 1].all(axis=1))
  if not len(x_WT):
    nans = dict.fromkeys(("detection", "verifier_accuracy", "auc", "single", "patterns",
                          "diversity", "correlation", "effective"), float("nan"))
    return nans | dict(accepted=accepted)
  found_T = np.maximum.accumulate(x_WT, axis=1).all(axis=0).astype(float)  # By the first k tests.
  patterns = len(np.unique(x_WT[:, x_WT.any(axis=0)], axis=1).T)
  variance, of_mean = x_WT.var(axis=0).mean(), x_WT.mean(axis=1).var()
  # Var(mean of T tests) = variance (1 + (T - 1) rho) / T.
  rho = float((tests * of_mean / variance - 1) / (tests - 1)) if (
      variance > 0 and tests > 1) else float("nan")
  return dict(
      detection=float(x_WT.any(axis=1).mean()), verifier_accuracy=float(found_T[-1]),
      auc=float(((found_T[1:] + found_T[:-1]) / 2).mean() if tests > 1 else found_T[-1]),
      single=float(x_WT.mean()), patterns=patterns, diversity=patterns / tests, correlation=rho,
      effective=float(variance / of_mean) if of_mean > 1e-12 else float("nan"), accepted=accepted)


def average_suites(suites: Sequence[dict[str, float]]) -> dict[str, dict[str, float]]:
  """The means of `measure_suite` over problems, with intervals.

  Args:
    suites: results of `measure_suite`; NaN values are left out.
  Returns:
    {name: as `accuracy.bootstrap`}, of which `prompts` is the number of problems with a value.
  Example:
    >>> suites = [program_tests.measure_suite([[0, 1]], [0]),
    ...           program_tests.measure_suite([[1, 1]], [0])]
    >>> got = program_tests.average_suites(suites)
    >>> right, accepted = got["verifier_accuracy"], got["accepted"]
    >>> right["mean"], accepted["prompts"]
    (0.5, 0)
  """
  return {name: accuracy.bootstrap_mean([suite[name] for suite in suites])
          for name in (suites[0] if suites else ())}
