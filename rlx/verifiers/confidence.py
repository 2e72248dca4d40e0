"""How sure a completion says it is: "Confidence: 80%", <confidence>0.8</confidence>, "8/10".

`rewards/outcome.py:calibrated` compares it with the verdict (Brier).
"""
import re
from typing import TYPE_CHECKING

from rlx.verifiers import thoughts

if TYPE_CHECKING: from rlx.core import records

_NUMBER = r"(\d{1,3}(?:\.\d{1,9})?|\.\d{1,9})\s{0,3}(%|/\s{0,3}(?:100|10)\b)?"
_TAG = re.compile(rf"<confidence>\s{{0,20}}{_NUMBER}\s{{0,20}}</confidence>", re.IGNORECASE)
_WORD = re.compile(rf"\bconfidence(?:\s{{1,3}}(?:level|score))?\**\s{{0,3}}(?::|=|is)\s{{0,3}}\**"
                   rf"{_NUMBER}(?![\w.]*\d)", re.IGNORECASE)
# What makes another number of it, or none: 1/5, 1 out of 5, 1-10%, 0,8.
_MORE = re.compile(r"[\w.,]*\d|\s{0,3}%|\s{0,3}(?:[/-]|\u2013|of|out of|in|to)\s{0,3}\d",
                   re.IGNORECASE)


def stated(prompt: "records.Prompt", text: str) -> float:
  """The confidence in [0, 1] that is stated last, behind the thoughts; 0.0 without one.

  A number above 1 needs a unit: 80%, 8/10 or 80/100. What is above 1 nevertheless states nothing,
  and neither do ranges and other fractions, such as 10-20% and 1/5.

  Source: the confidence of ReFIne (Sun et al. 2025, arXiv:2510.09062), and of RLCR
  (arXiv:2507.16806). Differs from both: all of the forms are read.

  Example:
    >>> import types
    >>> prompt = types.SimpleNamespace(meta={})
    >>> confidence.stated(prompt, "It is 7. Confidence: 80%")
    0.8
  """
  return _find(thoughts.behind(text, prompt)) or 0.0


def form(prompt: "records.Prompt", text: str) -> float:
  """1.0 if a confidence is stated, see `stated`."""
  return float(_find(thoughts.behind(text, prompt)) is not None)


for _fn in (stated, form): vars(_fn)["is_bounded"] = True


def _find(text):
  """The confidence that is stated last; None without one."""
  matches = [m for pattern in (_TAG, _WORD) for m in pattern.finditer(text)]
  if not matches: return None
  last = max(matches, key=lambda m: m.end())
  if last.re is _WORD and _MORE.match(text, last.end()): return None
  number, unit = last.groups()
  value = float(number) / (100 if unit == "%" else float(unit[1:]) if unit else 1)  # "/ 10"
  return value if value <= 1 else None
