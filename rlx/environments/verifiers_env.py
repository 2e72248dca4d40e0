"""Environments of the package verifiers (github.com/PrimeIntellect-ai/verifiers), unmodified.

  environment.name="verifiers_env.VerifiersEnvironment"
  environment.environment="wordle"             # verifiers.load_environment("wordle", **arguments)
  environment.environment="my_package:load"    # or a function that returns one

The loop of verifiers' MultiTurnEnv.rollout runs here one turn at a time, with the policy's reply
where verifiers asks a model: setup_state, stop conditions, env_response, tools, cleanup, then the
reward of the environment's own rubric. These are the environments of versions 0.1.14 to 0.3;
version 0.4 has task sets alone, which verifiers_taskset.py runs.

Tool calls are read from the text of a reply, as many chat templates write them:

  <tool_call>{"name": "add", "arguments": {"x": 1, "y": 2}}</tool_call>

Environments that need anything but a text policy are refused: a judge model, a client of an API, a
sandbox or another service, images, or rewards that compare the rollouts of a group. The network
cannot be seen from here; a data set that has to be downloaded fails in `prompts`. The code of an
environment, its tools included, has the rights of the worker process.

Differences from verifiers: draws from `random` and numpy's global generator are seeded by the
prompt and the turn; a tool call that cannot be read is answered instead of ending the rollout;
there are no timeouts (the runner has a deadline); MathRubric checks answers in this process.
"""
import asyncio
from concurrent import futures
import contextlib
import dataclasses
import functools
import importlib
import io
import json
import logging
import math
import pickle
import random
import signal
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rlx.core import ranges
from rlx.environments import adapters
from rlx.environments import interface

if TYPE_CHECKING: from rlx.core import records

_NEEDS = {  # Classes that need a service, and which.
    "SandboxEnv": "a sandbox service", "SandboxMixin": "a sandbox service",
    "PythonEnv": "a sandbox service", "CliAgentEnv": "a sandbox service",
    "BrowserEnv": "a browser service", "MCPEnv": "MCP servers", "OpenEnvEnv": "a container",
    "RLMEnv": "a model besides the policy",
}
_CLIENTS = ("openai", "anthropic", "httpx", "aiohttp", "prime_sandboxes")  # Packages of clients.
_ONE_MODEL = "The environment or its rubric asks a model; there is none besides the policy."
_LIVE = ("client", "usage", "usage_tracker")  # What a rollout's state has of the model's client.


