"""The RL loop on a decoder of a few thousand parameters."""
import dataclasses
import functools
import json
import shutil

import jax
import numpy as np
import pytest
import types

from rlx.build import memory as run_memory, methods as build_methods, plan as plan_lib, updates
from rlx.core import records, rng
from rlx.io import hf, metrics as io_metrics, tokenizer
from rlx.learner import memory, sharding
from rlx.loops import rl
from rlx.models import transformer
from rlx.rollouts import budget, padding
from rlx.stages import (
    annotate, host_state, learner as learner_lib, passes as passes_lib, rewards_advantages,
    sampling)
from rlx.tools import convert, evaluate, view
from tests import stages, tiny

OUTCOMES = dict(rewards=dict(outcome=dict(name="outcome.verdict", coef=1.0)),
                rollouts__filter_groups=dict(name="filter_groups.with_verdict"),
                rollouts__oversample=1.0)
# Evaluation samples as many completions of as many prompts as a step does: one program.
EVAL = dict(eval__batch=12, eval__samples=4)
_SPREAD = dict(
    name="reward_std_filter.running_mean", fraction=1.0, decay=0.5, start=0, filter_from=1)
# State besides policy and PRM: a KL reference that is mixed with the policy every step, which
# resets the optimizer, while the PRM keeps the initial model as its reference; and the running
# standard deviation of rewards, below which a group gets no gradient.
MOVING = dict(learner__pack=True, learner__minibatches=1, learner__reward_std_filter=_SPREAD,
              kl__coef=0.1, kl__sync_every=1, kl__sync_mix=0.5, kl__reset_optimizer=True)


def trained(c, folder, k):
  """(built run, summary, last state) of a run in folder / "whole".

  A resume after step k repeats it bit for bit. Resumes in a new process are in test_resume.py.
  """
  run, whole, parts = tiny.build_run(c), folder / "whole", folder / "parts"
  with tiny.building(run):
    summary = rl.train(c, whole)
    rl.train(c, tiny.killed_after(whole, k, parts))
  (state, host), (other, other_host) = (tiny.restored(run, w) for w in (whole, parts))
  tiny.assert_equal_trees(state, other)
  assert host.prompts == other_host.prompts and host.buffer == other_host.buffer
  np.testing.assert_equal(tiny.lines(parts), tiny.lines(whole))
  assert io_metrics.tables(parts) == io_metrics.tables(whole)
  return run, summary, state


@pytest.fixture(scope="module")
def four_steps(tiny_files, tmp_path_factory):
  """(workdir, summary, last state, built run) of four steps."""
  folder = tmp_path_factory.mktemp("four")
  run, summary, state = trained(tiny.config(tiny_files, **MOVING), folder, 2)
  return folder / "whole", summary, state, run


def test_idle_optimizer_states_are_in_the_hosts_memory(four_steps, tiny_files, tmp_path):
  """With the same results, also of a run that is resumed; devices hold parameters and scalars."""
  run, summary, state = trained(
      tiny.config(tiny_files, **MOVING, offload_optimizers=True), tmp_path, 2)
  _, expected, other, _ = four_steps
  assert summary["after"] == expected["after"]
  tiny.assert_equal_trees(state, other)
  start = run.init()
  updated, _, metrics = stages.update(run, start, collected(run, start)[0])
  reset = run.end_step(updated, metrics, start.method_state)
  for opt_state in (run.init().prm_opt, updated.policy_opt, updated.prm_opt, reset.policy_opt):
    assert {x.sharding.memory_kind for x in jax.tree.leaves(opt_state) if x.ndim} == {"pinned_host"}
    assert memory.tree_bytes(opt_state) < 32  # Scalars stay.
  shapes = run.shapes()
  update = next(x for x in run_memory.trace_steps(run, shapes) if x.name == "PRM update")
  compiled = run_memory.compile_program(update, dict(run.passes.mesh.shape))
  assert compiled.need > memory.tree_bytes(sharding.move_to_memory(shapes.prm_opt, None))


@pytest.mark.parametrize("name", ["policy", "prm"])
def test_a_runs_models_are_converted_bit_for_bit(four_steps, tmp_path, name):
  workdir, _, state, _ = four_steps
  convert.convert(workdir, tmp_path / name, model=name)
  tiny.assert_equal_trees(hf.load(tmp_path / name)[1], getattr(state, name))
  assert (getattr(state, name)["norm"]["scale_D"] != 1).any()


def test_groups_end_with_a_demonstration(tiny_files):
  """Of the answer column, "x": one token and EOS; the policy learns from it."""
  changes = dict(
      prompts__columns=dict(answer="question", verifier="format.ascii_share"),
      rollouts__demonstration=dict(name="jsonl.demonstration"),
      learner__loss=dict(name="policy.rl_plus", focal_exponent=.5),
      rewards=dict(outcome=dict(name="outcome.verdict", coef=1.0)),
      advantages=dict(outcome=dict(name="group.against_sampled"), whiten=False))
  run = tiny.build_run(tiny.config(tiny_files, **changes))
  state = run.init()
  placed, _ = collected(run, state)
  prompts = prompts_of(run, placed.host)
  texts = [run.texts.tokenizer.decode(ids) for ids in padding.completions(placed.host)]
  assert texts[3::4] == [p.text for p in prompts]
  assert not set(texts[0::4]) & {p.text for p in run.prompts.all()}
  np.testing.assert_array_equal(placed.batch.demo_PG, [[False, False, False, True]] * 8)
  np.testing.assert_array_equal(placed.batch.outcome_PG, run.outcomes(prompts, placed.host))
  assert placed.batch.learn_PG[:, 3].all()
  state, _, metrics = stages.update(run, state, placed)
  assert metrics["policy/grad_norm"] > 0
  assert metrics["rollouts/sampler_gap_max"] < 1e-4  # Of samples; theirs is not known.
  with pytest.raises(ValueError, match="rollouts.max_tokens=3: the demonstration of 'jsonl/"):
    tiny.build_run(tiny.config(tiny_files, **changes, rollouts__max_tokens=3))


