"""Each number of each config has a stated range; what is outside is one line."""
import ast
import fnmatch
import functools
import importlib
import inspect
import json
import math
import pathlib
import pkgutil

import pytest

from configs import base
from rlx.build import keys, load, methods as build_methods, prompts as build_prompts
from rlx.core import options, ranges, resolve
from rlx.io import rows

ROOT = pathlib.Path(__file__).parent.parent
FILES = sorted(p for p in (ROOT / "configs").rglob("*.py") if p.stem != "__init__")
NEVER = (math.nan, math.inf, -math.inf, 2.0**70, True, "1", [1.0])
# Methods that are bound elsewhere than in `methods.resolved`: section -> stage.
BOUND = {"rollouts.filter_groups": "rollouts", "rollouts.demonstration": "prompts.datasets",
         "sft.target": "prompts.datasets", "environment": "environments",
         "train_scorer.curate": "evals", "train_scorer.mutate": "evals",
         "train_scorer.auxiliary": "losses"}
# Functions of these are called by rlx, not named by a config.
CALLED = {"sampler", "decoding", "answers", "padding", "slots", "episodes"}


def _numbers():
  """{(key, method): (module, value)} of the numbers of all configs."""
  numbers = {}
  for path in FILES:
    module = importlib.import_module(".".join(path.relative_to(ROOT).with_suffix("").parts))
    flat = options.flatten(module.get_config().to_dict())
    for key, value in flat.items():
      if isinstance(value, int | float) and not isinstance(value, bool):
        method = flat.get(f"{key.rpartition('.')[0]}.name")
        numbers.setdefault((key, method), (module, value))
  return numbers


NUMBERS = _numbers()


def _set(config, key, value):
  *sections, name = key.split(".")
  at = config
  for section in sections: at = at[section]
  at._fields[name] = value  # As it is: `at[name] = value` makes True 1.0.
  return config


def _check(config, key):
  """What is checked before methods are tried and models read."""
  keys.check(config)
  for name, part in build_prompts.list_sources(config).items():
    with build_prompts.name_source(name): rows.check(part.prompts.source, part.prompts.options)
  section = key.rpartition(".")[0]
  if section == "prompts.columns":
    resolve.bind("prompts", dict(config.prompts.columns, name=(
        f"datasets.{config.prompts.dataset}.prompts")), section)
  elif section.startswith("prompts.derived."): build_prompts.bind_derived(config)
  elif section in BOUND:
    at = options.flatten(config.to_dict())
    resolve.bind(BOUND[section], {k.rpartition(".")[2]: v for k, v in at.items()
                                  if k.rpartition(".")[0] == section}, section)
  else:
    build_methods.resolve_methods(config)


@pytest.mark.parametrize("key, method", NUMBERS, ids=lambda x: str(x))
def test_a_number_has_a_range(key, method):
  module, _ = NUMBERS[key, method]
  config = module.get_config()
  # A source defines what values of other types in its options mean.
  is_of_source = ".options." in key and key.startswith(
      ("prompts.options.", "prompts.mixture.", "eval.sets."))
  for wrong in NEVER[:4] if is_of_source else NEVER:
    with pytest.raises(ValueError, match=r"a (whole )?number from -?[\d.e+-]+ to [\d.e+-]+") as e:
      _check(_set(config, key, wrong), key)
    assert str(e.value).startswith(f"{key}={wrong!r:.80}: ")


def test_a_default_is_what_the_key_declares():
  """Every key has a declaration in configs/base.py, except options of functions."""
  defaults = options.flatten(base.get_config().to_dict())
  for key, value in defaults.items():
    if key in base.allowed(): assert value in base.allowed()[key], key
    else: assert f"{key.rpartition('.')[0]}.name" in defaults, key
  assert len(base.allowed().keys() & defaults.keys()) > 150
  absent = base.allowed().keys() - defaults.keys()
  assert all("*" in key or key.startswith("sft.fresh.") for key in absent)


def _says_what_is_allowed(node):
  """Whether an expression is a tuple of texts, or names something of core/ranges.py."""
  names = {x.id for x in ast.walk(node) if isinstance(x, ast.Name)}
  return bool(names & {"ranges", "Range", "Kind"}) or isinstance(
      node, ast.Tuple | ast.List) and bool(node.elts) and all(
          isinstance(x, ast.Constant) for x in node.elts)


def _tables(source):
  """Yields the keys of the config that a literal of the source pairs with what is allowed."""
  known = [key for key in base.allowed() if "." in key]
  text = lambda x: isinstance(x, ast.Constant) and isinstance(x.value, str) and "." in x.value
  for node in ast.walk(ast.parse(source)):
    pairs = zip(node.keys, node.values) if isinstance(node, ast.Dict) else []
    if isinstance(node, ast.Tuple | ast.List) and len(node.elts) == 2:
      pairs = [node.elts, node.elts[::-1]]
    for left, right in pairs:
      names = [x.value for x in (getattr(left, "elts", None) or [left]) if text(x)]
      if _says_what_is_allowed(right): yield from (
          name for name in names if fnmatch.filter(known, name))


