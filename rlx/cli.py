"""The command `rlx`, errors in one line, and the recorded config of a run."""
import difflib
import errno
import importlib.metadata
import inspect
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import traceback
from typing import Any, Callable, NoReturn

from absl import flags
import jax
from ml_collections import config_flags

from rlx import api
from rlx import keys
from rlx.core import resolve
from rlx.io import hub
from rlx.io import strict_json
from rlx.io import terminal
from rlx.learner import hosts

Path = str | os.PathLike
# Command -> (function, arguments, what it does). Functions with a CONFIG get it, the run's folder
# if they have a parameter `workdir` (only a folder that is given if it has a default), and as
# keywords their keyword-only parameters; all others get the words of the command line.
COMMANDS = {
    "train": ("rlx.loops.rl:train", "CONFIG", "train a policy, or continue the run in workdir"),
    "evaluate": ("rlx.tools.evaluate:evaluate", "CONFIG",
                 "held-out accuracy of a run, or of model.path"),
    "sft": ("rlx.loops.sft:train", "CONFIG", "supervised fine-tuning on worked examples"),
    "train_prm": ("rlx.loops.train_prm:train", "CONFIG", "train a process reward model alone"),
    "preflight": ("rlx.tools.preflight:main", "CONFIG",
                  "compile a run's programs, also for devices that are not here: target=v5e-8"),
    "doctor": ("rlx.tools.doctor:main", "CONFIG",
               "check a config on its first batch, and the metrics of a run in workdir"),
    "view": ("rlx.tools.view:main", "WORKDIR ...", "write a run's report, one HTML page"),
    "convert": ("rlx.tools.convert:main", "source=MODEL to=FOLDER [key=value ...]",
                "convert a run or a model to another format"),
}
HELP = """\
rlx: reinforcement learning of language models with verifiable and process rewards.

  rlx train quickstart steps=20

Commands:
{commands}

CONFIG is a config's name, such as quickstart, quickstart:smoke or papers/prime, the path of a .py
file, or the folder of a run, whose config is taken. key=value sets a key of the config, such as
learner.optimizer.lr=1e-4; all keys are explained in {base}.
workdir=DIR is the folder of the run; the default is the folder that CONFIG names, or runs/CONFIG in
the current directory (for doctor: none).
hosts=auto or hosts=ADDRESS:PORT,COUNT,INDEX starts one of several processes.
"""
# Keys that cannot change once a run has a checkpoint: its state or its metrics depend on them.
FIXED = ("seed", "model.path", "model.param_dtype", "model.param_update", "lora", "prompts",
         "prm.path", "prm.reference", "rollouts.rehearsal", "eval.split", "eval.prompts")
FREE = ("prompts.per_step",)  # Keys below FIXED that may change nevertheless.
PACKAGES = ("jax", "jaxlib", "flax", "optax", "orbax-checkpoint", "transformers",
            "numpy")


def main(*command: str) -> None:
  """Runs the command line `rlx COMMAND ...`, or `COMMAND ...` after the words given.

  An error in the command line or the config ends the program with one line and exit code 2.
  Errors of the program itself keep their traceback.
  """
  words = [*command, *sys.argv[1:]]
  # As `python -m` does: configs may name functions of modules in the current directory.
  if os.getcwd() not in sys.path and "" not in sys.path: sys.path.insert(0, os.getcwd())
  if not words or any(word in ("-h", "--help", "help") for word in words):
    print(_help(), end="")
    return
  try:
    call, folder = parse(*words)
  except (flags.Error, OSError, ValueError, LookupError, AttributeError, TypeError,
          ArithmeticError, SyntaxError, RecursionError) as e:
    refuse(e)
  run(call, folder, again="run again to resume from the newest checkpoint.")


