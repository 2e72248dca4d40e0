"""Options of a stage: a dataclass whose fields name the config keys that give their values.

  @dataclasses.dataclass(frozen=True, kw_only=True)
  class Options:
    steps: int = key("steps")
    end_id: int

  read(Options, setting, end_id=2)
"""
import dataclasses


def key(name):
  """A field that has the value of this config key."""
  return dataclasses.field(metadata=dict(key=name))


def read(cls, setting, **values):
  """Returns an instance of `cls`.

  Args:
    setting: config key -> its value.
    values: the fields that are not declared with `key`, or that have other values.
  """
  keys = {f.name: f.metadata["key"] for f in dataclasses.fields(cls) if "key" in f.metadata}
  return cls(**{name: setting(k) for name, k in keys.items()} | values)
