import numpy as np
import pytest

from rlx.evals import mutations


@pytest.mark.parametrize("line, text, allowed", [
    ("  if x < 3:", "x y", {"  if y < 3:", "  if x < 2:", "  if x < 4:", *(
        f"  if x {op} 3:" for op in (">", "<=", ">=", "==", "!="))}),
    ("  return not None", "def f(x):", set()),
    ("  return True and 0", "", {"  return False and 0", "  return True or 0",
                                 "  return True and 1"}),
    ("  s += max(a, 12)", "  s += max(a, 12)", {
        "  s -= max(a, 12)", "  s *= max(a, 12)", "  s += min(a, 12)", "  s += max(s, 12)",
        "  a += max(a, 12)", "  s += max(a, 11)", "  s += max(a, 13)"}),
    (";;", "1;2", set())])
def test_one_word_becomes_another_of_its_kind(line, text, allowed):
  found = {mutations.swap_words(line, text, np.random.default_rng(i)) for i in range(200)}
  assert found == (allowed or {None})
