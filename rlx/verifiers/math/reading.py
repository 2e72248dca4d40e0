"""Parses the text of an answer into one of the kinds."""
import re

from rlx.verifiers.math import expressions as ex, kinds, latex, reals, tables, units
from rlx.verifiers.math.latex import Unreadable

_SIGNS = tables.TABLES["signs"]
_BETWEEN = frozenset([",", ";", r"\land", r"\lor", r"\quad", r"\\"])
_IN_CONDITIONS = frozenset(
    ["-", ",", ")", r"\quad", r"\forall", r"\in", r"\R", r"\Z", r"\N", r"\C"])
_INTEGERS = frozenset([r"\Z", r"\N"])
_CURRENCIES = frozenset("$€£¥₹")
_MATRICES = tables.words("matrices")
_NAMING = tables.words("naming") | _SIGNS.keys()
# Tokens of a name that may stand before a number.
_BEFORE_DIGITS = frozenset(["_", "{", "(", r"\to"]) | _SIGNS.keys()
# Names that contain a number: f(-3), A^{-1}, f^{-1}(x).
_NUMBERED_NAME = re.compile(
    r"[A-Za-z]\(-?[\d.]+(?:,-?[\d.]+)*\)|[A-Za-z]\^\{?(?:-1|T)\}?(?:\((?:[a-z]|-?\d+)\))?")
_PREFIX, _QUANTITY = tables.phrase("prefix"), tables.phrase("quantity")
_SENTENCE = tables.phrase("sentence")
_STATES = re.compile(r"\b(?:is|are|be|equals)$")  # "of the line is" y = 2x
_FUNCTION = re.compile(r"[A-Za-z]\([a-z]\)")
_DENIAL = tables.phrase("denial")
_EXCEPT = tables.phrase("except")
_INTEGER_WORDS = tables.phrase("integers")
_WRAPPED = re.compile(
    r"\\(?:text(?:rm|bf|it|sf|tt|normal)?|mbox|hbox|math(?:rm|bf|it|sf)|operatorname\*?|boldsymbol|"
    r"bm|underline|boxed|fbox|left|right|emph)(?![A-Za-z])|[{}$]|\\[,;:! ]|~")
_CHOICE = re.compile(r"(?:(?:option|choice|answer)\s+)?\(?\s*([A-Z])\s*\)?\s*[.:]?", re.IGNORECASE)
_CHOICE_AND_WHY = re.compile(r"(?:\(\s*([A-Z])\s*\)|([A-Z])\s*[.:)])\s*(\S.*)", re.DOTALL)
_HEDGE = tables.phrase("hedge")
# Without spaces: 1011_2, (1011)_2, 1011_(2), 1011_two, 1011 (base 2), 2A_16.
_BASED = re.compile(r"\(?(?=[A-Z]*\d)([\dA-Z]+)\)?(?:_\(?(?:base)?|\(?(?:in)?base-?)"
                    r"(\d\d?|[a-z]+)\)?", re.ASCII)
BASES, _NUMBERS = tables.TABLES["bases"], tables.TABLES["numbers"]
_CONDITION = tables.phrase("condition")
_OF_CONDITIONS = tables.phrase("of_conditions")
_LISTED = re.compile(r",\s*(?:and\s+)?|\s+and\s+")
_LEAD = re.compile(r"\s*(?:[,.;:!(，。；：（！]|\s[-–—]+\s|[–—])\s*")
_HEDGED = tables.phrase("hedged")
_NOTHING, _ALL = tables.TABLES["nothing"], tables.TABLES["everything"]


