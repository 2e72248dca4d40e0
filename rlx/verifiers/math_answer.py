r"""Compares mathematical answers through math-verify: 1.0 if equal, else 0.0.

math-verify's own time limits are off: they are signals, which only work in a
main thread, and turn a hang into "wrong". The pool has the deadline. They
raise instead of calling a failed comparison wrong, and the pool makes it NaN.
"""
import functools
import logging
import re

from rlx.verifiers import _boxed

_NUMBER = re.compile(
    r"(?:(?<![\w)])[-+])?"  # A sign, unless it is a subtraction.
    r"(?:(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?|\.\d+)(?:/\d+)?", re.ASCII)
_MARK = re.compile(r"####|answer\s*(?:is|:)", re.IGNORECASE)
_MAX_CHARS = 1000  # An answer longer than this is none.


def boxed(prompt, text):
  r"""The last \boxed{...} of the completion against the prompt's answer."""
  gold = _gold(prompt.answer)
  return _equal(prompt.answer, gold, _boxed.last(text))


def final(prompt, text):
  """The completion's final answer against the prompt's answer.

  That is the last box; or the rest of the line after the last "####", "answer
  is" or "answer:"; or the last number. Of that line only the first number
  counts if the prompt's answer is a number, so that units do not matter.
  """
  gold = _gold(prompt.answer)
  if (box := _boxed.last(text)) is not None:
    return _equal(prompt.answer, gold, box)
  marks = list(_MARK.finditer(text))
  if not marks:
    numbers = _NUMBER.findall(text)
    return _equal(prompt.answer, gold, numbers[-1] if numbers else None)
  stated = text[marks[-1].end():].strip(" :*\n").partition("\n")[0]
  if _NUMBER.fullmatch(prompt.answer.strip(" $")):
    number = _NUMBER.search(stated)
    return _equal(prompt.answer, gold, number and number[0])
  return _equal(prompt.answer, gold, stated.strip(" $*.:"))


def _equal(answer, gold, stated):
  """1.0 if `stated` means what `answer` (parsed: `gold`) does."""
  if not stated or len(stated) > _MAX_CHARS: return 0.0
  if stated.strip() == answer.strip(): return 1.0
  import math_verify  # pylint: disable=g-import-not-at-top
  parsed = _parse(stated)
  return float(math_verify.verify(gold, parsed, timeout_seconds=None,
                                  raise_on_error=True))


@functools.lru_cache(maxsize=4096)
def _gold(answer):
  """The prompt's answer, parsed; it is asked for every completion of a group."""
  if not (gold := _parse(answer)):
    raise ValueError(f"math-verify cannot read the answer {answer!r}")
  return gold


def _parse(latex):
  import math_verify  # pylint: disable=g-import-not-at-top
  # It warns once that its time limits are off, which is what we ask for.
  logging.getLogger("math_verify").setLevel(logging.ERROR)
  return math_verify.parse("\\boxed{" + latex.strip().strip("$") + "}",
                           [math_verify.LatexExtractionConfig()],
                           parsing_timeout=None, raise_on_error=True)
