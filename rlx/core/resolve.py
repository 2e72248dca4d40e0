"""Config -> function. The name in a config is the import path below its stage, or
"package.module:function" of any module; Python code may put the function itself there."""
import dataclasses
import functools
import importlib
import inspect
import pkgutil
import sys
import types
from typing import Any, Callable

from rlx.core import ranges


# Modules of functions that only the process has which was given them.
GIVEN = ("rlx.given:", "__main__:")
# Folders of methods that run once in a step and may keep state until the next, see core/method.py.
STATEFUL = ("rewards", "advantages")
# A function that a config names, with its options bound.
UserFunction = Callable[..., Any]


@dataclasses.dataclass(frozen=True)
class Method:
  """A method that reads its arguments from a batch, see `resolve`; equal to one of equal options,
  so that what is compiled of one is used for the other."""
  fn: UserFunction             # without its options
  fields: tuple[str, ...]      # that it reads
  defaults: dict[str, Any] = dataclasses.field(hash=False)  # of those that a batch may lack
  whole: dict[str, "Method"] = dataclasses.field(hash=False)  # see core/method.py
  options: dict[str, Any] = dataclasses.field(hash=False)  # its defaults too
  state: dict[str, Any] = dataclasses.field(compare=False)  # initial values, see core/method.py

  @property
  def required(self) -> tuple[str, ...]:
    """The fields that a batch must have."""
    return tuple(name for name in self.fields if name not in self.defaults)

  @property
  def module(self) -> types.ModuleType | None:
    """The module that defines it."""
    return inspect.getmodule(self.fn)

  def __call__(self, batch: Any, **given: Any) -> Any:
    """The method's result; `given` are the arguments in `whole` and in `state`."""
    values = {name: getattr(batch, name, self.defaults[name]) if name in self.defaults
              else getattr(batch, name) for name in self.fields}
    result = self.fn(**values, **given, **self.options)
    if isinstance(result, tuple) and len(result) > 2 and not self.state:
      raise ValueError(f"name: it returns {len(result)} values; state is declared, as in "
                       "@method(state={'mean': 0.0}).")
    return result


def resolve(stage, spec, key=None, n_given=None):
  """Returns `fn(batch)` for a spec like {"name": "group.rloo"}.

  Positional arguments of the function are filled from the batch's fields of the same
  name; its keyword-only arguments are the options a config may set.

  Args:
    stage: folder below rlx/, such as "advantages".
    spec: mapping with "name" and the function's options.
    key: the config key, for messages; default the stage.
    n_given: see `bind`.
  Returns:
    a Method.
  Raises:
    ValueError: no such module or function, or an unknown or missing option; the message
      names the key and what exists.
  """
  bound = bind(stage, spec, key or stage, n_given)
  statistics, state = getattr(bound.func, "whole", {}), getattr(bound.func, "initial_state", {})
  options = {p.name: p.default for p in inspect.signature(bound).parameters.values()
             if p.kind is p.KEYWORD_ONLY and p.name not in state}
  ignored = [name for name, is_unread in getattr(bound.func, "unread", {}).items()
             if is_unread(options)]
  whole = {name: _method(functools.partial(fn, **{
      k: v for k, v in options.items() if k in inspect.signature(fn).parameters}))
           for name, fn in statistics.items()}
  return _method(bound, [*statistics, *ignored], whole, options, state)


def _method(fn, given=(), whole=None, options=None, state=None):
  """The Method of a partial whose positional arguments, except those given, are fields."""
  read = [p for p in inspect.signature(fn).parameters.values()
          if p.kind is p.POSITIONAL_OR_KEYWORD and p.name not in given]
  plain = functools.partial(fn.func, *fn.args) if fn.args else fn.func
  return Method(plain, tuple(p.name for p in read),
                {p.name: p.default for p in read if p.default is not p.empty},
                whole or {}, fn.keywords if options is None else options, state or {})


def split_metrics(result):
  """Returns (value, metrics) for the result of a method, see `split`."""
  return split(result)[:2]


def split(result):
  """Returns (value, metrics, state) for the result of a method: the value alone, or a tuple of the
  first two or of all three; what is not in it is {}.

  Metrics are {name: scalar, [B] or [B, T]}; the mean of an array is logged. State is {name: next
  value} of what the method keeps between steps.
  """
  parts = result if isinstance(result, tuple) else (result,)
  return (*parts, {}, {})[:3]


