r"""Typed answers: text -> an answer of some kind, and when two of them agree.

An answer is a tuple of its kind and its parts:

  value tree unit        integer, decimal, fraction, closed expression, one in variables
  relation sides signs   equation, inequality, chain of them
  reals pieces           interval, union of intervals, solved inequality
  group open close items tuple, point, vector, or an interval: the reference decides
  matrix rows    set items    list items    choice letter    text words
  colon parts            ratio, time
  based digits base      a number in another base
"""
import functools
import itertools
import re

from rlx.verifiers._math import expressions as ex
from rlx.verifiers._math import latex
from rlx.verifiers._math import units
from rlx.verifiers._math.latex import Unreadable

_OPEN = {"(": ")", "[": "]", "{": "}", r"\{": r"\}", r"\langle": r"\rangle"}
_CLOSE = frozenset([")", "]", "}", r"\}", r"\rangle"])
_SIGNS = {"=": "=", "<": "<", ">": ">", r"\lt": "<", r"\gt": ">", r"\le": "<=", r"\ge": ">=",
          r"\ne": "!=", r"\approx": "~", r"\equiv": "="}
_TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "!=": "!=", "~": "~"}
_NAMING = frozenset(r"\angle \triangle | \mid \vec \bar \hat \tilde \overline \min \max \lim \sup \to \infty \cap \cup \| \sin \cos \tan".split())
_BETWEEN = frozenset([",", ";", r"\land", r"\lor", r"\quad", r"\\"])
_CURRENCIES = frozenset("$€£¥₹")
_ORDERED = frozenset(["order", "ordered", "respectively", "sequence"])  # Words of a question.
_INFINITY, _MINUS_INFINITY = ("inf",), ("neg", ("inf",))
_EVERYWHERE = (_MINUS_INFINITY, _INFINITY, False, False)
_LOGARITHMS = frozenset(["ln", "log", "lg"])
# What may stand before an answer in its box.
_PREFIX = re.compile(r"(?:so |thus |therefore |hence )?(?:the |my |our )?(?:final |correct )?"
                     r"(?:answer|result|solution|value)s?(?: is| are|:|=)*:?|exactly|[\w ]+:", re.IGNORECASE)
_WRAPPED = re.compile(r"\\(?:text(?:rm|bf|it|sf|tt|normal)?|mbox|hbox|math(?:rm|bf|it|sf)|operatorname\*?|"
                      r"boldsymbol|bm|underline|boxed|fbox|left|right|emph)(?![A-Za-z])|[{}$]|\\[,;:! ]|~")
_CHOICE = re.compile(r"(?:(?:option|choice|answer)\s+)?\(?\s*([A-Z])\s*\)?\s*[.:]?", re.IGNORECASE)
_CHOICE_AND_WHY = re.compile(r"(?:\(\s*([A-Z])\s*\)|([A-Z])\s*[.:)])\s*(\S.*)", re.DOTALL)
_NOTHING = frozenset(["no solution", "no solutions", "no real solution", "no real solutions",
                      "there is no solution", "there are no solutions", "empty set", "the empty set"])
_ALL = frozenset(["all real numbers", "all reals", "all real x", "all real values"])
_BASED = re.compile(r"\(?\s*(?=[A-Z]*\d)([\dA-Z]+)\s*\)?\s*_\s*(\d\d?)")
# f(-3), A^{-1}, f^{-1}(x): names with a number in them.
_NAME = re.compile(r"[A-Za-z]\(-?[\d.]+(?:,-?[\d.]+)*\)|[A-Za-z]\^\{?(?:-1|T)\}?(?:\((?:[a-z]|-?\d+)\))?")
# Behind a letter, what says that another one is meant, or none.
_HEDGE = re.compile(r"\b(?i:or|not|no|isn't|wrong|incorrect|false|neither|both|and)\b|\b[A-Z]\s*[).:]|\b[B-H]\b")
_EXCEPT = re.compile(r'"all (?:real numbers|reals|real values)(?: of)?(?: x)?,? (?:except|but|other than)(?: for)?', re.IGNORECASE)
_INTEGERS = re.compile(r"\b((?:positive|negative|non-?negative) )?integers?$|\bintegers?\b", re.IGNORECASE)
_DENIAL = re.compile(r"\b(?:not|no|never|isn't|wrong|incorrect|false)\b", re.IGNORECASE)


def read(text, words=frozenset()):
  """The answer that a text is; words, where it is nothing that can be read as mathematics.

  Args:
    words: of the question and the reference answer, `units.context`.
  """
  plain = _WRAPPED.sub(" ", text).strip()
  said = _words(text)
  if said in _NOTHING: return ("set", [])
  if said in _ALL: return ("reals", [_EVERYWHERE])
  if (choice := _CHOICE.fullmatch(plain)) and choice[1].isupper(): return ("choice", choice[1])
  if (based := _BASED.fullmatch(plain)) and 2 <= int(based[2]) <= 36 and all(
      int(c, 36) < int(based[2]) for c in based[1]):
    return ("based", based[1].lstrip("0") or "0", based[2])
  try:
    return _one(_expanded(_read(latex.tokens(text, units.is_name), words)))
  except (Unreadable, RecursionError):
    return ("text", said)