def parse_answer(text, question=kinds.NO_QUESTION, is_e_constant=False):
  """Parses the text of an answer; returns kinds.Text if it is not mathematics.

  Args:
    is_e_constant: as of `latex.tokens`.
  """
  words = question.words
  if text[:1].isalpha(): text = _SENTENCE.sub("", text, count=1)
  plain = _WRAPPED.sub(" ", text).strip()
  as_words = normalize(text)
  if as_words in _NOTHING: return kinds.Set([])
  if as_words in _ALL: return reals.EVERYWHERE
  if (number := number_of(as_words)) is not None: return kinds.Value(ex.parse([str(number)]))
  if (choice := _CHOICE.fullmatch(plain)) and choice[1].isupper(): return kinds.Choice(choice[1])
  if based := _BASED.fullmatch("".join(plain.split())):
    digits, base = based[1], BASES.get(based[2], based[2])
    if base == "10" and digits.isdigit(): return kinds.Value(ex.parse([digits]))
    if base.isdigit() and 2 <= int(base) <= 36 and all(int(c, 36) < int(base) for c in digits):
      return kinds.Based(digits.lstrip("0") or "0", base)
  try:
    return _list(_expand(_answer(latex.tokens(text, units.is_name, question.letters,
                                              is_e_constant), words)))
  except (Unreadable, RecursionError):
    return kinds.Text(as_words)


def number_of(words):
  """Returns the number below 100 that words such as "twelve" or "twenty-one" name, else None."""
  first, _, second = words.partition("-" if "-" in words else " ")
  tens, ones = (_NUMBERS.get(word) for word in (first, second or "zero"))
  if not second: return tens
  return tens + ones if None not in (tens, ones) and tens % 10 == 0 < ones < 10 < tens else None


def choice_of(text):
  """Returns the letter of "(B) 5" or "B. because ..."; None if another letter may be meant."""
  match = _CHOICE_AND_WHY.fullmatch(" ".join(_WRAPPED.sub(" ", text).split()))
  if not match or _HEDGE.search(match[3]): return None
  return match[1] or match[2]


def word_of(text):
  """Returns the normalized text before the first mark of punctuation: no of "No, it is odd".

  It is "" if what stands behind it leaves it open.
  """
  plain = re.sub(r"[*_`]{1,3}(?!\w)", "", _WRAPPED.sub(" ", text))
  lead, *rest = _LEAD.split(" ".join(plain.split()), maxsplit=1)
  return "" if rest and _HEDGED.match(rest[0]) else normalize(lead)


def normalize(text):
  """Returns a text in the form in which texts are compared: lower case, or without spaces."""
  plain = " ".join(_WRAPPED.sub(" ", text).split())
  if not re.fullmatch(r"[\w\s.,;:'!?()-]*", plain) or re.search(r"\d\s*-|[\d_]", plain):
    return re.sub(r"\s", "", plain)
  # A short word in capitals of its own is another text: boB is not Bob.
  if re.fullmatch(r"[A-Za-z]*[a-z][A-Z]", plain) and len(plain) < 4: return plain
  plain = " ".join(re.findall(r"[\w'-]+", plain.lower()))
  return re.sub(r"^(?:an? |the )?(?:(?:final |correct )?answer (?:is )?)?", "", plain)


def _answer(tokens, words):
  if r"\pmod" in tokens:  # The answer 3 (mod 7) is 3.
    tokens = tokens[:tokens.index(r"\pmod")]
  if not (tokens := _without_prefix(tokens)): raise Unreadable("nothing")
  if len(tokens) == 1 and tokens[0][0] == '"' and not re.search(r"\d", tokens[0]):
    names = _LISTED.split(tokens[0][1:])
    if len(names) > 1: return kinds.List([kinds.Text(normalize(name)) for name in names])
  tokens, family = _without_domain(tokens)
  if family: return kinds.Family(_list(_expand(_answer(tokens, words))), *family)
  tokens = _without_condition(tokens)
  if _EXCEPT.fullmatch(tokens[0]): return _difference([r"\R"], tokens[1:], words)
  parts, marks = _split(tokens, _BETWEEN)
  if marks: return _combine(parts, marks, words)
  if r"\in" in tokens and _is_name(tokens[:(i := tokens.index(r"\in"))]):
    return _answer(tokens[i + 1:], words)
  sides, signs = _split(tokens, _SIGNS)
  if signs != ["="] or not _is_name(sides[0]):
    parts, marks = _split(tokens, [r"\cup"])
    if marks: return reals.union([reals.as_reals(_answer(part, words)) for part in parts])
    parts, marks = _split(tokens, [r"\setminus"])
    if len(marks) == 1: return _difference(*parts, words)
  if signs: return _relation(sides, [_SIGNS[sign] for sign in signs], words)
  return _whole(tokens, words)


