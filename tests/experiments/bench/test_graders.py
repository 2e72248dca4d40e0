"""Graders side by side: what is counted, what a deadline does, the page and what it is of."""
import json
import os
import time

import numpy as np
import pytest

from experiments.bench import graders

LINES = [json.loads(line) for line in graders.RECORDED.read_text().splitlines()]


def test_the_page_is_of_the_recorded_lines():
  assert graders.PAGE.read_text() == graders.page(LINES)
  assert [(line["grader"], line["set"]) for line in LINES] == [
      (grader, key) for grader in graders.GRADERS for key in graders.SETS]


@pytest.mark.parametrize("key", graders.SETS)
def test_the_recorded_verdicts_are_of_these_answers(key):
  cases = graders.labelled(key)
  grade = graders.GRADERS["rlx"].load()
  for line in (line for line in LINES if line["set"] == key):
    assert line["digest"] == graders.digest(cases) and len(line["verdicts"]) == len(cases)
    assert set(line["packages"]) == set(graders.GRADERS[line["grader"]].packages)
    if line["grader"] == "rlx":
      assert line["verdicts"] == "".join(str(int(grade(case))) for case in cases)


def test_few_labels_are_disputed():
  names = [case["name"] for key in graders.SETS for case in graders.labelled(key)]
  assert len(set(names)) == len(names) and set(graders.disputed()) <= set(names)
  for key in graders.SETS:
    cases = graders.labelled(key)
    assert sum(case["name"] in graders.disputed() for case in cases) <= 0.05 * len(cases)


def test_figures(monkeypatch):
  monkeypatch.setattr(graders, "disputed", lambda: dict(g="why"))
  # Right: accepted, not, late, none. Wrong: rewarded, not, disputed.
  cases = [dict(name=name, right=name in "abcd") for name in "abcdefg"]
  figures = graders.figures(cases, "10t?101")
  np.testing.assert_allclose([figures[k] for k in (
      "wrong_rewarded", "right_accepted", "precision", "unknown", "late")],
      [1 / 2, 1 / 4, 1 / 2, 2 / 6, 1 / 6])
  assert np.isnan(graders.figures(cases[:2], "00")["precision"])


def _obedient():
  def grade(case):
    if case["text"] == "hang": time.sleep(60)
    if case["text"] == "die": os._exit(1)
    return dict(yes=True, no=0, none=None, nan=float("nan"))[case["text"]]
  return grade


def test_a_late_or_dead_grader_has_no_verdict(monkeypatch):
  monkeypatch.setattr(graders, "LIMIT_S", 2.0)
  texts = ["yes", "hang", "no", "die", "yes", "none", "nan", "raise", "yes"]
  verdicts, seconds = graders.run(_obedient, [dict(text=text) for text in texts])
  assert verdicts == "1t0?1???1" and 2.0 <= seconds < 4.0


def test_of_what_is_not_installed_the_recorded_lines_stay(monkeypatch, tmp_path):
  monkeypatch.setattr(graders, "RECORDED", tmp_path / "lines.jsonl")
  monkeypatch.setattr(graders, "PAGE", tmp_path / "page.md")
  graders.PAGE.write_text("before\n<!-- graders -->\nold\n<!-- end graders -->\nafter\n")
  graders.RECORDED.write_text("".join(json.dumps(line) + "\n" for line in LINES))
  monkeypatch.setattr(graders, "record", lambda name: [
      dict(line, cpu_s=1.0) for line in LINES if line["grader"] == name])
  graders.main(["rlx"])
  lines = [json.loads(line) for line in graders.RECORDED.read_text().splitlines()]
  assert lines == [dict(line, cpu_s=1.0) if line["grader"] == "rlx" else line for line in LINES]
  text = graders.PAGE.read_text()
  assert text == graders.page(lines) and "\nold\n" not in text
  assert text.startswith("before\n") and text.endswith("after\n")
