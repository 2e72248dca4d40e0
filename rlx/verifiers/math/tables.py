"""tables.toml: units, phrases, names of variables and functions, and characters."""
import pathlib
import re
import tomllib

TABLES = tomllib.loads(pathlib.Path(__file__).with_name("tables.toml").read_text("utf-8"))


def words(name):
  """Returns the words of a table that is a text."""
  return frozenset(TABLES[name].split())


def phrase(name):
  """Returns the compiled regular expression for a phrase."""
  return re.compile("".join(TABLES["phrases"][name].splitlines()))
