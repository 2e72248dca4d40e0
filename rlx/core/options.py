"""Options of a stage: a dataclass whose fields name the config keys that give their values.

  @dataclasses.dataclass(frozen=True, kw_only=True)
  class Options:
    steps: int = key("steps")
    end_id: int

  read(Options, setting, end_id=2)
"""
import dataclasses
from collections.abc import Mapping
from typing import Any, Callable, TypeVar


T = TypeVar("T")


def key(name: str) -> Any:
  """A field that has the value of this config key."""
  return dataclasses.field(metadata=dict(key=name))


def fill(cls: type[T], setting: Callable[[str], Any], **values: Any) -> T:
  """Returns an instance of `cls`.

  Args:
    setting: config key -> its value.
    values: the fields that are not declared with `key`, or that have other values.
  """
  declared = dataclasses.fields(cls)  # type: ignore[arg-type]  # A dataclass.
  keys = {f.name: f.metadata["key"] for f in declared if "key" in f.metadata}
  return cls(**{name: setting(k) for name, k in keys.items()} | values)


def flatten(tree: Mapping, prefix: str = "") -> dict[str, Any]:
  """{dotted key: value} of nested dicts."""
  out: dict[str, Any] = {}
  for k, v in tree.items():
    out |= flatten(v, f"{prefix}{k}.") if isinstance(v, dict) else {prefix + k: v}
  return out
