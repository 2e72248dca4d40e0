import dataclasses
import pickle
import resource
import sqlite3
import time
import types

import numpy as np
import pytest

from rlx.environments.zoo import sql
from tests.environments import episode

MIXED = dict(kinds=["one", "join", "order"])
# Of the tables t(k,a,b) and u(k,c,d).
META = dict(columns=dict(t="ab", u="cd"), rows=6, seed=0)


def prompts(n=50, split="train", seed=0, **options):
  return list(sql.prompts((dict(seed=seed, index=i, **options) for i in range(n)), split))


def play(prompt, replies, copies=False, **options):
  return episode.play(sql.Sql(**options), prompt, replies, copies)


def observation(query, **options):
  return play(types.SimpleNamespace(text="", answer="select 1", meta=META), [query],
              **options)[0].observation


@pytest.mark.parametrize("options", [
    dict(), MIXED, dict(tables=1, rows=3, kinds=["order"]), dict(tables=4, rows=10)])
def test_an_expert_is_right(options):
  for prompt in prompts(**options):
    replies = sql.expert(prompt, np.random.default_rng(0))
    steps = play(prompt, replies)
    assert len(steps) == len(replies)
    assert [(s.reward, s.done) for s in steps] == [(None, False)] * len(steps[1:]) + [(1.0, True)]
    texts = prompt.text + "".join(replies + [s.observation for s in steps])
    assert set(texts) <= set(sql.ALPHABET)
    if not options:
      assert len(prompt.text) <= sql.LONGEST["prompt"]
      assert max(map(len, replies)) <= sql.LONGEST["reply"]
    assert max(map(len, replies)) <= 48
    assert max(len(s.observation) for s in steps) <= sql.LONGEST["observation"]


@pytest.mark.parametrize("wrong_rate, low, high", [(0.2, 0.4, 0.8), (1.0, 0, 0)])
@pytest.mark.parametrize("options", [dict(), MIXED])
def test_a_wrong_expert_fails(options, wrong_rate, low, high):
  rng = np.random.default_rng(0)
  rewards = [play(p, sql.expert(p, rng, wrong_rate=wrong_rate))[-1].reward
             for p in prompts(100, **options)]
  assert low <= np.mean(rewards) <= high


@pytest.mark.parametrize("query, expected", [
    ("select k from t", "9/7/3/5/1/0;"), ("SELECT k, a FROM t WHERE k > 5;", "9,8/7,2;"),
    ("select max(d) from t where c>3", "no column;"), ("select max(d) from w", "no table;"),
    ("select k from t where k>9", "none;"), ("select max(k) from t where k>9", "null;"),
    ("select avg(k), 1.5, sum(k) from t", "4.16667,1.5,25;"), ("select 'a;B'", "a?b;"),
    ("select cast(x'c3a9' as text)", "?;"), ("select cast(x'ff' as text)", "err;"),
    ("select * from t", "9,8,0/7,2,9/3,7,7/5,5,8/1,6..;"),
    ("select name from sqlite_master", "t/u;"), ("select\n  max(k)\nfrom t;\n", "9;"),
    ("select '','' from t", "'',''/'',''/'',''/'',''/'',..;"),
    ("select", "err;"), ("selec 1", "err;"), ("", "err;"), ("values(1)", "err;"),
    ("select 1;select 2", "err;"), ("select 1!", "err;"), ("x!select 1", "err;"),
    ("select 1 -- é", "err;"),
    ("select sum(k) from t natural join u", "13;")])
def test_observations(query, expected):
  assert observation(query) == expected


def test_observations_are_cut():
  whole = observation("select * from t", limit=1000)
  assert whole.count("/") == 5 and ".." not in whole
  assert observation("select * from t", limit=len(whole)) == whole
  assert observation("select * from t", limit=len(whole) - 1) == whole[:-4] + "..;"


