"""tables.toml: units, names of variables and functions, characters and their LaTeX commands."""
import pathlib
import tomllib

TABLES = tomllib.loads(pathlib.Path(__file__).with_name("tables.toml").read_text("utf-8"))


def words(name):
  """The words of a table that is a text."""
  return frozenset(TABLES[name].split())
