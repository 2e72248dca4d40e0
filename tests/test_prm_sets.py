"""Sets that a PRM is judged on: their two formats, and the marks of a step verifier."""
import json
import types

import numpy as np
import pytest

from configs import quickstart
from rlx.build import prompts as build_prompts
from rlx.core import records
from rlx.io import tokenizer
from rlx.loops import prm_sets
from rlx.verifiers import pool

nan = np.nan
EOS, CUT = (records.FINISH.index(name) for name in ("eos", "length"))


@pytest.fixture(scope="module")
def run():
  c = quickstart.get_config()
  return types.SimpleNamespace(
      texts=build_prompts.texts_of(c, tokenizer.characters("0123456789Mm+-*=;#")),
      pool=pool.Pool(workers=0, timeout_s=1.0))


def _file(tmp_path, *rows):
  path = tmp_path / "set.jsonl"
  path.write_text("".join(json.dumps(r) + "\n" for r in rows))
  return path


def test_a_marked_solution_is_joined_and_knows_where_its_steps_end(run, tmp_path):
  got = prm_sets.read(_file(
      tmp_path, dict(id="g-0", problem="4M7m2=", steps=["7", "2#2"], label=-1),
      dict(id="g-1", problem="1M2=", steps=["1#1"], label=0),
      dict(id="g-2", problem="4M7m2=", steps=["4"], label=0)), run.texts)
  # A separator belongs to the step before it; the last step has none.
  assert got == [prm_sets.Solution("4M7m2=", "7;2#2", 0, ends=[2, 5], label=-1),
                 prm_sets.Solution("1M2=", "1#1", 1, ends=[3], label=0),
                 prm_sets.Solution("4M7m2=", "4", 0, ends=[1], label=0)]


def test_better_and_worse_solutions_one_or_several(run, tmp_path):
  got = prm_sets.read(_file(
      tmp_path, dict(prompt="1M2=", chosen="2#2", rejected="1#1", subset="easy"),
      dict(question="4M7=", chosen=["7#7"], rejected=["4#4", "0#0"])),
      run.texts)
  assert [(s.text, s.is_right, s.problem, s.subset) for s in got] == [
      ("2#2", True, 0, "easy"), ("1#1", False, 0, "easy"), ("7#7", True, 1, None),
      ("4#4", False, 1, None), ("0#0", False, 1, None)]


@pytest.mark.parametrize("row, message", [
    (dict(steps=["7"], label=0), r"row 0 has \['label', 'steps'\]; needed is a text `prompt`"),
    (dict(prompt="1M2=", steps=[], label=-1), "row 0: `steps` is a list of texts"),
    (dict(prompt="1M2=", steps=["7"], label=1), "row 0: label=1; -1 to 0 are allowed"),
    (dict(prompt="1M2=", steps=["7"]), "row 0: label=None; -1 to 0"),
    (dict(prompt="1M2=", steps=["7"], label=True), "row 0: label=True; -1 to 0"),
    (dict(prompt="1M2=", chosen="7"), r"row 0 has \['chosen', 'prompt'\]; needed are `steps`"),
], ids=lambda x: str(x)[:40])
def test_a_row_of_neither_kind_is_one_line(run, tmp_path, row, message):
  with pytest.raises(ValueError, match=message) as e:
    prm_sets.read(_file(tmp_path, row), run.texts)
  assert "set.jsonl" in str(e.value) and "\n" not in str(e.value)


def test_a_file_of_two_kinds_or_none_is_refused(run, tmp_path):
  with pytest.raises(ValueError, match="no file .*/none.jsonl"):
    prm_sets.read(tmp_path / "none.jsonl", run.texts)
  with pytest.raises(ValueError, match="rows of one kind"):
    prm_sets.read(_file(tmp_path, dict(prompt="1M2=", steps=["7"], label=-1),
                        dict(prompt="1M2=", chosen="7", rejected="6")),
                  run.texts)


PROMPT = records.Prompt(id="p", text="4M7m2=", answer="2", verifier="chain.answer")
MARKED = [  # text, verdict, how it ended, the first wrong step
    ("7;2#2", 1, EOS, -1), ("4;2#2", 1, EOS, 0),      # Right all along; right by luck.
    ("7;7#7", 0, EOS, 1), ("7;2#7", 0, EOS, 1),       # A wrong step; a wrong answer.
    ("7#7", 0, EOS, 0),                               # It stops early: the last one errs.
    ("7;2", 0, CUT, nan), ("7;;2#2", 0, EOS, nan),    # Cut off; steps are cut otherwise.
    ("7;2#2", nan, EOS, nan), ("", 0, EOS, nan)]      # Not judged; nothing there.