def reference(answer):
  """What a reference answer asks for: of "ln e^5 = 5" it is 5, of "t = ln 9 = 2 ln 3" either."""
  if answer[0] != "relation" or not set(answer[2]) <= {"=", "~"}: return answer
  sides = answer[1]
  is_named = sides[0][0] == "name"
  if not is_named and (_has_only_names(sides[0]) or any(s[0] != "value" or ex.variables(s[1]) for s in sides)):
    return answer
  if is_named and len(sides) == 2: return answer
  last = sides[-1]
  kept = [s for s in sides[is_named or answer[2][0] == "=":-1] if s[0] == last[0] == "value"
          and ex.variables(s[1]) <= ex.variables(last[1]) and not is_task(s[1], last[1])]
  return ("either", [*kept, last])


def agree(gold, stated, words=frozenset()):
  """Does a stated answer say what the reference answer says?"""
  try:
    if stated[0] == "family" and gold[0] == "value" and stated[2] in ex.variables(gold[1]): stated = stated[1]
    if gold[0] in ("group", "matrix") or stated[0] in ("group", "matrix"):
      gold, stated = _vector(gold), _vector(stated)
    if stated[0] == "relation" and stated[2] == ["="] and stated[1][0][0] == "name" and gold[0] in (
        "group", "matrix", "reals", "colon", "based"): stated = stated[1][1]
    return _AGREE[gold[0]](gold, stated, words)
  except (Unreadable, RecursionError):
    return False


def _words(text):
  """A text to compare as text: its words in lower case; a formula letter by letter."""
  plain = " ".join(_WRAPPED.sub(" ", text).split())
  if re.fullmatch(r"[\w\s.,;:'!?()-]*", plain) and not re.search(r"\d\s*-|[\d_]", plain):
    plain = " ".join(re.findall(r"[\w'-]+", plain.lower()))
    plain = re.sub(r"^(?:an?|the) ", "", plain)
    return re.sub(r"^(?:the )?(?:final |correct )?answer(?: is)? ", "", plain)
  return re.sub(r"\s", "", plain)


# Reading.


def _read(tokens, words):
  if not tokens: raise Unreadable("nothing")
  tokens, family = _without_condition(tokens)
  if family: return ("family", _one(_expanded(_read(tokens, words))), *family)
  while len(tokens) > 1 and tokens[0][0] == '"' and not _DENIAL.search(tokens[0]) and (
      _PREFIX.fullmatch(tokens[0][1:]) or tokens[1] == ":" and tokens[0][1:].replace(" ", "").isalpha()):
    tokens = tokens[2:] if tokens[1] in (":", "=") else tokens[1:]
  if _EXCEPT.fullmatch(tokens[0]): return _difference([[r"\R"], tokens[1:]], words)
  if r"\pmod" in tokens: tokens = tokens[:tokens.index(r"\pmod")]  # 3 (mod 7) says where 3 is from.
  parts, seps = _split(tokens, _BETWEEN)
  if len(parts) > 1: return _several(parts, seps, words)
  if r"\in" in tokens and _is_name(tokens[:(i := tokens.index(r"\in"))]): return _read(tokens[i + 1:], words)
  sides, signs = _split(tokens, _SIGNS)
  if signs != ["="] or not _is_name(sides[0]):
    if (union := _split(tokens, [r"\cup"])[0])[1:]:
      return _union([_reals(_read(part, words)) for part in union])
    if (parts := _split(tokens, [r"\setminus"])[0])[1:]: return _difference(parts, words)
  if signs: return _relation(sides, [_SIGNS[s] for s in signs], words)
  return _whole(tokens, words)


def _without_condition(tokens):
  """(tokens, (name, domain)) without "k is an integer" at their end; (tokens, None) without it."""
  kept = tokens[:len(tokens) - (tokens[-1] == ")")]
  if kept[-2:-1] == [r"\in"] and kept[-1] in (r"\Z", r"\N"): name, domain, kept = kept[-3], kept[-1], kept[:-3]
  elif len(kept) > 2 and (said := _INTEGERS.search(" ".join(t for t in kept[-2:] if t[0] == '"'))):
    name, domain = kept[-1] if len(kept[-1]) == 1 else kept[-2], said[1] or r"\Z"
    kept = kept[:-2]
  else: return tokens, None
  if len(name) != 1 or not name.isalpha() or not kept or name not in kept: return tokens, None
  while kept and (kept[-1] in (",", ";", r"\quad", "|", r"\mid", ":") or kept[-1][0] == '"'): kept = kept[:-1]
  if tokens[-1] == ")" and kept[-1:] == ["("]: kept = kept[:-1]
  return kept, (name, domain)


