"""The notebooks of colab/: what is committed, the install cell, and each in its smoke form."""
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys

import jax
import pytest

ROOT = pathlib.Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "colab").glob("*.ipynb"))
each = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda p: p.stem)


def code(path):
  return [c for c in json.loads(path.read_text())["cells"] if c["cell_type"] == "code"]


def installs(path):
  """Texts of the cells that install."""
  texts = ["".join(c["source"]) for c in code(path)]
  return [t for t in texts if "pip" in t]


INSTALL = installs(NOTEBOOKS[0])[0]


def test_there_are_seven():
  assert [p.stem[:2] for p in NOTEBOOKS] == ["00", "01", "02", "03", "04", "05", "06"]


@each
def test_is_short_has_no_outputs_and_ends_in_a_check(path):
  cells = json.loads(path.read_text())["cells"]
  assert len(cells) < 25
  assert all(c["outputs"] == [] and c["execution_count"] is None for c in code(path))
  assert cells[-1]["cell_type"] == "code" and "assert" in "".join(cells[-1]["source"])


@each
def test_has_the_one_install_cell(path):
  assert installs(path) == [INSTALL]
  assert "".join(code(path)[0]["source"]) == INSTALL
  assert path.read_text().count("OWNER") == 1


@each
def test_is_valid(path):
  nbformat = pytest.importorskip("nbformat")
  nbformat.validate(nbformat.read(path, as_version=4))


@pytest.fixture
def colab(tmp_path, monkeypatch):
  """Runs the install cell in an empty folder of Colab; returns the commands it ran."""
  commands = []

  def run(words, cwd=None, check=False):
    assert check  # A clone or an installation that fails ends the cell.
    commands.append((words, cwd))
    if words[0] == "git": (pathlib.Path(words[-1]) / "rlx").mkdir(parents=True)

  def start(tpu=False, gpu=False):
    monkeypatch.setenv("COLAB_TPU_1VM", "1" if tpu else "")
    exists = os.path.exists
    monkeypatch.setattr(os.path, "exists", lambda p: gpu if p == "/dev/nvidia0" else exists(p))
    monkeypatch.setattr(subprocess, "run", run)
    space = {}
    exec(INSTALL.replace("OWNER", "someone", 1), space)  # pylint: disable=exec-used
    return commands, space

  monkeypatch.chdir(tmp_path)
  monkeypatch.setattr(sys, "path", list(sys.path))
  monkeypatch.setattr(os, "environ", os.environ.copy())
  for name in ("JAX_COMPILATION_CACHE_DIR", "RLX_SMOKE", "RLX_RUNS"): os.environ.pop(name, None)
  os.environ["COLAB_RELEASE_TAG"] = "release"
  return start


@pytest.mark.parametrize("runtime, extra", [
    (dict(), ""), (dict(gpu=True), "[cuda]"), (dict(tpu=True), "[tpu]")], ids=str)
def test_install_cell_clones_and_installs_for_the_runtime(colab, tmp_path, runtime, extra):
  commands, space = colab(**runtime)
  there = tmp_path / "rlx"
  assert commands == [
      (["git", "clone", "--depth", "1", "https://github.com/someone/rlx", str(there)], None),
      ([sys.executable, "-m", "pip", "install", "--quiet", "-e", f".{extra}"], there)]
  assert pathlib.Path.cwd() == there and sys.path[0] == str(there)
  assert space["RUNS"] == there / "runs" and not space["SMOKE"]
  assert os.environ["JAX_COMPILATION_CACHE_DIR"] == str(there / "runs" / ".jax_cache")


def test_install_cell_after_a_restart_and_in_a_checkout(colab, tmp_path, monkeypatch):
  (tmp_path / "rlx" / "rlx").mkdir(parents=True)
  os.environ["RLX_RUNS"] = str(tmp_path / "drive")
  commands, space = colab()
  assert [words[:4] for words, _ in commands] == [[sys.executable, "-m", "pip", "install"]]
  assert space["RUNS"] == tmp_path / "drive"
  # As Jupyter starts it in a checkout, in the notebook's folder.
  commands.clear()
  monkeypatch.chdir(ROOT / "colab")
  os.environ["RLX_SMOKE"] = "1"
  commands, space = colab()
  assert not commands and pathlib.Path.cwd() == ROOT and space["SMOKE"]


def test_install_cell_touches_nothing_elsewhere(colab, tmp_path, monkeypatch):
  del os.environ["COLAB_RELEASE_TAG"]
  commands, space = colab()  # As from a wheel, in any folder.
  assert not commands and pathlib.Path.cwd() == tmp_path and space["RUNS"] == tmp_path / "runs"
  monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
  with pytest.raises(RuntimeError, match="rlx is not installed: git clone https://.*someone/rlx"):
    colab()


@each
def test_reads_nothing_that_is_in_a_checkout_alone(path):
  source = "".join(line for cell in code(path) for line in cell["source"])
  assert not re.search(r"(from|import) (configs|experiments|tests)\b|configs/\w+\.py", source)


def execute(cells, folder):
  """Runs a notebook in its smoke form, in a process of its own.

  Args:
    folder: for its runs, its kernel and what Jupyter would leave in the home folder.
  Raises:
    nbclient.exceptions.CellExecutionError: a cell failed; has its code and error.
  """
  nbclient = pytest.importorskip("nbclient")
  import jupyter_client  # pylint: disable=g-import-not-at-top
  spec = folder / "kernels" / "here"
  spec.mkdir(parents=True)
  (spec / "kernel.json").write_text(json.dumps(dict(
      argv=[sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
      display_name="here", language="python")))
  specs = jupyter_client.kernelspec.KernelSpecManager(kernel_dirs=[str(folder / "kernels")])
  manager = jupyter_client.AsyncKernelManager(
      kernel_name="here", kernel_spec_manager=specs,
      connection_file=str(folder / "connection.json"))
  environment = os.environ | dict(
      RLX_SMOKE="1", RLX_RUNS=str(folder / "runs"), IPYTHONDIR=str(folder / "ipython"),
      JUPYTER_CONFIG_DIR=str(folder), JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="0",
      JAX_COMPILATION_CACHE_DIR=jax.config.jax_compilation_cache_dir)
  nbclient.NotebookClient(
      cells, km=manager, timeout=1800, startup_timeout=600,
      resources=dict(metadata=dict(path=str(ROOT / "colab")))).execute(
          env=environment, cleanup_kc=True)  # Of a manager that it was given, too.


@each
def test_runs_in_its_smoke_form(path, tmp_path):
  nbformat = pytest.importorskip("nbformat")
  pytest.importorskip("nbclient")
  notebook = nbformat.read(path, as_version=4)
  execute(notebook, tmp_path)
  assert all(c.execution_count for c in notebook.cells if c.cell_type == "code")


def test_a_cell_that_fails_fails_the_test(tmp_path):
  nbclient = pytest.importorskip("nbclient")
  nbformat = pytest.importorskip("nbformat")
  notebook = nbformat.v4.new_notebook(cells=[
      nbformat.v4.new_code_cell("import os\nvalues = [1]\nwith open(os.environ['RLX_RUNS'], 'w')"
                                " as f: f.write(str(os.getpid()))"),
      nbformat.v4.new_code_cell("assert values == [2], 'another number'")])
  with pytest.raises(nbclient.exceptions.CellExecutionError,
                     match=r"(?s)assert values == \[2\].*AssertionError.*another number"):
    execute(notebook, tmp_path)
  with pytest.raises(ProcessLookupError):  # Nor does its kernel live on.
    os.kill(int((tmp_path / "runs").read_text()), 0)
