"""Measured lines of the bench -> ratios and Markdown tables."""
import json
import pathlib

from rlx.grids import tables

TASKS = {"gen": ("gen", ""), "ragged": ("gen", "ragged"), "upd": ("upd", ""),
         "e2e": ("e2e", ""), "prime": ("e2e", "prime"), "rloo": ("e2e", "rloo")}
TITLES = {"gen": "Sampling", "ragged": "Sampling, ragged lengths", "upd": "Update",
          "e2e": "GRPO step", "prime": "PRIME step", "rloo": "RLOO step, outcomes only"}
QUIET = 0.15      # Cores that others may use before a line counts as disturbed.

# Sizes where none is given; those of a worker and of the other systems' drivers.
DEFAULTS = {"": dict(batch=32, prompt_len=64, new=128, prompts=8, group=4, beta=0.04),
            "ragged": dict(new=256, group=8),
            "random": dict(batch=64, prompt_len=512, new=512)}


def read(path):
  """The lines of a file that were measured or failed (drive's have the same fields)."""
  return [json.loads(line) for line in pathlib.Path(path).read_text().splitlines() if line.strip()]


def kind(line):
  """The key of TASKS that a line belongs to; other systems' variants are their names."""
  for name, (task, impl) in TASKS.items():
    if (line["task"], line.get("impl", "")) == (task, impl): return name
  return line["task"]


def size(line):
  """What was measured, in tokens; defaults are those of the command line."""
  if "size" in line: return line["size"]
  name = kind(line)
  get = lambda k: line.get(k, DEFAULTS.get(name, {}).get(k, DEFAULTS[""].get(k)))
  rows = (f"{get('prompts')} x {get('group')}" if name not in ("gen", "upd") else str(get("batch")))
  text = f"{rows} x ({get('prompt_len')} + {get('new')})"
  text += f", KL {get('beta')}" if name == "e2e" else ""
  dtype = line.get("dtype", "float32")
  return text if dtype == "float32" else f"{text}, {dtype}"


def key(line):
  """Returns the key of a line.

  Lines with the same key measured the same work by the same system in the same run.
  """
  return (kind(line), line["model"], size(line), line["system"], line.get("micro", 0),
          line.get("run", ""))


def ratios(new, old):
  """{figure: new / old} of the figures that both lines have."""
  def figures(line):
    named = ("median_s", "tok_s", "first_s", "compile_s", "peak_rss_mb", "peak_device_mb")
    options = {k: line.get(k) for k in named}
    for group in ("parts", "stages"):
      if len(line.get(group, ())) > 1: options |= line[group]
    return {k: v for k, v in options.items() if v}
  new, old = figures(new), figures(old)
  return {k: new[k] / old[k] for k in new if k in old}


def compared(new, old):
  """One line of text: new against old."""
  name = " ".join(key(new)[:4])
  if old is None: return f"{name}: not in the earlier file"
  if "failed" in new: return f"{name}: failed"
  return f"{name}, new / {old['time']}: " + ", ".join(
      f"{k} {v:.3f}" for k, v in ratios(new, old).items())


def report(lines):
  """Markdown tables of lines, a section for each machine, the newest first; of several
  lines with one key the last counts. Lines that name no machine, such as those of other
  systems' drivers, belong to the last that is named."""
  named = [line["hardware"] for line in lines if "hardware" in line]
  machines = {}
  for line in lines:
    machine = line.get("hardware", named[-1] if named else "A machine without a name")
    machines.setdefault(machine, {})[key(line)] = line
  text = ["# Performance", "",
          "Made by `python -m experiments.bench --report FILE... --docs FILE` from "
          "measured lines; `experiments/bench/bench.py` says what each task is.", "",
          "| hardware | figures |", "| --- | --- |",
          "| CPUs | this page: measured, beside TRL, Tunix, transformers and torch.compile |",
          "| NVIDIA H200 | [gpu.md](gpu.md): sampling, updates and steps of a 0.5B model, measured on "
          "one |",
          "| TPUs, several GPUs | [scaling.md](scaling.md): memory and work of compiled programs; "
          "nothing has run on them |", "",
          "A size is completions x (prompt tokens + completion tokens), or prompts x "
          "completions x (...) if completions share prompts. The limit is the time that the "
          "necessary matrix products and memory traffic would take at the peak of the machine. "
          "`times rlx` is the median time of a system divided by that of rlx: above 1, rlx is "
          "faster. If not all lines were measured in the same run, the run is in parentheses. A "
          "line is disturbed if other processes used "
          f"more than {QUIET} of a core during a repetition."]
  for machine, newest in reversed(machines.items()):
    text += ["", f"## {machine}", ""]
    text += [f"- {line}" for line in sorted({_origin(line) for line in newest.values()})]
    text += _tables(newest) + episodes(newest.values()) + _cost_of_prime(newest.values())
  return "\n".join(text) + "\n"


