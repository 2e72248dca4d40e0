r"""Compares a SQL query with a reference query on databases that the prompt has.

  meta = {"databases": [{"users": {"columns": ["id", "name"], "rows": [[1, "Ann"], [2, "Bo"]]}}]}
  prompt.answer = "select name from users where id = 2"

`meta["databases"]` may have several: the same tables with other rows, on all of which the results
have to be equal, so that a constant or a condition that fits one by chance is not rewarded (Zhong
et al. 2020, arXiv:2010.02840). The query of a completion is its last block of code (```sql), else
what stands in the last <answer></answer> or <sql></sql>, else the whole answer, behind the
thoughts.

Queries run in memory, read-only, with FUNCTIONS alone, STEPS of SQLite's virtual machine and at
most QUERY characters (_sqlite.py); one that needs more counts as wrong. A reference that does is
refused.

The parts of Reasoning-SQL (Pourreza et al. 2025, arXiv:2503.23157), each in [0, 1]:

  equal    the results are equal: as lists if the reference orders them, else as multisets
  runs     it has a result on the first database (the syntax is right, and its names exist)
  schema   Jaccard index of the names of tables and columns that the query and the reference use
  ngrams   Jaccard index of their pairs of adjacent tokens
  format   there is one block of code, or exactly the blocks of meta["format"]["tags"]

Differs from the paper: no language model judges queries with another result, names are found by
tokens and not by a parser, and the weights are given in `WEIGHTS` or by meta["items"].
"""
import collections
import contextlib
import functools
import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rlx.verifiers import _sqlite, errors, format as format_lib, items as items_lib, thoughts

if TYPE_CHECKING: from rlx.core import records

FUNCTIONS = frozenset(
    "count sum min max avg total abs round coalesce ifnull nullif iif lower upper length substr "
    "substring trim ltrim rtrim instr like glob replace group_concat sign date strftime julianday "
    "row_number rank dense_rank lag lead first_value last_value".split())
# Some milliseconds, or some tenths of a second where functions read long texts.
STEPS = 50_000
QUERY = 4000     # Characters.
# Of the parts in `score`. The paper's are not in its abstract; a right result counts most.
WEIGHTS = dict(equal=3.0, runs=1.0, schema=1.0, ngrams=1.0, format=1.0)

_MOST = 1000  # Rows that are compared.
_LIMITS = dict(LENGTH=1000, SQL_LENGTH=QUERY, COLUMN=64, EXPR_DEPTH=50, COMPOUND_SELECT=8,
               FUNCTION_ARG=8, LIKE_PATTERN_LENGTH=20, ATTACHED=0)
_FENCE = re.compile(r"```[^\n`]*\n?")
_TAGS = (("<answer>", "</answer>"), ("<sql>", "</sql>"))
# Comments, texts and names in quotes that do not close go to the end.
_TOKEN = re.compile(
    r"(?P<comment>--[^\n]*|/\*.*?(?:\*/|\Z))|(?P<text>'(?:[^']|'')*(?:'|\Z))"
    r"|\"(?P<double>(?:[^\"]|\"\")*)(?:\"|\Z)|`(?P<back>[^`]*)(?:`|\Z)"
    r"|\[(?P<square>[^\]]*)(?:\]|\Z)"
    r"|(?P<word>\w+)|<>|<=|>=|!=|==|\|\||\S", re.DOTALL)


def equal(prompt: "records.Prompt", text: str) -> float:
  """1.0 if the query has the result of the reference on every database.

  This is the whole reward of arXiv:2509.21459, in its form of one turn.
  """
  return _parts(prompt, text, ("equal",))["equal"]


def runs(prompt: "records.Prompt", text: str) -> float:
  """1.0 if the query has a result on the first database."""
  return _parts(prompt, text, ("runs",))["runs"]


def schema(prompt: "records.Prompt", text: str) -> float:
  """Jaccard index of the names of tables and columns in the query and in the reference."""
  return _parts(prompt, text, ("schema",))["schema"]


def ngrams(prompt: "records.Prompt", text: str) -> float:
  """Jaccard index of the pairs of adjacent tokens of the query and of the reference."""
  return _parts(prompt, text, ("ngrams",))["ngrams"]


def score(prompt: "records.Prompt", text: str) -> float:
  """The mean of all parts, weighted by WEIGHTS, or by `meta["items"]` if there are any."""
  weights = _read_weights(prompt)
  parts = _parts(prompt, text, tuple(weights))
  return sum(w * parts[name] for name, w in weights.items()) / sum(weights.values())


def items(prompt: "records.Prompt", text: str) -> list[float]:
  """The parts that `meta["items"]` names, in its order; those of WEIGHTS without it."""
  return list(_parts(prompt, text, tuple(_read_weights(prompt))).values())


def inspect(prompts: Sequence["records.Prompt"], unsafe: bool = False) -> list[tuple]:
  """Finds databases that cannot be made and references without a result.

  Returns:
    for each prompt, (why queries cannot be judged, or None; None).
  """
  del unsafe
  return [(_describe(p), None) for p in prompts]


