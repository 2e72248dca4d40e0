"""Prints the figures of a run."""
from collections.abc import Sequence
import pathlib
from typing import Any


def format_interval(interval: dict) -> str:
  """Formats a mean and its interval: 0.500 [0.400, 0.600]."""
  return "{mean:.3f} [{low:.3f}, {high:.3f}]".format(**interval)


def print_summary(summary: dict, workdir: pathlib.Path) -> None:
  """Prints the accuracies and times of a run and the files in its workdir."""
  print("\nheld-out accuracy, 95% interval")
  width = max(8, *map(len, summary["after"]))
  for name, after in summary["after"].items():  # Also of sources: greedy/NAME.
    before = format_interval(summary["before"][name])
    print(f"  {name:{width}} {before} -> {format_interval(after)}")
  if (ranked := summary["prm_accuracy"]) is not None:
    print("  PRM: no prompt of the last 10 steps had right and wrong completions"
          if ranked != ranked else f"  PRM ranks {ranked:.3f} of pairs right (last 10 steps)")
  seconds = summary["seconds"]
  print(f"{summary['steps']} steps in {seconds['total']:.0f} s, the first after "
        f"{seconds['to_first_step']:.0f} s")
  for path, what in (("curves.png", "picture"), ("summary.json", "these figures"),
                     ("metrics.jsonl", "every step"),
                     ("completions.jsonl", "sampled completions with rewards"),
                     ("tensorboard", "TensorBoard events"),
                     ("config.json", "resolved config; versions are in versions.json"),
                     ("checkpoints", "resume by running again")):
    if (workdir / path).exists(): print(f"  {workdir / path}  {what}")
  print(f"  rlx view {workdir}  writes a report of the run")


def print_metrics(metrics: dict[str, dict]) -> None:
  """Prints the metrics: one line each, and those at k in a table with one column per k."""
  at_k_rows: dict[str, dict] = {}
  plain = {}
  for name, x in metrics.items():
    kind, is_at_k, rest = name.partition("@")
    if is_at_k:
      k, _, score = rest.partition("/")
      at_k_rows.setdefault(" ".join([kind, *filter(None, [score])]), {})[int(k)] = x
    elif name != "prm":
      plain[name] = x
  plain |= {f"{path}  {name}": x for path, numbers in metrics.get("prm", {}).items()
            for name, x in numbers.items()}
  for head, rows in (
      (["", "95% interval", "prompts"], [
          [name, format_interval(x), str(x["prompts"])] for name, x in plain.items()]),
      (["k", *map(str, next(iter(at_k_rows.values()), ()))], [
          [name, *map(format_interval, by_k.values())] for name, by_k in at_k_rows.items()])):
    print_table(head, rows, width=200)


def print_suite(metrics: dict[str, dict]) -> None:
  """Prints the accuracies of a suite: one line for each of its sets."""
  print_table(("set", "measure", "95% interval", "prompts", "unknown", "truncated", "tokens"), [
      (name.partition("/")[2], name.partition("/")[0], format_interval(x),
       str(x["prompts"]) + (f" of {x['asked']}" if x["prompts"] < x["asked"] else ""),
       f"{x['unknown']:.3f}", f"{x['truncated']:.3f}", f"{x['tokens']:.0f}")
      for name, x in metrics.items()], width=120)


def format_published(figure: dict) -> str:
  """A figure of a paper (evals/verifier.py) as a text."""
  return f"{figure['value']:.3f}: {figure['of']} ({figure['source']})"


def print_judging(result: dict) -> None:
  """Prints what was measured of a scorer or judge: a table of metrics, with what papers measured of
  other ones beside, then best of n and the curve along KL."""
  beside = {name: "; ".join(map(format_published, figures))
            for name, figures in result.get("published", {}).items()}
  print(f"{result['judged']}: {result['count']} rows of {result['rows']}")
  print_table(["", "95% interval", "rows"] + ["published, of others"] * bool(beside), [
      [name, format_interval(x), x["prompts"]] + [beside.get(name, "")] * bool(beside)
      for name, x in result["metrics"].items()], width=200)
  if used := result.get("used"): print(", ".join(f"{n:,} {name}" for name, n in used.items()))
  for key, x_axis in (("best_of_n", "n"), ("kl", "kl")):
    points = result.get(key, [])
    names = [name for name in points[0] if name not in ("n", "kl")] if points else []
    print_table([x_axis, *names], [[f"{x[x_axis]:g}", *(format_interval(x[name]) for name in names)]
                                   for x in points], width=200)
    if fitted := result.get(f"{key}_fit"):
      print("gold against d = sqrt(KL): alpha {alpha:.3g}, beta {beta:.3g}, peak at KL "
            "{peak_kl:.3g}, error {error:.3g}".format(**fitted))


def print_table(columns: Sequence[str], rows: Sequence[Sequence[Any]], *, width: int) -> None:
  """Prints a table of values as they are; nothing if it has no rows."""
  from rich import box, console, table  # pylint: disable=g-import-not-at-top
  shown = table.Table(*columns, box=box.SIMPLE_HEAD)
  for row in rows: shown.add_row(*map(str, row))
  if rows: console.Console(width=width, markup=False, highlight=False, emoji=False).print(shown)
