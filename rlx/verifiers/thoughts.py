"""The thoughts of a completion, such as <think>...</think>, which state no answer.

The prompt's template may already have opened the thought. The completion then shows only where
it closes, so `prompt.meta["begun"]` says what the prompt has of the reply (stages/texts.py).
"""
import functools
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING: from rlx.core import records

# The marks that open and close a thought; verifier.thoughts in a config.
MARKS = tuple(f"<{name}> </{name}>" for name in ("think", "thinking", "thought", "reasoning"))


def behind(text: str, prompt: "records.Prompt", marks: Sequence[str] = MARKS) -> str:
  """Returns what stands behind the last thought that closes; "" if a thought is still open.

  A mark in quotes, without spaces between them, is text: `"<think>"`, as code may have it.

  Args:
    marks: in upper or lower case; those of `prompt.meta["thoughts"]` count instead, if it has any.

  Example:
    >>> import types
    >>> prompt = types.SimpleNamespace(meta={})
    >>> thoughts.behind("<think>Is it 3?</think> It is 2.", prompt)
    ' It is 2.'
    >>> thoughts.behind("<think>Is it 2", prompt)
    ''
  """
  meta = getattr(prompt, "meta", {})
  pattern = _marks(tuple(meta.get("thoughts", marks)))
  is_open, start = False, 0
  for match in pattern.finditer(meta.get("begun", "")): is_open = match.lastgroup == "opening"
  for match in pattern.finditer(text):
    if match.lastgroup != "quote": is_open, start = match.lastgroup == "opening", match.end()
  return "" if is_open else text[start:] if start else text


def opening(prompt: "records.Prompt", tag: str) -> str | None:
  """Returns what the prompt has of the reply from the last <tag> on that it leaves open.

  "" if there is none, and None if it is not known what the prompt has of the reply.
  """
  begun = getattr(prompt, "meta", {}).get("begun")
  if begun is None: return None
  start = begun.rfind(f"<{tag}>")
  return begun[start:] if start >= 0 and f"</{tag}>" not in begun[start:] else ""


def close(prompt: "records.Prompt", marks: Sequence[str] = MARKS) -> str:
  """Returns the mark that closes the thought which the prompt leaves open; "" if there is none."""
  pairs = tuple(marks)
  matches = [m for m in _marks(pairs).finditer(prompt.meta.get("begun", ""))
             if m.lastgroup != "quote"]
  if not matches or matches[-1].lastgroup != "opening": return ""
  opened = matches[-1][0].lower()
  return next(pair.split()[1] for pair in pairs if pair.split()[0].lower() == opened)


def are_marks(value: Sequence[str]) -> bool:
  """Tells whether a value is a list of texts "OPENING CLOSING"."""
  return isinstance(value, list | tuple) and all(
      isinstance(pair, str) and len(set(pair.split())) == 2 == len(pair.split()) for pair in value)


@functools.cache
def _marks(pairs):
  """Returns a pattern whose matches have the last group `opening`, `closing` or `quote`."""
  opening_, closing = ("|".join(re.escape(pair.split()[i]) for pair in pairs) for i in (0, 1))
  if not pairs: return re.compile("(?!)")  # It matches nothing.
  other = "[^\\s\"'`]*"
  quote = f"(?<!\\w)[rbfu]{{0,2}}([\"'`]){other}?(?:{opening_}|{closing}){other}(?P<quote>\\1)"
  return re.compile(f"{quote}|(?P<opening>{opening_})|(?P<closing>{closing})", re.IGNORECASE)
