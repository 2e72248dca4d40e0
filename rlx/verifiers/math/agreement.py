"""Compares a stated answer with the reference answer, by the kind of the reference."""
import re

from rlx.verifiers.math import expressions as ex, kinds, reading, reals, units
from rlx.verifiers.math.latex import Unreadable

# Words of a question.
_ORDERED = frozenset(["order", "ordered", "respectively", "sequence", "ascending", "descending",
                      "sort"])
_EXTREMES = frozenset(["least", "greatest", "smallest", "largest", "lowest", "highest"])
_UNORDERED = frozenset(["solution", "root"])  # As units.context has them.
_RANKED = _ORDERED | {"rank", "arrange", "sort", "list", "first", "second", "from", "least", "most"}
_LOGARITHMS = frozenset(["ln", "log", "lg"])
# Words of a question about a function up to a constant.
_INTEGRALS = frozenset(["antiderivative", "integral", "integrate", "primitive", "differential"])
_DEGREES = units.parse_unit("degrees")


def agree(gold, stated, question=kinds.NO_QUESTION):
  """Tells whether a stated answer equals the reference answer `gold`.

  Args:
    question: what `questions.read` returns.
  """
  try:
    if isinstance(stated, kinds.Family) and isinstance(gold, kinds.Value) and (
        stated.name in ex.variables(gold.tree)): stated = stated.answer
    if kinds.is_named(stated) and isinstance(
        gold, (kinds.Group, kinds.Matrix, kinds.Reals, kinds.Colon, kinds.Based)):
      stated = stated.sides[1]
    if isinstance(gold, (kinds.Group, kinds.Matrix)): stated = _vector(stated)
    if isinstance(stated, (kinds.Group, kinds.Matrix)): gold = _vector(gold)
    return _AGREE[type(gold)](gold, stated, question)
  except (Unreadable, RecursionError):
    return False


def reference(answer):
  """Returns the value or values asked for: 5 of "ln e^5 = 5", either of "t = ln 9 = 2 ln 3"."""
  if not isinstance(answer, kinds.Relation) or not set(answer.signs) <= {"=", "~"}: return answer
  first, last = answer.sides[0], answer.sides[-1]
  is_named = isinstance(first, kinds.Name)
  if is_named and len(answer.sides) == 2: return answer
  if not is_named and (_has_only_names(first) or not all(map(_is_constant, answer.sides))):
    return answer
  # If 40/3 is about 13.3, the first side is an answer too.
  others = answer.sides[is_named or answer.signs[0] == "=":-1]
  return kinds.Either([last, *(
      side for side in others if isinstance(side, kinds.Value) and isinstance(last, kinds.Value)
      and not is_task(side.tree, last.tree))])


def is_number(gold):
  """Tells whether a reference answer is one number, ratio or time."""
  if isinstance(gold, kinds.Either): return all(map(is_number, gold.answers))
  return isinstance(gold, (kinds.Colon, kinds.Based)) or _is_constant(gold) and any(
      node[0] in ("num", "pi", "inf") for node in ex.nodes(gold.tree))  # i and e may be letters.


def is_task(tree, gold):
  """Tells whether a tree leaves something to calculate that the reference does not.

  That is a variable, a factorial or a binomial, a function of a number, a sum or a product
  of numbers and, if the reference is rational, a root or a power other than one of 10.
  A fraction, a mixed number and a root in an irrational number are answers.
  """
  is_rational = ex.to_fraction(gold) is not None
  if is_rational and ex.to_fraction(tree) is None and not _is_decimal(gold): return True
  return bool(_tasks(tree, is_rational) - _tasks(gold, True)
              or ex.variables(tree) - ex.variables(gold))


