"""The form that a question asks for: factored, a decimal, not its own expression again.

The value of an answer is compared elsewhere. A form is required only where the question names it
and the reference answer has it.
"""
import fractions
import math
import re

from rlx.verifiers.math import expressions as ex, kinds, latex, reading, stated, tables
from rlx.verifiers.math.latex import Unreadable

_ASKED = {name: re.compile("".join(pattern.splitlines()))
          for name, pattern in tables.TABLES["forms"].items()}
_TRANSFORM, _OBJECT = tables.phrase("transform"), tables.phrase("object")
_LITTLE = "|".join(sorted(tables.words("little_words") - {"a"}))
# An expression of a question: as in a completion, and products such as 2xy.
_PART = (rf"(?:{stated.PART}|(?<![A-Za-z])(?!(?:{_LITTLE})(?![A-Za-z]))[A-Za-z]{{2,3}}"
         r"(?![A-Za-z]))")
_EXPRESSION = re.compile(rf"{stated.FORMULA}|{_PART}(?:\s*(?!{stated.FORMULA}){_PART})*")
_SCIENTIFIC = re.compile(r"(?<![\d.])-?[1-9](?:\.\d+)?(?:(?:\\times|\\cdot|\*)10\^\{?[+-]?\d+"
                         r"|[eE][+-]?\d+)")
_SEVERAL = 12  # Expressions of a question that are read.


def find_asked(text, question):
  """Returns the `forms` and `copies` of a kinds.Question."""
  names = tuple(name for name, pattern in _ASKED.items() if pattern.search(text))
  if not (verb := _TRANSFORM.search(text)) and not names: return dict(forms=names)
  copies, start = set(), verb.end() if verb else 0
  for match in list(_EXPRESSION.finditer(text[:stated.MAX_LINE]))[:_SEVERAL]:
    expression = match[0].strip(" .,:;?!$")
    answer = reading.parse_answer(expression, question)
    # A number may be given, and not what the question is about.
    is_object = bool(verb) and start <= match.start() and _OBJECT.match(
        text[start:match.start()]) is not None
    if is_object or not _is_literal(answer): copies |= _spell(expression, answer)
    if kinds.is_named(answer) and not _is_literal(answer.sides[1]):  # z = 1 + i
      copies |= _spell(expression.partition("=")[2], answer.sides[1])
  return dict(forms=names, copies=frozenset(copies))


def are_met(question, gold, answer, gold_text, text):
  """Tells whether an answer that has the right value has the form that the question asks for.

  Args:
    gold, answer: the parsed reference answer and stated answer.
    gold_text, text: the same as texts.
  """
  if question.copies:
    spelled = _spell(text, answer)
    if spelled & question.copies and not spelled & _spell(gold_text, gold): return False
  if isinstance(gold, kinds.Either): gold = gold.answers[0]
  if "isolated" in question.forms and kinds.is_named(gold) and isinstance(answer, kinds.Relation):
    name, value = answer.sides[0], answer.sides[-1]
    if not isinstance(name, kinds.Name) or isinstance(value, kinds.Value) and (
        name.text in ex.variables(value.tree)): return False
  golds = [trees[-1] for part in _parts(gold) if (trees := _trees(part))]
  if not question.forms or not golds: return True
  try:
    return all(any(_FORMS[name](gold, tree, text) for gold in golds for tree in trees)
               for part in _parts(answer) if (trees := _trees(part))
               for name in question.forms if name in _FORMS)
  except Unreadable:
    return True


def canonical(part):
  """Returns a tree or answer with the terms and factors of sums and products in one order."""
  if isinstance(part, kinds.Name): return part.text
  if isinstance(part, dict): return tuple(sorted(part.items()))
  if isinstance(part, list): return tuple(map(canonical, part))
  if not isinstance(part, tuple): return part
  if isinstance(part, kinds.Relation) and part.signs == ["="]:
    return "=", *sorted(map(canonical, part.sides), key=repr)
  if hasattr(part, "_fields"): return type(part).__name__, *map(canonical, part)
  if part[0] == "num": return part[:2]
  if part[0] == "neg":
    inner = canonical(part[1])
    return ("num", -inner[1]) if inner[0] == "num" else (
        inner[1] if inner[0] == "neg" else ("neg", inner))
  if part[0] in ("+", "*") and part[3:] != ("mixed",):
    idle = ("num", fractions.Fraction(part[0] == "*"))
    parts = sorted((p for p in map(canonical, flatten(part, part[0])) if p != idle), key=repr)
    return (part[0], *parts) if len(parts) > 1 else parts[0] if parts else idle
  return tuple(map(canonical, part))


