"""The study of a verifier that learns by RL: its record, its control, its interval."""
import csv
import json
import pathlib

import numpy as np
import pytest

from experiments.judging import verdicts

ROOT = pathlib.Path(__file__).parents[3]
NAMES = dict(start="start", rl="RL on verdicts", null="RL on the verdicts of other completions")
COLUMNS = ("balanced", "label/y", "label/n", "balanced@8", "p_yes_reasoned/balanced", "no_verdict")


def test_the_pages_have_the_means_of_the_record():
  rows = list(csv.DictReader((ROOT / "experiments/judging/verdicts.csv").open()))
  pages = [(ROOT / name).read_text() for name in ("RESULTS.md", "docs/judging.md")]
  balanced = {(x["arm"], int(x["seed"])): float(x["balanced"]) for x in rows}
  assert len(rows) == len(balanced) == len(NAMES) * verdicts.SEEDS
  for arm, name in NAMES.items():
    shown = " | ".join(f"{np.mean([float(x[key]) for x in rows if x['arm'] == arm]):.3f}"
                       for key in COLUMNS)
    assert all(f"| {name} | {shown} |" in page for page in pages), arm
  for arm in verdicts.ARMS:
    change = [balanced[arm, s] - balanced["start", s] for s in range(verdicts.SEEDS)]
    assert f"| {', '.join(f'{x:+.3f}' for x in change)} |" in pages[0]


def test_the_control_has_the_same_verdicts_in_another_order(tmp_path):
  path = tmp_path / "completions.jsonl"
  path.write_text("".join(json.dumps(dict(completion=str(i), verdict=float(i < 8))) + "\n"
                          for i in range(16)))
  rows, other = (list(map(json.loads, file.read_text().splitlines()))
                 for file in (path, verdicts.permute_labels(path, 0)))
  assert [x["completion"] for x in rows] == [x["completion"] for x in other]
  before, after = ([x["verdict"] for x in part] for part in (rows, other))
  assert before != after and sorted(before) == sorted(after)


def test_the_difference_has_both_labels_with_equal_weight():
  before = [["y", "a", 0.0], ["n", "a", 0.5], ["n", "b", 0.5], ["y", "b", 0.0], ["y", "a", 0.0]]
  after = [["y", "a", 1.0], ["n", "a", 0.5], ["n", "b", 0.5], ["y", "b", 1.0], ["y", "a", 1.0]]
  assert verdicts.bootstrap([(before, after)], resamples=20) == (0.5, 0.5, 0.5)
  after[3][2] = 0.0  # Questions that differ widen it.
  assert verdicts.bootstrap([(before, after)], resamples=200) == pytest.approx((1 / 3, 0.0, 0.5))
