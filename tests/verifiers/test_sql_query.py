"""SQL queries: the parts of Reasoning-SQL by hand, and queries that attack the database."""
import pytest

from rlx.core import records
from rlx.environments.zoo import sql
from rlx.verifiers import errors, sql_query
from tests.verifiers import long_texts

USERS = dict(columns=["id", "name"], rows=[[1, "Ann"], [2, "Bo"], [3, None]])
OTHERS = USERS | dict(rows=[[1, "Al"], [2, "Cy"], [5, "Ed"]])
META = dict(databases=[dict(users=USERS), dict(users=OTHERS)])
PROMPT = records.Prompt("s", "?", "select name from users where id = 2", meta=META)


@pytest.mark.parametrize("query, equal, runs, schema, ngrams", [
    ("select name from users where id = 2", 1, 1, 1, 1),
    # Comments, case and layout are no tokens; the pairs select-name, ..., =-2 are 7.
    ("SELECT name -- users\nFROM users /* id */\nWHERE id = 2;", 1, 1, 1, 1),
    # The same rows in another way: pairs id-<>, <>-1 ... share 5 of 7 + 6 others.
    ("select name from users where id <> 1 and id < 3", 1, 1, 1, 5 / 13),
    # Right on the first database by chance.
    ("select 'Bo'", 0, 1, 0, 0), ("select name from users where name > 'B'", 0, 1, 2 / 3, 4 / 10),
    # Runs, with other columns: id and users of three names; 1 pair select-id, from-users, ...
    ("select id from users", 0, 1, 2 / 3, 1 / 9),
    # It does not run: no such column; no query.
    ("select nam from users where id = 2", 0, 0, 2 / 3, 5 / 9), ("users name id", 0, 0, 1, 0),
    ("", 0, 0, 0, 0), ("explain select name from users where id = 2", 0, 0, 1, 7 / 8)])
def test_parts(query, equal, runs, schema, ngrams):
  parts = [equal, runs, schema, ngrams, 0]
  assert sql_query.items(PROMPT, query) == pytest.approx(parts)
  for fn, part in zip((sql_query.equal, sql_query.runs, sql_query.schema, sql_query.ngrams), parts):
    assert fn(PROMPT, query) == pytest.approx(part)
  assert sql_query.score(PROMPT, f"```sql\n{query}\n```") == pytest.approx(
      (3 * equal + runs + schema + ngrams + 1) / 7)


@pytest.mark.parametrize("reference, query, equal", [
    ("select id from users order by id", "select id from users order by id desc", 0),
    ("select id from users", "select id from users order by id desc", 1),
    ("select id from users", "select id from users union all select 1", 0),
    ("select id from users", "select id, id from users", 0),
    ("select avg(id) from users", "select sum(id) / 3.0 from users", 1),
    ("select 'order by'", "select \"order by\" from (select 'order by' as \"order by\")", 1)])
def test_results(reference, query, equal):
  p = records.Prompt("s", "?", reference, meta=META)
  assert sql_query.equal(p, query) == equal


@pytest.mark.parametrize("text", [
    "It is\n```sql\nselect 1\n```", "```sql\nselect 2\n```\nno:\n```\nselect 1;\n```\n",
    "<think>```sql</think><answer> select 1 ;</answer>", "<sql>select 1</sql>", "  select 1;",
    "```sql\nselect 1\n```\n```"])
def test_where_a_query_stands(text):
  p = records.Prompt("s", "?", "select 1", meta=META)
  assert sql_query.equal(p, text) == 1


def test_weights_and_the_form_of_a_prompt():
  items = [dict(name="runs", weight=3.0), dict(name="format")]
  p = records.Prompt("s", "?", PROMPT.answer, meta=META | dict(
      items=items, format=dict(tags=["think", "answer"])))
  text = "<think>a</think><answer>select 1</answer>"
  assert sql_query.items(p, text) == [1, 1] and sql_query.items(p, text + "!") == [1, 0]
  assert sql_query.score(p, text + "!") == 3 / 4


CHAIN = "with c0 as (select id from users)" + "".join(
    f", c{i} as (select (select id from c{i - 1}) + (select id from c{i - 1}) id)"
    for i in range(1, 45)) + " select id from c44"


@pytest.mark.parametrize("query", [
    "delete from users", "select name from users; delete from users", "pragma query_only=0",
    "attach 'x' as y", "select load_extension('x')", "select readfile('/etc/passwd')",
    "select randomblob(1000000000)", "select zeroblob(1000000)", "select printf('%1000000d', 1)",
    "with recursive c(x) as (select 1 union all select x + 1 from c) select max(x) from c",
    "select count(*) from " + ", ".join(f"users u{i}" for i in range(30)), CHAIN,
    "select " + "(" * 1900 + "1" + ")" * 1900, "select '\0'", "select '\ud800'", "vacuum",
    "select name from sqlite_temp_master", "select 1 union " * 500 + "select 1",
    "values(1), (2", "select '" + "a" * 5000 + "'", "create table a(b)", "begin", "-- select 1"])
def test_hostile_queries_do_not_run(query):
  assert sql_query.items(PROMPT, query)[:2] == [0, 0]
  assert sql_query.equal(PROMPT, PROMPT.answer) == 1


def test_time_is_bounded():
  long_texts.check_times(lambda text: sql_query.items(PROMPT, text))
  long_texts.check_times(lambda text: sql_query.items(PROMPT, text[:sql_query.QUERY]))


@pytest.mark.parametrize("meta, answer, message", [
    ({}, "select 1", "its databases cannot be made"), (dict(databases=[]), "select 1",
    "there is no"),
    (dict(databases=[dict(a=[])]), "select 1", "cannot be made"),
    (dict(databases=[dict(a=dict(columns=["b"], rows=[[1, 2]]))]), "select 1", "cannot be made"),
    (META, "select nam from users", "its reference 'select nam from users' has no result"),
    (META | dict(items=[dict(name="speed")]), "select 1", "'speed'; there are equal, runs")])
def test_what_cannot_be_judged_is_refused(meta, answer, message):
  p = records.Prompt("s", "?", answer, meta=meta)
  with pytest.raises(errors.Unknown, match=message): sql_query.equal(p, "select 1")
  assert sql_query.inspect([PROMPT, p])[0] == (None, None)


def test_names_that_are_keywords():
  table = {"order": dict(columns=["group", "a b"], rows=[[1, 2]])}
  p = records.Prompt("s", "?", 'select "a b" from "order"', meta=dict(databases=[table]))
  assert sql_query.items(p, "select [a b] from `order`") == [1, 1, 1, 1, 0]


def test_made_questions():
  rows = [dict(seed=0, index=i, kinds=("one", "join", "order")) for i in range(30)]
  for p in sql.visible_prompts(rows, "train"):
    assert sql_query.equal(p, sql_query.equal.state(p)) == 1 and "Tables: t(k," in p.text
    assert sql_query.equal(p, "select 1") == 0 and sql_query.inspect([p]) == [(None, None)]
  row = sql.generate_visible(0, 0, items=[dict(name="equal", weight=1.0)])
  assert row["meta"]["items"] == [dict(name="equal", weight=1.0)]