def _tasks(tree, is_rational):
  """Returns the calculations that a tree leaves; roots and powers only for a rational number."""
  tasks, exact = set(), ex.exact_values(tree)
  for node in ex.nodes(tree):
    kind, value = node[0], exact[id(node)]
    values = [exact[id(part)] for part in node[1:] if isinstance(part, tuple)]
    is_open = kind in ("fn", "root", "abs") and ex.variables(node)
    if kind in ("!", "binom"): tasks.add("!")
    elif kind in ("floor", "ceil", "max", "min", "gcd", "lcm"): tasks.add(kind)
    elif kind == "fn" and not is_open: tasks.add("log" if node[1] in _LOGARITHMS else "fn")
    elif kind in ("root", "abs") and is_rational and not is_open: tasks.add(kind)
    elif kind == "^" and is_rational and value is not None and values[0] != 10: tasks.add("^")
    elif kind == "+" and node[3:] != ("mixed",) and None not in values: tasks.add("+")
    elif kind == "*" and node[3] and None not in values:
      is_scientific = node[2][0] == "^" and exact[id(node[2][1])] == 10
      if not is_scientific: tasks.add("*")
  return tasks


def _same_value(gold, stated, question):
  if isinstance(stated, kinds.Based): return _is_in_asked_base(gold, stated, question)
  value = _find_single_value(stated, gold)
  if value is None: return False
  if question.words & _INTEGRALS: value = _rename_constant(value, gold)
  if value.unit is None and _is_letter_unit(value.tree, gold, question): return True
  is_angle = (gold.unit == _DEGREES) != (value.unit == _DEGREES)
  if is_task(value.tree, gold.tree) and not is_angle: return False
  if _same_percentage(gold.tree, value.tree, question): return True
  trees = _in_same_unit(gold, value, question)
  if trees is None: return False
  # 45 degrees are pi/4, but pi/4 degrees are not.
  has_pi = any(node == ("pi",) for tree in trees for node in ex.nodes(tree))
  if not (is_angle and has_pi) and ex.is_equal(*trees): return True
  return is_angle and ex.is_equal(*(("deg", tree) if unit == _DEGREES else tree
                                    for tree, unit in zip(trees, (gold.unit, value.unit))))


def _rename_constant(value, gold):
  """Returns x^2 + K as x^2 + C, if that is the constant of the reference answer."""
  names, golds = ex.variables(value.tree), ex.variables(gold.tree)
  extra, missing = names - golds, golds - names
  if len(extra) != 1 or len(missing) != 1: return value
  if not extra | missing <= set("CcKkDdAaBbMm"): return value
  return value._replace(tree=ex.substitute(value.tree, *extra, ("sym", *missing)))


def _same_percentage(gold, stated, question):
  """Tells whether a question asks for percentages and the answers are like 50 and 50%."""
  if (gold[0] == "%") == (stated[0] == "%"): return False
  if not question.words & {"percent", "%", "percentage"}: return False
  # After a discount of 10%, a price in dollars is none.
  if gold[0] != "%" and question.units and not question.words & {"percent", "percentage"}:
    return False
  return ex.is_equal(*(tree[1] if tree[0] == "%" else tree for tree in (gold, stated)))


def _in_same_unit(gold, stated, question):
  """Returns the trees of two values in the same unit, None if the units do not agree."""
  if stated.unit is None: return gold.tree, stated.tree
  size, quantities = stated.unit
  if gold.unit is None:
    asked = units.find_asked_sizes(quantities, question.words)
    if asked and size not in asked or units.is_other(stated.unit, question): return None
    return gold.tree, stated.tree
  if gold.unit[1] != quantities: return None
  if gold.unit in question.units and stated.unit not in question.units: return None
  if gold.unit[0] == size: return gold.tree, stated.tree
  return tuple(("*", value.tree, ("num", value.unit[0], None), False) for value in (gold, stated))


def _is_letter_unit(tree, gold, question):
  """Tells whether 5m is 5 metres: the reference or the question has to name that unit."""
  if tree[0] != "*" or ex.variables(gold.tree): return False
  base, *power = tree[2][1:] if tree[2][0] == "^" else [tree[2]]
  power = [ex.to_fraction(part) for part in power]
  if base[0] != "sym" or None in power: return False
  if (unit := units.parse_unit("^".join(map(str, [base[1], *power])))) is None: return False
  is_unit = (unit == gold.unit if gold.unit is not None
             else unit[0] in units.find_asked_sizes(unit[1], question.words))
  return is_unit and ex.is_equal(gold.tree, tree[1])


