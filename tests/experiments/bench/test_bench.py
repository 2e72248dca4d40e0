"""The benchmark's costs, line protocol, ratios and tables."""
import dataclasses
import json
import os
import pathlib
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.bench import bench, roofline, speed_tables
from rlx.build import methods as build_methods
from rlx.io import hf
from rlx.models import logps, transformer

ROOT = pathlib.Path(__file__).parents[3]
# Per token and layer: q, k, v 8*(4+2*2)*2 = 128, out 4*2*8 = 64, MLP 3*8*16 = 384.
CONFIG = transformer.DecoderConfig(vocab_size=300, d_model=8, n_layers=3, n_heads=4,
                                   n_kv_heads=2, head_dim=2, d_ff=16)
LAYERS, HEAD = 3 * 576, 300 * 8
SMALL = ("--prompt-len", "6", "--new", "5", "--prompts", "2", "--group", "2",
         "--batch", "4", "--micro", "2", "--chunk", "4")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
  path = tmp_path_factory.mktemp("model")
  config = dataclasses.replace(CONFIG, n_layers=1, qkv_bias=True)  # A Qwen2.
  hf.save(path, config, transformer.init(config, jax.random.key(0)))
  return str(path)


def resolved(*flags):
  return bench.resolved(bench.parser().parse_args(["--worker", *flags]))


def test_costs_by_hand():
  assert roofline.matmul_weights(CONFIG) == (LAYERS, HEAD)
  # Positions 2 and 3 see 3 and 4; scores and values, 4 heads of 2, 3 layers.
  assert roofline.attention_flops(CONFIG, 2, 4) == 2 * 2 * 3 * 4 * 2 * (3 + 4)
  assert roofline.logps_flops(CONFIG, 5, 2, 1) == 5 * (
      2 * LAYERS * 3 + 2 * HEAD + 4 * 3 * 8 * (1 + 2 + 3))
  # Both prompts are computed once, not three times.
  assert roofline.logps_flops(CONFIG, 6, 2, 1, prompts=2) == (
      2 * (2 * LAYERS * 2 + 96 * (1 + 2)) + 6 * (2 * LAYERS + 2 * HEAD + 96 * 3))


def test_sampling_by_hand():
  """Two prompts of 2 tokens, three completions each, one of 3 tokens, five of 2."""
  prefill, second, third = roofline.sampling_work(CONFIG, 2, 2, [2, 2, 2, 2, 2, 3])
  kv = 4 * 2 * 3 * 2 * 2  # float32, keys and values, 3 layers, 2 heads of 2
  weights = 4 * (LAYERS + HEAD)
  assert prefill == (2 * (2 * LAYERS * 2 + 2 * HEAD + 96 * (1 + 2)), weights + 2 * 2 * kv)
  # All six rows are fed their first token: 3 positions each, 2 of them shared.
  assert second == (6 * (2 * (LAYERS + HEAD) + 96 * 3), weights + kv * (2 * 2 + 6 * 1 + 6))
  assert third == (2 * (LAYERS + HEAD) + 96 * 4, weights + kv * (2 + 2 + 1))


def test_limit_takes_the_slower_of_both():
  assert roofline.limit_s([(10, 1), (10, 100)], peak=10, bandwidth=5) == (21.0, "bandwidth")
  assert roofline.limit_s([(10, 1)], peak=10, bandwidth=5) == (1.0, "FLOPs")


@pytest.mark.parametrize("flags, passes", [
    (["--task", "upd"], 5), (["--task", "e2e"], 4), (["--task", "e2e", "--beta", "0"], 3),
    (["--task", "e2e", "--impl", "rloo"], 3), (["--task", "e2e", "--impl", "prime"], 7),
    (["--task", "gen"], 0)], ids=lambda x: str(x))
def test_passes(model, flags, passes):
  args = resolved("--model", model, *SMALL, *flags)
  work = bench.needed(CONFIG, args, [5] * 4)
  sampled, prompts = 0, 2 if args.task == "e2e" else 4
  if args.task != "upd":
    sampled = sum(f for f, _ in roofline.sampling_work(CONFIG, prompts, 6, [5] * 4))
  assert sum(f for f, _ in work) - sampled == passes * roofline.logps_flops(
      CONFIG, 4, 6, 5, prompts)