def prompts_of(run, rollouts):
  by_number = {rng.number(p.id): p for p in run.prompts.all()}
  return [by_number[int(p)] for p in rollouts.prompt_P]


def collected(run, state):
  """(Placed, metrics) of the first batch that the run collects."""
  return stages.collected(run, state, host_state.HostState(rehearsed={}), 0, tiny.CLOCK)


def test_a_second_pass_draws_more_of_hard_prompts(tiny_files):
  """Two completions of each prompt, then as many as the budget says of up to four."""
  run = tiny.build_run(tiny.config(
      tiny_files, **OUTCOMES, rollouts__budget=dict(name="budget.dars", first=2),
      advantages=dict(outcome=dict(name="group.mean_baseline"), whiten=False)))
  right = lambda prompts, rollouts: np.reshape(
      [float(ids[0] % 3 == 0) for ids in padding.completions(rollouts)], (len(prompts), -1))
  run = stages.with_rewards(run, right)
  state = run.init()
  placed, metrics = collected(run, state)
  rollouts, scored = placed.host, placed.batch
  outcome_PG = np.asarray(scored.outcome_PG)
  drawn_PG = np.asarray(scored.excluded_PG) != records.EXCLUDED.index("not_drawn")
  # Of 2: none right counts as 1/4, S = 3/8, M = 1: (1 - 3/4) / S = 1 more.
  more_P = np.asarray(budget.dars(outcome_PG[:, :2].sum(axis=1), 2, 4))
  assert 0 < (more_P > 0).sum() < 8
  np.testing.assert_array_equal(drawn_PG, np.arange(4)[None] < 2 + more_P[:, None])
  length_B = np.asarray(rollouts.completion_len_B)
  np.testing.assert_array_equal(length_B > 0, drawn_PG.ravel())
  np.testing.assert_array_equal(
      [float(ids[0] % 3 == 0) for ids in padding.completions(rollouts) if ids],
      outcome_PG[drawn_PG])
  assert metrics["rollouts/per_prompt"] == drawn_PG.sum() / 8
  assert metrics["rollouts/truncated"] <= 1 and metrics["verifiers/unknown"] == 0
  # A prompt's third completion is not its first again.
  texts = np.array(padding.completions(rollouts), object).reshape(8, 4)
  assert any(row[2] != row[0] and row[2] != row[1] for row in texts[drawn_PG[:, 2]])
  old_BT = placed.passes.old("old_logps_BT")
  assert np.abs(scored.sampler_logps_BT - old_BT).max() < 1e-4
  _, _, metrics = stages.update(run, state, placed)
  assert metrics["policy/grad_norm"] > 0


def test_what_the_start_solves_is_rehearsed_and_not_trained(tiny_files):
  """Groups of stored completions: no verdict, a mean of their own in any microbatches."""
  solved = [f"jsonl/train/{i}" for i in range(0, 64, 5)]
  def right(prompts, rollouts):
    outcome_PG = np.tile([1.0, 0, 0, 1], (len(prompts), 1))
    return np.where([[p.id in solved] for p in prompts], 1.0, outcome_PG)
  def run_of(microbatches):
    return stages.with_rewards(tiny.build_run(tiny.config(
        tiny_files, **OUTCOMES, rollouts__rehearsal=2, learner__minibatches=1,
        learner__microbatches=microbatches,
        advantages=dict(outcome=dict(name="group.grpo"), whiten=False),
        learner__auxiliary=dict(name="auxiliary.rehearsal", coef=50.0))), right)

  def after(run):
    state, host = run.init(), host_state.HostState()
    host.rehearsed = run.collect.find_solved(state)
    assert sorted(host.rehearsed) == sorted(solved)
    losses = []
    for step in range(3):
      placed, _ = stages.collected(run, state, host, step, tiny.CLOCK)
      rollouts, scored = placed.host, placed.batch
      numbers = [rng.number(i) for i in solved]
      is_stored_P = np.isin(rollouts.prompt_P, numbers)
      assert is_stored_P.tolist() == [False] * 6 + [True] * 2
      ids = {rng.number(i): ids for i, ids in host.rehearsed.items()}
      completions = padding.completions(rollouts)
      assert completions[27::4] == [ids[int(p)] for p in rollouts.prompt_P[6:]]
      assert all(not c for c in completions[24:27] + completions[28:31])
      # The verifier accepts them; they are excluded because they are stored.
      assert (scored.outcome_B[27::4] == 1).all()
      assert not scored.learn_B[24:].any() and scored.learn_B[:24].all()
      np.testing.assert_array_equal(scored.rehearsal_BT.any(axis=1),
                                    [False] * 27 + [True] + [False] * 3 + [True])
      state, _, metrics = stages.update(run, state, placed, step)
      state = run.end_step(state, metrics, None)
      losses.append(float(metrics["policy/auxiliary"]))
      assert metrics["rollouts/sampler_gap_max"] < 1e-4
      # On-policy z-scores have a mean of 0, so that this is all of the loss.
      np.testing.assert_allclose(metrics["policy/loss"], 50 * losses[-1], atol=1e-5)
    assert losses[0] == 0 < losses[1]   # The policy begins as its start.
    return state

  run = run_of(1)
  one, two = after(run), after(run_of(2))
  jax.tree.map(functools.partial(np.testing.assert_allclose, atol=2e-6), one.policy, two.policy)
  with pytest.raises(ValueError, match="rollouts.rehearsal=7: the initial policy solves only 0"):
    none = stages.with_rewards(run, lambda prompts, _: np.zeros((len(prompts), 4))).collect
    sizes = dataclasses.replace(none.sizes, rehearsal=7)
    dataclasses.replace(none, sizes=sizes).find_solved(run.init())


