"""Loads environments of the package verifiers and their data sets, and pickles their rollouts.

Environments that need more than a text policy are refused, see verifiers_env.py.
"""
import contextlib
import dataclasses
import functools
import importlib
import json
import pickle
import random
import signal
import threading
from concurrent import futures
from typing import Any

from rlx.contrib.environments import adapters

_NEEDS = {  # Classes that need a service, and which.
    "SandboxEnv": "a sandbox service", "SandboxMixin": "a sandbox service",
    "PythonEnv": "a sandbox service", "CliAgentEnv": "a sandbox service",
    "BrowserEnv": "a browser service", "MCPEnv": "MCP servers", "OpenEnvEnv": "a container",
    "RLMEnv": "a model besides the policy",
}
_CLIENTS = ("openai", "anthropic", "httpx", "aiohttp", "prime_sandboxes")  # Packages of clients.
ONE_MODEL = "The environment or its rubric asks a model; there is none besides the policy."


@dataclasses.dataclass(frozen=True)
class Loaded:
  """An environment; the objects it holds since it was loaded, and {id of one: its number}."""
  env: Any
  parts: list[Any]
  numbers: dict[int, int]


class Pickler(pickle.Pickler):
  """Pickles the parts of an environment as their numbers."""

  def __init__(self, file, numbers):
    super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
    self._numbers = numbers

  def persistent_id(self, obj):
    return self._numbers.get(id(obj))

  def reducer_override(self, obj):
    # Unpickling looks for __setstate__ before an object has attributes, where the __getattr__ of a
    # wrapper, such as those of TextArena, never ends.
    cls = type(obj)
    is_plain = (cls.__new__ is object.__new__ and cls.__reduce__ is object.__reduce__
                and cls.__reduce_ex__ is object.__reduce_ex__ and not hasattr(cls, "__setstate__"))
    if not hasattr(cls, "__getattr__") or not is_plain: return NotImplemented
    return object.__new__, (cls,), vars(obj), None, None, _set_attributes


def _set_attributes(obj, attributes):
  vars(obj).update(attributes)


class Unpickler(pickle.Unpickler):
  """Reads what `Pickler` wrote, with the parts of an environment that is already loaded."""

  def __init__(self, file, parts):
    super().__init__(file)
    self._parts = parts

  def persistent_load(self, pid):
    return self._parts[pid]


class Inline(futures.Executor):
  """Runs calls at once. In place of a rubric's process pool, whose processes would outlive a
  worker that is killed, and which no daemon process can start."""

  def submit(self, fn, /, *args, **kwargs):
    future: futures.Future = futures.Future()
    try:
      future.set_result(fn(*args, **kwargs))
    except Exception as e:
      future.set_exception(e)
    return future


@functools.lru_cache(maxsize=None)
def load(environment, arguments):
  """Loads an environment and checks that a text policy is all it needs."""
  shown = f"environment.environment={environment!r}"
  vf = _package()
  try:
    with adapters.seed_generators(shown), _signal_handlers():
      env = _make_environment(vf, environment, json.loads(arguments))
  except Exception as e:  # Of the environment's module, which does anything.
    is_client = _is_client(e) or _is_client(e.__cause__)
    raise ValueError(f"{shown}: it cannot be loaded: {'it needs a client: ' * is_client}"
                     f"{adapters.line_of(e)}") from e
  if reason := _refusal(vf, env): raise ValueError(f"{shown}: {reason}.")
  for member in _members(env):
    for rubric in rubrics(member.rubric):
      if isinstance(getattr(rubric, "executor", None), futures.ProcessPoolExecutor):
        rubric.executor.shutdown(wait=False)
        rubric.executor = Inline()
  parts = _parts(env)
  return Loaded(env, parts, {id(part): i for i, part in enumerate(parts)})


def _package():
  try:
    import verifiers as vf
  except ImportError as e:
    raise ImportError(f"verifiers_env needs the extra verifiers: pip install 'rlx[verifiers]' "
                      f"({e}).") from None
  if not hasattr(vf, "load_environment") or not hasattr(vf.Environment, "init_state"):
    raise ImportError(f"verifiers_env needs verifiers>=0.1.14,<0.4, which has load_environment and "
                      f"MultiTurnEnv; version {vf.__version__} is installed.")
  return vf