def test_forward_agrees_with_xla():
  """One layer, because XLA counts a scan's body once; all of attention, not the causal half."""
  config = transformer.DecoderConfig(vocab_size=256, d_model=128, n_layers=1, n_heads=4,
                                     n_kv_heads=2, head_dim=32, d_ff=256)
  rows, prompt_len, new = 2, 8, 24
  width = prompt_len + new
  tokens_BS = jnp.zeros((rows, width), jnp.int32)
  fn = lambda params: logps.logps(params, config, tokens_BS, tokens_BS, tokens_BS == 0,
                                  completion_width=new, with_entropy=False)[0]
  params = jax.eval_shape(lambda: transformer.init(config, jax.random.key(0)))
  counted = jax.jit(fn).lower(params).compile().cost_analysis()["flops"]
  future = 4 * config.n_heads * config.head_dim * width * (width - 1) // 2
  np.testing.assert_allclose(
      counted, roofline.logps_flops(config, rows, prompt_len, new) + rows * future, rtol=0.03)


def drive(*flags, go=1):
  """(lines of a worker, what else it printed) for `go` repetitions."""
  done = subprocess.run(
      [sys.executable, "-m", "experiments.bench", "--worker", *flags], cwd=ROOT,
      input="go\n" * go + "quit\n", capture_output=True, text=True)
  assert done.returncode == 0, done.stderr
  lines = done.stdout.splitlines()
  return [json.loads(l[2:]) for l in lines if l.startswith("@@")], [
      l for l in lines if not l.startswith("@@")]


def test_protocol(model, monkeypatch):
  monkeypatch.setenv("WARM", "1")
  (ready, *reps, bye), rest = drive("--task", "gen", "--model", model, *SMALL, go=2)
  assert rest == [] and ready["ready"] == bye["bye"] == 1
  assert ready["first_s"] > 0 and ready["setup_s"] > ready["first_s"]
  assert ready["versions"]["jax"] == jax.__version__ and bye["peak_rss_mb"] > 50
  assert len(reps) == 2
  for rep in reps:
    assert set(rep["s"]) == {"gen"} and rep["s"]["gen"] > 0 and rep["tokens"] == 4 * 5
    if pathlib.Path("/proc/stat").exists():  # Counted in ticks of 0.01 s a core, of a busy machine.
      seconds, cores = rep["s"]["gen"], os.cpu_count()
      assert -0.5 < rep["other"] * seconds < cores * (seconds + 0.5)


def test_steps_train(model):
  """All of train.py's stages run and the update is not empty."""
  args = resolved("--task", "e2e", "--impl", "prime", "--model", model, *SMALL)
  rep, info = bench.e2e(args)
  first, second = rep(), rep()
  assert first["tokens"] == second["tokens"] == 2 * 2 * 5 and info["setup_s"] > 0
  assert second["s"]["step"] == pytest.approx(sum(second["stages"].values()))
  assert set(second["stages"]) == {"hand-over", "sample", "verify", "score", "prm", "policy"}
  assert second["grad_norm"] > 0 and np.isfinite(second["grad_norm"])


def test_update(model):
  rep, _ = bench.upd(resolved("--task", "upd", "--model", model, *SMALL))
  first, second = rep(), rep()
  assert set(second["s"]) == {"old", "ref", "grad"} and second["tokens"] == 4 * 11
  assert second["grad_norm"] > 0 and first["grad_norm"] != second["grad_norm"]


def test_ragged_lengths_are_geometric(monkeypatch):
  """Random weights spread over the vocabulary: an EOS once in 48 tokens."""
  monkeypatch.setitem(bench.SHAPES, "qwen2.5-0.5b", dataclasses.replace(
      CONFIG, vocab_size=480, n_layers=1))
  rep, _ = bench.gen(resolved(
      "--task", "gen", "--impl", "ragged", "--random", "qwen2.5-0.5b", "--prompts", "16",
      "--prompt-len", "6", "--new", "200", "--chunk", "200"))
  lengths_B = rep()["lengths"]
  # Mean of min(geometric(1/48), 200): 48 (1 - (47/48)^200) = 47.3; its error 4.1.
  assert abs(np.mean(lengths_B) - 47.3) < 12 and max(lengths_B) <= 200
  assert len(lengths_B) == 16 * 8 and len(set(lengths_B)) > 40


def test_variants_are_configs_the_trainer_takes(model):
  needs = lambda *flags: build_methods.resolve_methods(bench.config_of(resolved(
      "--task", "e2e", "--model", model, *flags))).needs
  assert needs()("ref_logps_BT") and not needs()("prm_logps_BT")
  assert not needs("--beta", "0")("ref_logps_BT")
  assert needs("--impl", "prime")("prm_logps_BT")
  for field in ("prm_logps_BT", "ref_logps_BT"): assert not needs("--impl", "rloo")(field)


