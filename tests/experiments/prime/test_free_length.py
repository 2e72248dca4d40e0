"""Tasks of free length: hand-worked questions, drawn traces, and the chances by enumeration."""
import collections
import csv
import pathlib
import re

import numpy as np
import pytest

from experiments.prime import free_length, length, study, verdict
from rlx.core import options, records
from rlx.grids import tables
from rlx.verifiers import steps

# A branch 0 -> 3 -> 7 -> 2, 2 its own successor; two more branches.
CHASE = "03" "37" "72" "22" "11" "41" "54" "66" "86" "98" "|0="
S = free_length.SLIP


def prompt(text, limit=9):
  return records.Prompt(id="0", text=text, answer=free_length.parse(text).goal, verifier="",
                        meta=dict(limit=limit))


@pytest.mark.parametrize("text, completion, verdict", [
    ("c>f=", "d;e;f#f", 1), ("c>f=", "d;c;d;e;f;g;f#f", 1), ("c>f=", "d;e#e", 0),
    ("c>f=", "d;f#f", 0), ("c>f=", "d;e;f#e", 0), ("c>f=", "d;e;f", 0), ("c>f=", "f#f", 0),
    ("a>c=", "b;a;b;c#c", 1), ("a>c=", "", 0), ("a>c=", "b;;c#c", 0),
    (CHASE, "3;7;2#2", 1), (CHASE, "3;7;2;2;2#2", 1), (CHASE, "2#2", 1), (CHASE, "8;7;2#2", 1),
    (CHASE, "3;7#7", 0), (CHASE, "8;6;6#6", 0), (CHASE, "3;77;2#2", 0)])
def test_answer(text, completion, verdict):
  assert free_length.answer(prompt(text), completion) == verdict
  known = free_length.chances(prompt(text), completion)
  assert len(known) == len(steps.boundaries(completion, ";"))
  assert not known or known[-1] == verdict


def test_chances_of_walk_by_hand():
  """From e to f with room for one step: 1 - S; from d for two: also back is a move, too far."""
  known = free_length.chances(prompt("c>f=", limit=3), "d;e;f#f")
  np.testing.assert_allclose(known, [(1 - S) ** 2, 1 - S, 1])
  # From e with room for three: the other move, to d, leaves room for two; 24 letters are illegal.
  known = free_length.chances(prompt("c>f=", limit=5), "d;e;f#f")
  np.testing.assert_allclose(known[1], (1 - S) + S / 25 * (1 - S) ** 2)
  assert free_length.chances(prompt("c>f="), "d;z;e;f#f")[1:] == [0, 0, 0]


def test_chances_of_chase_agree_with_drawn_continuations():
  question, draw = free_length.parse(CHASE), np.random.default_rng(0)
  def reaches(value, room):
    while value != question.goal and room:
      right = question.forward[value]
      value = right if draw.random() >= S else draw.choice(
          [v for v in question.forward if v != right])
      room -= 1
    return value == question.goal
  drawn = np.mean([reaches("8", 4) for _ in range(4000)])
  assert abs(free_length.values(CHASE, 4)["8"] - drawn) < 0.03 and drawn > 0.05


@pytest.mark.parametrize("task", ["walk", "chase"])
def test_right_traces_are_right_whatever_their_length(task):
  rows = [dict(seed=0, index=i) for i in range(60)]
  prompts, draw = list(getattr(free_length, task)(rows, "train")), np.random.default_rng(0)
  options = dict(wrong_rate=0.0, confused=0.4, redundant=0.2, early=0.0, late=0.5)
  texts = [free_length.trace(p, draw, **options) for p in prompts]
  ended = [x.count(";") + 1 < p.meta["limit"] for p, x in zip(prompts, texts)]
  assert all(free_length.answer(p, x) == 1 for p, x, e in zip(prompts, texts, ended) if e)
  assert len({x.count(";") for x in texts}) > 3 and sum(ended) > 30
  wrong = [free_length.trace(p, draw, **options | dict(wrong_rate=1.0)) for p in prompts]
  assert np.mean([free_length.answer(p, x) for p, x in zip(prompts, wrong)]) < 0.7


