"""Damaged workdirs, checkpoints and flags, as fuzz.py does it for models.

  python -m tests.io.fuzz_runs                          # all families in full
  python -m tests.io.fuzz_runs --share=0.1 checkpoint   # a tenth of the inputs of one
"""
import importlib
import json
import math
import os
import pathlib
import shutil
import sys

import matplotlib.pyplot  # pylint: disable=unused-import
import numpy as np

from tests.io import fuzz  # Devices, before jax starts.
from configs import base
from rlx import cli
from rlx import config_validation
from rlx import keys
from rlx import methods
from rlx.io import checkpoint
from rlx.io import curves
from rlx.io import metrics as io_metrics
from rlx.io import strict_json
from rlx.tools import view

STATE = {"a": np.arange(4.0), "b": np.zeros((2, 3), np.float32)}
ACCURACY = dict(mean=0.5, low=0.4, high=0.6)


# Workdirs.


def start_run(folder):
  """What a run of four steps leaves, but for its checkpoints."""
  cli.record(base.get_config(), folder, device_bytes=2**30)
  writer = io_metrics.Writer(folder)
  for step in range(4):
    writer.write(step, {"rollouts/accuracy": 0.25, "seconds/sample": 1.0 + step, "prm/loss": math.nan})
    writer.table(step, [dict(
        prompt="3m4=", completion="3#3", verdict=verdict, finish="eos", tokens=["3#3", ""],
        log_ratio=[0.5, -1.0], beta=0.05, advantages=[1.0, -0.5]) for verdict in (0.0, 1.0, None)])
  writer.close()
  (folder / "checkpoints" / "3").mkdir(parents=True)
  strict_json.write(folder / "stopped.json", dict(step=3, steps=4))
  strict_json.write(folder / "summary.json", dict(
      before=dict(greedy=ACCURACY), after=dict(greedy=ACCURACY), steps=4, seed=0, prm_accuracy=0.5,
      seconds=dict(total=9.0, to_first_step=1.0)))


def resume(folder):
  """What a start reads of its workdir, and a page shows of it."""
  recorded = cli.recorded(folder)
  cli.record(base.get_config(), folder, device_bytes=recorded.get("device_bytes"))
  io_metrics.Writer(folder, first_step=3)


def show(folder):
  view.view(folder)
  curves.draw(folder)


def change_line(name):
  """A line of a .jsonl: its JSON, its bytes, or another one in its place."""
  def change(rng, folder):
    if not (folder / name).is_file(): return f"{name} is gone"
    lines = (folder / name).read_bytes().splitlines(keepends=True) or [b"\n"]
    at, part = rng.randrange(len(lines)), folder / "line"
    part.write_bytes(lines[at].rstrip(b"\n"))
    try:
      done = rng.choice((fuzz.change_json, fuzz.change_json, fuzz.change_bytes))(rng, part)
    except (ValueError, TypeError):
      done = fuzz.change_bytes(rng, part)
    lines[at] = part.read_bytes() + b"\n" * (rng.random() < 0.9)
    part.unlink()
    if rng.random() < 0.1: lines.insert(rng.randrange(len(lines)), rng.choice(
        (b"\0" * 4096, b"\n", b"[]\n", b'{"step": 1}\n', b"\xff\n")))
    (folder / name).write_bytes(b"".join(lines))
    return f"{name}, line {at + 1}: {done}"
  return change


def other_kind(rng, folder):
  """A file becomes something else: nothing, a folder, a link, a pipe."""
  file = rng.choice(sorted(f for f in folder.rglob("*") if f.is_file()) or [folder])
  if file == folder: return "nothing left"
  file.unlink()
  kind = rng.choice(("gone", "folder", "dangling", "loop", "to /dev/null", "to a folder"))
  if kind == "folder": file.mkdir()
  elif kind == "dangling": file.symlink_to("nowhere")
  elif kind == "loop": file.symlink_to(file.name)
  elif kind == "to /dev/null": file.symlink_to("/dev/null")
  elif kind == "to a folder": file.symlink_to(folder)
  return f"{file.relative_to(folder)}: {kind}"


# Checkpoints.


def start_checkpoints(folder):
  found = checkpoint.Checkpoints(folder, max_to_keep=3)
  for step in (1, 2, 3): found.save(step, STATE, dict(step=step, buffer=[], prompts=dict(epoch=1)))
  found.close()


def go_on(folder):
  """The newest whole one is one that was saved; after it another can be."""
  found = checkpoint.Checkpoints(folder, max_to_keep=3)
  if (newest := found.latest) is not None:
    state, host = found.restore(STATE)
    assert host["step"] == newest and all(np.array_equal(state[k], STATE[k]) for k in STATE)
  found.save((newest or 0) + 1, STATE, dict(step=(newest or 0) + 1))
  found.close()


def change_checkpoint(rng, folder):
  """Bytes or JSON of a file of a checkpoint."""
  files = sorted(f for f in folder.rglob("*") if f.is_file() and not f.is_symlink())
  if not files: return "no files"
  file = rng.choice(files)
  if file.name in ("CHECKSUMS", "_CHECKPOINT_METADATA", "_METADATA", "metadata") and rng.random() < 0.7:
    return fuzz.of_json(str(file.relative_to(folder)))(rng, folder)
  return fuzz.change_bytes(rng, file)


