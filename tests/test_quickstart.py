"""The quickstart learns: its first steps, on fewer held-out prompts."""
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).parent.parent


def test_the_first_steps_raise_held_out_accuracy_and_the_prm_is_of_use(tmp_path):
  """As a user runs it, on one device, but compiled as quickly as the other tests."""
  environment = dict(os.environ, XLA_FLAGS=re.sub(
      r"(device_count)=\d+", r"\1=1", os.environ["XLA_FLAGS"]))
  subprocess.run(
      [sys.executable, "-m", "rlx.train", "--config=configs/quickstart.py",
       f"--workdir={tmp_path}", "--config.steps=14", "--config.eval.prompts=256",
       "--config.prompts.options.size=2048", "--config.eval.batch=256",
       "--config.eval.every=0", "--config.eval.final_samples=1"],
      cwd=ROOT, env=environment, check=True, capture_output=True)
  summary = json.loads((tmp_path / "summary.json").read_text())
  before, after = summary["before"], summary["after"]
  # Some but not most problems at the start; the rise seen is 0.3 or so.
  assert 0.2 < before["sampled"]["mean"] < 0.5
  assert after["sampled"]["mean"] > before["sampled"]["mean"] + 0.1
  assert summary["prm_accuracy"] > 0.6
  assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")
