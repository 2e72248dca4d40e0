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

LIST = "class Stack:\n  def __init__(s, *a): s.items = list(a)\n  def push(s, x): s.items.append(x); return s\n" \
       "  def pop(s): return s.items.pop()\n  def fill(s, a): a += s.items"


def outcome(test, solution, made=None, **given):
  """Of a test whose calls are evaluated here; `made` gets their texts."""
  body = _asserts.parse(test, **given)
  calls, own = _asserts.calls(body)
  def call(expression, name, kept):
    assert expression in calls[name] and (kept is None or isinstance(kept, int))
    if made is not None: made.append(expression)
    names = {}
    exec(solution, names)
    return eval(expression, names)
  try:
    _asserts.run(body, call, own=own)
  except _asserts.Failed:
    return False
  return True


@pytest.mark.parametrize("test, solution, calls", [
    ("assert f(3) - 9 == 0", "f = lambda x: 9", ["f(3)"]),
    ("assert round(abs(f(-3) - 9.42), 2) == 0", "f = lambda x: 9.421", ["f(-3)"]),
    ("assert len(set(f([1, 2])) - {1, 2}) == 0", "f = lambda x: x", ["f([1, 2])"]),
    ("assert (f(3), 9) == (9, 9) and max(f(3), 9) == 9", "f = lambda x: 9", ["f(3)", "f(3)"]),
    ("from math import isclose\nassert isclose(f(1), .5)", "f = lambda x: .5", ["f(1)"]),
    ("import math as m\nassert m.isclose(f(m.inf), -m.inf)", "f = lambda x: -x", ["f(1e999)"]),
    ("assert f(1) == f(2)", "f = lambda x: 5", ["f(1)", "f(2)"]),
    ("assert 1 < f(1) <= f(2) != 0", "f = lambda x: x + 1", ["f(1)", "f(2)"]),
    ("assert f(x=-1, y={'a': (1,)}, *[set(), b'']) is None", "f = lambda a, b, x, y: None",
     ["f({*()}, b'', x=-1, y={'a': (1,)})"]),
    ("assert Solution().f([1]).upper()[0] in 'AB'", "class Solution:\n  f = lambda s, x: 'ab'",
     ["Solution().f([1])"]),
    ("for i in range(2):\n  assert f(i) == i ** 2, f'{f(i)} is wrong'", "f = lambda x: x * x",
     ["f(0)", "f(1)"]),
    ("x = f(3)\na, b = x\nassert a == 1\nassert b == 2", "f = lambda x: (1, 2)", ["f(3)"]),
    ("assert list(f(3)) == [0, 1, 2]", "f = range", ["f(3)"]),
    ("assert sum(10, 15) == 25", "sum = lambda a, b: a + b", ["sum(10, 15)"]),
    ("assert all(f(x) for x in (1, 2)) and any(x > 1 for x in f(3))", "f = lambda x: [x]",
     ["f(1)", "f(2)", "f(3)"]),
    ("assert sorted(f([2, 1]), key=lambda x: -x) == [2, 1]", "f = lambda x: x", ["f([2, 1])"]),
    ("assert f'{f(2):.1f}' + '%d' % f(1) == '2.01'", "f = float", ["f(2)", "f(1)"]),
    ("assert list(map(f, [1, 2])) == [2, 3]", "f = lambda x: x + 1", ["f(1)", "f(2)"]),
    ("assert isinstance(f(1), (int, str)) and type(f(1)) is int", "f = int", ["f(1)", "f(1)"]),
    ("METADATA = {'author': 'x'}\ndef check(candidate):\n  assert candidate(1) == 1, str(candidate(1))\n"
     "  assert True", "f = int", ["f(1)"]),
    ("def test_f():\n  assert f(1) == 1", "f = int", ["f(1)"]),
    # A statement of its own changes its arguments; another call does not.
    ("x = [2, 1]\nf(x)\nassert x == [1, 2]", "f = list.sort", ["[_kept := [[2, 1]], f(_kept[0])][0]"]),
    ("x = [2, 1]\nassert f(x) == sum(x)", "def f(x):\n  x[:] = []\n  return 3", ["f([2, 1])"]),
    # An object that the test keeps remembers what was called.
    ("s = Stack()\ns.push(1)\ns.push(2)\nassert s.pop() == 2\nassert s.items == [1]", LIST,
     ["[_object := Stack(), _object.push(1), _object.push(2), _object.pop()][-1]",
      "[_object := Stack(), _object.push(1), _object.push(2), _object.pop(), _object.items][-1]"]),
    ("s = Stack(7)\nx = [1]\ns.fill(x)\nassert x == [1, 7]", LIST,
     ["[_kept := [[1]], Stack(7).fill(_kept[0])][0]"]),
    ("assert Diff([1, 2], [2]) == [1]", "Diff = lambda a, b: [1]", ["Diff([1, 2], [2])"])])