def test_remax_compares_with_the_greedy_completion(tiny_files):
  run = tiny.build_run(tiny.config(
      tiny_files, **OUTCOMES, rollouts__per_prompt=1, learner__minibatches=1,
      advantages=dict(outcome=dict(name="batch.remax"), whiten=False)))
  state = run.init()
  placed, _ = collected(run, state)
  rollouts, scored = placed.host, placed.batch
  prompts = prompts_of(run, rollouts)
  greedy = run.sampling.greedy(state.policy, prompts, rng.key(0, "x"))
  want_B = run.outcomes(prompts, jax.device_get(greedy))[:, 0]
  np.testing.assert_allclose(scored.greedy_B, want_B, rtol=1e-6)
  assert len(set(want_B.tolist())) > 1
  scored, _ = run.rewards_advantages.compute_from_batch(state, scored)
  np.testing.assert_allclose(
      np.where(scored.action_BT[:, 0], scored.advantages_BT[:, 0], 0),
      scored.outcome_B - want_B, atol=1e-6)


def test_a_stale_sampler(tiny_files, tmp_path, capsys):
  """Synced every second step; DPO over pairs of the group, its reference frozen."""
  c = tiny.config(
      tiny_files, rollouts__sync_every=2, checkpoint__every=1,
      learner__loss=dict(name="sequence.dpo", dpo_beta=.1), learner__minibatches=1,
      rewards=OUTCOMES["rewards"],
      advantages=dict(outcome=dict(name="group.rloo"), whiten=False))
  _, _, state = trained(c, tmp_path, 3)
  assert "log-probs of sampler and trainer differ" not in capsys.readouterr().err  # It is known.
  lines = io_metrics.read(tmp_path / "whole")
  gaps = [l["rollouts/sampler_gap_max"] for l in lines]
  # In steps 0 and 2 the sampler is the policy, in 1 and 3 the one before.
  assert max(gaps[0], gaps[2]) < 1e-4 and min(gaps[1], gaps[3]) > 1e-3
  # Policy and reference are the same at the start: every pair's loss is log 2.
  assert 0 < lines[0]["policy/loss"] <= np.log(2) + 1e-6
  assert lines[0]["policy/grad_norm"] > 0 and lines[1]["policy/kl_ref"] != 0
  tiny.assert_equal_trees(state.sampler, state.policy)  # 4 steps.


@pytest.mark.parametrize("mean, largest, dtype, text", [
    (9e-5, 9e-3, "float32", None), (1e-2, 0.4, "bfloat16", None),
    (2e-4, 1e-3, "float32", "2.0e-04 and 1.0e-03 (mean, largest); rounding in float32 explains "
     "1.0e-04 and 1.0e-02"),
    (1e-3, 1.1, "bfloat16", "bfloat16 explains 5.0e-02 and 1.0e+00"),
    (np.nan, np.nan, "float32", "differ by nan and nan")])
def test_a_gap_that_rounding_does_not_explain_is_one_line(capsys, mean, largest, dtype, text):
  run = types.SimpleNamespace(sampling=types.SimpleNamespace(train=types.SimpleNamespace(
      config=types.SimpleNamespace(dtype=dtype))))
  metrics = {"rollouts/sampler_gap_mean": mean, "rollouts/sampler_gap_max": largest}
  assert rl.warn_of_gap(run, metrics, 3) == (text is not None)
  err = capsys.readouterr().err
  assert err.count("\n") == (text is not None) and (text or "") in err


def test_a_run_tells_of_the_gap_once(tiny_files, tmp_path, capsys, monkeypatch):
  monkeypatch.setitem(sampling.GAPS, "float32", (-1.0, -1.0))
  rl.train(tiny.config(tiny_files, **OUTCOMES, steps=2,
                       advantages=dict(outcome=dict(name="group.rloo"), whiten=False)), tmp_path)
  assert capsys.readouterr().err.count("rlx: step 0: log-probs of sampler and trainer differ") == 1


