"""The shape of the house: which module imports which, who reads a config, what a stage is."""
import ast
import dataclasses
import functools
import importlib
import pathlib
import pkgutil
import subprocess
import sys
import typing

import ml_collections
import pytest

import rlx.build
import rlx.stages
from rlx.core import resolve
from rlx.loops import rl, sft, train_scorer
from rlx.stages import methods
from rlx.tools import doctor, evaluate, judging
from tests import test_sft, tiny

ROOT = pathlib.Path(__file__).parent.parent
# A module may import its own folder and the folders on lines below.
LAYERS = [
    {"contrib"},  # Nothing imports it.
    {"__init__", "__main__", "train"},
    {"api", "cli"},
    {"tools", "grids"},
    {"loops"},
    {"build"},
    {"stages"},
    {"environments"},
    {"prompts", "rollouts", "verifiers", "learner", "evals", "io"},
    {"models"},
    {"rewards", "advantages", "losses"},
    {"core", "configs"},
]
# Heavy packages: not when a module is imported, and not in pure folders.
HEAVY = {"math_verify", "reasoning_gym", "transformers", "huggingface_hub", "gguf", "matplotlib",
         "tensorflow_datasets", "tokenizers", "tensorboardX", "wandb", "mlflow", "jinja2",
         "pyarrow", "bm25s", "textarena", "verifiers", "openenv"}
PURE = {"core", "rewards", "advantages", "losses", "models"}
IMPURE = {"os", "time", "pathlib", "random", "logging", "subprocess", "absl",
          "ml_collections", "numpy.random"}
FILES = sorted((ROOT / "rlx").rglob("*.py"))


@functools.cache
def _nodes(path):
  """Of the syntax tree of a file, the module first."""
  return list(ast.walk(ast.parse(path.read_text())))


def _imports(path):
  """(name, node) of all imports, those inside functions and under TYPE_CHECKING too."""
  for node in _nodes(path):
    if isinstance(node, ast.Import):
      yield from ((a.name, node) for a in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
      yield from ((f"{node.module}.{a.name}", node) for a in node.names)


def _graph(package):
  """{module: modules of the package that it imports}."""
  paths = {".".join(p.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): p
           for p in (ROOT / package).rglob("*.py")}
  def module_of(name):
    while name not in paths and name: name = name.rpartition(".")[0]
    return name
  return {module: {found for name, _ in _imports(path)
                   if (found := module_of(name)) and found != module}
          for module, path in paths.items()}


@pytest.mark.parametrize("package", ["rlx", "experiments"])
def test_no_files_import_each_other_in_a_circle(package):
  graph = _graph(package)
  assert len(graph) > 20
  while ends := {module for module, imported in graph.items() if not imported & graph.keys()}:
    graph = {module: imported for module, imported in graph.items() if module not in ends}
  assert not graph, f"in or above a circle: {sorted(graph)}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_point_down_and_pure_parts_have_no_side_effects(path):
  rank = {name: i for i, layer in enumerate(LAYERS) for name in layer}
  here = path.relative_to(ROOT / "rlx").parts[0].removesuffix(".py")
  assert here in rank, f"{here} has no layer."
  top = {id(n) for n in _nodes(path)[0].body}
  for name, node in _imports(path):
    root = name.split(".")[0]
    assert not name.startswith("flax.nnx"), f"{path}: {name}"
    if here in PURE: assert not {name, root} & (IMPURE | HEAVY), f"{path}: {name}"
    if root in HEAVY: assert id(node) not in top, f"{path}: import {name} where it is used."
    if root == "ml_collections": assert here in ("build", "cli"), f"{path} reads configs."
    if root != "rlx": continue
    there = name.split(".")[1]
    assert there == here or rank[there] > rank[here], f"{path} must not import {name}"


# Modules other than rlx.build that may read a config: they record or change it.
READERS = {"rlx.cli", "rlx.loops.record"}


@pytest.mark.parametrize("run, config_of", [
    (rl.train, lambda folder: tiny.config(folder, steps=2, eval__every=1)),
    (sft.train, lambda folder: test_sft.config_of(1, lr=1e-3)),
    (train_scorer.train, lambda folder: tiny.config(folder, steps=2, train_scorer__prompts=16)),
    (evaluate.evaluate, tiny.config),
    (lambda config, folder: judging.evaluate_judge(config, folder, judge="format.length", rows=[
        dict(prompt="1", chosen="ab", rejected="c")]), tiny.config),
    (lambda config, _: doctor.doctor(config), tiny.config)],
                         ids=["rl", "sft", "train_scorer", "evaluate", "judging", "doctor"])
def test_nothing_below_build_reads_the_config(run, config_of, tiny_files, tmp_path, monkeypatch):
  """Every read of a key is made by rlx.build or READERS, whatever the entry point is."""
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
  others = {name for name in readers if not name.startswith("rlx.build.")}
  assert len(readers) > 2 and others <= READERS


def _dataclasses(package):
  for module in pkgutil.iter_modules(package.__path__):
    for cls in vars(importlib.import_module(f"{package.__name__}.{module.name}")).values():
      if dataclasses.is_dataclass(cls) and cls.__module__.startswith(package.__name__): yield cls


def test_a_step_is_nine_stages_whose_classes_are_its_fields():
  """`Run` names the class of each stage; a stage is a frozen dataclass that is called."""
  hints = typing.get_type_hints(rlx.build.Run)
  stages = ["collect", "annotate", "place", "score", "update_prm", "rewards_advantages",
            "update_value", "update_policy", "end_step"]
  assert list(hints)[-9:] == stages
  for name in stages:
    classes = [c for c in typing.get_args(hints[name]) or [hints[name]] if c is not type(None)]
    for cls in classes:
      assert cls.__module__ == f"rlx.stages.{name}" and "__call__" in vars(cls), cls
      assert cls.__dataclass_params__.frozen, cls
  iteration = ast.parse(pathlib.Path(rl.__file__).read_text())
  called = [n.func.attr for n in ast.walk(iteration) if isinstance(n, ast.Call)
            and isinstance(n.func, ast.Attribute) and getattr(n.func.value, "id", "") == "run"]
  assert set(stages) <= set(called)  # The loop calls each of them.


def test_no_field_hides_code_behind_a_callable():
  """Where a field has code, its type is a class; a function that a config names is UserFunction."""
  found = {cls for package in (rlx.build, rlx.stages) for cls in _dataclasses(package)}
  assert {methods.Methods, rlx.build.Run} <= found and len(found) > 25
  for cls in found:
    for field in dataclasses.fields(cls):
      hint = typing.get_type_hints(cls)[field.name]
      parts = [hint, *typing.get_args(hint)]
      origin = typing.get_origin(resolve.UserFunction)
      callables = [x for x in parts if typing.get_origin(x) is origin or x is typing.Callable]
      source = pathlib.Path(sys.modules[cls.__module__].__file__).read_text()
      assert not callables or f"  {field.name}: resolve.UserFunction" in source, (cls, field.name)


def test_importing_loads_no_heavy_package():
  """Of the package alone, then of all that it needs to run."""
  heavy = HEAVY | {"torch", "tensorflow", "flax.nnx"}
  code = f"""
import sys, rlx
print([m for m in ("jax", "numpy", "flax", "absl") if m in sys.modules])
import rlx.train, rlx.loops.sft, rlx.loops.train_scorer, rlx.tools.evaluate, rlx.tools.convert
import rlx.tools.view, rlx.tools.doctor
print([m for m in {heavy} if m in sys.modules])"""
  out = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True,
                       capture_output=True, text=True)
  assert out.stdout.split("\n")[:2] == ["[]", "[]"]