def test_only_calls_of_the_solution_are_handed_on(test, solution, calls):
  made = []
  assert outcome(test, solution, made, entry_point="f") and made == calls


@pytest.mark.parametrize("test, solution", [
    # Whatever a solution makes of names, only the values of its calls count.
    ("assert round(abs(f(3) - 9.42), 2) == 0", "abs = round = lambda *a: 0\nf = lambda x: 1"),
    ("assert f(3) - 9 == 0", "class E(int):\n  __sub__ = lambda *a: 0\nf = lambda x: 1"),
    ("x = [1, 2]\nassert f(x) == sum(x)", "def f(x):\n  x[:] = []\n  return 0"),
    ("assert f(1) == 1 and f(2) == 2 or f(3) == 3", "f = lambda x: 1"),
    ("assert not f(1)", "f = lambda x: [0]"), ("assert f(1) is True", "f = lambda x: 1"),
    ("assert f(1)[0] == 1", "f = lambda x: []"), ("assert f(1).upper() == 'A'", "f = lambda x: 5"),
    ("assert f(1) < 5", "f = lambda x: 'a'"), ("a, b = f(1)\nassert True", "f = lambda x: (1,)"),
    ("assert list(f(1)) == [1]", "f = lambda x: 1"), ("assert f(1) == [1]", "f = lambda x: iter([1])")])
def test_what_is_wrong_fails(test, solution):
  made = []
  assert not outcome(test, solution, made) and made


REFUSED = {
    "assert": "no Python", "assert 1 == 1": "calls no function", "assert f(g(1)) == 2": "what another call",
    "assert isclose(f(1), .5)": "what another call", "x = f(1)\nassert g(x) == 2": "what another call",
    "assert f([g(1)]) == 2": "what another call", "assert max(eval('f(3)'), 9) == 9": "`eval`",
    "assert eval('f(3) == 9')": "`eval`", "assert f.__name__ == 'f'": "__name__",
    "assert f(1).__class__ is int": "__class__", "import numpy as np\nassert np.allclose(f(1), 1)": "import numpy",
    "from random import *\nassert f(randint(1, 2)) == g(randint(1, 2)) + h(randint(1))": "what another call",
    "if f(1): assert f(2)": "cannot be computed", "for x in f(1): assert x": "cannot be computed",
    "while f(1): pass": "cannot be computed", "try:\n  f(1)\nexcept ValueError: pass": "cannot be computed",
    "assert f(10 ** 10 ** 10) == 1": "more than", "assert f('a' * 10 ** 9) == 1": "more than",
    "assert f(list(range(10 ** 9))) == 1": "more than", "assert f(1 << 10 ** 9) == 1": "more than",
    "assert f([sum(range(10 ** 4)) for _ in range(10 ** 4)]) == 1": "too long",
    "for i in range(300): assert f(i) == i": "more than 200 calls", "assert f(1) == 1 and 1 == 2": None,
    "assert 1 == 2 and f(1)": "no solution passes", "assert f(lambda x: x) == 1": "no literal",
    "x.y = f(1)": "cannot be computed", "assert P(1).x == 1\nassert P(1) + P(2) == P(3)": "object of P",
    "p = P(1)\np.add(2)\nassert p == 3": "object of P", "def check(candidate):\n  assert candidate(1)": "calls no function",
    "assert f(\n" + "(" * 300 + ")" * 300 + ")": "no Python", "assert f(1).foo() == 1": "cannot be computed",
    "assert sorted(f(1), key=lambda x: g(x)) == [1]": "what another call", "import os\nassert os.getcwd() == f(1)": "import os"}