def test_groups_left_out_by_the_spread_of_their_rewards(tiny_files):
  # Four completions: a spread of .5 for one of the other kind, .577 for two and two.
  run = tiny.build_run(tiny.config(
      tiny_files, rewards=OUTCOMES["rewards"], learner__reward_std_filter=_SPREAD,
      advantages=dict(outcome=dict(name="group.rloo"), whiten=False)))
  outcome_PG = np.float32([[1, 0, 0, 0], [1, 1, 0, 0]] * 4)
  scored = records.Batch(outcome_B=outcome_PG.ravel(), action_BT=np.ones((32, 2), bool), group=4)
  state = run.init().replace(step=1, method_state={
      "learner.reward_std_filter": dict(ema=np.float32(.55))})
  scored, metrics = run.rewards_advantages.compute_from_batch(state, scored)
  assert metrics["rewards/kept"] == .5
  np.testing.assert_array_equal(scored.learn_PG, np.tile([[False], [True]], (4, 4)))
  advantages_PGT = scored.advantages_BT.reshape(8, 4, 2)
  assert not advantages_PGT[::2].any() and advantages_PGT[1::2].all()


def test_annealed_rollouts_are_scored_at_the_temperature_that_is_learned(tiny_files, tmp_path):
  """Three steps of warm-up at a factor of 1, then log-probs of sampler and trainer part."""
  changes = dict(rollouts__anneal=dict(
      name="anneal.ead", rate=5.0, warmup_steps=3),
      learner__rollout_correction=dict(name="rollout_correction.tis", cap=2.0),
      advantages=dict(outcome=dict(name="group.rloo"), whiten=False))
  rl.train(tiny.config(tiny_files, **OUTCOMES, **changes), tmp_path)
  lines = io_metrics.read(tmp_path)
  for l in lines[:3]:
    assert l["rollouts/sampler_gap_max"] < 1e-4
    np.testing.assert_allclose(l["policy/rollout_correction_mean"], 1, atol=1e-4)
  assert lines[3]["rollouts/sampler_gap_max"] > 1e-2
  assert abs(lines[3]["policy/rollout_correction_mean"] - 1) > 1e-4


@pytest.mark.parametrize("rank", [0, 2])
def test_a_reset_of_the_kl_reference_is_not_seen_by_the_prm(tiny_files, rank):
  changes = dict(kl__coef=0.1, kl__sync_every=2, kl__reset_optimizer=True, lora__rank=rank)
  run = tiny.build_run(tiny.config(tiny_files, **changes))
  state = run.init()
  _, rollouts, outcome_B = tiny.sample(run, state)
  def scored_by(state):
    placed = stages.score(run, state, rollouts, outcome_B)
    return jax.device_get(stages.with_updates_logps(state, placed).batch)
  start = scored_by(state)
  np.testing.assert_array_equal(start.ref_logps_BT, start.old_logps_BT)
  seen = {}
  for step in range(2):
    state, *_ = stages.update(run, state, stages.score(run, state, rollouts, outcome_B), step)
    state = run.end_step(state, {}, None)
    seen[step] = scored_by(state), jax.device_get(state)
  (one, before), (two, after) = seen[0], seen[1]
  for scored in (one, two):  # The PRM and its reference are where they were.
    np.testing.assert_array_equal(scored.prm_ref_logps_BT, start.prm_ref_logps_BT)
    np.testing.assert_array_equal(scored.prm_logps_BT, start.prm_ref_logps_BT)
  # The first step is no multiple of kl.sync_every.
  np.testing.assert_array_equal(one.ref_logps_BT, start.ref_logps_BT)
  assert np.abs(one.old_logps_BT - start.old_logps_BT).max() > 1e-3
  np.testing.assert_array_equal(two.ref_logps_BT, two.old_logps_BT)
  moments = lambda s: sum(np.abs(x).sum() for x in jax.tree.leaves(s.policy_opt))
  assert moments(before) > 0 and moments(after) == 0
  # Training continues: the policy's arrays are donated, the reference is a copy.
  state, *_ = stages.update(run, state, stages.score(run, state, rollouts, outcome_B), 2)
  tiny.assert_equal_trees(jax.device_get(state.kl_reference), after.policy)


def test_the_loop_learns_something_and_says_so(four_steps):
  workdir, summary, state, _ = four_steps
  lines = io_metrics.read(workdir)
  assert [l["step"] for l in lines] == [0, 1, 2, 3]
  assert {name.partition("/")[0] for l in lines for name in l} <= {"step", *annotate.SECTIONS}
  assert {name for row in io_metrics.tables(workdir) for name in row} <= {*annotate.ENTRIES}
  # The PRM starts as its reference.
  assert lines[0]["prm/abs_log_ratio"] == 0 and lines[0]["rewards/process"] == 0
  assert lines[0]["prm/accuracy"] == 0.5
  assert lines[1]["prm/abs_log_ratio"] > 0
  assert lines[3]["rewards/process_normaliser"] > 0
  for l in lines:
    assert l["rollouts/sampler_gap_max"] < 1e-4 and l["policy/nonfinite"] == 0
    assert l["policy/empty"] == 0 and l["policy/grad_norm"] > 0
  kept = [l["rewards/kept"] for l in lines]
  assert kept[0] == 1 and 0 < min(kept[1:]) < 1
  assert state.kl_reference is not None
  assert state.method_state["learner.reward_std_filter"]["ema"] == lines[-1]["rewards/std_ema"] > 0
  assert json.loads((workdir / "summary.json").read_text()) == summary
  assert {"greedy", "sampled"} == set(summary["before"]) == set(summary["after"])
  assert summary["steps"] == 4 and summary["seconds"]["to_first_step"] > 0
  assert json.loads((workdir / "versions.json").read_text())["jax"] == jax.__version__
  assert (workdir / "config.json").stat().st_size > 0


