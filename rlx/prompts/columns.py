"""The columns of rows: questions, chats, accepted answers and tools, as Prompts have them.

A value that is no text is read, or refused with its row and column; Python's text of a list or
dict is never asked or compared with.

  question  a text, or chat messages {"role", "content"} with a text or parts of type text
  answer    a text or number, or a list of them, of which any one is right
  items     a list of what the parts of a verdict are, or its JSON text
  tools     a list of descriptions for the chat template, or their JSON text
  max_tokens  a whole number, the most tokens of a completion
"""
from collections.abc import Mapping, Sequence
import contextlib
import json
import re
from typing import Any

ROLES = ("system", "user", "assistant", "tool")
# Names of ShareGPT, whose messages are {"from", "value"}.
_OTHER_ROLES = dict(human="user", gpt="assistant")


def find(row: Mapping, name: str, where: str, key: str = "") -> Any:
  """The value of a column, or of one inside it, whose name is dotted.

    >>> columns.find({"reward_model": {"ground_truth": "16"}}, "reward_model.ground_truth", "row 0")
    '16'

  Args:
    where: the row, for messages; key: the key that names the column.
  Raises:
    ValueError: there is none; says which there are.
  """
  value: Any = row
  for i, part in enumerate([name] if name in row else name.split(".")):
    if not isinstance(value, Mapping) or part not in value:
      inside = f" in {'.'.join(name.split('.')[:i])!r}" if i else ""
      there = f"has {sorted(value)!s:.300}" if isinstance(value, Mapping) else "is no object"
      raise ValueError(f"{key or 'column'}={name!r}: {where} {there}{inside}.")
    value = value[part]
  return value


def read_question(value: Any, where: str) -> tuple[str, tuple[dict, ...]]:
  """(text, messages) of a question; the text of a chat is that of its last turn of the user.

    >>> columns.read_question([{"role": "user", "content": "2+2?"}], "row 0: column 'prompt'")
    ('2+2?', ({'role': 'user', 'content': '2+2?'},))

  Args:
    where: row and column, for messages.
  Raises:
    ValueError: the value is missing, or neither a text nor chat messages.
  """
  if is_missing(value): raise ValueError(f"{where}: there is no text.")
  if isinstance(value, str):
    if re.match(r"""\s*\[\s*\{\s*['"](role|content|from|value)['"]""", value):
      raise ValueError(f"{where}: {value!r:.60} is the text of a list of chat messages; the list "
                       "itself is needed, as in a .jsonl or .parquet file.")
    return value, ()
  if not is_list(value):
    raise ValueError(f"{where}: {value!r:.60} is neither a text nor a list of chat messages"
                     f"{_inside(value)}.")
  messages = read_messages(value, where)
  asked = [m["content"] for m in messages if m["role"] == "user"]
  if not asked: raise ValueError(f"{where}: no message has the role user.")
  return asked[-1], messages


def read_messages(value: Any, where: str) -> tuple[dict, ...]:
  """The chat messages of a list, of whatever roles. Raises as `read_question`."""
  if not is_list(value) or not len(value):
    raise ValueError(f"{where}: {value!r:.60} is no list of chat messages.")
  return tuple(_read_message(m, f"{where}: message {i}") for i, m in enumerate(value))


def read_answers(value: Any, where: str) -> tuple[str, ...]:
  """The accepted answers of a value, at least one.

    >>> columns.read_answers(["1/2", 0.5], "row 0: column 'answer'")
    ('1/2', '0.5')

  Raises:
    ValueError: there is none, or one is neither a text nor a number.
  """
  values = list(value) if is_list(value) else [value]
  if not values or any(map(is_missing, values)):
    raise ValueError(f"{where}: there is no answer.")
  for x in values:
    if isinstance(x, bool) or not isinstance(x, str | int | float):
      raise ValueError(f"{where}: {x!r:.60} is neither a text nor a number{_inside(x)}.")
  # A table of numbers with a gap has 72.0 for 72.
  return tuple(str(int(x) if isinstance(x, float) and abs(x) < 2**53 and x == int(x) else x)
               for x in values)


