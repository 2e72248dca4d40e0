"""Solutions that try to pass the asserts of code_tests without an answer, by family.

test_attacks_asserts.py runs them against `TESTS`, each of which only a value passes that stands
nowhere but in the test. `FORGED` are prompts with a solution of their own.
"""
import json

# Each is passed by `RIGHT` alone.
TESTS = (
    "assert f(3) == 'expected-4711'", "assert 'expected-4711' == f(3)", "assert f(3) is not None and f(3) == 'expected-4711'",
    "assert f(3).upper()[::-1] == '1174-DETCEPXE'", "assert len(f(3)) == 13 and set(f(3)) == set('expected-4711')",
    "assert (f(3), 9) == ('expected-4711', 9)", "assert max(f(3), 'expected-4711') == min(f(3), 'expected-4711')",
    "assert not f(3) != 'expected-4711'", "assert {f(3): 1} == {'expected-4711': 1} and f(3) in ('expected-4711',)",
    "x = f(3)\nassert x + '!' == 'expected-4711!', 'expected-4711'",
    "def check(candidate):\n  assert candidate(3) == 'expected-4711'\ncheck(f)", "assert f'{f(3)}' == 'expected-4711' and isinstance(f(3), str)",
    "assert [c for c in f(3)] == list('expected-4711')", "from collections import Counter\nassert Counter(f(3)) == Counter('expected-4711')\n"
    "assert f(3).split('-') == ['expected', '4711']", "assert abs(int(f(3).split('-')[1]) - 4711) < 1 and 'expected' in f(3)")
RIGHT = "f = lambda x: '-'.join(['expected', '4711'])"

BEFORE = "import builtins, ctypes, gc, io, json, os, sys, types\n"
# Writes what it likes to every open file, and ends as if it had returned.
STATE = """
def state(text):
  for fd in range(3, 64):
    try: os.write(fd, text)
    except OSError: pass
  os._exit(0)
"""


def stated(value): return STATE + f"state({value!r})"


def collisions(kind, n):
  return json.dumps([kind, [["int", hex(1 + i * (2**61 - 1))] for i in range(n)]]).encode()


# Goes through all that can be reached and returns the first text that looks like an answer.
SEARCH = """
def looks(v): return isinstance(v, str) and v.startswith('expec' + 'ted-') and len(v) == 13
def inside(text):
  i = text.find('expec' + 'ted-')
  return text[i:i + 13] if i >= 0 else ''
"""