def _whole(tokens, words):
  """An answer without relations and commas outside of brackets."""
  if tokens == [r"\emptyset"]: return ("set", [])
  if tokens[0] == r"\begin" and tokens[-4:-3] == [r"\end"]: return _environment(tokens, words)
  if tokens == [r"\R"]: return ("reals", [_EVERYWHERE])
  if tokens[:2] == [r"\R", "-"]: return _difference([[r"\R"], tokens[1:]], words)
  inner = _without_transpose(tokens)
  is_turned = len(inner) < len(tokens)
  # P(1,2): the name of a point.
  if len(inner) > 3 and inner[1] == "(" and len(inner[0]) == 1 and inner[0].isupper() and "," in inner:
    inner = inner[1:]
  if inner and inner[0] in _OPEN and inner[0] != "{" and _closing(inner, 0) == len(inner) - 1:
    found = _bracketed(inner, words)
    if found is not None: return _transposed(found) if is_turned else found
  if inner and inner[0] == r"\begin" and is_turned: return _transposed(_environment(inner, words))
  if is_turned: raise Unreadable("a transpose")
  if r"\begin" in tokens and tokens[-4:-3] == [r"\end"]: return _scaled(tokens, words)
  if tokens[0] == "{" and _closing(tokens, 0) == len(tokens) - 1 and not {r"\over", r"\choose"} & set(tokens):
    return _read(tokens[1:-1], words)
  if ":" in tokens: return _colon(tokens, words)
  return _value(tokens, words)


def _without_transpose(tokens):
  for mark in ([r"\top"], ["T"], ["{", "T", "}"]):
    n = len(mark) + 1
    if tokens[-n:] == ["^", *mark] and tokens[-n - 1] in (")", "]", "}", r"\rangle"): return tokens[:-n]
  return tokens


def _value(tokens, words):
  """A number or an expression, with its unit if it has one."""
  unit, sign = None, False
  if tokens[0] == "-" and tokens[1:2] and tokens[1] in _CURRENCIES: tokens, sign = tokens[1:], True
  if tokens[0] in _CURRENCIES:
    unit, tokens = units.read(tokens[0]), tokens[1:]
  tokens = _joined_fraction(tokens)
  if tokens[-3:-1] == ["^", r"\circ"] and tokens[-1].strip('"') in ("C", "F"):
    tokens = [*tokens[:-3], {"C": '"celsius', "F": '"fahrenheit'}[tokens[-1].strip('"')]]
  split = next((i for i, t in enumerate(tokens) if t in _CURRENCIES or t[0] == '"' and tokens[i - 1] != "{"),
               len(tokens))
  if not split: raise Unreadable("words")
  tree, behind = _number_and_sign(tokens[:split]), " ".join(t.strip('"') for t in tokens[split:])
  behind = re.sub(r"\s*([\^{}/])\s*", r"\1", behind).replace(r"\cdot", " ").strip()
  times, behind = units.scale(behind)
  if times != 1: tree = _times(ex.whole(times), tree)
  if sign: tree = ("neg", tree)
  if behind:
    if units.is_percent(behind): tree = ("%", tree)
    elif unit is not None:
      if units.read(behind, words) != unit: raise Unreadable("two units")
    elif (unit := units.read(behind, words)) is None: raise Unreadable(f"{behind!r}")
  if tree[0] == "deg": tree, unit = tree[1], units.read("degrees")
  elif unit == units.read("degrees") and tree[0] == "%": raise Unreadable("two units")
  return ("value", tree, unit)


def _times(factor, tree):
  """The product, worked out where it is rational."""
  product = ("*", factor, tree, False)
  return product if (exact := ex.rational(product)) is None else ("num", exact, None)


def _number_and_sign(tokens):
  """An expression; a sign of percent or degrees behind a mixed number is of all of it."""
  for end, kind in ((["%"], "%"), (["^", r"\circ"], "deg")):
    if tokens[-len(end):] == end:
      tree = ex.parse(tokens[:-len(end)])
      inner = tree[1] if tree[0] == "neg" else tree
      if inner[3:] == ("mixed",): return (kind, tree)
  return ex.parse(tokens)


def _joined_fraction(tokens):
  r"""\frac{\text{km}}{\text{h}} as km/h."""
  for i in range(len(tokens) - 6):
    if tokens[i:i + 2] == [r"\frac", "{"] and tokens[i + 2][0] == '"' == tokens[i + 5][0]:
      if [tokens[j] for j in (i + 3, i + 4, i + 6)] == ["}", "{", "}"]:
        return [*tokens[:i], f"{tokens[i + 2]} / {tokens[i + 5][1:]}", *tokens[i + 7:]]
  return tokens


def _bracketed(tokens, words):
  opening, closing, inside = tokens[0], tokens[-1], tokens[1:-1]
  if opening == r"\{":
    if closing != r"\}": raise Unreadable("brackets")
    return _set(inside, words)
  if not inside or closing == r"\}": raise Unreadable("brackets")
  if inside[0] == r"\begin" and "array" in inside[2]: return _environment(inside, words)
  items, seps = _split(inside, [",", ";", r"\\"])
  if len(items) < 2:
    if opening == "(" and closing == ")": return _read(inside, words)
    return None  # Brackets of an expression.
  if set(seps) not in ({","}, {";"}): raise Unreadable("brackets")
  return ("group", opening, closing, [_read(item, words) for item in items])


def _set(inside, words):
  if not inside: return ("set", [])
  for mark in ("|", r"\mid", ":"):  # {x | x < 2}
    if mark in inside and _is_name(head := inside[:(i := inside.index(mark))], (r"\in", r"\R")):
      if not head: break
      if inside[-1] in (r"\Z", r"\N") and inside[-2:-1] == [r"\in"]: return _read(inside[i + 1:], words)  # x = 3k, k in Z
      return _reals(_read(inside[i + 1:], words))
  if inside[-1] in (r"\Z", r"\N") and len(_split(inside, ["|", r"\mid", ":"])[0]) == 2: return _read(inside, words)
  items, seps = _split(inside, [",", ";"])
  if not all(items): raise Unreadable("an empty place")
  members = [member for item in items for member in _expanded(_read(item, words))]
  if len(members) == 1 and members[0][0] == "reals": return members[0]  # {1 < x < 3}
  return ("set", members)


