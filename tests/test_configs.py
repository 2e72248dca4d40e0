"""Every config loads, holds only keys that exist, and every key has a reader."""
import dataclasses
import importlib.util
import pathlib
import re
import tomllib

import ml_collections
import pytest

from configs import base, quickstart
from rlx import build
from rlx.build import keys, methods as build_methods, run as run_lib, sets, updates, validation
from rlx.core import options
from rlx.loops import rl, session, sft, train_scorer
from rlx.stages import dialogue

ROOT = pathlib.Path(__file__).parent.parent
FILES = sorted(p for p in (ROOT / "configs").rglob("*.py") if p.stem not in ("__init__", "base"))
PAPERS = [p for p in FILES if p.parent.name == "papers"]
# What base.smoke makes smaller.
SIZES = re.compile(r"steps|prompts\.per_step|rollouts\.(per_prompt|max_tokens|chunk|max_draws|fill)"
                   r"|(eval|train_scorer|checkpoint)\..*")
ids = lambda p: str(p.relative_to(ROOT))


def _module(path):
  spec = importlib.util.spec_from_file_location(path.stem, path)
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  return module


def _load(path, arg=""):
  sets.fill(config := _module(path).get_config(arg))
  return config


@pytest.mark.parametrize("path", FILES, ids=ids)
def test_loads_and_is_accepted(path):
  """As it is and as smoke, whose methods are tried only where it changes more than sizes."""
  config, smoke = _load(path), _load(path, "smoke")
  for c in (config, smoke):
    keys.check(c)
    run_lib.check_cuts(c, 1)
  validation.check(config, build_methods.resolve_methods(config))
  full, small = (options.flatten(c.to_dict()) for c in (config, smoke))
  changed = {key for key in full.keys() | small.keys() if full.get(key) != small.get(key)}
  if not all(map(SIZES.fullmatch, changed)):
    validation.check(smoke, build_methods.resolve_methods(smoke))


def test_what_is_off_by_default_can_be_set_by_a_flag():
  def unset(config):
    for key, value in config.items():
      if isinstance(value, ml_collections.ConfigDict): yield from unset(value)
      elif value is None: yield key, config.get_type(key)
  unset_values = dict(unset(base.get_config()))
  assert unset_values["path"] is str and unset_values["target"] is float and len(unset_values) > 5
  assert type(None) not in unset_values.values(), unset_values


def test_prime_presets():
  config = _load(ROOT / "configs/papers/prime.py", "recipe")
  validation.check(config, build_methods.resolve_methods(config))
  run_lib.check_cuts(config, 1)
  assert config.prm.order == "double" and not config.rewards.process.include_last
  with pytest.raises(ValueError, match="recipe"):
    _load(ROOT / "configs/papers/prime.py", "recipee")


@pytest.mark.parametrize("path", FILES, ids=ids)
def test_docstring_has_the_command_that_runs_it(path):
  name = path.relative_to(ROOT / "configs").with_suffix("")
  short = rf"rlx (train|sft|train_scorer|evaluate) {name}\b"
  doc = _module(path).__doc__
  over = rf"rlx train papers/\w+ base={path.stem}\b" if path.parent.name == "bases" else short
  assert f"--config={path.relative_to(ROOT)}" in doc or re.search(short, doc) or re.search(over, doc)


@pytest.mark.parametrize("path", PAPERS, ids=ids)
def test_a_paper_refuses_an_argument_it_does_not_know(path):
  with pytest.raises(ValueError, match="there (is|are) .*smoke") as e: _load(path, "smokee")
  assert "\n" not in str(e.value)


def _changed(changes):
  config = base.get_config()
  for key, value in changes.items():
    section, _, name = key.rpartition(".")
    target = config
    for part in section.split("."): target = target[part] if part else target
    with target.ignore_type(): target[name] = value
  return config


REFUSED = tomllib.loads((ROOT / "tests/refused.toml").read_text())["case"]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: ",".join(case["changes"]))
def test_refuses_with_one_line_that_names_the_key(case):
  config = _changed(case["changes"])
  with pytest.raises(ValueError, match=case["message"]) as e:
    keys.check(config)
    validation.check(config, build_methods.resolve_methods(config))
  assert "\n" not in str(e.value)


@pytest.mark.parametrize("changes, warned", [
    ({}, True), ({"learner.rollout_correction": {"name": "rollout_correction.tis"}}, False),
    ({"learner.loss": {"name": "sequence.vespo"}}, False),
    ({"learner.loss": {"name": "sequence.dpo"}}, False),
    ({"rollouts.sync_every": 1}, False)], ids=str)
def test_an_older_sampler_that_nothing_corrects_for_is_a_warning(caplog, changes, warned):
  config = _changed({"rollouts.sync_every": 4} | changes)
  validation.check(config, build_methods.resolve_methods(config))
  lines = [r.getMessage() for r in caplog.records if "sync_every" in r.getMessage()]
  assert len(lines) == warned
  if warned:
    assert lines[0].startswith("rollouts.sync_every=4: ") and "\n" not in lines[0]
    assert "learner.loss.name='policy.ppo_clip'" in lines[0]


def test_refuses_keys_that_nobody_reads():
  config = base.get_config()
  config.prm.bta = 1.0
  with pytest.raises(ValueError, match=r"prm.bta: no such key; did you mean prm.beta\? There"):
    keys.check(config)


# Read only by the command line, the tools and SFT, or where something is on that is off here.
READ_ELSEWHERE = (
    "compile_cache", "distribution.min_p", "episodes.timeout_s", "episodes.workers", "eval.buckets",
    "eval.difficulty", "kl.place", "likelihood.answer", "likelihood.separator", "lora.alpha",
    "lora.targets", "model.param_update", "rollouts.budget.first", "sft.batch",
    "sft.microbatches", "sft.target.name", "verifier.allow_constant")


def test_every_key_is_read(monkeypatch):
  """By `build`, after the check of all keys, or as a declared option of a loop."""
  config, read, sections = quickstart.get_config("smoke"), set(), {}
  config.prompts.options.size = 64

  def add(section, prefix):
    sections[id(section)] = prefix
    for key, value in section.items():
      if isinstance(value, ml_collections.ConfigDict): add(value, f"{prefix}{key}.")

  def getitem(section, key):
    if id(section) in sections: read.add(sections[id(section)] + key)
    return original(section, key)

  add(config, "")
  original, check = ml_collections.ConfigDict.__getitem__, keys.check
  def check_and_record(config):
    check(config)
    monkeypatch.setattr(ml_collections.ConfigDict, "__getitem__", getitem)
  monkeypatch.setattr(keys, "check", check_and_record)
  build.build(config)
  updates.optimizer_of(config, "sft")
  monkeypatch.undo()
  for module in (dialogue, rl, session, sft, train_scorer):
    for cls in filter(dataclasses.is_dataclass, vars(module).values()):
      read |= {f.metadata["key"] for f in dataclasses.fields(cls) if "key" in f.metadata}
  unread = set(options.flatten(config.to_dict())) - read - set(READ_ELSEWHERE)
  assert not unread
