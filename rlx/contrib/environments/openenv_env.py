"""Environments of OpenEnv (github.com/meta-pytorch/OpenEnv), unmodified, without their servers.

  environment.name="rlx.contrib.environments.openenv_env:OpenEnvEnvironment"
  environment.environment="connect4_env.server.connect4_environment:Connect4Environment"
  environment.field="column"              # the reply is the value of this field of the action

OpenEnv runs an environment in a server, which a client reaches over HTTP or a WebSocket. Here the
server's class, a subclass of openenv.core.env_server.interfaces.Environment, is made and called in
this process. The server adds a container around it: an environment that runs code of the policy,
such as coding_env, then runs it with the rights of the worker, so choose what you run.

A reply becomes an action in one of these ways:
  `to_action` is set        "package.module:function", text -> an Action or a dict of its fields
  an MCPEnvironment         <tool_call>{"name": ..., "arguments": {...}}</tool_call>
  `field` is set, or the action needs one field alone: the text is its value
  otherwise                 a JSON object of the action's fields
A reply that gives no action is answered by an error and the environment does not see it.

Between two steps an environment is a pickle. If it cannot be pickled or is large, `replay` makes
it again for each step and repeats the replies before; it has to be deterministic.
"""
import asyncio
import functools
import importlib
import inspect
import json
import math
import pickle
import random
import typing
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rlx.contrib.environments import adapters
from rlx.core import ranges
from rlx.environments import interface

if TYPE_CHECKING: from rlx.core import records

_UNSHOWN = ("done", "reward", "metadata")  # Fields of all observations.