def _difference(parts, words):
  """Real numbers without some of them."""
  if parts[1][:1] == ["-"]: parts[1] = parts[1][1:]
  if len(parts) != 2: raise Unreadable("a set")
  without = _items(_read(parts[1], words))
  if without is None: raise Unreadable("a set")
  return functools.reduce(_intersection, (_without(_number_in(item)) for item in without),
                          _reals(_read(parts[0], words)))


def _without(number):
  """All real numbers but one."""
  return ("reals", [(_MINUS_INFINITY, number, False, False), (number, _INFINITY, False, False)])


def _environment(tokens, words):
  name = tokens[2].strip('"') if len(tokens) > 4 and tokens[1] == "{" else ""
  ends = [i for i, t in enumerate(tokens) if t == r"\end"]
  body_end = len(tokens) - 4
  if len(ends) != 1 or ends[0] != body_end or tokens[ends[0] + 2].strip('"') != name: raise Unreadable("rows")
  body = tokens[4:body_end]
  if name == "array" and body[:1] == ["{"]: body = body[_closing(body, 0) + 1:]
  while body and body[-1] == r"\\": body = body[:-1]
  rows = [_split(row, ["&"])[0] for row in _split(body, [r"\\"])[0]]
  if name == "cases":
    return _several([[t for cell in row for t in cell if t != ","] for row in rows],
                    [r"\\"] * (len(rows) - 1), words)
  if name not in ("pmatrix", "bmatrix", "matrix", "array", "Bmatrix", "smallmatrix"): raise Unreadable(name)
  return ("matrix", [[_read(cell, words) for cell in row] for row in rows])


def _scaled(tokens, words):
  """A number before a matrix."""
  at = tokens.index(r"\begin")
  factor, (kind, rows) = ex.parse(tokens[:at]), _environment(tokens[at:], words)
  if kind != "matrix": raise Unreadable("a number before rows")
  return ("matrix", [[("value", _times(factor, _tree(cell)), None) for cell in row] for row in rows])


def _transposed(answer):
  if answer[0] == "group": return ("matrix", [[item] for item in answer[3]])
  if answer[0] != "matrix" or len({len(row) for row in answer[1]}) != 1: raise Unreadable("a transpose")
  return ("matrix", [list(column) for column in zip(*answer[1])])


def _several(parts, seps, words):
  """Answers side by side; inequalities are one set of numbers."""
  kept = [(part, sep) for part, sep in zip(parts, [",", *seps]) if part]
  if len(kept) < len(parts) and any(s in (",", ";") and not p for p, s in zip(parts, [",", *seps])):
    # "1, and 2": the comma and the word are one mark.
    if any(not p and not q for p, q in zip(parts, parts[1:])) or not parts[0] or not parts[-1]:
      raise Unreadable("an empty place")
  items = [_read(part, words) for part, _ in kept]
  if len(items) == 1: return items[0]
  marks, reals = {s for _, s in kept[1:]}, [item for item in items if item[0] == "reals"]
  if len(reals) == len(items) and marks <= {r"\land", ",", r"\\", r"\quad"}:
    return functools.reduce(_intersection, items)
  if _signs_of(kept[0][0]) == ["!="] and reals == items[:1] and all(item[0] == "value" for item in items[1:]):
    return functools.reduce(_intersection, [items[0], *(_without(_number_in(item)) for item in items[1:])])
  if reals and marks == {r"\lor"}:  # x < 0 or x = 1
    points = [_items(item) for item in items if item[0] != "reals"]
    if not any(item[0] == "value" for item in items) and None not in points:
      return _union([*reals, *(_reals(("set", point)) for point in points)])
  if len(reals) == len(items) - 1 and all("!=" in _signs_of(part) for part, _ in kept[1:]) and (
      items[0][0] == "value" and ex.variables(items[0][1])): return items[0]  # 1/x, x != 0
  return ("list", [found for item in items for found in _expanded(item)])


def _expanded(item):
  """An answer with +- is two."""
  if item[0] == "value": return [("value", tree, item[2]) for tree in _signed(item[1])]
  if item[0] == "relation" and item[2] == ["="] and item[1][1][0] == "value":
    return [("relation", [item[1][0], v], ["="]) for v in _expanded(item[1][1])]
  return [item]


def _one(items): return items[0] if len(items) == 1 else ("list", items)


def _signs_of(tokens): return [_SIGNS[sign] for sign in _split(tokens, _SIGNS)[1]]


def _signed(tree):
  """The trees that one with +- stands for."""
  if not any(n[0] in ("pm", "mp") for n in ex.nodes(tree)): return [tree]
  return [ex.with_sign(tree, sign) for sign in (1, -1)]


