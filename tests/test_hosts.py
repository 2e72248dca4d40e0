"""Two processes of two devices train what one process of four does."""
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pytest

from rlx.build import judges as build_judges
from rlx.core import records
from rlx.io import metrics as io_metrics
from rlx.learner import hosts
from rlx.loops import rl
from rlx.verifiers import errors, pool
from tests import test_judges_in_process as tests_judges, tiny

ROOT = pathlib.Path(__file__).parent.parent
CONFIG = """
import pathlib
from tests import test_hosts

def get_config(): return test_hosts.config(pathlib.Path({!r}))
"""


def python(devices, *args):
  # Each collective of a CPU device that waits holds one of XLA's threads, as many as NPROC:
  # with one a core, those of two devices can wait for each other for ever.
  env = dict(os.environ, NPROC="16", PYTHONPATH=str(ROOT), XLA_FLAGS=re.sub(
      r"(device_count)=\d+", rf"\1={devices}", os.environ["XLA_FLAGS"]))
  return subprocess.Popen([sys.executable, *args], cwd=ROOT, env=env, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def config(folder):
  c = tiny.config(
      folder, steps=3, mesh__data=2, mesh__fsdp=2, eval__every=2, checkpoint__every=1,
      memory_check="off", verifier__max_error_rate=1.0,
      # Models on all devices judge, by their log-probs and by what they write, and one learns to.
      verifier__judges=dict(here=tests_judges.ITEMS | dict(model="reference"),
                            sampled=tests_judges.DIGITS | dict(model="policy"),
                            learns=tests_judges.DIGITS | dict(
                                model=str(folder / "model"), temperature=1.5,
                                online=dict(replies=2, optimizer=dict(lr=1e-2)))),
      verifier__judge__concurrent=32, verifier__by_item="judge.rubric/here",
      verifier__default_items=tests_judges.RUBRIC,
      # It reads what lies on all devices.
      rollouts__select_completions=dict(name="select_completions.prof", count=3))
  c.verifier.scores = ("format.ascii_share", "judge.chat/sampled", "judge.chat/learns")
  return c


def specs():
  with socket.socket() as s:
    s.bind(("localhost", 0))
    port = s.getsockname()[1]
  return [f"localhost:{port},2,{i}" for i in range(2)]


def both(folder, workdir, *flags):
  path = workdir.parent / "two.py"
  path.write_text(CONFIG.format(str(folder)))
  return [python(2, "-m", "rlx.train", f"--config={path}", f"--workdir={workdir}",
                 f"--hosts={spec}", *flags) for spec in specs()]


def said(processes):
  return [p.communicate(timeout=900)[0] for p in processes]


def wait_for(steps, workdir, processes):
  end = time.monotonic() + 900
  while len(io_metrics.read(workdir)) < steps:
    if time.monotonic() > end:
      for p in processes: p.kill()
      pytest.fail(f"no step {steps} in 900 s: {said(processes)}")
    assert all(p.poll() is None for p in processes), said(processes)
    time.sleep(0.05)


def test_two_processes_train_evaluate_checkpoint_and_resume_until_one_dies(tmp_path_factory):
  """SIGTERM to one of the two after a step; a resume; the death of one."""
  tiny.write(tiny_files := tmp_path_factory.mktemp("files"), alphabet=tests_judges.ASCII)
  two, one = tmp_path_factory.mktemp("two"), tmp_path_factory.mktemp("one")
  processes = both(tiny_files, two, "--config.steps=1000")  # More than it reaches.
  wait_for(1, two, processes)
  processes[1].send_signal(signal.SIGTERM)
  texts = said(processes)
  assert [p.returncode for p in processes] == [143, 143], texts
  assert "is saved in" in texts[0] and "is saved in" not in texts[1]
  assert (two / "stopped.json").exists()

  processes = both(tiny_files, two, "--config.steps=1000")
  wait_for(max(3, 2 + len(io_metrics.read(two))), two, processes)
  processes[1].kill()
  text, _ = said(processes)
  assert processes[0].returncode != 0
  # In a collective, where they wait for each other, or as a checkpoint is written.
  assert re.search("Connection (closed|reset) by peer|tasks have crashed|"
                   "a checkpoint was not written: .*Barrier", text), text

  # As one process of four devices does, evaluation included.
  rl.train(config(tiny_files), one)
  for line, other in zip(io_metrics.read(two), io_metrics.read(one)):
    assert line.keys() == other.keys() and line["step"] == other["step"]
    for name in ("max", "mean"): assert line.pop(f"rollouts/sampler_gap_{name}") < 1e-4  # Rounding.
    for key in line:
      if "seconds" not in key and "_per_s" not in key:
        np.testing.assert_allclose(line[key], other[key], rtol=3e-5, atol=1e-5, err_msg=key)
  texts = [[(r["prompt"], r["completion"], r["verdict"]) for r in io_metrics.tables(w)
            if r["step"] < 3] for w in (two, one)]
  assert texts[0] == texts[1]


def test_verdicts_lost_by_one_process_are_one_line_in_both():
  """The first of two pools cannot tell the verdicts of its share; counts are exchanged as JSON."""
  def unknown(prompt, text): raise errors.Unknown("not today")
  prompt, counts = records.Prompt(id="p", text="", answer="a", verifier="verdict"), {}

  def pool_of(verdict):
    def gather(value):
      counts[verdict] = json.loads(json.dumps(value))
      return list(counts.values())
    verifiers = pool.Pool(0, 1.0, gather=gather, functions=dict(verdict=verdict))
    verifiers.verify([prompt] * 4, ["b"] * 4)
    verifiers.check(1.0)
    return verifiers

  for verifiers in [pool_of(unknown), pool_of(lambda prompt, text: 1.0)]:
    verifiers.check(0.5)
    with pytest.raises(RuntimeError) as e: verifiers.check(0.4)
    assert str(e.value) == (
        "verifier.max_error_rate=0.4: 4 of the last 8 verdicts are unknown (since the start: "
        "unknown 4; last message: not today).")


def test_what_all_processes_ask_is_counted_once():
  """Verdicts of a judge in process, which all have, and those of a verifier, which are shared."""
  def unknown(prompts, texts): return [[np.nan, "unknown", "down"]] * len(texts)
  unknown.is_batch = unknown.is_shared = True
  fails = lambda prompt, text: {"a": 1.0}[text]
  pools = [pool.Pool(0, 1.0, is_first=i == 0, functions=dict(judge=unknown, fails=fails),
                     gather=lambda value: [value]) for i in range(2)]
  prompts = {name: records.Prompt(id="p", text="", answer="a", verifier=name)
             for name in ("judge", "fails")}
  shares = []
  for verifiers, share in zip(pools, ("ab", "cd")):
    assert np.isnan(verifiers.verify([prompts["judge"]] * 4, [*"abcd"])).all()
    verifiers.verify([prompts["fails"]] * 2, [*share])
    shares.append((verifiers.errors["unknown"], verifiers.failures["exception"],
                   verifiers.take_failed_share()))
  assert shares == [(4, 1, 1 / 6), (0, 2, 1)]  # In all 4 unknown and 3 failed of 8.


@pytest.mark.parametrize("judge, message", [
    (dict(of=("here", "there")), r"judges.mine.of=\('here', 'there'\): all of its judges are in "),
    (dict(model="model", cache="x"), "judges.mine.cache: None for a judge in process, in a ")])
def test_judges_that_processes_would_not_ask_alike_are_refused(monkeypatch, judge, message):
  monkeypatch.setattr(hosts.jax, "process_count", lambda: 2)
  c = tiny.config(pathlib.Path("x"), verifier__judges=dict(
      here=dict(model="policy"), there=dict(url="http://x", model="m"), mine=judge))
  with pytest.raises(ValueError, match=message): build_judges.verifiers_of(c, None)


@pytest.mark.parametrize("spec", [
    "here", "a:1,2", "a:1,two,0", "a,2,1", "a:1,2,-1", "a:1," + "9" * 20 + ",0"])
def test_a_wrong_address_is_one_line(spec):
  with pytest.raises(ValueError, match="auto or ADDRESS:PORT,COUNT,INDEX"): hosts.start(spec)


def test_one_process_exchanges_nothing():
  assert hosts.gather(0.1) == [0.1]
  assert hosts.share_work(lambda rows: [i * i for i in rows], 3) == [0, 1, 4]
