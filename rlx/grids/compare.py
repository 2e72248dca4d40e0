"""Compares two runs: their configs, their final accuracies and their curves.

  rlx compare RUN_A RUN_B

A run is any workdir of rlx.train. The comparison is printed as Markdown; the figure is written next
to RUN_B as compare-A-B.png and .svg. Intervals are over held-out prompts. Single runs give no
interval over seeds, and two runs that differ only in their seed also have different results.
"""
import argparse
import json
import pathlib

from rlx.grids import plots, tables
from rlx.core import options
from rlx.io import curves


def differences(a, b, name):
  """Returns (key, value in a, value in b) where a JSON file differs; None if the key is absent."""
  settings = [options.flatten(json.loads(path.read_text())) if (path := f / name).exists() else {}
              for f in (a, b)]
  return [(k, *(f.get(k) for f in settings))
          for k in sorted(settings[0].keys() | settings[1].keys())
          if settings[0].get(k) != settings[1].get(k)]


def accuracies(folder):
  """Returns {metric: "mean [low, high]"} after the last step."""
  path = folder / "summary.json"
  if not path.exists(): return {}
  return {f"eval/{k}": "{mean:.3f} [{low:.3f}, {high:.3f}]".format(**v)
          for k, v in json.loads(path.read_text())["after"].items()}


def report(folders, names, runs):
  """Returns a comparison of two runs in Markdown."""
  steps = [len(r.x["steps"]) - 1 for r in runs]
  rows = [("steps", *steps),
          ("tokens sampled", *(f"{r.x['tokens'][-1]:,.0f}" for r in runs)),
          ("seconds of training", *(f"{r.x['seconds'][-1]:,.0f}" for r in runs))]
  held_out = [accuracies(f) for f in folders]
  for metric in [m for panel in curves.PANELS.values() for m in panel]:
    if any(metric in r.points for r in runs):
      rows.append((metric, *(h.get(metric, f"{plots.final(r, metric):.4g}")
                             for h, r in zip(held_out, runs))))
  parts = [tables.markdown(("at the end", *names), rows)]
  for what, name in (("config", "config.json"), ("version", "versions.json")):
    changes = differences(*folders, name)
    parts.append(tables.markdown((what, *names), changes) if changes else f"The same {what}s.")
  return "\n\n".join(parts)


def main(*words):
  args = argparse.ArgumentParser("rlx compare", description=__doc__.splitlines()[0])
  args.add_argument("runs", nargs=2, type=pathlib.Path, metavar="RUN")
  plots.options(args)
  args = args.parse_args(words or None)
  try:
    runs = [plots.read(f) for f in args.runs]
    names = [r.name for r in runs]
    if names[0] == names[1]: names = [str(f) for f in args.runs]
    if names[0] == names[1]: raise ValueError(f"{names[0]}: twice the same run.")
    arms = {name: [run] for name, run in zip(names, runs)}
    metrics = plots.choose_metrics(arms, args.metrics)
  except ValueError as e:
    raise SystemExit(str(e)) from None
  path = args.runs[1].parent / "compare-{}-{}".format(*(r.name for r in runs))
  plots.figure(arms, metrics, path, args.smooth)
  print(report(args.runs, names, runs), f"\n{path}.png", f"{path}.svg", sep="\n")


if __name__ == "__main__":
  main()
