import os
import pathlib
import sys
import time

import numpy as np
import pytest

from rlx import verifiers
from rlx.core import records
from rlx.verifiers import pool as pool_lib

nan = np.nan
HOSTILE = str(pathlib.Path(__file__).parent / "hostile")


@pytest.fixture(autouse=True)
def hostile_verifiers(monkeypatch):
  """Makes hostile/hostile.py the verifier module "hostile", also in workers."""
  monkeypatch.setattr(verifiers, "__path__", [*verifiers.__path__, HOSTILE])
  monkeypatch.setattr(pool_lib, "_COMMAND", (
      sys.executable, "-c",
      f"import rlx.verifiers; rlx.verifiers.__path__.append({HOSTILE!r})\n"
      "from rlx.verifiers import _worker; _worker.main()"))


@pytest.fixture
def make():
  pools = []
  def make(*args, **kwargs):
    pools.append(pool_lib.Pool(*args, **kwargs))
    return pools[-1]
  yield make
  for pool in pools: pool.close()


def prompt(verifier="hostile.obey", answer="yes"):
  return records.Prompt("p", "?", answer, verifier)


def verify(pool, texts, *args):
  return pool.verify([prompt(*args)] * len(texts), texts)


def test_whatever_happens_is_nan_for_that_completion_alone(make):
  pool = make(2, timeout_s=1.0, memory_gb=2.0)
  texts = ["yes", "loop", "no", "exit", "yes", "raise", "segfault", "recurse", "nan",
           "two", "memory", "regex", "none", "no", "yes"]
  np.testing.assert_array_equal(
      verify(pool, texts),
      [1, nan, 0, nan, 1, nan, nan, nan, nan, nan, nan, nan, nan, 0, 1])
  assert pool.errors == dict(timeout=2, crash=2, exception=5, unknown=1)
  np.testing.assert_array_equal(verify(pool, ["no", "yes"]), [0, 1])


@pytest.mark.parametrize("workers", [0, 2])
def test_verdicts_are_in_order_whatever_the_verifier(make, workers):
  pool = make(workers, timeout_s=10.0)
  prompts = [records.Prompt(str(i), "3M5=", "5", ["hostile.obey", "chain.answer"][i % 2])
             for i in range(40)]
  texts = [["5", "6", "5#5", "5#4"][i % 4] for i in range(40)]
  # obey: the text is the answer; chain: the completion is well-formed and right.
  expected = [1.0 if i % 4 == 0 else 0.0 for i in range(40)]
  np.testing.assert_array_equal(pool.verify(prompts, texts), expected)
  assert pool.verify([], []).shape == (0,)


@pytest.mark.parametrize("workers", [0, 1])
def test_steps_are_judged_one_by_one(make, workers):
  pool = make(workers, timeout_s=10.0)
  def prompts(verifier, *questions):
    return [records.Prompt("p", text, "5", verifier) for text in questions]
  got = pool.verify_steps(prompts("chain.steps", "4M7m2M5=", "4M7m2M5=", "no question"),
                          ["7;3;5#5", "7;2", "7;2"])
  assert got == [[1.0, 0.0, 1.0], [1.0, 1.0], []]
  assert pool.errors == dict(exception=1)
  with pytest.raises(ValueError, match="'chain.answer' gives a float, not a list"):
    pool.verify_steps(prompts("chain.answer", "4M7m2M5="), ["7;2"])
  with pytest.raises(ValueError, match="'chain.steps' gives a list, not a float"):
    pool.verify(prompts("chain.steps", "4M7m2M5="), ["7;2"])


def test_in_process_exceptions_are_nan(make):
  pool = make(0, timeout_s=10.0)
  np.testing.assert_array_equal(
      verify(pool, ["yes", "raise", "no", "nan", "two", "recurse"]),
      [1, nan, 0, nan, nan, nan])
  assert pool.errors == dict(exception=3, unknown=1)


@pytest.mark.parametrize("workers", [0, 1])
def test_a_verifier_may_say_that_it_cannot_tell(make, workers):
  pool = make(workers, timeout_s=10.0)
  np.testing.assert_array_equal(verify(pool, ["yes", "unknown"]), [1, nan])
  assert pool.errors == dict(unknown=1) and pool.last_error == "no endpoint"


