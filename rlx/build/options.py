"""Values of config keys, and dataclasses of core/options.py that are filled with them."""
import dataclasses
import functools
from typing import Any, Callable, TypeVar

from rlx.build import keys

T = TypeVar("T")


def read_options(cls: type[T], c: keys.Config, **values: Any) -> T:
  """An instance of `cls`, a dataclass of core/options.py, with the values of config keys.

  Args:
    values: the fields that are not declared with `key`, or that have other values.
  """
  declared = dataclasses.fields(cls)  # type: ignore[arg-type]  # A dataclass.
  read = {f.name: setting(c)(f.metadata["key"]) for f in declared if "key" in f.metadata}
  return cls(**read | values)


def setting(c: keys.Config) -> Callable[[str], Any]:
  """config key -> its value."""
  return lambda key: functools.reduce(getattr, key.split("."), c)
