"""The import arrows of the README, enforced."""
import ast
import pathlib
import subprocess
import sys

import ml_collections
import pytest

from rlx.loops import rl
from rlx.loops import sft
from rlx.loops import train_prm
from rlx.tools import doctor
from rlx.tools import evaluate
from tests import test_sft
from tests import tiny

ROOT = pathlib.Path(__file__).parent.parent
# A module may import its own package and any package on a line above.
LAYERS = [
    {"core", "configs"},
    {"rewards", "advantages", "losses"},
    {"models"},
    {"prompts", "rollouts", "verifiers", "learner", "evals", "io"},
    {"environments"},
    {"cli", "keys", "methods", "config_validation", "inputs", "build", "verdicts", "loops",
     "tools", "train", "api", "__init__", "__main__"},
]
# Heavy packages: only in these layers, and not when a module is imported.
HEAVY = {"math_verify", "reasoning_gym", "transformers", "huggingface_hub", "gguf", "matplotlib",
         "tensorflow_datasets", "tokenizers", "tensorboardX", "wandb", "mlflow", "jinja2",
         "pyarrow", "bm25s", "textarena", "verifiers", "openenv"}
PURE = {"core", "rewards", "advantages", "losses", "models"}
IMPURE = {"os", "time", "pathlib", "random", "logging", "subprocess", "absl",
          "ml_collections", "numpy.random"}
FILES = sorted((ROOT / "rlx").rglob("*.py"))


def _imports(tree):
  for node in ast.walk(tree):
    if isinstance(node, ast.Import):
      yield from ((a.name, node) for a in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
      yield from ((f"{node.module}.{a.name}", node) for a in node.names)


def _part(path):
  return path.relative_to(ROOT / "rlx").parts[0].removesuffix(".py")


# The modules that may read a config: three that use it, and those that check, record or change it.
READERS = {"rlx.api", "rlx.build", "rlx.cli", "rlx.build.validation", "rlx.build.prompts",
           "rlx.build.keys", "rlx.build.methods", "rlx.build.verifiers"}


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_down_and_pure_parts_have_no_side_effects(path):
  rank = {name: i for i, layer in enumerate(LAYERS) for name in layer}
  here, tree = _part(path), ast.parse(path.read_text())
  assert here in rank, f"{here} has no layer."
  top, wiring = {id(n) for n in tree.body}, rank[here] == len(LAYERS) - 1
  for name, node in _imports(tree):
    root = name.split(".")[0]
    assert not name.startswith("flax.nnx"), f"{path}: {name}"
    if here in PURE: assert not {name, root} & (IMPURE | HEAVY), f"{path}: {name}"
    if root in HEAVY: assert id(node) not in top, f"{path}: import {name} where it is used."
    if root == "ml_collections":
      assert ".".join(path.relative_to(ROOT).with_suffix("").parts) in READERS
    if root != "rlx": continue
    there = name.split(".")[1]
    assert there == here or rank[there] < rank[here] or (
        wiring and rank[there] == rank[here]), f"{path} must not import {name}"


@pytest.mark.parametrize("run, config_of", [
    (rl.train, lambda folder: tiny.config(folder, steps=2, eval__every=1)),
    (sft.train, lambda folder: test_sft.config_of(1, lr=1e-3)),
    (train_prm.train, lambda folder: tiny.config(folder, steps=2, train_prm__prompts=16)),
    (evaluate.evaluate, tiny.config),
    (lambda config, _: doctor.doctor(config), tiny.config)],
                         ids=["rl", "sft", "train_prm", "evaluate", "doctor"])
def test_nothing_below_build_reads_the_config(run, config_of, tiny_files, tmp_path, monkeypatch):
  """Every read of a key is made by one of READERS, whatever the entry point is."""
  readers, config = set(), config_of(tiny_files)
  # `resolve` reads the sections that its caller gives it.
  between = {"ml_collections.config_dict.config_dict", "rlx.core.resolve", __name__}

  for name in ("__getattr__", "__getitem__", "items", "keys", "to_dict"):
    def read(self, *args, real=getattr(ml_collections.ConfigDict, name)):
      frame = sys._getframe(1)
      while frame.f_globals["__name__"] in between: frame = frame.f_back
      readers.add(frame.f_globals["__name__"])
      return real(self, *args)
    monkeypatch.setattr(ml_collections.ConfigDict, name, read)
  run(config, tmp_path)
  assert "rlx.build" in readers and readers <= READERS


def test_importing_loads_no_heavy_package():
  """Of the package alone, then of all that it needs to run."""
  heavy = HEAVY | {"torch", "tensorflow", "flax.nnx"}
  code = f"""
import sys, rlx
print([m for m in ("jax", "numpy", "flax", "absl") if m in sys.modules])
import rlx.train, rlx.loops.sft, rlx.loops.train_prm, rlx.tools.evaluate, rlx.tools.convert
import rlx.tools.view, rlx.tools.doctor
print([m for m in {heavy} if m in sys.modules])"""
  out = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True,
                       capture_output=True, text=True)
  assert out.stdout.split("\n")[:2] == ["[]", "[]"]
