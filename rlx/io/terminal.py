"""Untrusted text of files and paths, made safe for a terminal."""

import logging

_LONGEST = 2000  # Characters of a line.


def line(text: str) -> str:
  """The text as one line: characters that are not printable are escaped, and a long text is cut.

  A terminal would interpret control characters as commands.
  """
  shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
  return shown if len(shown) <= _LONGEST else shown[:_LONGEST] + "..."


def logged(record: logging.LogRecord) -> bool:
  """A logging filter: makes one line of a library's message, which may contain keys of a file."""
  record.msg, record.args = line(record.getMessage()), ()
  return True