def flatten(tree, kind):
  """Returns the terms of a sum, or the factors of a product, of any number of signs."""
  parts, waiting = [], [tree]
  while waiting:
    part = waiting.pop()
    if part[0] == kind and part[3:] != ("mixed",): waiting += [part[2], part[1]]
    elif kind == "+" and part[0] == "neg" and part[1][0] == "+" and part[1][3:] != ("mixed",):
      waiting += [("neg", part[1][2]), ("neg", part[1][1])]
    else: parts.append(part)
  return parts


def _spell(text, answer):
  """Returns the spellings by which two texts are the same expression: tokens, ordered parts."""
  spelled = {latex.layout_free(text).replace("{", "").replace("}", "")}
  is_power_of_ten = isinstance(answer, kinds.Value) and answer.tree[0] == "num" and (
      "e" in text.lower())  # 4.5e4 is no copy of 45000.
  if not isinstance(answer, kinds.Text) and not is_power_of_ten: spelled.add(canonical(answer))
  return spelled


def _is_literal(answer):
  """Tells whether an answer is a number as data of a question have it: 3, 0.25, 3/4, 45%, x."""
  if isinstance(answer, kinds.Relation): return False
  if not isinstance(answer, kinds.Value): return True
  return all(node[0] in ("num", "/", "%", "neg", "sym", "deg", "pi")
             for node in ex.nodes(answer.tree))


def _parts(answer):
  """Returns the answers in a list, set, tuple or matrix, else [answer]."""
  if isinstance(answer, kinds.Group): return answer.items
  if isinstance(answer, kinds.Matrix): return [cell for row in answer.rows for cell in row]
  return kinds.items(answer) if isinstance(answer, kinds.List | kinds.Set) else [answer]


def _trees(answer):
  """Returns the trees of the sides of an answer that are expressions."""
  if isinstance(answer, kinds.Value): return [answer.tree]
  if not isinstance(answer, kinds.Relation) or not set(answer.signs) <= {"=", "~"}: return []
  return [side.tree for side in answer.sides if isinstance(side, kinds.Value)]


def _strip_signs(tree):
  while tree[0] == "neg": tree = tree[1]
  return tree


def _count_factors(tree):
  """Returns (how many factors have variables, the product of the others)."""
  n, number, waiting = 0, fractions.Fraction(1), [(tree, 1)]
  while waiting:
    part, power = waiting.pop()
    exponent = ex.to_fraction(part[2]) if part[0] == "^" else None
    if part[0] == "*": waiting += [(part[1], power), (part[2], power)]
    elif part[0] == "neg": waiting.append((part[1], power))
    elif exponent is not None and exponent.denominator == 1 and 0 < exponent < 100:
      waiting.append((part[1], power * int(exponent)))
    elif part[0] == "/" and not ex.variables(part[2]):
      waiting.append((part[1], power))
      number /= ex.to_fraction(part[2]) or 1
    elif ex.variables(part): n += power
    else: number *= abs(ex.to_fraction(part) or 1) ** power
  return n, number


def _is_factored(gold, tree, _):
  (n, number), (stated_n, stated_number) = _count_factors(gold), _count_factors(tree)
  if n < 2 and number == 1: return True
  return stated_n >= n and (stated_number == 0 or number == 0 or stated_number >= number)


def _is_expanded(gold, tree, _):
  is_sum = lambda part: part[0] == "+" and ex.variables(part)
  is_open = lambda t: any(
      node[0] == "*" and any(map(is_sum, node[1:3])) or node[0] == "^" and is_sum(node[1])
      or node[0] == "neg" and is_sum(node[1]) for node in ex.nodes(t))
  return is_open(gold) or not is_open(tree) and _has_as_few_terms(gold, tree, _)


def _has_as_few_terms(gold, tree, _):
  return len(flatten(tree, "+")) <= len(flatten(gold, "+"))


def _is_simplified(gold, tree, _):
  """Tells whether fractions are reduced, roots are of numbers without squares, terms collected."""
  return all(test(gold) or not test(tree) for test in (_has_reducible, _has_open_root, _has_like,
                                                       _divides_by_variables))


def _has_reducible(tree):
  values = ((ex.to_fraction(node[1]), ex.to_fraction(node[2]))
            for node in ex.nodes(tree) if node[0] == "/")
  return any(None not in pair and all(v.denominator == 1 for v in pair) and (
      math.gcd(*map(int, pair)) > 1 or abs(pair[1]) == 1) for pair in values)


