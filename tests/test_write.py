"""rlx write: rows that a model makes of questions, asked at an endpoint on this machine."""
import json
import re

import pytest

from rlx import cli
from rlx.core import records
from rlx.prompts.datasets import jsonl
from rlx.tools import write, writing
from rlx.verifiers import items as items_lib
from tests.verifiers import endpoint

RUBRIC = [dict(name="a", text="Names the\nriver.", weight=2), dict(name="b", weight=1)]
GRADED = [
    dict(question="Q", answer="R", items=RUBRIC, subset="s"),
    dict(question="Q", completion="bad", verdict=0.2, items=dict(a=1, b=0)),
    dict(question="Q", completion="best", verdict=0.9, items=[
        dict(name="a", value=1), dict(name="b", value=0), dict(name="c", value=None)]),
    dict(question="Q", completion="unknown", verdict=None),
    dict(question="Q", completion="good", verdict="0.8", items=dict(a=1, b=1))]


def written(task, reply, rows=tuple(GRADED), **options):
  """(what `write` returns, the texts of the requests) with a model that replies so."""
  asked = []
  def answer(text):
    asked.append(text)
    return reply.replace("NONCE", endpoint.nonce_of(text))
  with endpoint.serve(answer) as server:
    made = writing.write(writing.TASKS[task](**options), write.read(rows), dict(
        url=server.url, model="m", api_key_env=None, timeout_s=50.0, retries=0, pause_s=0.01,
        temperature=0.0, max_tokens=100, concurrent=4, probability=False, key=""))
  return made, asked


def test_rows_of_a_question_belong_together():
  q, = write.read(GRADED)
  assert (q.text, q.answer, q.more) == ("Q", "R", dict(subset="s"))
  assert [x.text for x in q.completions] == ["best", "good", "bad", "unknown"]
  assert q.completions[0].values == dict(a=1.0, b=0.0)
  assert [q.text for q in write.read([dict(prompt="2"), dict(problem="1"), dict(prompt="2")])] == [
      "2", "1"]


def test_a_rubric_and_what_a_reply_cannot_state():
  reply = ("Item 000000000000 3: of another request\nItem NONCE 10: Says where.\n"
           "- Item NONCE 2: Is short.\nItem NONCE 2: Is short.")
  (row,), (asked,) = written("rubric", reply)
  assert row == dict(question="Q", answer="R", subset="s", items=[
      dict(name="Says where.", text="Says where.", weight=1.0),
      dict(name="Is short.", text="Is short.", weight=0.2)])
  assert endpoint.block(asked, "question") == "Q" and endpoint.block(asked, "reference") == "R"
  (dropped,), _ = written("rubric", "Item 0 3: no nonce")
  assert dropped == records.Dropped("Q", "unknown: it states no item")


def test_items_that_tell_the_two_best_apart():
  (row,), (asked,) = written("contrast", "Item NONCE 5: Gives a reason.\nItem NONCE 5: b\n"
                           "Item NONCE 9: Names the river.")
  assert [x["name"] for x in row["items"]] == ["a", "b", "Gives a reason."]
  assert [endpoint.block(asked, f"answer {x}") for x in "AB"] == ["best", "good"]
  assert endpoint.block(asked, "criteria") == "1. Names the river.\n2. b"
  (dropped,), asked = written("contrast", "", rows=GRADED[:3][::2])
  assert dropped.reason == "fewer than two completions with a score" and not asked


def test_items_that_most_completions_meet_are_split():
  """a is met by 3 of 3 completions, b by 1 of 3."""
  (row,), (asked,) = written("split", "Item NONCE 1: Its name.\nItem NONCE 1: Its spelling.")
  assert endpoint.block(asked, "criteria") == "1. Names the river."
  assert row["items"] == [RUBRIC[1], *(
      dict(name=x, text=x, parent="a", weight=1.0) for x in ("Its name.", "Its spelling."))]
  assert not items_lib.find_problem(  # A judge of rubrics reads them.
      records.Prompt("p", "Q", meta=row), 8, None, items_lib.OF_RUBRICS)
  (dropped,), _ = written("split", "Item NONCE 2: x\nItem NONCE 2: y")
  assert dropped.reason == "unknown: it splits a criterion 2"
  assert written("split", "Item NONCE 1: x")[0][0].reason.endswith("no criterion into two")
  assert written("split", "", share=1.0) == ([dict(
      question="Q", answer="R", subset="s", items=RUBRIC)], [])
  (_,), (asked,) = written("split", "", rows=GRADED[:1])  # Nothing is known of any item.
  assert endpoint.block(asked, "criteria").count("\n") == 1


def test_the_checks_that_a_question_needs():
  (row,), _ = written("choose", "Item NONCE 2: It asks for it.")
  assert row["items"] == RUBRIC[1:]
  assert written("choose", "Item NONCE 3: none")[0][0].reason == "unknown: it chooses a check 3"


@pytest.mark.parametrize("verdicts, expected", [
    ([1, 1, 0], "asked"), ([1, 0], "kept"), ([0, 0], "solved by no completion"), ([], "asked")])
def test_a_question_that_is_mostly_solved_gets_one_instruction_more(verdicts, expected):
  rows = [dict(question="Write.", items=[dict(name="punctuation:no_comma")])] + [
      dict(question="Write.", completion=str(i), verdict=v) for i, v in enumerate(verdicts)]
  reply = 'Text NONCE: Use quotes.\nItem NONCE 1: {"name": "startend:quotation"}'
  (row,), asked = written("harder", reply, rows)
  if expected == "asked":
    assert "keywords:frequency: keyword, frequency, relation\n" in asked[0]
    assert row == dict(question="Write. Use quotes.", answer="none", items=[
        rows[0]["items"][0], dict(name="startend:quotation", weight=1.0)])
  else:
    assert not asked and (row == dict(rows[0], answer="") or row.reason == expected)


