"""The command `rlx`, also as `python -m rlx`; without arguments it explains itself."""
import difflib
import os
import runpy
import sys

from rlx import api

# Command -> (module that is run, arguments, what it does).
COMMANDS = {
    "train": ("rlx.train", "CONFIG", "train a policy, or continue the run in workdir"),
    "evaluate": ("rlx.tools.evaluate", "CONFIG", "held-out accuracy of a run, or of model.path"),
    "sft": ("rlx.loops.sft", "CONFIG", "supervised fine-tuning on worked examples"),
    "train_prm": ("rlx.loops.train_prm", "CONFIG", "train a process reward model alone"),
    "doctor": ("rlx.tools.doctor", "CONFIG", "check a config on its first batch, without training"),
    "view": ("rlx.tools.view", "WORKDIR ...", "write a run's report, one HTML page"),
    "convert": ("rlx.tools.convert", "source=MODEL to=FOLDER [key=value ...]",
                "convert a run or a model to another format"),
}
HELP = """\
rlx: reinforcement learning of language models with verifiable and process rewards.

  rlx train quickstart steps=20

Commands:
{commands}

CONFIG is a config's name, such as quickstart, quickstart:smoke or papers/prime, or the path of
a .py file. key=value sets a key of the config, such as learner.optimizer.lr=1e-4; all keys are
explained in {base}.
workdir=DIR is the folder of the run; the default is runs/CONFIG in the current directory.
"""


def main() -> None:
  """Runs the command that sys.argv names."""
  words = sys.argv[1:]
  # As `python -m` does: configs may name functions of modules in the current directory.
  if os.getcwd() not in sys.path and "" not in sys.path: sys.path.insert(0, os.getcwd())
  if not words or any(word in ("-h", "--help", "help") for word in words):
    print(_help(), end="")
    return
  try:
    module, flags = _parse(*words)
  except (ValueError, SyntaxError) as e:
    print("rlx: " + " ".join(str(e).split()), file=sys.stderr)
    sys.exit(2)
  sys.argv = [f"rlx {words[0]}", *flags]
  runpy.run_module(module, run_name="__main__")


def _help():
  def usage(name, arguments):
    return f"rlx {name} {arguments}" + " [key=value ...]" * (arguments == "CONFIG")
  shown = [(usage(name, arguments), text) for name, (_, arguments, text) in COMMANDS.items()]
  return HELP.format(base=api.config_file("base"), commands="\n".join(
      f"  {command}\n      {text}" for command, text in shown))


def _parse(command, *words):
  """(module, its flags) of a command line.

  Raises:
    ValueError: there is no such command, config or key, or a word is not of this form.
  """
  if command not in COMMANDS:
    raise ValueError(f"no command {command!r}{_near(command, COMMANDS)}; there are "
                     f"{', '.join(COMMANDS)}.")
  module, arguments, _ = COMMANDS[command]
  if command == "view":
    if not words: raise ValueError(f"rlx view {arguments}: a run's folder is needed.")
    return module, list(words)
  if arguments == "CONFIG" and (not words or "=" in words[0]):
    raise ValueError(f"rlx {command} CONFIG: a config is needed, such as quickstart.")
  if command == "convert": return module, [f"--{_pair(word)}" for word in words]
  name, *words = words
  file = api.config_file(name)
  values = dict(_pair(word).split("=", 1) for word in words)
  flags = [f"--config={file}"]
  if "hosts" in values: flags.append(f"--hosts={values.pop('hosts')}")
  workdir = values.pop("workdir", None) if command != "doctor" else ""
  config = api.load_config(name)
  for key in values: api.check_key(config, key.partition("[")[0])
  if workdir is None:
    workdir = api.default_workdir(name)
    print(f"rlx: the run's folder is {workdir}; workdir=DIR names another.", flush=True)
  if workdir: flags.append(f"--workdir={workdir}")
  return module, flags + [f"--config.{key}={value}" for key, value in values.items()]


def _pair(word):
  key, equals, _ = word.partition("=")
  if not equals or not key or key.startswith("-"):
    raise ValueError(f"{word!r}: written key=value, such as steps=20.")
  return word


def _near(name, names):
  return "".join(f"; did you mean {x}?" for x in difflib.get_close_matches(name, names, n=1))


if __name__ == "__main__": main()
