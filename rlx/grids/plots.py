"""Figures and tables of a grid, computed from the folders of its cells.

  rlx plots runs/ablations --threshold eval/sampled=0.8 --baseline outcome

Writes curves.png and curves.svg, tables.md, final.csv, difference.csv and threshold.csv
into <folder>/figures. Only finished cells are used; the tables state how many each arm has.

A metric of step k is measured before the update of step k. It is plotted at k updates, and at the
tokens sampled and the seconds spent until then. The accuracy after the last step comes from
summary.json.

Intervals are 95% intervals of the percentile bootstrap over seeds, and NaN for fewer than two
seeds. For few seeds they are too narrow: with three, five and ten normal samples they contained
the mean in 76%, 84% and 90% of 20,000 cases.
"""
import argparse
import csv
import dataclasses
import json
import math
import pathlib

import numpy as np

from rlx.grids import cell as cell_lib, tables
from rlx.io import metrics as io_metrics

METRICS = ("eval/sampled", "eval/greedy", "rollouts/accuracy")
AXES = {"steps": "steps", "tokens": "tokens sampled",
        "seconds": "seconds of training, without start and evaluation"}
LAST = 10          # Steps that the final value of a noisy metric is a mean of.
DRAWS = 10000     # Of the bootstrap.
ENDS = 0.025, 0.975
# Legible without colour: dashes and markers differ, and colours differ in lightness.
DASHES = ("-", "--", ":", "-.", (0, (5, 1, 1, 1, 1, 1)))
MARKERS = "osD^vxP*"


@dataclasses.dataclass(frozen=True)
class Run:
  """The metrics of a workdir. Index N holds the evaluation after the last of N steps."""
  name: str
  x: dict        # axis -> x_N1
  points: dict   # metric -> (places, values), known ones only


def read(folder):
  """Reads the run of a workdir.

  Raises:
    ValueError: it has no metrics.jsonl.
  """
  folder = pathlib.Path(folder)
  if not (folder / "metrics.jsonl").exists():
    raise ValueError(f"{folder}: no metrics.jsonl; it is not the folder of a run.")
  lines = io_metrics.read(folder)
  def until(key):
    return np.concatenate([[0.0], np.cumsum([l.get(key, math.nan) for l in lines])])
  points = {}
  for place, line in enumerate(lines):
    for key, value in line.items():
      if key != "step" and math.isfinite(value):
        points.setdefault(key, {})[place] = value
  if (folder / "summary.json").exists():
    summary = json.loads((folder / "summary.json").read_text())
    for place, metrics in ((0, summary["before"]), (len(lines), summary["after"])):
      for key, value in metrics.items():
        points.setdefault(f"eval/{key}", {})[place] = value["mean"]
  return Run(folder.resolve().name,
             x=dict(steps=np.arange(len(lines) + 1.0), tokens=until("rollouts/tokens"),
                    seconds=until("seconds/step")),
             points={k: (np.array(sorted(v)), np.array([v[p] for p in sorted(v)]))
                     for k, v in points.items()})


def arms(folder):
  """Returns ({arm: its finished runs}, {arm: number of its cells}), in the grid's order."""
  cells = [(cell, path) for path in sorted(pathlib.Path(folder).glob("*/"))
           if (cell := cell_lib.read(path))]
  if not cells: raise ValueError(f"{folder}: no cell of a grid in it.")
  runs, cells_of = {}, {}
  for cell, path in sorted(cells, key=lambda c: c[0].index):
    cells_of[cell.arm] = cells_of.get(cell.arm, 0) + 1
    runs.setdefault(cell.arm, [])
    if cell_lib.state(path) == "done": runs[cell.arm].append(read(path))
  return runs, cells_of


def smooth_values(values, n):
  """Returns running means of n values, each at the position of its last value."""
  return np.convolve(values, np.ones(n) / n, mode="valid")


def curve(run, metric, axis, smooth=1):
  """Returns (x, values) of a metric, without unknown values."""
  places, values = run.points.get(metric, (np.zeros(0, int), np.zeros(0)))
  if len(values) < smooth: return np.zeros(0), np.zeros(0)
  return run.x[axis][places[smooth - 1:]], smooth_values(values, smooth)