def _relation(sides, signs, words):
  if not sides[0] and signs[0] in ("~", "="):
    if len(sides) == 2: return _read(sides[1], words)
  if not all(sides): raise Unreadable("half of a relation")
  found = [("name", "".join(side).replace('"', "").replace(" ", ""), side) if i == 0 and len(side) > 0
           and _is_name(side) and signs[0] in "=~" else _whole(side, words) for i, side in enumerate(sides)]
  if signs == ["="] and len(sides) == 2 and found[0][0] == "value" and _is_name(sides[1]):
    return ("relation", [("name", "".join(sides[1]), sides[1]), found[0]], ["="])  # 5 = x
  answer = ("relation", found, signs)
  return _solved(answer) or answer


def _solved(relation):
  """The real numbers of x < 2, 2 > x, 1 < x <= 3 and x != 2; None of any other relation."""
  _, sides, signs = relation
  if not all(s in ("<", "<=", ">", ">=", "!=") for s in signs): return None
  if not all(side[0] == "value" and side[2] is None for side in sides): return None
  trees = [side[1] for side in sides]
  place = [i for i, tree in enumerate(trees) if tree[0] == "sym"]
  if len(place) != 1 or any(ex.variables(t) for i, t in enumerate(trees) if i != place[0]): return None
  (at,) = place
  if len(trees) == 2:
    sign, end = (signs[0], trees[1]) if at == 0 else (_TURNED[signs[0]], trees[0])
    if sign == "!=": return functools.reduce(_intersection, map(_without, _signed(end)))
    if sign[0] == "<": return ("reals", [(_MINUS_INFINITY, end, False, sign == "<=" and end != _INFINITY)])
    return ("reals", [(end, _INFINITY, sign == ">=", False)])
  if len(trees) != 3 or at != 1 or signs[0][0] != signs[1][0] or signs[0] == "!=": return None
  low, high = (0, 2) if signs[0][0] == "<" else (2, 0)
  closed = [s.endswith("=") for s in signs]
  if low: closed.reverse()
  return ("reals", [(trees[low], trees[high], *closed)])


def _colon(tokens, words):
  parts, _ = _split(tokens, [":"])
  suffix = ""
  if parts[-1] and parts[-1][-1][0] == '"':
    suffix = parts[-1][-1][1:].lower().replace(".", "")
    parts[-1] = parts[-1][:-1]
  if suffix not in ("", "am", "pm", "a m", "p m"): raise Unreadable("words")
  return ("colon", [ex.parse(part) for part in parts], suffix.replace(" ", ""))


def _is_name(tokens, more=()):
  """Is it the name of what is asked for: x, f(x), a_1, \\angle ABC, P(A), words?"""
  if _NAME.fullmatch("".join(tokens)): return True
  return bool(tokens) and not _DENIAL.search(" ".join(tokens)) and all(
      t in "()_{}'," or t in more or t in _NAMING or t in _SIGNS or t[0] == '"' or t.isalpha()
      or t[0] == "\\" and t[1:] in ex.GREEK
      or t.isdigit() and (tokens[i - 1] in ("_", "{", "(", r"\to") or tokens[i - 1] in _SIGNS)
      for i, t in enumerate(tokens)) and tokens[0] not in ("e", "i") and (tokens[0] != "(" or "," in tokens)


def _split(tokens, marks):
  """(parts, the marks between them), outside of all brackets."""
  parts, found, depth, is_in_row = [[]], [], 0, 0
  for token in tokens:
    depth += (token in _OPEN) - (token in _CLOSE)
    is_in_row += (token == r"\begin") - (token == r"\end")
    if token in marks and depth == 0 and not is_in_row:
      parts.append([])
      found.append(token)
    else: parts[-1].append(token)
  return parts, found


def _closing(tokens, start):
  """The place of the bracket that closes the one at `start`; half-open intervals too."""
  depth = 0
  for i in range(start, len(tokens)):
    depth += (tokens[i] in _OPEN) - (tokens[i] in _CLOSE)
    if depth == 0: return i
  raise Unreadable("brackets are not balanced")


# Sets of real numbers.


def _reals(answer):
  """The answer as a union of intervals."""
  if answer[0] == "reals": return answer
  if answer[0] == "set": return ("reals", [(n, n, True, True) for n in map(_number_in, answer[1])])
  if answer[0] == "group" and len(answer[3]) == 2 and answer[1] in "([" and answer[2] in ")]":
    low, high = map(_number_in, answer[3])
    if ex.less(low, high): return ("reals", [(low, high, answer[1] == "[", answer[2] == "]")])
  raise Unreadable("no interval")


def _number_in(answer):
  if answer[0] != "value" or ex.variables(answer[1]) or answer[2] is not None: raise Unreadable("no number")
  return answer[1]


def _union(answers):
  pieces = [piece for answer in answers for piece in answer[1]]
  pieces.sort(key=functools.cmp_to_key(lambda a, b: -1 if ex.less(a[0], b[0]) else 1))
  for a, b in zip(pieces, pieces[1:]):
    if ex.less(b[0], a[1]) or b[0] == a[1] and a[3] and b[2]: raise Unreadable("intervals overlap")
  return ("reals", pieces)


def _intersection(a, b):
  pieces = []
  for p, q in itertools.product(a[1], b[1]):
    low = (q[0], q[2]) if ex.less(p[0], q[0]) else (p[0], p[2])
    high = (p[1], p[3]) if ex.less(p[1], q[1]) else (q[1], q[3])
    if ex.equal(p[0], q[0]): low = (p[0], p[2] and q[2])
    if ex.equal(p[1], q[1]): high = (p[1], p[3] and q[3])
    if ex.less(low[0], high[0]): pieces.append((low[0], high[0], low[1], high[1]))
  return ("reals", pieces)