def test_completions_are_stored_token_by_token(four_steps, monkeypatch):
  rows = io_metrics.tables(four_steps[0])
  assert {r["step"] for r in rows} == {0, 1, 2, 3} and len(rows) == 4 * 8
  for r in rows:
    end = "<eos>" if r["finish"] == "eos" else ""  # What was drawn, and what verifiers read.
    drawn = "".join(r["tokens"])
    assert drawn.replace("<pad>", "") == r["completion"] + end and "<" not in r["completion"]
    assert len(r["tokens"]) == len(r["advantages"]) == len(r["log_ratio"]) == r["length"]
    assert r["prompt_tokens"] == len(r["prompt"])
  assert {r["finish"] for r in rows} == {"eos", "length"}
  monkeypatch.setattr(view.curves, "svgs", lambda *_: {})  # Of a run's: tests/test_view.py.
  assert "4 of the 4 steps" in view.view(four_steps[0]).read_text()


def test_a_finished_run_does_not_run_again(tiny_files, four_steps, tmp_path):
  whole, first_summary, _, run = four_steps
  workdir = shutil.copytree(whole, tmp_path / "w")
  with tiny.building(run): summary = rl.train(tiny.config(tiny_files, **MOVING), workdir)
  assert (workdir / "metrics.jsonl").read_text() == (whole / "metrics.jsonl").read_text()
  assert summary["after"] == first_summary["after"]


def test_another_model_in_the_workdir_is_one_clear_line(tiny_files, four_steps, tmp_path):
  tokens = tokenizer.characters("0123456789abcdefgh")
  config = transformer.DecoderConfig(
      vocab_size=20, d_model=8, n_layers=1, n_heads=2, n_kv_heads=1, head_dim=4, d_ff=8)
  hf.save(tmp_path / "other", config, transformer.init(config, jax.random.key(0)), tokens)
  c = tiny.config(tiny_files, **MOVING, model__path=str(tmp_path / "other"))
  with pytest.raises(ValueError, match=r"^model.path=.*/other'.* another --workdir"):
    rl.train(c, four_steps[0])
  # Also where the folder is the same.
  with pytest.raises(ValueError, match=r"has shape .* another --workdir"):
    tiny.restored(tiny.build_run(c), four_steps[0])


def test_evaluate_reads_the_checkpoint(tiny_files, four_steps):
  workdir, summary, *_ = four_steps
  results = evaluate.evaluate(tiny.config(tiny_files, **MOVING, eval__samples=4), workdir)
  assert json.loads((workdir / "evaluate.json").read_text()) == results
  assert results["greedy"] == summary["after"]["greedy"]
  mean = {name: x["mean"] for name, x in results.items() if "mean" in x}
  assert mean["pass@1"] == pytest.approx(mean["sampled"])
  for name in ("pass@4", "best@4/min", "best@4/sum", "best@4/last"):
    assert 0 <= mean[name] <= 1
  assert "maj@4" not in mean  # Completions are right, and none states an answer.
  assert mean["pass@4"] >= mean["best@4/min"]


def _one_step(tiny_files, rollouts=None, **changes):
  """(state, rollouts, metrics) after two updates on one batch from the same start."""
  run = tiny.build_run(tiny.config(tiny_files, **changes))
  state = run.init()
  prompts = run.prompts.take(8)
  if rollouts is None: rollouts = run.sampling.train(state.policy, prompts, rng.key(0, "sample", 0))
  outcome_PG = run.outcomes(prompts, jax.device_get(rollouts)).astype(np.float32)
  # One verdict that could not be told, so that validity matters.
  outcome_PG[0, 0] = np.nan
  metrics = {}
  for step in range(2):  # The second time the PRM differs from its reference.
    placed = stages.score(run, state.replace(step=step), rollouts, outcome_PG.reshape(-1))
    state, placed, m = run.update_prm(state, placed)
    placed, m2 = run.rewards_advantages(state, placed)
    state, m3 = run.update_value(state, placed, step)
    state, _, m4 = run.update_policy(state, placed, step)
    metrics |= m | m2 | m3 | m4
  return jax.device_get((state, rollouts, metrics))


@pytest.fixture(scope="module")
def one_device(tiny_files):
  return _one_step(tiny_files)


@pytest.mark.parametrize("changes, atol", [
    (dict(mesh=dict(data=2, fsdp=2, tensor=2)), 1e-5),
    (dict(learner__microbatches=4, prm__microbatches=2, learner__pack=True), 2e-5)], ids=str)
def test_devices_microbatches_and_packing_change_nothing(tiny_files, one_device, changes, atol):
  state, rollouts, metrics = one_device
  is_sampled = "mesh" in changes  # Devices draw the same completions, too.
  other, other_rollouts, other_metrics = _one_step(
      tiny_files, None if is_sampled else rollouts, rollouts__oversample=1.0, **changes)
  assert padding.completions(rollouts) == padding.completions(other_rollouts)
  jax.tree.map(functools.partial(np.testing.assert_allclose, atol=atol),
               (state.policy, state.prm), (other.policy, other.prm))
  for k, v in metrics.items():
    np.testing.assert_allclose(other_metrics[k], v, atol=1e-4, rtol=1e-4, err_msg=k)


