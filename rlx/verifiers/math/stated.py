r"""Extracts the answer of a completion that has no \boxed{...}; `answer` lists the rules."""
import re

from rlx.verifiers.math import latex, reading, tables, units

MAX_LINE = 3000  # Characters of a line that are searched for mathematics.
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
_ATTRIBUTED = tables.phrase("attributed")
_TAKEN_BACK, _DOUBTED = tables.phrase("taken_back"), tables.phrase("doubted")
_LABEL = tables.phrase("label")
_QUANTITIES, _OPERATIONS = tables.words("of_quantities"), tables.words("of_operations")
_COPULA = re.compile(r"\b(?:is|are|was|were|equals|gives|get|be)\b|[:=≈]")
_PART_OF, _OF = tables.phrase("part_of"), tables.phrase("of")
_NOT = re.compile(r"\b(?:not|never|cannot|\w+n't)\b(?:(?!\bbut\b)[^.,;:\n])*$", re.IGNORECASE)
_CHOSEN, _OPEN = tables.phrase("chosen"), tables.phrase("open_choice")
_LETTER = re.compile(r"(?<![A-Za-z'])[A-J](?![A-Za-z'])")
_BOLD = re.compile(r"(\*\*|__)(\S.*?)\1")
_WORDS_OF_NUMBERS = tables.TABLES["numbers"]
_ORDINAL = re.compile(
    rf"\b({'|'.join(_WORDS_OF_NUMBERS)})[- ]({'|'.join(tables.TABLES['ordinals'])})s?\b",
    re.IGNORECASE)
_LINE_LABEL = re.compile(r"^\W*(?:[A-Za-z]|step \d+)\s*:(?!\d)\s*", re.IGNORECASE)  # A: 27
_SO = re.compile(r",\s*(?:and )?(?:so|thus|hence|therefore|giving|which gives)\b", re.IGNORECASE)
_SINCE = re.compile(r"\(\s*(?:since|because)\b[^()]*\)", re.IGNORECASE)
# A unit behind a number; "in" is one only where nothing follows it.
_UNIT = re.compile(
    r"[\s*(]*((?:(?:square|cubic|sq)\s+)?(?!in\s+\w)[A-Za-z]+"
    r"(?:\s*(?:\^\s*\{?-?\d\}?|[²³])|\s*/\s*[A-Za-z]+|\s+per\s+[A-Za-z]+)*"
    r"|[\u3400-\u9fff]{1,6}(?:/[\u3400-\u9fff]{1,4})?)")
# An exact number and its approximation; the number before it has no decimal point.
_ROUNDED = re.compile(
    r"(?<![.\d])([^\s.=≈]{0,40}[\dπ})]\s?\$?)"
    r"(?:\s?\(?(?:≈|\\approx(?![A-Za-z]))|,?\s?(?:or\s|\()\s?"
    r"(?:≈|approximately|approx\.?|about|roughly))\s?(?=\$?-?\d{0,40}\.\d)")
_GIVEN = re.compile(r"\d[\d.]*\s*[\u3400-\u9fff]{1,6}")  # 4小时, of the question
_LEADS_ON = re.compile(r"\b(?:or|(?<!equal )(?<!comes )(?<!amounts )to|through)\s*$")
_SENTENCES = re.compile(r"(?<=[^\s\d.])[.!?]\s+|(?<=\d)[.!?]\s+(?=[A-Z])")
# A stretch of mathematics: a formula in dollars, or parts and the white space between them.
FORMULA = r"\$[^$\n]+\$|\\\([^\n]*?\\\)|\\\[[^\n]*?\\\]"
PART = (
    r"(?:\\(?:text|mathrm|mathbf|operatorname)\s*\{[^{}]*\}|\\[A-Za-z]+|\\[%$,;:! {}]"
    r"|\d+(?:,\d{3})*(?:\.\d+)?(?:e[+-]?\d+)?|\.\d+"
    r"|[-+*/^=<>()\[\]{}|!%$€£¥₹°_±×÷·−–√π∞≤≥≠⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁄,.:]"
    r"|(?<![A-Za-z'’])(?:[A-Za-z]|sqrt|pi|ln|log)(?![A-Za-z]))")
_STRETCH = re.compile(rf"{FORMULA}|{PART}(?:\s*(?!{FORMULA}){PART})*")
_VALUE = re.compile(r"\d|[√π∞]|\bpi\b|\\(?:d?frac|sqrt|pi|infty)(?![A-Za-z])")


