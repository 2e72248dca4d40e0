"""The algebra of grids, what a change may say, and the grid files there are."""
import dataclasses
import pathlib
import re

import pytest

from configs import quickstart
from rlx.grids import cell as cell_lib, cell_config, grid as grids, run

ROOT = pathlib.Path(__file__).parents[2]
GRIDS = [f"{p}:{name}" for p in sorted((ROOT / "experiments/prime").glob("*.py"))
         for name in re.findall(r"^def (grid|rates)\(\)", p.read_text(), re.M)]
QUICK = {"config": "configs/quickstart.py", "arm": "a", "seed": 0}
OUTCOME = {"rewards": dict(outcome=dict(name="outcome.verdict", coef=1.0)),
           "advantages": dict(total=dict(name="group.grpo"), whiten=False)}


@pytest.fixture(autouse=True)
def at_the_root(monkeypatch):
  monkeypatch.chdir(ROOT)


def one(**changes):
  return grids._cell(0, QUICK | changes)


def test_product_zip_and_chain():
  a, b = [{"x": 1}, {"x": 2}], [{"y.z": 3}, {"y.z": 4}]
  assert grids.product(a, b) == [{"x": 1, "y.z": 3}, {"x": 1, "y.z": 4},
                                 {"x": 2, "y.z": 3}, {"x": 2, "y.z": 4}]
  assert grids.zip_(a, b) == [{"x": 1, "y.z": 3}, {"x": 2, "y.z": 4}]
  assert grids.chain(a, b) == a + b
  with pytest.raises(ValueError): grids.zip_(a, b[:1])


def test_the_later_list_holds_and_a_section_ends_what_was_set_in_it():
  first = {"arm": "a", "rewards.process.floor": 1, "rewardsX": 2, "prm": 3}
  # The section comes last, and is not undone by a key set before it.
  assert list(grids.product([first], [{"arm": "b", "rewards": {}}])[0].items()) == [
      ("rewardsX", 2), ("prm", 3), ("arm", "a-b"), ("rewards", {})]
  assert grids.product([{"rewards": {}}], [{"rewards.x": 1}]) == [{"rewards": {}, "rewards.x": 1}]


def test_changes_make_the_config_that_setting_its_keys_makes(tmp_path):
  cell = one(seed=3, **OUTCOME, **{
      "learner.optimizer.lr": 1e-3, "learner.optimizer.max_grad_norm": None,
      "rewards.outcome.coef": 2, "rollouts.filter_groups": dict(name="filter_groups.with_verdict"),
      "lora.targets": ["q", "v"], "verifier.scores": ("format.boxed",),
      "model.path": "x",
      "prompts.options": dict(size=4, cut=(1, dict(by=[2])))})
  expected = quickstart.get_config()
  expected.rewards = dict(outcome=dict(name="outcome.verdict", coef=2.0))
  expected.advantages = dict(total=dict(name="group.grpo"), whiten=False)
  expected.learner.optimizer.lr, expected.learner.optimizer.max_grad_norm = 1e-3, None
  expected.rollouts.filter_groups = dict(name="filter_groups.with_verdict")
  expected.lora.targets, expected.verifier.scores = ("q", "v"), ("format.boxed",)
  expected.model.path, expected.seed = "x", 3
  expected.prompts.options = dict(size=4, cut=(1, dict(by=(2,))))
  assert grids.make_config(cell).to_dict() == expected.to_dict()
  cell_of_name = dataclasses.replace(cell, config=pathlib.Path(cell.config).stem)
  assert grids.make_config(cell_of_name).to_dict() == expected.to_dict()
  # And so does the folder, of which --config=rlx/grids/cell_config.py:FOLDER reads it.
  cell_lib.prepare(tmp_path / "x", cell)
  assert cell_lib.read(tmp_path / "x") == cell
  assert cell_config.get_config(str(tmp_path / "x")).to_dict() == expected.to_dict()


