"""The import arrows of the README, enforced."""
import ast
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parent.parent
# A module may import its own package and any package on a line above.
LAYERS = [
    {"core", "configs"},
    {"rewards", "advantages", "losses"},
    {"models"},
    {"prompts", "rollouts", "verifiers", "learner", "evals", "io"},
    {"cli", "keys", "methods", "config_validation", "build", "loops", "tools", "train", "api",
     "__init__", "__main__"},
]
# Heavy packages: only in these layers, and not when a module is imported.
HEAVY = {"math_verify", "reasoning_gym", "transformers", "huggingface_hub", "gguf", "matplotlib",
         "tensorflow_datasets", "tokenizers", "tensorboardX", "wandb", "mlflow", "jinja2", "pyarrow"}
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


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_down(path):
  rank = {name: i for i, layer in enumerate(LAYERS) for name in layer}
  here = _part(path)
  assert here in rank, f"{here} has no layer."
  for name, _ in _imports(ast.parse(path.read_text())):
    assert not name.startswith("flax.nnx"), f"{path}: {name}"
    if not name.startswith("rlx."): continue
    there = name.split(".")[1]
    wiring = rank[here] == len(LAYERS) - 1
    assert there == here or rank[there] < rank[here] or (
        wiring and rank[there] == rank[here]), f"{path} must not import {name}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_pure_parts_have_no_side_effects_and_heavy_packages_wait(path):
  tree = ast.parse(path.read_text())
  top = {id(n) for n in tree.body}
  for name, node in _imports(tree):
    root = name.split(".")[0]
    if _part(path) in PURE:
      assert name not in IMPURE and root not in IMPURE | HEAVY, f"{path}: {name}"
    if root in HEAVY:
      assert id(node) not in top, f"{path}: import {name} where it is used."


def test_importing_the_wiring_loads_no_heavy_package_and_no_nnx():
  code = ("import sys, rlx.train, rlx.loops.sft, rlx.tools.evaluate, rlx.tools.convert, rlx.tools.view, "
          "rlx.tools.doctor, rlx.loops.train_prm; "
          "print([m for m in sys.modules if m in %r or m.startswith('flax.nnx')])"
          % (HEAVY | {"torch", "tensorflow"},))
  out = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True,
                       capture_output=True, text=True)
  assert out.stdout.strip() == "[]"


def test_importing_rlx_loads_neither_jax_nor_numpy():
  code = "import sys, rlx; print([m for m in sys.modules if m in ('jax', 'numpy', 'flax', 'absl')])"
  out = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True,
                       capture_output=True, text=True)
  assert out.stdout.strip() == "[]"
