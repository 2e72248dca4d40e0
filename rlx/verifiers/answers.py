"""Extracts the answers that completions state, right or wrong."""
import re
from collections.abc import Sequence

import numpy as np


def find_stated_answers(texts: Sequence[str], pattern: str) -> list:
  """Returns the last match of a regular expression in each text, None without a match."""
  return [(re.findall(pattern, text) or [None])[-1] for text in texts]


def is_pattern(text: str) -> bool:
  """Tells whether a text is a regular expression with at most one group."""
  try:
    return re.compile(text).groups <= 1
  except (re.error, OverflowError, RecursionError):
    return False


def ids(answers: Sequence) -> np.ndarray:
  """Returns int32 [n], the same number for equal answers and -1 for None."""
  numbers: dict = {}
  return np.array([-1 if a is None else numbers.setdefault(a, len(numbers))
                   for a in answers], np.int32)