def _make_environment(vf, environment, arguments):
  if ":" not in environment: return vf.load_environment(environment, **arguments)
  module, _, name = environment.partition(":")
  return getattr(importlib.import_module(module), name)(**arguments)


def _refusal(vf, env):
  """Why a text policy cannot run an environment; "" if it can."""
  if not isinstance(env, vf.Environment):
    return f"a verifiers.Environment is needed, not {type(env).__name__}"
  if isinstance(env, vf.EnvGroup):
    reasons = [f"{name}: {reason}" for name, member in env.env_map.items()
               if (reason := _refusal(vf, member))]
    return "; ".join(reasons)
  names = [cls.__name__ for cls in type(env).__mro__]
  if needs := [_NEEDS[name] for name in names if name in _NEEDS]: return f"it needs {needs[0]}"
  if not isinstance(env, vf.MultiTurnEnv) or type(env).rollout is not vf.MultiTurnEnv.rollout:
    return "it runs its rollouts itself and asks a model"
  if not env.score_rollouts: return "it gives no rewards (score_rollouts=False)"
  for name, value in vars(env).items():
    if _is_client(value): return f"it needs a client, {name}={type(value).__name__}"
  for rubric in rubrics(env.rubric):
    if isinstance(rubric, vf.JudgeRubric): return "its rubric needs a judge model"
    clients = [name for name, value in rubric.class_objects.items() if _is_client(value)]
    if clients: return f"its rubric needs a client, {clients[0]}"
    if rubric.has_group_rewards or getattr(rubric, "has_advantages", False):
      return "its rubric compares the rollouts of a group"
  return ""


def _is_client(value):
  return type(value).__module__.partition(".")[0] in _CLIENTS


def _members(env):
  if not hasattr(env, "env_map"): return [env]
  return [member for part in env.env_map.values() for member in _members(part)]


def rubrics(rubric):
  """A rubric and those it consists of."""
  return [rubric] + [part for child in getattr(rubric, "rubrics", []) for part in rubrics(child)]


def _parts(env):
  """The objects that an environment holds, and what is in its lists and dicts, in an order which
  is the same in all processes. Strings and numbers are not worth a reference."""
  parts = {}
  for member in [env, *_members(env)]:
    for value in [member, *vars(member).values()]:
      inside = (value.values() if isinstance(value, dict) else
                value if isinstance(value, list | tuple) else ())
      for part in (value, *inside):
        if not isinstance(part, str | bytes | int | float | type | None): parts[id(part)] = part
  return list(parts.values())


@functools.lru_cache(maxsize=8)
def dataset_of(environment, arguments, split, seed):
  """(Data set, its rows of this split in the order of the seed)."""
  env = load(environment, arguments).env
  shown = f"prompts.columns.environment={environment!r}"
  try:
    with adapters.seed_generators(shown):
      train, held_out = env.build_dataset(), env.build_eval_dataset()
  except Exception as e:  # Of datasets, of the hub, of HTTP.
    raise ValueError(f"{shown}: its data set cannot be loaded: {adapters.line_of(e)}") from e
  if train is not None and held_out is not None:
    dataset = train if split == "train" else held_out
    order = list(range(len(dataset)))
  else:
    dataset = held_out if train is None else train
    order = [i for i, row in enumerate(dataset) if adapters.split_of(row) == split]
  random.Random(f"verifiers/{seed}").shuffle(order)
  return dataset, order


@functools.cache
def no_model():
  """The class of what a state has in place of a model's client: it knows if it was asked."""
  import verifiers as vf

  class NoModel(vf.Client):

    def __init__(self):  # pylint: disable=super-init-not-called
      self.is_asked = False

    async def get_response(self, *unused_args, **unused_kwargs):
      self.is_asked = True
      raise ValueError(ONE_MODEL)

  NoModel.__abstractmethods__ = frozenset()  # Nothing calls the others.
  return NoModel


@contextlib.contextmanager
def _signal_handlers():
  """Keeps this process's handlers: an environment of verifiers installs its own."""
  if threading.current_thread() is not threading.main_thread():
    yield
    return
  handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
  try:
    yield
  finally:
    for number, handler in handlers.items(): signal.signal(number, handler)
