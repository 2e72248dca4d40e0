"""Task sets of the package verifiers (github.com/PrimeIntellect-ai/verifiers), unmodified.

  environment.name="rlx.contrib.environments.verifiers_taskset:VerifiersTaskset"
  environment.taskset="glossary"      # the id of an installed task set, as verifiers.v1 takes it

These are the environments of verifiers.v1, which version 0.4 has alone and version 0.3 beside those
of verifiers_env.py: a Taskset, and an Env whose `run` has an agent take turns. Here `run` starts
anew for each reply. Its agent gets the replies so far from a list, and the run is left where it
asks for one more. So it has to be deterministic, and a step takes as long as all turns so far.

The agent is a chat alone: no harness, no sandbox, no server. The tools of the task's toolsets are
called in this process, with its rights. Refused are task sets that need a sandbox, a judge, several
agents, images, or hooks at requests and responses.
"""
import asyncio
import contextlib
import functools
import inspect
import json
import math
import types
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rlx.contrib.environments import adapters
from rlx.core import ranges
from rlx.environments import interface

if TYPE_CHECKING: from rlx.core import records

_ALONE = "it needs a sandbox (a runtime of verifiers), which a text policy does not have"


class VerifiersTaskset:
  """One task set of verifiers.v1, with its Env if it has one.

  Args:
    taskset: the id of an installed task set, as verifiers.v1 takes it.
    arguments: fields of its config, plain JSON values.
    tools_in_prompt, max_tool_calls: as of verifiers_env.VerifiersEnvironment.
    max_turns: replies after which the exchange is over, as by an agent's max_turns.
  Raises:
    ImportError: the package is missing or has no task sets.
    ValueError: there is no such task set, or it needs what a text policy does not have.
  """
  role = "user"

  def __init__(self, *, taskset: str, arguments: Mapping[str, Any] | None = None,
               tools_in_prompt: bool = True, max_tool_calls: ranges.Count = 8,
               max_turns: ranges.Count = 32):
    self.taskset = taskset
    self.arguments = adapters.as_json("environment.arguments", dict(arguments or {}))
    self.tools_in_prompt, self.max_tool_calls = tools_in_prompt, max_tool_calls
    self.max_turns = max_turns
    _load_taskset(self.taskset, self.arguments)
    self._seed = self._row = ""
    self._replies: list[str] = []
    self._shown: list[str] = []

  def reset(self, prompt: "records.Prompt") -> list[dict[str, Any]]:
    """Starts the task whose data are prompt.meta["row"].

    Raises:
      ValueError: the task needs a sandbox, a judge or images, or ends before its first turn.
    """
    self._seed, self._row = prompt.id, adapters.as_json("the row", dict(prompt.meta["row"]))
    self._replies, self._shown = [], []
    try:
      exchange = self._play()
    except ValueError:
      raise
    except Exception as e:  # Of the Env, which does anything.
      raise ValueError(f"{self._key}: prompt {prompt.id!r} cannot start: "
                       f"{adapters.line_of(e)}") from e
    if exchange.is_over:
      raise ValueError(f"{self._key}: prompt {prompt.id!r} ends before its first turn.")
    self._shown = self._texts(exchange)
    messages = [dict(role=m.role, content=text) for m, text in zip(exchange.messages, self._shown)]
    return adapters.add_tools(messages, exchange.tools.values()) if (
        self.tools_in_prompt and exchange.tools) else messages

  def step(self, reply: str) -> interface.Step:
    """Answers a reply; the last step has the sum of the task's rewards, and all metrics."""
    # A message with a lone surrogate has no JSON.
    self._replies.append(reply.encode("utf-8", "replace").decode())
    exchange = self._play()
    if exchange.is_over:
      reward = float(exchange.trace.reward)
      if not math.isfinite(reward): raise ValueError(f"{self._key}: the reward is {reward}.")
      return interface.Step(reward=reward, done=True, info=exchange.info)
    shown = self._texts(exchange)
    n_before = len(self._shown)
    if shown[:n_before] != self._shown:
      raise ValueError(f"{self._key}: the same replies gave other messages; it has to be "
                       "deterministic.")
    self._shown = shown
    return interface.Step("\n".join(shown[n_before + 1:]))  # Without the reply.

  @property
  def _key(self):
    return f"environment.taskset={self.taskset!r}"

  def _texts(self, exchange):
    return [adapters.text_of(message, self._key) for message in exchange.messages]

  def _play(self):
    """The exchange after all replies so far."""
    env, shared = _load_taskset(self.taskset, self.arguments)
    exchange = _Exchange(self._key, self._replies, self.max_turns, self.max_tool_calls, shared)
    with adapters.seed_generators(self._seed): asyncio.run(exchange.play(env,
                                                                         json.loads(self._row)))
    return exchange


