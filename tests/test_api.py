"""The command `rlx` and the functions of the package, as users call them."""
import os
import pathlib
import shutil
import subprocess
import sys
import zipfile

import jax
import pytest

ROOT = pathlib.Path(__file__).parent.parent


def run(*words, cwd=ROOT, package=ROOT):
  """`python *words` in a folder, with rlx from another."""
  environment = os.environ | dict(
      PYTHONPATH=str(package), JAX_COMPILATION_CACHE_DIR=jax.config.jax_compilation_cache_dir)
  return subprocess.run([sys.executable, *words], cwd=cwd, env=environment, capture_output=True,
                        text=True)


def test_the_command_explains_itself():
  done = run("-m", "rlx")
  assert done.stdout == run("-m", "rlx", "--help").stdout and done.returncode == 0
  for command in ("train", "evaluate", "sft", "train_prm", "doctor", "view", "convert"):
    assert f"  rlx {command} " in done.stdout


@pytest.mark.parametrize("words, message", [
    (["trian"], "no command 'trian'; did you mean train?; there are train, "),
    (["train"], "rlx train CONFIG: a config is needed"),
    (["train", "steps=3"], "rlx train CONFIG: a config is needed"),
    (["train", "quikstart"], "no config 'quikstart'; did you mean quickstart? There are "),
    (["train", "prime"], "no config 'prime'; did you mean papers/prime? "),
    (["train", "mine.py"], "no config file 'mine.py'"),
    (["train", "quickstart:small"], "config argument 'small': there is smoke"),
    (["train", "quickstart", "--steps=3"], "'--steps=3': written key=value, such as steps=20."),
    (["train", "quickstart", "prm.bata=1"], "prm.bata: no such key; did you mean prm.beta? "),
    (["train", "quickstart", "steps.x=1"], "steps.x: no such key; steps has no keys."),
    (["train", "quickstart", "steps=many"], "flag --config.steps=many: invalid literal for int"),
    (["doctor", "quickstart", "model.path=/nowhere"], "model.path='/nowhere' is missing"),
    (["doctor", "quickstart", "workdir=x"], "workdir: no such key; "),
    (["view"], "rlx view WORKDIR ...: a run's folder is needed."),
    (["view", "/nowhere"], "/nowhere: no config.json there"),
    (["convert", "source=/nowhere", "to=x"], "source='/nowhere' is missing"),
    (["convert", "x"], "'x': written key=value"),
], ids=str)
def test_mistakes_of_the_command_are_one_line(words, message, tmp_path):
  done = run("-m", "rlx", *words, cwd=tmp_path)
  assert done.returncode == 2 and len(done.stderr.splitlines()) == 1
  assert done.stderr.startswith(f"rlx: {message}"), done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
  """A wheel of this checkout, unpacked; the checkout itself stays as it is."""
  copy, site = tmp_path_factory.mktemp("copy"), tmp_path_factory.mktemp("site")
  for name in ("setup.py", "README.md"): shutil.copy(ROOT / name, copy)
  for name in ("rlx", "configs"):
    shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
  code = "from setuptools import build_meta; build_meta.build_wheel('.')"
  subprocess.run([sys.executable, "-c", code], cwd=copy, check=True, capture_output=True)
  with zipfile.ZipFile(next(copy.glob("*.whl"))) as file: file.extractall(site)
  return site


def test_a_wheel_holds_the_package_and_nothing_else(wheel):
  assert [p.name for p in wheel.iterdir() if not p.name.endswith(".dist-info")] == ["rlx"]
  entry_points, = wheel.glob("*.dist-info/entry_points.txt")
  assert "rlx = rlx.__main__:main" in entry_points.read_text()


def test_all_configs_load_from_a_wheel_in_an_empty_folder(wheel, tmp_path):
  code = """
from rlx import api, configs
import pathlib
folder = pathlib.Path(configs.__path__[0])
files = [p for p in folder.rglob("*.py") if p.stem != "__init__"]
for p in files: api.load_config(str(p.relative_to(folder).with_suffix("")))
print(len(files), configs.__file__)"""
  done = run("-c", code, cwd=tmp_path, package=wheel)
  count, file = done.stdout.split()
  assert int(count) > 90 and file == str(wheel / "rlx/configs/__init__.py"), done.stderr


def test_the_quickstart_trains_from_a_wheel_in_an_empty_folder(wheel, tmp_path):
  done = run("-m", "rlx", "train", "quickstart:smoke", "steps=1", cwd=tmp_path, package=wheel)
  assert done.returncode == 0, done.stderr
  assert "the run's folder is runs/quickstart-smoke" in done.stdout
  assert (tmp_path / "runs/quickstart-smoke/summary.json").exists()
