import inspect
import math
from typing import Annotated, Literal

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rlx.core import ranges
from rlx.core.method import method

nan = math.nan


def _largest(x_BT, learn_BT, *, scale):
  return jnp.full_like(x_BT, scale * jnp.max(x_BT, where=learn_BT, initial=0.))


@method(whole=dict(largest_BT=_largest), centres=True)
def scaled(x_BT, raw_B, learn_BT, learn_PG, largest_BT=None, *, scale: float = 1.0,
           kind: Literal["divide", "add"] = "divide"):
  """An example."""
  return x_BT / largest_BT if kind == "divide" else (x_BT + 1, dict(raw=raw_B, mean=x_BT.mean()))


X_BT = np.array([[2., 4., nan], [nan, nan, 8.]])
MASK_BT = np.array([[True, True, False], [True, False, True]])
LEARN_PG = np.array([[True, False]])  # Of the second row nothing counts.


def test_values_outside_the_masks_are_0_before_and_after():
  call = lambda x_BT, **options: scaled(x_BT, np.array([1., nan]), MASK_BT, LEARN_PG, **options)
  np.testing.assert_array_equal(call(X_BT), [[.5, 1, 0], [0, 0, 0]])
  sum_BT, metrics = call(X_BT, kind="add")
  np.testing.assert_array_equal(sum_BT, [[3, 5, 0], [0, 0, 0]])
  np.testing.assert_array_equal(metrics["raw"], [1, 0])
  assert metrics["mean"] == 1
  grad_BT = jax.grad(lambda x_BT: jnp.sum(call(x_BT, kind="add")[0]))(X_BT)
  np.testing.assert_array_equal(grad_BT, [[1, 1, 0], [0, 0, 0]])


def test_arguments_may_be_left_unmasked():
  raw = method(unmasked=("x_B",))(lambda x_B, learn_B: np.isnan(x_B).sum())
  assert raw(np.array([nan, nan]), np.array([True, False])) == 2


def test_a_missing_statistic_is_of_the_rows_given():
  args = X_BT[:1], np.ones(1), MASK_BT[:1], LEARN_PG[:, :1]
  np.testing.assert_array_equal(scaled(*args, scale=2.), [[.25, .5, 0]])
  np.testing.assert_array_equal(scaled(*args, np.full((1, 3), 8.)), [[.25, .5, 0]])
  assert scaled.whole == dict(largest_BT=_largest)


def test_facts_signature_and_docstring_are_those_of_the_function():
  assert scaled.centres and scaled.__doc__ == "An example."
  assert list(inspect.signature(scaled).parameters)[-1] == "kind"


def test_axes_are_checked():
  with pytest.raises(ValueError, match="Axis T is 2 above but 3 in learn_BT"):
    scaled(X_BT[:, :2], np.ones(2), MASK_BT, LEARN_PG)


def options(a: ranges.Share, b: ranges.Positive | None, c: Literal["x", "y"],
            d: Annotated[int, ranges.Range(1, 3, is_whole=True)], e: "float", f: np.ndarray,
            g: float = 1.0, h=True): ...


@pytest.mark.parametrize("name, allowed, refused", [
    ("a", [0, 1.0], [2, None]), ("b", [1.0, None], [0]), ("c", ["x"], ["z", None]),
    ("d", [3], [1.5, 4]), ("g", [-3.0], [nan, "1"]), ("h", [False], [0])])
def test_an_annotation_states_what_an_option_may_be(name, allowed, refused):
  parameters = inspect.signature(options).parameters
  for value in allowed: ranges.check(name, value, ranges.find_option_range(parameters[name]))
  for value in refused:
    with pytest.raises(ValueError, match=f"^{name}={value!r}: "):
      ranges.check(name, value, ranges.find_option_range(parameters[name]))
  # Annotations of other packages and of users state no range.
  assert [ranges.find_option_range(parameters[name]) for name in "ef"] == [None, None]
