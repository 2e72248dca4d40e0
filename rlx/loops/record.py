"""Records the config and the versions of a run in its folder."""
import importlib.metadata
import json
import os
import pathlib
import shlex
import subprocess
import sys
from typing import Any

from rlx.build import keys
from rlx.core import options, version
from rlx.io import hub, run_folder, secrets, strict_json
from rlx.learner import hosts

# Keys that cannot change once a run has a checkpoint: its state or its metrics depend on them.
FIXED = ("seed", "model.path", "model.param_dtype", "model.param_update", "lora", "prompts",
         "prm.path", "prm.reference", "teacher.path", "scorers", "rollouts.rehearsal", "eval.split",
         "eval.prompts", "eval.sets")
FREE = ("prompts.per_step",)  # Keys below FIXED that may change nevertheless.
# Sections to which no part can be added either.
NAMED = tuple(f"{path}." for path in keys.base.NAMED)
PACKAGES = ("jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "transformers", "numpy")


def record(config: keys.Config, workdir: str | os.PathLike, *, steps: int | None = None,
           **more: Any) -> dict[str, Any]:
  """Writes config.json and versions.json, and what `compare` finds to changes.jsonl.

  A line {"step", "key", "before", "after"} of changes.jsonl says from which step on a key has
  another value. Of a run that has done all steps, nothing is written.

  Args:
    steps: of the whole run; None: config.steps.
    more: further entries of versions.json.
  Returns:
    the config as nested dicts that JSON can express, without credentials (rlx/io/secrets.py).
  Raises:
    ValueError: as `compare`.
  """
  workdir, steps = pathlib.Path(workdir), config.steps if steps is None else steps
  workdir.mkdir(parents=True, exist_ok=True)
  new, changes, commits = compare(config, workdir, steps)
  step = run_folder.read_step(workdir)
  if not hosts.is_first() or step is not None and step >= steps: return new
  if step is None:
    (workdir / "changes.jsonl").unlink(missing_ok=True)
  else:
    with (workdir / "changes.jsonl").open("a") as f:
      for change in changes: f.write(json.dumps(dict(step=step, **change)) + "\n")
  strict_json.write(workdir / "config.json", new)
  (workdir / "stopped.json").unlink(missing_ok=True)
  strict_json.write(workdir / "versions.json", dict(
      command=shlex.join(secrets.hide_words(sys.argv)), commit=_commit(), **commits, **more,
      rlx=version.__version__, python=sys.version.split()[0],
      **{p: importlib.metadata.version(p) for p in PACKAGES}))
  return new


def compare(config: keys.Config, workdir: pathlib.Path, steps: int
            ) -> tuple[dict[str, Any], list[dict[str, Any]], dict[str, str]]:
  """Compares a config with that of the run in a workdir, and prints the keys that differ.

  Returns:
    (the config as nested dicts that JSON can express, {"key", "before", "after"} of the keys that
    differ, {key: commit} of models of the Hugging Face hub).
  Raises:
    ValueError: there is a checkpoint, and a key of FIXED has another value or names another
      commit, or another method is named.
  """
  step = run_folder.read_step(workdir)
  commits = {key: commit for key, path in (
      ("model.path", config.model.path), ("prm.path", config.prm.path),
      ("teacher.path", config.teacher.path), *(
          (f"scorers.{name}.path", part.get("path")) for name, part in config.scorers.items()))
             if (commit := hub.commit(path))}
  before = run_folder.read_recorded(workdir)
  for key, commit in commits.items() if step is not None else ():
    if before.get(key, commit) != commit:
      raise ValueError(f"{key}: {workdir} has checkpoints of commit {before[key]}, now it is "
                       f"{commit}; append @{before[key]} to the name.")
  new = secrets.hide(json.loads(json.dumps(config.to_dict(), sort_keys=True, default=list)))
  if not (workdir / "config.json").exists(): return new, [], commits
  old = options.flatten(keys.rename_sections(run_folder.read_config(workdir)))
  now = options.flatten(new)
  changed = [k for k in sorted(old.keys() | now.keys()) if old.get(k) != now.get(k)]
  for key in changed:
    is_same = key in commits and before.get(key) == commits[key]
    is_known = key in old or key.startswith(NAMED)
    if step is not None and is_known and _is_fixed(key) and not is_same:
      raise ValueError(f"{key}={now.get(key)!r}: {workdir} has checkpoints of a run with "
                       f"{old.get(key)!r}; use that or another --workdir.")
  if step is not None and (others := keys.find_other_methods(old, now)):
    key = others[0]
    raise ValueError(f"{key}={now.get(key)!r}: {workdir} has checkpoints of a run with "
                     f"{old.get(key)!r}, and one record cannot be that of two methods; name "
                     "another workdir.")
  changes = [dict(key=key, before=old.get(key), after=now.get(key)) for key in changed]
  is_done = step is not None and step >= steps
  for change in changes if hosts.is_first() else ():
    print("rlx: {key} was {before!r} in this workdir, now {after!r}".format(**change)
          + (f", and nothing is trained with it: all {steps} steps are done." if is_done
             else "."), file=sys.stderr)
  return new, changes, commits


def _is_fixed(key: str) -> bool:
  return key not in FREE and any(key == f or key.startswith(f + ".") for f in FIXED)


def leave(step: int, steps: int, workdir: pathlib.Path) -> None:
  """Reports a run that stops before its last step and how to resume it; writes stopped.json."""
  if not hosts.is_first(): return
  strict_json.write(workdir / "stopped.json", dict(step=step, steps=steps))
  print(f"rlx: step {step} of {steps} is saved in {workdir}/checkpoints; the same command "
        "resumes from it.", file=sys.stderr)


def _commit() -> str | None:
  """Returns the git commit of this code, with + if files were modified; None outside git."""
  here = pathlib.Path(__file__).parent
  def git(*args: str) -> str | None:
    done = subprocess.run(["git", "-C", here, *args], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None
  commit = git("rev-parse", "HEAD")
  return commit and commit + ("+" if git("status", "--porcelain") else "")
