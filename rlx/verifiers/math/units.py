"""Parses names of units into what they measure and how large they are."""
import fractions
import re

from rlx.verifiers.math import tables

# Quantities of which a question asks for one, so that the others are wrong.
_TEMPERATURES = {"celsius", "fahrenheit", "temperature"}
_INSTEAD = (_TEMPERATURES,
            {"dollars", "euros", "pounds sterling", "yen", "rupees", "yuan"})
_POWERS, _SCALES = tables.TABLES["powers"], tables.TABLES["scales"]
# A division or product sign, or a name with a power before or after it.
_UNIT = re.compile(r"(/|per\b|[*.])|(?:(square|sq|cubic)\b[\s.]*)?([^\W\d_]+|[$€£¥₹¢])"
                   r"\s*(\^-?\d|squared\b|cubed\b)?")
# What a question asks for, in English and Chinese.
_ASKED = tables.phrase("asked_unit")
_ASKED_QUANTITY = tables.phrase("asked_quantity")
_QUANTITIES = {name: powers for names, powers in tables.TABLES["quantities"].items()
               for name in names.split()}
_CHINESE = {"平方": "square ", "立方": "cubic ", "每": "/"}
_OF_SPEEDS = {"时": "小时", "分": "分钟"}  # Behind a slash; elsewhere they are other words.
_SPEEDS = {"mph": "mile/hour", "kph": "km/hour"}
_PERCENT = ("%", "percent", "per cent", "percents")
_NO_UNIT = tables.words("no_unit")
# {name: (quantity, size)}; a counted thing, such as an apple, is a quantity of its own.
_KNOWN = {name: (quantity, fractions.Fraction(size))
          for quantity, units in tables.TABLES["units"].items()
          for names, size in units.items() for name in names.split()}
_SENTENCES = re.compile(r"(?<=[.?!;])\s+|(?<=[。？！；])")
_PHYSICAL = {quantity for quantity, _ in _KNOWN.values()} - {"units"}
_WRAPPED = re.compile(r"\\(?:text|mathrm|rm)(?![A-Za-z])|[{}$~]|\\[,;: ]")
_KNOWN |= {word: (word, fractions.Fraction(1)) for word in tables.words("counted")}


def is_name(word):
  """Tells whether a word of two letters or more is the name of a unit."""
  return len(word) > 1 and (_measure(word) is not None or word.lower() in _SPEEDS)


def scale(words):
  """Splits "million dollars" into the factor of its first word and the other words."""
  first, _, rest = words.partition(" ")
  if words[:1] in _SCALES: return _SCALES[words[0]], words[1:].strip()
  if (name := _stem(first.lower())) in _SCALES: return _SCALES[name], rest.strip()
  return 1, words


def is_percent(words):
  """Tells whether words are a percent sign or name one."""
  return words.lower() in _PERCENT


def parse_unit(words, context=frozenset()):
  """Parses "km/h", "square feet" or "m/s^2".

  Args:
    context: words of the question and of the reference answer. Any of them with four letters
      or more, such as "apples", is a unit of a quantity of its own.
  Returns:
    (size, {quantity: power}), or None if the words are not a unit.
  """
  # 3M is three million; 3K is three thousand, unless the question is about temperatures.
  if words in ("M", "B", "T"): return None
  if words == "K" and not context & {"k", "kelvin", "temperature"}: return None
  words = re.sub(r"[{}()]|\\cdot", " ", words.lower())
  for name, new in _SPEEDS.items(): words = words.replace(name, new)
  words = re.sub(r"\bdegrees?\s+(?=celsius|fahrenheit|kelvin)", "", words)
  if not words.isascii():
    for name, new in _CHINESE.items(): words = words.replace(name, new)
    words = re.sub(r"(?<=/)[时分]\b", lambda m: _OF_SPEEDS[m[0]], words)
  words = re.sub(r"\^\s*(-?)\s*(\d)", r"^\1\2", words).strip()
  if _UNIT.sub("", words).strip(): return None
  size, powers, sign = fractions.Fraction(1), {}, 1
  for mark, before, name, power in _UNIT.findall(words):
    if mark in ("/", "per"): sign = -1
    if not name: continue
    if (measure := _measure(name)) is None:
      stem = _stem(name)
      if len(name) < 4 or {name, stem} & _NO_UNIT or stem in _SCALES: return None
      if stem not in context: return None
      measure = (stem, fractions.Fraction(1))
    quantity, unit = measure
    n = sign * _POWERS.get(before, 1) * (_POWERS.get(power) or int(power.strip("^") or 1))
    powers[quantity] = powers.get(quantity, 0) + n
    size *= unit ** n
  return size, {k: v for k, v in powers.items() if v and k != "units"}


