r"""Splits LaTeX, plain text and Unicode into tokens with one spelling for each symbol.

A token is a text: a number ("12.5"), a command ("\frac"), a letter, a punctuation mark, or
words, which start with a quotation mark ('"cm').
"""
import itertools
import re
import unicodedata

from rlx.verifiers.math import tables


class Unreadable(ValueError):
  """The text is not an expression that can be compared."""


MAX_CHARS = 3000  # A longer text is not an answer.
_MAX_DEPTH = 30   # Nested brackets.
OPENING = frozenset(["(", "[", "{", r"\{", r"\langle", r"\begin"])
CLOSING = frozenset([")", "]", "}", r"\}", r"\rangle", r"\end"])
FUNCTIONS = tables.words("functions")
LETTERS = frozenset(tables.TABLES["greek"].values()) | tables.words("letters")
# Commands that an expression may contain; any other command makes it unreadable.
_KNOWN = tables.words("commands") | FUNCTIONS | LETTERS
_CHARACTERS = str.maketrans(tables.TABLES["characters"] | {
    letter: rf"\{name} " for letter, name in tables.TABLES["greek"].items()})
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ", "0123456789+-n")
_LOWERED = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
_SPELLINGS = tables.TABLES["spellings"]
_LAYOUT, _NOTATION = (
    [(re.compile(pattern), new, needs) for pattern, new, needs in tables.TABLES[name]]
    for name in ("layout", "notation"))
_SPELLED = re.compile(rf"\\({'|'.join(_SPELLINGS)})(?![A-Za-z])")
_WRAPPER = re.compile(
    r"\\(text(?:rm|bf|it|sf|tt|normal)?|mbox|hbox|math(?:rm|bf|it|sf|normal|tt)|operatorname\*?|"
    r"boldsymbol|bm|underline|boxed|fbox|emph|bold|ensuremath)\s*(?=\{)")
_BARE_WRAPPER = re.compile(r"\\(math(?:rm|it|sf|normal|tt|bf(?!\s+[RZNQC]\b)))\s+([A-Za-z])\b")
_GROUPED = re.compile(  # 1,234,567 and 1 234 567, with any separator.
    r"(?<![\d.,}])\d{1,3}(?:(?:,|\{,\}|\\[, ;:!>]|~|[ \u00a0\u2009\u202f])\d{3})+(?![\d,]*\d|\{)")
_MIXED = re.compile(r"(?<![\d.^_}])(\d+)\s+(\d+)\s*/\s*(\d+)(?![\d.])")  # 3 1/2
_TOKEN = re.compile(
    r'\s*("[^"]*"|(?:\d+\.\d*|\.\d+)\s*\\overline\s*\{\s*\d+\s*\}'
    r'|\d+(?:\.\d+)?(?:[eE][+-]?\d+(?![\w.]))?|\.\d+|\\[A-Za-z]+|\\.'
    r"|[\u3400-\u9fff]+|[A-Za-z\u00c0-\u024f]+|.)", re.DOTALL)
_SIGNED_EXPONENT = re.compile(r"(?<=\d)e([+-]\d+)(?![\w.])")
# 2e+1, but not 2.5e+1, 2e+10 and 2e-05, which are how programs write numbers.
_SHORT_EXPONENT = re.compile(r"(?<![\d.])\d+e[+-][1-9](?![\w.])")
# A word of two or three letters with nothing but marks between answers around it.
_LONE_WORD = re.compile(
    r"(?:^|(?<=[,;])|(?<=\band)|(?<=\bor))(\s*)([A-Za-z]{2,3})(?=\s*(?:$|[,;]|\b(?:and|or)\b))")
_MARKS = frozenset("+-*/^_!|()[]{}<>=,;:%$€£¥₹'&.?#") | {r"\{", r"\}", r"\\", r"\%", r"\$", r"\|"}
# Spaces that are not kept; a text may end in the backslash of "\\ ".
WORD_SHAPE = re.compile(r"[A-Z][a-z]{1,2}|[b-df-hj-np-tv-z][aeiou][b-df-hj-np-tv-z]")
_NAMES = frozenset(["pi", "inf", "am", "pm", "sqrt"])
_SINGLE = re.compile(r"\{\s*(\\[A-Za-z]+|\w)\s*\}")  # A group of one token.
_ENUMERATED = re.compile(r"\s*\\\{.*\\(?:dots)\b.*\\\}\s*")
_SPACES = frozenset([" ", r"\,", r"\;", r"\:", r"\>", r"\ ", "~", "\\"])
_CONNECTIVES = tables.TABLES["connectives"]
_SHORT_WORDS = tables.words("short_words")
_NUMBER_IN_TEXT = re.compile(r'([A-Za-z ]*)(:?)\s*([-+]?\$?\d[\d.,/:]*(?<![.,:]))\s*([^"\d]*)')
_UNIT_FORMULA = re.compile(  # km/h, m^2, ~N\cdot m
    r"(?:[a-zA-Z~ /^\d{}]|\^\{-\d\}|\\,)+|~(?:[a-zA-Z~ /^\d{}-]|\\cdot\b|\\,)+")
