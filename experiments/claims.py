"""Does what a paper claims show on a small world? Runs checks, writes the table.

  python -m experiments.claims pure passk_training      # some, printed
  python -m experiments.claims --out docs/papers.jsonl --docs docs/papers.md   # all, recorded

A check is experiments/papers/<key>.py, its key that of configs/papers/<key>.py:

  CLAIM           which of PAPER["claims"] it is about; PAPER is the config's, or
                  the check's own where there is nothing to configure
  MEASURE         what is measured, one line; above 0 is the direction claimed
  effects(seeds)  one number a seed
  REVISED         only where the world or the measure was changed after a first
                  outcome: why

A claim is confirmed if the 95% interval of the mean over seeds (Student's t) lies
above 0, opposite if below, else not seen. What is seen on a table of logits or a small
reward model says nothing about size in language models.
"""
import argparse
import importlib
import json
import math
import pathlib
import statistics
import time

from scipy import stats

ROOT = pathlib.Path(__file__).parent.parent


def interval(effects):
  """(mean, low, high) of 95%."""
  n, mean = len(effects), statistics.fmean(effects)
  half = stats.t.ppf(0.975, n - 1) * statistics.stdev(effects) / math.sqrt(n)
  return mean, mean - half, mean + half


def seen(effects):
  """confirmed, opposite or not seen; NaN is an error."""
  if not all(map(math.isfinite, effects)):
    raise ValueError(f"effects={effects}: all must be finite.")
  _, low, high = interval(effects)
  return "confirmed" if low > 0 else "opposite" if high < 0 else "not seen"


def keys():
  """Of all papers: those with a config, those with a check."""
  return sorted({p.stem for folder in ("configs", "experiments")
                 for p in (ROOT / folder / "papers").glob("*.py")} - {"__init__"})


def check_of(key):
  """The module of a check, or None."""
  if not (ROOT / "experiments/papers" / f"{key}.py").exists(): return None
  return importlib.import_module(f"experiments.papers.{key}")


def paper_of(key):
  """PAPER of a key."""
  if (ROOT / "configs/papers" / f"{key}.py").exists():
    return importlib.import_module(f"configs.papers.{key}").PAPER
  return check_of(key).PAPER


def run(key, seeds):
  """The record of a check."""
  start = time.perf_counter()
  effects = [float(e) for e in check_of(key).effects(tuple(range(seeds)))]
  return dict(key=key, seen=seen(effects), effects=effects,
              seconds=round(time.perf_counter() - start, 1))


def table(records):
  """docs/papers.md from {key: record}."""
  found = [r["seen"] for r in records.values()]
  lines = [
      "# Papers and what was seen of their claims", "",
      "Made by `python -m experiments.claims --out docs/papers.jsonl --docs "
      "docs/papers.md`. A check is `experiments/papers/<key>.py`, on worlds of seconds: "
      "tables of logits, small reward models. It shows the direction of a claim "
      "there or fails to, and says nothing about its size in language models. Effect: "
      "mean over seeds with its 95% interval; above 0 is the direction claimed.", "",
      f"{len(keys())} papers: " + ", ".join(
          f"{found.count(s)} {s}" for s in ("confirmed", "not seen", "opposite"))
      + f", {len(keys()) - len(found)} without a check.", "",
      "| paper | arXiv | config | claim | measured | seen | seeds | effect |",
      "| --- | --- | --- | --- | --- | --- | --- | --- |"]
  for key in keys():
    paper, check = paper_of(key), check_of(key)
    config = f"`{key}`" if (ROOT / "configs/papers" / f"{key}.py").exists() else ""
    claim = paper["claims"][check.CLAIM if check else 0]
    row = [paper["title"], paper["arxiv"], config, claim]
    if key in records:
      r = records[key]
      mean, low, high = interval(r["effects"])
      row += [check.MEASURE, r["seen"], str(len(r["effects"])),
              f"{mean:.3g} [{low:.3g}, {high:.3g}]"]
    else:
      row += ["", "no check", "", ""]
    lines.append("| " + " | ".join(x.replace("|", "\\|") for x in row) + " |")
  lines += ["", "Checks whose world or measure was changed after a first outcome, and what was "
            "wrong with it:", ""]
  lines += [f"- {key}: {check.REVISED}" for key in keys()
            if hasattr(check := check_of(key), "REVISED")]
  return "\n".join(lines) + "\n"


def read(path):
  """{key: its newest record} of a file of lines."""
  lines = path.read_text().splitlines() if path.exists() else []
  return {r["key"]: r for r in map(json.loads, lines)}


def main():
  args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  args.add_argument("keys", nargs="*", help="checks to run; none: all")
  args.add_argument("--seeds", type=int, default=5, help="at least 3")
  args.add_argument("--out", type=pathlib.Path, help="JSON lines, a check each; those "
                    "of other checks stay")
  args.add_argument("--docs", type=pathlib.Path, help="table of all that --out holds")
  args = args.parse_args()
  if args.seeds < 3: raise SystemExit(f"--seeds={args.seeds}: must be >= 3.")
  if args.docs and not args.out: raise SystemExit("--docs needs --out.")
  if unknown := [k for k in args.keys if check_of(k) is None]:
    raise SystemExit(f"{unknown[0]}: there is no experiments/papers/{unknown[0]}.py.")
  records = read(args.out) if args.out else {}
  for key in args.keys or filter(check_of, keys()):
    records[key] = r = run(key, args.seeds)
    mean, low, high = interval(r["effects"])
    print(f"{key:24} {r['seen']:10} {mean:8.3g} [{low:.3g}, {high:.3g}]  "
          f"{r['seconds']} s  {check_of(key).MEASURE}", flush=True)
    if args.out:
      args.out.write_text("".join(
          json.dumps(records[k]) + "\n" for k in sorted(records)))
  if args.docs: args.docs.write_text(table(records))


if __name__ == "__main__":
  main()