def parse(command: str, *words: str) -> tuple[Callable[[], Any], str | None]:
  """(function without arguments, workdir or None) of a command line.

  Words are written key=value. Leading dashes and `config.` are left out, so that the flags
  --config=FILE, --workdir=DIR and --config.KEY=VALUE are accepted too.

  Raises:
    ValueError: there is no such command, config or key, or a word is not of this form; also
      the errors that `main` lists.
  """
  if command not in COMMANDS:
    near = "".join(f"; did you mean {x}?" for x in difflib.get_close_matches(command, COMMANDS, 1))
    raise ValueError(f"no command {command!r}{near}; there are {', '.join(COMMANDS)}.")
  path, arguments, _ = COMMANDS[command]
  if arguments != "CONFIG":
    fn = resolve.lookup("", path)
    return lambda: fn(*words), None
  has_name = bool(words) and "=" not in words[0]
  values = dict(map(pair, _joined(words[has_name:])))
  name = words[0] if has_name else values.pop("config", None)
  if not name: raise ValueError(f"rlx {command} CONFIG: a config is needed, such as quickstart.")
  given_hosts = values.pop("hosts", None)
  fn = resolve.lookup("", path)
  parameters = inspect.signature(fn).parameters
  more = {key: values.pop(key) for key, p in parameters.items()
          if p.kind is p.KEYWORD_ONLY and key in values}
  given_workdir, default = values.pop("workdir", None), api.default_workdir(name)
  # A doctor reads the metrics of a run that is named, not of one that may be there.
  needs_workdir = "workdir" in parameters and parameters["workdir"].default is inspect.Parameter.empty
  workdir = given_workdir or (default if needs_workdir or default == name else None)
  config = _override(api.load_config(name), values)
  if given_hosts is not None: hosts.start(given_hosts)

  def call():
    # The default cache folder is next to the workdir; without a workdir there is no default.
    if workdir or config.compile_cache: keep_compiled(config.compile_cache, workdir)
    if workdir != given_workdir:
      print(f"rlx: the run's folder is {workdir}; workdir=DIR names another.", flush=True)
    fn(*[config, workdir] if workdir and "workdir" in parameters else [config], **more)

  return call, workdir


def _joined(words):
  """The words, with `--key value` as `--key=value`."""
  joined: list[str] = []
  for word in words:
    is_value = joined and joined[-1].startswith("--") and "=" not in joined[-1]
    if is_value and not word.startswith("--") and "=" not in word: joined[-1] += f"={word}"
    else: joined.append(word)
  return joined


def pair(word: str) -> tuple[str, str]:
  """(key, value) of a word key=value of a command line."""
  key, equals, value = word.partition("=")
  key = key.lstrip("-").removeprefix("config.")
  if not equals or not key: raise ValueError(f"{word!r}: written key=value, such as steps=20.")
  return key, value


def _override(config, values):
  """The config with keys set to the values that texts stand for."""
  for key in values:
    keys.check_exists(config, key.partition("[")[0])
  argv = ["rlx", *(f"--config.{key}={value}" for key, value in values.items())]
  parsed = flags.FlagValues()
  config_flags.DEFINE_config_dict("config", config, flag_values=parsed, sys_argv=argv)
  parsed(argv)
  return parsed.config.copy_and_resolve_references()


def _help():
  usage = lambda name, arguments: (
      f"  rlx {name} {arguments}" + " [key=value ...]" * (arguments == "CONFIG"))
  return HELP.format(base=api.config_file("base"), commands="\n".join(
      f"{usage(name, arguments)}\n      {text}"
      for name, (_, arguments, text) in COMMANDS.items()))


def run(call: Callable[[], Any], folder: Path | None = None, *, again: str) -> None:
  """Runs call(); an error that the user can fix ends the program with one line and exit code 2.

  Args:
    folder: the path that a message about the disk names if the error has none.
    again: the end of a message about the disk: what was kept, or how to continue.
  """
  try:
    call()
  except OSError as e:
    if e.errno not in _DISK: _end(e)
    refuse(f"{e.filename or folder}: {e.strerror}; {again}")
  except ValueError as e:
    if not _is_raised_here(e): _end(e)
    refuse(e)
  except BaseException as e:  # pylint: disable=broad-exception-caught
    _end(e)


# Disk full, quota, read-only, no permission, read errors, or a file where a folder is expected.
_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO,
         errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG)


def _end(error):
  """Raises the error; one process of several prints it and exits, so that the others end too."""
  if isinstance(error, SystemExit) or not jax.distributed.is_initialized(): raise error
  traceback.print_exception(error)
  sys.stderr.flush()
  os._exit(1)  # A regular exit would wait for all other processes.


