"""Untrusted text of files and paths, made safe for a terminal."""
import logging


_LONGEST = 2000  # Characters of a line.


def line(text: str) -> str:
  """The text as one line: characters that are not printable are escaped, and a long text is cut.

  A terminal would interpret control characters as commands.
  """
  shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
  return shown if len(shown) <= _LONGEST else shown[:_LONGEST] + "..."


def make_one_line(record: logging.LogRecord) -> bool:
  """A logging filter: makes one line of a library's message, which may contain keys of a file."""
  record.msg, record.args = line(record.getMessage()), ()
  return True


def split_pair(word: str) -> tuple[str, str]:
  """(key, value) of a word key=value of a command line."""
  key, equals, value = word.partition("=")
  key = key.lstrip("-").removeprefix("config.")
  if not equals or not key: raise ValueError(f"{word!r}: written key=value, such as steps=20.")
  return key, value