class OpenEnvEnvironment:
  """One environment class of OpenEnv.

  Args:
    environment: "package.module:Class" of the server's environment, or of a function that
      returns one.
    arguments: keyword arguments of it, plain JSON values.
    action: "package.module:Class" of the actions; "": the annotation of the environment's step.
    field: the field of the action that the reply is the value of; "": see above.
    to_action: "package.module:function" that makes an action of a reply.
    shown: the fields of observations that the policy reads; (): all but done, reward, metadata
      and those without a value. One field is shown as its value, several as a JSON object.
    to_text: "package.module:function" that makes the text of an observation.
    end: what each text of an observation ends with.
    max_turns: replies after which the episode ends.
    replay: whether the environment is made again for each step.
  Raises:
    ImportError: a package is missing.
    ValueError: there is no such class, or it needs what cannot be had here.
  """
  role = "user"

  def __init__(self, *, environment: str, arguments: Mapping[str, Any] | None = None,
               action: str = "", field: str = "", to_action: str = "", to_text: str = "",
               shown: Sequence[str] = (), end: str = "\n", max_turns: ranges.Count = 32,
               replay: bool = False):
    self.environment = environment
    self.arguments = adapters.as_json("environment.arguments", dict(arguments or {}))
    self.action, self.field, self.to_action = action, field, to_action
    self.to_text, self.shown, self.end = to_text, tuple(shown), end
    self.max_turns, self.replay = max_turns, replay
    self._meta: dict[str, Any] = {}
    self._seed, self._saved, self._n_turns = "", b"", 0
    self._replies: list[str] = []
    self._texts: list[str] = []
    _check(environment, self.arguments, action, bool(to_action))

  def reset(self, prompt: "records.Prompt") -> str:
    """Starts an episode: meta["text"], if there is one, and the first observation.

    Args:
      prompt: meta has seed and reset, the keyword arguments of the environment's reset; it gets
        those that it takes.
    Raises:
      ValueError: the environment does not start, or cannot be pickled.
    """
    self._seed, self._meta, self._n_turns = prompt.id, dict(prompt.meta), 0
    self._replies, self._texts = [], []
    env, text = self._begin()
    self._keep(env, text, is_first=True)
    tools = self._tools(env)
    env.close()
    return "".join(part.removesuffix(self.end) + self.end
                   for part in (self._meta.get("text", ""), tools, text) if part)

  def step(self, reply: str) -> interface.Step:
    """Takes an action; the reward is the environment's for this action."""
    self._n_turns += 1
    is_last = self._n_turns >= self.max_turns
    env = self._restore()
    action, error = self._action_of(env, reply)
    if error:
      env.close()
      return interface.Step(error + self.end, reward=0.0 if is_last else None, done=is_last)
    observation = self._take_step(env, action, len(self._replies))
    done = bool(observation.done) or is_last
    reward = observation.reward
    if reward is None and done: reward = 0.0  # An episode without any reward has the outcome 0.
    if reward is not None and not math.isfinite(reward := float(reward)):
      raise ValueError(f"{self._key}: the reward of an observation is {reward}.")
    text = self._text(observation)
    if not done:
      self._replies.append(reply)
      self._keep(env, text)
    env.close()
    return interface.Step(text + self.end, reward=reward, done=done)

  # ---- The environment between two steps.

  @property
  def _key(self):
    return f"environment.environment={self.environment!r}"

  def _begin(self):
    """(A new environment, the text of its first observation)."""
    env = _make_environment(self.environment, self.arguments)
    given = dict(self._meta.get("reset") or {}, episode_id=self._seed)
    if "seed" in self._meta: given.setdefault("seed", self._meta["seed"])
    try:
      with adapters.seed_generators(f"{self._seed}/reset"):
        observation = _call(env, "reset", given)
    except Exception as e:  # Of the environment, which does anything.
      raise ValueError(f"{self._key}: it cannot start: {adapters.line_of(e)}") from e
    if getattr(observation, "done", False):
      raise ValueError(f"{self._key}: prompt {self._seed!r} ends before its first turn.")
    return env, self._text(observation)

  def _take_step(self, env, action, number):
    with adapters.seed_generators(f"{self._seed}/{number}"):
      return _call(env, "step", {}, action)

  def _keep(self, env, text, is_first=False):
    if self.replay:
      self._texts.append(text)
      return
    try:
      self._saved = pickle.dumps(env, protocol=pickle.HIGHEST_PROTOCOL)
      # Some objects can be pickled and then not be read.
      if is_first: pickle.loads(self._saved)
    except Exception as e:  # Whatever an object raises when it is pickled.
      raise ValueError(f"{self._key}: it cannot be pickled ({adapters.line_of(e)}); "
                       "environment.replay=True makes it again for each step.") from e

  def _restore(self):
    if not self.replay: return pickle.loads(self._saved)
    env, text = self._begin()
    texts = [text]
    for number, reply in enumerate(self._replies):
      action, _ = self._action_of(env, reply)
      texts.append(self._text(self._take_step(env, action, number)))
    if texts != self._texts:
      raise ValueError(f"{self._key}: the same replies gave other observations; an environment "
                       "with environment.replay=True has to be deterministic.")
    return env

  # ---- Actions and observations.

  def _action_of(self, env, reply):
    """(The action of a reply, "" or why it gives none)."""
    cls = _action_type(env, self.environment, self.action, bool(self.to_action))
    try:
      if self.to_action:
        fields = _import(self.to_action, "environment.to_action")(reply)
        if cls is None or not isinstance(fields, dict): return fields, ""
      elif _is_mcp(env) and not self.action:
        fields = _tool_call(reply)
      elif field := self.field or _only_field(cls):
        fields = {field: reply}
      else:
        fields = json.loads(reply)
      return cls.model_validate(fields), ""
    except RecursionError:
      return None, "Error: the reply is nested too deeply."
    except ValueError as e:  # That of pydantic and of json, too.
      return None, f"Error: {_first_error(e)}"

  def _text(self, observation):
    if self.to_text: return str(_import(self.to_text, "environment.to_text")(observation))
    try:
      fields = observation.model_dump(mode="json")
    except Exception as e:  # Of serializers of fields, such as those of arrays.
      raise ValueError(f"{self._key}: an observation has no text: {adapters.line_of(e)}; set "
                       "environment.to_text.") from e
    if _is_call(observation): return _result(fields)
    shown = self.shown or [name for name, value in fields.items()
                           if name not in _UNSHOWN and value is not None] or ["metadata"]
    if unknown := sorted(set(shown) - set(fields)):
      raise ValueError(f"environment.shown={unknown[0]!r}: observations have {sorted(fields)}.")
    if len(shown) == 1 and isinstance(fields[shown[0]], str): return fields[shown[0]]
    return json.dumps(fields[shown[0]] if len(shown) == 1 else {n: fields[n] for n in shown})

  def _tools(self, env):
    """The description of an MCP environment's tools."""
    if not _is_mcp(env) or self.to_action or self.action: return ""
    listed = _call(env, "step", {}, _interfaces("mcp_types").ListToolsAction())
    return adapters.describe_tools(
        (tool.name, tool.description, tool.input_schema) for tool in listed.tools)