def refuse(error: Any) -> NoReturn:
  """Prints an error in one line and exits with code 2.

  Of an error that wraps another, the message of the innermost one is printed.
  """
  # str() of a KeyError is the repr of its argument, also inside another error.
  while isinstance(error, BaseException) and error.args and not isinstance(error, OSError):
    error = error.args[0]
  text = str(error)
  lines = [line.strip() for line in text.splitlines() if line.strip()]
  wrapped = any(sign in text for sign in ("Traceback", "Failed loading"))
  print("rlx: " + terminal.line(lines[-1] if wrapped else " ".join(lines)), file=sys.stderr,
        flush=True)
  # A regular exit would wait for all other processes.
  if jax.distributed.is_initialized(): os._exit(2)
  sys.exit(2)


def _is_raised_here(error):
  """Tells whether a `raise` in rlx raised the error; a bug's ValueError keeps its traceback."""
  last = traceback.extract_tb(error.__traceback__)[-1]
  return (last.filename.startswith(str(pathlib.Path(__file__).parent))
          and bool(re.search(r"(^|: )raise ", last.line)))


def keep_compiled(setting: str | None, workdir: Path | None = None) -> None:
  """Enables JAX's compilation cache, so that the next run with the same shapes does not compile.

  The environment variable JAX_COMPILATION_CACHE_DIR takes precedence. If the folder cannot be
  written, a line on stderr says so and the run continues without a cache.

  Args:
    setting: config.compile_cache. None is <workdir>/../.jax_cache, which runs in the same parent
      folder share; "" or "off" disables the cache; any other text is the cache's folder.
    workdir: the run's folder; used only if the setting is None.
  Raises:
    ValueError: the setting is neither text nor None.
  """
  if not isinstance(setting, str | None):
    raise ValueError(f"compile_cache={setting!r}: a folder, off or None.")
  if "JAX_COMPILATION_CACHE_DIR" in os.environ or setting in ("", "off"): return
  folder = pathlib.Path(setting or pathlib.Path(workdir or "").absolute().parent / ".jax_cache")
  try:
    folder.mkdir(parents=True, exist_ok=True)
    tempfile.TemporaryFile(dir=folder).close()
  except OSError as e:
    print(f"rlx: compile_cache={str(folder)!r}: {e.strerror}; this run does not "
          "cache compiled programs.", file=sys.stderr)
    return
  jax.config.update("jax_compilation_cache_dir", str(folder))
  # Small programs are cached too: a run compiles tens of them at its start, 1 MB in total.
  jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
  jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)


def recorded(workdir: str | os.PathLike) -> dict[str, Any]:
  """Returns versions.json of a run that has a checkpoint, {} if it has none.

  Raises:
    ValueError: as `versions`.
  """
  return versions(workdir) if has_checkpoint(workdir) else {}


def versions(workdir: str | os.PathLike) -> dict[str, Any]:
  """Returns versions.json of a run, {} if there is no such file.

  Raises:
    ValueError: the file does not have the entries that `record` writes.
  """
  def problem(entries):
    memory = entries.get("device_bytes")
    if not (memory is None or type(memory) is int and memory > 0):
      return f"device_bytes={memory!r:.40} is no size"
    return next((f"{k}={v!r:.40} is no text" for k, v in entries.items()
                 if k != "device_bytes" and not isinstance(v, str | None)), None)
  path = pathlib.Path(workdir) / "versions.json"
  return _recorded(path, problem) if path.exists() else {}


def run_config(workdir: str | os.PathLike) -> dict[str, Any]:
  """Returns config.json of a run, as nested dicts.

  Raises:
    ValueError: the file is not the config of a run.
  """
  def problem(entries):
    kinds = {"seed": int, "steps": int, "model.path": str | None, "prm.loss.name": str}
    values = keys.flat(entries)
    return next((f"it has no {key}" for key, kind in kinds.items()
                 if not isinstance(values.get(key, ()), kind)), None)
  return _recorded(pathlib.Path(workdir) / "config.json", problem)


def _recorded(path, problem):
  """Reads the JSON object in a file of a workdir; `problem` says what is wrong with it, or None."""
  try:
    entries = strict_json.read(path)
    if message := problem(entries): raise ValueError(f"{path}: {message}.")
  except ValueError as e:
    raise ValueError(f"{str(e).rstrip('.')}; remove the file to resume without checking whether "
                     "the config or the versions have changed.") from None
  return entries