def band(runs, metric, axis, smooth=1):
  """Returns (x, mean, low, high) over runs.

  With axis "steps", x holds the steps that all runs have. With tokens and seconds, x covers the
  range that all runs cover, and values are interpolated linearly.
  """
  curves = [curve(r, metric, axis, smooth) for r in runs]
  if not curves or not all(len(x) and np.isfinite(x).all() for x, _ in curves):
    return None
  if axis == "steps":
    x = np.array(sorted(set.intersection(*(set(x) for x, _ in curves))))
    if not len(x): return None
    values = [[v[np.searchsorted(at, step)] for step in x] for at, v in curves]
  else:
    first, last = max(x[0] for x, _ in curves), min(x[-1] for x, _ in curves)
    if first > last: return None
    x = np.unique(np.concatenate([x[(first <= x) & (x <= last)] for x, _ in curves]))
    values = [np.interp(x, *f) for f in curves]
  return x, *interval(values)


def interval(values_SN):
  """Returns (mean, low, high) over seeds, the first axis."""
  values_SN = np.asarray(values_SN, float)
  mean, seeds = values_SN.mean(axis=0), len(values_SN)
  if seeds < 2: return mean, np.full_like(mean, np.nan), np.full_like(mean, np.nan)
  # How often each seed is drawn, as a share.
  weights = np.random.default_rng(0).multinomial(
      seeds, np.full(seeds, 1 / seeds), size=DRAWS) / seeds
  low, high = np.quantile(weights @ values_SN, ENDS, axis=0)
  return mean, low, high


def final(run, metric):
  """Returns the final value of a metric; NaN if unknown.

  For metrics of eval/ it is the value after the last step, for others the mean of the last steps.
  """
  places, values = run.points.get(metric, ((), ()))
  if not len(values): return math.nan
  if metric.startswith("eval/"): return float(values[-1])
  last = values[places >= len(run.x["steps"]) - 1 - LAST]
  return float(last.mean()) if len(last) else math.nan


def find_first(run, metric, threshold, axis, smooth=1):
  """Returns the first x at which a curve reaches the threshold; inf if it never does."""
  x, values = curve(run, metric, axis, smooth)
  above = np.flatnonzero(values >= threshold)
  return float(x[above[0]]) if len(above) else math.inf


def ratio(x_S, baseline_S):
  """Returns (ratio of medians over seeds, low, high) by a bootstrap over the seeds of both arms.

  A seed that does not get there counts as inf, so a median is inf once half of them
  do not. inf / inf is unknown: NaN as the ratio, and in the interval it
  counts as 0 at the lower end and inf at the upper.
  """
  rng = np.random.default_rng(0)
  def draw(x_S):
    drawn = rng.integers(len(x_S), size=(DRAWS, len(x_S)))
    return np.median(np.asarray(x_S)[drawn], axis=1)
  with np.errstate(invalid="ignore", divide="ignore"):
    value = float(np.median(x_S) / np.median(baseline_S))
    if min(len(x_S), len(baseline_S)) < 2: return value, math.nan, math.nan
    ratios = draw(x_S) / draw(baseline_S)
  low, high = (np.quantile(np.where(np.isnan(ratios), unknown, ratios), end,
                           method="inverted_cdf")
               for end, unknown in zip(ENDS, (0.0, math.inf)))
  return value, float(low), float(high)


def pyplot():
  """Imports matplotlib, which only figures need; they are drawn without a screen."""
  import matplotlib  # pylint: disable=g-import-not-at-top
  matplotlib.use("Agg")
  from matplotlib import pyplot as plt  # pylint: disable=g-import-not-at-top
  return plt


def figure(runs, metrics, path, smooth=1):
  """Writes path.png and path.svg: a row for each metric, a column for each axis."""
  plt = pyplot()
  from matplotlib import ticker  # pylint: disable=g-import-not-at-top
  runs = {arm: r for arm, r in runs.items() if r}
  shades = plt.get_cmap("cividis")(np.linspace(0, 0.8, max(len(runs), 2)))
  with plt.rc_context({"svg.hashsalt": "rlx", "font.size": 9}):
    fig, grid = plt.subplots(len(metrics), len(AXES), squeeze=False, sharey="row",
                             figsize=(12, 3 * len(metrics) + 0.5), layout="constrained")
    for row, metric in zip(grid, metrics):
      for axis, (key, label) in zip(row, AXES.items()):
        for i, (arm, some) in enumerate(runs.items()):
          if (line := band(some, metric, key, smooth)) is None: continue
          x, mean, low, high = line
          axis.plot(x, mean, color=shades[i], linestyle=DASHES[i % len(DASHES)],
                    marker=MARKERS[i % len(MARKERS)], markersize=4, markevery=0.1,
                    label=arm)
          axis.fill_between(x, low, high, color=shades[i], alpha=0.15, linewidth=0)
        axis.set_xlabel(label)
        if key == "tokens": axis.xaxis.set_major_formatter(ticker.EngFormatter(sep=""))
        axis.grid(alpha=0.3)
      row[0].set_ylabel(metric + (f" (mean of {smooth})" if smooth > 1 else ""))
    handles = {l: h for a in grid.flat for h, l in zip(*a.get_legend_handles_labels())}
    fig.legend(handles.values(), handles.keys(), loc="outside upper center",
               ncols=min(len(handles), 6) or 1, handlelength=4)
    path.parent.mkdir(parents=True, exist_ok=True)
    fig.savefig(f"{path}.png", dpi=120)
    fig.savefig(f"{path}.svg", metadata={"Date": None})
    plt.close(fig)