class VerifiersEnvironment:
  """One environment of verifiers.

  Args:
    environment: the name of an installed environment, as verifiers.load_environment takes it, or
      "package.module:function" of a function that returns a verifiers.Environment.
    arguments: keyword arguments of the environment, plain JSON values.
    tools_in_prompt: whether the system message describes the environment's tools and how to call
      them; verifiers leaves this to the server of the model.
    max_tool_calls: calls that a reply may make; one with more is answered by an error.
  Raises:
    ImportError: the package is missing, or its version has another interface.
    ValueError: there is no such environment, it cannot be loaded, or it needs what a text policy
      does not have; the message says what.
  """
  role = "user"

  def __init__(self, *, environment: str, arguments: Mapping[str, Any] | None = None,
               tools_in_prompt: bool = True, max_tool_calls: ranges.Count = 8):
    self.environment = environment
    self.arguments = adapters.as_json("environment.arguments", dict(arguments or {}))
    self.tools_in_prompt = tools_in_prompt
    self.max_tool_calls = max_tool_calls
    _load(self.environment, self.arguments)
    self._seed = self._row = ""
    self._rollout = b""

  @property
  def _loaded(self):
    return _load(self.environment, self.arguments)

  def reset(self, prompt: "records.Prompt") -> str | list[dict[str, Any]]:
    """Starts the rollout of the row prompt.meta["row"].

    The row has the columns of verifiers' data sets: prompt (messages) or question, and what the
    environment reads, such as answer, info and task.

    Raises:
      ValueError: the row does not fit, the environment does not start from it, shows images, or
        has a state that cannot be pickled.
    """
    self._seed, self._row = prompt.id, adapters.as_json("the row", dict(prompt.meta["row"]))
    env, row = self._member()
    with adapters.seeded(f"{self._seed}/reset"):
      state, messages = asyncio.run(_started(env, row))
    if messages is None:
      raise ValueError(f"{self._key}: the rollout of prompt {prompt.id!r} ends before its first "
                       f"turn: {state.get('error') or state.get('stop_condition')!r}.")
    shown = [dict(role=m.role, content=adapters.text_of(m, self._key)) for m in messages]
    if self.tools_in_prompt and state["tool_defs"]:
      shown = adapters.with_tools(shown, state["tool_defs"])
    try:
      self._keep(state, messages)
      self._restored(env)
    except ValueError:
      asyncio.run(env.cleanup(state))  # It may hold a process or a connection.
      raise
    if all(m["role"] == "text" for m in shown): return "\n".join(m["content"] for m in shown)
    return shown

  def step(self, reply: str) -> interface.Step:
    """Answers a reply; the last step has the rubric's reward and all its metrics."""
    env, _ = self._member()
    state, messages = self._restored(env)
    calls: list[tuple[str, str]] = []
    fault = ""
    if hasattr(env, "tool_map"):
      reply, calls, fault = adapters.tool_calls(reply, self.max_tool_calls)
    with adapters.seeded(f"{self._seed}/{len(state['trajectory'])}"):
      state, after, info = asyncio.run(_answered(env, state, messages, reply, calls, fault))
    if after is None:
      reward = float(state["reward"])
      if not math.isfinite(reward):
        raise ValueError(f"{self._key}: the rubric's reward is {reward}.")
      self._rollout = b""
      return interface.Step(reward=reward, done=True, info=info)
    n_before = len(messages) + len(state["trajectory"][-1]["completion"])
    if after[:len(messages)] != messages:
      raise ValueError(f"{self._key}: it rewrites earlier messages, so that its rollouts are no "
                       "single text.")
    self._keep(state, after)
    return interface.Step("\n".join(adapters.text_of(m, self._key) for m in after[n_before:]))

  @property
  def _key(self):
    return f"environment.environment={self.environment!r}"

  def _member(self):
    """(The environment of this row, which is a part of an EnvGroup or the environment, the row)."""
    env, row = self._loaded.env, json.loads(self._row)
    while hasattr(env, "env_map"):
      info = dict(row.get("info") or {})
      route = info.pop("env_id", None) or row.get("task")
      first, *rest = [route] if isinstance(route, str) else route or [None]
      if first not in env.env_map:
        raise ValueError(f'{self._key}: the row\'s info["env_id"]={first!r}; there are '
                         f"{sorted(env.env_map)}.")
      env, row["info"] = env.env_map[first], info | (dict(env_id=rest) if rest else {})
    return env, row

  def _keep(self, state, messages):
    """Pickles the rollout. Objects of the environment itself stay references to it, so that a
    dictionary or a word list which all rollouts share is not a part of each.

    Raises:
      ValueError: it cannot be pickled.
    """
    for key in _LIVE: dict.pop(state, key, None)
    file = io.BytesIO()
    pickler = _Pickler(file, self._loaded.numbers)
    try:
      pickler.dump((state, messages))
    except Exception as e:  # Whatever an object raises when it is pickled.
      raise ValueError(f"{self._key}: the state of a rollout cannot be pickled: "
                       f"{adapters.line_of(e)}") from e
    self._rollout = file.getvalue()

  def _restored(self, env):
    try:
      state, messages = _Unpickler(io.BytesIO(self._rollout), self._loaded.parts).load()
    except Exception as e:  # As above.
      raise ValueError(f"{self._key}: the state of a rollout cannot be unpickled: "
                       f"{adapters.line_of(e)}") from e
    dict.__setitem__(state, "client", _no_model()())
    env._get_usage_tracker(state)
    return state, messages


