"""Steps in processes: deadlines, repetition, and whose fault a failure is."""
import os
import time

import pytest

from rlx.core import records
from rlx.environments import runner as runner_lib
from rlx.verifiers import process

COUNTING, BOUNDED = (f"tests.environments.counting:{name}" for name in ("Counting", "Bounded"))


def prompt(text="q"): return records.Prompt(id=text, text=text)


@pytest.fixture
def make():
  made = []
  def make(path=COUNTING, workers=1, timeout_s=60.0, **options):
    made.append(runner_lib.Runner(path, options, workers=workers, timeout_s=timeout_s,
                                  memory_gb=2.0, variables=("RLX_LOSSES", "NAMED_KEY")))
    return made[-1]
  yield make
  for runner in made: runner.close()


def take(runner, state, *replies):
  """The Taken steps of replies, one after the other."""
  out = []
  for reply in replies:
    out.append(runner.step(state, reply).result())
    state = out[-1].state
  return out


@pytest.mark.parametrize("path, workers", [(COUNTING, 1), (COUNTING, 2), (BOUNDED, 0)])
def test_an_episode(make, path, workers):
  runner = make(path, workers, end=2)
  opening, state = runner.reset(prompt())
  assert opening == "q?"
  first, last = take(runner, state, "a", "right")
  assert (first.step.observation, first.step.reward, first.step.done) == ("1;", None, False)
  assert (last.step.reward, last.step.done, last.step.info) == (1.0, True, dict(count=2.0))
  again, = take(runner, state, "a")  # A state is not changed by steps from it.
  assert again.step == first.step


@pytest.mark.parametrize("reply, kind, says", [
    ("raise", "exception", "failed"), ("tuple", "exception", "failed"),
    ("exit", "crash", "crashed"), ("hang", "timeout", "took too long"),
    ("memory", "crash", "crashed"), ("big", "exception", "failed"), ("nan", "crash", "crashed"),
    ("words", "crash", "crashed")])
def test_what_a_reply_causes_is_known(make, reply, kind, says):
  runner = make(timeout_s=1.0 if reply == "hang" else 60.0)
  _, state = runner.reset(prompt())
  start = time.monotonic()
  taken, after = take(runner, state, reply, "a")
  assert time.monotonic() - start < 100  # Of one try of "hang".
  assert taken.step.observation == f"The step {says}." and not taken.step.done
  assert taken.step.reward is None and runner.failures == {kind: 1} and not runner.errors
  assert after.step.observation == "1;"  # From the state before.


def test_a_reward_that_is_no_number_is_a_failure_without_processes_too(make):
  runner = make(BOUNDED, workers=0)
  taken, = take(runner, runner.reset(prompt())[1], "nan")
  assert taken.step.observation == "The step failed." and runner.failures == dict(exception=1)


@pytest.mark.parametrize("text", ["once", "twice"])
def test_processes_that_are_lost_once_or_twice_cost_nothing(make, tmp_path, monkeypatch, text):
  monkeypatch.setenv("RLX_LOSSES", str(tmp_path / "losses"))
  runner = make()
  _, state = runner.reset(prompt(text))
  taken, = take(runner, state, "a")
  assert (tmp_path / "losses").stat().st_size > 1  # It died in the first try.
  assert taken.step.observation == "1;" and not runner.errors and not runner.failures


@pytest.mark.parametrize("reply, kind", [
    ("fat", "exception"), ("sleeper", "timeout"), ("sleeper killer", "crash"),
    ("unreadable", "exception"), ("wordy", "crash")])
def test_a_reply_that_makes_later_steps_fail_is_at_fault(make, reply, kind):
  """The outcome is known: without the content of the replies the episode would go on."""
  runner = make(timeout_s=1.0 if reply == "sleeper" else 60.0, end=9)
  _, state = runner.reset(prompt())
  first, second, third = take(runner, state, reply, "a", "right")
  assert first.step.observation == "1;" and not first.failed
  assert second.failed and third.failed and third.step.reward is None
  assert runner.failures == {kind: 2} and not runner.errors


def test_an_environment_that_fails_later_whatever_the_replies_is_unknown(make):
  runner = make(end=9)
  taken = take(runner, runner.reset(prompt("worn"))[1], "a", "b")
  assert taken[0].step.observation == "1;" and taken[1].step is None
  assert runner.errors == dict(exception=1) and not runner.failures


@pytest.mark.parametrize("work, is_new", [(0, True), (50, False)])
def test_old_processes_are_replaced_unless_they_start_slowly(make, monkeypatch, work, is_new):
  monkeypatch.setattr(process, "LIFE", 3)
  monkeypatch.setattr(process, "WORK", work)
  runner = make()
  _, state = runner.reset(prompt())
  before = runner._processes[0].process.pid
  for _ in range(4): take(runner, state, "a")
  assert (runner._processes[0].process.pid != before) == is_new


def test_an_environment_that_fails_without_the_reply_too_is_unknown(make):
  runner = make()
  _, state = runner.reset(prompt("dead"))
  taken, = take(runner, state, "a")
  assert taken.step is None and taken.state == state
  assert runner.errors == dict(exception=1) and "always" in runner.last_error


def test_environments_get_named_variables_alone(make, monkeypatch):
  values = dict(OPENAI_API_KEY="sk-LEAK", ANYTHING="sk-LEAK", https_proxy="http://me:sk-LEAK@host",
                http_proxy="http://host", NAMED_KEY="key", PATH=os.environ["PATH"])
  for name, value in values.items(): monkeypatch.setenv(name, value)
  runner = make("tests.environments.counting:Spy")
  said = dict(zip(values, take(runner, runner.reset(prompt())[1], *values)))
  assert {name: taken.step.observation for name, taken in said.items()} == {
      name: "nothing" if "LEAK" in value else value for name, value in values.items()}


def test_printed_text_is_no_reply(make):
  runner = make()
  assert take(runner, runner.reset(prompt())[1], "print")[0].step.observation == "1;"


def test_a_start_that_fails_names_the_prompt(make):
  with pytest.raises(ValueError, match="prompt 'broken': KeyError: 'no such thing'"):
    make().reset(prompt("broken"))


@pytest.mark.parametrize("path, workers, options, message", [
    (COUNTING, 0, {}, "episodes.workers=0: a step of .*Counting may run for ever"),
    (COUNTING, 1, dict(ends=3), r"environment.ends: .*Counting takes \['end', 'slow_s'\]"),
    ("calculater.Calculator", 1, {}, "environment.name='calculater.Calculator'"),
])
def test_refuses(make, path, workers, options, message):
  with pytest.raises(ValueError, match=message): make(path, workers, **options)


def test_steps_run_side_by_side_and_close_ends_them(make, tmp_path):
  runner = make(workers=2)
  states = [state for _, state in runner.begin([prompt("a"), prompt("b")])]
  jobs = [runner.step(state, f"meet {tmp_path}") for state in states]  # Each waits for the other.
  assert [job.result().step.observation for job in jobs] == ["1;", "1;"]
  runner.step(states[0], "hang")
  runner.close()
  assert runner.reset(prompt())[0] == "q?"  # New processes.