def _find_single_value(stated, gold=None):
  """Returns the only value that an answer states, None if it states none or several."""
  if isinstance(stated, kinds.Value): return stated
  if isinstance(stated, kinds.Set):
    return _find_single_value(stated.items[0], gold) if len(stated.items) == 1 else None
  if not isinstance(stated, kinds.Relation): return None
  first, *values = stated.sides
  if not set(stated.signs) <= {"=", "~"} or "~" in stated.signs[:-1]: return None
  if not isinstance(first, kinds.Name) and not _has_only_names(first): values = stated.sides
  if stated.signs[-1] == "~" and len(values) > 1:  # An exact number and its approximation.
    values = values[-1:] if gold is not None and _is_decimal(gold.tree) else values[:-1]
  if not all(isinstance(value, kinds.Value) for value in values): return None
  *others, last = values
  if isinstance(first, kinds.Name) and not others and first.text in ex.variables(last.tree):
    return None
  return last if all(ex.is_equal(value.tree, last.tree) for value in others) else None


def _is_constant(answer):
  return isinstance(answer, kinds.Value) and not ex.variables(answer.tree)


def _is_decimal(tree):
  return any(node[0] == "num" and node[2] is not None for node in ex.nodes(tree))


def _has_only_names(side):
  """Tells whether a side is an expression without numbers, such as m + n."""
  return isinstance(side, kinds.Value) and all(
      node[0] in ("sym", "+", "*", "neg") for node in ex.nodes(side.tree))


def _same_list(gold, stated, question):
  names, stated_names = _collect_named(gold), _collect_named(stated)
  if names and stated_names:
    return names.keys() == stated_names.keys() and all(
        _same_value(names[name], stated_names[name], question) for name in names)
  if len(names) > 1:  # x = 1, y = 2
    return _same_group(kinds.Group("(", ")", _in_order(names)), stated, question)
  golds, items = kinds.items(gold), kinds.items(stated)
  is_ordered = not names and not isinstance(stated, kinds.Set) and (
      _asks_for_order(golds, question.words)
      or _is_sequence(golds) and not question.words & _UNORDERED)
  if len(golds) != len(items): return False
  if _same_each(golds, items, question): return True
  if isinstance(golds[0], kinds.Text) and (  # Names may be asked for in an order.
      question.words & _RANKED or not question.words & {"who", "which"}): return False
  return not is_ordered and _same_items(golds, items, question)


def _asks_for_order(golds, words):
  """Tells whether a question has a word for the order of a list; ordered pairs have none."""
  if words >= {"from", "to"} and len(words & _EXTREMES) > 1: return True
  return bool(words & _ORDERED - ({"ordered"} if isinstance(golds[0], kinds.Group) else set()))


def _same_set(gold, stated, question):
  if not gold.items: return isinstance(stated, kinds.Set) and not stated.items
  return _same_items(gold.items, kinds.items(stated), question)


def _same_each(golds, items, question):
  return len(golds) == len(items) and all(agree(a, b, question) for a, b in zip(golds, items))


def _same_items(golds, items, question):
  """Tells whether each item of one list agrees with an item of the other, both ways."""
  return (all(any(agree(a, b, question) for b in items) for a in golds)
          and all(any(agree(a, b, question) for a in golds) for b in items))


def _collect_named(answer):
  """Returns {name: value} for x = 1, y = 2 and for (x, y) = (1, 2), {} for other answers."""
  if kinds.is_named(answer) and isinstance(answer.sides[1], kinds.Group):
    names = answer.sides[0].text.strip("()").split(",")
    values = answer.sides[1].items
    is_named = len(names) == len(values) == len(set(names)) > 1 and all(
        isinstance(value, kinds.Value) for value in values)
    return dict(zip(names, values)) if is_named else {}
  if not isinstance(answer, kinds.List): return {}
  if not all(kinds.is_named(x) and isinstance(x.sides[1], kinds.Value) for x in answer.items):
    return {}
  values = {item.sides[0].text: item.sides[1] for item in answer.items}
  return values if len(values) == len(answer.items) else {}


def _in_order(names): return [names[name] for name in sorted(names)]


