"""What the options of a config may be; the range of a method's option is its annotation."""
import dataclasses
from typing import Callable


@dataclasses.dataclass(frozen=True)
class Range:
  """Numbers from low to high, both included; NaN and infinity are in none.

  Bounds keep float32 away from overflow, and from a 1 - x that rounds to 0.
  """
  low: float
  high: float
  is_whole: bool = False  # whole numbers alone
  has_none: bool = False  # or None
  is_list: bool = False   # a (nested) list of them

  @property
  def or_none(self):
    return dataclasses.replace(self, has_none=True)

  @property
  def list(self):
    return dataclasses.replace(self, is_list=True)

  def __contains__(self, x):
    if x is None: return self.has_none
    if self.is_list and isinstance(x, list | tuple): return all(part in self for part in x)
    is_number = isinstance(x, int if self.is_whole else int | float)
    return is_number and not isinstance(x, bool) and self.low <= x <= self.high

  def __str__(self):
    kind = ("a list of numbers" if self.is_list else
            "a whole number" if self.is_whole else "a number")
    return (f"{kind} from {self.low:.10g} to {self.high:.10g}" + ", or None" * self.has_none)


ANY = Range(-1e12, 1e12)
NOT_NEGATIVE = Range(0, 1e12)
POSITIVE = Range(1e-12, 1e12)
SHARE = Range(0, 1)
BELOW_ONE = Range(0, 0.999999)
WHOLE = Range(0, 2**31 - 1, is_whole=True)
COUNT = Range(1, 2**31 - 1, is_whole=True)


@dataclasses.dataclass(frozen=True)
class Kind:
  """What is no number."""
  text: str
  test: Callable

  def __contains__(self, x): return self.test(x)

  def __str__(self): return self.text


SWITCH = Kind("True or False", lambda x: isinstance(x, bool))
TEXT = Kind("a text", lambda x: isinstance(x, str) and "\0" not in x)
TEXT_OR_NONE = Kind("a text, or None", lambda x: x is None or x in TEXT)
TEXTS = Kind("a list of texts", lambda x: isinstance(x, list | tuple) and all(
    part in TEXT for part in x))


def check(key, value, allowed):
  """Refuses an option that is not allowed.

  Args:
    allowed: a Range or Kind; None allows all.
  Raises:
    ValueError: the key, its value and what is allowed.
  """
  if allowed is not None and value not in allowed:
    raise ValueError(f"{key}={value!r:.80}: {allowed}.")


def of_option(parameter):
  """What an option (an inspect.Parameter) may be: its annotation, or what its default is
  one of; None where neither says, which is for the function to check."""
  if parameter.annotation is not parameter.empty: return parameter.annotation
  return {bool: SWITCH, str: TEXT, int: ANY, float: ANY}.get(type(parameter.default))
