"""What is said before step 0 against what the run then takes."""
import dataclasses
import functools
import itertools
import json
import logging

import jax
import numpy as np
import pytest

from configs import quickstart
from rlx import build
from rlx.build import memory as run_memory
from rlx.core import rng
from rlx.learner import memory
from rlx.loops import rl
from rlx.models import size
from rlx.rollouts import slots
from rlx.stages import learner as learner_lib
from rlx.tools import preflight
from tests import stages as stages_, tiny


def config_of(**changes):
  c = quickstart.get_config("smoke")
  c.prompts.per_step, c.rollouts.per_prompt = 4, 2
  c.eval.prompts = c.eval.batch = 4
  c.prompts.options.size = 64
  c.rollouts.max_tokens = c.rollouts.chunk = c.rollouts.bucket = 8
  with c.ignore_type(): c.update_from_flattened_dict(changes)
  return c


@functools.cache
def compiled(**changes):
  """(run, bytes of its stages as XLA says) of a config with these changes."""
  run = tiny.build_run(config_of(**changes))
  return run, run_memory.measure_compiled_bytes(run, run.shapes())


@pytest.fixture(scope="module")
def run():
  return compiled()[0]


@pytest.fixture(scope="module")
def stages():
  return compiled()[1]


def test_what_is_held_is_what_the_start_allocates(run):
  before = {id(x) for x in jax.live_arrays()}
  state = run.init()
  live = sum(x.nbytes for x in jax.live_arrays() if id(x) not in before)
  held = run_memory.count_state_bytes(run.shapes())
  assert set(held) == {"policy + optimizer", "PRM + optimizer", "reference"}
  assert sum(held.values()) == pytest.approx(live, rel=0.01)
  assert held["reference"] == sum(x.nbytes for x in jax.tree.leaves(state.reference))


@pytest.mark.parametrize("changes, each", [
    ({}, 12), ({"model.param_dtype": "bfloat16"}, 14),
    ({"model.param_dtype": "bfloat16", "model.param_update": "stochastic"}, 10)],
    ids=["float32", "master", "stochastic"])
def test_bytes_of_a_trained_parameter(changes, each):
  """And no advice to store what is trained in fewer bits."""
  run = build.build(config_of(**changes))
  held = run_memory.count_state_bytes(run.shapes())
  parameters = size.param_count(run.passes.models["policy"])
  for name in ("policy + optimizer", "PRM + optimizer"):
    assert 0 <= held[name] - each * parameters < 16  # Counters.
  assert held["reference"] == parameters * (2 if changes else 4)
  said = run_memory.refusal(run, held, {}, 1000)
  assert "param_dtype" not in said
  assert ("model.frozen_dtype to bfloat16" in said) == (not changes)


def test_what_is_held_on_a_mesh_is_a_devices_share():
  run = build.build(config_of(**{"mesh.fsdp": 2, "mesh.tensor": 2}))
  state = run.init()
  mine = sum(x.addressable_shards[0].data.nbytes for x in jax.tree.leaves(
      state.replace(step=None, kl_coef=None)))
  assert sum(run_memory.count_state_bytes(run.shapes()).values()) == mine