# Agreement, by the kind of the reference answer.


def _same_value(gold, stated, words):
  found = _single(stated, gold)
  if found is None: return False
  (_, tree, unit), (_, given, given_unit) = gold, found
  is_letter = given_unit is None and _is_letter_unit(given, tree, unit, words)
  if is_letter: return True
  degrees = units.read("degrees")
  is_angle = (unit == degrees) != (given_unit == degrees)
  if is_task(given, tree) and not is_angle: return False
  percent, given_percent = tree[0] == "%", given[0] == "%"
  if percent != given_percent and words & {"percent", "%", "percentage"}:
    if ex.equal(tree[1] if percent else tree, given[1] if given_percent else given): return True
  size, quantity = unit or (1, {})
  given_size, given_quantity = given_unit or (1, {})
  if unit is not None and given_unit is not None:
    if quantity != given_quantity: return False
    if size != given_size:
      tree, given = (("*", t, ("num", s, None), False) for t, s in ((tree, size), (given, given_size)))
  elif given_unit is not None and unit is None:
    asked = units.asked(given_quantity, words)
    if asked and given_size not in asked or units.is_other(given_quantity, words): return False
  if not (is_angle and any(n == ("pi",) for n in (*ex.nodes(tree), *ex.nodes(given)))) and ex.equal(tree, given):
    return True
  if is_angle:  # 45 degrees are pi/4.
    return ex.equal(("deg", tree) if unit == degrees else tree,
                    ("deg", given) if given_unit == degrees else given)
  return False


def _is_letter_unit(given, tree, unit, words):
  """5m for 5 metres: a letter is a unit where the reference or the question names it so."""
  if given[0] != "*" or given[2][0] != "sym" or ex.variables(tree): return False
  if (found := units.read(given[2][1])) is None: return False
  is_named = found == unit if unit is not None else found[0] in units.asked(found[1], words)
  return is_named and ex.equal(tree, given[1])


def _single(stated, gold=None):
  """The one value that an answer states; None if it states none or several."""
  kind = stated[0]
  if kind == "value": return stated
  if kind == "set": return _single(stated[1][0], gold) if len(stated[1]) == 1 else None
  if kind != "relation": return None
  sides, signs = stated[1], stated[2]
  if not set(signs) <= {"=", "~"} or "~" in signs[:-1]: return None
  values = sides[1:] if sides[0][0] == "name" or _has_only_names(sides[0]) else sides
  if signs[-1] == "~" and len(values) > 1:  # An exact number, and about how much that is.
    values = values[-1:] if gold is not None and _is_decimal(gold[1]) else values[:-1]
  if not all(v[0] == "value" for v in values): return None
  if sides[0][0] == "name" and len(values) == 1 and sides[0][1] in ex.variables(values[0][1]): return None
  if any(not ex.equal(v[1], values[-1][1]) for v in values[:-1]): return None
  return _single(values[-1])


def _is_decimal(tree): return any(n[0] == "num" and n[2] is not None for n in ex.nodes(tree))


def _has_only_names(side):
  """m + n, which questions ask for: an expression without numbers."""
  return side[0] == "value" and all(node[0] in ("sym", "+", "*", "neg") for node in ex.nodes(side[1]))


def is_task(tree, gold):
  """Does a tree leave something to work out that the reference does not?

  That is a variable, a factorial or a binomial, a function of a number, a sum or a product of numbers,
  and where the reference is rational a root or a power, unless it is one of 10. A fraction,
  a mixed number, a root in an irrational number are answers.
  """
  is_rational = ex.rational(gold) is not None
  if is_rational and ex.rational(tree) is None and not _is_decimal(gold): return True
  return bool(_tasks(tree, is_rational) - _tasks(gold, True) or ex.variables(tree) - ex.variables(gold))


def _tasks(tree, is_rational):
  """What is left to work out in a tree; roots and powers count where a rational is asked for."""
  found, exact, has_names = set(), {}, {}
  for node, value in ex.exact_nodes(tree):
    kind, parts = node[0], [id(part) for part in node[1:] if isinstance(part, tuple)]
    exact[id(node)] = value
    has_names[id(node)] = is_open = kind == "sym" or any(has_names[part] for part in parts)
    values = [exact[part] for part in parts]
    if kind in ("!", "binom"): found.add("!")
    elif kind in ("floor", "ceil", "max", "min", "gcd", "lcm"): found.add(kind)
    elif kind == "fn" and not is_open: found.add("log" if node[1] in _LOGARITHMS else "fn")
    elif kind in ("root", "abs") and is_rational and not is_open: found.add(kind)
    elif kind == "^" and is_rational and value is not None and values[0] != 10: found.add("^")
    elif kind == "+" and node[3:] != ("mixed",) and None not in values: found.add("+")
    elif kind == "*" and node[3] and None not in values:
      is_scientific = node[2][0] == "^" and exact[id(node[2][1])] == 10
      if not is_scientific: found.add("*")
  return found