def read_tools(value: Any, where: str) -> tuple[dict, ...]:
  """The tools that the chat template describes to the model; () where the value is missing.

  Raises:
    ValueError: it is no list of objects, nor the JSON text of one.
  """
  if is_missing(value): return ()
  try:
    tools = json.loads(value) if isinstance(value, str) else value
  except ValueError:
    tools = None
  if not is_list(tools) or not all(isinstance(tool, Mapping) for tool in tools):
    raise ValueError(f"{where}: {value!r:.60} is no list of tools, which are objects.")
  return tuple(_drop_none(tool) for tool in tools)


def read_items(value: Any) -> Any:
  """What the items of a verdict are, or their JSON text; None where the value is missing.

    >>> columns.read_items('[{"name": "brief", "weight": null}]')
    [{'name': 'brief'}]

  A value that cannot be read is returned as it is; `verifiers.items.find_problem` refuses it.
  """
  if is_missing(value): return None
  if isinstance(value, str):
    with contextlib.suppress(ValueError): value = json.loads(value)
  return _drop_none(value)


def read_limit(value: Any, where: str) -> int | None:
  """The most tokens of a completion; None where the value is missing.

    >>> columns.read_limit("64", "row 0: column 'limit'")
    64

  Raises:
    ValueError: it is no whole number from 1.
  """
  if is_missing(value): return None
  is_text = isinstance(value, str) and re.fullmatch(r"\s*\d{1,9}\s*", value)  # As CSV has it.
  limit = int(value) if is_text or isinstance(value, float) and value.is_integer() else value
  if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
    raise ValueError(f"{where}: {value!r:.60} is no number of tokens, a whole number from 1.")
  return limit


def read_number(value: Any) -> Any:
  """The number that a text states, as .csv and .tsv files have them; None for an empty text.

  Other values, and other texts, are returned as they are.

    >>> columns.read_number("0.9"), columns.read_number("-1"), columns.read_number("yes")
    (0.9, -1, 'yes')
  """
  if not isinstance(value, str): return value
  if not value.strip(): return None
  for kind in (int, float):
    with contextlib.suppress(ValueError): return kind(value)
  return value


def is_missing(value: Any) -> bool:
  """Whether a value is null, NaN or a text without a character that shows."""
  return value is None or value != value or isinstance(value, str) and not value.strip()


def is_list(value: Any) -> bool:
  """Whether a value is a list or the like, and no text."""
  return isinstance(value, Sequence) and not isinstance(value, str | bytes)


def _read_message(message, where):
  if not isinstance(message, Mapping): raise ValueError(f"{where}: {message!r:.60} is no object.")
  message = _drop_none(message)
  if message.keys() >= {"from", "value"}:
    message = dict(role=_OTHER_ROLES.get(message["from"], message["from"]),
                   content=message["value"])
  if message.get("role") not in ROLES:
    raise ValueError(f"{where}: role={message.get('role')!r:.60}; one of {ROLES}, with a content.")
  content = message.get("content", "" if "tool_calls" in message else None)
  parts = content if is_list(content) else [dict(type="text", text=content)]
  for part in parts:
    kind = part.get("type") if isinstance(part, Mapping) else part
    if kind != "text": raise ValueError(f"{where}: a part of type {kind!r:.60}; only text is read.")
    if not isinstance(part.get("text"), str):
      raise ValueError(f"{where}: its content is {part.get('text')!r:.60}; a text is needed.")
  return message | dict(content="".join(part["text"] for part in parts))


def _drop_none(value):
  """Without the null fields that a table puts where other rows have a value."""
  if is_list(value): return [_drop_none(x) for x in value]
  if not isinstance(value, Mapping): return value
  return {k: _drop_none(x) for k, x in value.items() if x is not None}


def _inside(value):
  """What to write for an object of which one value is meant."""
  if not isinstance(value, Mapping): return ""
  return f"; name the column inside with a dot, one of {sorted(map(str, value))}"