@pytest.mark.parametrize("test", REFUSED)
def test_what_cannot_be_computed_is_refused(test):
  start = time.monotonic()
  def calls(): return _asserts.calls(_asserts.parse(test))
  if REFUSED[test] is None:
    assert list(calls()[0]) == ["f"]  # It fails, but only where the first part holds.
  else:
    with pytest.raises(_asserts.Refused, match=REFUSED[test]): calls()
  assert time.monotonic() - start < 5


def colliding(n): return [1 + i * (2**61 - 1) for i in range(n)]


SLOW = {
    "assert f(1) ** f(1) == 3": 10**6, "assert f(1) * f(1) == 3": 1 << 2**17, "assert f(1) * 'a' == 3": 10**9,
    "assert 'a' * f(1) == 'a'": 10**9, "assert [0] * f(1) == []": 10**9, "assert 1 << f(1) == 2": 10**9,
    "assert len(set(f(1))) == 2": colliding(30_000), "assert {v: 1 for v in f(1)} == {}": colliding(30_000),
    "assert {*[1], 2} & set(f(1)) == {1}": colliding(30_000), "assert {1}.issuperset(f(1))": colliding(30_000),
    "from collections import Counter\nassert Counter(f(1)) == {}": colliding(30_000),
    "assert list(range(f(1))) == []": 10**9, "assert sum(range(f(1))) == 1": 10**12, "assert round(5, f(1)) == 0": -10**9,
    "assert '%d' % f(1) == '1'": 10**5000, "assert f(1) % 5 == '1'": "%999999999d", "assert format(5, f(1)) == '5'": ">999999999",
    "assert f'{5:{f(1)}}' == '5'": ">999999999", "assert pow(3, f(1), f(1)) == 1": 3**20000, "assert bytes(f(1)) == b''": 10**9,
    "import math\nassert math.factorial(f(1)) == 1": 10**7, "import math\nassert math.comb(f(1), f(1) // 2) == 1": 10**7,
    "import math\nassert math.prod(f(1)) == 1": [2**4000] * 50_000, "import math\nassert math.lcm(*f(1)) == 1": [2**4000 + i for i in range(99)],
    "assert sum(f(1), []) == []": [[1]] * 60_000, "assert f(1).join(map(str, range(99999))) == ''": "a" * 10**5,
    "assert 'a'.zfill(f(1)) == 'a'": 10**9, "assert ('a' * 1000).replace('a', f(1)) == ''": "a" * 10**5,
    "assert f(1).replace('', f(1)) == ''": "a" * 10**5, "y = f(1)\nassert all(x in y for x in y if x == x)": list(range(3000)),
    "y = f(1)\nassert [x for x in y for z in y] == 1": list(range(5000)), "x = f(1)\nfor i in range(99): x = [x, x]\nassert x == 1": [1],
    "assert sorted(map(str, f(1))) == 1": [10**4000] * 300, "assert str(f(1)) == 1": 10**5000, "assert int(f(1)) == 1": "9" * 10**6,
    "assert [f(1)] * 1000 == [f(2)] * 1000": list(range(10**5)), "assert type(f(1), (), {})": "a"}


@pytest.mark.parametrize("test", SLOW)
def test_what_a_solution_returns_costs_a_bounded_time(test):
  body, start = _asserts.parse(test), time.monotonic()
  with pytest.raises(_asserts.Failed): _asserts.run(body, lambda *_: SLOW[test])
  assert time.monotonic() - start < 5