@pytest.mark.parametrize("changes, message", [
    ({"learner.optimizer.lrr": 1}, "learner.optimizer.lrr: no such key; there are"),
    ({"learner.optimzer.lr": 1}, "learner.optimzer: no such section"),
    ({"steps.x": 1}, "steps: no such section"),
    ({"learner.optimizer": {"lr": 1.0}}, "learner.optimizer: a section, not a method"),
    ({"rewards.process.bata": 1}, "rewards.process.bata: implicit.process takes"),
    ({"steps": "many"}, "steps='many': Could not override"),
    ({"prompts.options.opps": "M"}, "prompts.options.opps: no such key"),
    (OUTCOME | {"rewards.process.floor": 1.0}, "rewards.process: no such section"),
    ({"prm.order": "after"}, "prm.order='after': one of"),
    ({"config": "configs/nowhere.py"}, "configs/nowhere.py: no such file"),
    ({"config": "configs/quickstart.py:smok"}, "config argument 'smok': there are smoke, "),
], ids=str)
def test_refuses_before_anything_runs(changes, message):
  with pytest.raises(ValueError) as e: grids.check(one(**changes))
  assert str(e.value).startswith(f"a-seed0: {message}") and "\n" not in str(e.value)


@pytest.mark.parametrize("body, message", [
    ("", "no function grid() in it"),
    ("def grid(): return []", "is empty"),
    ("def grid(): return [dict(arm='a', seed=0)]", "cell 0: config is missing"),
    ("def grid(): return [dict(arm='a/b', seed=0, config='c')]", "cell 0: arm='a/b': letters"),
    ("def grid(): return [dict(arm='a', seed=0.5, config='c')]", "a: seed=0.5: an integer"),
    ("def grid(): return [dict(arm='a', seed=0, config='c', steps=1j)]", "a: steps=1j: "),
    ("def grid(): return 2 * [dict(arm='a', seed=0, config='c')]",
     "2 cells are called a-seed0"),
    # The second arm is checked, too.
    ("def grid(): return [dict(arm=a, seed=0, config='configs/quickstart.py', **c) "
     "for a, c in (('a', {}), ('b', {'steps': -1}))]", "b-seed0: steps=-1: a whole number from 0"),
], ids=str)
def test_refuses_a_file(body, message, tmp_path):
  (tmp_path / "g.py").write_text(body)
  with pytest.raises(ValueError) as e: grids.load(str(tmp_path / "g.py"))
  assert message in str(e.value) and "\n" not in str(e.value)


@pytest.mark.parametrize("path", GRIDS, ids=lambda p: p.split("/")[-1])
def test_the_grids_there_are_can_run(path):
  cells = grids.load(path)
  assert [c.index for c in cells] == list(range(len(cells)))


def test_the_grid_of_prime_runs_on_another_model_unchanged():
  assert any(path.endswith("ablations.py:grid") for path in GRIDS)
  own, other = (grids.load("experiments/prime/ablations.py", c)
                for c in (None, "configs/smollm2.py"))
  assert [(c.name, c.changes) for c in own] == [(c.name, c.changes) for c in other]
  assert {c.config for c in other} == {"configs/smollm2.py"}


def test_a_file_may_hold_several_grids(tmp_path):
  (tmp_path / "g.py").write_text(
      "def few(): return [dict(arm='a', seed=0, config='configs/quickstart.py')]")
  path = f"{tmp_path / 'g.py'}:few"
  assert [c.name for c in grids.load(path)] == ["a-seed0"]
  assert run.default_folder(path) == "g-few" and run.default_folder("x/g.py") == "g"
  with pytest.raises(ValueError, match=r"g.py: no function many\(\) in it"):
    grids.load(f"{tmp_path / 'g.py'}:many")


def test_a_key_of_the_config_file_that_nobody_reads_is_refused_too(tmp_path):
  (tmp_path / "c.py").write_text("from configs import quickstart\ndef get_config():\n"
                                 "  c = quickstart.get_config()\n  c.prm.bata = 1\n  return c\n")
  with pytest.raises(ValueError, match="a-seed0: prm.bata: no such key"):
    grids.check(one(config=str(tmp_path / "c.py")))
