"""Verdicts of chain, format and gym_task on the completions of verdicts.toml."""
import importlib.util
import time

import numpy as np
import pytest

from rlx.core import records, resolve
from rlx.verifiers import _boxed, format as format_lib, gym_task
from tests.verifiers import cases

GROUPS = cases.read("verdicts.toml")["group"]
needs_gym = pytest.mark.skipif(not importlib.util.find_spec("reasoning_gym"),
                               reason="needs reasoning_gym")


def prompt(text="?", answer="", meta={}): return records.Prompt("p", text, answer, meta=meta)


@pytest.mark.parametrize("group, text, verdict", [
    pytest.param(group, text, verdict, marks=[needs_gym] * group["verifier"].startswith("gym"))
    for group in GROUPS for text, verdict, *_ in group["cases"]])
def test_verdict(group, text, verdict):
  fields = {k: v for k, v in group.items() if k not in ("verifier", "cases")}
  stated = resolve.lookup("verifiers", group["verifier"])(prompt(**fields), text)
  np.testing.assert_allclose(stated, verdict, rtol=0, atol=1e-9)


def test_a_length_without_a_limit_is_at_most_4096():
  assert [format_lib.length(prompt(), "a" * n) for n in (4096, 4097)] == [1.0, 0.0]


def test_a_box_without_braces_ends_before_a_full_stop():
  assert _boxed.last(r"so \boxed 72.") == "72"


@pytest.mark.parametrize("part", ["<", "<think ", "< /", "<think>", "< ", "</think", " "])
def test_tags_takes_linear_time(part):
  start = time.process_time()
  assert format_lib.tags(prompt(), part * 100_000) == 0.0
  assert format_lib.tags(prompt(), "<" + " " * 100_000 + part) == 0.0
  assert time.process_time() - start < 20


@needs_gym
def test_a_task_that_does_not_exist_is_named():
  task = prompt(meta=dict(task="no_such_task", config={}, entry={}))
  with pytest.raises(ValueError, match="no_such_task"): gym_task.last_line(task, "7")