class VerifiersToolEnvironment(VerifiersEnvironment):
  """The same for chat templates that render the results of tools in a way of their own."""
  role = "tool"


def prompts(rows, split, *, environment: str = "", arguments: Mapping[str, Any] | None = None):
  """The data set of an environment: get_dataset for "train", get_eval_dataset for "test".

  Where the environment has one of them alone, a hash of the row decides which split it is in.

  Args:
    rows: dicts {"seed", "index"}, and the options below if they differ between rows: the entry
      `index` of the split, shuffled by the seed. It ends with the first index above the last.
    environment: as of VerifiersEnvironment.
    arguments: as of VerifiersEnvironment.
  Raises:
    ValueError: the data set cannot be loaded, for example because it would be downloaded.
  """
  from rlx.core import records  # Imports jax.
  if split not in ("train", "test"):
    raise ValueError(f"prompts: verifiers has no split {split!r}; train or test.")
  texts: set[str] = set()
  for row in rows:
    name = row.get("environment", environment)
    given = adapters.as_json("prompts.columns.arguments",
                             dict(row.get("arguments", arguments) or {}))
    dataset, order = _dataset(name, given, split, row["seed"])
    if row["index"] >= len(order): return
    number = order[row["index"]]
    entry = dataset[number]
    adapters.as_json(f"prompts.columns.environment={name!r}: row {number}", entry)
    prompt_id = f"verifiers/{name}/{split}/{row['seed']}/{row['index']}"
    text = adapters.question_of(entry)
    # Prompts with the same text count as one, but the rows of some games differ in the answer
    # alone.
    if text in texts: text += f"\n[{prompt_id}]"
    texts.add(text)
    yield records.Prompt(id=prompt_id, text=text, answer=str(entry.get("answer") or ""),
                         meta=dict(row=entry))


# ---- A rollout.


async def _started(env, row):
  """(state, the messages of the first turn, None: the rollout has ended)."""
  import verifiers as vf
  row = dict(row, prompt=_first_messages(env, row))
  row.setdefault("example_id", 0)
  state = await env.init_state(row, _no_model()(), model="policy", sampling_args={})
  try:
    # Versions differ in whether it returns the state or changes the one it is given.
    state = await env.setup_state(state) or state
  except vf.Error as e:
    state["error"] = e
  return state, await _next_messages(env, state)


async def _answered(env, state, messages, reply, calls, fault):
  """(state, the messages of the next turn, metrics) after a reply.

  The messages are None and the state has a reward if it was the last.
  """
  from verifiers import types
  message = types.ResponseMessage(
      # A message with a lone surrogate has no JSON.
      content=reply.encode("utf-8", "replace").decode(),
      tool_calls=[types.ToolCall(id=f"call_{len(state['trajectory'])}_{i}", name=name,
                                 arguments=arguments.encode("utf-8", "replace").decode())
                  for i, (name, arguments) in enumerate(calls)] or None,
      finish_reason="tool_calls" if calls else "stop", is_truncated=False)
  client = state["client"]
  response = types.Response(id="policy", created=0, model="policy", message=message)
  await env.add_model_response(state, messages, response)
  if fault and not 0 < env.max_turns <= len(state["trajectory"]):
    completion = state["trajectory"][-1]["completion"]
    return state, [*messages, *completion, types.UserMessage(content=fault)], {}
  after = await _next_messages(env, state)
  if after is None:
    await env.cleanup(state)
    with _counted_errors(env.rubric) as errors:
      await env.rubric.score_rollout(state)
    await env.rubric.cleanup(state)
  # A tool's or a rubric's exceptions become texts and zeros.
  if client.is_asked: raise ValueError(_ONE_MODEL)
  if after is not None: return state, after, {}
  # A rubric gives 0 for a reward function that raises, and logs it.
  metrics = {name: float(value) for name, value in (state["metrics"] or {}).items()}
  return state, None, metrics | dict(reward_errors=float(len(errors)))