def prompts(rows, split, *, taskset: str = "", arguments: Mapping[str, Any] | None = None):
  """The tasks of a task set, for VerifiersTaskset, in the order of its `load`.

  A task set has no splits: a hash of a task's data decides which one it is in.

  Args:
    rows: dicts {"index"}, and the options below if they differ between rows: the task `index` of
      the split. It ends with the first index above the last.
    taskset: as of VerifiersTaskset.
    arguments: as of VerifiersTaskset.
  Raises:
    ValueError: the tasks cannot be loaded, for example because they would be downloaded.
  """
  from rlx.core import records  # Imports jax.
  if split not in ("train", "test"):
    raise ValueError(f"prompts: verifiers has no split {split!r}; train or test.")
  streams: dict[Any, Any] = {}
  texts: set[str] = set()
  for row in rows:
    name = row.get("taskset", taskset)
    given = adapters.as_json("prompts.columns.arguments",
                             dict(row.get("arguments", arguments) or {}))
    if (name, given) not in streams: streams[name, given] = ([], _data_of_tasks(name, given, split))
    drawn, stream = streams[name, given]
    while len(drawn) <= row["index"]:
      if (data := next(stream, None)) is None: return
      drawn.append(data)
    data = drawn[row["index"]]
    prompt_id = f"verifiers/{name}/{split}/{row['index']}"
    text = adapters.question_of(data)
    if text in texts or not text:  # Equal texts count as one prompt.
      text = f"{text}\n[{prompt_id}]".lstrip()
    texts.add(text)
    yield records.Prompt(id=prompt_id, text=text, meta=dict(row=data))


# ---- An exchange.


class _Paused(BaseException):
  """The agent is asked for a reply that there is not yet. Not an Exception, which the code of an
  Env may catch."""


class _NoRuntime:
  """Stands for a sandbox that there is none of."""

  def __getattr__(self, name):
    if name.startswith("__"): raise AttributeError(name)
    raise ValueError(f"{_ALONE}: {name}.")