def encoded(kind, members): return json.dumps([kind, [["int", hex(m)] for m in members]]).encode()


@pytest.mark.parametrize("printed", [
    b"", b"1", b"1.5", b"{}", b"[]", b'{"int": 1, "list": 2}', b'["int", 5]', b'["int", "x"]', b'["list", "ab"]', b'["list"]',
    b'["list", [], []]', b'["eval", []]', b'["dict", [[1]]]', b'["dict", [[["list", []], null]]]', b'["set", [["list", []]]]',
    b'["float", "x"]', b'["bytes", "x"]', b'["complex", "1"]', b'["complex", "1 2 3"]', b'[["list"], []]', b"nul", b"\xff", b"NaN",
    b"9" * 10**5, b"[" * 10**5, b'["list", [' * 200 + b"]]" * 200, b'["int", "' + b"f" * 2**16 + b'"]',
    json.dumps("a" * 2**20).encode(), encoded("set", colliding(30_000)), encoded("frozenset", colliding(30)),
    json.dumps(["dict", [[["int", hex(v)], None] for v in colliding(30_000)]]).encode(),
    json.dumps(["set", [["tuple", [["int", hex(v)]]] for v in colliding(30)]]).encode(),
    json.dumps(["set", [["float", (-2.0**(61 * k)).hex()] for k in range(16)] + [["int", hex(-2**(61 * k))] for k in range(20, 40)]]).encode()])
def test_a_crafted_result_is_no_value_and_costs_a_bounded_time(printed):
  start = time.monotonic()
  with pytest.raises(ValueError): _values.decode(printed)
  assert time.monotonic() - start < 1


def test_a_value_of_the_greatest_size_is_read_in_bounded_time():
  spread = [(i * 0x9E3779B97F4A7C15) % 2**61 for i in range(30_000)]  # No two with one hash.
  start = time.monotonic()
  assert _values.decode(encoded("set", spread)) == set(spread)
  assert time.monotonic() - start < 2


@pytest.mark.parametrize("value", [
    None, True, -3, 2**5000, 0.1, -0.0, math.inf, -math.inf, 2 - 1j, complex(-0.0, math.inf), "a'\n\ud800", b"\0", [], [1, [2]], (), (1,), (1, 2),
    set(), {1, (2,)}, frozenset(), frozenset({1}), {}, {"a": {1: None}}, range(2, 9, 3), int])
def test_arguments_are_written_as_they_are(value):
  found = eval(_values.source(value))
  assert found == value and type(found) is type(value)
  assert repr(found) == repr(value)
  assert math.isnan(eval(_values.source(math.nan)))
  assert list(eval(_values.source(_values.Iterable([1])))) == [1]


def prompt(*tests, id="p", **meta):
  return records.Prompt(id, "?", verifier="code_tests.passed", meta=dict(meta, tests=list(tests)))


def program(*pairs): return [dict(input=i, output=o) for i, o in pairs]