def _without_prefix(tokens):
  """Removes "the answer is" and "area:" from the start."""
  n = next((i for i, token in enumerate(tokens) if token[0] != '"'), 0)
  if n > 1: tokens = ['"' + " ".join(token[1:] for token in tokens[:n]), *tokens[n:]]
  while len(tokens) > 1 and tokens[0][0] == '"' and not _DENIAL.search(tokens[0]) and (
      _PREFIX.fullmatch(tokens[0][1:]) or _QUANTITY.fullmatch(tokens[0][1:])
      or tokens[1] == ":" and tokens[0][1:].replace(" ", "").isalpha()):
    tokens = tokens[2:] if tokens[1] in (":", "=") else tokens[1:]
  return tokens


def _without_condition(tokens):
  """Removes "for all x", "where n >= 1" or "for some constant c" from the end.

  A condition that leaves out other cases stays: "if n is even", "for x > 0", "for x = 2".
  """
  tokens = _without_bare_condition(tokens)
  starts = (i for i, token in enumerate(tokens)
            if i and (token == r"\forall" or token[0] == '"' and _CONDITION.match(token[1:])))
  if (i := next(starts, None)) is None or any(tokens[:i].count(a) != tokens[:i].count(b)
                                              for a, b in ("()", "[]", "{}")): return tokens
  behind = [token for token in tokens[i:] if token not in ("{", "}")]
  if "some" in behind[0] and "constant" not in behind[0]: return tokens  # One of a family.
  is_index = {"n", "m", "k", "N"} & set(behind)
  for token in behind:
    is_sign = _SIGNS.get(token) in ((">", ">=", "!=") if is_index else ("!=",))
    if not (is_sign or token in _IN_CONDITIONS or token.replace(".", "").isdigit()
            or token.isalpha() and len(token) == 1
            or token[0] == '"' and _OF_CONDITIONS.fullmatch(token[1:])): return tokens
  while i > 1 and tokens[i - 1] in (",", ";", r"\quad", "("): i -= 1
  return tokens[:i]


def _without_bare_condition(tokens):
  """Removes a condition without words from the end: ", n >= 1", "(x != 0)", ", C in R"."""
  if not any(token == r"\in" or _SIGNS.get(token) in (">", ">=", "!=") for token in tokens[-4:]):
    return tokens
  for i in range(len(tokens) - 3, max(0, len(tokens) - 7), -1):
    if tokens[i] not in (",", ";", r"\quad", "("): continue
    name, sign, *end = (token for token in tokens[i + 1:] if token not in ("(", ")", r"\quad"))
    sign = _SIGNS.get(sign, sign)
    if (sign == r"\in" and end[:1] in ([r"\R"], [r"\C"]) and len(end) == 1
        or end[-1:] and end[-1].isdigit() and len(end) <= 2 and (
            sign == "!=" and tokens[i] != "," or sign in (">", ">=") and name in ("n", "m", "k"))):
      kept = tokens[:i]
      while kept and kept[-1] in (",", ";", r"\quad", "("): kept = kept[:-1]
      is_bound = any(_SIGNS.get(token, "=") not in "=~" for token in kept)
      return kept if len(kept) > 1 and name in kept and not is_bound else tokens
  return tokens


def _without_domain(tokens):
  """Splits "k is an integer" from the end: (other tokens, (name, domain)), or (tokens, None)."""
  is_bracketed = tokens[-1] == ")"
  kept = tokens[:-1] if is_bracketed else tokens
  if len(kept) > 2 and kept[-2] == r"\in" and kept[-1] in _INTEGERS:
    name, domain, kept = kept[-3], kept[-1], kept[:-3]
  elif len(kept) > 2 and (integers := _INTEGER_WORDS.search(
      " ".join(token for token in kept[-2:] if token[0] == '"'))):
    name, domain = kept[-1] if len(kept[-1]) == 1 else kept[-2], integers[1] or r"\Z"
    kept = kept[:-2]
  else:
    return tokens, None
  if len(name) != 1 or not name.isalpha() or name not in kept: return tokens, None
  while kept and (kept[-1] in (",", ";", r"\quad", "|", r"\mid", ":") or kept[-1][0] == '"'):
    kept = kept[:-1]
  if is_bracketed and kept[-1:] == ["("]: kept = kept[:-1]
  return kept, (name, domain)


