"""Curves, intervals and ratios against sums by hand and whole enumerations."""
import csv
import itertools
import json
import math
import sys

import numpy as np
import pytest

from rlx.grids import cell as cell_lib, compare, plots

INF = math.inf


def workdir(folder, rewards, tokens=10, seconds=2.0, before=0.1, after=0.9):
  folder.mkdir(parents=True, exist_ok=True)
  lines = [{"step": i, "rollouts/accuracy": r, "rollouts/tokens": tokens,
            "seconds/step": seconds} for i, r in enumerate(rewards)]
  lines[0]["eval/sampled"] = before
  (folder / "metrics.jsonl").write_text("".join(json.dumps(l) + "\n" for l in lines))
  said = lambda x: {"sampled": dict(mean=x, low=x - 0.05, high=x + 0.05)}
  (folder / "summary.json").write_text(json.dumps(
      dict(before=said(before), after=said(after), steps=len(lines))))
  return folder


def cell(out, arm, seed, rewards, index=0, done=True, **more):
  c = cell_lib.Cell(arm, seed, "c", {}, index)
  folder = out / c.name
  cell_lib.prepare(folder, c)
  workdir(folder, rewards, **more)
  if done: (folder / "done.json").write_text("{}")


def test_places_on_the_axes_are_before_a_step_and_after_the_last(tmp_path):
  run = plots.read(workdir(tmp_path / "a", [0.2, None, 0.4]))
  assert run.name == "a"
  for axis, step in (("steps", 1), ("tokens", 10), ("seconds", 2)):
    np.testing.assert_array_equal(run.x[axis], [0, step, 2 * step, 3 * step])
  # null is unknown, not a point; the accuracy after training is at the end.
  for axis, x in (("steps", [0, 2]), ("tokens", [0, 20])):
    at, values = plots.curve(run, "rollouts/accuracy", axis)
    assert list(at) == x and list(values) == [0.2, 0.4]
  at, values = plots.curve(run, "eval/sampled", "steps")
  assert list(at) == [0, 3] and list(values) == [0.1, 0.9]
  assert plots.curve(run, "nothing", "steps")[0].size == 0


def test_no_folder_of_a_run(tmp_path):
  with pytest.raises(ValueError, match="no metrics.jsonl"): plots.read(tmp_path)
  with pytest.raises(ValueError, match="no cell of a grid"): plots.arms(tmp_path)


def test_smoothing_and_the_first_step_above():
  values = np.array([0.0, 1.0, 0.0, 1.0, 1.0])
  np.testing.assert_allclose(plots.smooth_values(values, 2), [0.5, 0.5, 0.5, 1.0])
  run = plots.Run("r", dict(steps=np.arange(6.0), tokens=10 * np.arange(6.0)),
                  {"m": (np.arange(5), values)})
  assert plots.find_first(run, "m", 1.0, "steps") == 1
  assert plots.find_first(run, "m", 1.0, "tokens") == 10
  assert plots.find_first(run, "m", 1.0, "steps", smooth=2) == 4   # Where the mean ends.
  assert plots.find_first(run, "m", 1.1, "steps") == INF
  assert plots.find_first(run, "m", 0.1, "steps", smooth=6) == INF
  assert plots.find_first(run, "other", 0.1, "steps") == INF


def quantiles(draws, unknown=(None, None)):
  """2.5% and 97.5% of equally likely draws, by counting; NaN counts as `unknown` says."""
  values = []
  for q, instead in zip((0.025, 0.975), unknown):
    ordered = sorted(instead if math.isnan(d) else d for d in draws)
    values.append(ordered[math.ceil(q * len(ordered)) - 1])
  return values


def test_interval_is_that_of_all_resamples():
  # Of two: their means are a, (a + b) / 2 twice, b.
  assert plots.interval([[1.0], [3.0]]) == (2.0, 1.0, 3.0)
  seeds = [0.1, 0.5, 0.75]
  means = [np.mean(d) for d in itertools.product(seeds, repeat=3)]
  mean, low, high = plots.interval(seeds)
  assert mean == pytest.approx(0.45)
  assert [low, high] == pytest.approx(quantiles(means))
  columns = plots.interval(np.array([seeds, [2 * s for s in seeds]]).T)
  np.testing.assert_allclose(np.array(columns)[:, 1], 2 * np.array([mean, low, high]))