_EXACT_NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?")


def tokens(text, is_unit=lambda word: False, letters=None, is_e_constant=False):
  """Returns the tokens of a text.

  Args:
    is_unit: tells whether a word after a number is the name of a unit.
    letters: as of kinds.Question; a word of two or three other letters that stands alone is a
      word and no product.
    is_e_constant: 2e+1 is 2 e + 1 and not 20. 2e1 and 2E+1 are always numbers.
  Raises:
    Unreadable: the text is too long, is not balanced, or contains an unknown command.
  """
  if len(text) > MAX_CHARS: raise Unreadable("too long")
  text = _LONE_WORD.sub(lambda m: _quote_word(m, letters), _unify_spelling(text))
  if is_e_constant: text = _SIGNED_EXPONENT.sub(r" e \1", text)
  kept = []
  for match in _TOKEN.finditer(text.strip()):
    token = match[1]
    if token[0] == '"':
      words = token[1:-1].strip()
      if words.lower() in _CONNECTIVES: kept.append(_CONNECTIVES[words.lower()])
      elif words: kept.append('"' + words)
    elif "\u3400" <= token[0] <= "\u9fff":
      kept.append(_CONNECTIVES.get(token) or '"' + token)
    elif token[0].isalpha(): kept += _word(token, kept, is_unit)
    elif token[0] == "\\" and token[1:].isalpha():
      if token[1:] not in _KNOWN: raise Unreadable(f"{token}")
      kept.append(token)
    elif token in _MARKS: kept.append({r"\%": "%", r"\$": "$"}.get(token, token))
    elif token[0] in ".0123456789": kept.append("".join(token.split()))
    elif token not in _SPACES:
      raise Unreadable(f"{token!r}")
  if max(depths(kept), default=0) > _MAX_DEPTH: raise Unreadable("too deep")
  while kept and kept[0] == "\\quad": del kept[0]
  while kept and kept[-1] in (".", ",", ";", "\\\\", "\\quad"): kept.pop()
  return kept


def depths(tokens):
  """Returns for each token how many brackets and environments are open behind it."""
  return itertools.accumulate((t in OPENING) - (t in CLOSING) for t in tokens)


def find_group_end(text, start):
  """Returns the index after the group whose { is at `start`.

  Raises:
    Unreadable: the group is not closed.
  """
  depth = 0
  for match in re.compile(r"\\.|[{}]", re.DOTALL).finditer(text, start):
    depth += (match[0] == "{") - (match[0] == "}")
    if not depth: return match.end()
  raise Unreadable("braces are not balanced")


def has_signed_exponent(text):
  """Tells whether a text contains the like of 2e+1: a number, or an expression in e."""
  return _SIGNED_EXPONENT.search(text) is not None


def has_short_exponent(text):
  """Tells whether a text contains the like of 2e+1 that no program writes for a number."""
  return _SHORT_EXPONENT.search(text) is not None


def compose(text):
  """Returns a text in NFC, without characters that have no width, such as variation selectors."""
  if text.isascii(): return text
  return "".join(c for c in unicodedata.normalize("NFC", text)
                 if not "\ufe00" <= c <= "\ufe0f" and unicodedata.category(c) != "Cf")


def layout_free(text):
  r"""Returns a text that is the same for all layouts of a formula that cannot be read.

    \sum\limits_{k=1}^{n} \dfrac{1}{k} and \sum_{k=1}^n \frac1k are \sum_{k=1}^n\frac1k
  """
  try:
    text = _unify_spelling(text[:MAX_CHARS])
  except Unreadable:
    return "".join(text.split())
  text = _SINGLE.sub(r"\1", " ".join(text.split()))
  if _ENUMERATED.fullmatch(text): text = text.strip()[2:-2]  # {1, 2, ..., n}
  return re.sub(r'[\s"]', "", text).rstrip(".,;")


def plain_fractions(text):
  """Replaces characters of fractions by \\frac."""
  return re.sub(r"[\u00bc-\u00be\u2150-\u215e\u2189]", lambda m: _character(m[0]), text)


def _unify_spelling(text):
  """Returns the text with one spelling for each symbol and its words in quotation marks."""
  if not text.isascii():
    text = "".join(_character(c) for c in text)
    text = re.sub(r"[⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ]+", lambda m: "^{" + m[0].translate(_RAISED) + "}", text)
    text = re.sub(r"[₀₁₂₃₄₅₆₇₈₉]+", lambda m: "_{" + m[0].translate(_LOWERED) + "}", text)
  text = re.sub(r"\\\\\s*\[[\d.]+\s*[a-z]+\]", r"\\\\ ", text)  # \\[2pt]
  text = re.sub(r"(?<!\\)\\[()\[\]]", " ", text.replace('"', " ").translate(_CHARACTERS))
  if len(dollars := re.findall(r"(?<!\\)\$", text)) % 2 == 0 and dollars:  # Formulas, not money.
    text = re.sub(r"(?<!\\)\$", " ", text)
  if "color" in text: text = re.sub(r"\\(?:text)?color\s*\{[^{}]*\}", " ", text)
  if "\\math" in text: text = _BARE_WRAPPER.sub(r"\\\1{\2}", text)
  text = _unwrap(text)
  for pattern, new, needs in _LAYOUT:
    if needs in text: text = pattern.sub(new, text)
  if "\\" in text: text = _SPELLED.sub(lambda match: _SPELLINGS[match[1]], text)
  for pattern, new, needs in _NOTATION:
    if needs in text: text = pattern.sub(new, text)
  if "{,}" in text: text = re.sub(r"(?<=\d)\{,\}(?=\d{3})", ",", text)
  return _MIXED.sub(r"\1\\frac{\2}{\3}", _GROUPED.sub(_join_digits, text))