def has_checkpoint(workdir: str | os.PathLike) -> bool:
  """Tells whether the run in a workdir has a checkpoint."""
  return any(p.name.isdigit() for p in (pathlib.Path(workdir) / "checkpoints").glob("*"))


def record(config: keys.Config, workdir: str | os.PathLike, **more: Any) -> dict[str, Any]:
  """Writes config.json and versions.json; prints the keys that changed since the last start.

  Args:
    more: further entries of versions.json.
  Returns:
    the config as nested dicts that JSON can express.
  Raises:
    ValueError: there is a checkpoint, and a key of FIXED has another value or names another
      commit.
  """
  workdir = pathlib.Path(workdir)
  workdir.mkdir(parents=True, exist_ok=True)
  path = workdir / "config.json"
  is_resume = has_checkpoint(workdir)
  commits = {key: commit for key, path in (
      ("model.path", config.model.path), ("prm.path", config.prm.path))
             if (commit := hub.commit(path))}
  before = recorded(workdir)
  for key, commit in commits.items() if is_resume else ():
    if before.get(key, commit) != commit:
      raise ValueError(f"{key}: {workdir} has checkpoints of commit {before[key]}, now it is "
                       f"{commit}; append @{before[key]} to the name.")
  new = json.loads(json.dumps(config.to_dict(), sort_keys=True, default=list))
  if path.exists():
    old, now = keys.flat(run_config(workdir)), keys.flat(new)
    changed = [k for k in sorted(old.keys() | now.keys()) if old.get(k) != now.get(k)]
    for key in changed:
      is_same = key in commits and before.get(key) == commits[key]
      if is_resume and key in old and _is_fixed(key) and not is_same:
        raise ValueError(f"{key}={now.get(key)!r}: {workdir} has checkpoints of a run with "
                         f"{old[key]!r}; use that or another --workdir.")
    for key in changed if hosts.is_first() else ():
      print(f"rlx: {key} was {old.get(key)!r} in this workdir, now "
            f"{now.get(key)!r}.", file=sys.stderr)
  if not hosts.is_first(): return new
  strict_json.write(path, new)
  (workdir / "stopped.json").unlink(missing_ok=True)
  strict_json.write(workdir / "versions.json", dict(
      command=shlex.join(sys.argv), commit=_commit(), **commits, **more,
      python=sys.version.split()[0], **{p: importlib.metadata.version(p) for p in PACKAGES}))
  return new


def _is_fixed(key):
  return key not in FREE and any(key == f or key.startswith(f + ".") for f in FIXED)


def leave(step: int, steps: int, workdir: pathlib.Path) -> None:
  """Reports a run that stops before its last step and how to resume it; writes stopped.json."""
  if not hosts.is_first(): return
  strict_json.write(workdir / "stopped.json", dict(step=step, steps=steps))
  print(f"rlx: step {step} of {steps} is saved in {workdir}/checkpoints; the same command "
        "resumes from it.", file=sys.stderr)


def _commit():
  """Returns the git commit of this code, with + if files were modified; None outside git."""
  here = pathlib.Path(__file__).parent
  def git(*args):
    done = subprocess.run(["git", "-C", here, *args], capture_output=True,
                          text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None
  commit = git("rev-parse", "HEAD")
  return commit and commit + ("+" if git("status", "--porcelain") else "")


def interval_text(interval: dict) -> str:
  """Formats a mean and its interval: 0.500 [0.400, 0.600]."""
  return "{mean:.3f} [{low:.3f}, {high:.3f}]".format(**interval)


def report(summary: dict, workdir: pathlib.Path) -> None:
  """Prints the accuracies and times of a run and the files in its workdir."""
  print("\nheld-out accuracy, 95% interval")
  for name in ("greedy", "sampled"):
    before, after = (interval_text(summary[when][name]) for when in ("before", "after"))
    print(f"  {name:8} {before} -> {after}")
  if summary["prm_accuracy"] is not None:
    print(f"  PRM ranks {summary['prm_accuracy']:.3f} of pairs right "
          "(last 10 steps)")
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