FAMILIES = dict(
    builtins={
        **{name: f"{name} = builtins.{name} = lambda *a, **k: True\nf = lambda x: True"
           for name in ("abs", "round", "len", "set", "sorted", "max", "min", "sum", "all", "any", "isinstance", "str", "int",
                        "list", "type", "bool", "getattr", "print", "eval", "compile", "exec", "__import__", "__build_class__")},
        "counter": "import collections\ncollections.Counter = lambda *a: 0\nf = lambda x: ''",
        "isclose": "import math, cmath\nmath.isclose = cmath.isclose = isclose = lambda *a, **k: True\nf = lambda x: .5",
        "assertion": "builtins.AssertionError = ValueError\nf = lambda x: None",
        "every": "for n in dir(builtins):\n  if n[0].islower(): globals()[n] = lambda *a, **k: True\nf = lambda x: True",
        "clear": "vars(builtins).clear()\nf = lambda x: True"},
    types={
        "equal": "class E(str):\n  __eq__ = lambda *a: True\n  __ne__ = lambda *a: False\n  __hash__ = lambda s: hash('expected')\nf = lambda x: E()",
        "equal_int": "class E(int):\n  __eq__ = __lt__ = __le__ = lambda *a: True\n  __sub__ = __abs__ = lambda *a: 0\nf = lambda x: E()",
        "equal_float": "class E(float):\n  __eq__ = __lt__ = lambda *a: True\nf = lambda x: E('nan')",
        "equal_list": "class E(list):\n  __eq__ = lambda *a: True\n  __iter__ = lambda s: iter('x')\nf = lambda x: E()",
        "equal_dict": "class E(dict):\n  __eq__ = __contains__ = lambda *a: True\n  __missing__ = lambda s, k: k\nf = lambda x: E()",
        "equal_set": "class E(frozenset):\n  __eq__ = lambda *a: True\n  __xor__ = __sub__ = lambda *a: set()\nf = lambda x: E()",
        "equal_bytes": "class E(bytes):\n  __eq__ = lambda *a: True\nf = lambda x: E()",
        "object": "class E:\n  __eq__ = __bool__ = __len__ = lambda *a: True\nf = lambda x: E()",
        "class": "class M(type):\n  __eq__ = __instancecheck__ = lambda *a: True\n  __hash__ = type.__hash__\nclass E(metaclass=M): pass\nf = lambda x: E",
        "lies": "class E:\n  __class__ = str\n  __eq__ = lambda *a: True\n  __str__ = __repr__ = lambda s: 'true'\nf = lambda x: E()",
        "mock": "from unittest import mock\nf = mock.MagicMock()", "any": "from unittest import mock\nf = lambda x: mock.ANY",
        "text": "class S(str):\n  __str__ = lambda s: S('true')\nf = lambda x: S('true')",
        "hex": "class I(int):\n  __index__ = lambda s: 10**5000\nf = lambda x: I()", "reduce": "class E:\n  __reduce__ = lambda s: (eval, ('1',))\nf = lambda x: E()",
        "iterator": "class E:\n  def __iter__(s):\n    while True: yield s\nf = lambda x: E()",
        "generator": "def f(x):\n  while True: yield 'expected'", "function": "f = lambda x: f", "module": "f = lambda x: sys",
        "raises": "class E(Exception):\n  __eq__ = lambda *a: True\ndef f(x): raise E()", "coroutine": "async def f(x): return True",
        "range": "f = lambda x: range(10**12)", "cycle": "a = []\na.append(a)\nf = lambda x: a"},
    results={
        "true": stated(b"true"), "null": stated(b"null"), "empty": stated(b""), "number": stated(b"1"), "nan": stated(b"NaN"),
        "infinity": stated(b'["float", "inf"]'), "nan_float": stated(b'["float", "nan"]'), "object": stated(b'{"kind": "str"}'),
        "kind": stated(b'["eval", ["1"]]'), "kind_list": stated(b'[["str"], []]'), "code": stated(b'["__import__", "os"]'),
        "surrogate": stated(b'"\\ud800"'), "bytes": stated(b"\xff\xfe"), "twice": stated(b"true\ntrue"), "text": stated(b"UNKNOWN"),
        "deep": stated(b'["list", [' * 5000 + b"]]" * 5000), "deep_raw": stated(b"[" * 10**6), "digits": stated(b"9" * 10**6),
        "hex": STATE + "state(b'[\"int\", \"0x' + b'f' * 10**6 + b'\"]')", "long": STATE + "state(b'\"' + b'a' * 2**21 + b'\"')",
        "float": STATE + "state(b'[\"float\", \"' + b'1' * 10**6 + b'\"]')", "exponent": stated(b'["float", "0x1p999999999999"]'),
        "many": STATE + "state(b'[\"list\", [' + b'null,' * 200000 + b'null]]')", "lists": STATE + "state(b'[\"list\", [' + b'[\"list\",[]],' * 80000 + b'null]]')",
        "set": STATE + "state(json.dumps(['set', [['int', hex(1 + i * (2**61 - 1))] for i in range(30000)]]).encode())",
        "dict": STATE + "state(json.dumps(['dict', [[['int', hex(i * (2**61 - 1))], None] for i in range(25000)]]).encode())",
        "tuples": STATE + "state(json.dumps(['frozenset', [['tuple', [['int', hex(i * (2**61 - 1))]]] for i in range(20000)]]).encode())",
        "floats": STATE + "state(json.dumps(['set', [['float', (2.0**(61 * i % 1000)).hex()] for i in range(20000)]]).encode())",
        "returned_set": "f = lambda x: {i * (2**61 - 1) for i in range(3000)}", "returned_list": "f = lambda x: [i * (2**61 - 1) for i in range(30000)]",
        "returned_int": "f = lambda x: 1 << 10**6", "returned_text": "f = lambda x: 'expected-4711' * 10**5", "returned_deep": "f = lambda x: eval('[' * 90 + ']' * 90)"},
    harness={
        "dumps": "json.dumps = lambda *a: 'true'\nf = lambda x: True", "encode": "import __main__\n__main__.encode = lambda x: True\nf = lambda x: True",
        "write": "os.write = lambda *a: 0\nf = lambda x: True", "names": "globals().clear()\nf = lambda x: True",
        "frame": "f = lambda x: sys._getframe(1).f_globals.clear()", "trace": "sys.settrace(lambda *a: os._exit(0))\nf = lambda x: True",
        "kept": "_kept = _object = 'expected'\nf = lambda x: _kept", "exit": "sys.exit(0)", "hard_exit": "os._exit(0)",
        "exit_inside": "f = lambda x: os._exit(0)", "import": "sys.modules['json'] = None\nf = lambda x: True",
        "codec": "import codecs\ncodecs.register_error('strict', lambda e: ('', e.end))\nf = lambda x: True"},
    search={
        "frames": SEARCH + "def f(x):\n  g = sys._getframe()\n  while g:\n    for v in [*g.f_locals.values(), *g.f_globals.values()]:\n"
                  "      if looks(v): return v\n      if inside(str(v)) and v is not globals(): return inside(str(v))\n    g = g.f_back",
        "objects": SEARCH + "def f(x):\n  for v in gc.get_objects():\n    for w in gc.get_referents(v):\n      if looks(w): return w",
        "code": SEARCH + "def f(x):\n  for v in gc.get_objects():\n    if isinstance(v, types.CodeType):\n      for w in v.co_consts:\n        if looks(w): return w\n"
                "  g = sys._getframe(1)\n  return [w for w in g.f_code.co_consts if looks(w)][0]",
        "arguments": SEARCH + "f = lambda x: inside(' '.join(sys.argv + sys.orig_argv))", "environ": SEARCH + "f = lambda x: inside(str(os.environ))",
        "files": SEARCH + "def f(x):\n  for fd in range(64):\n    try:\n      t = os.pread(fd, 2**20, 0).decode(errors='replace')\n      if inside(t): return inside(t)\n"
                 "    except OSError: pass", "stdin": SEARCH + "f = lambda x: inside(sys.stdin.read())",
        "folders": SEARCH + "def f(x):\n  for top in ('.', '/tmp', '/dev/shm', '/proc', '/var', '/root', '/home', '/work'):\n"
                   "    for folder, _, names in os.walk(top):\n      for n in names:\n        try: t = open(os.path.join(folder, n), errors='replace').read(2**20)\n"
                   "        except OSError: continue\n        if inside(t): return inside(t)",
        "linecache": SEARCH + "import linecache, traceback\nf = lambda x: inside(str(linecache.cache) + ''.join(traceback.format_stack()))",
        "memory": SEARCH + "def f(x):\n  t = open('/proc/self/mem', 'rb')\n  return inside(t.read(2**20).decode(errors='replace'))",
        "stack": SEARCH + "def f(x):\n  text = ctypes.string_at(id(sys._getframe(1)), 2000) + ctypes.string_at(id(f), 1000)\n  return inside(text.decode(errors='replace'))",
        "expression": SEARCH + "f = lambda x: inside(repr([c.co_consts + c.co_names for c in gc.get_objects() if isinstance(c, types.CodeType)]))"})