@pytest.mark.parametrize("query, reference, is_equal", [
    ("select a from t order by a desc", "select a from t", True),  # Any order,
    ("select a from t", "select a from t order by a", False),      # or that of the reference.
    ("select a from t order by -a", "select a from t order by a", False),
    ("select a from t order by 0+a limit 9", "select a from t order by a", True),
    ("select a from t union all select a from t", "select a from t", False),  # A multiset.
    ("select a,a from t", "select a from t", False),
    ("select a from t limit 5", "select a from t", False),
    ("select 1.0*max(a)+1e-9 from t", "select max(a) from t", True),
    ("with x as (select max(a) z from t) select z from x;", "select max(a) from t", True),
    ("select max(a) from t,u", "select max(a) from t", True),
    ("select a from t where k in (select k from u)", "select a from t natural join u", True),
    ("select '9'", "select 9", False), ("select null", "select max(a) from t where a>9", True),
    ("select max(e) from t", "select max(a) from t", False), ("", "select 1", False)])
def test_results_are_compared(query, reference, is_equal):
  assert sql.is_equal(META, query, reference) is is_equal


def test_constants_and_missing_conditions_are_wrong():
  """Of each question: the result that a query saw, and the query without one of its parts."""
  for prompt in prompts(**MIXED):
    rows = sql.run(prompt.meta, prompt.answer, 100)
    constant = " union all ".join(f"select {row[0]}" for row in rows[:4])
    before, rest = prompt.answer.split(" where ")
    _, by, column = rest.partition(" order by ")
    for query in (constant, before + by + column):
      assert play(prompt, [f"!{query}"])[-1].reward == 0.0, query


def test_order_matters_if_the_question_says_so():
  for prompt in prompts(20, kinds=["order"]):
    unordered = prompt.answer.split(" order by ")[0]
    assert play(prompt, [f"!{unordered}"])[-1].reward == 0.0
    assert play(prompt, [f"!{prompt.answer} asc"])[-1].reward == 1.0


def test_queries_over_the_budget_end_the_episode():
  prompt = prompts(1)[0]
  answer = f"!{prompt.answer}"
  steps = play(prompt, ["select 1", "what", "select 2", answer], queries=2)
  assert [(s.observation, s.reward, s.done, s.info) for s in steps] == [
      ("1;", None, False, dict(queries=1)), ("err;", None, False, dict(queries=2)),
      ("none left;", 0.0, True, dict(queries=2))]
  assert play(prompt, ["select 1", "what", f" ! {prompt.answer}\n"], queries=2)[-1].reward == 1.0


def test_questions_depend_on_seed_and_index_alone():
  assert [(p.text, p.answer) for p in prompts(1)] == [
      ("min h if c<3?", "select min(h) from v where c<3")]
  assert prompts() == prompts() and prompts() != prompts(seed=1)


def test_splits_have_no_question_in_common():
  options = dict(tables=1, rows=3)
  train, test = ({p.text for p in prompts(200, split, **options)} for split in ("train", "test"))
  assert len(train) > 100 and len(test) > 100 and not train & test


def test_copies_go_on():
  for prompt in prompts(20):
    replies = ["select 1", *sql.expert(prompt, np.random.default_rng(1), wrong_rate=0.3)]
    assert play(prompt, replies, copies=True) == play(prompt, replies)
  environment = sql.Sql()
  environment.reset(prompt)
  assert len(pickle.dumps(environment)) < 500


DENIED = [
    "select load_extension('x')", "select zeroblob(1000000000)", "select replace('a','a','b')",
    "select printf('%999999999d',1)", "select format('%9d',1)", "select group_concat(k) from t",
    "select char(59)", "select hex(k) from t", "select random()", "select randomblob(9)",
    "select current_timestamp", "select date('now')", "select last_insert_rowid()",
    "select sqlite_version()", "select json('[1]')", "select 'a' like 'a'", "select 'a' glob 'a'",
    "select * from pragma_database_list", "select * from pragma_table_info('t')",
    "select * from sqlite_temp_master",
    "with x as (select 1) delete from t", "with x as (select 1) insert into t values(1,2,3)",
    "with x as (select 1) update t set k=1",
    "with recursive r(x) as (select 1 union all select x+1 from r) select x from r",
    "with r(x) as (values(1) union all select x+1 from r) select max(x) from r"]


