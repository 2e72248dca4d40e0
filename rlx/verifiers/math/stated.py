r"""Extracts the answer of a completion that has no \boxed{...}; `answer` lists the rules."""
import re

from rlx.verifiers.math import latex, tables, units

_MAX_LINE = 3000  # Characters of a line that are searched for mathematics.
_MARK = tables.phrase("mark")
_DENIED = tables.phrase("denied")
# The text states a bound, one of several numbers or a task instead of a number.
_BOUND = re.compile(rf"\b(?:{'|'.join(tables.TABLES['bounds'])})\b", re.IGNORECASE)
_CONTINUES = tables.phrase("continues")
_CONTINUES_BELOW = re.compile(r"\n[ \t]*(?=[×*/+=÷·^])")
_MINUS = re.compile(r"\b(?:negative|minus)\s+(?=[\d\\$.(])", re.IGNORECASE)
_NO_ANSWER = tables.phrase("no_answer")
_REFUSED = tables.phrase("refused")
_REASON = tables.phrase("reason")
_FILLER = tables.phrase("filler")
_SENTENCES = re.compile(r"(?<=[^\s\d.])[.!?]\s+|(?<=\d)[.!?]\s+(?=[A-Z])")
# A stretch of mathematics: a formula in dollars, or parts and the white space between them.
_FORMULA = r"\$[^$\n]+\$|\\\([^\n]*?\\\)|\\\[[^\n]*?\\\]"
_PART = (
    r"(?:\\(?:text|mathrm|mathbf|operatorname)\s*\{[^{}]*\}|\\[A-Za-z]+|\\[%$,;:! {}]"
    r"|\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?|\.\d+|[-+*/^=<>()\[\]{}|!%$€£¥₹°_±×÷·−–√π∞≤≥≠²³⁄,.:]"
    r"|(?<![A-Za-z])(?:[A-Za-z]|sqrt|pi|ln|log)(?![A-Za-z]))")
_STRETCH = re.compile(rf"{_FORMULA}|{_PART}(?:\s*(?!{_FORMULA}){_PART})*")
_VALUE = re.compile(r"\d|[√π∞]|\bpi\b|\\(?:d?frac|sqrt|pi|infty)(?![A-Za-z])")


def answer(text, question, is_number):
  r"""Returns the texts of the answer that a completion states last; [] if it states none.

  The question is skipped where the completion repeats it. The answer stands in the rest of
  the line after the last mark ("answer is", "answer:", "answer =", "####"), or in the next
  line if that rest is empty. "#### 3. Conclusion" is a heading, so after "####" only a whole
  answer counts. Without a mark, the answer stands in the last line that contains a number.

  If the reference answer is a number, the text is taken from that line by these rules:

  1. Negations such as "not 72" are removed. After "less than", "between" or "at least" there
     is no answer.
  2. In "3 x 24 = 72" and "x = 72", the answer stands after the last equals sign.
  3. After a mark, the answer is the stretch of mathematics at the start of the line, up to
     its end: 3-5 is a range or a difference, and 2^10, 3x, 5e3, 12,5 and 5 million are not 2,
     3, 5, 12 and 5. If the line starts with words, the answer is the last stretch.
  4. "negative 5" and "- 5" are -5.

  If the reference answer is not a number, the first text is the rest of the line after the
  mark. A second text, for the case that the first cannot be parsed, is the line's last formula
  between dollars.

  Args:
    is_number: whether the reference answer is a number.
  """
  if question: text = text.replace(question, " ")
  text = latex.plain_fractions(text)
  for mark in reversed(list(_MARK.finditer(text))):
    line = _line(_CONTINUES_BELOW.sub(" ", text[mark.end():]))
    is_heading = mark[0] == "####" and not _is_all(line) or (
        "\n" in mark[0] and re.match(r"\d+[.)]\s+[A-Z]", line))
    if not line or is_number and is_heading: continue
    if _NO_ANSWER.search(text[:mark.start()]): return []
    return [_number(_SENTENCES.split(line)[0], True)] if is_number else _expressions(line)
  lines = [line for line in text.splitlines() if line.strip(" *_`#>-{}$")]
  if not lines: return []
  if not is_number: return [*_expressions(lines[-1]), _clean(_behind_equality(lines[-1]))]
  numbered = [line for line in lines if re.search(r"\d", line)]
  if not numbered: return []
  sentences = [s for s in _SENTENCES.split(numbered[-1].strip().rstrip(".")) if re.search(r"\d", s)]
  return [_number(sentences[-1], False)]