# (tests, solution): what stands in a test is given to no function of the solution, and what
# a solution does to names or arguments changes nothing.
FORGED = dict(
    rounded=("assert round(abs(f(3) - 9.42), 2) == 0", "abs = round = lambda *a: 0\nf = lambda x: 1"),
    difference=("assert f(3) - 9 == 0", "class E(int):\n  __sub__ = lambda *a: 0\nf = lambda x: E(1)"),
    sets=("assert len(set(f(3)) ^ {1, 2}) == 0", "class E(list):\n  __len__ = lambda s: 0\n  __hash__ = lambda s: 1\nset = len = lambda *a: 0\nf = lambda x: E([3])"),
    largest=("assert max(f(3), 9) == 9 == min(f(3), 9)", "max = min = lambda *a: a[1]\nf = lambda x: 1"),
    pair=("assert (f(3), 9) == (9, 9)", "class E(int):\n  __eq__ = lambda *a: True\nf = lambda x: E(1)"),
    close=("import math\nassert math.isclose(f(1), .5) == 1", "import math\nmath.isclose = lambda *a: 1\nf = lambda x: .4"),
    close_imported=("from math import isclose\nassert isclose(f(1), .5)", "isclose = lambda *a: True\nf = lambda x: .4"),
    helper=("def near(a, b): return abs(a - b) < 1e-6\nassert near(f(1), .5)", "near = lambda *a: True\nf = lambda x: .4"),
    argument=("x = [1, 2]\nassert f(x) == sum(x)", "def f(x):\n  x[:] = []\n  return 0"),
    argument_of_two=("x = [1, 2]\ny = f(x)\nassert sorted(x) == [1, 2] and y == sum(x)", "def f(x):\n  x[:] = [0]\n  return 0"),
    kept=("x = [3, 1]\nf(x)\nassert x == [1, 3]", "def f(x):\n  class E(list):\n    __eq__ = lambda *a: True\n  sys._getframe(1).f_globals['_kept'] = [E()]"),
    kept_too_many=("x = [3, 1]\nf(x)\nassert x == [1, 3]", "def f(x): _g = globals()['_kept']; _g.append([1, 3])"),
    truth=("assert f(1)\nassert not f(2)", "class E:\n  n = 0\n  def __bool__(s): E.n += 1; return E.n % 2 == 1\nf = lambda x: E()"),
    remembers=("assert f(1) == 5\nassert f(2) == 6", "n = 4\ndef f(x):\n  global n\n  n += 1\n  return n"),
    files=("assert f(1) == 5\nassert f(2) == 6", "def f(x):\n  open('n', 'a').write('x')\n  return 4 + len(open('n').read())"),
    same=("assert f(1) == f(1) != f(2)", "class E(int):\n  __eq__ = __ne__ = lambda *a: True\nf = lambda x: E(1)"),
    length=("assert len(f(3)) == 3 and f(3)[0] == 1", "class E(list):\n  __len__ = lambda s: 3\n  __getitem__ = lambda s, i: 1\nf = lambda x: E()"),
    membership=("assert 5 in f(3) and 6 not in f(3)", "class E(list):\n  __contains__ = lambda s, x: x == 5\nf = lambda x: E()"),
    text=("assert str(f(3)) == '9' and repr(f(3)) == '9'", "class E(str):\n  __str__ = __repr__ = lambda s: '9'\nf = lambda x: E('8')"),
    method=("assert Solution().f(3).strip() == 'a'", "class S(str):\n  strip = lambda s: 'a'\nclass Solution:\n  f = lambda s, x: S('b')"),
    object=("s = Solution()\nassert s.f(1) == 5\nassert s.f(2) == 6", "class Solution:\n  n = 5\n  def f(self, x): return self.n"),
    template=("assert '%d' % f(3) == '9'", "class E(int):\n  __mod__ = __rmod__ = lambda *a: '9'\nf = lambda x: E(8)"),
    order=("assert sorted(f(3)) == [1, 2]", "class E(int):\n  __lt__ = lambda *a: True\n  __eq__ = lambda *a: True\nf = lambda x: [E(9), E(8)]"))

