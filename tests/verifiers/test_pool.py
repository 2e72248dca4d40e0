import contextlib
import dataclasses
import functools
import json
import os
import pathlib
import pickle
import random
import signal
import subprocess
import sys
import threading
import time
import types

import numpy as np
import pytest

from rlx.build import verifiers as build_verifiers
from rlx.configs import base
from rlx.core import records, resolve
from rlx.verifiers import _worker, pool as pool_lib, process, usage
from tests.verifiers import hostile

nan = np.nan
FUNCTIONS = {f"hostile.{name}": fn for name, fn in resolve.list_functions(hostile).items()}


@pytest.fixture
def make():
  pools = []
  def make(*args, functions={}, **kwargs):
    pools.append(pool_lib.Pool(*args, functions=FUNCTIONS | functions, **kwargs))
    return pools[-1]
  yield make
  for pool in pools: pool.close()


def prompt(verifier="hostile.obey", answer="yes"):
  return records.Prompt("p", "?", answer, verifier)


def verify(pool, texts, *args):
  return pool.verify([prompt(*args)] * len(texts), texts)


def hasty_if(hangs):
  """`obey` with a deadline of a second for what hangs, so that all else may take what it needs."""
  return "hostile.hasty" if hangs else "hostile.obey"


def test_what_a_completion_causes_is_0_for_it_alone(make):
  pool = make(2, timeout_s=60.0, memory_gb=2.0)
  texts = ["yes", "loop", "no", "exit", "yes", "raise", "segfault", "recurse", "nan",
           "two", "memory", "regex", "none", "unknown", "no", "yes"]
  verdicts = pool.verify([prompt(hasty_if(text in ("loop", "regex"))) for text in texts], texts)
  np.testing.assert_array_equal(verdicts, [1, 0, 0, 0, 1, 0, 0, 0, nan, 0, 0, 0, 0, nan, 0, 1])
  assert pool.failures == dict(timeout=2, crash=2, exception=4, memory=1)
  assert pool.errors == dict(unknown=2) and pool.last_error == "no endpoint"
  assert pool.take_failed_share() == 9 / 16
  np.testing.assert_array_equal(verify(pool, ["no", "yes"]), [0, 1])
  assert pool.take_failed_share() == pool.take_failed_share() == 0


def test_the_best_verdict_of_several_accepted_answers_counts(make):
  """Unknown where one of them is and none is right; in workers as in this process."""
  p = records.Prompt("p", "?", "1/2", "math_answer.final", answers=("1/2", "a half", "x^2"))
  texts = ["it is \\boxed{0.5}", "\\boxed{a half}", "\\boxed{x*x}", "\\boxed{3}"]
  assert make(1, timeout_s=60.0).verify([p] * 4, texts).tolist() == [1, 1, 1, 0]
  def share(prompt, text):
    if prompt.answer == "x^2" and text == "?": return nan
    return len(set(prompt.answer) & set(text)) / len(set(prompt.answer))
  pool = make(0, timeout_s=5.0, functions=dict(share=share))
  p = dataclasses.replace(p, verifier="share")
  np.testing.assert_array_equal(pool.verify([p] * 3, ["half", "x", "?"]), [4 / 5, 1 / 3, nan])


def test_verifiers_get_named_variables_alone(monkeypatch):
  """Those of verifier.variables and the judge's key, and what every process needs."""
  c = base.get_config()
  c.verifier.workers, c.verifier.timeout_s, c.verifier.variables = 1, 60.0, ("NAMED_KEY",)
  c.verifier.judge.api_key_env = "JUDGE_KEY"
  values = dict(NAMED_KEY=1, JUDGE_KEY=1, HOME=1, OPENAI_API_KEY=0, ANYTHING=0, NAMED_KEY_2=0)
  for name in values: monkeypatch.setenv(name, "x")
  p = prompt("tests.verifiers.hostile:has_variable", "x")
  with contextlib.closing(build_verifiers.pool_of(c, [p])) as pool:
    assert dict(zip(values, pool.verify([p] * len(values), [*values]))) == values
    assert not pool.errors and not pool.failures


