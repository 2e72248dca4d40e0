"""Verdicts of chain, format and gym_task on the completions of verdicts.toml."""
import time

import numpy as np
import pytest

from rlx.core import records, resolve
from rlx.verifiers import _boxed, format as format_lib, gym_task, pool as pool_lib
from tests.verifiers import cases

GROUPS = cases.read("verdicts.toml")["group"]


@pytest.fixture
def gym(): return pytest.importorskip("reasoning_gym")


def prompt(text="?", answer="", meta={}): return records.Prompt("p", text, answer, meta=meta)


@pytest.mark.parametrize("group, text, verdict", [
    (group, text, verdict) for group in GROUPS for text, verdict, *_ in group["cases"]])
def test_verdict(request, group, text, verdict):
  if group["verifier"].startswith("gym"): request.getfixturevalue("gym")
  fields = {k: v for k, v in group.items() if k not in ("verifier", "cases")}
  stated = resolve.lookup("verifiers", group["verifier"])(prompt(**fields), text)
  np.testing.assert_allclose(stated, verdict, rtol=0, atol=1e-9)


def test_a_length_without_a_limit_is_at_most_4096():
  assert [format_lib.length(prompt(), "a" * n) for n in (4096, 4097)] == [1.0, 0.0]


def test_a_box_without_braces_ends_before_a_full_stop():
  assert _boxed.last(r"so \boxed 72.") == "72"


@pytest.mark.parametrize("part", ["<", "<think ", "< /", "<think>", "< ", "</think", " "])
def test_tags_takes_linear_time(part):
  start = time.process_time()
  assert format_lib.tags(prompt(), part * 100_000) == 0.0
  assert format_lib.tags(prompt(), "<" + " " * 100_000 + part) == 0.0
  assert time.process_time() - start < 20


@pytest.mark.usefixtures("gym")
def test_a_task_that_does_not_exist_is_named():
  task = prompt(meta=dict(task="no_such_task", config={}, entry={}))
  with pytest.raises(ValueError, match="no_such_task"): gym_task.last_line(task, "7")


@pytest.fixture
def pool():
  pool = pool_lib.Pool(1, timeout_s=60.0)
  yield pool
  pool.close()


def verify(pool, task, answer, texts, **entry):
  entry = dict(task=task, config={}, entry=dict(answer=answer, metadata={}) | entry)
  task = records.Prompt("p", "?", answer or "", "gym_task.answer", meta=entry)
  return pool.verify([task] * len(texts), texts)


def test_where_a_scorer_raises_on_a_reply_the_verdict_is_0(pool, monkeypatch, tmp_path):
  """A stub in the place of the package, whose scorer fails as those of boxnet and others do."""
  (tmp_path / "reasoning_gym.py").write_text("""
import json
class create_dataset:
  def __init__(self, name, **_): pass
  def score_answer(self, answer, entry): return json.loads(answer)["score"]
""")
  monkeypatch.syspath_prepend(str(tmp_path))
  texts = ['{"score": 1}', "[1]", "", '{"score": NaN}', "}", '{"score": 2}', '{"score": 0.5}']
  for answer in (None, '{"score": 1}'):
    assert verify(pool, "stub", answer, texts).tolist() == [1, 0, 0, 0, 0, 0, 0.5]
  assert pool.failures == dict(exception=8) and not pool.errors
  # The task is at fault where its own answer fails too.
  np.testing.assert_array_equal(verify(pool, "stub", "[1]", texts[:3]), [1, np.nan, 0])


@pytest.mark.usefixtures("gym")
def test_scorers_that_raise(pool):
  state = {"0.5_0.5": ["box_blue", "target_blue"]}
  texts = ["[1]", "null", '{"a": 1}', '[{"Agent[0.5, 0.5]": "move(box_blue, target_blue)"}]', "no"]
  verdicts = verify(pool, "boxnet", None, texts, metadata=dict(initial_state=state))
  assert verdicts.tolist() == [0, 0, 0, 1, 0]
  verdicts = verify(pool, "prime_factorization", "2 × 3", ["nan", "2 × 3"], metadata=dict(
      factors=[2, 3], number=6))
  assert verdicts.tolist() == [0, 1] and pool.failures["exception"] == 4 and not pool.errors


@pytest.mark.usefixtures("gym")
def test_a_board_that_begins_with_a_mark_is_read():
  """The marks that stand around an answer are left out, but not those that belong to it."""
  board = "_ Q _ _\n_ _ _ Q\nQ _ _ _\n_ _ Q _"
  task = prompt(answer=board, meta=dict(task="n_queens", config={}, entry=dict(
      answer=board, metadata=dict(valid_answers=[board], num_queens=4, board_size=4))))
  for text in (f"Answer: {board}", f"**Answer:**\n{board}\n", f"Answer: ```\n{board}\n```"):
    assert gym_task.answer(task, text) == 1, text
  assert gym_task.answer(task, f"Answer: {board.replace('_ Q', 'Q _', 1)}") < 1