def _combine(parts, marks, words):
  """Combines adjacent answers into one; several inequalities become one set of numbers."""
  if any(not part and mark in (",", ";") for part, mark in zip(parts, [",", *marks])) and (
      # "1, and 2": the comma and the word are one mark.
      not parts[0] or not parts[-1] or any(not a and not b for a, b in zip(parts, parts[1:]))):
    raise Unreadable("an empty place")
  marks = {mark for part, mark in zip(parts[1:], marks) if part}
  parts = [part for part in parts if part]
  if all(len(part) == 1 and part[0][0] == '"' for part in parts):
    return kinds.List([kinds.Text(normalize(part[0][1:])) for part in parts])
  items = [_answer(part, words) for part in parts]
  if len(items) == 1: return items[0]
  first, *others = items
  is_exclusion = [[_SIGNS[s] for s in _split(part, _SIGNS)[1]] == ["!="] for part in parts]
  are_reals = [isinstance(item, kinds.Reals) for item in items]
  if all(are_reals) and marks <= {r"\land", ",", r"\\", r"\quad"}: return reals.intersection(items)
  if is_exclusion[0] and are_reals[0] and all(isinstance(item, kinds.Value) for item in others):
    return reals.exclude_items(first, others)  # x != 1, 2
  if any(are_reals) and marks == {r"\lor"} and not any(
      isinstance(item, kinds.Value) for item in items):  # x < 0 or x = 1
    return reals.union([item if isinstance(item, kinds.Reals)
                        else reals.as_reals(kinds.Set(kinds.items(item))) for item in items])
  if isinstance(first, kinds.Value) and ex.variables(first.tree) and all(
      are_reals[1:]) and all(is_exclusion[1:]): return first  # 1/x, x != 0
  return kinds.List([answer for item in items for answer in _expand(item)])


def _expand(answer):
  """Returns the two answers that one with +- stands for, else [answer]."""
  if isinstance(answer, kinds.Value):
    return [kinds.Value(tree, answer.unit) for tree in ex.expand_signs(answer.tree)]
  if isinstance(answer, kinds.Relation) and answer.signs == ["="]:
    name, value = answer.sides
    if isinstance(value, kinds.Value):
      return [kinds.Relation([name, v], ["="]) for v in _expand(value)]
  return [answer]


def _list(answers): return answers[0] if len(answers) == 1 else kinds.List(answers)


def _relation(sides, signs, words):
  if not sides[0] and signs[0] in "~=" and len(sides) == 2: return _answer(sides[1], words)
  if not all(sides): raise Unreadable("half of a relation")
  if not set(signs) & {"=", "~"} and "domain" not in words:  # -1 <= f(x) <= 3: a range.
    sides = [["y"] if _FUNCTION.fullmatch("".join(side)) else side for side in sides]
  answers = [_whole(side, words) for side in sides[1:]]
  is_e = sides[0] == ["e"] and len(sides) == 2 and not _is_name(sides[1])  # An eccentricity.
  if signs[0] in "=~" and (is_e or _is_name(sides[0])): first = _name(sides[0])
  else: first = _whole(sides[0], words)
  if signs == ["="] and isinstance(first, kinds.Value) and _is_name(sides[1]):  # 5 = x
    return kinds.Relation([_name(sides[1]), first], ["="])
  relation = kinds.Relation([first, *answers], signs)
  return reals.solve(relation) or relation


def _name(tokens):
  return kinds.Name("".join(tokens).replace('"', "").replace(" ", ""), tokens)


def _is_name(tokens, more=()):
  r"""Tells whether tokens are a name: x, f(x), a_1, \angle ABC, P(X = 3), words."""
  if _NUMBERED_NAME.fullmatch("".join(tokens)): return True
  if any(token[0] == '"' and _STATES.search(token) for token in tokens): return False
  if not tokens or tokens[0] in ("e", "i") or tokens[0] == "(" and "," not in tokens: return False
  return not _DENIAL.search(" ".join(tokens)) and all(
      token in _NAMING or token in more or token[0] == '"' or token.isalpha()
      or token[0] == "\\" and token[1:] in latex.LETTERS
      or token.isdigit() and tokens[i - 1] in _BEFORE_DIGITS for i, token in enumerate(tokens))