@pytest.mark.parametrize("flags, message", [
    (["--task", "e2e", "--random", "qwen2.5-0.5b"], "--random=qwen2.5-0.5b: e2e needs"),
    (["--task", "gen", "--impl", "prime", "--random", "qwen2.5-0.5b"],
     r"--impl='prime': gen has \['', 'ragged'\]"),
    (["--task", "gen", "--model", "/nowhere"], "--model='/nowhere': a directory with"),
    (["--task", "gen"], "--model or --random"),
    (["--task", "upd", "--random", "qwen2.5-0.5b", "--batch", "6", "--micro", "4"],
     "--micro=4: must divide 6 rows"),
])
def test_refuses(flags, message):
  with pytest.raises(ValueError, match=message):
    resolved(*flags)


def line(**changes):
  return dict(
      task="gen", model="m", system="rlx", batch=8, median_s=2.0, min_s=1.0, max_s=3.0,
      tok_s=100.0, parts=dict(gen=2.0), first_s=5.0, peak_rss_mb=400.0,
      versions=dict(jax="0.1"), time="2030-01-02T03:04:05") | changes


def test_compare():
  old = line(median_s=4.0, tok_s=50.0, peak_rss_mb=500.0)
  assert speed_tables.ratios(line(), old) == dict(
      median_s=0.5, tok_s=2.0, first_s=1.0, peak_rss_mb=0.8)
  assert speed_tables.key(line()) == speed_tables.key(line(batch=8, beta=0.1, micro=0))
  for changes in (dict(batch=32), dict(model="n"), dict(task="upd"), dict(system="x"),
                  dict(dtype="bfloat16"), dict(micro=4)):
    assert speed_tables.key(line()) != speed_tables.key(line(**changes))
  assert "median_s 0.500, tok_s 2.000" in speed_tables.compared(line(), old)
  assert speed_tables.compared(line(), None).endswith("not in the earlier file")


def test_lines_of_other_drivers_meet_ours_at_the_defaults():
  ours = line(prompt_len=64, new=128, prompts=8, group=4, beta=0.04, impl="")
  assert speed_tables.key(ours)[:3] == speed_tables.key(line(system="tunix"))[:3]
  step = dict(task="e2e", batch=32)
  assert (speed_tables.size(line(**step)) == speed_tables.size(line(task="e2e", prompts=8, group=4))
          == "8 x 4 x (64 + 128), KL 0.04")


def test_report(tmp_path, monkeypatch):
  split = dict(sample=1.0, policy=3.0)
  lines = [
      line(hardware="a loom", model="old"),
      line(hardware="an abacus", limit_fraction=0.25, bound="bandwidth"),
      line(system="tunix", median_s=3.0, other=[0.1, 0.2]), line(system="trl", failed="setup"),
      line(median_s=1.0, run="later"), line(system="trl", median_s=4.0, run="later"),
      line(task="e2e", impl="prime", median_s=4.0, stages=split),
      line(task="e2e", impl="rloo", median_s=2.5)]
  (tmp_path / "lines.jsonl").write_text("\n".join(map(json.dumps, lines)))
  monkeypatch.setattr(sys, "argv", ["bench", "--report", str(tmp_path / "lines.jsonl"),
                                    "--docs", str(tmp_path / "made.md")])
  bench.main()
  text = (tmp_path / "made.md").read_text()
  assert text == speed_tables.report(speed_tables.read(tmp_path / "lines.jsonl"))
  # Newest machine first; a line that names none belongs to the last that is named.
  assert [l for l in text.splitlines() if l.startswith("## ")] == ["## an abacus", "## a loom"]
  assert "## an abacus\n\n- rlx, 2030-01-02: jax 0.1\n" in text
  rows = [[c.strip() for c in l.strip("|").split("|")] for l in text.splitlines()
          if l.startswith("| m |")]
  assert rows[0] == ["m", "8 x (64 + 128)", "rlx", "100", "2 [1-3]", "",
                     "25 (bandwidth)", "5.0", "400", "1.00"]
  assert rows[1][2] == "tunix (disturbed)" and rows[1][-1] == "1.50"
  assert rows[2][2:4] == ["trl", "failed"]
  # A ratio is to the line of the same run.
  assert [(row[2], row[-1]) for row in rows[3:5]] == [
      ("rlx (later)", "1.00"), ("trl (later)", "4.00")]
  assert rows[5][5] == "sample 1, policy 3"
  assert rows[-1] == ["m", "8 x 4 x (64 + 128)", "1.60"]