def _is_sequence(items):
  """Tells whether the order of a list matters: positive integers that do not increase."""
  if not all(isinstance(item, kinds.Value) and item.unit is None for item in items): return False
  numbers = [ex.to_fraction(item.tree) for item in items]
  if any(n is None or n.denominator != 1 or n <= 0 for n in numbers): return False
  return any(a >= b for a, b in zip(numbers, numbers[1:]))


def _same_group(gold, stated, question):
  if isinstance(stated, kinds.Group):
    is_same = (stated.opening, stated.closing) == (gold.opening, gold.closing)
    is_same |= {stated.opening, gold.opening} == {"(", r"\langle"}
    return is_same and _same_each(gold.items, stated.items, question)
  if isinstance(stated, kinds.Matrix) and gold.opening != "[":
    is_column = all(len(row) == 1 for row in stated.rows)
    if not is_column and len(stated.rows) > 1: return False
    return _same_each(gold.items, [row[0] for row in stated.rows] if is_column
                      else stated.rows[0], question)
  if isinstance(stated, kinds.Reals): return _same_reals(reals.as_reals(gold), stated, question)
  names = _collect_named(stated)
  return bool(names) and _same_each(gold.items, _in_order(names), question)


def _vector(answer):
  """Converts 2i - 3j + k to the group (2, -3, 1); returns other answers unchanged."""
  if not isinstance(answer, kinds.Value) or answer.unit is not None: return answer
  tree, names = answer.tree, ex.variables(answer.tree)
  if not names or not names <= {"i", "j", "k"}: return answer
  parts, total = [], ex.make_number(0)
  for unit in "ijk"[:3 if "k" in names else 2]:
    part = tree
    for name in "ijk": part = ex.substitute(part, name, ex.make_number(int(name == unit)))
    parts.append(kinds.Value(ex.simplify(part)))
    total = ("+", total, ("*", part, ("sym", unit), False))
  return kinds.Group(r"\langle", r"\rangle", parts) if ex.is_equal(tree, total) else answer


def _same_reals(gold, stated, _):
  if isinstance(stated, kinds.Set) and any(low != high for low, high, *_ in gold.pieces):
    return False
  pieces = reals.as_reals(stated).pieces
  return len(gold.pieces) == len(pieces) and all(
      a[2:] == b[2:] and not is_task(b[0], a[0]) and not is_task(b[1], a[1])
      and ex.is_equal(a[0], b[0]) and ex.is_equal(a[1], b[1]) for a, b in zip(gold.pieces, pieces))


def _same_matrix(gold, stated, question):
  if isinstance(stated, kinds.Group) and stated.opening == r"\langle":
    stated = kinds.Matrix([[item] for item in stated.items])
  return (isinstance(stated, kinds.Matrix) and len(gold.rows) == len(stated.rows)
          and all(_same_each(a, b, question) for a, b in zip(gold.rows, stated.rows)))


def _same_relation(gold, stated, question):
  first, *others = gold.sides
  name = first.text if isinstance(first, kinds.Name) else None
  if not isinstance(stated, kinds.Relation):
    return name is not None and gold.signs == ["="] and agree(others[0], stated, question)
  if name and kinds.is_named(stated) and _same_name(stated.sides[0].text, name) and (
      gold.signs == ["="] and agree(others[0], stated.sides[1], question)): return True
  if name and gold.signs == ["="] and _is_constant(others[0]):
    # x = 5 is solved, x + 3 = 8 is not.
    value = _find_single_value(stated)
    if value is None or stated.sides[0] != first: return False
    return _same_value(others[0], value, question)
  differences = [_differences(relation) for relation in (gold, stated)]
  return len(differences[0]) == len(differences[1]) and all(
      _same_difference(*pair) for pair in zip(*differences))


def _same_name(a, b):
  """Tells whether two names are the same; f(x) may be called y."""
  return a == b or "y" in (a, b) and all(
      name == "y" or re.fullmatch(r"[a-z]\(x\)", name) for name in (a, b))


def _differences(relation):
  """Returns [(left - right, sign)] of adjacent sides, with < in place of >."""
  trees = [ex.parse(side.tokens) if isinstance(side, kinds.Name) else reading.tree_of(side)
           for side in relation.sides]
  differences = []
  for a, b, sign in zip(trees, trees[1:], relation.signs):
    if sign[0] == ">": a, b, sign = b, a, sign.replace(">", "<")
    differences.append((("+", a, ("neg", b)), sign))
  return differences