def test_a_reference_that_never_ends_may_come_first(make, monkeypatch):
  monkeypatch.setattr(pool_lib, "_FIRST_S", 1.0)
  pool = make(1, timeout_s=1.0)
  prompts = [prompt(answer="sleep"), prompt(answer="sleep"), prompt(answer="exit"), prompt()]
  verdicts = pool.verify(prompts, ["no", "sleep", "exit", "yes"])
  np.testing.assert_array_equal(verdicts, [0, nan, nan, 1])
  assert pool.errors == dict(timeout=1, crash=1)


def test_where_the_reference_fails_in_the_same_way_it_is_unknown(make):
  pool, kinds = make(3, timeout_s=60.0, memory_gb=2.0), ["exit", "sleep", "memory", "raise", "two"]
  # The other prompt's completion shows that the worker is none the worse.
  prompts = [prompt(hasty_if(text == "sleep"), answer)
             for text in kinds for answer in ("yes", text, text, "yes")]
  texts = [text for kind in kinds for text in (kind, kind, "no", "yes")]
  np.testing.assert_array_equal(pool.verify(prompts, texts), [0, nan, 0, 1] * len(kinds))
  assert pool.failures == pool.errors == dict(crash=1, timeout=1, memory=1, exception=2)


def test_a_reference_that_fails_in_another_way_does_not_excuse_a_completion(make):
  pool = make(1, timeout_s=60.0)
  np.testing.assert_array_equal(verify(pool, ["exit", "raise"], "hostile.obey", "raise"), [0, nan])
  # If the reference is unknown, nobody knows what a right completion would do.
  np.testing.assert_array_equal(verify(pool, ["exit"], "hostile.obey", "unknown"), [nan])
  assert pool.failures == dict(crash=1) and pool.errors == dict(exception=1, crash=1)


def test_a_reference_is_checked_once(make, tmp_path):
  pool, log = make(1, timeout_s=60.0), tmp_path / "log"
  np.testing.assert_array_equal(verify(pool, ["raise"] * 4, "hostile.listed", str(log)), [0] * 4)
  # Once when the verifier is loaded, once for the first of the failures.
  assert log.read_text().split() == [str(log), "raise", str(log), "raise", "raise", "raise"]


def test_what_fails_untried_is_unknown(make):
  pool = make(1, timeout_s=2.0)
  np.testing.assert_array_equal(
      verify(pool, ["exit", "raise", "sleep", "yes"], "hostile.untried"), [nan, nan, nan, 1])
  assert pool.errors == dict(crash=1, exception=1, timeout=1) and not pool.failures


def test_limits_of_a_verifier(make):
  pool = make(1, timeout_s=60.0, memory_gb=4.0)
  # Packages and earlier completions do not count: 400 MB fit again and again.
  np.testing.assert_array_equal(
      verify(pool, ["400", "keep 300", "400", "600", "400"], "hostile.take", "1"), [1, 1, 1, 0, 1])
  np.testing.assert_array_equal(verify(pool, ["600"], "hostile.unlimited", "1"), [1])
  assert pool.failures == dict(memory=1) and pool.recycled == 2  # Twice for the first 600 MB.
  start = time.monotonic()
  np.testing.assert_array_equal(verify(pool, ["sleep", "yes"], "hostile.hasty"), [0, 1])
  assert pool.failures == dict(memory=1, timeout=1) and time.monotonic() - start < 30


def test_the_smaller_limit_counts(make):
  small, hasty = make(1, timeout_s=60.0, memory_gb=0.25), make(1, timeout_s=0.5)
  np.testing.assert_array_equal(verify(small, ["400"], "hostile.take", "1"), [0])
  start = time.monotonic()
  np.testing.assert_array_equal(verify(hasty, ["sleep"], "hostile.patient"), [0])
  assert small.failures == dict(memory=1) and hasty.failures == dict(timeout=1)
  assert time.monotonic() - start < 60  # Of one try.


LINE = b"[3, 1.0, null, null, {}]\n"  # A reply to a worker's third request, its first completion.


def say(*lines):
  """Completions that write these bytes instead of a reply."""
  return ["say " + line.hex() for line in lines]