def answer(text, question, is_number, is_words=False):
  r"""Returns the texts of the answer that a completion states last; [] if it states none.

  The question is skipped where the completion repeats it. What a later sentence takes back
  ("But that is wrong; it is 22"), what stands in a question ("Is it 21?") and what others say
  ("some say 21") is no answer; the text behind it is read. The answer stands in the rest of
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
  4. "negative 5" and "- 5" are -5, "five-eighths" is 5/8.
  5. A number in a noun phrase is not stated: "the square of 21", "see exercise 21".

  If the reference answer is not a number, the first text is the rest of the line after the
  mark. A second text, for the case that the first cannot be parsed, is the line's last formula
  between dollars. If it is words, another is what stands behind the last "is".

  Args:
    is_number: whether the reference answer is a number.
    is_words: whether it is a text.
  """
  if question: text = text.replace(question, " ")
  text = _ORDINAL.sub(_make_fraction, latex.plain_fractions(text))
  if is_number: text = _LABEL.sub(lambda m: m[0] if m[1].lower() in question.lower() else " ", text)
  for mark in reversed(list(_MARK.finditer(text))):
    rest = text[mark.end():mark.end() + MAX_LINE]
    line = _line(_CONTINUES_BELOW.sub(" ", rest))
    is_heading = mark[0] == "####" and not _is_all(line) or (
        "\n" in mark[0] and re.match(r"\d+[.)]\s+[A-Z]", line))
    if not line or is_number and is_heading: continue
    before = text[max(0, mark.start() - 200):mark.start()]
    if _NO_ANSWER.search(before): return []
    if _ATTRIBUTED.search(before): continue
    if (behind := find_retraction(rest)) is not None:
      return answer(text[mark.end() + behind:], "", is_number, is_words)
    if is_number: return [_number(_SENTENCES.split(_skip_given(line, question))[0], True)]
    return _expressions(line)
  lines = [line for line in text.splitlines() if line.strip(" *_`#>-{}$")]
  if not lines: return []
  if not is_number:
    if find_retraction(lines[-1]) is not None: return []
    return [*_expressions(lines[-1]), _clean(_behind_equality(_DENIED.sub(" ", lines[-1]))),
            *_predicate(lines[-1]) * is_words]
  numbered = [i for i, line in enumerate(lines) if re.search(r"\d", line)]
  if not numbered: return []
  line = lines[numbered[-1]].strip()
  start = max((m.end() for m in _SENTENCES.finditer(line.rstrip("."))
               if re.search(r"\d", line[m.end():])), default=0)
  rest = "\n".join([line[start:], *lines[numbered[-1] + 1:]])
  if find_retraction(rest) is not None: return []
  return [_number(_SENTENCES.split(line[start:].rstrip("."))[0], False)]


def choice(text):
  """Returns the letter of the choice that a text states last, None if it states none."""
  chosen = None
  for chosen in _CHOSEN.finditer(text): pass
  if chosen is None or _OPEN.match(text, chosen.end()): return None
  before = text[max(0, chosen.start() - 200):chosen.start()]
  if _NO_ANSWER.search(before) or _NOT.search(before): return None
  other = _LETTER.search(text, chosen.end())
  if _TAKEN_BACK.search(text, chosen.end(), min(
      other.start() if other else len(text), chosen.end() + 100)): return None
  return next(filter(None, chosen.groups()))


def behind_boxes(text, is_choice):
  """Returns the text behind the last box if it states an answer or takes the box back, else "".

  It states one in a line such as "Answer: 5" with nothing else, or with the letter of a choice.
  """
  if (end := _find_taken_back(text)) is not None: return text[end:]
  for mark in reversed(list(_MARK.finditer(text))):
    line = _line(text[mark.end():])
    if mark[0] != "<answer>" and line and (is_choice and choice(mark[0] + line) or _is_all(line)):
      return text[mark.start():]
  return ""


def is_taken_back(text):
  """Tells whether the text behind a box takes it back."""
  return _find_taken_back(text) is not None


def _find_taken_back(text):
  other = re.search(r"\d", text)
  taken = _TAKEN_BACK.search(text, 0, min(other.start() if other else len(text), 400))
  return taken.end() if taken else None


def find_retraction(text):
  """Returns where the words end that take back the answer with which a text begins, or None.

  They may stand in a later sentence, if no other number stands before them.
  """
  first = re.search(r"\d", text)
  end = re.match(r"\s*[^\s.,;:!?]*", text).end()
  if first:  # Without the first word of the next sentence, as in "21. I doubt it".
    stretch = _STRETCH.match(text, first.start())[0]
    end = first.start() + len(re.sub(r"[.,;!]\s*[A-Za-z]?\s*$", "", stretch))
  if asked := re.match(r"[^.!?\n]{0,80}\?(?!\s*(?i:yes|correct|right|indeed))", text[end:]):
    return end + asked.end()
  behind = text[end:end + 400]
  other = re.search(r"\d", behind)
  stop = other.start() if other else len(behind)
  if taken := _TAKEN_BACK.search(behind, 0, stop): return end + taken.end()
  doubted = _DOUBTED.search(behind, 0, stop)
  return end + doubted.end() if doubted and other else None


def _make_fraction(match):
  above, below = _WORDS_OF_NUMBERS[match[1].lower()], tables.TABLES["ordinals"][match[2].lower()]
  return rf"\frac{{{above}}}{{{below}}}"


def _skip_given(line, question):
  """Removes a number of the question from the start of a Chinese sentence: 4小时行驶240千米."""
  given = _GIVEN.match(line)
  if not given or not _VALUE.search(line, given.end()): return line
  ends = (n for n in range(given.end(), 1, -1) if "\u3400" <= line[n - 1] and line[:n] in question)
  return line[next(ends, 0):]