def context(*texts):
  """Returns the words of texts in the form that `parse_unit` expects."""
  return frozenset(_stem(w) for t in texts for w in re.findall(r"[^\W\d_]+|[%$€£¥]", t.lower()))


def find_asked_sizes(quantities, words):
  """Returns the sizes of the units of a quantity that a question names."""
  if len(quantities) != 1 or list(quantities.values()) != [1]: return set()
  measures = [_measure(w) for w in words if (len(w) > 1 or w in "$€£¥") and w != "in"]
  return {size for quantity, size in filter(None, measures) if quantity in quantities}


def find_asked(question):
  """Returns the units that a question asks for: "in km/h", "how many cubic metres", 多少千克."""
  words = context(question)
  for sentence in reversed(_SENTENCES.split(_WRAPPED.sub(" ", question))):
    # Things are counted ("how many pens"); "how much money" names no unit.
    units = (_find_unit(match[2], words if match[1].lower().startswith("how many") else frozenset())
             for match in _ASKED.finditer(sentence))
    if asked := tuple(unit for unit in units if unit is not None): return asked
  return ()


def _find_unit(text, context_):
  """Returns the longest unit with which a text begins, None without one."""
  parts = re.findall(r"[\u3400-\u9fff]|[A-Za-z°]+(?:\s*\^\s*\d|[²³])?|/", text)
  if parts[:1] == ["a"]: return None  # "How much does it cost in a month?"
  if parts and parts[0].lower() in ("in", "more", "fewer", "total", "whole", "full"): del parts[0]
  for n in range(min(len(parts), 6), 0, -1):
    last = parts[n - 1]
    # A single letter may be a word or a variable.
    if last in ("/", "a") or len(last) == 1 and last.isascii() and len(parts) > n: continue
    words = ("" if "\u3400" <= parts[0] else " ").join(parts[:n])
    unit = parse_unit(words.replace("²", "^2").replace("³", "^3"))
    if unit and unit[1] and unit[1].keys() <= _PHYSICAL: return unit
  unit = parse_unit(parts[0], context_) if parts and context_ else None
  return unit if unit and unit[1] else None


def find_asked_quantities(question):
  """Returns the quantities that a question asks for by name, such as {"length": 2} for an area."""
  named = {_QUANTITIES[m[1].lower()] for m in _ASKED_QUANTITY.finditer(question)}
  return tuple(dict(_parse_powers(powers)) for text in named for powers in text.split(" or "))


def _parse_powers(text):
  return ((name, int(power or 1)) for name, _, power in
          (part.partition("^") for part in text.split()))


def is_other(unit, question):
  """Tells whether a question asks for another unit, or names one instead: cubic for an area,
  celsius for fahrenheit."""
  quantities, words = unit[1], question.words
  if question.units and quantities and unit not in question.units:
    if quantities == {"angle": 1} and any(
        asked[1].keys() & _TEMPERATURES for asked in question.units): return False
    # Things may have another name than in the question, but apples are no kilograms.
    return bool(_PHYSICAL & {*quantities, *(q for asked in question.units for q in asked[1])})
  if question.quantities and quantities.keys() <= _PHYSICAL and quantities and (
      quantities not in question.quantities): return True
  named = {_measure(w)[0] for w in words if len(w) > 1 and _measure(w)}
  for group in _INSTEAD:
    if quantities.keys() & group and named & group and not quantities.keys() & named: return True
  n = quantities.get("length") if len(quantities) == 1 else None
  named = {2 * ("square" in words), 3 * ("cubic" in words)} - {0}
  return n in (2, 3) and len(named) == 1 and n not in named


def _measure(word):
  """Returns (quantity, size) of the name of a unit, None for other words."""
  word = word.lower()
  if word in _KNOWN: return _KNOWN[word]
  if word.endswith("es") and word[:-2] in _KNOWN and len(word) > 4: return _KNOWN[word[:-2]]
  if word.endswith("s") and len(word) > 2: return _KNOWN.get(word[:-1])
  return None


def _stem(word):
  return word[:-1] if len(word) > 3 and word[-1] == "s" and word[-2] not in "su" else word
