"""Runs untrusted queries on SQLite databases in memory, which can only be read.

An authorizer allows nothing but reading the tables and the schema (sqlite_master) with given
functions, none of which has an effect. SQLite counts steps of its virtual machine, not seconds, and
limits the lengths of queries and values: time and memory are bounded, and every machine gives the
same result.
"""
import itertools
import re
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from typing import Any

# {table: (names of its columns, its rows)}
Tables = Mapping[str, tuple[Sequence[str], Sequence[Sequence[Any]]]]
Error = sqlite3.Error
_ASKED = 1000  # Permissions that the queries of a connection may need.


class Refused(Exception):
  """A query has no result; the text says why: no column, no table, denied, slow, err."""


def connect(tables: Tables, *, functions: Collection[str], limits: Mapping[str, int],
            steps: int) -> sqlite3.Connection:
  """Returns a connection to a new database.

  Args:
    functions: names of SQL functions that queries may call.
    limits: {name of a limit of SQLite without SQLITE_LIMIT_: its value}.
    steps: of the virtual machine, after which a query ends as slow.
  """
  connection = sqlite3.connect(":memory:", isolation_level=None)
  connection.execute("pragma temp_store=memory")  # No sort writes a file.
  for table, (names, rows) in tables.items():
    _create(connection, table, names)
    connection.executemany(f"insert into {_quote(table)} values({','.join('?' * len(names))})",
                           rows)
  connection.execute("pragma query_only=1")
  for name, value in limits.items():
    connection.setlimit(getattr(sqlite3, f"SQLITE_LIMIT_{name}"), value)
  readable, asked = {*tables, "sqlite_master"}, itertools.count()

  def authorize(action, first, second, *_):
    is_allowed = (action == sqlite3.SQLITE_SELECT or
                  action == sqlite3.SQLITE_READ and first in readable or
                  action == sqlite3.SQLITE_FUNCTION and second in functions)
    # Steps do not count compilation, which doubles with each "b as (select * from a, a)".
    is_allowed = is_allowed and next(asked) < _ASKED
    return sqlite3.SQLITE_OK if is_allowed else sqlite3.SQLITE_DENY
  connection.set_authorizer(authorize)
  connection.set_progress_handler(lambda: 1, steps)  # Its first call ends the query.
  return connection


def read(connection: sqlite3.Connection, query: str, most: int) -> list[tuple]:
  """Returns the first `most` rows of a query.

  Raises:
    Refused: it is no query, not allowed, or fails.
  """
  try:
    return connection.execute(query).fetchmany(most)
  except (sqlite3.Error, sqlite3.Warning, UnicodeError) as e:
    raise Refused(_describe(e)) from None


def round_rows(rows: Sequence[tuple]) -> list[tuple]:
  """Rows with numbers to 6 decimals, for a comparison."""
  return [tuple(round(x, 6) if isinstance(x, float) else x for x in row) for row in rows]


def _describe(error):
  text, name = str(error), getattr(error, "sqlite_errorname", "")
  if text.startswith("no such column"): return "no column"
  if text.startswith("no such table"): return "no table"
  if name.startswith("SQLITE_AUTH") or text.startswith("not authorized"): return "denied"
  return "slow" if name == "SQLITE_INTERRUPT" else "err"


def _create(connection, table, names):
  """Creates a table whose names stand without quotes in the schema, if SQLite takes them so."""
  if all(re.fullmatch(r"[A-Za-z_][A-Za-z_0-9]*", name) for name in (table, *names)):
    try:
      connection.execute(f"create table {table}({','.join(names)})")
      return
    except sqlite3.OperationalError:  # A name is a keyword.
      pass
  connection.execute(f"create table {_quote(table)}({','.join(map(_quote, names))})")


def _quote(name): return '"' + name.replace('"', '""') + '"'