class _Exchange:
  """Plays an Env with an agent whose replies are given.

  Attributes:
    is_over: whether `run` ended and the trace has been scored.
    trace: of verifiers.
    tools: {name: verifiers.v1.Tool}.
    info: metrics and rewards by name.
  """

  def __init__(self, key, replies, max_turns, max_tool_calls, shared):
    self._key, self._replies = key, iter(replies)
    self._max_turns, self._max_tool_calls = max_turns, max_tool_calls
    self._shared = shared  # Toolsets of the task set.
    self._functions = {}  # {name of a tool: function}
    self._is_paused, self._fault = False, ""
    self.is_over, self.trace, self.tools, self.info = False, None, {}, {}

  @property
  def messages(self):
    return [node.message for node in self.trace.nodes]

  async def play(self, env, row):
    """Runs `env` on the task with these data.

    Raises:
      ValueError: the task needs what a text policy does not have.
    """
    kind = type(env.taskset).task_type()
    try:
      data = kind.data_type().model_validate(row)
    except ValueError as e:
      raise ValueError(f"{self._key}: the row is none of a task: {adapters.line_of(e)}") from e
    task = kind(data, getattr(env.taskset.config, "task", None))
    if reason := _find_task_problem(task): raise ValueError(f"{self._key}: {reason}.")
    agents = types.SimpleNamespace(**{name: self for name in _seats(env)})
    try:
      await env.setup(agents)
      await env.run(task, agents)
    except (_Paused, BaseExceptionGroup):
      if not self._is_paused: raise
    if self._fault: raise ValueError(f"{self._key}: {self._fault}.")
    if self.trace is None: raise ValueError(f"{self._key}: it runs no agent.")
    self.is_over = not self._is_paused
    if self.is_over:
      rewards = {name: r.score for name, r in self.trace.rewards.items() if r is not None}
      metrics = {name: v for name, v in self.trace.metrics.items() if v is not None}
      self.info = {name: float(v) for name, v in (rewards | metrics | self.info).items()}

  # What an Env calls: its agent and the interaction with it are this object.

  async def run(self, task, **unused):
    """The agent does a task alone."""
    async with self.interaction(task): await self._segment([])
    return self.trace

  @contextlib.asynccontextmanager
  async def interaction(self, task, **unused):
    """The Env answers the agent's turns."""
    if self.trace is not None: self._pause("it runs its agent several times in an episode")
    await self._open(task)
    yield self
    self.trace.stop("user_closed")
    await self._finish(task)

  async def turn(self, message=None):
    """The agent's answer to a message, or to the prompt of the task."""
    from verifiers.v1 import types as v1
    if message is None: return await self._segment([])
    if isinstance(message, str): return await self._segment([v1.UserMessage(content=message)])
    return await self._segment([v1.UserMessage(content=m["content"]) if isinstance(m, dict) else m
                                for m in message])

  async def _open(self, task):
    import verifiers.v1 as vf
    from verifiers.v1 import state, trace
    from verifiers.v1 import types as v1
    from verifiers.v1.utils import decorators
    self._task = task
    data = task.data
    self.trace = trace.Trace(
        task=trace.TraceTask(type=type(task).__name__, data=data),
        state=state.state_cls(type(task))(),
        agent=trace.AgentInfo(config=vf.AgentConfig(model="policy")))
    for toolset in [*self._shared, *type(task).toolsets(task.config)]:
      if toolset not in self._shared:
        await toolset.setup()
        await toolset.setup_task(data)
      self._add_tools(toolset)
    if data.system_prompt is not None: self._add(v1.SystemMessage(content=data.system_prompt))
    opening = [v1.UserMessage(content=data.prompt)] if isinstance(data.prompt, str) else data.prompt
    for message in opening or []: self._add(message)
    await decorators.invoke(task.setup, dict(trace=self.trace, runtime=_NoRuntime()))

  def _add(self, message, is_drawn=False):
    from verifiers.v1 import graph
    nodes = self.trace.nodes
    nodes.append(graph.MessageNode(message=message, sampled=is_drawn,
                                   parent=len(nodes) - 1 if nodes else None))

  async def _segment(self, messages):
    """The agent's replies and the results of tools until a reply without a tool call."""
    from verifiers.v1 import agent
    from verifiers.v1 import types as v1
    for message in messages: self._add(message)
    start = len(self.trace.nodes)
    while not await self._is_stopped():
      reply = next(self._replies, None)
      if reply is None: self._pause()
      calls, fault, text = [], "", reply
      if self._functions: text, calls, fault = adapters.tool_calls(reply, self._max_tool_calls)
      n = self.trace.num_turns
      made = [v1.ToolCall(id=f"call_{n}_{i}", name=name, arguments=arguments)
              for i, (name, arguments) in enumerate(calls)]
      self._add(v1.AssistantMessage(content=text, tool_calls=made or None), is_drawn=True)
      if fault: self._add(v1.UserMessage(content=fault))
      for call in made:
        self._add(v1.ToolMessage(tool_call_id=call.id, content=await self._result(call)))
      if not made and not fault: break
    new = self.trace.nodes[start:]
    return agent.Segment(messages=[node.message for node in new if node.sampled or isinstance(
        node.message, v1.ToolMessage)], terminated=not any(node.sampled for node in new))

  async def _is_stopped(self):
    if self.trace.is_completed: return True
    if self.trace.num_turns >= self._max_turns: self.trace.stop("max_turns")
    for hook in self._task.hooks("stop"):
      if await _await_result(hook(self.trace)): self.trace.stop(hook.__name__)
    return self.trace.is_completed

  def _pause(self, fault=""):
    self._is_paused, self._fault = True, self._fault or fault
    raise _Paused

  def _add_tools(self, toolset):
    import pydantic
    from verifiers.v1 import types as v1
    from verifiers.v1.utils import decorators
    for function in decorators.discover_decorated(toolset, "tool"):
      name = getattr(function, "tool_name", None) or function.__name__
      name = f"{toolset.server_name}_{name}" if toolset.server_name else name
      self._functions[name] = pydantic.validate_call(function)
      self.tools[name] = v1.Tool(name=name, description=(function.__doc__ or "").strip(),
                                 parameters=pydantic.TypeAdapter(function).json_schema())

  async def _result(self, call):
    """What a tool answers, as text; its errors, too."""
    import pydantic_core
    from verifiers.v1.mcp import server
    if call.name not in self._functions:
      return f"Error: there is no tool {call.name!r:.40}; there are {sorted(self._functions)}."
    token = server._call_state.set(self.trace.state)  # What a toolset's `state` is during a call.
    try:
      result = await _await_result(self._functions[call.name](**json.loads(call.arguments)))
    except Exception as e:  # Of the tool, or of arguments that are none of its.
      return f"Error: {adapters.line_of(e)}"
    finally:
      server._call_state.reset(token)
    parts = result if isinstance(result, list) else [result]
    if any(getattr(part, "type", "text") not in ("text", None) for part in parts):
      raise ValueError(f"{self._key}: the tool {call.name} gives what is no text, such as images.")
    if parts and all(hasattr(part, "text") for part in parts):  # Of MCP.
      return "\n".join(part.text for part in parts)
    return result if isinstance(result, str) else pydantic_core.to_json(
        result, fallback=str).decode()

  async def _finish(self, task):
    from verifiers.v1.utils import decorators
    await decorators.invoke(task.finalize, dict(trace=self.trace, runtime=_NoRuntime()))
    self.trace.ok = True
    try:
      await task.score(self.trace, None)
    except Exception:  # Of a reward function, which does anything with the reply.
      self.trace.rewards.clear()
      self.info["reward_errors"] = 1.0


