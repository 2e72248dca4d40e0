"""Questions about a small database, answered by a query whose result is compared.

  question      max d if c>3?
  reply         select max(d) from t where c>3      observation  no column;
  reply         select max(d) from u where c>3      observation  7;
  reply         !select max(d) from u where c>3     the episode ends with reward 1.0

The database has tables t, u, ... with a key k and two columns each, whose letters differ from
question to question: which table has a column is found out by queries. All values are digits, and
different within a column. Kinds of questions:

  max d if c>3?         one   count, sum, min or max of a column where a condition holds
  sum d join c>3?       join  the same with columns of two tables, joined by k
  d if c>3 by d?        order a column where a condition holds, in the order of a column

A reply is a query that runs on the database, or the final query after "!", which ends the episode:
reward 1.0 if its result is that of the reference query in `prompt.answer`, else 0.0. Rows are
compared as a multiset, as a list if the question asks for an order. They are compared on DATABASES
databases, of which queries see the first: the same tables with other rows, so that a constant or
a condition that fits one database by chance is not rewarded (Zhong et al. 2020,
arXiv:2010.02840). A query when none is left is not run: it ends the episode with reward 0.0, so an
episode has at most queries + 1 turns.

Observations are rows, as in "1,5/2,0;", "none;" without a row, or why there is none: "no column;",
"no table;", "denied;" (not a read of these tables, or a function that is not in FUNCTIONS),
"slow;" (more than STEPS steps), "err;" (all else).

Queries are untrusted. Databases are in memory and made anew for every query, which can read them
with FUNCTIONS that have no effects and make no long texts (rlx/verifiers/_sqlite.py): time and
memory are bounded, and every machine gives the same answer.
"""
import collections
import contextlib
import functools
import itertools
import random
from typing import TYPE_CHECKING, Annotated

from rlx.core import ranges
from rlx.environments import interface
from rlx.prompts import generated
from rlx.verifiers import _sqlite

if TYPE_CHECKING: from rlx.core import records

# Of prompts, an expert's replies and observations.
ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789 !'()*+,-./<=>?_;"
# The longest texts in characters, with the default options; replies with joins have 48.
LONGEST = dict(prompt=15, reply=33, observation=30)
TABLES = "tuvw"
COLUMNS = "abcdefgh"
AGGREGATES = ("count", "sum", "min", "max")
KINDS = ("one", "join", "order")
FUNCTIONS = {*AGGREGATES, "avg", "total", "abs", "round", "coalesce", "ifnull", "nullif"}
Refused = _sqlite.Refused
DATABASES = 3  # A final query is compared on so many; queries see the first one.
STEPS = 20_000  # Of SQLite's virtual machine: some milliseconds.
QUERY = 200  # Characters of a query. STEPS do not count compilation; this bounds it.

_MOST = 100  # Rows that are compared: more than a reference has, so that one too many is seen.
_LIMITS = dict(LENGTH=1000, SQL_LENGTH=QUERY, COLUMN=16, EXPR_DEPTH=20, COMPOUND_SELECT=4,
               FUNCTION_ARG=4, ATTACHED=0)


class Sql:
  """Runs queries and compares the result of the final one.

  Args:
    queries: queries that an episode has, replies that are none included.
    limit: characters of an observation; what is longer is cut and ends in "..;".
  """
  role = "tool"
  is_bounded = True  # It may run in the trainer's process.

  def __init__(self, *, queries: ranges.Count = 3,
               limit: Annotated[int, ranges.Range(12, 10_000, is_whole=True)] = 30):
    self._queries, self._limit = queries, limit

  def reset(self, prompt: "records.Prompt") -> str:
    """Starts an episode; returns the question.

    Raises:
      ValueError: the prompt is not one of this module.
    """
    if missing := {"columns", "rows", "seed"} - set(prompt.meta):
      raise ValueError(f"sql needs prompts with a database, meta[{min(missing)!r}]; meta has "
                       f"{sorted(prompt.meta)}.")
    self._answer, self._meta, self._used = prompt.answer, prompt.meta, 0
    return prompt.text

  def step(self, reply: str) -> interface.Step:
    """Runs a query, or compares the result of the final one."""
    reply = reply.strip()
    info = dict(queries=float(self._used))
    if reply.startswith("!"):
      is_right = is_equal(self._meta, reply[1:].strip(), self._answer)
      return interface.Step(reward=float(is_right), done=True, info=info)
    if self._used == self._queries:
      return interface.Step("none left;", reward=0.0, done=True, info=info)
    self._used += 1
    return interface.Step(self._observation(reply), info=dict(queries=float(self._used)))

  def _observation(self, query):
    try:
      # As every row is shown with a character or more, these rows are enough.
      rows = run(self._meta, query, self._limit)
    except Refused as e:
      return f"{e};"
    text = "/".join(",".join(map(_cell, row)) for row in rows) or "none"
    return (text if len(text) < self._limit else text[:self._limit - 3] + "..") + ";"


