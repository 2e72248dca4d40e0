"""Tables of gains, and how well rewards rank steps, on made-up runs."""
import json

import numpy as np
import pytest

from experiments.prime import gain, prime_gain, step_quality
from rlx.grids import plots


def _run(seed, accuracies, seconds=2.0):
  steps = len(accuracies)
  x = dict(steps=np.arange(steps + 1.0), tokens=np.arange(steps + 1.0) * 100,
           seconds=np.arange(steps + 1.0) * seconds)
  return plots.Run(f"task-arm-seed{seed}", x, {
      "rollouts/accuracy": (np.arange(steps), np.array(accuracies)),
      "eval/sampled": (np.array([0, steps]), np.array([0.0, accuracies[-1]]))})


def test_steps_to_the_threshold_and_their_ratios():
  slow = [_run(s, [0.0] * (20 + s) + [1.0] * (20 - s)) for s in range(3)]
  fast = [_run(s, [0.0] * 10 + [1.0] * 30) for s in range(3)]
  never = _run(0, [0.2] * 40)
  # Five of ten steps at 1 have a mean of 0.5: after 20 + 5 steps, the last of which is number 24.
  assert [gain.reached(r, 0.5, "steps") for r in (*slow, never)] == [
      (24, True), (25, True), (26, True), (40, False)]
  assert gain.reached(slow[0], 0.95, "steps") == (29, True)  # The mean is that of ten steps.
  assert gain.measures(slow[0], 0.5, dict(tokens=7.0)) == dict(
      mean=0.5, after=1.0, steps=24, tokens=2407, seconds=48)
  text = gain.report({"task-slow": slow, "task-fast": fast}, "slow", 0.5, {})
  assert "| task | `slow` | 0.475 | 1.000 | 24 25 26 | 4 | 2000 |" in text
  ratio, low, high = gain.ratio([14, 14, 14], [24, 25, 26])
  assert low < ratio < high and ratio == pytest.approx(14 / (24 * 25 * 26) ** (1 / 3))
  assert ("| task | `fast` | +0.275 [+0.213, +0.337] | +0.000 [+0.000, +0.000] "
          f"| {ratio:.3f} [") in text
  assert "| 40+ 40+ |" in gain.report({"task-never": [never, never]}, "slow", 0.5, {})


def test_pairs_of_steps_of_a_prompt_at_a_place():
  # The last step does not count. Places 0: 3 > 1 and 3 > 3 is a tie; 1: no wrong step; group b.
  rewards = [[3.0, 0.0, 9.0], [1.0, 0.0, 9.0], [3.0, 0.0, 9.0], [0.0, 9.0], [5.0, 9.0]]
  verdicts = [[1, 1, 0], [0, 1, 1], [0, 1, 1], [1, 0], [0, 1]]
  assert step_quality.ranked(rewards, verdicts, "aaabb") == pytest.approx((1 + 0.5 + 0) / 3)


def test_completions_for_the_null_and_for_fine_tuning(tmp_path):
  rows = [dict(prompt=f"p{i}", completion=f"c{i}", verdict=float(i % 4 == 0)) for i in range(40)]
  (tmp_path / "rollouts.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
  prime_gain.write(tmp_path)
  read = lambda name: list(map(json.loads, (tmp_path / name).open()))
  permuted = read("permuted.jsonl")
  assert [r["completion"] for r in permuted] == [r["completion"] for r in rows]
  assert sum(r["verdict"] for r in permuted) == 10 and permuted != rows
  assert read("train.jsonl") == [dict(question=f"p{i}", answer=f"c{i}") for i in range(0, 40, 4)]