@pytest.mark.parametrize("tests, constant", [
    (["assert f(1)", "assert f(2)"], "f that returns True"), (["assert not f(1)"], "f that returns False"),
    (["assert f(3) == 9"], None), (["assert f(3) == 1"], "True"), (["assert f(3) == []"], "[]"),
    (["assert f(3) == 9", "assert f(4) == 9"], "9"), (["assert f(3) == 9", "assert f(3) == 9"], None),
    (["assert f(3) == 9", "assert f(4) == 16"], None), (["assert f(3) > 8", "assert f(4) < 20"], "9"),
    (["assert abs(f(3) - 9.4) < 1", "assert abs(f(4) - 9.9) < 1"], "9.4"), (["assert f(1) == f(2)"], "f that returns"),
    (["assert len(f(3)) == 3", "assert len(f(4)) == 3"], "[0, 1, 2]"), (["assert 5 in f(1)", "assert 6 in f(2)"], "[5, 6"),
    (["assert f(2)", "assert not f(3)"], None), (["assert f(1) == 'ab'", "assert f(2).upper() == 'AB'"], "'ab'"),
    (["assert f(1) == 7", "assert g(1) == 8", "assert f(2) == 7", "assert g(2) == 8"], "g that returns 8"),
    (["assert f(1) == 7", "assert f(2) == 7", "assert g(1) == 8", "assert g(2) == 9"], None),
    (["assert f(1) + g(1) == 0", "assert f(2)"], "g that returns"), (["x = [1]\nf(x)\nassert x == []"], "[]"),
    (["def check(candidate):\n  assert candidate(1) == 5\n  assert candidate(2) == 5"], "5"),
    ([f"assert f(1) == {hex(7**9000)}", f"assert f(2) == {hex(7**9000)}"], "0x"),
    (["assert isinstance(f(1), int)", "assert f(1) >= 0"], "True"),
    (program(("1", "2\n"), ("2", "2")), "prints '2'"), (program(("1", "2"), ("2", "3")), None), (program(("1", "17")), None),
    (program(("1", "YES")), "prints 'YES'"), (["assert f(1)", *program(("1", "2"), ("2", "3"))], None),
    (["assert f(1)", *program(("1", ""))], "f that returns True and a program that prints ''")])
def test_what_passes_whatever_is_asked(tests, constant):
  found = code_tests.constant(prompt(*tests, entry_point="f"))
  assert (found is None) == (constant is None) and (constant or "") in (found or "")


def config(**verifier):
  return types.SimpleNamespace(verifier=ml_collections.ConfigDict(
      dict(dict(scores=(), allow_constant=False), **verifier)))


def test_prompts_that_cannot_be_judged_are_refused_by_their_number():
  rows = [dict(question="?", answer="x", tests=["assert f(1) == 1", "assert f(2) == 2"]) for _ in range(3)]
  rows[1]["tests"].append("assert f(g(1)) == 2")
  good, *bad = jsonl.prompts(rows, "train", verifier="code_tests.fraction", meta=("tests",))
  build.check_prompts(config(), [good])
  for taken in (config(), config(allow_constant=True)):
    with pytest.raises(ValueError, match=r"^prompt 'jsonl/train/1': tests\[2\] is 'assert f\(g\(1\)\) == 2': an argument"):
      build.check_prompts(taken, [good, *bad])
  with pytest.raises(ValueError, match=r"tests\[0\]\['input'\] is 5; a text is allowed"):
    build.check_prompts(config(), [prompt(dict(input=5, output=""))])
  with pytest.raises(ValueError, match=r"^prompt 'p': a prompt without tests"):
    build.check_prompts(config(), [prompt()])
  # Also where the code is judged beside the prompt's own verifier.
  other = records.Prompt("q", "?", verifier="math_answer.final")
  build.check_prompts(config(), [other])
  with pytest.raises(ValueError, match="^prompt 'q': a prompt without tests"):
    build.check_prompts(config(scores=("code_tests.passed",)), [other])


def test_prompts_that_a_constant_passes_are_refused_or_counted():
  prompts = [prompt("assert f(1)", id="a"), prompt("assert f(1) == 5", id="b"), prompt("assert f(2)", id="c")]
  with pytest.raises(ValueError, match=r"^prompt 'a': its tests are passed by f that returns True.*"
                     r"verifier.allow_constant=true. \(1 more such prompts\)$"):
    build.check_prompts(config(), prompts)
  taken = config(allow_constant=True)
  build.check_prompts(taken, prompts)
  found = doctor.no_constant_passes({p.id: build.constant_of(taken, p) for p in prompts})
  assert found.level == "warning" and found.text.startswith("the tests of 2 of 3 prompts are, of 'a' by f that")
  assert doctor.no_constant_passes({"b": None}).level == "ok"
