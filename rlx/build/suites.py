"""Suites of benchmarks by name: `suite=math` evaluates a run or model on configs/suites/math.py."""
import difflib
import importlib
import pkgutil

from rlx.build import keys
from rlx.configs import suites  # type: ignore[attr-defined]  # Found by its __path__.


def use_suite(config: keys.Config, name: str) -> None:
  """Makes the sets of a suite all that a config evaluates. Raises as `find_config`."""
  find_config(name)
  module = importlib.import_module(f"{suites.__name__}.{name}")
  suites.fill(config, module.SETS, module.KEYS)


def find_config(name: str) -> str:
  """The name of the config that evaluates a model on a suite.

    >>> find_config("math")
    'suites/math'

  Raises:
    ValueError: there is no such suite; one line with those that there are.
  """
  names = sorted(m.name for m in pkgutil.iter_modules(suites.__path__))
  if name not in names:
    near = "".join(f"; did you mean {x}?" for x in difflib.get_close_matches(name, names, 1))
    raise ValueError(
        f"suite={name!r:.40}: no such suite{near or '.'} There are {', '.join(names)}.")
  return f"suites/{name}"