def test_steps_are_predicted_and_not_compiled_again(run, stages, caplog):
  """A whole step on rows of full length and different prompts: the same programs, and
  the bytes XLA says they take."""
  state = run.init()
  rollouts = run.sampling.train(state.policy, run.prompts.take(4), rng.key(0, "sample", 0))
  rollouts, outcome_B = jax.device_get(rollouts), np.float32([1, 0] * 4)
  x, t = rollouts.prompt_width, 8
  tokens_BS = np.array(rollouts.tokens_BS)
  tokens_BS[:, 0] = np.arange(8)  # No two prompts share a trunk.
  rollouts = rollouts.replace(
      tokens_BS=tokens_BS, prompt_len_B=np.full_like(rollouts.prompt_len_B, x),
      completion_len_B=np.full_like(rollouts.completion_len_B, t))
  taken = {}
  def watched(name):
    def lower(params, opt_state, *part):
      batch = learner_lib.Minibatch(
          rows, part[0], placed.plan(run.passes.models["policy"], 1), *part[1:])
      analysis = run.updates[name].program.lower(
          params, opt_state, batch, state.frozen).compile().memory_analysis()
      taken[name] = analysis.temp_size_in_bytes + sum(x.nbytes for x in jax.tree.leaves(batch))
    return lower
  with jax.log_compiles(), caplog.at_level(logging.WARNING, logger="jax"):
    placed = stages_.score(run, state, rollouts, outcome_B)
    rows = placed.rollouts.rows()
    watched("prm")(state.prm, state.prm_opt, placed.batch)
    state, placed, _ = run.update_prm(state, placed)
    placed, _ = run.rewards_advantages(state, placed)
    watched("learner")(state.policy, state.policy_opt, placed.batch, placed.batch.outcome_B)
    state, *_ = run.update_policy(state, placed, 0)
  compiled = [r.getMessage() for r in caplog.records if "Compiling" in r.getMessage()]
  assert any("jit(_compute)" in m for m in compiled)  # The log is read: advantages compile.
  assert not [m for m in compiled if "jit(step)" in m or "jit(logps_of)" in m]
  assert stages["activations of the PRM update"] == pytest.approx(taken["prm"], rel=0.2)
  assert stages["activations of the policy update"] == pytest.approx(taken["learner"], rel=0.2)


def test_microbatches_are_what_makes_it_smaller(stages):
  run, in_parts = compiled(**{"learner.microbatches": 4})
  name = "activations of the policy update"
  assert in_parts[name] < 0.7 * stages[name]
  assert in_parts["activations of the PRM update"] == stages["activations of the PRM update"]
  # With one group in each there are no more.
  advice = run_memory._advice(run)
  assert "per_prompt" in advice[name] and "prm.micro" in advice["activations of the PRM update"]


@pytest.mark.parametrize("share, parts", [
    # Half of the largest step finds room: both updates are too large, caches are not.
    (0.5, ["activations of the", "; change learner.microbatches=1 to more or "
           "model.remat=dots to full; ", "; change prm.microbatches=1 to more",
           "memory_check=warn"]),
    (None, ["; change mesh.fsdp to spread it over devices"])],
    ids=["activations", "held"])
def test_what_cannot_fit_is_refused_before_step_0(run, stages, tmp_path, monkeypatch, share, parts):
  held = sum(run_memory.count_state_bytes(run.shapes()).values())
  limit = held // 2 if share is None else int(held + share * max(stages.values()))
  monkeypatch.setattr(memory, "device_bytes", lambda mesh: limit)
  monkeypatch.setattr(rl.build, "build", lambda *_, **__: run)
  with pytest.raises(ValueError, match="^memory: a device has .* MB, this run needs") as e:
    rl.train(config_of(), tmp_path)
  said = str(e.value)
  assert "\n" not in said and all(part in said for part in parts), said
  assert ("microbatches" in said) == (share is not None) and "eval.batch" not in said
  assert not (tmp_path / "metrics.jsonl").exists()
  assert json.loads((tmp_path / "memory.json").read_text())["need"] > limit


def test_what_fits_is_a_table_and_a_file(run, tmp_path, capsys):
  run_memory.check(run, tmp_path, "error", limit=10**9)
  out = capsys.readouterr().out
  assert out.startswith("memory per device, of 1.0 GB (estimated)\n")
  assert "policy + optimizer" in out
  written = json.loads((tmp_path / "memory.json").read_text())
  assert written["need"] == memory.need(written["held"], written["stages"]) < 10**9
  assert written["source"] == "estimated"
  assert memory.device_bytes(run.passes.mesh) > 10**8  # This machine's.


@pytest.mark.parametrize("share, compiles", [(0.39, False), (0.41, True)])
def test_steps_are_compiled_only_where_it_is_close(
    run, stages, tmp_path, monkeypatch, capsys, share, compiles):
  calls = []
  monkeypatch.setattr(run_memory, "measure_compiled_bytes",
                      lambda *args: calls.append(args) or stages)
  state = run.shapes()
  estimate = memory.need(run_memory.count_state_bytes(state), run_memory.cache_bytes(run)
                         | run_memory.estimate_bytes(run, state))
  run_memory.check(run, tmp_path, "error", limit=int(estimate / share))
  assert bool(calls) == compiles == ("(compiled)" in capsys.readouterr().out)
  written = json.loads((tmp_path / "memory.json").read_text())
  assert (written["source"] == "compiled") == compiles
  assert (written["need"] < estimate) == compiles


