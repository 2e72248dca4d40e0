"""What a question says about its answer: units, form, and its own expressions."""
import re

from rlx.verifiers.math import forms, kinds, latex, reading, tables, units

_BASE = re.compile(r"\bbase[- ]*\$?(\w+)|\b(binary|octal|hexadecimal)\b", re.IGNORECASE)
_LETTERS = re.compile(r"(?<![^\W\d_])[^\W\d_]{1,3}(?![^\W\d_])")
_LETTER_A = re.compile(r"(?<![A-Za-z])a(?=\s*(?:[-+*/^=,.;)$|]|and\s+[a-z]\b|$))")
_PART_OF_WHOLE = re.compile(r"(?<=\d)\s*\\?%(?=\$?\s+of\b)")  # 35% of 80 is no percentage.
_WORDS = tables.words("little_words")  # Of up to three letters, which are no variables.


def read(text, answer):
  """Returns the kinds.Question of a question and its reference answer."""
  # A percent sign in the answer does not mean that the question asks for percentages.
  words = units.context(answer) - {"%", "percent"}
  if not text.strip(): return kinds.Question(words)
  words |= units.context(_PART_OF_WHOLE.sub(" ", text)) | {
      f"base {reading.BASES.get(name, name)}"
      for name in (re.sub(r"\W", "", m[1] or m[2]).lower() for m in _BASE.finditer(text))}
  runs = [run for run in _LETTERS.findall(text)
          if run.lower() not in _WORDS and not latex.WORD_SHAPE.fullmatch(run)]
  if _LETTER_A.search(text): runs.append("a")
  question = kinds.Question(
      words, frozenset("".join(runs)), units.find_asked(text), units.find_asked_quantities(text))
  return question._replace(**forms.find_asked(text, question))
