"""Environments of the package verifiers (github.com/PrimeIntellect-ai/verifiers), unmodified.

  environment.name="rlx.contrib.environments.verifiers_env:VerifiersEnvironment"
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
import contextlib
import io
import json
import logging
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rlx.contrib.environments import _verifiers_loading as loading, adapters
from rlx.core import ranges
from rlx.environments import interface

if TYPE_CHECKING: from rlx.core import records

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
    loading.load(self.environment, self.arguments)
    self._seed = self._row = ""
    self._rollout = b""

  @property
  def _loaded(self):
    return loading.load(self.environment, self.arguments)

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
    with adapters.seed_generators(f"{self._seed}/reset"):
      state, messages = asyncio.run(_start_rollout(env, row))
    if messages is None:
      raise ValueError(f"{self._key}: the rollout of prompt {prompt.id!r} ends before its first "
                       f"turn: {state.get('error') or state.get('stop_condition')!r}.")
    shown = [dict(role=m.role, content=adapters.text_of(m, self._key)) for m in messages]
    if self.tools_in_prompt and state["tool_defs"]:
      shown = adapters.add_tools(shown, state["tool_defs"])
    try:
      self._keep(state, messages)
      self._restore(env)
    except ValueError:
      asyncio.run(env.cleanup(state))  # It may hold a process or a connection.
      raise
    if all(m["role"] == "text" for m in shown): return "\n".join(m["content"] for m in shown)
    return shown

  def step(self, reply: str) -> interface.Step:
    """Answers a reply; the last step has the rubric's reward and all its metrics."""
    env, _ = self._member()
    state, messages = self._restore(env)
    calls: list[tuple[str, str]] = []
    fault = ""
    if hasattr(env, "tool_map"):
      reply, calls, fault = adapters.tool_calls(reply, self.max_tool_calls)
    with adapters.seed_generators(f"{self._seed}/{len(state['trajectory'])}"):
      state, after, info = asyncio.run(_add_reply(env, state, messages, reply, calls, fault))
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
    pickler = loading.Pickler(file, self._loaded.numbers)
    try:
      pickler.dump((state, messages))
    except Exception as e:  # Whatever an object raises when it is pickled.
      raise ValueError(f"{self._key}: the state of a rollout cannot be pickled: "
                       f"{adapters.line_of(e)}") from e
    self._rollout = file.getvalue()

  def _restore(self, env):
    try:
      state, messages = loading.Unpickler(io.BytesIO(self._rollout), self._loaded.parts).load()
    except Exception as e:  # As above.
      raise ValueError(f"{self._key}: the state of a rollout cannot be unpickled: "
                       f"{adapters.line_of(e)}") from e
    dict.__setitem__(state, "client", loading.no_model()())
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
    dataset, order = loading.dataset_of(name, given, split, row["seed"])
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


async def _start_rollout(env, row):
  """(state, the messages of the first turn, None: the rollout has ended)."""
  import verifiers as vf
  row = dict(row, prompt=_first_messages(env, row))
  row.setdefault("example_id", 0)
  state = await env.init_state(row, loading.no_model()(), model="policy", sampling_args={})
  try:
    # Versions differ in whether it returns the state or changes the one it is given.
    state = await env.setup_state(state) or state
  except vf.Error as e:
    state["error"] = e
  return state, await _next_messages(env, state)


async def _add_reply(env, state, messages, reply, calls, fault):
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
    with _collect_errors(env.rubric) as errors:
      await env.rubric.score_rollout(state)
    await env.rubric.cleanup(state)
  # A tool's or a rubric's exceptions become texts and zeros.
  if client.is_asked: raise ValueError(loading.ONE_MODEL)
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


@contextlib.contextmanager
def _collect_errors(rubric):
  """A list that gets what the loggers of a rubric report."""
  errors = []
  handler = logging.Handler(logging.WARNING)
  handler.emit = errors.append
  loggers = {part.logger.name: part.logger for part in loading.rubrics(rubric)}.values()
  for logger in loggers: logger.addHandler(handler)
  try:
    yield errors
  finally:
    for logger in loggers: logger.removeHandler(handler)