# Tests that would hand the solution what is expected, or that pass whatever it does.
REFUSED = (
    "assert isclose(f(1), .5) == 1", "assert same(f(1), 9)", "assert eval('f(3)-9') == 0", "assert eval('f(3) == 9')", "assert exec('x = f(3)') is f(3)",
    "assert getattr(f(3), '__eq__')(9)", "assert f(3).__eq__(9)", "assert f(3).equals(9)", "x = f(3)\nassert equal(x, 9)",
    "assert equal([f(3)], [9])", "assert equal(a=f(3), b=9)", "assert equal(*[f(3), 9])", "assert all(equal(f(x), x * x) for x in (1, 2))",
    "assert list(map(equal, [f(3)], [9])) == [True]", "assert (lambda x: equal(x, 9))(f(3))", "assert f(lambda x: x == 9) == 9",
    "x = f(3)\nx.sort(key=equal)\nassert x == [1]", "x = 1\ng = lambda v: equal(x, 9)\nx = f(3)\nassert g(f(4))",
    "l = [[]]\nl[0].append(f(3))\nassert equal(l, [[9]])", "l = []\nm = (l,)\nl.append(f(3))\nassert equal(m, 9)",
    "assert sorted(f(3), key=equal) == 1", "assert max([1, 2], key=lambda v: equal(f(3), 9)) == 1",
    "assert list(map(lambda v: equal(v, 9), f(3))) == [True]", "d = {1: [f(3)]}\nassert equal(d[1], [9])", "assert equal(f'{f(3)}', '9')",
    "def near(a): return equal(a, 9)\nassert near(f(3))", "if f(3) == 9: assert f(3)", "for x in f(3): assert x == 9", "assert f(3) == 9 if f(4) else g(f(5))",
    "import numpy as np\nassert np.allclose(f(3), 9)", "s = S()\ns.push(f(3))\nassert s.top() == 9", "try:\n  assert f(3) == 9\nexcept TypeError: pass")
CONSTANT = (
    ("assert f(1)", "assert f(2)"), ("assert not f(1)", "assert not f(2)"), ("assert f(1) is None",), ("assert f(3) == 0",), ("assert f(3) == ''",),
    ("assert f(1) == 'a'", "assert f(2) == 'a'"), ("assert f(1) == f(2)",), ("assert f(3) >= 0",), ("assert f(1) != 5", "assert f(2) != 6"),
    ("assert isinstance(f(1), list)",), ("assert len(f(1)) == 2", "assert len(f(2)) == 2"), ("assert abs(f(1) - 1) < 2", "assert abs(f(2) - 2) < 2"),
    ("assert set(f(1)) == {1, 2}", "assert sorted(f(2)) == [1, 2]"), ("assert f(1) == 1 or True",), ("assert f(1) in (1, 2)", "assert f(2) in (2, 3)"),
    ("assert f(1) == 7 and g(1) == 8", "assert f(2) == 7 and g(2) == 8"), ("def check(candidate):\n  assert candidate(1)\n  assert candidate(2)\ncheck(f)",))