def test_weights_of_the_policy_loss(tiny_files, one_device):
  """A tenth of the loss of half of the advantages; Adam takes (almost) the same steps."""
  _, rollouts, metrics = one_device
  _, _, other_metrics = _one_step(
      tiny_files, rollouts,
      learner__rollout_correction=dict(name="rollout_correction.tis", cap=.1),
      learner__token_weight=dict(name="token_weight.steer", shape="linear", low=.5, high=.5))
  assert "policy/rollout_correction_mean" not in metrics
  np.testing.assert_allclose(other_metrics["policy/rollout_correction_mean"], .1, rtol=1e-6)
  for key in ("policy/loss", "policy/grad_norm"):
    np.testing.assert_allclose(other_metrics[key], .05 * metrics[key], rtol=2e-2, err_msg=key)


@pytest.fixture
def passes(monkeypatch):
  """The arguments of `passes.compile_logps` for each forward pass that a test takes."""
  taken, compiled = [], passes_lib.compile_logps
  def counted(*key):
    fn = compiled(*key)
    return lambda *args: taken.append(key) or fn(*args)
  monkeypatch.setattr(passes_lib, "compile_logps", counted)
  return taken


_PRM = updates, "uses_own_pass", lambda *_: False


@pytest.mark.parametrize("changes, patched, atol", [
    (dict(learner__minibatches=1, learner__microbatches=4, kl__coef=0.1,
          learner__loss=dict(name="sequence.gspo")),
     (learner_lib.Learner, "has_one_step", False), 1e-6),
    (dict(prm__minibatches=1, prm__microbatches=2, learner__microbatches=4, learner__pack=True),
     _PRM, 1e-5),
    (dict(prm__minibatches=1, prm__loss=dict(name="prm.dpo")), _PRM, 1e-5)],
    ids=["policy", "PRM", "PRM by pairs"])
def test_a_single_optimizer_step_needs_no_pass_before_it(
    tiny_files, one_device, passes, monkeypatch, changes, patched, atol):
  """Same parameters and metrics as with the model's log-probs computed beforehand."""
  state, _, metrics = _one_step(tiny_files, one_device[1], **changes)
  without = len(passes)
  monkeypatch.setattr(*patched)
  other, _, other_metrics = _one_step(tiny_files, one_device[1], **changes)
  assert len(passes) - without == without + 2  # Its own, in each of the two steps.
  jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6),
               (state.policy, state.prm), (other.policy, other.prm))
  assert metrics.keys() == other_metrics.keys()
  for k, v in metrics.items():
    np.testing.assert_allclose(other_metrics[k], v, atol=atol, rtol=1e-4, err_msg=k)


def test_a_prm_scored_in_its_update_starts_at_zero(tiny_files):
  """The log-ratio is exactly 0 before the first update, also after empty ones, and not later."""
  run = tiny.build_run(tiny.config(
      tiny_files, prm__minibatches=1, prm__microbatches=2, learner__pack=True))
  state = run.init()
  _, rollouts, _ = tiny.sample(run, state)
  is_equal = []
  for outcome_B in (np.full(32, np.nan), np.arange(32) % 2, np.arange(32) % 2):
    placed = stages.score(run, state, rollouts, outcome_B)
    assert "prm_logps_BT" not in placed.batch
    state, placed, _ = run.update_prm(state, placed)
    batch = placed.batch
    is_equal.append(bool((batch.prm_old_logps_BT == batch.prm_ref_logps_BT).all()))
  assert is_equal == [True, True, False]


@pytest.mark.parametrize("changes, given", [
    ({}, True), (dict(prm__epochs=2), False), (dict(prm__order="double"), False),
    (dict(prm__snapshot=False), False), (dict(prm__reference="policy"), False),
    (dict(model__dtype="bfloat16"), True),
    (dict(model__dtype="bfloat16", model__remat="none"), False)], ids=str)
def test_when_the_prms_update_scores_it(tiny_files, changes, given):
  c = tiny.config(tiny_files, **dict(dict(prm__minibatches=1), **changes))
  assert updates.uses_own_pass(c, build_methods.resolve_methods(c)) == given


@pytest.mark.parametrize("temperature, count", [(1.0, 2), (0.6, 3)])
def test_the_policy_as_the_prms_reference_is_scored_at_temperature_1(
    tiny_files, passes, temperature, count):
  """Equal weights: the log-ratio is exactly 0, the cross-entropy ln 2."""
  c = tiny.config(tiny_files, prm__reference="policy", prm__minibatches=1)
  c.rollouts.decoding.temperature = temperature
  run = tiny.build_run(c)
  state = run.init()
  _, rollouts, _ = tiny.sample(run, state)
  placed = stages.score(run, state, rollouts, np.arange(32) % 2)
  state, placed, metrics = run.update_prm(state, placed)
  scored = placed.with_columns(old_logps_BT=placed.passes.old("old_logps_BT")).batch
  assert scored.action_BT.any() and (scored.prm_logps_BT == scored.prm_ref_logps_BT).all()
  assert sorted(key[1] for key in passes) == sorted([1.0, 1.0, temperature][:count])
  assert np.abs(scored.old_logps_BT - scored.sampler_logps_BT).max() < 1e-4
  assert (scored.old_logps_BT == scored.prm_ref_logps_BT).all() == (temperature == 1)
  assert metrics["prm/loss"] == pytest.approx(np.log(2), abs=1e-6)
  metrics = rewards_advantages.old_metrics(scored, temperature)
  assert metrics.get("prm/kl_policy") == (0 if temperature == 1 else None)