def _has_open_root(tree):
  for node in ex.nodes(tree):
    if node[0] != "root": continue
    value, n = ex.to_fraction(node[1]), ex.to_fraction(node[2])
    if value is None or n is None: continue
    if value.denominator != 1: return True
    if n.denominator == 1 and 1 < n < 10 and any(
        int(value) % k ** int(n) == 0 for k in range(2, 100) if k ** int(n) <= abs(value)):
      return True
  return False


def _has_like(tree):
  """Tells whether two terms of a sum differ in their factors of numbers alone."""
  waiting = [tree]
  while waiting:
    terms = flatten(waiting.pop(), "+")
    rests = list(map(_without_numbers, terms))
    if len(rests) != len(set(rests)): return True
    waiting += [part for term in terms for part in term[1:] if isinstance(part, tuple)]
  return False


def _without_numbers(term):
  factors = [f for f in flatten(_strip_signs(term), "*") if ex.to_fraction(f) is None]
  top = [_strip_signs(f) for f in factors]
  if len(top) == 1 and top[0][0] == "/" and ex.to_fraction(top[0][2]) is not None:
    return _without_numbers(top[0][1])
  return tuple(sorted(map(repr, map(canonical, top))))


def _divides_by_variables(tree):
  return any(node[0] == "/" and ex.variables(node[2]) for node in ex.nodes(tree))


def _has_decimal(tree):
  return any(node[0] == "%" or node[0] == "num" and node[2] is not None for node in ex.nodes(tree))


def _is_percent(gold, tree, _):
  return gold[0] != "%" or tree[0] == "%" or ex.is_equal(gold[1], tree)


def _is_scientific(gold, _, text):
  if not any(node[0] == "^" for node in ex.nodes(gold)): return True
  return _SCIENTIFIC.search(re.sub(r"\s", "", latex.layout_free(text))) is not None


def _count(tree, *kinds_): return sum(node[0] in kinds_ for node in ex.nodes(tree))


def _is_completed(gold, tree, _):
  """Tells whether the variable stands as often as in the reference: once, in a square."""
  return _count(tree, "sym") <= _count(gold, "sym")


def _are_primes(_, tree, __):
  numbers = []
  for factor in flatten(_strip_signs(tree), "*"):
    base = factor[1] if factor[0] == "^" else factor
    if (value := ex.to_fraction(base)) is None or value.denominator != 1: return True
    numbers.append(int(value))
  return all(n > 1 and all(n % k for k in range(2, math.isqrt(n) + 1))
             for n in numbers if n < 10**9)


def _is_complex(gold, tree, _):
  """Tells whether i stands in no power, denominator or product of two factors with it."""
  has_i = lambda part: any(node == ("i",) for node in ex.nodes(part))
  is_open = lambda t: any(
      node[0] == "^" and has_i(node[1]) or node[0] == "/" and has_i(node[2])
      or node[0] == "*" and all(map(has_i, node[1:3])) for node in ex.nodes(t))
  return is_open(gold) or not is_open(tree) and _has_as_few_terms(gold, tree, _)


def _has_root_below(tree):
  return any(node[0] == "/" and any(part[0] == "root" for part in ex.nodes(node[2]))
             for node in ex.nodes(tree))


def _has_mixed(tree): return any(node[3:] == ("mixed",) for node in ex.nodes(tree))


# {form: (tree of the reference, tree of the answer, its text) -> does it have the form}
_FORMS = dict(
    factored=_is_factored, expanded=_is_expanded, simplified=_is_simplified,
    decimal=lambda gold, tree, _: _strip_signs(gold)[0] != "num" or _strip_signs(tree)[0] == "num",
    fraction=lambda gold, tree, _: _has_decimal(gold) or not _has_decimal(tree),
    improper=lambda gold, tree, _: _has_mixed(gold) or not _has_mixed(tree),
    mixed=lambda gold, tree, _: not _has_mixed(gold) or _has_mixed(tree),
    complex=_is_complex, percent=_is_percent, scientific=_is_scientific,
    logarithm=lambda gold, tree, _: _count(gold, "fn") != 1 or _count(tree, "fn") == 1,
    fractions=lambda gold, tree, _: len(flatten(tree, "+")) == len(flatten(gold, "+")),
    square=_is_completed, primes=_are_primes,
    power=lambda gold, tree, _: _strip_signs(gold)[0] != "^" or _strip_signs(tree)[0] == "^",
    rational=lambda gold, tree, _: _has_root_below(gold) or not _has_root_below(tree))