def test_first_errors_by_the_step_checker(run):
  texts, outcome_B, finish_B, want_B = zip(*MARKED)
  got = prm_sets.first_errors(run, "chain.steps", [PROMPT] * len(texts), texts, outcome_B, finish_B)
  np.testing.assert_array_equal(got, want_B)


@pytest.mark.parametrize("verdicts", [[], 0.0])
def test_a_step_checker_that_fails_marks_nothing(run, verdicts):
  pool_ = types.SimpleNamespace(verify_lists=lambda prompts, texts: [verdicts])
  got = prm_sets.first_errors(types.SimpleNamespace(texts=run.texts, pool=pool_),
                              "chain.steps", [PROMPT], ["7;2#2"], [1], [EOS])
  np.testing.assert_array_equal(got, [nan])


def test_what_was_marked_can_be_read_again(run, tmp_path):
  texts, outcome_B, _, label_B = zip(*MARKED)
  path = tmp_path / "set.jsonl"
  prm_sets.write(path, run, [PROMPT] * len(texts), texts, label_B, outcome_B)
  got = prm_sets.read(path, run.texts)
  assert [(s.text, s.label) for s in got] == [
      (t, label) for t, *_, label in MARKED if not np.isnan(label)]
  rows = [json.loads(line) for line in path.read_text().splitlines()]
  assert rows[1] == dict(id="p/1", problem="4M7m2=", steps=["4", "2#2"], label=0,
                         final_answer_correct=True)


def test_f1_of_steps_and_of_values():
  # By step, below 0 is wrong; by their sum 3, 2 is wrong at 2 and 1, 2, 3 never.
  steps = {"": np.array([[3., -1., nan], [1., 1., 1.]] * 2),
           "no_ref": np.array([[-1., 1., nan], [1., 1., 1.]] * 2)}
  metrics = prm_sets.first_error_f1(steps, np.array([1, -1, 1, nan]), [0, 0, 5, 5])
  assert set(metrics) == {"f1/step", "f1/value", "f1/step/no_ref", "f1/value/no_ref"}
  assert metrics["f1/step"]["solutions"] == 3 and metrics["f1/step"]["prompts"] == 2
  # The half of the second problem has no right solution: no threshold for the first.
  assert np.isnan(metrics["f1/step"]["mean"])
  metrics = prm_sets.first_error_f1(steps, np.array([1, -1, 1, -1]), [0, 0, 5, 5])
  assert metrics["f1/step"]["mean"] == 1 and metrics["f1/value"]["mean"] == 0
  assert metrics["f1/step/no_ref"]["mean"] == 0       # Blames the first step, not the second.
  assert metrics["f1/step/no_ref"]["erroneous"] == 0 < metrics["f1/step/no_ref"]["correct"]
  assert (metrics["f1/step"]["low"], metrics["f1/step"]["high"]) == (1, 1)


def test_preferences_pairwise_and_one_to_many():
  # Above both; above one of two; tied, which is a loss.
  score_B = [3., 1., 2., 2., 1., 5., 1., 1.]
  right_B = [True, False, False] * 2 + [True, False]
  metrics = prm_sets.preferences({"min": score_B}, right_B, [0, 0, 0, 1, 1, 1, 2, 2],
                               ["a", "a", "b"])
  assert metrics["pair/min"]["mean"] == pytest.approx(3 / 5)
  assert metrics["one_to_many/min"]["mean"] == pytest.approx(1 / 3)
  assert metrics["one_to_many/min"]["mrr"] == pytest.approx((1 + 1/2 + 1/2) / 3)
  assert metrics["pair/min/a"]["mean"] == pytest.approx(3 / 4)
  assert metrics["pair/min/b"]["mean"] == 0 and metrics["pair/min/b"]["prompts"] == 1
  assert np.isnan(prm_sets.preferences({"min": []}, [], [])["pair/min"]["mean"])


def test_of_sampled_groups_the_first_right_one_stands_against_the_wrong_ones():
  outcome_PG = np.array([[0., 1., 1.], [1., nan, 0.], [0., 0., 0.]])
  metrics = prm_sets.compare_sampled({"sum": [1., 2., 0., 0., 9., 1., 3., 3., 3.]}, outcome_PG)
  # 2 > 1, the second right one does not count; 0 < 1, the unknown one does not.
  assert metrics["pair/sum"]["mean"] == .5 and metrics["pair/sum"]["prompts"] == 2