def test_permuted_verdicts_are_those_of_half_a_batch_away():
  z_B1, ones = np.array([[1.], [2.], [-1.], [3.]]), np.ones((4, 1), bool)
  got = free_length.permuted_ce(z_B1, np.zeros_like(z_B1), ones, np.array([1., 0., 0., 1.]),
                                np.ones(4, bool), 1.0)
  labels = np.array([0., 1., 1., 0.])
  np.testing.assert_allclose(
      got.mean(), np.mean(np.log1p(np.exp(z_B1[:, 0])) - labels * z_B1[:, 0]), rtol=1e-6)


def test_measures_of_a_batch():
  got = study.measure(np.array([2, 4, 6, 8]), np.array([1., 0., 0., 0.]),
                        np.array([[9.], [1.], [2.], [3.]]))
  assert got["accuracy"] == 0.25 and got["length_right"] == 2 and got["length_wrong"] == 6
  assert got["correlation_wrong"] == pytest.approx(1) and np.isnan(got["correlation_right"])


def test_all_arms_are_configs():
  for arm in length.ARMS: assert length.configured("walk", arm, 1e-4).steps == 120


@pytest.mark.parametrize("task", verdict.TASKS)
def test_arms_of_the_verdict_differ_in_rewards_and_models_alone(task):
  flat = {arm: options.flatten(verdict.configured(task, arm, 1e-4).to_dict())
          for arm in verdict.ARMS}
  sections = ("rewards.", "advantages.", "prm.", "teacher.", "model.path", "verifier.steps",
              "learner.loss.")
  for arm, config in flat.items():
    changed = {k for k in config.keys() | flat["outcome"].keys()
               if config.get(k) != flat["outcome"].get(k)}
    assert all(k.startswith(sections) for k in changed), arm
    assert bool(changed) == (arm != "outcome")


def test_accuracy_at_a_step():
  row = dict(steps=60, accuracy=[0.0] * 20 + [1.0] * 40)
  assert [verdict.at_step(row, step) for step in (0, 10, 30, 60)] == [0, 0, 0.5, 1]
  assert np.isnan(verdict.at_step(row, 61))


def test_a_record_is_continued_and_cut_lines_are_done_again(tmp_path, monkeypatch):
  made, file = [], tmp_path / "runs.jsonl"
  def train(config, seed, steps):
    made.append((*config, seed))
    return dict(steps=steps, accuracy=[config[2] if seed >= 100 else 0.5], seconds=0)
  monkeypatch.setattr(study, "train", train)
  monkeypatch.setattr(study, "_build", lambda configure, *case: case)
  of = study.Study(None, ("a", "b"), dict(t=(1, 2)), dict(t=9))
  of.run_all(file, ("a",), ("t",), range(2))
  assert [x for x in made if x[3] < 100] == [("t", "a", 2, 0), ("t", "a", 2, 1)] and len(made) == 6
  file.write_text(file.read_text()[:-9])  # Cut while it was written.
  of.run_all(file, ("a", "b"), ("t",), range(2))
  assert made[6] == ("t", "a", 2, 1) and len(made) == 13
  assert {arm: rate for arm, (rate, _) in of.of_arms(study.read(file), "t", range(2)).items()} == {
      "a": 2, "b": 2}


@pytest.mark.parametrize("task, column", [(t, i) for i, t in enumerate(verdict.TASKS)])
def test_the_table_of_the_page_is_that_of_the_recorded_runs(task, column):
  """Means and intervals of docs/prime.md, of ten seeds at the rate of each arm."""
  root = pathlib.Path(__file__).parents[3]
  runs = collections.defaultdict(dict)  # arm -> {(rate, seed): accuracy}
  for row in csv.DictReader((root / "experiments/prime/verdict.csv").open()):
    if row["task"] == task:
      runs[row["arm"]][float(row["rate"]), int(row["seed"])] = float(row["accuracy"])
  shown = {}
  for line in (root / "docs/prime.md").read_text().splitlines():
    name, *cells = [x.strip() for x in line.strip("|").split("|")]
    arm = name.partition(":")[0].strip("`")
    # Its first table with four intervals.
    if arm in verdict.ARMS and len(cells) == 4 and "[" in cells[3]:
      shown.setdefault(arm, [float(x) for x in re.findall(r"[\d.]+", cells[column])])
  assert runs.keys() == shown.keys() == set(verdict.ARMS)
  for arm, of_arm in runs.items():
    best = max(verdict.RATES[task], key=lambda rate: sum(of_arm[rate, s] for s in study.TUNING))
    accuracy = [of_arm[best, seed] for seed in study.SEEDS]
    np.testing.assert_allclose(shown[arm], tables.interval(accuracy), atol=6e-4)