def final_rows(runs, cells_of, metrics):
  """Yields a dict for each arm and metric."""
  for arm, some in runs.items():
    for metric in metrics:
      mean, low, high = interval([final(r, metric) for r in some] or [math.nan])
      yield dict(arm=arm, seeds=len(some), of=cells_of[arm], metric=metric, mean=float(mean),
                 low=float(low), high=float(high))


def over_the_run(run, metric):
  """Returns the mean of all values of a metric, which is high if it rose early; NaN if unknown."""
  return float(np.mean(run.points[metric][1])) if metric in run.points else math.nan


def difference_rows(runs, metrics, baseline):
  """Yields a dict for each metric and each arm except the baseline.

  It holds the mean difference from the baseline with the same seed, at the end of the run and
  over the run, with Student's intervals.
  """
  by_seed = lambda some: {r.name.rpartition("-seed")[2]: r for r in some}
  base = by_seed(runs[baseline])
  for arm, some in runs.items():
    if arm == baseline: continue
    pairs = [(r, base[seed]) for seed, r in by_seed(some).items() if seed in base]
    for metric in metrics:
      row = dict(arm=arm, pairs=len(pairs), metric=metric)
      for name, measure in (("end", final), ("run", over_the_run)):
        differences = [measure(r, metric) - measure(b, metric) for r, b in pairs]
        is_known = len(pairs) > 1 and all(map(math.isfinite, differences))
        estimates = tables.interval(differences) if is_known else [math.nan] * 3
        row |= dict(zip((name, f"{name}_low", f"{name}_high"), estimates))
      yield row


def threshold_rows(runs, metric, threshold, baseline, smooth=1):
  """Yields a dict for each arm and axis."""
  for arm, some in runs.items():
    for axis in AXES:
      x_S, base_S = ([find_first(r, metric, threshold, axis, smooth) for r in rs]
                     for rs in (some, runs[baseline]))
      median = float(np.median(x_S)) if some else math.nan
      ratios = ratio(x_S, base_S) if some and base_S else [math.nan] * 3
      if arm == baseline: ratios = [1.0 if math.isfinite(median) else math.nan] * 3
      yield dict(arm=arm, axis=axis, reached=sum(map(math.isfinite, x_S)),
                 seeds=len(some), median=median,
                 **dict(zip(("ratio", "low", "high"), ratios)))


def final_table(rows, metrics):
  """Returns `final_rows` as a table in Markdown."""
  return tables.markdown(("arm", "seeds", *metrics), (
      (mine[0]["arm"], "{seeds} of {of}".format(**mine[0]),
       *("{mean:.3f} [{low:.3f}, {high:.3f}]".format(**r) for r in mine))
      for mine in _parts(rows, len(metrics))))


def difference_table(rows, metrics):
  """Returns `difference_rows` as a table in Markdown."""
  header = ("arm", "seeds", *(x for m in metrics for x in (f"{m}, end", "over the run")))
  return tables.markdown(header, (
      (mine[0]["arm"], mine[0]["pairs"],
       *(x.format(**r).replace("+nan", "nan") for r in mine for x in (
           "{end:+.3f} [{end_low:+.3f}, {end_high:+.3f}]",
           "{run:+.3f} [{run_low:+.3f}, {run_high:+.3f}]")))
      for mine in _parts(rows, len(metrics))))