def test_what_is_no_reply_is_a_crash(make, tmp_path):
  """And nothing that a worker sends is unpickled."""
  class Bomb:
    def __reduce__(self): return pathlib.Path.touch, (tmp_path / "here",)
  pickles = [pickle.dumps(x) + b"\n" for x in (["a"], Bomb(), ("result", Bomb()))]
  framed = [len(p).to_bytes(4, "big") + p for p in pickles]  # As multiprocessing.connection does.
  lines = (
      b"\n", b"3\n", b"[]\n", b"[3, 1.0, null, {}]\n", b"[2, 1.0, null, null, {}]\n", LINE + LINE,
      LINE[:-2] + b"\n", b"[3, 1.5, null, null, {}]\n", b"[3, NaN, null, null, {}]\n",
      b"[3, true, null, null, {}]\n", b"[3, 1e999, null, null, {}]\n",
      b'[3, {"a": 1}, null, null, {}]\n', b"[3, [2.0], null, null, {}]\n",
      b"[3, 1.0, 1, null, {}]\n", b'[3, 1.0, "timeout", null, {}]\n', b"[3, 1.0, null, 7, {}]\n",
      b"[" * 100_000 + b"\n", b"[" + b"9" * 10_000 + b"]\n", b"\xff\xfe\n", b"\0" * 100 + b"\n",
      b"x" * (2**22 + 1), b"[3, 1.0, null, null, []]\n", b'[3, 1.0, null, null, {"a/b": "1"}]\n',
      *pickles, *framed)
  assert pool_lib._read(LINE, 3) and [pool_lib._read(line, 3) for line in lines] == [None] * 29
  pool, texts = make(3, timeout_s=60.0), say(*lines[4:6], *lines[16:17], *lines[20:23], framed[1])
  np.testing.assert_array_equal(verify(pool, [*texts, "yes"]), [0] * len(texts) + [1])
  assert pool.failures == dict(crash=len(texts)) and not (tmp_path / "here").exists()


def test_half_a_reply_does_not_stop_the_clock(make):
  pool, start = make(1, timeout_s=1.0), time.monotonic()
  np.testing.assert_array_equal(verify(pool, [*say(LINE[:-1]), "yes"]), [0, 1])
  assert pool.failures == dict(timeout=1) and time.monotonic() - start < 60  # Of one try.


def test_a_worker_that_does_not_read_does_not_stop_the_clock(make):
  pool = make(1, timeout_s=3.0)
  verify(pool, ["yes"])
  os.kill(pool._workers[0].process.pid, signal.SIGSTOP)
  np.testing.assert_array_equal(verify(pool, ["x" * 10_000_000, "yes"]), [0, 1])
  # That was not the completion's doing: in a new worker it is just wrong.
  assert pool.recycled == 1 and not pool.errors + pool.failures


def test_what_kills_workers_costs_no_verdict(make, monkeypatch, tmp_path, request, capsys):
  """Dead after any byte of a reply, or from outside at any moment. `--soak`: 10,000."""
  n = 8001 if (is_soak := request.config.getoption("--soak")) else 21
  started, popen, rng = [], subprocess.Popen, random.Random(0)
  monkeypatch.setattr(process.subprocess, "Popen", lambda *args, **kwargs: (
      started.append(popen(*args, **kwargs)) or started[-1]))
  pool, begin = make(2, timeout_s=60.0), time.monotonic()
  for batch in range(0, 2 * n, 42):
    texts = [f"die {tmp_path}/{batch + i} {i // 2} {rng.random() / 500}"
             if i % 2 else rng.choice(["yes", "no"]) for i in range(42)]
    expected = [float(text != "no") for text in texts]
    np.testing.assert_array_equal(verify(pool, texts), expected)
  assert (inside := pool.recycled) == n and not pool.errors + pool.failures

  # Twice in a row is the completion's doing, for all that can be known.
  # Workers that are starting are killed seldom, or on a busy machine none would ever start.
  def kill_some():
    while not is_over.wait(rng.random() / 4):
      worker = rng.choice(pool._workers)
      if worker.loaded or rng.random() < 0.2: worker.process.kill()

  is_over, wrong, verdicts = threading.Event(), 0, 0
  (killer := threading.Thread(target=kill_some)).start()
  try:
    while pool.recycled < inside + (2000 if is_soak else 6):
      texts = [rng.choice(["yes", "no", "no" * 200_000]) for _ in range(200)]
      wrong += int(np.sum(verify(pool, texts) != [float(text == "yes") for text in texts]))
      verdicts += 200
  finally:
    is_over.set()
    killer.join()
  deaths = pool.recycled
  pool.close()
  assert wrong <= sum((pool.errors + pool.failures).values()) <= 0.01 * deaths + 2
  assert len(started) == deaths + 2
  assert not (left := processes_of_sessions({p.pid for p in started})), left
  with capsys.disabled():
    print(f"\npool: {inside} deaths in a reply, 0 verdicts lost; {deaths - inside} from outside, "
          f"{wrong} of {verdicts} verdicts; {time.monotonic() - begin:.0f} s")


