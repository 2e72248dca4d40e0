"""The kinds of answers that reading.py parses and agreement.py compares."""
from typing import NamedTuple


class Value(NamedTuple):
  """A number or an expression.

  Attributes:
    tree: as in expressions.py.
    unit: (size, {quantity: power}) as in units.py; None without a unit.
  """
  tree: tuple
  unit: tuple | None = None


class Name(NamedTuple):
  """The left side of an equation that names a value: x, f(x), "Area", P(X = 3)."""
  text: str
  tokens: list


class Relation(NamedTuple):
  """An equation, an inequality or a chain of them: n + 1 sides and n signs between them."""
  sides: list
  signs: list


class Reals(NamedTuple):
  """A set of real numbers: sorted pieces (low, high, includes low, includes high)."""
  pieces: list


class Group(NamedTuple):
  """A tuple, point, vector or interval; the reference answer decides which."""
  opening: str
  closing: str
  items: list


class Matrix(NamedTuple):
  rows: list


class Set(NamedTuple):
  items: list


class List(NamedTuple):
  items: list


class Family(NamedTuple):
  """An answer for each value of a variable in a domain: pi/2 + k pi, k an integer."""
  answer: object
  name: str
  domain: str


class Either(NamedTuple):
  """A reference answer in several forms, such as t = ln 9 = 2 ln 3; each of them counts."""
  answers: list


class Choice(NamedTuple):
  letter: str


class Colon(NamedTuple):
  """A ratio or a time; the suffix is am, pm or empty."""
  parts: list
  suffix: str


class Based(NamedTuple):
  """A number with its base as an index."""
  digits: str
  base: str


class Text(NamedTuple):
  words: str


class Question(NamedTuple):
  """What a question says about its answer; `questions.read` returns it.

  Attributes:
    words: `units.context` of the question and the reference answer.
    letters: letters that the question uses as variables; None without a question.
    units: the units that it asks for, (size, {quantity: power}).
    quantities: those that it asks for, such as {"length": 2} for an area.
    forms: names of the forms that it asks for, see forms.py.
    copies: its own expressions, if it asks to transform them, as `forms.spell` returns them.
  """
  words: frozenset = frozenset()
  letters: frozenset | None = None
  units: tuple = ()
  quantities: tuple = ()
  forms: tuple = ()
  copies: frozenset = frozenset()


NO_QUESTION = Question()


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
