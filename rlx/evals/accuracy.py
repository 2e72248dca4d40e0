"""Accuracy of a policy on held-out prompts, with an interval."""
import math

import jax
import numpy as np


def outcomes(sample, verify, prompts, *, batch, repeats, key):
  """Verdicts of sampled completions.

  Args:
    sample: (prompts, key) -> Rollouts of len(prompts) * G completions.
    verify: (prompts, rollouts) -> outcome_PG.
    prompts: list of Prompt.
    batch: prompts per call; the last call is filled up with prompts already
      asked, so that every call has the same shape, and these are dropped.
    repeats: how many times every prompt is asked, with other draws.
    key: decides the draws.
  Returns:
    outcome_PG with G * repeats columns, NaN = could not tell.
  """
  columns = []
  for r in range(repeats):
    rows = []
    for i in range(0, len(prompts), batch):
      asked = [prompts[j % len(prompts)] for j in range(i, i + batch)]
      rows.append(verify(asked, jax.device_get(
          sample(asked, jax.random.fold_in(key, r)))))
    columns.append(np.concatenate(rows)[:len(prompts)])
  return np.concatenate(columns, axis=1)


def interval(outcome_PG, z=1.96):
  """Mean verdict with a 95% Wilson interval over prompts.

    n_eff = m (1 - m) / Var(mean over prompts),    m = mean verdict

  Completions of one prompt are not independent: n_eff is the number of
  independent verdicts that would give the variance seen between prompts. With
  one completion per prompt it is the number of prompts, the plain interval.

  Source: Wilson 1927. Args: outcome_PG; NaN verdicts are left out.
  Returns:
    dict(mean, low, high, prompts, unknown), all NaN if nothing is known.
  """
  known_P = ~np.isnan(outcome_PG).all(axis=1)
  n = int(known_P.sum())
  unknown = float(np.isnan(outcome_PG).mean()) if outcome_PG.size else 0.0
  if not n:
    return dict(mean=math.nan, low=math.nan, high=math.nan, prompts=0, unknown=unknown)
  mean_P = np.nanmean(outcome_PG[known_P], axis=1)
  m, variance = float(mean_P.mean()), float(mean_P.var())
  n_eff = n * m * (1 - m) / variance if variance > 0 else n
  centre = (m + z * z / (2 * n_eff)) / (1 + z * z / n_eff)
  half = (z / (1 + z * z / n_eff)
          * math.sqrt(m * (1 - m) / n_eff + z * z / (4 * n_eff * n_eff)))
  return dict(mean=m, low=max(centre - half, 0.0), high=min(centre + half, 1.0),
              prompts=n, unknown=unknown)
