"""Which answer a completion states, whether or not it is right."""
import re

import numpy as np


def stated(texts, pattern):
  """The last match of a regular expression in each text; None where there is none."""
  found = [re.findall(pattern, text) for text in texts]
  return [f[-1] if f else None for f in found]


def is_pattern(text):
  """Is it a regular expression whose matches are single texts?"""
  try:
    return re.compile(text).groups <= 1
  except (re.error, OverflowError, RecursionError):
    return False


def ids(answers):
  """int32 [n], equal where the answers are; -1 where there is none."""
  numbers = {}
  return np.array([-1 if a is None else numbers.setdefault(a, len(numbers))
                   for a in answers], np.int32)