def _same_difference(a, b):
  if a[1] != b[1]: return False
  ratio = ex.ratio(a[0], b[0])
  return ratio is not None and (ratio > 0 or a[1] in ("=", "!="))


def _same_family(gold, stated, question):
  """Tells whether two families have the same values."""
  if not isinstance(stated, kinds.Family):  # The stated answer omits the domain.
    if not isinstance(stated, kinds.Value) or len(ex.variables(stated.tree)) != 1: return False
    stated = kinds.Family(stated, *ex.variables(stated.tree), gold.domain)
  if gold.domain != stated.domain: return False
  families = [kinds.items(ex.substitute(family.answer, family.name, ("sym", "k")))
              for family in (gold, stated)]
  if _same_each(*families, question): return True
  golds, others = ([reading.tree_of(item) for item in items] for items in families)
  return len(golds) == len(others) and all(
      any(_same_values_of_k(a, b, gold.domain) for b in those)
      for these, those in ((golds, others), (others, golds)) for a in these)


def _same_values_of_k(a, b, domain):
  """Tells whether two trees have the same values over all k, which may shift if an integer."""
  if ex.variables(a) == ex.variables(b) and ex.is_equal(a, b): return True
  if domain != r"\Z": return False
  (start, step), (other_start, other_step) = map(_line, (a, b))
  if not ex.is_equal(step, other_step) and not ex.is_equal(step, ("neg", other_step)): return False
  apart = ("+", other_start, ("neg", start))
  steps = ex.make_number(ex.round_to_whole(("/", apart, step)))
  return ex.is_equal(apart, ("*", step, steps, False))


def _line(tree):
  """Returns (start, step) of start + step k.

  Raises:
    Unreadable: the tree does not have that form.
  """
  start, second = (ex.substitute(tree, "k", ex.make_number(n)) for n in (0, 1))
  step = ("+", second, ("neg", start))
  if not ex.is_equal(tree, ("+", start, ("*", step, ("sym", "k"), False))):
    raise Unreadable("a family")
  return start, step


def _same_either(gold, stated, question):
  return any(agree(answer, stated, question) for answer in gold.answers)


def _same_colon(gold, stated, _):
  if not isinstance(stated, kinds.Colon) or len(gold.parts) != len(stated.parts) or (
      gold.suffix != stated.suffix and gold.suffix and stated.suffix): return False
  pairs = [(gold, stated)]
  if gold.suffix != stated.suffix: pairs.append((_of_day(gold), _of_day(stated)))
  return any(all(map(ex.is_equal, a.parts, b.parts)) for a, b in pairs)


def _of_day(time):
  """Returns 17:15 for 5:15 pm, and a time without am and pm as it is."""
  hour, *others = time.parts
  if not time.suffix or (number := ex.to_fraction(hour)) is None: return time
  return kinds.Colon([ex.make_number(number % 12 + 12 * (time.suffix == "pm")), *others], "")


def _same_based(gold, stated, question):
  if question.words & {"base", "binary"} and not isinstance(stated, kinds.Based):
    return stated == reading.parse_answer(gold.digits)
  return gold == stated


def _is_in_asked_base(gold, stated, question):
  """Tells whether a number without its base is the stated one, where the question names it."""
  return (stated.digits.isdigit() and f"base {stated.base}" in question.words
          and gold.unit is None and gold.tree == ex.parse([stated.digits]))


def _is_same(gold, stated, _): return type(gold) is type(stated) and gold == stated


_AGREE = {
    kinds.Value: _same_value, kinds.Relation: _same_relation, kinds.Reals: _same_reals,
    kinds.Group: _same_group, kinds.Matrix: _same_matrix, kinds.Set: _same_set,
    kinds.List: _same_list, kinds.Family: _same_family, kinds.Either: _same_either,
    kinds.Choice: _is_same, kinds.Colon: _same_colon, kinds.Based: _same_based,
    kinds.Text: _is_same}