def test_what_a_key_may_be_is_said_nowhere_else():
  for path in (ROOT / "rlx").rglob("*.py"): assert not list(_tables(path.read_text())), path
  tables = """
{"kl.kind": ("k1", "k2"), "model.dtype": DTYPES, "lora.rank": ranges.Range(0, 1)}
((ranges.COUNT, ["*.optimizer.lr", "eval.prompts"]), ("kl.coef", Range(0, 1)))"""
  assert set(_tables(tables)) == {"kl.kind", "lora.rank", "*.optimizer.lr", "eval.prompts",
                                  "kl.coef"}


def _options():
  """STAGE.MODULE.FUNCTION.OPTION -> the parameter, of options whose default has a number."""
  for stage in ("rewards", "advantages", "losses", "rollouts", "prompts", "prompts.datasets"):
    package = importlib.import_module(f"rlx.{stage}")
    for m in pkgutil.iter_modules(package.__path__):
      if m.name.startswith("_") or m.name in CALLED: continue
      module = importlib.import_module(f"rlx.{stage}.{m.name}")
      for name, fn in resolve.list_functions(module).items():
        for p in inspect.signature(fn).parameters.values():
          if p.kind is p.KEYWORD_ONLY and _has_number(p.default):
            yield f"{stage}.{m.name}.{name}.{p.name}", p


def _has_number(x):
  if isinstance(x, tuple): return any(map(_has_number, x))
  return isinstance(x, int | float) and not isinstance(x, bool)


OPTIONS = dict(_options())


@pytest.mark.parametrize("path", OPTIONS)
def test_an_option_of_a_method_has_a_range(path):
  allowed = ranges.find_option_range(OPTIONS[path].replace(default=inspect.Parameter.empty))
  assert isinstance(allowed, ranges.Range)
  assert OPTIONS[path].default in allowed
  for wrong in NEVER[:-1]: assert wrong not in allowed


def test_lists_are_of_numbers():
  assert ((0, 1.5), (2, 3)) in ranges.ANY.list and 2 in ranges.ANY.list
  for wrong in ((0, math.nan), ((1, 2), (3, "4")), None): assert wrong not in ranges.ANY.list
  assert None in ranges.ANY.list.or_none
  spec = dict(name="length.cosine", max_length=4, right=(1.0, math.nan))
  with pytest.raises(ValueError, match=r"^rewards.length.right=\(1.0, nan\): a list of numbers"):
    resolve.bind("rewards", spec, "rewards.length")


@pytest.mark.parametrize("key, value, message", [
    ("memory_check", None, "one of"), ("memory_check", 5, "one of"),
    ("model.path", "a\0b", "a text, or None"), ("compile_cache", 5, "a text, or None"),
    ("learner.pack", 1, "True or False"), ("advantages.whiten", 0, "True or False"),
    ("rollouts.stops", "ab", "a list of texts"), ("verifier.scores", (None,), "a list of texts"),
    ("rewards.outcome.name", 5, "a text"), ("prompts.options.x", math.nan, "a number"),
    ("sft.fresh.d_model", 2.0, "a whole number from 1 to 65536")])
def test_what_is_no_number_has_its_type(key, value, message):
  with pytest.raises(ValueError, match=f"^{key}={value!r}: {message}".replace("\\", r"\\").replace(
      "(", r"[(]").replace(")", "[)]")):
    keys.check(_set(base.get_config(), key, value))


def test_the_config_of_a_run_is_read_with_its_old_section_names(tmp_path):
  recorded = base.get_config().to_dict()
  recorded["train_prm"] = recorded.pop("train_scorer") | dict(prompts=77)
  (tmp_path / "config.json").write_text(json.dumps(recorded, default=list))
  assert load.load_config(str(tmp_path)).train_scorer.prompts == 77


@pytest.mark.parametrize("old", keys.RENAMED)
def test_an_old_name_is_refused_with_the_new_one(old):
  config, new = base.get_config().unlock(), keys.RENAMED[old]
  sections, option = old.rpartition(".")[::2]
  if old.startswith(("rlx.", "experiments.")):  # A module.
    nested = dict(learner=dict(loss=dict(name=f"{old}:x")))
    message = f"learner.loss.name='{old}:x': renamed to {new}:x."
  elif any(key.startswith(new.rpartition(".")[0]) for key in options.flatten(config.to_dict())):
    message = f"{old}: renamed to {new}."
    nested = functools.reduce(lambda tree, part: {part: tree}, reversed(old.split(".")), 1)
  elif "." in sections:
    nested = dict(learner=dict(loss={"name": sections, option: 1}))
    message = f"learner.loss.{option}=1: renamed to {new}."
  else:
    nested = dict(learner=dict(loss=dict(name=old)))
    message = f"learner.loss.name={old!r}: renamed to {new}."
  config.update(nested)
  with pytest.raises(ValueError) as e: keys.check(config)
  assert str(e.value) == message


def test_a_section_with_a_chosen_name_is_known_by_its_first_key():
  assert {path: base.first_key(path) for path in base.NAMED} == {
      "prompts.mixture": "source", "prompts.derived": "name", "eval.sets": "source",
      "scorers": "path", "verifier.judges": "url"}