# First words of names that are participles without the ending "ed".
PARTICIPLES = set(
    "begun bound broken built caught chosen cut done drawn fed found frozen given gone grown held "
    "kept known left lost made met paid seen sent shown spelled spoken stuck taken thought thrown "
    "told won worn written".split())
VERBS = {"embed", "feed", "need", "seed"}  # End in "ed", too.
# Files whose public functions are methods: a config names them after the term of a paper.
METHODS = {"prompts/templates.py", "rollouts/select_completions.py"}


def _starts_with_participle(name):
  word = name.strip("_").split("_")[0]
  return word in PARTICIPLES or word.endswith("ed") and word not in VERBS


def _is_named_otherwise(function, path):
  """Whether the name is that of a property, of a field, or of a method or verifier of configs."""
  decorators = {ast.unparse(d).partition("(")[0] for d in function.decorator_list}
  if decorators & {"property", "functools.cached_property", "method", "field"}: return True
  if str(path.relative_to(ROOT / "rlx")) in METHODS: return not function.name.startswith("_")
  return [a.arg for a in function.args.args] == ["prompt", "text"]  # A verifier.


def test_functions_are_named_by_verbs():
  """`move`, not `moved`: what a function does is told by its name alone."""
  functions = [(path, n) for path in FILES for n in _nodes(path)
               if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
  assert len(functions) > 1000 and _starts_with_participle("_moved")
  assert not [f"{path.relative_to(ROOT)}:{n.lineno}: {n.name}" for path, n in functions
              if _starts_with_participle(n.name) and not _is_named_otherwise(n, path)]


# Words with one meaning, and the files that define functions of these names.
MEANINGS = {"before": set(), "learn": {"stages/learner.py"}, "verify": {"verifiers/pool.py"},
            "evaluate": {"api.py", "tools/evaluate.py"}}


@pytest.mark.parametrize("name", MEANINGS)
def test_a_word_has_one_meaning(name):
  """As the name of a function or method; `evaluate` is the command."""
  found = {str(path.relative_to(ROOT / "rlx")) for path in FILES for n in _nodes(path)
           if isinstance(n, ast.FunctionDef) and n.name.strip("_") == name}
  assert found == MEANINGS[name]
