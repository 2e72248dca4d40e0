"""The measurements of a GPU, on a tiny model and without one."""
import json
import sys
import types

import jax
import pytest

from experiments.bench import gpu, roofline


@pytest.fixture
def args(tmp_path):
  return types.SimpleNamespace(small=True, scratch=tmp_path, out=tmp_path, limit=300)


def test_a_part_that_fails_does_not_end_the_others(monkeypatch, tmp_path, capfd):
  """A worker knows no part of that name, as it has the table of the module."""
  monkeypatch.setattr(gpu, "CASES", dict(missing=(60, [{}]), peaks=gpu.CASES["peaks"]))
  monkeypatch.setattr(sys, "argv", ["gpu", "--small", f"--out={tmp_path}"])
  with pytest.raises(SystemExit, match="1"): gpu.main()
  lines = [json.loads(line) for line in (tmp_path / "gpu.jsonl").read_text().splitlines()]
  assert lines[0]["versions"]["jax"] and lines[0]["card"]
  assert lines[1]["part"] == "missing" and "KeyError" in lines[1]["failed"]
  assert lines[2]["part"] == "peaks" and lines[2]["product_tflops"] > 0
  assert 0 < lines[3]["float32_error_highest"] < 1e-6
  assert lines[4]["seconds"] > 0 and "failed" not in lines[4]
  assert [line for line in capfd.readouterr().out.splitlines() if line[0] == "{"] == (
      tmp_path / "gpu.jsonl").read_text().splitlines()


def test_no_case_starts_or_goes_on_without_time(monkeypatch, args):
  monkeypatch.setitem(gpu.CASES, "peaks", (60, [dict(n=1), dict(n=2)]))
  monkeypatch.setattr(gpu, "SHORTEST", 0.1)
  assert not gpu.run_part(args, "peaks", gpu.time.monotonic() + 1.0)  # Python starts more slowly.
  first, second = map(json.loads, (args.out / "gpu.jsonl").read_text().splitlines())
  assert first["failed"].startswith("stopped after") and first["seconds"] < 200
  assert "are left" in second["skipped"]


def test_figures_of_an_update_against_the_peaks_of_a_listed_device(monkeypatch, args):
  monkeypatch.setitem(roofline.PEAKS, "cpu", (1e9, 1e9, 1e9))
  monkeypatch.setattr(gpu, "LISTED", 0.0)  # They may be read from the cache on disk.
  jax.clear_caches()  # Another test of the process may have compiled the same programs.
  first, later = gpu.update(args, batch=4)
  assert first["compiled"]["all"][0] > 3 and "jit(step)" in first["compiled"]
  assert first["first_s"] > 0 < later["s"] == sum(later["parts"].values())
  # At 1 GFLOP/s; two forward passes and a gradient, which is three.
  assert later["limit_s"] * 1e9 == pytest.approx(later["flops"])
  assert later["gradient_mfu"] == pytest.approx(0.6 * later["limit_s"] / later["parts"]["grad"])


def test_attention_of_one_token_in_three_ways(args):
  lines = list(gpu.attention(args, batch=2, prompt_len=8, new=8))
  assert [x["kernel"] for x in lines] == ["parts", "fused", "jax"]
  assert all(x["us"] > 0 for x in lines) and 0 <= lines[1]["difference"] < 0.02


def test_kernels_by_hand():
  """Two steps of two kernels, one kernel before them; 1 ns of 9 is idle and 1 ns double."""
  spans = [("prefill", 10, 12), ("add_1", 12, 14), ("dot(float*)", 14, 15),
           ("add_1", 16, 18), ("dot(float*)", 17, 19)]
  found = gpu.summary(spans, steps=2)
  assert (found["kernels"], found["kernels_per_step"]) == (5, 2)
  assert found["busy_s"] == pytest.approx(8e-9) and found["busy_share"] == pytest.approx(8 / 9)
  assert found["top"][0] == dict(name="add", ms=pytest.approx(4e-6), count=2)
  assert gpu.summary([], 2)["busy_share"] is None


def test_the_first_step_at_which_metrics_differ():
  rows = [dict(step=i, loss=1.0, unknown=float("nan"), seconds=i) for i in range(3)]
  others = [row | dict(seconds=9) for row in rows]
  assert gpu.differing(rows, others) == {}
  others[1] |= dict(loss=1.5)
  others[2] |= dict(loss=2.0, unknown=0.0)
  assert gpu.differing(rows, others) == {
      "loss": [1, 1.0, 1.5], "unknown": [2, pytest.approx(float("nan"), nan_ok=True), 0.0]}


def test_the_cache_comes_back_in_pieces(monkeypatch, tmp_path):
  monkeypatch.setattr(gpu, "PIECE", 4096)
  cache, out, back = (tmp_path / x for x in ("cache", "out", "back"))
  (cache / "autotuned").mkdir(parents=True)
  out.mkdir()
  (cache / "autotuned/small").write_bytes(b"1" * 100)
  (cache / "middle").write_bytes(b"2" * 9000)
  (cache / "large").write_bytes(b"3" * 50_000)
  assert gpu.pack(cache, out, most=40_000)["files_left_out"] == 1
  assert all(p.stat().st_size <= 4096 for p in out.iterdir()) and len(list(out.iterdir())) > 2
  gpu.unpack(out, back)
  assert {p.name: p.read_bytes() for p in back.rglob("*") if p.is_file()} == {
      "small": b"1" * 100, "middle": b"2" * 9000}
  gpu.unpack(tmp_path, tmp_path / "none")  # Without pieces there is nothing to do.
