"""Compares the arms of a grid with a baseline: accuracy over the run, and steps to a threshold.

  python -m experiments.gain runs/prime_gain --baseline outcome --threshold 0.5

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

from experiments import claims
from experiments import plots

SMOOTH = 10
METRIC = "rollouts/accuracy"


def reached(run, threshold, axis):
  """Returns where the run is at the threshold, and whether it gets there before its end."""
  x = plots.reached(run, METRIC, threshold, axis, SMOOTH)
  return (x, True) if math.isfinite(x) else (float(run.x[axis][-1]), False)


def measures(run, threshold, before):
  """Returns {measure: value} of a run; `before` has the cost of its PRM on each axis."""
  _, drawn = plots.curve(run, METRIC, "steps")
  to = {axis: reached(run, threshold, axis)[0] + before.get(axis, 0.0) for axis in plots.AXES}
  return dict(mean=float(np.mean(drawn)), after=plots.final(run, "eval/sampled"), **to)


def ratio(a, b):
  """Returns (ratio, low, high) of paired positive values."""
  return tuple(map(math.exp, claims.interval(np.log(a) - np.log(b))))


def cost(folder):
  """Returns {axis: cost} of a PRM's training, from the folder of `rlx train_prm`."""
  summary = json.loads((pathlib.Path(folder) / "summary.json").read_text())
  return dict(tokens=float(summary["sampled_tokens"]), seconds=float(summary["seconds"]["total"]))


def tables(runs, baseline, threshold, costs):
  """Returns two Markdown tables: the arms, and their comparison with the baseline.

  Args:
    runs: {"TASK-ARM": runs}, see `plots.arms`.
    baseline: the arm of each task that the others are compared with.
    costs: {"TASK-ARM": {axis: cost of its PRM}}.
  """
  shown = lambda interval, sign="": (f"{{:{sign}.3f}} [{{:{sign}.3f}}, {{:{sign}.3f}}]").format(*interval)
  arms = ["| task | arm | drawn, mean over the run | sampled after | steps to the threshold, by seed "
          "| 1000 tokens a run | ms a step |", "| --- " * 7 + "|"]
  pairs = ["| task | arm | mean over the run | after | steps | tokens | seconds |",
           "| --- " * 7 + "|"]
  of = {name: {r.name.rpartition("-seed")[2]: measures(r, threshold, costs.get(name, {}))
               for r in some} for name, some in runs.items()}
  for name, some in runs.items():
    task, _, arm = name.partition("-")
    mean = lambda key: np.mean([x[key] for x in of[name].values()])  # pylint: disable=cell-var-from-loop
    steps = " ".join(f"{x:.0f}" + "+" * (not done) for x, done in (
        reached(r, threshold, "steps") for r in some))
    last = lambda axis: np.mean([r.x[axis][-1] for r in some])  # pylint: disable=cell-var-from-loop
    arms.append(f"| {task} | `{arm}` | {mean('mean'):.3f} | {mean('after'):.3f} | {steps} "
                f"| {last('tokens') / 1000:.0f} | {1000 * last('seconds') / last('steps'):.0f} |")
    rival = of.get(f"{task}-{baseline}", {})
    seeds = sorted(of[name].keys() & rival.keys())
    if arm == baseline or len(seeds) < 2: continue
    values = lambda key: ([of[name][s][key] for s in seeds], [rival[s][key] for s in seeds])  # pylint: disable=cell-var-from-loop
    pairs.append(f"| {task} | `{arm}` | " + " | ".join(
        [shown(claims.interval(np.subtract(*values(key))), "+") for key in ("mean", "after")]
        + [shown(ratio(*values(axis))) for axis in plots.AXES]) + " |")
  return "\n".join([*arms, "", f"Against `{baseline}`, runs with the same seed:", "", *pairs])


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
  print(tables({k: v for k, v in runs.items() if v}, args.baseline, args.threshold, costs))


if __name__ == "__main__":
  main()