def test_two_passes_of_the_prm_are_two_updates(tiny_files):
  once, twice = (tiny.build_run(tiny.config(tiny_files, prm__epochs=n)) for n in (1, 2))
  vars(twice.update_prm)["program"] = once.update_prm.program
  _, rollouts, _ = tiny.sample(once, once.init())
  outcome_B = np.arange(32) % 2
  def updated(run, calls):
    state = run.init()
    placed = stages.score(run, state, rollouts, outcome_B)
    state, after, _ = run.update_prm(state, placed)
    # The rewards read the log-probs before the update.
    np.testing.assert_array_equal(after.batch.prm_logps_BT, placed.batch.prm_ref_logps_BT)
    for _ in range(calls - 1): state, *_ = run.update_prm(state, placed)
    return state.prm
  tiny.assert_equal_trees(updated(twice, 1), updated(once, 2))


@pytest.mark.parametrize("changes, passes", [
    (dict(learner__epochs=2), False), (dict(learner__minibatches=2), False),
    (dict(kl__coef=0.1, kl__place="reward",
          advantages=dict(total=dict(name="temporal.return_to_go"))), True),
    (dict(advantages=dict(total=dict(name="batch.optimal_token_baseline"))), True),
    (dict(kl__coef=0.1), False), ({}, False)], ids=str)
def test_which_configs_score_the_policy_before_rewards(tiny_files, changes, passes):
  if estimators := changes.get("advantages"):
    changes = dict(changes, advantages=dict(estimators, whiten=True))
  c = tiny.config(tiny_files, **dict(dict(learner__minibatches=1), **changes))
  planned = plan_lib.plan_fields(c, build_methods.resolve_methods(c))
  assert any(f.name == "old_logps_BT" for f in planned) == passes


def test_ppo_with_a_value_model_and_kl_in_both_places_and_a_prm_that_learns_by_kto(
    tiny_files, one_device):
  total = dict(total=dict(name="temporal.gae", gamma=1.0, lam=0.95), whiten=True)
  c = tiny.config(tiny_files)
  state, _, metrics = _one_step(
      tiny_files, one_device[1], advantages=total, kl=dict(c.kl.to_dict(), coef=0.1),
      learner__epochs=2, learner__optimizer__warmup_steps=2,
      prm__loss=dict(name="prm.kto"), prm__beta_schedule__warmup_steps=4)
  assert metrics["value/grad_norm"] > 0 and np.isfinite(metrics["policy/kl_ref"])
  assert 0 <= metrics["value/clip"] <= 1 and 0 <= metrics["policy/clip_low"] <= 1
  # Two iterations of warm-up are 8 steps, of 2 epochs and 2 minibatches; the last 4.
  assert metrics["policy/lr"] == pytest.approx(3e-3 * (5 + 6 + 7 + 8) / 4 / 8)
  assert metrics["value/lr"] == pytest.approx(1e-5) and metrics["prm/lr"] == pytest.approx(3e-3)
  assert state.value["value"]["w_D1"].any()
  assert metrics["prm/beta"] == pytest.approx(.05 * 2 / 4)
  assert metrics["prm/grad_norm"] > 0 and metrics["prm/abs_log_ratio"] > 0