def _line(text):
  """Returns the first line with content, without Markdown marks around it."""
  lines = (s.partition("</")[0].strip().strip("*_`").strip() for s in text.splitlines()[:4])
  return next((line for line in lines if line not in ("", "$$", r"\[", r"\(")), "")


def _is_all(line):
  """Tells whether a line after #### holds nothing but an answer and its unit."""
  stretches = _stretches(line)
  if not stretches or stretches[0][0] or re.match(r"\d+[.)]\s+\S", line): return False
  rest = line[stretches[0][1]:].strip(" .")
  return not rest or re.fullmatch(r"[A-Za-z]+(?: [a-z]+)?", rest) is not None


def _stretches(line):
  """Returns (start, end) of the stretches of mathematics in a line that contain a value."""
  spans = (match.span() for match in _STRETCH.finditer(line[:_MAX_LINE]))
  return [(start, end) for start, end in spans if _VALUE.search(line, start, end)]


def _number(line, is_marked):
  """Returns the text of the number that a sentence states, None if it states none."""
  if _REFUSED.search(line): return None
  line = _MINUS.sub("-", _DENIED.sub(" ", re.sub(r"(\*\*|__)(\S.*?)\1", r"\2", line))).strip()
  if is_marked and _VALUE.search(short := _REASON.sub("", line)): line = short
  if "=" in line.rstrip("= "): line, is_marked = _behind_equality(line), True
  filler = _FILLER.match(line).end()
  stretches = _stretches(line)
  if not stretches: return None
  begins_with_it = is_marked and not line[filler:stretches[0][0]].strip(" *_`:")
  start, end = stretches[0 if begins_with_it else -1]
  before = line[:start]
  if _BOUND.search(before if start == stretches[0][0] else before[-40:]): return None
  if _CONTINUES.match(line, end) or re.search(r"\b(?:or|to|through)\s*$", before): return None
  behind = ""
  if (words := re.match(r"[\s*(]*([A-Za-z]+)", line[end:])) and (
      units.scale(words[1])[0] != 1 or units.is_percent(words[1]) or units.is_name(words[1])):
    behind = " " + words[1]
  return (_clean(line[start:end]) or "") + behind


def _behind_equality(line):
  return re.split(r"(?<![<>!])=|\\approx|≈", line.rstrip("= "))[-1].strip()


def _expressions(line):
  """Returns the texts of an answer that is not a number: the whole line, its last formula."""
  line = _DENIED.sub(" ", _REASON.sub("", line) or line)
  formulas = re.findall(r"\$+([^$\n]+)\$+|\\\((.+?)\\\)|\\\[(.+?)\\\]", line)
  whole = _clean(line[_FILLER.match(line).end():])
  return [whole, *(_clean("".join(parts)) for parts in formulas[-1:])]


def _clean(text):
  """Removes Markdown marks and punctuation around a text, and unmatched closing brackets."""
  if text.count("}") > text.count("{"): text = text.rstrip(" }\n")
  if sum(map(text.count, ")]")) > sum(map(text.count, "([")):
    text = text.rstrip(" .").removesuffix(")")
  return re.sub(r"[\s(\[:,.;!*_`\"'-]+$", "", text).lstrip(" :,;*_`\"'") or None