def prompts(rows, split, *, text: str = "", reset: Mapping[str, Any] | None = None):
  """Seeds for environments that draw their own episodes.

  Args:
    rows: dicts {"seed", "index"}, and the options below if they differ between rows.
    text: what the policy reads before the first observation, such as the rules.
    reset: keyword arguments of the environment's reset.
  """
  from rlx.core import records  # Imports jax.
  if split not in ("train", "test"):
    raise ValueError(f"prompts: openenv has no split {split!r}; train or test.")
  for row in rows:
    prompt_id = f"openenv/{split}/{row['seed']}/{row['index']}"
    # Seeds of the training split are even, the others odd.
    seed = 2 * random.Random(f"openenv/{row['seed']}/{row['index']}").randrange(2**30)
    own = row.get("text", text)
    yield records.Prompt(
        id=prompt_id, text=f"{own}\n[{prompt_id}]".lstrip(),  # Equal texts count as one prompt.
        meta=dict(text=own, seed=seed + (split == "test"),
                  reset=dict(row.get("reset", reset) or {})))


@functools.lru_cache(maxsize=None)
def _check(environment, arguments, action, has_function):
  """Makes an environment once per process, so that one that cannot be made is refused early."""
  env = _make_environment(environment, arguments)
  _action_type(env, environment, action, has_function)
  env.close()


def _make_environment(environment, arguments):
  key, base = f"environment.environment={environment!r}", _interfaces().Environment
  try:
    with adapters.seed_generators(key):
      env = _import(environment, "environment.environment")(**json.loads(arguments))
  except Exception as e:  # Of the environment's module, which does anything.
    raise ValueError(f"{key}: it cannot be made: {adapters.line_of(e)}") from e
  if not isinstance(env, base):
    raise ValueError(f"{key}: a subclass of openenv's Environment is needed, which its server "
                     f"runs, not {type(env).__name__}.")
  return env


def _action_type(env, environment, action, has_function):
  """The class of the actions; None: a function makes them."""
  if action: return _import(action, "environment.action")
  if has_function: return None
  if _is_mcp(env): return _interfaces("mcp_types").CallToolAction
  annotation = typing.get_type_hints(type(env).step).get("action")
  base = _interfaces().Action
  if isinstance(annotation, type) and issubclass(annotation, base) and annotation is not base:
    return annotation
  raise ValueError(f"environment.environment={environment!r}: the annotation of step does not say "
                   'what its actions are; set environment.action="package.module:Class".')


def _interfaces(module="interfaces"):
  try:
    return importlib.import_module(f"openenv.core.env_server.{module}")
  except ImportError as e:
    raise ImportError(f"openenv_env needs the extra openenv: pip install 'rlx[openenv]' "
                      f"({e}).") from None


@functools.lru_cache(maxsize=None)
def _import(path, key):
  module, _, name = path.partition(":")
  if not name: raise ValueError(f"{key}={path!r}: package.module:name is needed.")
  return functools.reduce(getattr, name.split("."), importlib.import_module(module))


def _call(env, name, given, *args):
  """Calls reset or step, or its async form if the environment defines one, with the keyword
  arguments that it takes, as OpenEnv's server does."""
  base = _interfaces().Environment
  has_async = getattr(type(env), f"{name}_async") is not getattr(base, f"{name}_async")
  method = getattr(env, f"{name}_async" if has_async else name)
  parameters = inspect.signature(method).parameters.values()
  if not any(p.kind is p.VAR_KEYWORD for p in parameters):
    given = {key: given[key] for key in given if key in {p.name for p in parameters}}
  result = method(*args, **given)
  return asyncio.run(result) if inspect.iscoroutine(result) else result


def _is_mcp(env):
  return any(cls.__name__ == "MCPEnvironment" for cls in type(env).__mro__)


def _is_call(observation):
  return any(cls.__name__ == "CallToolObservation" for cls in type(observation).__mro__)


def _tool_call(reply):
  _, calls, fault = adapters.tool_calls(reply, 1)
  if fault: raise ValueError(fault.removeprefix("Error: "))
  if not calls: raise ValueError("a <tool_call> is needed.")
  (name, arguments), = calls
  return dict(tool_name=name, arguments=json.loads(arguments))


def _result(fields):
  """The text of a CallToolObservation: the result of the tool, or the error."""
  if fields.get("error"): return f"Error: {fields['error']['message']}"
  result = fields.get("result")
  # A CallToolResult of MCP holds the same value in several forms.
  if isinstance(result, dict) and result.get("data") is not None: result = result["data"]
  return result if isinstance(result, str) else json.dumps(result)


def _only_field(cls):
  """The field of an action that is required, if it is one alone; else ""."""
  required = [name for name, field in cls.model_fields.items() if field.is_required()]
  return required[0] if len(required) == 1 else ""


def _first_error(e):
  """One short line of an error of pydantic or json, without what the reply contains."""
  if hasattr(e, "errors"):
    first = e.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"[:200]
  if isinstance(e, json.JSONDecodeError): return "the reply is not a JSON object."
  return str(e)[:200]
