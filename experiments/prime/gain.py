"""Compares the arms of a grid with a baseline: accuracy over the run, and steps to a threshold.

  python -m experiments.prime.gain runs/prime_gain --baseline outcome --threshold 0.5

The grid's arms are named TASK-ARM, and all arms of a task have the same seeds. The measure is the
accuracy of the drawn completions (rollouts/accuracy):

  mean       over the whole run
  after      accuracy of sampled completions of held-out prompts, after the last step
  steps      until the mean of the last 10 steps is at the threshold; a run that never gets there
             counts as its number of steps
  tokens     sampled until then, with those that the PRM was trained on (--prm ARM=FOLDER ...)
  seconds    until then, with those of the PRM's training

Compared are runs with the same seed. Differences and ratios have 95% intervals by Student's t over
seeds, ratios on logarithms. Printed as Markdown.
"""
import argparse
import json
import math
import pathlib

import numpy as np

from rlx.grids import plots, tables

SMOOTH = 10
METRIC = "rollouts/accuracy"


def reached(run, threshold, axis):
  """Returns where the run is at the threshold, and whether it gets there before its end."""
  x = plots.find_first(run, METRIC, threshold, axis, SMOOTH)
  return (x, True) if math.isfinite(x) else (float(run.x[axis][-1]), False)


def measures(run, threshold, before):
  """Returns {measure: value} of a run; `before` has the cost of its PRM on each axis."""
  _, drawn = plots.curve(run, METRIC, "steps")
  to = {axis: reached(run, threshold, axis)[0] + before.get(axis, 0.0) for axis in plots.AXES}
  return dict(mean=float(np.mean(drawn)), after=plots.final(run, "eval/sampled"), **to)


def ratio(a, b):
  """Returns (ratio, low, high) of paired positive values."""
  return tuple(map(math.exp, tables.interval(np.log(a) - np.log(b))))


def cost(folder):
  """Returns {axis: cost} of a PRM's training, from the folder of `rlx train_scorer`."""
  summary = json.loads((pathlib.Path(folder) / "summary.json").read_text())
  return dict(tokens=float(summary["sampled_tokens"]), seconds=float(summary["seconds"]["total"]))


def report(runs, baseline, threshold, costs):
  """Returns two Markdown tables: the arms, and their comparison with the baseline.

  Args:
    runs: {"TASK-ARM": runs}, see `plots.arms`.
    baseline: the arm of each task that the others are compared with.
    costs: {"TASK-ARM": {axis: cost of its PRM}}.
  """
  measured = {name: {r.name.rpartition("-seed")[2]: measures(r, threshold, costs.get(name, {}))
                     for r in some} for name, some in runs.items()}
  arms, pairs = [], []
  for name, some in runs.items():
    task, _, arm = name.partition("-")
    of, rival = measured[name], measured.get(f"{task}-{baseline}", {})
    arms.append((task, f"`{arm}`", *_means(of.values()), _steps(some, threshold), *_sizes(some)))
    seeds = sorted(of.keys() & rival.keys())
    if arm == baseline or len(seeds) < 2: continue
    columns = {key: [[x[s][key] for s in seeds] for x in (of, rival)]
               for key in ("mean", "after", *plots.AXES)}
    pairs.append((task, f"`{arm}`", *(_shown(tables.interval(np.subtract(*columns[key])), "+")
                                      for key in ("mean", "after")),
                  *(_shown(ratio(*columns[axis])) for axis in plots.AXES)))
  return "\n".join([
      tables.markdown(("task", "arm", "drawn, mean over the run", "sampled after",
                   "steps to the threshold, by seed", "1000 tokens a run", "ms a step"), arms),
      "", f"Against `{baseline}`, runs with the same seed:", "",
      tables.markdown(("task", "arm", "mean over the run", "after", *plots.AXES), pairs)])


def _means(values):
  return [f"{np.mean([x[key] for x in values]):.3f}" for key in ("mean", "after")]


def _steps(runs, threshold):
  """The steps to the threshold of each run; + where it is not reached."""
  return " ".join(f"{x:.0f}" + "+" * (not is_reached) for x, is_reached in (
      reached(r, threshold, "steps") for r in runs))


def _sizes(runs):
  """The tokens of a run, in thousands, and the milliseconds of a step."""
  tokens, seconds, steps = (np.mean([r.x[axis][-1] for r in runs])
                            for axis in ("tokens", "seconds", "steps"))
  return f"{tokens / 1000:.0f}", f"{1000 * seconds / steps:.0f}"


def _shown(interval, sign=""):
  return "{:{s}.3f} [{:{s}.3f}, {:{s}.3f}]".format(*interval, s=sign)


def main():
  args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  args.add_argument("folder", type=pathlib.Path, help="of a grid")
  args.add_argument("--baseline", required=True)
  args.add_argument("--threshold", type=float, required=True)
  args.add_argument("--prm", nargs="*", default=(), metavar="TASK-ARM=FOLDER",
                    help="folders of the training of PRMs, whose cost is added")
  args = args.parse_args()
  runs, _ = plots.arms(args.folder)
  costs = {arm: cost(folder) for arm, folder in (x.split("=") for x in args.prm)}
  print(report({k: v for k, v in runs.items() if v}, args.baseline, args.threshold, costs))


if __name__ == "__main__":
  main()