def _whole(tokens, words):
  """Parses an answer without relations and commas outside of brackets."""
  if tokens == [r"\emptyset"]: return kinds.Set([])
  if tokens == [r"\R"]: return reals.EVERYWHERE
  if tokens[:2] == [r"\R", "-"]: return _difference(tokens[:1], tokens[2:], words)
  if r"\begin" in tokens:
    i = tokens.index(r"\begin")
    if tokens[i - 1:i] + tokens[-1:] in (["(", ")"], ["[", "]"]) and tokens[-5:-4] == [r"\end"]:
      tokens = tokens[:i - 1] + tokens[i:-1]  # 2 ( \begin ... \end )
    if tokens[-4:-3] == [r"\end"]: return _environment(tokens, words)
  if (inner := _without_transpose(tokens)) != tokens: return _transpose(_whole(inner, words))
  if len(tokens) > 3 and tokens[1] == "(" and re.fullmatch("[A-Z]", tokens[0]) and "," in tokens:
    inner = tokens[1:]  # P(1,2): the name of a point.
  if inner[0] in latex.OPENING and _find_closing(inner) == len(inner) - 1:
    if (answer := _parse_brackets(inner, words)) is not None: return answer
  if ":" in tokens: return _colon(tokens)
  return _value(tokens, words)


def _without_transpose(tokens):
  for mark in ([r"\top"], ["T"], ["{", "T", "}"]):
    n = len(mark) + 1
    if tokens[-n:] == ["^", *mark] and tokens[-n - 1] in (")", "]", "}", r"\rangle"):
      return tokens[:-n]
  return tokens


def _parse_brackets(tokens, words):
  """Parses a set, a group or round brackets; returns None for brackets of an expression."""
  opening, closing, inside = tokens[0], tokens[-1], tokens[1:-1]
  if opening == "{":
    return None if {r"\over", r"\choose"} & set(inside) else _answer(inside, words)
  if opening == r"\{" and closing == r"\}": return _set(inside, words)
  if r"\{" == opening or r"\}" == closing or not inside: raise Unreadable("brackets")
  items, marks = _split(inside, [",", ";", r"\\"])
  if not marks:
    is_plain = opening + closing == "()" or inside[0] == r"\begin"
    return _answer(inside, words) if is_plain else None
  if set(marks) not in ({","}, {";"}): raise Unreadable("brackets")
  return kinds.Group(opening, closing, [_answer(item, words) for item in items])


def _set(inside, words):
  if not inside: return kinds.Set([])
  is_family = inside[-1] in _INTEGERS and inside[-2:-1] == [r"\in"]
  for mark in ("|", r"\mid", ":"):  # {x | x < 2}
    if mark in inside and _is_name(inside[:(i := inside.index(mark))], (r"\in", r"\R")):
      answer = _answer(inside[i + 1:], words)
      return answer if is_family else reals.as_reals(answer)
  if is_family and len(_split(inside, ["|", r"\mid", ":"])[0]) == 2:  # {3k | k in Z}
    return _answer(inside, words)
  parts, _ = _split(inside, [",", ";"])
  items = [item for part in parts for item in _expand(_answer(part, words))]
  if len(items) == 1 and isinstance(items[0], kinds.Reals): return items[0]  # {1 < x < 3}
  return kinds.Set(items)


def _difference(numbers, without, words):
  """Parses the difference of two sets of real numbers."""
  return reals.exclude_items(_answer(numbers, words), kinds.items(_answer(without, words)))


