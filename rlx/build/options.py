"""Values of config keys, and dataclasses of core/options.py that are filled with them."""
import functools
from typing import Any, Callable, TypeVar

from rlx.build import keys
from rlx.core import options as options_lib

T = TypeVar("T")


def read_options(cls: type[T], c: keys.Config, **values: Any) -> T:
  """An instance of a dataclass of core/options.py, with the values of config keys."""
  return options_lib.fill(cls, setting(c), **values)


def setting(c: keys.Config) -> Callable[[str], Any]:
  """config key -> its value."""
  return lambda key: functools.reduce(getattr, key.split("."), c)
