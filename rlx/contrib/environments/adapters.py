"""Functions that the adapters of verifiers and openenv share.

They read tool calls from replies, describe tools in prompts, convert messages to text, seed the
global random generators, and format exceptions of third-party code in one line.
"""
import contextlib
import json
import random
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

HELD_OUT = 4  # One in four rows is of the "test" split, if the environment has no evaluation set.
_OPEN, _CLOSE = "<tool_call>", "</tool_call>"


def tool_calls(reply: str, at_most: int) -> tuple[str, list[tuple[str, str]], str]:
  """Reads the tool calls of a reply.

  Example:
    >>> adapters.tool_calls('A: <tool_call>{"name": "f"}</tool_call>', 8)
    ('A:', [('f', '{}')], '')
    >>> adapters.tool_calls('<tool_call>{"name": "add"', 8)
    ('<tool_call>{"name": "add"', [], 'Error: a <tool_call> has no </tool_call>.')

  Returns:
    (the text without the calls, [(name of the tool, its arguments as JSON)], "" or why the calls
    cannot be read; then there are none).
  """
  text: list[str] = []
  calls: list[tuple[str, str]] = []
  start = 0
  while (opened := reply.find(_OPEN, start)) >= 0:
    closed = reply.find(_CLOSE, opened)
    if closed < 0: return reply, [], f"Error: a {_OPEN} has no {_CLOSE}."
    if len(calls) == at_most: return reply, [], f"Error: more than {at_most} tool calls."
    try:
      call = json.loads(reply[opened + len(_OPEN):closed])
    except (ValueError, RecursionError):
      return reply, [], "Error: a tool call is not valid JSON."
    if not isinstance(call, dict) or not isinstance(call.get("name"), str):
      return reply, [], 'Error: a tool call needs {"name": ..., "arguments": {...}}.'
    arguments = call.get("arguments") or {}
    calls.append((call["name"], arguments if isinstance(arguments, str) else json.dumps(arguments)))
    text.append(reply[start:opened])
    start = closed + len(_CLOSE)
  return "".join([*text, reply[start:]]).strip() if calls else reply, calls, ""


def describe_tools(tools: Iterable[tuple[str, str, Any]]) -> str:
  """What a policy reads about tools (name, description, JSON schema) and how to call them."""
  described = [json.dumps(dict(name=name, description=description, parameters=parameters))
               for name, description, parameters in tools]
  return "\n".join([
      "You can call these tools, described by JSON schemas:", *described,
      "A call is a JSON object between tags, and the next message has the result:",
      f'{_OPEN}{{"name": "NAME", "arguments": {{...}}}}{_CLOSE}'])


@contextlib.contextmanager
def seed_generators(text: str) -> Iterator[None]:
  """Seeds the global generators for a while, then gives them back their states."""
  import numpy as np
  python, numpy = random.getstate(), np.random.get_state()
  random.seed(text)
  np.random.seed(zlib.crc32(text.encode()))
  try:
    yield
  finally:
    random.setstate(python)
    np.random.set_state(numpy)


def as_json(key: str, value: Any) -> str:
  """Encodes a value as JSON. Raises a ValueError that names the key if that is impossible."""
  try:
    return json.dumps(value)
  except (TypeError, ValueError) as e:
    raise ValueError(f"{key}: plain JSON values are needed: {e}.") from None


def line_of(e: BaseException) -> str:
  """An exception in one line, with its cause if the message does not contain it."""
  line = f"{type(e).__name__}: {' '.join(str(e).split()):.300}"
  return line if e.__cause__ is None or str(e.__cause__) in line else (
      f"{line} ({line_of(e.__cause__)})")


def text_of(message: Any, environment: str) -> str:
  """The text of a message, its tool calls included."""
  content = message.content or ""
  parts = [content] if isinstance(content, str) else [
      getattr(part, "text", None) if hasattr(part, "text") else dict(part).get("text")
      for part in content]
  if not all(isinstance(part, str) for part in parts):
    raise ValueError(f"{environment}: a message has parts that are no text, such as images.")
  calls = [json.dumps(dict(name=call.name, arguments=_parse_arguments(call.arguments)))
           for call in getattr(message, "tool_calls", None) or []]
  return "\n".join([part for part in parts if part] + [_OPEN + call + _CLOSE for call in calls])


def add_tools(messages: list[dict[str, Any]], tools: Iterable[Any]) -> list[dict[str, Any]]:
  """Adds the descriptions of the tools to the system message, which may be new."""
  text = describe_tools((tool.name, tool.description, tool.parameters) for tool in tools)
  if not messages or messages[0]["role"] != "system":
    return [dict(role="system", content=text), *messages]
  return [dict(messages[0], content=f"{messages[0]['content']}\n\n{text}"), *messages[1:]]


def split_of(row: Mapping[str, Any]) -> str:
  """The split of a row, by a hash of it: one in four is of "test"."""
  own = {key: value for key, value in row.items() if key != "example_id"}  # The row's number.
  digest = zlib.crc32(json.dumps(own, sort_keys=True, default=str).encode())
  return "train" if digest % HELD_OUT else "test"


def question_of(row: Mapping[str, Any]) -> str:
  """The words of the user in a row, for display and for finding rows that are the same."""
  messages = row.get("prompt")
  if isinstance(messages, str): return messages
  texts = [m["content"] for m in messages or [] if m["role"] != "system"
           and isinstance(m["content"], str)]
  return "\n".join(texts) or str(row.get("question", ""))


def _parse_arguments(arguments):
  try:
    return json.loads(arguments)
  except ValueError:
    return arguments
