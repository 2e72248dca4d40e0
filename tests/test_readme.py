"""The README's commands name things that exist, and what it promises is there."""
import pathlib
import re
import shlex
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()
BLOCKS = [text for language, text in re.findall(
    r"^```(\w*)\n(.*?)^```$", README, re.S | re.M) if not language]
COMMANDS = [c for block in BLOCKS for line in block.splitlines()
            for c in line.split(" && ") if c.startswith("python -m rlx.")]


def test_the_two_commands_come_first():
  assert len(COMMANDS) == 13
  first = BLOCKS[0].splitlines()
  assert first == [
      "python -m pip install -e . && python -m rlx.train "
      "--config=configs/quickstart.py --workdir=/tmp/rlx/quickstart",
      "python -m pip install -e '.[test]' && python -m pytest"]


@pytest.mark.parametrize("command", [c for c in COMMANDS if "--config" in c])
def test_commands_parse(command, tmp_path):
  """Flags and configs are accepted; the run ends at a file that is not there."""
  command = re.sub(r"\$\([^)]*\)", "MODEL", command)
  words = shlex.split(command)
  assert (ROOT / "rlx" / (words[2].removeprefix("rlx.").replace(".", "/") + ".py")).exists()
  words = [w for w in words if not w.startswith(("--workdir", "--config.model.path"))]
  # sft starts from a random model, so there it is the data that is not there.
  missing = ("--config.prompts.source=nowhere" if words[2] == "rlx.loops.sft" else
             "--config.model.path=/nowhere")
  if words[2] != "rlx.tools.doctor": words.append(f"--workdir={tmp_path}")
  done = subprocess.run(
      [sys.executable, *words[1:], missing], cwd=ROOT, capture_output=True, text=True)
  assert done.returncode == 2, done.stderr
  key, _, value = missing.removeprefix("--config.").partition("=")
  assert done.stderr.strip().splitlines()[-1].startswith(
      f"rlx: {key}={value!r}"), done.stderr


@pytest.mark.parametrize("command", [c for c in COMMANDS if "rlx.tools.convert" in c])
def test_conversions_parse(command, tmp_path):
  words = [w for w in shlex.split(command) if not w.startswith(("--source", "--to", "--model"))]
  done = subprocess.run(
      [sys.executable, *words[1:], "--source=/nowhere", f"--to={tmp_path / 'm'}"], cwd=ROOT,
      capture_output=True, text=True)
  assert done.returncode == 2 and done.stderr.startswith(
      "rlx: source='/nowhere' is missing"), done.stderr


@pytest.mark.parametrize("flags, message", [
    (["--config.prm.bata=1"], "rlx: .*bata"),
    (["--config.steps=many"], "rlx: .*steps"),
    (["--config.prm.order=after"], r"rlx: prm.order='after': one of"),
    (["--config.rollouts.per_prompt=1"], "rlx: rollouts.per_prompt=1: "),
    (["--steps=3"], "rlx: .*steps"),
    (["--config=configs/nope.py"], "rlx: .*No such file.*configs/nope.py"),
    (["--config=configs/papers/prime.py:x"], "rlx: ValueError: prime.py:x: there are"),
    (["--config.prompts.options.opps=M"], "rlx: 'opps'"),
    (["--config.mesh.data=99"], "rlx: mesh: data=99 .* needs 99 devices"),
], ids=str)
def test_mistakes_are_one_line_before_anything_compiles(flags, message, tmp_path):
  done = subprocess.run(
      [sys.executable, "-m", "rlx.train", "--config=configs/quickstart.py",
       f"--workdir={tmp_path}", *flags], cwd=ROOT, capture_output=True, text=True)
  assert done.returncode == 2
  lines = done.stderr.strip().splitlines()
  assert len(lines) == 1 and re.match(message, lines[0]), done.stderr


def test_files_it_speaks_of_exist():
  for name in re.findall(r"`((?:rlx|configs|tests)/[\w./]+?)`", README):
    assert (ROOT / name).exists(), name
  for line in re.findall(r"^  (\w+)/ +\d?[ab]? +", README, re.M):
    assert (ROOT / "rlx" / line).is_dir(), line
