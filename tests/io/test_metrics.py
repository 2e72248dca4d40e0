import json
import math
import os

import jax.numpy as jnp
import pytest

from rlx.io import metrics, strict_json


def _lines(path):
  return [json.loads(l) for l in path.read_text().splitlines()]


def test_lines_come_one_step_late_and_all_at_the_end(tmp_path):
  writer = metrics.Writer(tmp_path)
  writer.write(0, {"a": jnp.float32(1)})
  assert not (tmp_path / "metrics.jsonl").exists()
  writer.write(1, {"a": float("nan"), "b": 2})
  assert _lines(tmp_path / "metrics.jsonl") == [{"step": 0, "a": 1.0}]
  writer.close()
  assert _lines(tmp_path / "metrics.jsonl")[1] == {"step": 1, "a": None, "b": 2.0}
  assert math.isnan(metrics.read(tmp_path)[1]["a"])
  assert list((tmp_path / "tensorboard").iterdir())


def test_a_resumed_run_replaces_what_it_repeats(tmp_path):
  writer = metrics.Writer(tmp_path)
  for step in range(3):
    writer.write(step, {"a": step})
    writer.table(step, [{"prompt": "p"}])
  writer.close()
  with (tmp_path / "metrics.jsonl").open("a") as f:
    f.write('{"step": 3, "a"')  # Killed while writing.
  writer = metrics.Writer(tmp_path, first_step=2)
  writer.write(2, {"a": 20})
  writer.close()
  assert [l["a"] for l in _lines(tmp_path / "metrics.jsonl")] == [0, 1, 20]
  assert [l["step"] for l in _lines(tmp_path / "completions.jsonl")] == [0, 1]


def test_a_kill_leaves_the_old_file(tmp_path, monkeypatch):
  def killed(*_): raise KeyboardInterrupt
  strict_json.write(tmp_path / "x.json", ["old"])
  monkeypatch.setattr(os, "replace", killed)
  with pytest.raises(KeyboardInterrupt): strict_json.write(tmp_path / "x.json", ["new"])
  assert strict_json.read(tmp_path / "x.json", kind=list) == ["old"]


@pytest.mark.parametrize("name", ["metrics.jsonl", "completions.jsonl", "summary.json"])
def test_a_device_is_not_read(tmp_path, name):
  (tmp_path / name).symlink_to("/dev/zero")
  with pytest.raises(ValueError, match=f"{name}: this is no file"):
    metrics.summary(tmp_path)
    metrics.Writer(tmp_path)