def _cell(value):
  """A value as it is shown. Texts cannot end an observation: they are those of a query."""
  if value is None: return "null"
  if isinstance(value, float): return f"{value:.6g}"
  return "".join(c if c in ALPHABET and c != ";" else "?" for c in str(value).lower()) or "''"


def run(meta: dict, query: str, most: int, database: int = 0) -> list[tuple]:
  """Returns the first `most` rows of a query.

  Args:
    meta: of the prompt: "rows" and "columns", which name tables, and "seed".
    query: any text; line breaks are read as spaces.
    most: number of rows.
    database: which one of those of the question, from 0.
  Raises:
    Refused: it is not a query, or not allowed, or fails.
  """
  query = " ".join(query.split())
  # SQLite takes neither surrogates nor "\0"; and itself refuses what is longer than QUERY.
  if not (query.isascii() and query.isprintable()): raise Refused("err")
  # Not "explain" and the like, which need no permission.
  if not query.lower().startswith(("select", "with")): raise Refused("err")
  with contextlib.closing(_open(meta, database)) as connection:
    return _sqlite.read(connection, query, most)


def _open(meta, database):
  """A connection to a new database that can only be read."""
  return _sqlite.connect(_make_tables(meta, database), functions=FUNCTIONS, limits=_LIMITS,
                         steps=STEPS)


def _make_tables(meta, database):
  rng = random.Random(f"sql/database/{meta['seed']}/{database}")
  tables = {}
  for table, letters in meta["columns"].items():
    columns = [rng.sample(range(10), meta["rows"]) for _ in "k" + letters]
    tables[table] = list("k" + letters), [list(row) for row in zip(*columns)]
  return tables


def is_equal(meta: dict, query: str, reference: str) -> bool:
  """Whether a query has the result of the reference query on every database.

  The order of rows counts if the reference has one. Numbers are compared to 6 decimals.
  """
  arrange = list if " order by " in reference else collections.Counter
  try:
    made, gold = ([arrange(_sqlite.round_rows(run(meta, q, _MOST, i))) for i in range(DATABASES)]
                  for q in (query, reference))
    return made == gold
  except Refused:
    return False


def generate(seed, index, tables=3, rows=6, kinds=("one",), split="train"):
  """Draws the question of (seed, index): {"text", "answer", "meta"}.

  The condition of a question matters for its result, and no constant is right on all databases.
  `meta` has what makes the databases.

  Args:
    tables: number of tables.
    rows: rows of each table.
    kinds: which of KINDS, each equally likely.
    split: "train" or "test".
  """
  rng = generated.start("sql", seed, index, split)
  if not kinds or set(kinds) - set(KINDS):
    raise ValueError(f"prompts.options.kinds={kinds!r}: one or more of {KINDS}.")
  ranges.check("prompts.options.tables", tables, ranges.Range(1, len(TABLES), is_whole=True))
  ranges.check("prompts.options.rows", rows, ranges.Range(3, 10, is_whole=True))
  if tables == 1 and "join" in kinds: raise ValueError("prompts.options.tables=1: a join needs 2.")
  while True:
    letters = "".join(rng.sample(COLUMNS, 2 * tables))
    columns = {table: letters[2 * i:2 * i + 2] for i, table in enumerate(TABLES[:tables])}
    text, answer = _question(rng, columns, rng.choice(kinds))
    meta = dict(columns=columns, rows=rows, seed=rng.getrandbits(32))
    if generated.split_of(text) == split and _is_telling(meta, answer):
      return dict(text=text, answer=answer, meta=meta)


prompts = functools.partial(generated.prompts, "sql", generate)