def _same_list(gold, stated, words):
  names, given_names = _named(gold), _named(stated)
  if names and given_names:
    return names.keys() == given_names.keys() and all(
        _same_value(names[k], given_names[k], words) for k in names)
  items, given = _values(gold), _items(stated)
  if len(names) > 1 and not given_names:  # x = 1, y = 2
    return _same_group(("group", "(", ")", [names[k] for k in sorted(names)]), stated, words)
  if given is None: return False
  if not names and stated[0] != "set" and (_is_sequence(items) or words & _ORDERED):
    return len(items) == len(given) and all(agree(a, b, words) for a, b in zip(items, given))
  return len(items) == len(given) and _same_items(items, given, words)


def _same_set(gold, stated, words):
  if not gold[1]: return stated == ("set", [])
  given = _items(stated)
  return given is not None and _same_items(gold[1], given, words)


def _same_items(items, given, words):
  """Is each one among the others, both ways?"""
  if len(items) == len(given) and all(agree(a, b, words) for a, b in zip(items, given)): return True
  return (all(any(agree(a, b, words) for b in given) for a in items)
          and all(any(agree(a, b, words) for a in items) for b in given))


def _items(stated):
  """The answers in a list, a set, or behind x =; None if it is neither."""
  if stated[0] == "set": return stated[1]
  if stated[0] == "list": return _values(stated)
  if stated[0] == "relation" and stated[1][-1][0] == "set": return stated[1][-1][1]
  return _values(("list", [stated]))


def _values(answer):
  """The items of a list without the x = that all or the first of them have."""
  items, name, found = answer[1], None, []
  for i, item in enumerate(items):
    if item[0] == "relation" and item[2] == ["="] and item[1][0][0] == "name" and (
        i == 0 or item[1][0][1] == name):
      name = item[1][0][1]
      found.append(item[1][1])
    else: found.append(item)
  return found


def _named(answer):
  """{name: value} of x = 1, y = 2; {} if it is nothing of that kind."""
  if answer[0] != "list": return {}
  found = {}
  for item in answer[1]:
    if item[0] != "relation" or item[2] != ["="] or item[1][0][0] != "name" or item[1][1][0] != "value":
      return {}
    found[item[1][0][1]] = item[1][1]
  return found if len(found) == len(answer[1]) else {}


def _is_sequence(items):
  """Is a list one whose order says something: whole numbers above 0 that do not increase?"""
  if not all(item[0] == "value" and item[2] is None for item in items): return False
  numbers = [ex.rational(item[1]) for item in items]
  if any(n is None or n.denominator != 1 or n <= 0 for n in numbers): return False
  return any(a >= b for a, b in zip(numbers, numbers[1:]))


def _same_group(gold, stated, words):
  _, opening, closing, items = gold
  if stated[0] == "group":
    if stated[1:3] != (opening, closing) and not {stated[1], opening} == {"(", r"\langle"}: return False
    return len(items) == len(stated[3]) and all(
        agree(a, b, words) for a, b in zip(items, stated[3]))
  if stated[0] == "matrix":
    flat = [row[0] for row in stated[1]] if all(len(r) == 1 for r in stated[1]) else stated[1][0]
    return len(stated[1]) in (1, len(flat)) and len(flat) == len(items) and opening != "[" and all(
        agree(a, b, words) for a, b in zip(items, flat))
  if stated[0] == "reals": return _same_reals(("reals", _reals(gold)[1]), stated, words)
  if names := _named(stated):
    return len(names) == len(items) and all(
        agree(a, names[k], words) for a, k in zip(items, sorted(names)))
  return False


def _vector(answer):
  """2i - 3j + k as the group (2, -3, 1); other answers as they are."""
  if answer[0] != "value" or answer[2] is not None: return answer
  names, tree = ex.variables(answer[1]), answer[1]
  if not names & {"j", "k"} and names != {"i"} or not names <= {"i", "j", "k"}: return answer
  parts = []
  for name in "ijk"[:3 if "k" in names else 2]:
    part = functools.reduce(lambda t, n: ex.replaced(t, n, ex.whole(int(n == name))), "ijk", tree)
    parts.append(("value", part if (exact := ex.rational(part)) is None else ("num", exact, None), None))
  total = functools.reduce(lambda a, b: ("+", a, b), (
      ("*", part[1], ("sym", n), False) for part, n in zip(parts, "ijk")))
  return ("group", r"\langle", r"\rangle", parts) if ex.equal(tree, total) else answer


def _same_reals(gold, stated, words):
  del words
  if stated[0] == "set" and not all(p[0] == p[1] for p in gold[1]): return False
  pieces, given = gold[1], _reals(stated)[1]
  return len(pieces) == len(given) and not any(
      is_task(b, a) for p, q in zip(pieces, given) for a, b in zip(p[:2], q[:2])) and all(
      p[2:] == q[2:] and ex.equal(p[0], q[0]) and ex.equal(p[1], q[1]) for p, q in zip(pieces, given))


def _same_matrix(gold, stated, words):
  if stated[0] == "group" and stated[1] == r"\langle": stated = _transposed(stated)
  return stated[0] == "matrix" and [len(r) for r in gold[1]] == [len(r) for r in stated[1]] and all(
      agree(a, b, words) for r, s in zip(gold[1], stated[1]) for a, b in zip(r, s))