def processes_of_sessions(ids):
  running = []
  for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
    with contextlib.suppress(OSError):
      fields = path.read_text().rpartition(")")[2].split()
      if int(fields[3]) in ids and fields[0] != "Z": running.append(path.parent.name)
  return running


@pytest.mark.parametrize("verifier", [
    "math_answer.boxed", "math_answer.final", "code_tests.passed", "gym_task.answer",
    "judge.chat", "judge.function"])
def test_without_workers_only_bounded_verifiers_run(make, verifier):
  message = (rf"verifier.workers=0: {verifier} \(prompt 'p'\) may run for ever, "
             ".* set verifier.workers >= 1")
  with pytest.raises(ValueError, match=message):
    verify(make(0, timeout_s=1.0), ["x"], verifier)


@pytest.mark.parametrize("workers", [0, 2])
def test_verdicts_are_in_order_whatever_the_verifier(make, workers):
  pool = make(workers, timeout_s=60.0)
  prompts = [records.Prompt(str(i), "3M5=", "5", ["hostile.calm", "chain.answer"][i % 2])
             for i in range(40)]
  texts = [["5", "6", "5#5", "5#4"][i % 4] for i in range(40)]
  # calm: the text is the answer; chain: the completion is well-formed and right.
  expected = [1.0 if i % 4 == 0 else 0.0 for i in range(40)]
  np.testing.assert_array_equal(pool.verify(prompts, texts), expected)
  assert pool.verify([], []).shape == (0,)
  with pytest.raises(ValueError, match="^1 prompts for 2 completions"):
    pool.verify(prompts[:1], texts[:2])


@pytest.mark.parametrize("workers", [0, 1])
def test_steps_are_judged_one_by_one(make, workers):
  pool = make(workers, timeout_s=60.0)
  prompts = [prompt("hostile.steps")] * 4 + [prompt("hostile.steps", "raise")]
  assert pool.verify_lists(prompts, ["yes;no", "yes;raise", "nan", "", "raise"]) == [
      [1.0, 0.0], 0.0, [], [0.0], []]
  assert pool.failures == dict(exception=1) and pool.errors == dict(exception=1, unknown=1)
  with pytest.raises(ValueError, match="'hostile.calm' gives a float, not a list"):
    pool.verify_lists([prompt("hostile.calm")], ["yes"])
  with pytest.raises(ValueError, match="'hostile.steps' gives a list, not a float"):
    pool.verify(prompts[:1], ["yes"])


def test_in_process_exceptions_are_0(make):
  pool = make(0, timeout_s=60.0)
  np.testing.assert_array_equal(
      verify(pool, ["yes", "raise", "no", "nan", "two", "recurse", "unknown"], "hostile.calm"),
      [1, 0, 0, nan, 0, 0, nan])
  assert pool.failures == dict(exception=3) and pool.errors == dict(unknown=2)
  assert pool.last_error == "no endpoint"
  np.testing.assert_array_equal(verify(pool, ["raise"], "hostile.calm", "raise"), [nan])


def test_odd_texts_are_wrong_not_fatal(make):
  odd = ["", "\0", "5\0#5", "\ud800", "5#5" * 300_000, "9" * 1_000_000, "\\boxed{" * 2000,
         "\\boxed", "\\boxed{}", "٣", "{" * 1_000_000, "answer" + " " * 1_000_000]
  pool, boxed = make(1, timeout_s=60.0), r"\boxed{72}"
  for verifier, answer, good in [("chain.answer", "5", "5#5"), ("format.boxed", "", boxed),
                                 ("math_answer.boxed", "72", boxed),
                                 ("math_answer.final", "72", "72")]:
    prompts = [records.Prompt("p", "3M5=", answer, verifier)] * 13
    np.testing.assert_array_equal(pool.verify(prompts, [*odd, good]), [0] * 12 + [1], verifier)
  # They may be late as well: math_answer takes at most 2 s.
  assert not pool.errors and set(pool.failures) <= {"timeout"}