def _environment(tokens, words):
  """Parses a matrix, also after a factor, or the rows of cases."""
  start = tokens.index(r"\begin")
  factor, tokens = tokens[:start], tokens[start:]
  name = tokens[2].strip('"') if len(tokens) > 4 and tokens[1] == "{" else ""
  if tokens.count(r"\end") != 1 or tokens[-2].strip('"') != name: raise Unreadable("rows")
  body = tokens[4:-4]
  if name == "array" and body[:1] == ["{"]: body = body[_find_closing(body) + 1:]
  while body and body[-1] == r"\\": body = body[:-1]
  rows = [_split(row, ["&"])[0] for row in _split(body, [r"\\"])[0]]
  if name == "cases" and not factor:
    return _combine([[token for cell in row for token in cell if token != ","] for row in rows],
                    [r"\\"] * (len(rows) - 1), words)
  if name not in _MATRICES: raise Unreadable(name)
  rows = [[_answer(cell, words) for cell in row] for row in rows]
  if not factor: return kinds.Matrix(rows)
  if factor[-1] in (r"\cdot", r"\times", "*"): factor = factor[:-1]
  factor = ex.parse([*factor, "1"] if factor == ["-"] else factor)
  return kinds.Matrix([[kinds.Value(_times(factor, tree_of(cell))) for cell in row]
                       for row in rows])


def _transpose(answer):
  if isinstance(answer, kinds.Group): return kinds.Matrix([[item] for item in answer.items])
  if not isinstance(answer, kinds.Matrix) or len(set(map(len, answer.rows))) != 1:
    raise Unreadable("a transpose")
  return kinds.Matrix([list(column) for column in zip(*answer.rows)])


def tree_of(answer):
  """Returns the tree of an expression without a unit.

  Raises:
    Unreadable: the answer is of another kind, or has a unit.
  """
  if not isinstance(answer, kinds.Value) or answer.unit is not None:
    raise Unreadable("no expression")
  return answer.tree


def _colon(tokens):
  parts, _ = _split(tokens, [":"])
  suffix = ""
  if parts[-1] and parts[-1][-1][0] == '"':
    suffix = re.sub(r"[. ]", "", parts[-1].pop()[1:].lower())
  if suffix not in ("", "am", "pm"): raise Unreadable("words")
  return kinds.Colon([ex.parse(part) for part in parts], suffix)


def _value(tokens, words):
  """Parses a number or an expression with its unit, if it has one."""
  is_debt = tokens[0] == "-" and tokens[1:2] and tokens[1] in _CURRENCIES  # -$5
  if is_debt: tokens = tokens[1:]
  unit = units.parse_unit(tokens[0]) if tokens[0] in _CURRENCIES else None
  tokens = tokens[unit is not None:]
  # Words in braces are indices.
  end = next((i for i, token in enumerate(tokens) if token in _CURRENCIES
              or token[0] == '"' and tokens[i - 1] != "{"), len(tokens))
  if not end: raise Unreadable("words")
  tree, behind = ex.parse(tokens[:end]), " ".join(token.strip('"') for token in tokens[end:])
  behind = re.sub(r"\s*([\^{}/])\s*", r"\1", behind).replace(r"\cdot", " ").strip()
  factor, behind = units.scale(behind)
  if factor != 1: tree = _times(ex.make_number(factor), tree)
  if is_debt: tree = ("neg", tree)
  degrees = units.parse_unit("degrees")
  if behind.lower() in ("am", "pm"): return kinds.Colon([tree, ex.make_number(0)], behind.lower())
  if units.is_percent(behind): tree = ("%", tree)
  elif behind:
    unit_behind = units.parse_unit(behind, words)
    if unit_behind is None or unit not in (None, unit_behind): raise Unreadable(f"{behind!r}")
    unit = unit_behind
  if tree[0] == "deg": return kinds.Value(tree[1], degrees)
  if unit == degrees and tree[0] == "%": raise Unreadable("two units")
  return kinds.Value(tree, unit)


def _times(factor, tree):
  """Returns the product, as one number if it is rational."""
  return ex.simplify(("*", factor, tree, False))


def _split(tokens, marks):
  """Splits tokens at marks outside of brackets: (parts, the marks between them)."""
  parts, between = [[]], []
  for token, depth in zip(tokens, latex.depths(tokens)):
    if token in marks and depth == 0:
      parts.append([])
      between.append(token)
    else:
      parts[-1].append(token)
  return parts, between


def _find_closing(tokens):
  """Returns the index of the bracket that closes the first one, of whatever shape."""
  depths = list(latex.depths(tokens))
  if 0 not in depths: raise Unreadable("brackets are not balanced")
  return depths.index(0)