def test_one_seed_has_no_interval():
  mean, low, high = plots.interval([[0.5, 0.7]])
  np.testing.assert_array_equal(mean, [0.5, 0.7])
  assert np.isnan([low, high]).all()
  value, low, high = plots.ratio([10.0], [20.0, 30.0])
  assert value == pytest.approx(0.4) and math.isnan(low) and math.isnan(high)


@pytest.mark.parametrize("x, baseline, value", [
    ([10.0, 20.0, 30.0], [40.0, 50.0, 90.0], 0.4),
    # One seed of three does not get there: the median does, and the upper end not.
    ([10.0, 20.0, INF], [40.0, 50.0, 90.0], 0.4),
    ([10.0, INF, INF], [40.0, 50.0, 90.0], INF),
    # Neither median is known: the ratio is not, and may be anything.
    ([10.0, INF, INF], [40.0, INF, INF], math.nan),
    ([INF, INF, INF], [40.0, INF, INF], math.nan),
    ([10.0, INF, INF], [INF, INF, INF], math.nan),
    ([10.0, 20.0, 30.0], [INF, INF, INF], 0.0)], ids=str)
def test_ratio_is_that_of_all_resamples(x, baseline, value):
  with np.errstate(invalid="ignore"):
    draws = [float(np.median(a) / np.median(b))
             for a in itertools.product(x, repeat=3)
             for b in itertools.product(baseline, repeat=3)]
  ratio = plots.ratio(x, baseline)
  assert ratio[0] == pytest.approx(value, nan_ok=True)
  assert list(ratio[1:]) == pytest.approx(quantiles(draws, (0.0, INF)))


def test_band_of_steps_takes_those_all_seeds_know(tmp_path):
  runs = [plots.read(workdir(tmp_path / "a", [0.0, 0.2, 0.4])),
          plots.read(workdir(tmp_path / "b", [0.2, None, 0.8]))]
  x, mean, low, high = plots.band(runs, "rollouts/accuracy", "steps")
  np.testing.assert_allclose([x, mean, low, high], [[0, 2], [0.1, 0.6], [0, 0.4], [0.2, 0.8]])
  assert plots.band(runs, "nothing", "steps") is None


def test_band_of_tokens_lies_where_all_seeds_have_been(tmp_path):
  runs = [plots.read(workdir(tmp_path / "a", [0.0, 0.5, 1.0], tokens=10)),
          plots.read(workdir(tmp_path / "b", [0.0, 0.5, 1.0], tokens=20))]
  x, mean, _, _ = plots.band(runs, "rollouts/accuracy", "tokens")
  np.testing.assert_allclose(x, [0, 10, 20])
  np.testing.assert_allclose(mean, [0, (0.5 + 0.25) / 2, (1.0 + 0.5) / 2])
  unknown = plots.read(workdir(tmp_path / "c", [0.0, 0.5, 1.0], tokens=None))
  assert plots.band([runs[0], unknown], "rollouts/accuracy", "tokens") is None


def test_final_values(tmp_path):
  run = plots.read(workdir(tmp_path / "a", [9.0] * 5 + [1.0] * 9 + [2.0], after=0.7))
  assert plots.final(run, "eval/sampled") == 0.7
  assert plots.final(run, "rollouts/accuracy") == pytest.approx(1.1)  # Of the last ten.
  assert math.isnan(plots.final(run, "nothing"))


def test_differences_are_of_the_same_seed(tmp_path):
  """Seeds differ by far more than the arms; two pairs: t(0.975, 1) = 12.706."""
  for seed, (base, more) in enumerate(((0.0, 0.1), (5.0, 0.3))):
    cell(tmp_path, "base", seed, [base] * 20, after=base)
    cell(tmp_path, "more", seed, [base] * 10 + [base + more] * 10, index=1, after=base)
  cell(tmp_path, "more", 2, [9.0] * 20, index=2)  # The baseline has no such seed.
  runs, _ = plots.arms(tmp_path)
  row, = plots.difference_rows(runs, ["rollouts/accuracy"], "base")
  assert row["arm"] == "more" and row["pairs"] == 2
  assert [row[k] for k in ("end", "end_low", "end_high")] == pytest.approx(
      [0.2, 0.2 - 12.706 * 0.1, 0.2 + 12.706 * 0.1], abs=1e-3)
  assert row["run"] == pytest.approx(0.1)
  row, = plots.difference_rows(runs, ["nothing"], "base")
  assert math.isnan(row["end"])


