"""The command `rlx`, errors in one line, and the recorded config of a run."""
import difflib
import functools
import importlib.metadata
import inspect
import json
import os
import sys
from typing import Any, Callable

from absl import flags
from ml_collections import config_flags

from rlx.build import keys, load, own_data, sets, suites
from rlx.core import resolve, version
from rlx.io import compile_cache, preemption, refusals, terminal
from rlx.learner import hosts

# Command -> (function, arguments, what it does). Functions with a CONFIG get it, the run's folder
# if they have a parameter `workdir` (only a folder that is given if it has a default), and as
# keywords their keyword-only parameters; all others get the words of the command line.
COMMANDS = {
    "train": ("rlx.loops.rl:train", "CONFIG", "train a policy, or continue the run in workdir"),
    "evaluate": ("rlx.tools.evaluate:evaluate", "CONFIG",
                 "held-out accuracy of a run, or of model.path; of a scorer or judge, its errors"),
    "sft": ("rlx.loops.sft:train", "CONFIG", "supervised fine-tuning on worked examples"),
    "train_scorer": ("rlx.loops.train_scorer:train", "CONFIG",
                     "train a reward model or a process reward model on stored completions"),
    "preflight": ("rlx.tools.preflight:main", "CONFIG",
                  "compile a run's programs, also for devices that are not here: target=v5e-8"),
    "doctor": ("rlx.tools.doctor:main", "CONFIG",
               "check a config on its first batch, and the metrics of a run in workdir"),
    "data": ("rlx.tools.data:main", "CONFIG",
             "show prompts as the model reads them, their lengths, and what is dropped"),
    "write": ("rlx.tools.write:main", "CONFIG",
              "let a language model write rubrics, instructions or refinements for rows"),
    "view": ("rlx.tools.view:main", "WORKDIR ... [serve=PORT]",
             "write a run's report, one HTML page, or show it while the run goes on"),
    "chat": ("rlx.api:run_chat", "MODEL", "talk to a model, or to the policy of a run's folder"),
    "grid": ("rlx.grids.run:main", "FILE [--workers N ...]",
             "run a grid of configs and seeds, on this machine or with SLURM"),
    "plots": ("rlx.grids.plots:main", "FOLDER [--metrics METRIC ...]",
              "plot the runs of a grid, seeds with intervals"),
    "compare": ("rlx.grids.compare:main", "RUN RUN [--metrics METRIC ...]",
                "keys, versions and metrics in which two runs differ"),
    "convert": ("rlx.tools.convert:main", "source=MODEL to=FOLDER [key=value ...]",
                "convert a run or a model to another format")}
_LOOPS = ("train", "sft", "train_scorer")
# They take rows=FILE and reward=MODULE:FUNCTION.
_WITH_ROWS = ("train", "evaluate", "doctor", "data")
HELP = """\
rlx: reinforcement learning of language models with verifiable and process rewards.

  rlx train quickstart steps=20
  rlx --version

Commands:
{commands}

CONFIG is a config's name, such as quickstart, quickstart:smoke or papers/prime, the path of a .py
file, or the folder of a run, whose config is taken. key=value sets a key of the config, such as
learner.optimizer.lr=1e-4; all keys are explained in {base}.
base=NAME applies the config's method to another model and task: toy, gsm8k, math, code, tools
or domains.
workdir=DIR is the folder of the run; the default is the folder that CONFIG names, or runs/CONFIG in
the current directory (for doctor: none).
rows=FILE and reward=MODULE:FUNCTION (train, evaluate, doctor, data) are rows and a reward of your
own; rows=NAME is a public set such as gsm8k, as is prompts.source=NAME. columns.prompt=COLUMN and
columns.answer=COLUMN say what FILE calls the columns that are read.
scorer=NAME or judge=NAME (evaluate) measures a scorer or judge on rows=FILE of completions whose
worth is known.
suite=math, code or reason (evaluate) measures named benchmarks instead of the held-out prompts.
hosts=auto or hosts=ADDRESS:PORT,COUNT,INDEX starts one of several processes.
"""