@pytest.mark.parametrize("changes", [
    {}, {"learner.microbatches": 4},
    {"model.remat": "full", "model.dtype": "bfloat16", "rollouts.max_tokens": 48,
     "prm.minibatches": 2},
    {"model.remat": "none", "prm.order": "none", "learner.microbatches": 2},
    {"model.param_dtype": "bfloat16"},
    {"model.param_dtype": "bfloat16", "model.param_update": "stochastic", "prm.order": "none",
     "learner.microbatches": 2}],
    ids=["plain", "parts", "full", "none", "master", "stochastic"])
def test_estimate_is_above_what_xla_says_and_below_twice(changes):
  run, stages = compiled(**changes)
  estimated = run_memory.estimate_bytes(run, run.shapes())
  assert set(estimated) == set(stages)
  ratio = {name: estimated[name] / n for name, n in stages.items()}
  if run.passes.models["policy"].param_dtype == "bfloat16":
    del ratio["activations of scoring"]  # XLA on CPU widens all weights there.
  assert all(1 <= x <= 2 for x in ratio.values()), ratio


@pytest.mark.parametrize("setting", ["warn", "off"])
def test_memory_check_may_be_less_strict(run, stages, tmp_path, monkeypatch, capsys, setting):
  monkeypatch.setattr(run_memory, "measure_compiled_bytes", lambda run, state: stages)
  run_memory.check(run, tmp_path, setting, limit=1000)
  assert ("change mesh.fsdp" in capsys.readouterr().err) == (setting == "warn")
  assert (tmp_path / "memory.json").exists() == (setting == "warn")


def test_every_term_has_advice(run, stages):
  advice = run_memory._advice(run)
  assert {*stages, *run_memory.cache_bytes(run), "held"} <= set(advice)


@pytest.mark.parametrize("chunk, suffix", [(8, 8), (4, 20)])
def test_cache_is_counted_per_prompt_and_completion(run, chunk, suffix):
  """2 layers of the quickstart's model; 4 prompts of 18 tokens, 8 completions of 8.

  With chunks of 4 a suffix of 8 may be copied into one of 12.
  """
  run = dataclasses.replace(run, sizes=dataclasses.replace(run.sizes, chunk=chunk))
  m, weights = _weights(run)
  per_token = 2 * m.n_layers * m.n_kv_heads * m.head_dim * 4
  assert run_memory.cache_bytes(run) == {
      "KV cache of sampling": weights + (4 * 18 + 8 * (18 + suffix)) * per_token,
      "KV cache of evaluation": weights + (4 * 18 + 4 * (18 + suffix)) * per_token}
  train = dataclasses.replace(run.sampling.train, slots=2)
  run = dataclasses.replace(run, sampling=dataclasses.replace(run.sampling, train=train))
  assert run_memory.cache_bytes(run)["KV cache of sampling"] == (
      weights + (4 * 18 + 2 * (18 + suffix)) * per_token)