async def _await_result(result):
  return await result if inspect.isawaitable(result) else result


def _seats(env):
  """Names of an Env's agents, which are fields of its config."""
  import verifiers.v1 as vf
  return [name for name in type(env.config).model_fields
          if isinstance(getattr(env.config, name), vf.AgentConfig)]


@functools.lru_cache(maxsize=None)
def _load_taskset(taskset, arguments):
  """(The Env of a task set, its toolsets, set up)."""
  shown = f"environment.taskset={taskset!r}"
  try:
    from verifiers.v1.utils import loaders
  except ImportError as e:
    raise ImportError("verifiers_taskset needs verifiers>=0.3, the extra verifiers: pip install "
                      f"'rlx[verifiers]' ({e}).") from None
  try:
    with adapters.seed_generators(shown):
      config = loaders.resolve_env_config(dict(taskset=dict(json.loads(arguments), id=taskset)))
      env = loaders.load_environment(config)
      shared = type(env.taskset).toolsets(env.taskset.config)
      reason = _find_env_problem(env) or _find_tools_problem(shared)
      for toolset in shared if not reason else (): asyncio.run(toolset.setup())
  except Exception as e:  # Of the task set's module, which does anything.
    raise ValueError(f"{shown}: it cannot be loaded: {adapters.line_of(e)}") from e
  if reason: raise ValueError(f"{shown}: {reason}.")
  return env, shared


def _find_env_problem(env):
  """Why a text policy cannot play an Env; "" if it can."""
  import verifiers.v1 as vf
  own = [name for name in ("finalize", "start", "stop")
         if getattr(type(env), name) is not getattr(vf.Env, name)]
  if len(_seats(env)) != 1: return f"it has several agents, {_seats(env)}"
  if own: return f"its Env has a {own[0]} of its own, which is for services or several agents"
  return _ALONE if type(env.taskset).task_type().NEEDS_CONTAINER else ""


def _find_task_problem(task):
  """Why a text policy cannot do a task; "" if it can."""
  from verifiers.v1.utils import decorators
  if task.config.judges: return "its task needs a judge model"
  if decorators.discover_decorated(task, "intercept"): return "its task rewrites messages"
  hooks = [*task.hooks("reward"), *task.hooks("metric"), *task.hooks("stop")]
  for hook in hooks:
    names = inspect.signature(hook).parameters
    if "runtime" in names and names["runtime"].default is inspect.Parameter.empty: return _ALONE
  if any(list(inspect.signature(hook).parameters) != ["trace"] for hook in task.hooks("stop")):
    return "its task stops at requests or responses"
  return _find_tools_problem(type(task).toolsets(task.config))


def _find_tools_problem(toolsets):
  import verifiers.v1 as vf
  for toolset in toolsets:
    name = type(toolset).__name__
    if getattr(toolset.config, "url", None): return f"its tools are a server, {toolset.config.url}"
    if type(toolset).register is not vf.Toolset.register: return f"{name} registers its own tools"
  return ""


def _data_of_tasks(taskset, arguments, split):
  """The data of a task set's tasks that belong to a split."""
  env, _ = _load_taskset(taskset, arguments)
  try:
    with adapters.seed_generators(taskset): stream = iter(env.taskset)
    while True:
      with adapters.seed_generators(taskset): task = next(stream, None)
      if task is None: return
      data = task.data.model_dump(mode="json")
      own = {key: value for key, value in data.items() if key != "idx"}
      if adapters.split_of(own) == split: yield data
  except Exception as e:  # Of datasets, of the hub, of HTTP.
    raise ValueError(f"environment.taskset={taskset!r}: its tasks cannot be loaded: "
                     f"{adapters.line_of(e)}") from e