def _quote_word(match, letters):
  """Puts a word between quotation marks, unless it is a product of the question's variables."""
  space, word = match.groups()
  lower = word.lower()
  if lower in FUNCTIONS or lower in _CONNECTIVES or lower in _NAMES or word.isupper():
    return match[0]
  # Without a question Tim, Ed and cat are words, but ab, xyz and mc are not.
  is_word = (WORD_SHAPE.fullmatch(word) if letters is None else not letters.issuperset(word))
  return f'{space}"{word}"' if is_word else match[0]


def _character(c):
  """Maps ½ to a fraction, and digits and letters of other widths and scripts to ASCII."""
  if c.isascii() or c in "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿ₀₁₂₃₄₅₆₇₈₉√": return c
  if unicodedata.category(c) == "Cf": return ""  # Characters without width.
  if (digit := unicodedata.decimal(c, None)) is not None: return str(digit)
  if c in "…⁄": return "..." if c == "…" else "/"
  plain = unicodedata.normalize("NFKC", c)
  if "\u2044" in plain:
    above, below = plain.split("\u2044")
    return rf"\frac{{{above}}}{{{below}}}" if above and below else "\0"
  return plain if plain.isascii() else c


def _join_digits(match):
  """Removes the separators of digits from a number, unless commas in brackets separate items."""
  before = match.string[:match.start()]
  depth = sum(before.count(a) - before.count(b) for a, b in ("()", "[]"))
  depth += before.count(r"\{") - before.count(r"\}")
  if depth > 0 and re.search(r"\d,\d", match[0]): return match[0]
  return re.sub(r"\D", "", match[0])


def _unwrap(text):
  r"""Replaces commands for fonts by their content: \textbf{72} is 72, \text{cm} is words."""
  while match := _WRAPPER.search(text):
    end = find_group_end(text, match.end())
    inside, name = text[match.end() + 1:end - 1], match[1]
    plain = inside.strip().strip("$").strip()
    if _WRAPPER.search(plain): new = plain
    elif plain in ("\\$", "€", "£", "¥", "₹"): new = plain
    elif name in ("boxed", "fbox", "underline", "ensuremath") or (
        _EXACT_NUMBER.fullmatch(plain.strip("{ }"))): new = "{" + plain + "}"
    elif re.fullmatch(r"[a-z]", plain) and name in ("mathbf", "boldsymbol", "bm", "bold"):
      new = rf"\vec{{{plain}}}"
    elif re.fullmatch(r"[A-Za-z]", plain) and not name.startswith(("text", "mbox", "hbox")):
      new = f"{{{plain}}}"
    elif "math" in name or name in ("boldsymbol", "bm", "bold"):
      is_formula = re.search(r"\\|[\d{}]", plain) and not _UNIT_FORMULA.fullmatch(plain)
      new = plain if is_formula else f'"{plain}"'
    elif "operatorname" in name: new = "\\" + plain if plain in FUNCTIONS else f"\\unknown{plain}"
    elif number := _NUMBER_IN_TEXT.fullmatch(plain):  # \text{3 cm}
      before, colon, value, behind = number.groups()
      new = " ".join([f'"{before}"' * bool(before), colon, value, f'"{behind}"' * bool(behind)])
    else: new = f'"{plain}"'
    if new == f'"{plain}"': new = '"' + new[1:-1].replace('"', "").replace("~", " ").replace(
        "\\,", " ") + '"'
    text = text[:match.start()] + " " + new + " " + text[end:]
  return text


def _word(word, before, is_unit):
  """Returns the tokens of adjacent letters."""
  lower = word.lower()
  if len(word) > 1 and not word.isascii(): return ['"' + word]
  if lower in FUNCTIONS or lower == "sqrt": return ["\\" + lower]
  if lower in ("pi", "infinity", "inf", "infty"): return [r"\pi" if lower == "pi" else r"\infty"]
  if lower in _CONNECTIVES: return [_CONNECTIVES[lower]]
  if len(word) == 1: return [word]
  is_behind_number = before and (before[-1][-1] in "0123456789)}%" or before[-1] == r"\circ")
  if before and before[-1][0] == '"': return ['"' + word]
  if is_behind_number and is_unit(word) or word in ("AM", "PM"): return ['"' + word]
  if is_behind_number and word.isupper(): return list(word)  # 2ABC
  if len(word) > 3 or word.isupper() or lower in _SHORT_WORDS: return ['"' + word]
  return list(word)