def main(*command: str) -> None:
  """Runs the command line `rlx COMMAND ...`, or `COMMAND ...` after the words given.

  An error in the command line or the config ends the program with one line and exit code 2, and
  with 1 if what the run depends on fails (`refusals.run_refusing`). A run that a signal stops exits
  with 128 and its number, 130 after Ctrl-C and 143 after SIGTERM. Errors of the program itself keep
  their traceback.
  """
  words = [*command, *sys.argv[1:]]
  # As `python -m` does: configs may name functions of modules in the current directory.
  if os.getcwd() not in sys.path and "" not in sys.path: sys.path.insert(0, os.getcwd())
  has_help = words and "--" in COMMANDS.get(words[0], ("", "", ""))[1]  # Of its own.
  if not words or not has_help and any(word in ("-h", "--help", "help") for word in words):
    print(_help(), end="")
    return
  if words[0] in ("-V", "--version", "version"):
    print(f"rlx {version.__version__}, jax {importlib.metadata.version('jax')}, "
          f"Python {sys.version.split()[0]}")
    return
  try:
    call, folder = parse(*words)
  except (flags.Error, OSError, ValueError, LookupError, AttributeError, TypeError,
          ArithmeticError, SyntaxError, RecursionError) as e:
    refusals.refuse(e)
  refusals.run_refusing(call, folder, again="run again to resume from the newest checkpoint.")


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
    if command in keys.RENAMED: near = f": renamed to {keys.RENAMED[command]}"
    raise ValueError(f"no command {command!r}{near}; there are {', '.join(COMMANDS)}.")
  path, arguments, _ = COMMANDS[command]
  fn = resolve.lookup("", path)
  if arguments != "CONFIG": return lambda: fn(*words), None
  has_name = bool(words) and "=" not in words[0]
  values = dict(map(terminal.split_pair, _join_options(words[has_name:])))
  name = words[0] if has_name else values.pop("config", None)
  suite = values.pop("suite", None) if command == "evaluate" else None
  is_judging = command == "evaluate" and not {"scorer", "judge"}.isdisjoint(values)
  if is_judging:
    fn, name = resolve.lookup("", "rlx.tools.judging:evaluate_judge"), name or "base"
    if suite: raise ValueError(f"suite={suite!r}: of a model; a scorer or judge takes rows=FILE.")
  if suite and not name: name = suites.find_config(suite)
  if not name: raise ValueError(f"rlx {command} CONFIG: a config is needed, such as quickstart.")
  given_hosts = values.pop("hosts", None)
  own: dict[str, Any] = {
      key: values.pop(key, None) for key in ("rows", "reward")
      if command in _WITH_ROWS and not is_judging}
  if command in _WITH_ROWS:
    own["columns"] = {key.partition(".")[2]: values.pop(key) for key in list(values)
                      if key.startswith("columns.")}
  parameters = inspect.signature(fn).parameters
  more = {key: values.pop(key) for key, p in parameters.items()
          if p.kind is p.KEYWORD_ONLY and key in values}
  over, given_workdir = values.pop("base", None), values.pop("workdir", None)
  default = "runs/judging" if is_judging and name == "base" else load.default_workdir(name, over)
  # A doctor reads the metrics of a run that is named, not of one that may be there.
  needs_workdir = ("workdir" in parameters
                   and parameters["workdir"].default is inspect.Parameter.empty)
  if is_judging: more["columns"] = own.pop("columns")
  if own.get("columns") and not own["rows"]:
    raise ValueError(f"columns.{next(iter(own['columns']))}: only with rows=FILE.")
  if is_set := sets.find_set(own.get("rows"), "rows") is not None:
    values["prompts.source"] = str(own.pop("rows"))
  if suite and (is_set or any(own.values())):
    raise ValueError(f"suite={suite!r}: without rows and reward; its sets have their own.")
  config = load.load_config(name, over)
  if suite: suites.use_suite(config, suite)
  config = _override(config, values)
  if is_set: own_data.leave_mixture(config, command == "train")
  if any(own.values()):
    folder = given_workdir or (name if default == name else None)
    config, default = _use_own(config, command, folder, default, **own)
  elif default != name and command in _LOOPS:
    default = load.find_free_workdir(default, config)
  workdir = given_workdir or (default if needs_workdir or default == name else None)
  if workdir: load.check_workdir(workdir)
  if given_hosts is not None: hosts.start(given_hosts)

  def call():
    # The default cache folder is next to the workdir; without a workdir there is no default.
    if workdir or config.compile_cache: compile_cache.keep_compiled(config.compile_cache, workdir)
    if workdir != given_workdir:
      print(f"rlx: the run's folder is {workdir}; workdir=DIR names another.", flush=True)
    made = fn(*[config, workdir] if workdir and "workdir" in parameters else [config], **more)
    if made is None and (number := preemption.Notice.stopped_by): sys.exit(128 + number)

  return call, workdir


def _use_own(config, command, workdir, default, rows=None, reward=None, columns=None):
  """(the config with the rows of a file or data set, and the reward MODULE:FUNCTION; workdir)"""
  if reward is not None:
    if ":" not in reward: raise ValueError(f"reward={reward!r}: MODULE:FUNCTION of a module here.")
    reward = resolve.lookup("", reward, "reward")
  train, held_out = (None, rows) if command == "evaluate" else (rows, None)
  return own_data.prepare(config, train, held_out, reward, None, None, workdir, {},
                          columns=columns, learns=command == "train", default=default)


def _join_options(words):
  """The words, with `--key value` as `--key=value`."""
  joined: list[str] = []
  for word in words:
    is_value = joined and joined[-1].startswith("--") and "=" not in joined[-1]
    if is_value and not word.startswith("--") and "=" not in word: joined[-1] += f"={word}"
    else: joined.append(word)
  return joined


def _override(config, values):
  """The config with keys set to the values that texts stand for, the source of prompts first."""
  values = sets.change_source(config, values)
  for key, value in values.items():
    keys.check_exists(config, key.partition("[")[0])
    if keys.is_named_section(key):
      first = keys.base.first_key(key.rpartition(".")[0])
      raise ValueError(f"{key}={value!r}: a section of keys, such as {key}.{first}.")
    keys.open_source(config, key)
    *sections, name = key.split(".")
    if keys.is_open(key) and name not in (
        options := functools.reduce(lambda at, part: at[part], sections, config)):
      with config.unlocked(): options[name] = _parse(value)  # With the type of this value.
  argv = ["rlx", *(f"--config.{key}={value}" for key, value in values.items())]
  parsed = flags.FlagValues()
  config_flags.DEFINE_config_dict("config", config, flag_values=parsed, sys_argv=argv)
  parsed(argv)
  return parsed.config.copy_and_resolve_references()


def _parse(text):
  """The switch or number that a text stands for, else the text."""
  try:
    return json.loads(text.lower() if text in ("True", "False") else text)
  except ValueError:
    return text


def _help():
  usage = lambda name, arguments: (
      f"  rlx {name} {arguments}" + " [key=value ...]" * (arguments == "CONFIG"))
  return HELP.format(base=load.config_file("base"), commands="\n".join(
      f"{usage(name, arguments)}\n      {text}"
      for name, (_, arguments, text) in COMMANDS.items()))