for _fn in (equal, runs, schema, ngrams, score, items):
  vars(_fn).update(is_bounded=True, inspect=inspect,
                   state=lambda prompt: prompt.answer and f"```sql\n{prompt.answer}\n```")


def find_query(text: str) -> str:
  """The query of an answer, see the module's docstring; "" without one.

  Example:
    >>> sql_query.find_query("It is:\\n```sql\\nselect 1;\\n```")
    'select 1'
  """
  fences = list(_FENCE.finditer(text))
  if len(fences) >= 2:
    last = fences[len(fences) // 2 * 2 - 2:][:2]  # The last pair.
    text = text[last[0].end():last[1].start()]
  else:
    for opening, closing in _TAGS:
      end = text.rfind(closing)
      if end >= 0 and (start := text.rfind(opening, 0, end)) >= 0:
        text = text[start + len(opening):end]
        break
  return text.strip().removesuffix(";").strip()


def _parts(prompt, text, names):
  """{name: part} of those that are named."""
  if problem := _describe(prompt): raise errors.Unknown(problem)
  answer = thoughts.behind(text, prompt)
  query = find_query(answer)
  if len(query) > QUERY: query = ""
  make = dict(equal=lambda: _is_equal(prompt, query),
              runs=lambda: _run(prompt.meta["databases"][0], query) is not None,
              schema=lambda: _share_names(prompt, query),
              ngrams=lambda: _share_pairs(prompt, query),
              format=lambda: _has_form(prompt, text, answer))
  return {name: float(make[name]()) for name in names}


def _is_equal(prompt, query):
  arrange = list if _orders(prompt.answer) else collections.Counter
  for tables, gold in zip(prompt.meta["databases"], _find_gold(prompt)):
    rows = _run(tables, query)
    if rows is None or arrange(_sqlite.round_rows(rows)) != arrange(gold): return False
  return True


def _run(tables, query):
  """The rows of a query on one database; None if it has none."""
  words = [token.lower() for kind, token in _tokens(query) if kind == "word"][:1]
  # Not EXPLAIN, which needs no permission.
  if words[:1] not in (["select"], ["with"], ["values"]): return None
  try:
    with contextlib.closing(_connect(tables)) as connection:
      return _sqlite.read(connection, query, _MOST)
  except _sqlite.Refused:
    return None


def _connect(tables):
  return _sqlite.connect(
      {name: (table["columns"], table["rows"]) for name, table in tables.items()},
      functions=FUNCTIONS, limits=_LIMITS, steps=STEPS)


def _find_gold(prompt):
  """The results of the reference on each database, which are the same for all completions."""
  return _run_gold(prompt.answer, json.dumps(prompt.meta["databases"]))


@functools.lru_cache(maxsize=256)
def _run_gold(answer, databases):
  rows = [_run(tables, answer) for tables in json.loads(databases)]
  return None if None in rows else [_sqlite.round_rows(r) for r in rows]


def _tokens(query):
  """(kind, text) of the tokens of a query without comments; names lose their quotes."""
  for match in _TOKEN.finditer(query):
    if match.lastgroup != "comment": yield match.lastgroup or "", match[match.lastgroup or 0]


def _orders(query):
  words = [token.lower() for kind, token in _tokens(query) if kind == "word"]
  return ("order", "by") in zip(words, words[1:])


def _share_names(prompt, query):
  known = {name.lower() for table, content in prompt.meta["databases"][0].items()
           for name in (table, *content["columns"])}
  gold, made = ({token.lower() for kind, token in _tokens(q)
                 if kind in ("word", "double", "back", "square")} & known
                for q in (prompt.answer, query))
  return _jaccard(gold, made)


def _share_pairs(prompt, query):
  gold, made = (set(zip(t, t[1:])) for t in (
      [token if kind == "text" else token.lower() for kind, token in _tokens(q)]
      for q in (prompt.answer, query)))
  return _jaccard(gold, made)


def _jaccard(gold, made): return len(gold & made) / len(gold | made) if gold | made else 1.0


def _has_form(prompt, text, answer):
  if "tags" in prompt.meta.get("format", {}): return format_lib.tags(prompt, text)
  return len(_FENCE.findall(answer)) == 2


def _read_weights(prompt):
  listed = prompt.meta.get("items")
  return {item["name"]: item.get("weight", 1.0) for item in listed} if listed else WEIGHTS


def _describe(prompt):
  """Why queries cannot be judged; None if they can."""
  databases = prompt.meta.get("databases")
  if problem := items_lib.find_unknown(prompt, tuple(WEIGHTS)): return problem
  try:
    if not databases: raise TypeError("there is none")
    gold = _find_gold(prompt)
  except (AttributeError, KeyError, TypeError, ValueError, _sqlite.Error) as e:
    return ("its databases cannot be made: meta['databases'] is a list of {table: {'columns': "
            f"[names], 'rows': [[values]]}}}} ({type(e).__name__}: {e})")
  if gold is not None: return None
  return (f"its reference {prompt.answer!r:.80} has no result: it is no query, names what the "
          f"databases do not have, needs a function that is not in FUNCTIONS, or more than {STEPS} "
          "steps")