def test_draws_until_the_batch_is_full_and_says_when_it_cannot(tiny_files):
  """A stub sampler of known accuracy: number of draws, buffer, fill, cap."""
  run = tiny.build_run(tiny.config(
      tiny_files, prompts__per_step=4, rollouts__oversample=1.0, learner__minibatches=1,
      prm__minibatches=1, rollouts__fill="failed"))
  asked = []
  def sample(params, prompts, key, factor_T, weights):
    asked.append(np.array([rng.number(p.id) for p in prompts], np.uint32))
    b = 4 * len(asked[-1])
    return records.Rollouts(
        tokens_BS=np.zeros((b, 8), np.int32), prompt_len_B=np.full(b, 3),
        completion_len_B=np.full(b, 2), sampler_logps_BT=np.zeros((b, 4), np.float32),
        finish_B=np.ones(b, np.int32), prompt_P=asked[-1])
  def verify_as(accuracies):
    turns = iter(accuracies)
    return types.SimpleNamespace(hold=lambda state: None, rewards=lambda *_, keep: np.array([
        [1.0] * a + [0.0] * (4 - a) for a in next(turns)]))
  stub = dataclasses.replace(
      run.collect, sampling=types.SimpleNamespace(train=sample, lay_out=lambda params: None),
      texts=types.SimpleNamespace(completions=lambda rollouts: [""] * len(rollouts.finish_B)),
      outcomes=verify_as([[2, 4, 2, 0], [2, 2, 2, 4]]))
  host = host_state.HostState(rehearsed={})
  state = records.TrainState(step=0, policy=None, policy_opt=None)
  batch, metrics = stub(state, host, 0, tiny.CLOCK)
  assert metrics["rollouts/draws"] == 2 and metrics["rollouts/pass_fraction"] == 5 / 8
  np.testing.assert_array_equal(batch.reward_B, [1, 1, 0, 0] * 4)
  first, second = asked
  kept = [first[0], first[2], second[0], second[1]]
  np.testing.assert_array_equal(batch.rollouts.prompt_P, kept)
  # The surplus group waits by id and is asked first in the next step.
  assert [rng.number(i) for i in host.buffer] == [second[2]]
  stub = dataclasses.replace(stub, outcomes=verify_as([[2, 2, 2, 2]]))
  stub(state, host, 1, tiny.CLOCK)
  assert asked[2][0] == second[2] and host.buffer == []
  assert len(set(asked[2].tolist())) == 4
  # The cap: three draws, then groups that failed fill up, or a clear line.
  stub = dataclasses.replace(stub, outcomes=verify_as([[4] * 4, [0] * 4, [4, 2, 4, 4]]))
  batch, metrics = stub(state, host, 2, tiny.CLOCK)
  assert metrics["rollouts/draws"] == 3 and metrics["rollouts/filled"] == 3
  np.testing.assert_array_equal(batch.reward_B, [1, 1, 0, 0] + [1] * 12)
  # Or they keep the batch's shape and their verdicts, and do not learn.
  stub = dataclasses.replace(stub, fill="drop",
                             outcomes=verify_as([[4] * 4, [0] * 4, [4, 2, 4, 4]]))
  batch, metrics = stub(state, host, 2, tiny.CLOCK)
  assert metrics["rollouts/filled"] == 3 and len(batch.rollouts.completion_len_B) == 16
  np.testing.assert_array_equal(batch.reward_B, [1, 1, 0, 0] + [1] * 12)
  filtered = records.EXCLUDED.index("filtered")
  np.testing.assert_array_equal(batch.excluded_B, [0] * 4 + [filtered] * 12)
  stub = dataclasses.replace(stub, fill="error", outcomes=verify_as([[4] * 4] * 3))
  with pytest.raises(ValueError, match=(
      r"0 of 12 prompts passed rollouts.filter_groups in 3 draws, 4 are needed")):
    stub(state, host, 3, tiny.CLOCK)


def test_adapters_train_over_one_frozen_base(tiny_files, tmp_path):
  """PRIME with policy and PRM as adapters: what moves, what is saved, what is converted."""
  c = tiny.config(tiny_files, lora__rank=2, lora__alpha=8.0, steps=2, checkpoint__every=1, **EVAL)
  run, _, state = trained(c, tmp_path, 1)
  lines = io_metrics.read(tmp_path / "whole")
  assert lines[0]["prm/abs_log_ratio"] == 0  # The PRM starts as the reference, exactly.
  assert lines[1]["prm/abs_log_ratio"] > 0
  assert set(state.policy) == set(state.prm) == {"layers"}
  start = run.init()
  for name in ("policy", "prm"):
    b = getattr(state, name)["layers"]["mlp"]["down_b_LID"]
    assert np.abs(b).max() > 0 and not np.any(start.policy["layers"]["mlp"]["down_b_LID"])

  convert.convert(tmp_path / "whole", tmp_path / "policy")
  config, params = hf.load(tmp_path / "policy")
  frozen = jax.device_get(start.frozen)
  assert jax.tree.structure(params) == jax.tree.structure(frozen)
  tokens, columns = np.arange(6)[None] % config.vocab_size, np.arange(6)[None]
  full = state.replace(frozen=frozen).join_params("policy")
  args = (tokens, columns, columns >= 0)
  hidden = jax.jit(transformer.hidden, static_argnums=1)
  hidden_BSD = hidden(params, config, *args)
  np.testing.assert_allclose(
      hidden_BSD, hidden(full, run.passes.models["policy"], *args), atol=1e-5)
  assert np.abs(hidden(frozen, config, *args) - hidden_BSD).max() > 1e-4


@pytest.mark.parametrize("mode", ["master", "stochastic"])
def test_parameters_in_bfloat16_learn_resume_and_are_converted(tiny_files, tmp_path, mode):
  c = tiny.config(
      tiny_files, model__param_dtype="bfloat16", model__param_update=mode, steps=2,
      checkpoint__every=1, learner__minibatches=1, prm__minibatches=1, **EVAL)
  _, _, state = trained(c, tmp_path, 1)
  lines = io_metrics.read(tmp_path / "whole")
  assert lines[0]["prm/abs_log_ratio"] == 0 < lines[1]["prm/abs_log_ratio"]
  _, start = hf.load(tiny_files / "model", "bfloat16")
  for name in ("policy", "prm"):
    params, opt = getattr(state, name), getattr(state, f"{name}_opt")
    assert {x.dtype for x in jax.tree.leaves(params)} == {jax.numpy.bfloat16.dtype}
    assert {x.dtype for x in jax.tree.leaves(opt)} == {np.dtype("float32"), np.dtype("int32")}
    if mode == "master":
      jax.tree.map(lambda p, x: np.testing.assert_array_equal(p, x.astype(p.dtype)),
                   params, opt.master)
    moved = params["layers"]["mlp"]["down_LFD"] != start["layers"]["mlp"]["down_LFD"]
    assert moved.mean() > 0.5, name
  convert.convert(tmp_path / "whole", tmp_path / "policy")
  jax.tree.map(np.testing.assert_array_equal,
               hf.load(tmp_path / "policy", "bfloat16")[1], state.policy)
