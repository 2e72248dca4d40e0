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
_SPACED = re.compile(r"(?<=\d)\\[, ](?=\d{3}(?!\d))", re.ASCII)  # 10\,000
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
  counts if the prompt's answer is a number, so that units do not matter. The
  question, where the completion repeats it, states no answer.
  """
  gold = _gold(prompt.answer)
  text = _SPACED.sub("", text.replace(prompt.text, " ") if prompt.text else text)
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
  if parsed and (is_near := _near(gold[0], parsed[0])) is not None: return float(is_near)
  return float(math_verify.verify(gold, parsed, timeout_seconds=None, raise_on_error=True,
                                  allow_set_relation_comp=True))


def _near(a, b):
  """Are two numbers equal to 9 digits? None unless one of them is a decimal.

  math-verify looks at 6 digits after the point: all masses of atoms in kg are equal.
  """
  import sympy  # pylint: disable=g-import-not-at-top
  if not all(isinstance(x, sympy.Expr) and x.is_number for x in (a, b)): return None
  if not (a.has(sympy.Float) or b.has(sympy.Float)): return None
  a, b = a.doit(), b.doit()  # A percentage is not evaluated.
  return bool(abs(sympy.N(a - b, 20)) <= 1e-9 * abs(sympy.N(a, 20)))


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
  latex = _SPACED.sub("", latex.strip().strip("$"))
  return math_verify.parse("\\boxed{" + latex + "}",
                           [math_verify.LatexExtractionConfig()],
                           parsing_timeout=None, raise_on_error=True)