def threshold_table(rows):
  """Returns `threshold_rows` as a table in Markdown."""
  return tables.markdown(("arm", "reached", *(x for a in AXES for x in (a, "ratio"))), (
      (mine[0]["arm"], "{reached} of {seeds}".format(**mine[0]),
       *(x.format(**r) for r in mine
         for x in ("{median:,.0f}", "{ratio:.2f} [{low:.2f}, {high:.2f}]")))
      for mine in _parts(rows, len(AXES))))


def _parts(rows, n):
  return [rows[i:i + n] for i in range(0, len(rows), n)]


def choose_metrics(runs, metrics):
  """Returns the requested metrics, by default those of METRICS that a run has.

  Raises:
    ValueError: no run has one that was asked for, or any of METRICS.
  """
  known = sorted({m for some in runs.values() for r in some for m in r.points})
  if unknown := [m for m in metrics or () if m not in known]:
    raise ValueError(f"--metrics {unknown[0]}: no finished run has it; there are "
                     f"{known}.")
  shown = metrics or [m for m in METRICS if m in known]
  if not shown: raise ValueError("no finished run has a metric of "
                                 f"{METRICS}; name some of {known} with --metrics.")
  return shown


def _threshold(text):
  metric, _, value = text.partition("=")
  try:
    return metric, float(value)
  except ValueError:
    raise argparse.ArgumentTypeError(f"{text!r}: METRIC=NUMBER") from None


def _write_csv(path, rows):
  with path.open("w", newline="") as f:
    writer = csv.DictWriter(f, rows[0])
    writer.writeheader()
    writer.writerows(rows)


def options(args):
  """Adds the command-line arguments that plots.py and compare.py share."""
  args.add_argument("--metrics", nargs="+", metavar="METRIC",
                    help="keys of metrics.jsonl; those of "
                    f"{', '.join(METRICS)} that are there")
  args.add_argument("--smooth", type=int, default=1, metavar="N",
                    help="curves are means of N values in a row")


def main(*words):
  args = argparse.ArgumentParser("rlx plots", description=__doc__.splitlines()[0])
  args.add_argument("folder", type=pathlib.Path, help="of the cells")
  options(args)
  args.add_argument("--arms", nargs="+", metavar="ARM", help="some, in this order")
  args.add_argument("--threshold", type=_threshold, metavar="METRIC=X",
                    help="also where the metric first is at or above X, as a ratio to "
                    "the baseline")
  args.add_argument("--baseline", metavar="ARM", help="the first")
  args = args.parse_args(words or None)
  if args.smooth < 1: raise SystemExit(f"--smooth={args.smooth}: must be >= 1.")
  try:
    runs, cells_of = arms(args.folder)
    if unknown := [a for a in [*(args.arms or ()), args.baseline or next(iter(runs))]
                   if a not in runs]:
      raise ValueError(f"arm {unknown[0]}: {args.folder} has {list(runs)}.")
    baseline = args.baseline or (args.arms or list(runs))[0]
    metrics = choose_metrics(runs, args.metrics)
    if args.threshold: choose_metrics(runs, args.threshold[:1])
  except ValueError as e:
    raise SystemExit(str(e)) from None
  shown = {a: runs[a] for a in args.arms or runs}
  compared = shown | {baseline: runs[baseline]}
  out = args.folder / "figures"
  figure(shown, metrics, out / "curves", args.smooth)
  rows = list(final_rows(shown, cells_of, metrics))
  _write_csv(out / "final.csv", rows)
  text = (f"Mean over seeds after the last step (of eval/) or of the last {LAST}, with "
          f"its 95% bootstrap interval.\n\n{final_table(rows, metrics)}\n")
  if len(compared) > 1:
    rows = list(difference_rows(compared, metrics, baseline))
    _write_csv(out / "difference.csv", rows)
    text += (f"\nAbove {baseline}, seed by seed: at the end, and as a mean over the run; "
             f"95% intervals of Student's t.\n\n{difference_table(rows, metrics)}\n")
  if args.threshold:
    rows = list(threshold_rows(compared, *args.threshold, baseline, args.smooth))
    _write_csv(out / "threshold.csv", rows)
    text += (f"\nUntil {args.threshold[0]} is first at or above {args.threshold[1]:g}: "
             "median over seeds, inf where half of them do not get there, and its "
             f"ratio to {baseline}'s with the 95% bootstrap interval.\n\n"
             f"{threshold_table(rows)}\n")
  (out / "tables.md").write_text(text)
  print(text, *(out / f"curves.{kind}" for kind in ("png", "svg")), sep="\n")


if __name__ == "__main__":
  main()