@pytest.mark.parametrize("query", DENIED)
def test_only_reads_are_allowed(query):
  assert observation(query) in ("denied;", "err;")  # Of an older SQLite: no such function.
  assert not sql.is_equal(META, query, query)


@pytest.mark.parametrize("query", [
    "attach '{}' as x", "attach ':memory:' as x", "detach main", "vacuum", "vacuum into '{}'",
    "pragma query_only=0", "pragma writable_schema=1", "explain select 1", "analyze", "reindex",
    "begin", "commit", "drop table t", "delete from t", "insert into t values(1,2,3)",
    "create table x(y)", "create temp table x as select 1", "alter table t rename to x",
    "create view x as select 1", "create virtual table x using fts5(y)", "select readfile('{}')",
    "select writefile('{}',1)", "select * from csv('{}')", "select edit('{}')",
    "select fts3_tokenizer('x')", "select * from json_each('[1]')",
    "select * from generate_series(1,9)", "select * from dbstat", "select * from sqlite_dbpage",
    "select * from bytecode('select 1')"])
def test_nothing_else_runs(query, tmp_path):
  file = tmp_path / "x.db"
  for before in ("", "/**/", "with x as (select 1) ", "select 1;"):
    assert observation(before + query.format(file)) in ("err;", "denied;", "no table;")
    assert observation("!" + before + query.format(file)) == ""
  assert not list(tmp_path.iterdir())


def test_the_connection_is_safe_without_the_look_at_the_query():
  """Also where the text begins otherwise, the connection allows neither changes nor files."""
  connection = sql._open(META, 0)
  for query in ("attach ':memory:' as x", "vacuum into 'x.db'", "pragma query_only=0", "begin",
                "delete from t", "create temp table x(y)", "drop table t", "detach main"):
    with pytest.raises(sqlite3.DatabaseError, match="not authorized|authorization denied"):
      connection.execute(query)
  connection.set_authorizer(None)
  with pytest.raises(sqlite3.OperationalError, match="readonly"):
    connection.execute("delete from t")
  with pytest.raises(sqlite3.OperationalError, match="too many attached"):
    connection.execute("attach ':memory:' as x")


def _nested(link, last="select z from {}"):
  """A query of common table expressions, each of which reads the one before several times."""
  text, name = "with a(z)as(select k from t)", "a"
  for new in "bcdefghijklmnop":
    part = f",{new}(z)as({link.format(name)})"
    if len(text + part + last) > sql.QUERY: break
    text, name = text + part, new
  return f"{text} {last.format(name)}"


HEAVY = [
    "select count(*) from " + ",".join(["t"] * 60),
    "select 1 from " + ",".join(["t"] * 60) + " order by 1",
    "select max(a.k||b.k||c.k||d.k||e.k) from t a,t b,t c,t d,t e,t f,t g",
    f"select p.x||a.k||b.k||c.k z from t a,t b,t c,t d,t e,t f,(select'{'x' * 90}'x)p order by 1",
    "select count(distinct a.k||b.k||c.k||d.k||e.k) from t a,t b,t c,t d,t e,t f",
    "select sum(a.k)over(),sum(b.k)over() from t a,t b,t c,t d,t e,t f,t g",
    _nested("select p.z from {0} p,{0} q"),
    _nested("select p.z from {0} p,{0} q", "select count(*) from {0}"),
    _nested("select z from {0} union select z from {0}"),
    _nested("select z from {0} where z in {0}"),
    _nested("select z||z||z||z||z from {0}"), _nested("select z+z+z from {0}"),
    _nested("select z+(select z from {0})from {0}"), _nested("select z from {0} order by z")]


