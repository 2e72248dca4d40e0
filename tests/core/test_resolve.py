import jax
import numpy as np
import pytest

from rlx.advantages import combine
from rlx.core import records, resolve


def _term():
  z_BT = np.zeros((4, 3))
  scored = records.Batch(action_BT=z_BT == 0, outcome_B=np.array([1., 0., np.nan, 1.]), group=4)
  return combine.with_rewards(scored, scored.outcome_B)


def test_fields_are_found_by_name():
  fn = resolve.resolve("advantages", {"name": "group.rloo"})
  assert fn.fields == ("rewards_PG", "learn_PG")
  np.testing.assert_allclose(jax.jit(fn)(_term()), [[.5, -1, 0, .5]], rtol=1e-6)


def test_an_argument_of_the_whole_minibatch_is_given_or_computed():
  fn = resolve.resolve("losses", {"name": "policy.stable_reinforce", "width": 1.})
  assert set(fn.whole) == {"near_BT"} and "near_BT" not in fn.fields
  # The statistic is given the method's option: the mean is 1, the last row is too far.
  ones_BT, a_BT = np.ones((3, 1)), np.array([[0.], [0.], [3.]])
  scored = records.Batch(action_BT=ones_BT == 1, outcome_B=ones_BT[:, 0], logps_BT=ones_BT,
                          old_logps_BT=ones_BT, advantages_BT=a_BT)
  np.testing.assert_array_equal(fn.whole["near_BT"](scored), [[True], [True], [False]])
  np.testing.assert_array_equal(fn(scored)[0], 0 * a_BT)
  np.testing.assert_array_equal(fn(scored, near_BT=ones_BT == 1)[0], -a_BT)


def test_private_and_imported_functions_have_no_name():
  from rlx.advantages import process
  assert {"rloo", "grpo"} <= set(resolve.list_functions(process))
  assert not any(n.startswith("_") for n in resolve.list_functions(process))


MINE = """
import json
number = 3
def half(outcome_B, *, factor=0.5): return factor * outcome_B
"""


@pytest.fixture
def mine(tmp_path, monkeypatch):
  (tmp_path / "my_methods.py").write_text(MINE)
  (tmp_path / "broken_methods.py").write_text("import my_methods\n1 / 0")
  (tmp_path / "needy_methods.py").write_text("import not_installed")
  monkeypatch.syspath_prepend(str(tmp_path))


def test_functions_of_any_module_and_functions_themselves(mine):
  named = resolve.lookup("rewards", "my_methods:half")
  for name in ("my_methods:half", named, lambda outcome_B, *, factor=0.5: factor * outcome_B):
    fn = resolve.resolve("rewards", {"name": name, "factor": 2.0})
    assert fn.fields == ("outcome_B",)
    np.testing.assert_array_equal(fn(_term()), [2, 0, np.nan, 2])


@pytest.mark.parametrize("name, match", [
    ("my_method:half", "x.name='my_method:half': there is no module 'my_method' on the"),
    ("my_methods.inner:half", "there is no module 'my_methods.inner'|not a package"),
    ("my_methods:haf", r"x.name='my_methods:haf': my_methods has \['half'\]"),
    ("my_methods:number", "a int, no function; my_methods has"),
    ("my_methods:json", "a module, no function"),
    ("broken_methods:half", "importing broken_methods fails: ZeroDivisionError: division by"),
    ("needy_methods:half", "importing needy_methods fails: ModuleNotFoundError: .*not_installed"),
], ids=str)
def test_refuses_what_a_module_does_not_have(mine, name, match):
  with pytest.raises(ValueError, match=match):
    resolve.bind("rewards", {"name": name}, "x")