def test_main_writes_figures_and_tables(tmp_path, monkeypatch, capsys):
  for seed, shift in enumerate((0.0, 0.1)):
    for index, (arm, slope) in enumerate((("outcome", 0.1), ("dense", 0.2))):
      cell(tmp_path, arm, seed, [shift + slope * i for i in range(8)], index=index,
           after=0.4 + 2 * slope + shift)
  cell(tmp_path, "dense", 2, [9.0], index=4, done=False)
  monkeypatch.setattr(sys, "argv", [
      "plots", str(tmp_path), "--threshold", "rollouts/accuracy=0.55"])
  plots.main()
  text = capsys.readouterr().out
  assert "| outcome | 2 of 2 | 0.650 [0.600, 0.700] | 0.400 [0.350, 0.450] |" in text
  # The unfinished cell is left out.
  assert "| dense | 2 of 3 | 0.850 [0.800, 0.900] |" in text
  # 0.55 is passed at step 6 and 5 against 3 and 3: medians 5.5 and 3.
  ratio = "0.55 [0.50, 0.60]"
  assert f"| dense | 2 of 2 | 3 | {ratio} | 30 | {ratio} | 6 | {ratio} |" in text
  assert "| outcome | 2 of 2 | 6 | 1.00 [1.00, 1.00] | 55 | 1.00" in text
  assert text.index("| outcome | 2 of 2") < text.index("| dense | 2 of 3")
  out = tmp_path / "figures"
  assert (out / "tables.md").read_text() in text
  rows = list(csv.DictReader((out / "final.csv").open()))
  assert list(rows[0].values())[:4] == ["outcome", "2", "2", "eval/sampled"]
  assert [float(x) for x in list(rows[0].values())[4:]] == pytest.approx([0.65, 0.6, 0.7])
  assert len(list(csv.DictReader((out / "threshold.csv").open()))) == 6
  # Both seeds are 0.2 above after the last step.
  assert "| dense | 2 | +0.200 [+0.200, +0.200] |" in text
  assert len(list(csv.DictReader((out / "difference.csv").open()))) == 2
  assert (out / "curves.png").read_bytes()[:4] == b"\x89PNG"
  assert (out / "curves.svg").read_text().rstrip().endswith("</svg>")


@pytest.mark.parametrize("argv, message", [
    (["--metrics", "eval/greedy"], "--metrics eval/greedy: no finished run has it"),
    (["--arms", "b"], "arm b: .* has \\['a'\\]"), (["--baseline", "b"], "arm b"),
    (["--threshold", "x=1"], "--metrics x: no finished run"),
    (["--smooth", "0"], "--smooth=0")])
def test_refuses(tmp_path, monkeypatch, argv, message):
  cell(tmp_path, "a", 0, [0.5])
  monkeypatch.setattr(sys, "argv", ["plots", str(tmp_path), *argv])
  with pytest.raises(SystemExit, match=message): plots.main()


def test_compare(tmp_path, monkeypatch, capsys):
  for name, lr, after in (("a.1", 1, 0.9), ("b.2", 2, 0.8)):
    folder = workdir(tmp_path / name, [0.1, 0.2], after=after)
    (folder / "config.json").write_text(json.dumps({"o": dict(lr=lr, same=0), name: 1}))
    (folder / "versions.json").write_text(json.dumps(dict(jax="1")))
  a, b = str(tmp_path / "a.1"), str(tmp_path / "b.2")
  monkeypatch.setattr(sys, "argv", ["compare", a, b, "--metrics", "eval/sampled"])
  compare.main()
  text = capsys.readouterr().out
  for row in ("| at the end | a.1 | b.2 |", "| tokens sampled | 20 | 20 |",
              "| o.lr | 1 | 2 |", "| eval/sampled | 0.900 [0.850, 0.950] | 0.800 [0.750, 0.850] |",
              "| rollouts/accuracy | 0.15 | 0.15 |", "| a.1 | 1 | None |",
              "The same versions."):
    assert row in text, row
  assert "same | 0" not in text
  for kind in ("png", "svg"): assert (tmp_path / f"compare-a.1-b.2.{kind}").stat().st_size > 1000
  monkeypatch.setattr(sys, "argv", ["compare", a, a])
  with pytest.raises(SystemExit, match="twice the same run"): compare.main()