def bind(stage, spec, key=None, n_given=None):
  """Returns the function that a spec names, with its options bound.

  Args:
    n_given: number of positional arguments that the caller passes; None: not checked here.
  Raises:
    ValueError: as `resolve`; also if the number of positional arguments differs, an option is out
      of its range, or the function keeps state that nothing would keep for it in this stage.
  """
  key = key or stage
  options = dict(spec)
  path = options.pop("name")
  fn = lookup(stage, path, key)
  parameters = inspect.signature(fn).parameters.values()
  state = getattr(fn, "initial_state", {})
  if state and stage not in STATEFUL:
    raise ValueError(f"{key}.name={path!r}: it keeps {sorted(state)} between steps, which only "
                     "rewards, estimators and learner.reward_std_filter can.")
  allowed = {p.name: p for p in parameters if p.kind is p.KEYWORD_ONLY and p.name not in state}
  if unknown := sorted(set(options) - set(allowed)):
    raise ValueError(f"{key}.{unknown[0]}: {path} takes {sorted(allowed)}.")
  if missing := sorted(n for n, p in allowed.items() if p.default is p.empty and n not in options):
    raise ValueError(f"{key}.{missing[0]}: {path} needs it.")
  taken = [p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
  if n_given is not None and len(taken) != n_given:
    raise ValueError(f"{key}.name={path!r}: it takes {taken}; {n_given} arguments are given.")
  for name, value in options.items():
    ranges.check(f"{key}.{name}", value, ranges.find_option_range(allowed[name]))
  return functools.partial(fn, **options)


def lookup(stage, path, key=None):
  """The function that a config names.

  Args:
    stage: folder below rlx/, such as "rewards".
    path: the import path of a public function below the stage, such as "outcome.verdict", or of
      a class, below rlx/environments;
      "package.module:function" of any module on the import path; or the function itself.
    key: the config key, for messages; default the stage.
  Raises:
    ValueError: there is no such module or function, or it cannot be called; the message says
      what exists.
  """
  if callable(path): return path
  shown = f"{key or stage}.name={path!r}"
  if ":" in str(path): return _import_callable(path, shown)
  *_, fn_name = parts = f"{stage}.{path}".split(".")
  if len(parts) == 2:
    folder = importlib.import_module(f"rlx.{stage}").__path__
    modules = sorted(m.name for m in pkgutil.iter_modules(folder))
    raise ValueError(f"{shown}: MODULE.FUNCTION; rlx/{stage} has the modules {modules}.")
  file = "/".join(["rlx", *parts[:-1]]) + ".py"
  try:
    module = importlib.import_module(".".join(["rlx", *parts[:-1]]))
  except ModuleNotFoundError as e:
    if e.name is None or not e.name.startswith("rlx"): raise
    raise ValueError(f"{shown}: there is no {file}.") from None
  named = list_functions(module, inspect.isclass if stage == "environments" else inspect.isfunction)
  if fn_name not in named: raise ValueError(f"{shown}: {file} has {sorted(named)}.")
  return named[fn_name]


def _import_callable(path, shown):
  """The callable at "package.module:function"."""
  module_name, _, fn_name = path.partition(":")
  if path.startswith(GIVEN) and not _find(sys.modules.get(module_name), fn_name):
    raise ValueError(f"{shown}: Python gave this function to the run, and this process does not "
                     f"have it; give it again, as reward={{{fn_name!r}: function}} to rlx.evaluate "
                     "or as the value of its key, or put it into a module.")
  try:
    module = importlib.import_module(module_name)
  except Exception as e:  # Whatever the module raises.
    is_absent = isinstance(e, ModuleNotFoundError) and f"{module_name}.".startswith(f"{e.name}.")
    raise ValueError(f"{shown}: " + (
        f"there is no module {e.name!r} on the import path." if is_absent else
        f"importing {module_name} fails: {type(e).__name__}: {e}")) from e
  names = sorted(name for name, x in vars(module).items()
                 if callable(x) and not name.startswith("_"))
  fn = _find(module, fn_name)
  if fn is None: raise ValueError(f"{shown}: {module_name} has {names}.")
  if not callable(fn):
    raise ValueError(f"{shown}: a {type(fn).__name__}, no function; {module_name} has {names}.")
  return fn


def _find(module, name):
  """What a module has at a dotted name; None if there is nothing."""
  return functools.reduce(lambda x, part: getattr(x, part, None), name.split("."), module)


def list_functions(module, is_kind=inspect.isfunction):
  """{name: function} for the functions a module defines itself, functools.partial among them.

  Args:
    is_kind: inspect.isclass: classes instead of functions.
  """
  return {name: x for name, x in vars(module).items() if not name.startswith("_") and (
      isinstance(x, functools.partial) or is_kind(x) and x.__module__ == module.__name__)}