def _predicate(line):
  """Returns what stands behind the last "is" of the last sentence, unless it is denied."""
  sentence = _SENTENCES.split(line.strip().rstrip("."))[-1]
  if _DENIED.search(sentence): return []
  behind = re.split(r"\b(?:is|was|are|were|be)\b\s*(?:an?\b|the\b)?", sentence)
  return [behind[-1].strip(" *_`:")] if len(behind) > 1 else []


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
  spans = (match.span() for match in _STRETCH.finditer(line[:MAX_LINE]))
  return [(start, end) for start, end in spans if _VALUE.search(line, start, end)]


def _number(line, is_marked):
  """Returns the text of the number that a sentence states, None if it states none."""
  if _REFUSED.search(line): return None
  line = _LINE_LABEL.sub("", line)
  bold = [b[2] for b in _BOLD.finditer(line) if re.match(r"[-\d$\\]", b[2])]
  line = _MINUS.sub("-", _DENIED.sub(" ", _BOLD.sub(r"\2", line))).strip()
  if is_marked and _VALUE.search(short := _REASON.sub("", line)): line = short
  if not is_marked: line = _last_clause(line)
  line = _ROUNDED.sub(r"\1 \\simeq ", line)
  if "=" in line.rstrip("= "): line, is_marked = _behind_equality(line), True
  filler = _FILLER.match(line).end()
  if is_marked and (number := reading.number_of(
      line[filler:].strip(" *_`.$").lower())) is not None: return str(number)
  stretches = _stretches(line)
  if not stretches: return None
  begins_with_it = is_marked and not line[filler:stretches[0][0]].strip(" *_`:")
  start, end = stretches[0 if begins_with_it else -1]
  if not is_marked and len(bold) == 1:  # There are **10** primes below 30.
    start, end = next((s for s in stretches if line.startswith(bold[0], s[0])), (start, end))
  before = line[:start]
  if _BOUND.search(before if start == stretches[0][0] else before[-40:]): return None
  phrase = before[max((m.end() for m in _COPULA.finditer(before)), default=0):]
  if _PART_OF.search(phrase) or (whole := _OF.search(phrase)) and not _is_quantity(
      *whole.groups()):
    return None
  if _CONTINUES.match(line, end) or _LEADS_ON.search(before): return None
  return (_clean(line[start:end]) or "") + _unit(line, start, end)


def _last_clause(line):
  """Returns what stands behind the last ", so" if that has a value, without "(since ...)"."""
  line = _SINCE.sub("", line)
  clauses = [clause for clause in _SO.split(line) if _VALUE.search(clause)]
  return clauses[-1].strip() if len(clauses) > 1 else line


def _is_quantity(article, words):
  """Tells whether "the total of 21" or "an area of 21" is 21, as "the square of 21" is not."""
  noun = words.split()[-1].lower()
  return noun in _QUANTITIES or article.lower() != "the" and noun not in _OPERATIONS


def _unit(line, start, end):
  """Returns the unit behind the number at line[start:end], with a space before it, or ""."""
  if ":" in line[start:end] and (noon := re.match(r"\s*[AaPp]\.?\s?[Mm]\b\.?", line[end:])):
    return " " + noon[0].strip()
  if not (words := _UNIT.match(line, end)): return ""
  name = words[1].replace("²", "^2").replace("³", "^3")
  if "\u3400" <= name[0]:
    names = (name[:n] for n in range(len(name), 0, -1))
    return next((f" {n}" for n in names if units.parse_unit(n) or units.scale(n)[0] != 1), "")
  first = re.match("[A-Za-z]+", name)[0]
  if name != first and units.parse_unit(name) is not None: return f" \\text{{{name}}}"
  is_word = units.scale(first)[0] != 1 or units.is_percent(first) or units.is_name(first)
  return f" {first}" if is_word else ""


def _behind_equality(line):
  behind = re.split(r"(?<![<>!])=|\\approx|≈", line.rstrip("= "))[-1].strip()
  # The sign that closes the formula is no dollar.
  is_cut = line.count("$") % 2 == 0 and behind.count("$") % 2
  return behind[::-1].replace("$", "", 1)[::-1] if is_cut else behind


def _expressions(line):
  """Returns the texts of an answer that is not a number: the whole line, its last formula."""
  line = _DENIED.sub(" ", _REASON.sub("", line) or line)
  formulas = re.findall(r"(?<!\$)\$+([^$\n]+)\$+|\\\((.+?)\\\)|\\\[(.+?)\\\]", line)
  whole = _clean(line[_FILLER.match(line).end():])
  return [whole, *(_clean("".join(parts)) for parts in formulas[-1:])]


def _clean(text):
  """Removes Markdown marks and punctuation around a text, and unmatched closing brackets."""
  if text.count("}") > text.count("{"): text = text.rstrip(" }\n")
  if sum(map(text.count, ")]")) > sum(map(text.count, "([")):
    text = text.rstrip(" .").removesuffix(")")
  return re.sub(r"[\s(\[:,.;!*_`\"'-]+$", "", text).lstrip(" :,;*_`\"'") or None