@pytest.mark.parametrize("reply, reason", [
    ('Text NONCE: x\nItem NONCE 1: {"name": "startend:quotations"}', "instruction 'startend:quota"),
    ('Text NONCE: x\nItem NONCE 1: {"name": "punctuation:no_comma", "n": 2}', "it takes"),
    ('Item NONCE 1: {"name": "startend:quotation"}', "it does not state one instruction"),
    ("Text NONCE: x\nItem NONCE 1: quotes", "it does not state one instruction")])
def test_an_instruction_that_no_rule_checks(reply, reason):
  (dropped,), _ = written("harder", reply, [dict(question="Write.")])
  assert reason in dropped.reason


def test_a_refined_completion_is_a_demonstration():
  (row,), (asked,) = written("refine", "So:\n[changed NONCE]\nbetter\n[end of changed NONCE]")
  assert endpoint.block(asked, "answer A") == "best" and endpoint.block(asked, "criteria") == "1. b"
  assert row["demonstration"] == "better" and row["items"] == RUBRIC
  p = records.Prompt("p", "Q", "R", meta=dict(demonstration="better"))
  assert jsonl.demonstration(p, None) == "R"
  assert jsonl.demonstration(p, None, column="demonstration") == "better"
  with pytest.raises(ValueError, match="^p: column 'other': None is no text"):
    jsonl.demonstration(p, None, column="other")
  (row,), asked = written("refine", "", [x for x in GRADED if x.get("completion") != "best"])
  assert row["demonstration"] == "good" and not asked
  assert written("refine", "[changed 0]\nx\n[end of changed 0]")[0][0].reason.startswith("unknown")


def writes(text): return f"Item {endpoint.nonce_of(text)} 5: It is short."


def says_nothing(text): return f"I will not, {text[:1]}."


def stops_at_b(text):
  if "\nb\n" in text: raise KeyboardInterrupt
  return writes(text)


def test_rows_survive_an_interruption_and_a_judge_that_says_nothing_ends_the_command(
    tmp_path, monkeypatch):
  monkeypatch.setattr(write, "_AT_ONCE", 1)
  (tmp_path / "rows.jsonl").write_text('{"question": "a"}\n{"question": "b"}\n')
  def run(function):
    call, _ = cli.parse("write", "base", "task=rubric", f"rows={tmp_path}/rows.jsonl",
                        f"to={tmp_path}/made.jsonl",
                        f"verifier.judge.function={__name__}:{function}")
    call()
  with pytest.raises(KeyboardInterrupt): run("stops_at_b")
  assert [json.loads(x)["question"] for x in (tmp_path / "made.jsonl").open()] == ["a"]
  with pytest.raises(RuntimeError, match=r"no row of 1 questions; 1 unknown: it states no item$"):
    run("says_nothing")
  run("writes")
  assert len((tmp_path / "made.jsonl").read_text().splitlines()) == 2


def test_the_command(tmp_path, capsys):
  (tmp_path / "rows.jsonl").write_text("".join(
      json.dumps(dict(question=q)) + "\n" for q in "ab"))
  call, _ = cli.parse("write", "base", "task=rubric", f"rows={tmp_path}/rows.jsonl",
                      f"to={tmp_path}/made.jsonl",
                      "verifier.judge.function=tests.test_write:writes")
  call()
  assert "2 rows of 2 questions" in capsys.readouterr().out
  made = [json.loads(x) for x in (tmp_path / "made.jsonl").read_text().splitlines()]
  assert [(x["question"], x["written_from"], len(x["items"])) for x in made] == [
      ("a", "a", 1), ("b", "b", 1)]
  call()  # Both are there.
  assert "0 rows of 0 questions" in capsys.readouterr().out
  assert len((tmp_path / "made.jsonl").read_text().splitlines()) == 2


@pytest.mark.parametrize("words, message", [
    ([], "task='': one of rubric, contrast, split"),
    (["task=rubric"], "rlx write: rows=FILE and to=FILE are needed."),
    (["task=rubric", "rows=ROWS", "to=TO"], "rlx write: verifier.judge.url and verifier.judge.mod"),
    (["task=rubric", "rows=ROWS", "to=TO", "verifier.judge.url=x", "verifier.judge.model=m"],
     "verifier.judge.url='x': such as http://"),
    (["task=split", "rows=ROWS", "to=TO", "share=2"], "share='2': a number from 0 to 1."),
    (["task=rubric", "rows=BAD", "to=TO", "verifier.judge.function=tests.test_write:writes"],
     "row 0: items='x': a list of dicts with a `name`.")])
def test_refusals(words, message, tmp_path):
  (tmp_path / "ROWS").write_text('{"question": "a"}\n')
  (tmp_path / "BAD").write_text('{"question": "a", "items": "x"}\n')
  words = [re.sub(r"^(rows|to)=", rf"\1=jsonl:{tmp_path}/" if x.startswith("rows") else
                  rf"\1={tmp_path}/", x) for x in words]
  call, _ = cli.parse("write", "base", *words)
  with pytest.raises(ValueError, match="^" + re.escape(message)): call()
