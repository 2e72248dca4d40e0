"""Families of tests/io/fuzz.py: workdirs, checkpoints and flags."""
import importlib
import json
import math
import os
import shutil
import sys

import matplotlib.pyplot  # pylint: disable=unused-import
import numpy as np

from tests import conftest  # Devices, before jax starts. pylint: disable=unused-import
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
from tests.io import fuzz

STATE = {"a": np.arange(4.0), "b": np.zeros((2, 3), np.float32)}
ACCURACY = dict(mean=0.5, low=0.4, high=0.6)


def start_run(folder):
  """What a run of four steps leaves, without its checkpoints."""
  cli.record(base.get_config(), folder, device_bytes=2**30)
  writer = io_metrics.Writer(folder)
  row = dict(prompt="3m4=", completion="3#3", finish="eos", tokens=["3#3", ""],
             log_ratio=[0.5, -1.0], beta=0.05, advantages=[1.0, -0.5])
  for step in range(4):
    writer.write(step, {"rollouts/accuracy": 0.25, "seconds/sample": 1.0 + step,
                        "prm/loss": math.nan})
    writer.table(step, [row | dict(verdict=verdict) for verdict in (0.0, 1.0, None)])
  writer.close()
  (folder / "checkpoints" / "3").mkdir(parents=True)
  strict_json.write(folder / "stopped.json", dict(step=3, steps=4))
  strict_json.write(folder / "summary.json", dict(
      before=dict(greedy=ACCURACY), after=dict(greedy=ACCURACY), steps=4, seed=0,
      prm_accuracy=0.5, seconds=dict(total=9.0, to_first_step=1.0)))


def resume(folder):
  """Reads what a start reads of its workdir."""
  recorded = cli.recorded(folder)
  cli.record(base.get_config(), folder, device_bytes=recorded.get("device_bytes"))
  io_metrics.Writer(folder, first_step=3)


def show(folder):
  view.view(folder)
  curves.draw(folder)


def start_checkpoints(folder):
  checkpoints = checkpoint.Checkpoints(folder, max_to_keep=3)
  for step in (1, 2, 3):
    checkpoints.save(step, STATE, dict(step=step, buffer=[], prompts=dict(epoch=1)))
  checkpoints.close()


def go_on(folder):
  """Restores the newest intact checkpoint, which equals one that was saved, and saves another."""
  checkpoints = checkpoint.Checkpoints(folder, max_to_keep=3)
  if (newest := checkpoints.latest) is not None:
    state, host = checkpoints.restore(STATE)
    assert host["step"] == newest and all(np.array_equal(state[k], STATE[k]) for k in STATE)
  checkpoints.save((newest or 0) + 1, STATE, dict(step=(newest or 0) + 1))
  checkpoints.close()


def change_checkpoint(rng, folder):
  """Bytes or JSON of a file of a checkpoint."""
  files = sorted(f for f in folder.rglob("*") if f.is_file() and not f.is_symlink())
  if not files: return "no file is left"
  file = rng.choice(files)
  is_json = file.name in ("CHECKSUMS", "_CHECKPOINT_METADATA", "_METADATA", "metadata")
  change = fuzz.json_of if is_json and rng.random() < 0.7 else fuzz.bytes_of
  return change(str(file.relative_to(folder)))(rng, folder)


def change_folder(rng, folder):
  """Folders of checkpoints: added, removed, renamed, linked, emptied."""
  d = folder / "checkpoints"
  there = sorted(p for p in d.iterdir() if p.name.isdigit() and p.is_dir() and not p.is_symlink())
  name = rng.choice(["0", "4", "7", "007", "-1", "3.5", "9" * 30, "³", "x", "3 copy", "damaged-3",
                     "5.orbax-checkpoint-tmp-1", "1e3", " 8", "3"])
  one, new = rng.choice(there or [d]), d / name
  added = {"folder": new.mkdir, "file": lambda: new.write_text("x"),
           "dangling": lambda: new.symlink_to("nowhere"), "pipe": lambda: os.mkfifo(new)}
  of_another = {"move": lambda: one.rename(new), "copy": lambda: shutil.copytree(one, new)}
  def empty():
    for path in one.iterdir(): shutil.rmtree(path) if path.is_dir() else path.unlink()
  def link():
    one.rename(d / "linked")
    one.symlink_to("linked")
  kinds = {} if os.path.lexists(new) else added | (of_another if there else {})
  if there: kinds |= {"remove": lambda: shutil.rmtree(one), "empty": empty}
  if there and not os.path.lexists(d / "linked"): kinds["link"] = link
  if not kinds: return "nothing"
  kind = rng.choice(sorted(kinds))
  kinds[kind]()
  return f"{kind} {one.name} {name}"


WORDS = [*fuzz.CORPUS["words"], "9" * 5000, "a" * 10_000]


def start_flags(folder):
  (folder / "argv.json").write_text(json.dumps(["--config=configs/quickstart.py", "--workdir=w"]))


def change_flag(rng, folder):
  """One to three flags: keys of the config with any text, and the others."""
  argv = json.loads((folder / "argv.json").read_text())
  config = rng.choice(sorted(p for p in (fuzz.ROOT / "configs").rglob("*.py")
                             if p.stem not in ("__init__", "base")))
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


def check_config(config, workdir):
  """What a command line checks before it reads a model."""
  del workdir
  keys.check(config)
  config_validation.check(config, methods.resolved(config))


def check_flags(folder):
  """A command line whose command is `check_config`."""
  sys.argv = ["rlx", *json.loads((folder / "argv.json").read_text())]
  # Several hosts would wait for each other.
  if any(a.startswith("--hosts") and "," in a for a in sys.argv): return
  os.environ["JAX_COMPILATION_CACHE_DIR"] = str(folder)
  cli.COMMANDS["check"] = (f"{__name__}:check_config", "CONFIG", "")
  cli.main("check")


_LINES = [fuzz.line_of("metrics.jsonl"), fuzz.line_of("completions.jsonl")]
_JSON = ["config.json", "versions.json", "summary.json", "stopped.json"]
_FILES = [*map(fuzz.json_of, _JSON), fuzz.change_kind, *map(fuzz.bytes_of, (
    *_JSON, "metrics.jsonl", "completions.jsonl"))]
FAMILIES = {
    "resume": fuzz.Family(450, start_run, fuzz.one_of(*_LINES, *_FILES), resume),
    "view": fuzz.Family(350, start_run, fuzz.one_of(*_LINES * 3, *_FILES), show),
    "checkpoint": fuzz.Family(600, start_checkpoints, fuzz.one_of(
        change_checkpoint, change_checkpoint, change_folder, fuzz.change_kind), go_on),
    "flags": fuzz.Family(600, start_flags, change_flag, check_flags)}
