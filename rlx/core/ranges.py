"""The values that the options of a config may have.

A method states them in the annotation of the option, which is a type for type checkers, too:

  def grpo(rewards_PG: Array, learn_PG: Array, *, eps: ranges.Positive = 1e-6): ...
  def gspo(..., ratio_max: Annotated[float, ranges.Range(1, 1e12)] = 1e3): ...

configs/base.py states them beside the default of a key.
"""
import dataclasses
import types
from collections.abc import Sequence
from typing import Annotated, Any, Callable, Literal, Union, get_args, get_origin


class _Allowed:
  @property
  def or_none(self):
    return Kind(f"{self}, or None", lambda x: x is None or x in self)


@dataclasses.dataclass(frozen=True)
class Range(_Allowed):
  """Numbers from low to high, both included; NaN and infinity are in none.

  Bounds keep float32 away from overflow, and from a 1 - x that rounds to 0.
  """
  low: float
  high: float
  is_whole: bool = False  # whole numbers alone
  is_list: bool = False   # a (nested) list of them

  @property
  def list(self):
    return dataclasses.replace(self, is_list=True)

  def __contains__(self, x):
    if self.is_list and isinstance(x, list | tuple): return all(part in self for part in x)
    is_number = isinstance(x, int if self.is_whole else int | float)
    return is_number and not isinstance(x, bool) and self.low <= x <= self.high

  def __str__(self):
    kind = ("a list of numbers" if self.is_list else
            "a whole number" if self.is_whole else "a number")
    return f"{kind} from {self.low:.10g} to {self.high:.10g}"


def whole(low, high):
  """The whole numbers from low to high."""
  return Range(low, high, is_whole=True)


ANY = Range(-1e12, 1e12)
NOT_NEGATIVE = Range(0, 1e12)
NOT_POSITIVE = Range(-1e12, 0)
POSITIVE = Range(1e-12, 1e12)
SHARE = Range(0, 1)
BELOW_ONE = Range(0, 0.999999)
WHOLE = whole(0, 2**31 - 1)
COUNT = whole(1, 2**31 - 1)

# The same as annotations.
Number = Annotated[float, ANY]
NotNegative = Annotated[float, NOT_NEGATIVE]
NotPositive = Annotated[float, NOT_POSITIVE]
Positive = Annotated[float, POSITIVE]
Share = Annotated[float, SHARE]
BelowOne = Annotated[float, BELOW_ONE]
Whole = Annotated[int, WHOLE]
Count = Annotated[int, COUNT]
Numbers = Annotated[Sequence[Any], ANY.list]


@dataclasses.dataclass(frozen=True)
class Kind(_Allowed):
  """What is no number."""
  text: str
  test: Callable

  def __contains__(self, x): return self.test(x)

  def __str__(self): return self.text


SWITCH = Kind("True or False", lambda x: isinstance(x, bool))
FINITE = Kind(f"{ANY}, or no number", lambda x: isinstance(x, bool) or (
    x in ANY or not isinstance(x, int | float)))
TEXT = Kind("a text", lambda x: isinstance(x, str) and "\0" not in x)
TEXTS = Kind("a list of texts", lambda x: isinstance(x, list | tuple) and all(
    part in TEXT for part in x))


def one_of(values):
  """One of a tuple."""
  return Kind(f"one of {values}", lambda x: x in values)


def some_of(values):
  """A list of texts of a tuple, at least one."""
  return Kind(f"some of {values}", lambda x: x in TEXTS and bool(x) and set(x) <= set(values))


def check(key, value, allowed):
  """Refuses an option that is not allowed.

  Args:
    allowed: a Range or Kind; None allows all.
  Raises:
    ValueError: the key, its value and what is allowed.
  """
  if allowed is not None and value not in allowed:
    raise ValueError(f"{key}={value!r:.80}: {allowed}.")


def find_option_range(parameter):
  """The Range or Kind of an option (an inspect.Parameter), from its annotation or else the type
  of its default; None where neither states it, and the function has to check the value."""
  if (allowed := _read_annotation(parameter.annotation)) is not None: return allowed
  return _OF_TYPE.get(type(parameter.default))


_OF_TYPE = {bool: SWITCH, str: TEXT, int: ANY, float: ANY}


def _read_annotation(annotation):
  if get_origin(annotation) is Annotated:
    return next((x for x in annotation.__metadata__ if isinstance(x, Range | Kind)), None)
  if get_origin(annotation) is Literal: return one_of(get_args(annotation))
  if get_origin(annotation) in (Union, types.UnionType):  # X | None
    allowed = _read_annotation(get_args(annotation)[0])
    return allowed and allowed.or_none
  return None
