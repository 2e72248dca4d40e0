"""Tests that are statements: what they compute, what they refuse, and that it ends."""
import json
import math
import time
import types

import ml_collections
import pytest

from rlx import build
from rlx.core import records
from rlx.prompts.datasets import jsonl
from rlx.tools import doctor
from rlx.verifiers import _asserts
from rlx.verifiers import _values
from rlx.verifiers import code_tests
from tests.verifiers import cases

CASES = cases.read("asserts.toml")


def parametrize(kind):
  """One test for each case of a kind."""
  rows = CASES[kind]
  return pytest.mark.parametrize(",".join(rows[0]), [tuple(row.values()) for row in rows])


def outcome(test, solution, made):
  """Does a test pass whose calls are evaluated here? Adds their texts to `made`."""
  body = _asserts.parse(test, entry_point="f")
  calls, own = _asserts.calls(body)
  def call(expression, name, kept):
    assert expression in calls[name] and (kept is None or isinstance(kept, int))
    made.append(expression)
    names = {}
    exec(solution, names)
    return eval(expression, names)
  try:
    _asserts.run(body, call, own=own)
  except _asserts.Failed:
    return False
  return True


@parametrize("calls")
def test_only_calls_of_the_solution_are_handed_on(test, solution, calls):
  made = []
  assert outcome(test, solution, made) and made == calls


@parametrize("wrong")
def test_what_is_wrong_fails(test, solution):
  made = []
  assert not outcome(test, solution, made) and made


def calls_of(test): return _asserts.calls(_asserts.parse(test))[0]


@parametrize("refused")
def test_what_cannot_be_computed_is_refused(test, message):
  start = time.monotonic()
  with pytest.raises(_asserts.Refused, match=message): calls_of(test)
  assert time.monotonic() - start < 5


def test_what_is_nested_too_deeply_is_refused_and_what_fails_late_is_not():
  with pytest.raises(_asserts.Refused, match="no Python"):
    calls_of("assert f(\n" + "(" * 300 + ")" * 300 + ")")
  assert list(calls_of("assert f(1) == 1 and 1 == 2")) == ["f"]  # It fails only if f(1) is 1.


def colliding(n): return [1 + i * (2**61 - 1) for i in range(n)]


def encoded(kind, members): return json.dumps([kind, [["int", hex(m)] for m in members]]).encode()


@parametrize("slow")
def test_what_a_solution_returns_costs_a_bounded_time(test, returned):
  body, value, start = _asserts.parse(test), eval(returned), time.monotonic()
  with pytest.raises(_asserts.Failed): _asserts.run(body, lambda *_: value)
  assert time.monotonic() - start < 5


@pytest.mark.parametrize("printed", CASES["crafted"])
def test_a_crafted_result_is_no_value_and_costs_a_bounded_time(printed):
  printed, start = eval(printed), time.monotonic()
  with pytest.raises(ValueError): _values.decode(printed)
  assert time.monotonic() - start < 1


def test_a_value_of_the_greatest_size_is_read_in_bounded_time():
  spread = [(i * 0x9E3779B97F4A7C15) % 2**61 for i in range(30_000)]  # No two with one hash.
  start = time.monotonic()
  assert _values.decode(encoded("set", spread)) == set(spread)
  assert time.monotonic() - start < 2


@pytest.mark.parametrize("value", [
    None, True, -3, 2**5000, 0.1, -0.0, math.inf, -math.inf, 2 - 1j, complex(-0.0, math.inf),
    "a'\n\ud800", b"\0", [], [1, [2]], (), (1,), (1, 2), set(), {1, (2,)}, frozenset(),
    frozenset({1}), {}, {"a": {1: None}}, range(2, 9, 3), int])
def test_arguments_are_written_as_they_are(value):
  again = eval(_values.source(value))
  assert again == value and type(again) is type(value)
  assert repr(again) == repr(value)
  assert math.isnan(eval(_values.source(math.nan)))
  assert list(eval(_values.source(_values.Iterable([1])))) == [1]


def prompt(*tests, id="p", **meta):
  return records.Prompt(id, "?", verifier="code_tests.passed", meta=dict(meta, tests=list(tests)))


@parametrize("constant")
def test_what_passes_whatever_is_asked(tests, message):
  description = code_tests.constant(prompt(*tests, entry_point="f"))
  assert (description is None) == (not message) and message in (description or "")


def test_a_constant_may_be_a_large_number():
  tests = [f"assert f({i}) == {hex(7**9000)}" for i in (1, 2)]
  assert "0x" in code_tests.constant(prompt(*tests))


def check(prompts, **verifier):
  options = dict(dict(scores=(), allow_constant=False), **verifier)
  build.check_prompts(types.SimpleNamespace(verifier=ml_collections.ConfigDict(options)), prompts)


def test_prompts_that_cannot_be_judged_are_refused_by_their_number():
  rows = [dict(question="?", answer="x", tests=["assert f(1) == 1", "assert f(2) == 2"])
          for _ in range(3)]
  rows[1]["tests"].append("assert f(g(1)) == 2")
  good, *bad = jsonl.prompts(rows, "train", verifier="code_tests.fraction", meta=("tests",))
  check([good])
  message = r"^prompt 'jsonl/train/1': tests\[2\] is 'assert f\(g\(1\)\) == 2': an argument"
  for allow_constant in (False, True):
    with pytest.raises(ValueError, match=message):
      check([good, *bad], allow_constant=allow_constant)
  with pytest.raises(ValueError, match=r"tests\[0\]\['input'\] is 5; a text is allowed"):
    check([prompt(dict(input=5, output=""))])
  with pytest.raises(ValueError, match=r"^prompt 'p': a prompt without tests"): check([prompt()])
  # The same holds if verifier.scores runs the code, not the prompt's own verifier.
  other = records.Prompt("q", "?", verifier="math_answer.final")
  check([other])
  with pytest.raises(ValueError, match="^prompt 'q': a prompt without tests"):
    check([other], scores=("code_tests.passed",))


def test_prompts_that_a_constant_passes_are_refused_or_counted():
  prompts = [prompt("assert f(1)", id="a"), prompt("assert f(1) == 5", id="b"),
             prompt("assert f(2)", id="c")]
  with pytest.raises(ValueError, match=r"^prompt 'a': its tests are passed by f that returns True.*"
                     r"verifier.allow_constant=true. \(1 more such prompts\)$"):
    check(prompts)
  check(prompts, allow_constant=True)
  finding = doctor.no_constant_passes({p.id: code_tests.constant(p) for p in prompts})
  assert finding.level == "warning"
  assert finding.text.startswith(
      "constants pass the tests of 2 of 3 prompts, such as 'a' by f that")
  assert doctor.no_constant_passes({"b": None}).level == "ok"