def test_weights_are_counted_where_decoding_reads_them():
  """Whole over fsdp, halved over tensor; a layer or a table more while it is gathered."""
  by_fsdp = {}
  for fsdp in (1, 2):
    run = build.build(config_of(**{"mesh.fsdp": fsdp, "mesh.tensor": 2}))
    m, weights = _weights(run)
    kv = (4 * 18 + 8 * (18 + 8)) * m.n_layers * m.n_kv_heads * m.head_dim * 4 // fsdp
    by_fsdp[fsdp] = run_memory.cache_bytes(run)["KV cache of sampling"], weights, kv
  total, weights, kv = by_fsdp[1]
  assert total == weights + kv
  d, f, n, k, h, v = m.d_model, m.d_ff // 2, m.n_heads // 2, m.n_kv_heads // 2, m.head_dim, (
      m.vocab_size // 2)
  piece = 2 * 4 * max(v * d, 2 * d + d * h * (2 * n + 2 * k) + 3 * d * f)
  assert by_fsdp[2][0] == pytest.approx(weights + max(kv // 2, piece), rel=1e-3)  # Final norm.


def _weights(run):
  """(DecoderConfig, bytes of the weights that decoding reads, on a device) of the policy."""
  laid_out = run.sampling.lay_out(run.init().policy)
  return run.passes.models["policy"], sum(
      x.addressable_shards[0].data.nbytes for x in jax.tree.leaves(laid_out))


def test_the_command_compiles_all_programs_of_this_machine(run, tmp_path, capsys, monkeypatch):
  monkeypatch.setattr(build, "build", lambda *_, **__: run)
  preflight.main(config_of(), json=str(tmp_path / "figures.json"))
  figures = json.loads((tmp_path / "figures.json").read_text())
  names = [x["name"] for x in figures["programs"]]
  assert names == ["hand-over, tables", "hand-over, a layer", "prefill", "decode chunk",
                   "prefill, greedy", "decode chunk, greedy", "scoring, policy",
                   "scoring, reference", "scoring, prm", "PRM update", "policy update"]
  update = figures["programs"][-1]
  assert update["flops"] > 0 and update["traffic"] > update["need"] > 0
  assert figures["refusal"] is None and update["seconds"] == {}
  assert figures["stages"]["activations of the policy update"] == update["need"]
  text = capsys.readouterr().out
  assert "policy update" in text and update["largest"][0][0] in text and "at most" in text


def test_decode_chunks_of_each_number_of_rows_are_compiled():
  run = build.build(config_of(**{"rollouts.chunk": 2, "prompts.per_step": 8}), splits=())
  names = {p.name: p for p in itertools.takewhile(
      lambda p: not p.name.startswith("scoring"), run_memory.trace_programs(run, run.shapes()))}
  rows = run.sizes.draw * run.sizes.first_pass
  expected = {f"decode chunk, {n} rows" for n in slots.sizes(rows)[1:]}
  assert len(expected) > 1 and expected <= names.keys() and "move rows" in names
  mesh = dict(run.passes.mesh.shape)
  most, least = (run_memory.compile_program(names[name], mesh).work.flops for name in (
      "decode chunk", f"decode chunk, {slots.sizes(rows)[-1]} rows"))
  assert least == pytest.approx(most * slots.sizes(rows)[-1] / rows, rel=0.1)


def test_a_value_model_has_an_update():
  run = build.build(quickstart.ppo("smoke"), splits=())
  assert any(p.name == "value update" for p in run_memory.trace_steps(run, run.shapes()))


def test_the_command_refuses_what_the_run_would_refuse(monkeypatch):
  monkeypatch.setattr(memory, "device_bytes", lambda mesh: 300_000)
  monkeypatch.setattr(run_memory, "trace_programs", lambda *_: ())  # What is held is too much.
  with pytest.raises(ValueError, match="^memory: a device has 0.3 MB, this run needs"):
    preflight.main(config_of())


def test_bytes_of_sampling_are_those_of_its_arrays(run):
  """The chunk's arguments are the weights, the caches and what was drawn; prefill returns caches."""
  state, mesh = run.shapes(), dict(run.passes.mesh.shape)
  done = {p.name: run_memory.compile_program(p, mesh) for p in run_memory.trace_programs(run, state)
          if p.name in ("prefill", "decode chunk")}
  m, sizes = run.passes.models["policy"], run.sizes
  weights = sum(x.nbytes for x in jax.tree.leaves(run.sampling.lay_out(run.init().policy)))
  prompts = sizes.draw * sizes.prompt_tokens * size.kv_bytes_per_token(m)
  suffixes = sizes.draw * sizes.group * sizes.chunk * size.kv_bytes_per_token(m)
  assert done["prefill"].need >= weights + prompts
  arguments = done["decode chunk"].parts["arguments"]
  assert weights + prompts + suffixes < arguments < 1.1 * (weights + prompts + suffixes)