def test_a_late_worker_takes_its_children_along(make):
  pool = make(1, timeout_s=60.0)
  verify(pool, ["yes"], "hostile.hasty")
  session = pool._workers[0].process.pid
  np.testing.assert_array_equal(verify(pool, ["child", "yes"], "hostile.hasty"), [0, 1])
  assert pool.failures == dict(timeout=1) and pool.recycled == 2  # It was tried twice.
  for _ in range(600):
    if not processes_of_sessions({session}): return
    time.sleep(0.1)
  pytest.fail("the verifier's child outlived it")


def test_a_late_worker_that_nobody_kills_ends_by_itself():
  """As when the pool has died, also in C code."""
  worker = process.Process("rlx.verifiers._worker", 4.0)
  own = types.SimpleNamespace(verifier="own", answer="yes", meta={})
  try:
    worker.ask(100.0, "load", "own", pickle.dumps(hostile.obey))
    assert json.loads(worker.ask(1.0, "run", own, "yes")[0])[1] == 1.0
    time.sleep(3.2)  # One that waits for requests has no deadline.
    assert worker.process.poll() is None
    assert worker.ask(0.1, "run", own, "regex")[1] == "timeout"
    assert worker.process.wait(100) == -signal.SIGALRM
  finally:
    worker.kill()


def test_a_worker_lost_while_idle_costs_no_verdict(make):
  pool = make(1, timeout_s=60.0)
  verify(pool, ["yes"])
  pool._workers[0].process.kill()
  pool._workers[0].process.wait()
  np.testing.assert_array_equal(verify(pool, ["yes", "no"]), [1, 0])
  assert not pool.errors


def test_an_interrupt_ends_the_workers_at_once(make, request):
  # A shell starts background jobs with SIGINT ignored, which Python then leaves as it is.
  old = signal.signal(signal.SIGINT, signal.default_int_handler)
  request.addfinalizer(lambda: signal.signal(signal.SIGINT, old))
  pool, start = make(2, timeout_s=60.0), time.monotonic()
  verify(pool, ["yes", "yes"])
  workers = list(pool._workers)
  children, asked = [w.process for w in workers], [w.number for w in workers]

  def interrupt():  # Once both sleep.
    while any(w.number == n for w, n in zip(workers, asked)): time.sleep(0.01)
    os.kill(os.getpid(), signal.SIGINT)

  threading.Thread(target=interrupt, daemon=True).start()
  with pytest.raises(KeyboardInterrupt): verify(pool, ["sleep"] * 6)
  assert all(child.poll() is not None for child in children)
  assert time.monotonic() - start < 60 and not processes_of_sessions({p.pid for p in children})


def test_old_and_exhausted_workers_are_recycled(make, monkeypatch):
  # Requests: to load the verifier, to try it, two completions.
  monkeypatch.setattr(process, "LIFE", 4)
  monkeypatch.setattr(process, "WORK", 0)
  pool = make(1, timeout_s=60.0, memory_gb=2.0)
  verify(pool, ["yes"])
  old = pool._workers[0].process
  np.testing.assert_array_equal(verify(pool, ["no"]), [0])
  assert pool.recycled == 1 and old.poll() is not None
  np.testing.assert_array_equal(verify(pool, ["memory"]), [0])
  assert pool.recycled == 3 and pool.failures == dict(memory=1)  # It has had two tries.


def test_old_workers_that_load_slowly_stay(make, monkeypatch):
  monkeypatch.setattr(process, "LIFE", 4)
  pool = make(1, timeout_s=60.0)
  for _ in range(3): verify(pool, ["yes", "no"])
  assert pool.recycled == 0


@pytest.mark.parametrize("program, message, starts", [
    ("raise SystemExit(3)", "died while it started, with exit code 3", 1),  # Nor would it later.
    ("import os; os.kill(os.getpid(), 9)", "died while it started, with exit code -9", 4),
    ("import time; time.sleep(60)", "took more than 0.5 s to start", 1)])
