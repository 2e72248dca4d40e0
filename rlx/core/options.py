"""Options of a stage: a dataclass whose fields name the config keys that give their values.

  @dataclasses.dataclass(frozen=True, kw_only=True)
  class Options:
    steps: int = key("steps")
    end_id: int

  read_options(Options, config, end_id=2)         # of build/options.py
"""
import dataclasses
from collections.abc import Mapping
from typing import Any


def key(name: str) -> Any:
  """A field that has the value of this config key."""
  return dataclasses.field(metadata=dict(key=name))


def flatten(tree: Mapping, prefix: str = "") -> dict[str, Any]:
  """{dotted key: value} of nested dicts."""
  out: dict[str, Any] = {}
  for k, v in tree.items():
    out |= flatten(v, f"{prefix}{k}.") if isinstance(v, dict) else {prefix + k: v}
  return out