def generate_visible(seed, index, verifier="sql_query.equal", items=(), split="train", **options):
  """As `generate`, with the schema in the text and the databases in `meta`, for one turn.

  Args:
    verifier: one of verifiers/sql_query.py; items: of `meta`, which weigh its parts.
    options: as of `generate`.
  """
  drawn = generate(seed, index, split=split, **options)
  tables = "; ".join(f"{table}(k,{','.join(letters)})"
                     for table, letters in drawn["meta"]["columns"].items())
  databases = [{table: dict(columns=names, rows=rows) for table, (names, rows) in _make_tables(
      drawn["meta"], i).items()} for i in range(DATABASES)]
  return dict(text=f"Tables: {tables}. Write one SQL query for: {drawn['text']}",
              answer=drawn["answer"], verifier=verifier,
              meta=dict(databases=databases) | (dict(items=[*map(dict, items)]) if items else {}))


visible_prompts = functools.partial(generated.prompts, "sql_visible", generate_visible)


def _question(rng, columns, kind):
  """Draws a question and its query."""
  sources = rng.sample(list(columns), 2 if kind == "join" else 1)
  value, tested = rng.sample("".join(columns[s] for s in sources), 2)
  if kind == "join": value, tested = (rng.choice(columns[s]) for s in sources)
  condition = f"{tested}{rng.choice('<>=')}{rng.randrange(10)}"
  if kind == "order":
    by = rng.choice([value, tested])
    return (f"{value} if {condition} by {by}?",
            f"select {value} from {sources[0]} where {condition} order by {by}")
  aggregate = rng.choice(AGGREGATES)
  return (f"{aggregate} {value} {'join' if kind == 'join' else 'if'} {condition}?",
          f"select {aggregate}({value}) from {_join_tables(sources)} where {condition}")


def _join_tables(sources):
  return " natural join ".join(sorted(sources))


def _is_telling(meta, answer):
  """Whether only a query with all parts of the question is right."""
  seen = run(meta, answer, _MOST)
  if not seen or (None,) in seen: return False
  if all(run(meta, answer, _MOST, i) == seen for i in range(1, DATABASES)): return False
  before, _, rest = answer.partition(" where ")
  condition, by, column = rest.partition(" order by ")
  weaker = [before + by + column] + [f"{before} where {condition}"] * bool(by)
  if any(is_equal(meta, query, answer) for query in weaker): return False
  return _wrong_number(meta, answer, range(10)) is not None


def _change_query(answer, source=None, number=None):
  """The query with other tables, or another number in the condition."""
  what, rest = answer.split(" from ")
  old, condition = rest.split(" where ")
  if number is not None: condition = f"{condition[:2]}{number}{condition[3:]}"
  return f"{what} from {source or old} where {condition}"


def _wrong_number(meta, answer, numbers):
  """The first number with which the condition gives another result."""
  return next((n for n in numbers
               if not is_equal(meta, _change_query(answer, number=n), answer)), None)


def expert(prompt: "records.Prompt", rng, *, wrong_rate: ranges.Share = 0.0) -> list[str]:
  """The replies of an episode: the query on one table after the other until it has a result.

  That query, or the one on the last table, which is not tried, is the final one. Each reply is
  wrong with probability `wrong_rate`: either the final query comes too early, on a table without
  the column, or the condition has a wrong number, from there on.

  Args:
    prompt: Prompt of this module.
    rng: np.random.Generator.
    wrong_rate: share of replies that are wrong.
  """
  meta, answer = prompt.meta, prompt.answer
  size = 2 if " join " in answer else 1
  sources = [_join_tables(s) for s in itertools.combinations(meta["columns"], size)]
  environment, replies, number = Sql(queries=len(sources)), [], None
  environment.reset(prompt)

  def slips():
    nonlocal number
    if rng.random() >= wrong_rate: return False
    if (absent := [s for s in sources if f" from {s} " not in answer]) and rng.random() < 0.5:
      replies.append("!" + _change_query(answer, rng.choice(absent), number))
      return True
    number = _wrong_number(meta, answer, rng.permutation(10))
    return False

  for source in sources[:-1]:
    if slips(): return replies
    replies.append(_change_query(answer, source, number))
    if environment.step(replies[-1]).observation != "no column;": break
  else:
    source = sources[-1]
  if not slips(): replies.append("!" + _change_query(answer, source, number))
  return replies