def change_folder(rng, folder):
  """Folders of checkpoints: more, less, named otherwise, linked, emptied."""
  d = folder / "checkpoints"
  there = sorted(p for p in d.iterdir() if p.name.isdigit() and p.is_dir() and not p.is_symlink())
  name = rng.choice(["0", "4", "7", "007", "-1", "3.5", "9" * 30, "³", "x", "3 copy", "damaged-3",
                     "5.orbax-checkpoint-tmp-1", "1e3", " 8", "3"])
  kind = rng.choice(("more", "file", "move", "remove", "empty", "link", "dangling", "copy", "fifo"))
  if not there: kind = "more"
  one = rng.choice(there or [d])
  if kind in ("more", "file", "dangling", "copy", "fifo") and os.path.lexists(d / name): kind = "empty"
  if kind == "more": (d / name).mkdir(exist_ok=True)
  elif kind == "file": (d / name).write_text("x")
  elif kind == "move" and not os.path.lexists(d / name): one.rename(d / name)
  elif kind == "remove": shutil.rmtree(one)
  elif kind == "empty":
    for path in one.iterdir(): shutil.rmtree(path) if path.is_dir() else path.unlink()
  elif kind == "link":
    one.rename(d / "linked")
    one.symlink_to("linked")
  elif kind == "dangling": (d / name).symlink_to("nowhere")
  elif kind == "copy": shutil.copytree(one, d / name)
  elif kind == "fifo": os.mkfifo(d / name)
  return f"{kind} {one.name} {name}"


# Flags.

WORDS = ["nan", "inf", "-inf", "1e999", "-1", "0", "1", "2", "0.5", "1e-300", "1e300", str(2**31), str(2**63),
         "9" * 40, "9" * 5000, "None", "True", "False", "", " ", "a", "()", "(1,)", "('a',)", "(None,)", "(",
         "[]", "{}", "{'a': 1}", "{'name': 'x'}", "{'name': 5}", "{'name': 'group.rloo', 'k': nan}",
         "\udcff", "é", "\n", "*", "[(]", "..", "/dev/null", "http://[", "group.grpo", "policy.cispo",
         "prm.dpo", "filter_groups.with_verdict", "chain.answer", "float64", "cosine", "a" * 10_000]


def start_flags(folder):
  (folder / "argv.json").write_text(json.dumps(["--config=configs/quickstart.py", "--workdir=w"]))


def change_flag(rng, folder):
  """One to three flags: keys of the config with any text, and the others."""
  argv = json.loads((folder / "argv.json").read_text())
  config = rng.choice([p for p in (fuzz.ROOT / "configs").rglob("*.py") if p.stem not in ("__init__", "base")])
  argv[0] = f"--config={config}"
  flat = keys.flat(importlib.import_module(".".join(
      config.relative_to(fuzz.ROOT).with_suffix("").parts)).get_config().to_dict())
  added = []
  for _ in range(rng.choice((1, 1, 2, 3))):
    word, key = rng.choice(WORDS), rng.choice(sorted(flat))
    if rng.random() < 0.1: key = key.rpartition(".")[0] or key  # A section.
    if rng.random() < 0.05: key += rng.choice(("x", ".x", ".", "[0]"))
    added.append(rng.choice((f"--config.{key}={word}",) * 12 + (
        f"--hosts={word}", f"--workdir={word}", f"--config={word}", f"--{key}={word}", word,
        f"--config.{key}", f"--noconfig.{key}", f"--config={config}:{word}")))
  (folder / "argv.json").write_text(json.dumps(argv + added))
  return f"{added!r:.300}"


def check_flags(folder):
  """What a command line says of itself before it reads a model."""
  def loop(config, workdir):
    del workdir
    keys.check(config)
    config_validation.check(config, methods.of(config))
  sys.argv = ["rlx", *json.loads((folder / "argv.json").read_text())]
  if any(a.startswith("--hosts") and "," in a for a in sys.argv): return  # It would wait.
  os.environ["JAX_COMPILATION_CACHE_DIR"] = str(folder)
  cli.main(loop)


_LINES = change_line("metrics.jsonl"), change_line("completions.jsonl")
_FILES = tuple(fuzz.of_json(f"{name}.json") for name in ("config", "versions", "summary", "stopped"))
_BYTES = tuple(fuzz.of_bytes(name) for name in (
    "config.json", "versions.json", "summary.json", "stopped.json", "metrics.jsonl", "completions.jsonl"))
fuzz.FAMILIES = {
    "resume": fuzz.Family(450, start_run, fuzz.one_of(*_LINES, *_FILES, *_BYTES, other_kind), resume),
    "view": fuzz.Family(350, start_run, fuzz.one_of(*_LINES * 3, *_FILES, *_BYTES, other_kind), show),
    "checkpoint": fuzz.Family(600, start_checkpoints, fuzz.one_of(
        change_checkpoint, change_checkpoint, change_folder, other_kind), go_on),
    "flags": fuzz.Family(600, start_flags, change_flag, check_flags)}


if __name__ == "__main__":
  fuzz.main()
