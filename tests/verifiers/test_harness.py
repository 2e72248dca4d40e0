"""Recorded answers of the suites' sets: rlx's verdicts beside those of published harnesses.

experiments/bench/harness.py has the answers and how the other graders are run; what they said is in
tests/verifiers/harness/verdicts.jsonl.
"""
import collections

import pytest

from experiments.bench import harness
from tests.verifiers import sandbox

LINES = harness.read_verdicts()
OF = {(line["set"], line["grader"]): line for line in LINES}


def test_every_set_has_300_answers_that_are_those_graded():
  assert list(OF) == [(name, grader) for name, graders in harness.GRADERS.items()
                      for grader in ("rlx", "label", *graders)]
  for (name, _), line in OF.items():
    assert line["digest"] == harness.digest(name), name
    assert len(line["verdicts"]) == harness.N_ANSWERS == len(harness.answers(name))
  for name in harness.GRADERS:
    written = [(a.problem, a.text) for a in harness.answers(name) if a.right is not None]
    assert len(set(written)) >= len(written) - 10, name  # Those that state nothing repeat.
    assert sum(a.right is None for a in harness.answers(name)) == harness.SAMPLED[name]


@pytest.mark.parametrize("name", harness.GRADERS)
def test_rlx_says_what_was_recorded(name, pytestconfig):
  is_code = name in harness.CODE
  if is_code and sandbox.is_left_out(): pytest.skip(f"no sandbox: {sandbox.problem()}")
  step = 15 if is_code and not pytestconfig.getoption("--soak") else 1  # A program takes 0.1 s.
  chosen = range(0, harness.N_ANSWERS, step)
  said = sandbox.at_once(lambda i: harness.rlx(name, [i]), chosen)
  recorded = OF[name, "rlx"]["verdicts"]
  wrong = [i for i, verdict in zip(chosen, said) if verdict != recorded[i]]
  assert not wrong, harness.answers(name)[wrong[0]]


def test_every_difference_is_explained():
  used = collections.Counter()
  for (name, grader), line in OF.items():
    if grader == "rlx": continue
    listed = [i for at in line["differences"].values() for i in at]
    assert sorted(listed) == harness.find_differences(line, OF[name, "rlx"]["verdicts"]), (
        name, grader)
    used.update(line["differences"].keys())
  assert set(used) == set(harness.REASONS)


def test_the_page_is_of_the_recorded_lines():
  assert harness.PAGE.read_text("utf-8") == harness.page(LINES)


def test_a_new_difference_has_no_reason():
  line = OF["gsm8k", "flexible-extract"]
  place = next(i for i, (a, b) in enumerate(zip(OF["gsm8k", "rlx"]["verdicts"], line["verdicts"]))
               if a == b)
  flipped = str(1 - int(line["verdicts"][place]))
  changed = line | dict(verdicts=line["verdicts"][:place] + flipped + line["verdicts"][place + 1:])
  merged = {(new["set"], new["grader"]): new for new in harness.merge(LINES, [changed])}
  assert merged.pop(("gsm8k", "flexible-extract"))["differences"] == (
      line["differences"] | {harness.UNEXPLAINED: [place]})
  assert list(merged.values()) == [old for old in LINES if old != line]
