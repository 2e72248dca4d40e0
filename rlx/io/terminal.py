"""What files and paths say, for a terminal."""

_LONGEST = 2000  # Characters of a line.


def line(text):
  """The text as one line of printable characters: others are escaped, a long end is left out.

  Control characters of a file would be commands to the terminal.
  """
  shown = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)
  return shown if len(shown) <= _LONGEST else shown[:_LONGEST] + "..."


def logged(record):
  """A filter of logging: the message of a library, which may repeat a file's keys, as one line."""
  record.msg, record.args = line(record.getMessage()), ()
  return True
