"""The kinds of answers that reading.py makes of texts and agreement.py compares."""
import dataclasses

record = dataclasses.dataclass(frozen=True)


@record
class Value:
  """Integer, decimal, fraction, closed expression, expression in variables.

  Attributes:
    tree: of expressions.py.
    unit: (size, {quantity: power}) of units.py; None if it has none.
  """
  tree: tuple
  unit: tuple | None = None


@record
class Name:
  """What stands before a sign of equality: x, f(x), "Area", P(X = 3)."""
  text: str
  tokens: list


@record
class Relation:
  """Equation, inequality or a chain of them: n + 1 sides and the n signs between them."""
  sides: list
  signs: list


@record
class Reals:
  """Real numbers: pieces (low, high, is low one of them, is high one of them), in order."""
  pieces: list


@record
class Group:
  """Tuple, point, vector, or an interval: the reference decides which."""
  opening: str
  closing: str
  items: list


@record
class Matrix:
  rows: list


@record
class Set:
  items: list


@record
class List:
  items: list


@record
class Family:
  """An answer for every value of one name in a domain: pi/2 + k pi, k an integer."""
  answer: object
  name: str
  domain: str


@record
class Either:
  """A reference that is written in several forms: t = ln 9 = 2 ln 3."""
  answers: list


@record
class Choice:
  letter: str


@record
class Colon:
  """Ratio or time; the suffix is am, pm or empty."""
  parts: list
  suffix: str


@record
class Based:
  """A number with its base written as an index."""
  digits: str
  base: str


@record
class Text:
  words: str


def items(answer):
  """The answers in a list or a set, also behind x =; a single answer is a list of one."""
  if isinstance(answer, Set): return answer.items
  if isinstance(answer, Relation) and isinstance(answer.sides[-1], Set):
    return answer.sides[-1].items
  name, values = None, []
  for i, item in enumerate(answer.items if isinstance(answer, List) else [answer]):
    # x = 1 or 2, x = 1 or x = 2: the name is of all.
    if is_named(item) and (i == 0 or item.sides[0].text == name):
      name = item.sides[0].text
      item = item.sides[1]
    values.append(item)
  return values


def is_named(answer):
  """Is it a name, a sign of equality and what the name is?"""
  return (isinstance(answer, Relation) and answer.signs == ["="]
          and isinstance(answer.sides[0], Name))