def test_a_worker_that_cannot_start_stops_the_run(make, monkeypatch, program, message, starts):
  monkeypatch.setattr(process, "command", lambda _: [sys.executable, "-c", program])
  monkeypatch.setattr(pool_lib, "_STARTS", 4)
  if "sleep" in program: monkeypatch.setattr(pool_lib, "_LOAD_S", 0.5)
  with pytest.raises(RuntimeError, match=f"'hostile.obey': its process {message}"):
    verify(pool := make(1, timeout_s=1.0), ["yes"])
  assert pool.recycled == starts


def test_a_verifier_reads_the_fields_that_have_no_default():
  verifier = lambda prompt, text, finish_B, scale=1.0: 1.0
  assert _worker.fields_of(verifier) == ("finish_B",)


def test_workers_do_not_import_jax(make):
  assert verify(make(1, timeout_s=60.0), [""], "hostile.has_jax") == [0]


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("verifier, message", [
    ("chain.anser", r"prompt 'p': verifier.name='chain.anser'.*'answer', .*'steps'"),
    ("chains.answer", "no rlx/verifiers/chains.py"),
    ("hostile.needs_package", "hostile.needs_package.*no_such_package")])
def test_a_verifier_that_cannot_work_stops_the_run(make, workers, verifier, message):
  with pytest.raises(ValueError, match=message):
    verify(make(workers, timeout_s=60.0), ["x"], verifier)


def test_check_names_rate_and_kinds(make):
  pool = make(0, timeout_s=60.0)
  pool.check(0.0)
  calm = lambda *texts: verify(pool, texts, "hostile.calm")
  calm("yes", "raise", "unknown", "nan")
  pool.check(0.5)
  with pytest.raises(RuntimeError, match=(
      r"verifier.max_error_rate=0.4: 2 of the last 4 verdicts are unknown \(since the "
      r"start: unknown 2; last message: no endpoint\)")):
    pool.check(0.4)
  # Old losses are forgotten: 2 of 1024 are not more than 0.2%.
  calm(*["yes"] * 1020)
  pool.check(0.002)
  calm(*["yes"] * 4)
  pool.check(0.0)


def test_a_function_of_a_module_runs_in_a_worker(make):
  pool = make(1, timeout_s=1.0, functions=dict(own=functools.partial(hostile.elsewhere)))
  for verifier in ("own", "tests.verifiers.hostile:elsewhere"):
    np.testing.assert_array_equal(verify(pool, ["", "sleep"], verifier, str(os.getpid())), [1, 0])
  assert pool.failures == dict(timeout=2)


def script(prompt, text): return hostile.elsewhere(prompt, text)


script.__module__ = "__main__"  # As if this file were run.


@pytest.mark.parametrize("workers", [0, 1])
def test_a_function_that_cannot_be_sent_runs_here(make, monkeypatch, workers):
  monkeypatch.setattr(sys.modules["__main__"], "script", script, raising=False)
  pool = make(workers, timeout_s=60.0, functions=dict(
      local=lambda *args: hostile.elsewhere(*args), script=script))
  prompts = [prompt(name, str(os.getpid())) for name in ("local", "hostile.obey", "script")]
  np.testing.assert_array_equal(pool.verify(prompts, ["x"] * 3), [0] * 3)
  np.testing.assert_array_equal(pool.verify(prompts, ["raise", "no", "raise"]), [0] * 3)
  assert pool.failures == dict(exception=2) and not pool.errors


def test_a_function_of_a_module_that_workers_lack_stops_the_run(make, monkeypatch):
  monkeypatch.setitem(sys.modules, "only_here", module := types.ModuleType("only_here"))
  exec("def own(prompt, text): return 1.0", vars(module))
  with pytest.raises(ValueError, match="'own': a worker process cannot import it: .*only_here"):
    verify(make(1, timeout_s=1.0, functions=dict(own=module.own)), ["x"], "own")


def test_counts_of_an_earlier_pool_are_not_those_of_a_new_one():
  usage.count("judge/requests", 3)
  with contextlib.closing(pool_lib.Pool(0, timeout_s=1.0)) as new:
    assert not new.take_usage().get("judge/requests")