def _same_relation(gold, stated, words):
  _, sides, signs = gold
  name = sides[0][1] if sides[0][0] == "name" else None
  if stated[0] != "relation":
    return name is not None and signs == ["="] and agree(sides[1], stated, words)
  if name is not None and stated[1][0][0] == "name" and _same_name(stated[1][0][1], name):
    if signs == ["="] == stated[2] and agree(sides[1], stated[1][1], words): return True
  # x = 5 is solved, x + 3 = 8 is not.
  if signs == ["="] and name is not None and sides[1][0] == "value" and not ex.variables(sides[1][1]):
    given = _single(stated)
    return given is not None and stated[1][0][:2] == sides[0][:2] and _same_value(sides[1], given, words)
  left, right = _differences(gold), _differences(stated)
  if len(left) != len(right): return False
  return all(_same_difference(a, b) for a, b in zip(left, right))


def _same_name(a, b):
  """Is it the same name? A function's value f(x) may be called y."""
  return a == b or "y" in (a, b) and all(x == "y" or re.fullmatch(r"[a-z]\(x\)", x) for x in (a, b))


def _differences(relation):
  """[(left - right, sign)] of each pair of sides, with < for >."""
  trees = [ex.parse(side[2]) if side[0] == "name" else _tree(side) for side in relation[1]]
  found = []
  for a, b, sign in zip(trees, trees[1:], relation[2]):
    if sign[0] == ">": a, b, sign = b, a, _TURNED[sign]
    found.append((("+", a, ("neg", b)), sign))
  return found


def _tree(side):
  if side[0] != "value" or side[2] is not None: raise Unreadable("no expression")
  return side[1]


def _same_difference(a, b):
  if a[1] != b[1]: return False
  found = ex.ratio(a[0], b[0])
  return found is not None and (found > 0 or a[1] in ("=", "!="))


def _same_either(gold, stated, words): return any(agree(side, stated, words) for side in gold[1])


def _same_family(gold, stated, words):
  """Has each of the reference's families of values one that it is equal to, and the other way?"""
  _, answer, name, domain = gold
  if stated[0] != "family":  # The condition is left out.
    return stated[0] == "value" and len(ex.variables(stated[1])) == 1 and _same_family(
        gold, ("family", stated, *ex.variables(stated[1]), domain), words)
  if domain != stated[3]: return False
  answer, other = _renamed(answer, name), _renamed(stated[1], stated[2])
  if agree(answer, other, words): return True
  items = [_items(answer), _items(other)]
  if None in items: return False
  trees = [[_tree(item) for item in some] for some in items]
  return len(trees[0]) == len(trees[1]) and all(
      any(_same_values_of_k(a, b, domain) for b in others) for some, others in (trees, trees[::-1]) for a in some)


def _renamed(part, name):
  """An answer, or a part of it, with k for a variable."""
  if part == ("sym", name): return ("sym", "k")
  return type(part)(_renamed(p, name) for p in part) if isinstance(part, (tuple, list)) else part


def _same_values_of_k(a, b, domain):
  """Have two trees the same values over all k? Those over all integers may be shifted and reversed."""
  if ex.variables(a) == ex.variables(b) and ex.equal(a, b): return True
  if domain != r"\Z": return False
  lines = [_line(tree) for tree in (a, b)]
  if None in lines: return False
  (start, step), (other, other_step) = lines
  if not ex.equal(step, other_step) and not ex.equal(step, ("neg", other_step)): return False
  apart = ("+", other, ("neg", start))
  if ex.variables(apart) or ex.variables(step): return ex.is_zero(apart)
  return ex.equal(apart, ("*", step, ex.whole(ex.nearest(("/", apart, step))), False))


def _line(tree):
  """(start, step) of start + step k; None of other trees."""
  start, second = (ex.replaced(tree, "k", ex.whole(n)) for n in (0, 1))
  step = ("+", second, ("neg", start))
  return (start, step) if ex.equal(tree, ("+", start, ("*", step, ("sym", "k"), False))) else None


def _same_choice(gold, stated, words):
  del words
  return gold == stated


def _same_text(gold, stated, words):
  del words
  return bool(gold[1]) and stated[0] == "text" and gold[1] == stated[1]


def _same_colon(gold, stated, words):
  del words
  return (stated[0] == "colon" and len(gold[1]) == len(stated[1])
          and (gold[2] == stated[2] or not gold[2] or not stated[2])
          and all(ex.equal(a, b) for a, b in zip(gold[1], stated[1])))


def _same_based(gold, stated, words):
  if stated[0] == "value" and words & {"base", "binary"}:
    return stated[1] == ex.parse([gold[1]])
  return gold == stated


_AGREE = dict(value=_same_value, relation=_same_relation, reals=_same_reals, group=_same_group,
              matrix=_same_matrix, set=_same_set, list=_same_list, choice=_same_choice,
              text=_same_text, family=_same_family, either=_same_either, colon=_same_colon, based=_same_based)


def choice_of(text):
  """The letter that an answer begins with: "(B) 5", "B. because ..."; None if it hedges."""
  plain = " ".join(_WRAPPED.sub(" ", text).split())
  found = _CHOICE_AND_WHY.fullmatch(plain)
  if not found or _HEDGE.search(found[3]): return None
  return found[1] or found[2]


def same_words(gold, text):
  """Does a text have the words of a reference answer that is text?"""
  return gold[1] == _words(text)


def has_variables(answer):
  """Is it a value with variables?"""
  return answer[0] == "value" and bool(ex.variables(answer[1]))