async def _next_messages(env, state):
  """The messages that the policy reads next; None: a stop condition ends the rollout."""
  import verifiers as vf
  from verifiers.utils import message_utils
  while not await env.is_completed(state):
    try:
      messages = message_utils.maybe_normalize_messages(
          await env.get_prompt_messages(state), field_name="prompt_messages")
    except vf.Error as e:
      state["error"] = e  # A stop condition reads it, as it reads final_env_response.
      continue
    if state.get("final_env_response") is None: return messages
  return None


def _first_messages(env, row):
  """The messages of a row, as verifiers' Environment makes its column `prompt`."""
  messages = row.get("prompt")
  if messages is None:
    if not isinstance(row.get("question"), str):
      raise ValueError(f"A row needs the column prompt or question; it has {sorted(row)}.")
    messages = [*(env.few_shot or []), dict(role="user", content=row["question"])]
  if isinstance(messages, str): return messages
  has_system = bool(messages) and dict(messages[0]).get("role") == "system"
  if env.system_prompt is None or has_system: return messages
  return [dict(role="system", content=env.system_prompt), *messages]


# ---- The environment.


@dataclasses.dataclass(frozen=True)
class _Loaded:
  """An environment; the objects it holds since it was loaded, and {id of one: its number}."""
  env: Any
  parts: list[Any]
  numbers: dict[int, int]


class _Pickler(pickle.Pickler):

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


class _Unpickler(pickle.Unpickler):

  def __init__(self, file, parts):
    super().__init__(file)
    self._parts = parts

  def persistent_load(self, pid):
    return self._parts[pid]


class _Inline(futures.Executor):
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
def _load(environment, arguments):
  """Loads an environment and checks that a text policy is all it needs."""
  shown = f"environment.environment={environment!r}"
  vf = _package()
  try:
    with adapters.seeded(shown), _signal_handlers():
      env = _made(vf, environment, json.loads(arguments))
  except Exception as e:  # Of the environment's module, which does anything.
    is_client = _is_client(e) or _is_client(e.__cause__)
    raise ValueError(f"{shown}: it cannot be loaded: {'it needs a client: ' * is_client}"
                     f"{adapters.line_of(e)}") from e
  if reason := _refusal(vf, env): raise ValueError(f"{shown}: {reason}.")
  for member in _members(env):
    for rubric in _rubrics(member.rubric):
      if isinstance(getattr(rubric, "executor", None), futures.ProcessPoolExecutor):
        rubric.executor.shutdown(wait=False)
        rubric.executor = _Inline()
  parts = _parts(env)
  return _Loaded(env, parts, {id(part): i for i, part in enumerate(parts)})


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


def _made(vf, environment, arguments):
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
  for rubric in _rubrics(env.rubric):
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


def _rubrics(rubric):
  """A rubric and those it consists of."""
  return [rubric] + [part for child in getattr(rubric, "rubrics", []) for part in _rubrics(child)]


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
def _dataset(environment, arguments, split, seed):
  """(Data set, its rows of this split in the order of the seed)."""
  env = _load(environment, arguments).env
  shown = f"prompts.columns.environment={environment!r}"
  try:
    with adapters.seeded(shown):
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
def _no_model():
  """The class of what a state has in place of a model's client: it knows if it was asked."""
  import verifiers as vf

  class NoModel(vf.Client):

    def __init__(self):  # pylint: disable=super-init-not-called
      self.is_asked = False

    async def get_response(self, *unused_args, **unused_kwargs):
      self.is_asked = True
      raise ValueError(_ONE_MODEL)

  NoModel.__abstractmethods__ = frozenset()  # Nothing calls the others.
  return NoModel


# ---- What surrounds code of others.


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


@contextlib.contextmanager
def _counted_errors(rubric):
  """A list that gets what the loggers of a rubric report."""
  errors = []
  handler = logging.Handler(logging.WARNING)
  handler.emit = errors.append
  loggers = {part.logger.name: part.logger for part in _rubrics(rubric)}.values()
  for logger in loggers: logger.addHandler(handler)
  try:
    yield errors
  finally:
    for logger in loggers: logger.removeHandler(handler)
