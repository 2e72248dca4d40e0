"""Intervals of means, and tables in Markdown, of grids and experiments."""
import numpy as np


def interval(effects):
  """Returns (mean, low, high) of the 95% interval, by Student's t."""
  from scipy import stats  # Takes most of a second. pylint: disable=g-import-not-at-top
  mean, error = np.mean(effects), stats.sem(effects)
  half = stats.t.ppf(0.975, len(effects) - 1) * error
  return float(mean), float(mean - half), float(mean + half)


def markdown(header, rows):
  """Returns a table in Markdown."""
  return "\n".join("| " + " | ".join(str(x).replace("|", "\\|") for x in row) + " |"
                   for row in (header, ["---"] * len(header), *rows))
