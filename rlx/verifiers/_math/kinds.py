"""The kinds of answers that reading.py parses and agreement.py compares."""
import dataclasses

record = dataclasses.dataclass(frozen=True)


@record
class Value:
  """A number or an expression.

  Attributes:
    tree: as in expressions.py.
    unit: (size, {quantity: power}) as in units.py; None without a unit.
  """
  tree: tuple
  unit: tuple | None = None


@record
class Name:
  """The left side of an equation that names a value: x, f(x), "Area", P(X = 3)."""
  text: str
  tokens: list


@record
class Relation:
  """An equation, an inequality or a chain of them: n + 1 sides and n signs between them."""
  sides: list
  signs: list


@record
class Reals:
  """A set of real numbers: sorted pieces (low, high, includes low, includes high)."""
  pieces: list


@record
class Group:
  """A tuple, point, vector or interval; the reference answer decides which."""
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
  """An answer for each value of a variable in a domain: pi/2 + k pi, k an integer."""
  answer: object
  name: str
  domain: str


@record
class Either:
  """A reference answer in several forms, such as t = ln 9 = 2 ln 3; each of them counts."""
  answers: list


@record
class Choice:
  letter: str


@record
class Colon:
  """A ratio or a time; the suffix is am, pm or empty."""
  parts: list
  suffix: str


@record
class Based:
  """A number with its base as an index."""
  digits: str
  base: str


@record
class Text:
  words: str


def items(answer):
  """Returns the answers in a list or set, also after x =; a single answer gives a list of one."""
  if isinstance(answer, Set): return answer.items
  if isinstance(answer, Relation) and isinstance(answer.sides[-1], Set):
    return answer.sides[-1].items
  name, values = None, []
  for i, item in enumerate(answer.items if isinstance(answer, List) else [answer]):
    # In x = 1 or 2, and in x = 1 or x = 2, the name belongs to all values.
    if is_named(item) and (i == 0 or item.sides[0].text == name):
      name = item.sides[0].text
      item = item.sides[1]
    values.append(item)
  return values


def is_named(answer):
  """Tells whether an answer is an equation with a name on its left side."""
  return (isinstance(answer, Relation) and answer.signs == ["="]
          and isinstance(answer.sides[0], Name))