def test_a_hang_of_sympy_does_not_stop_the_others(make):
  pool = make(2, timeout_s=2.0)
  texts = [r"\boxed{9^{9^{9^9}}}", r"\boxed{72}", r"\boxed{71}", r"\boxed{144/2}"]
  start = time.monotonic()
  np.testing.assert_array_equal(verify(pool, texts, "math_answer.boxed", "72"),
                                [nan, 1, 0, 1])
  assert pool.errors == dict(timeout=1)
  assert time.monotonic() - start < 30


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("verifier, answer, good", [
    ("chain.answer", "5", "5#5"), ("math_answer.boxed", "72", r"\boxed{72}"),
    ("math_answer.final", "72", "72"), ("format.boxed", "", r"\boxed{x}")])
def test_odd_texts_are_wrong_not_fatal(make, workers, verifier, answer, good):
  pool = make(workers, timeout_s=20.0)
  texts = ["", "\0", "5\0#5", "\ud800", "5#5" * 300_000, "9" * 1_000_000,
           "\\boxed{" * 2000, "\\boxed", "\\boxed{}", "٣", "{" * 1_000_000,
           "answer" + " " * 1_000_000, good]
  prompts = [records.Prompt("p", "3M5=", answer, verifier)] * len(texts)
  np.testing.assert_array_equal(pool.verify(prompts, texts), [0] * 12 + [1])
  assert not pool.errors


def test_a_late_worker_takes_its_children_along(make, tmp_path):
  pool = make(1, timeout_s=1.5)
  np.testing.assert_array_equal(verify(pool, [f"child {tmp_path}/pid", "yes"]), [nan, 1])
  pid = int((tmp_path / "pid").read_text())
  for _ in range(50):
    if not is_running(pid): return
    time.sleep(0.1)
  pytest.fail("the verifier's child outlived it")


def is_running(pid):
  try:
    os.kill(pid, 0)
  except ProcessLookupError:
    return False
  # Killed, but not yet collected by init.
  return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def test_a_worker_lost_while_idle_costs_no_verdict(make):
  pool = make(1, timeout_s=10.0)
  verify(pool, ["yes"])
  pool._workers[0].process.kill()
  pool._workers[0].process.wait()
  np.testing.assert_array_equal(verify(pool, ["yes", "no"]), [1, 0])
  assert not pool.errors


def test_old_and_exhausted_workers_are_recycled(make, monkeypatch):
  monkeypatch.setattr(pool_lib, "_LIFE", 2)
  pool = make(1, timeout_s=10.0, memory_gb=2.0)
  verify(pool, ["yes"])
  old = pool._workers[0].process
  np.testing.assert_array_equal(verify(pool, ["no"]), [0])
  assert pool.recycled == 1 and old.poll() is not None
  np.testing.assert_array_equal(verify(pool, ["memory"]), [nan])
  assert pool.recycled == 2 and not pool.errors["crash"]


def test_workers_do_not_import_jax(make):
  assert verify(make(1, timeout_s=10.0), [""], "hostile.has_jax") == [0]


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("verifier, message", [
    ("chain.anser", r"prompt 'p': verifier.name='chain.anser'.*'answer', .*'step_ends'"),
    ("chains.answer", "no rlx/verifiers/chains.py"),
    ("hostile.needs_package", "hostile.needs_package.*no_such_package")])
def test_a_verifier_that_cannot_work_stops_the_run(make, workers, verifier, message):
  with pytest.raises(ValueError, match=message):
    verify(make(workers, timeout_s=10.0), ["x"], verifier)


def test_check_names_rate_and_kinds(make):
  pool = make(0, timeout_s=10.0)
  pool.check(0.0)
  verify(pool, ["yes", "no", "raise", "nan"])
  pool.check(0.5)
  with pytest.raises(RuntimeError, match=(
      r"verifier.max_error_rate=0.4: 2 of the last 4 verdicts are unknown \(since the "
      r"start: exception 1, unknown 1; last exception: KeyError: 'no such thing'\)")):
    pool.check(0.4)
  # Old losses are forgotten: 2 of 1024 are not more than 0.2%.
  verify(pool, ["yes"] * 1020)
  pool.check(0.002)
  verify(pool, ["yes"] * 4)
  pool.check(0.0)


@pytest.mark.parametrize("kwargs, message", [
    (dict(workers=-1, timeout_s=1), "verifier.workers=-1"),
    (dict(workers=1, timeout_s=0), "verifier.timeout_s=0")])
def test_refuses(kwargs, message):
  with pytest.raises(ValueError, match=message):
    pool_lib.Pool(**kwargs)
