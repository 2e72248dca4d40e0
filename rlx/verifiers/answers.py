"""Extracts the answers that completions state, right or wrong."""
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from rlx.verifiers import thoughts

if TYPE_CHECKING: from rlx.core import records


def find_stated_answers(texts: Sequence[str], prompts: Sequence["records.Prompt"], pattern: str,
                        marks: Sequence[str] = thoughts.MARKS) -> list:
  """Returns the last match of a regular expression behind the thoughts of each text.

  Args:
    texts: completions.
    prompts: of each text.
    marks: as of `thoughts.behind`.
  Returns:
    for each text, the match or None without one.
  """
  return [(re.findall(pattern, thoughts.behind(text, prompt, marks)) or [None])[-1]
          for text, prompt in zip(texts, prompts, strict=True)]


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