@pytest.mark.parametrize("query", HEAVY, ids=lambda x: x[:40])
def test_heavy_queries_end(query):
  start, memory = time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
  first = observation(query, limit=1000)
  assert len(first) <= 1000 and first == observation(query, limit=1000)
  observation(f"!{query}")
  assert time.process_time() - start < 10
  assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory < 30_000  # kB


def test_steps_and_lengths_are_counted():
  assert observation("select count(*) from t a,t b,t c,t d") == "1296;"
  assert observation("select count(*) from t a,t b,t c,t d,t e,t f") == "slow;"
  long = "select '" + "x" * 180 + "'"
  assert observation(long) == "x" * 27 + "..;" and observation(long + "," + "1" * 20) == "err;"
  # 1000 characters of a value, 20 levels, 16 columns, 4 arguments, 4 parts of a union.
  five = "select z||z||z||z||z from (select z||z||z||z z from (select '{}' z))"
  assert observation(five.format("x" * 49)).endswith("..;")
  assert observation(five.format("x" * 51)) == "err;"
  assert observation("select " + "not " * 30 + "1") == "err;"
  for n, limit in [(16, "select 1{}"), (4, "select max(1{})")]:
    assert observation(limit.format(",1" * (n - 1)), limit=99) != "err;"
    assert observation(limit.format(",1" * n)) == "err;"
  assert observation("select 1" + " union select 1" * 3) == "1;"
  assert observation("select 1" + " union select 1" * 4) == "err;"


HOSTILE = [
    "", " ", "\0", "!", "!!", "select\0 1", "select '\ud800'", "!select '\ud800'", "select １",
    "select 1" * 12_500, "!" * 100_000, "(" * 100_000, "select " + "(" * 190,
    "select " + "-" * 190, "select '", 'select "', "select [", "select /*", "select ?",
    "select :a", "select 1 limit 9e99", "select 9e999-9e999",
    "select 1/0,5%0,1<<999,-9223372036854775808/-1", "select sum(9223372036854775807) from t",
    "select abs(-9223372036854775807-1)", "select round(9e300,2147483647)",
    "select x'00',x'3b0a'", "select raise(abort,'x')", "select '7;\n!select 1'", "!select 1;!{}",
    "{};!{}", "{}!", "x!{}", "!!{}", "!{};{}", "!{} union all {}", "!explain {}", "!{} limit 0",
    "!{},1", "!/*{}*/", "!-- {}", "!'{}'", "!select '{}'", "！{}", "!{}\0", "\u202e!{}", "!{}é",
    "! \n!{}", "no column;", "none left;"]


@pytest.mark.parametrize("reply", HOSTILE, ids=lambda x: ascii(x)[:20])
def test_hostile_replies_are_never_rewarded(reply):
  prompt = prompts(1)[0]
  for before in ([], ["select 1"], ["select 1"] * 3):
    start = time.process_time()
    step = play(prompt, [*before, reply.replace("{}", prompt.answer)])[-1]
    assert time.process_time() - start < 10
    assert not step.reward and step.done == (step.reward is not None)
    assert len(step.observation) <= 30 and set(step.observation) <= set(sql.ALPHABET)
    assert ";" not in step.observation[:-1]


def test_prompts_of_others_are_refused():
  prompt = dataclasses.replace(prompts(1)[0], meta=dict(row=1))
  with pytest.raises(ValueError, match=r"meta\['columns'\]; meta has \['row'\]"):
    sql.Sql().reset(prompt)


@pytest.mark.parametrize("options, message", [
    (dict(tables=0), "tables=0: a whole number from 1 to 4"),
    (dict(tables=1, kinds=["join"]), "join needs 2"),
    (dict(rows=2), "rows=2: a whole number from 3"), (dict(kinds=[]), r"kinds=\[\]"),
    (dict(kinds=["two"]), "kinds=.*one or more of"), (dict(split="dev"), "no split 'dev'")])
def test_wrong_options_are_refused(options, message):
  with pytest.raises(ValueError, match=message): sql.generate(0, 0, **options)