def _tables(newest):
  """Returns lines of text with a table for each task of {key: line}."""
  text = []
  for name, title in TITLES.items():
    rows = [line for k, line in newest.items() if k[0] == name]
    if not rows: continue
    # Row by row as first given, rlx's before those it is set against.
    together = lambda line: (*key(line)[:3], line.get("run", ""))
    order = list(dict.fromkeys(together(line) for line in rows))
    rows.sort(key=lambda line: (order.index(together(line)), line["system"] != "rlx"))
    text += ["", f"### {title}", "", tables.markdown(
        ("model", "size", "system", "tokens/s", "median s [min-max]", "split, s", "% of limit",
         "first call s", "peak MB", "times rlx"),
        [_row(line, [r for r in rows if r["system"] == "rlx" and "failed" not in r
                     and together(r) == together(line)]) for line in rows])]
  return text


def episodes(lines):
  """Returns lines of text with the table of experiments/bench/episodes.py."""
  rows = [line for line in lines if line["task"] == "episodes"]
  if not rows: return []
  cells = []
  for line in rows:
    same = [r for r in rows if all(r.get(k) == line.get(k) for k in ("model", "size", "run"))]
    one = [r["tok_s"] for r in same if r["system"] == "one turn"]
    run = f" ({line['run']})" if "run" in line else ""
    cells.append((
        line["model"], line["size"], line["system"] + run, f"{line['tok_s']:.0f}",
        f"{line['tok_s'] / one[0]:.2f}" if one else "",
        f"{line['median_s']:.3g} [{line['min_s']:.3g}-{line['max_s']:.3g}]",
        "" if line["busy"] is None else f"{100 * line['busy']:.0f}%"))
  return ["", "### Episodes", "",
          "`experiments/bench/episodes.py` says what the systems are. Tokens are those of actions.",
          "", tables.markdown(
              ("model", "size", "system", "tokens/s", "of one turn", "median s [min-max]",
               "device busy"), cells)]


def _origin(line):
  versions = ", ".join(f"{k} {v}" for k, v in (line.get("versions") or {}).items())
  return f"{line['system']}, {line.get('time', 'no date')[:10]}: {versions}"


def _row(line, own):
  is_disturbed = max(line.get("other", [0])) > QUIET
  said = [word for word in (line.get("run"), "disturbed" * is_disturbed) if word]
  cells = [line["model"], size(line), line["system"] + f" ({', '.join(said)})" * bool(said)]
  if "failed" in line: return cells + ["failed"] + [""] * 6
  split = line.get("stages") or line["parts"]
  share = line.get("limit_fraction")
  memory_mb = line.get("peak_device_mb") or line.get("peak_rss_mb")
  return cells + [
      f"{line['tok_s']:.0f}",
      f"{line['median_s']:.3g} [{line['min_s']:.3g}-{line['max_s']:.3g}]",
      ", ".join(f"{k} {v:.3g}" for k, v in split.items()) if len(split) > 1 else "",
      f"{100 * share:.0f} ({line['bound']})" if share else "",
      f"{line['first_s']:.1f}" if line.get("first_s") else "",
      f"{memory_mb:.0f}" if memory_mb else "",
      f"{line['median_s'] / own[-1]['median_s']:.2f}" if own else ""]


def _cost_of_prime(lines):
  """PRIME's seconds over those of the outcome-only step of the same size."""
  seconds = {(kind(l), l["model"], size(l)): l["median_s"] for l in lines
             if l["system"] == "rlx" and "failed" not in l}
  rows = [(model, text, f"{s / seconds['rloo', model, text]:.2f}")
          for (name, model, text), s in seconds.items()
          if name == "prime" and ("rloo", model, text) in seconds]
  if not rows: return []
  return ["", "### What PRIME costs", "",
          tables.markdown(("model", "size", "PRIME step / RLOO step"), rows)]
