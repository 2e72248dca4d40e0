"""Where compiled programs are kept between runs, and what a run was."""
import json
import os
import pathlib
import re
import subprocess
import sys

import jax
import pytest

import rlx
from configs import base
from rlx import cli
from rlx.core import version
from rlx.io import compile_cache, hub, refusals
from rlx.loops import record as record_lib, rl

ROOT = pathlib.Path(__file__).parent.parent


@pytest.fixture
def updates(monkeypatch):
  """What keep_compiled tells jax; the tests' own cache stays as it is."""
  told = {}
  monkeypatch.setattr(jax.config, "update", told.__setitem__)
  monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
  return told


@pytest.mark.parametrize("setting, folder", [
    (None, ".jax_cache"), ("elsewhere", "elsewhere"), ("off", None), ("", None)])
def test_the_folder_is_beside_the_workdir_or_as_set(
    updates, tmp_path, monkeypatch, setting, folder):
  monkeypatch.chdir(tmp_path)
  compile_cache.keep_compiled(setting, tmp_path / "run")
  cache_dir = updates.get("jax_compilation_cache_dir")
  assert (cache_dir and pathlib.Path(cache_dir).absolute()) == (folder and tmp_path / folder)
  assert [p.name for p in tmp_path.iterdir()] == ([folder] if folder else [])


def test_the_environment_wins(updates, tmp_path, monkeypatch):
  monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", "/mine")
  compile_cache.keep_compiled(str(tmp_path / "c"), tmp_path / "run")
  assert not updates and not list(tmp_path.iterdir())


def test_a_place_that_cannot_be_written_is_a_line_not_a_failure(updates, tmp_path, capsys):
  (tmp_path / "file").write_text("")
  compile_cache.keep_compiled(str(tmp_path / "file" / "cache"), tmp_path / "run")
  assert not updates
  lines = capsys.readouterr().err.splitlines()
  assert len(lines) == 1 and "compile_cache=" in lines[0] and "Not a directory" in lines[0]


def test_refuses_what_is_no_folder(updates, tmp_path):
  with pytest.raises(ValueError, match="compile_cache=3: a folder, off or None"):
    compile_cache.keep_compiled(3, tmp_path)


def test_a_second_process_reads_what_the_first_compiled(tmp_path):
  code = f"""
import jax
from rlx.io import compile_cache
hits = []
jax.monitoring.register_event_listener(
    lambda name, **_: hits.append(name) if name.endswith("cache_hits") else None)
compile_cache.keep_compiled(None, {str(tmp_path / 'run')!r})
jax.jit(lambda x: x * 2 + 1)(1.0)
print(len(hits))"""
  env = {k: v for k, v in os.environ.items() if k != "JAX_COMPILATION_CACHE_DIR"}
  hits = [int(subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=env, check=True,
                             capture_output=True, text=True).stdout) for _ in range(2)]
  assert hits[0] == 0 and hits[1] > 0


@pytest.mark.parametrize("style", [
    ["train", "quickstart:smoke", "workdir={}", "seed=3", "log.writers=wandb", "lora.rank=2"],
    ["--config=configs/quickstart.py:smoke", "--workdir", "{}", "--config.seed=3",
     "--config.log.writers=wandb", "--config.lora.rank=2"]], ids=["rlx", "python -m rlx.train"])
def test_both_forms_of_the_command_line(tmp_path, monkeypatch, style):
  """Each sets keys of any type; what a run was has the words of its command."""
  monkeypatch.setattr(rl, "train", record_lib.record)
  monkeypatch.setattr(compile_cache, "keep_compiled", lambda *args: None)
  words = [word.format(tmp_path / "run") for word in style]
  monkeypatch.setattr(sys, "argv", ["rlx", *words])
  cli.main(*([] if words[0] == "train" else ["train"]))
  config, versions = (json.loads((tmp_path / "run" / f"{name}.json").read_text())
                      for name in ("config", "versions"))
  assert config["seed"] == 3 and config["log"]["writers"] == ["wandb"] and config["steps"] == 2
  assert config["lora"]["rank"] == 2
  assert versions["command"] == " ".join(["rlx", *words])


def test_a_model_of_the_hub_is_that_commit_until_the_run_ends(tmp_path, monkeypatch):
  """What a name means may change between two sittings; a run that has checkpoints says so."""
  commits = {"hf:a/b": "1111", "hf:a/b@1111": "1111", "hf:a/prm": "3333"}
  monkeypatch.setattr(hub, "commit", commits.get)
  c = base.get_config()
  c.model.path = "hf:a/b"
  record = lambda: record_lib.record(c, tmp_path)
  versions = lambda: json.loads((tmp_path / "versions.json").read_text())
  record()
  assert versions()["model.path"] == "1111" and "prm.path" not in versions()
  c.prm.path = "hf:a/prm"
  record()
  assert versions()["prm.path"] == "3333"
  (tmp_path / "checkpoints" / "2").mkdir(parents=True)
  record()
  commits["hf:a/b"] = "2222"
  with pytest.raises(ValueError, match=r"^model.path: .* has checkpoints of commit 1111, now it "
                     "is 2222; append @1111 to the name"):
    record()
  c.model.path = "hf:a/b@1111"  # As it says.
  record()
  c.model.path = "elsewhere"
  with pytest.raises(ValueError, match="model.path='elsewhere': .* 'hf:a/b@1111'"):
    record()


def test_no_file_speaks_to_the_terminal(capsys):
  error = ValueError("a\x1b[31m\x07b\u202e\rc " + "d" * 5000)
  with pytest.raises(SystemExit): refusals.refuse(error)
  said, = capsys.readouterr().err.splitlines()
  assert said.startswith(r"rlx: a\x1b[31m\x07b\u202e") and said.isprintable() and len(said) < 2100


def test_the_version_is_one(capsys, monkeypatch):
  """What `rlx --version` prints, the package says of itself and the newest entry of the changes."""
  monkeypatch.setattr(sys, "argv", ["rlx", "--version"])
  cli.main()
  assert capsys.readouterr().out.startswith(f"rlx {rlx.__version__}, jax {jax.__version__}, ")
  setup = subprocess.run([sys.executable, "setup.py", "--version"], cwd=ROOT, check=True,
                         capture_output=True, text=True)
  assert setup.stdout.split()[-1] == rlx.__version__
  changes, citation = ((ROOT / name).read_text() for name in ("CHANGELOG.md", "CITATION.cff"))
  assert re.findall(r"^## ([0-9.]+)", changes, re.M)[0] == rlx.__version__
  assert re.search(r"^version: (.*)$", citation, re.M)[1] == rlx.__version__


def test_the_repository_has_one_address():
  """Files that are read alone, such as notebooks, repeat the address of rlx/core/version.py."""
  files = [*ROOT.glob("*.*"), *ROOT.glob("docs/*.md"), *ROOT.glob("colab/*"),
           *ROOT.glob(".github/*/*")]
  found = {(path.name, address) for path in files if path.is_file()
           for address in re.findall(r"github(?:\.com)?/([\w.-]+/rlx)\b", path.read_text())}
  assert {address for _, address in found} == {version.ADDRESS.removeprefix("https://github.com/")}
