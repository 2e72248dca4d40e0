"""What build makes of a config: slots, scores of steps, optimizers; and what it refuses."""
import types

import jax
import numpy as np
import pytest

from configs import base, quickstart
from configs.papers import red
from rlx import build
from rlx.build import (
    methods as build_methods, models as build_models, prompts as build_prompts, run as run_lib,
    updates as updates_lib, verifiers as build_verifiers)
from rlx.core import records
from rlx.io import tokenizer, weights
from rlx.learner import sharding
from rlx.models import decode_kernel, transformer
from rlx.rewards import steps
from rlx.rollouts import padding
from rlx.stages import host_fields, model_fields, sampling as sampling_lib
from tests import stages

nan = np.nan


def test_mismatched_rows_pair_prompts_with_the_next_groups_completions():
  r = records.Rollouts(
      tokens_BS=np.array([[0, 1, 5], [0, 1, 6], [2, 3, 7], [2, 3, 8]]),
      prompt_len_B=np.array([1, 1, 2, 2]), completion_len_B=np.array([1, 0, 1, 1]),
      sampler_logps_BT=np.zeros((4, 1), np.float32), finish_B=np.zeros(4, np.int32),
      prompt_P=None)
  out = model_fields.mismatched_rows(r, group=2)
  assert out.tokens_BS.tolist() == [[0, 1, 7], [0, 1, 8], [2, 3, 5], [2, 3, 6]]
  assert out.prompt_len_B.tolist() == [1, 1, 2, 2]
  assert out.completion_len_B.tolist() == [1, 1, 1, 0]


CONFIG = transformer.DecoderConfig(vocab_size=31, d_model=16, n_layers=3, n_heads=4,
                                   n_kv_heads=2, head_dim=6, d_ff=24, context=100)
# Bytes that 32 rows at their longest need: 64 + 64 + 64 positions of 2 x 3 layers x 2 heads x 6
# numbers of 4 bytes, in 0.3 of the memory.
ENOUGH = 32 * (64 + 64 + 64) * 2 * 3 * 2 * 6 * 4 / 0.3


@pytest.mark.parametrize("slots, prompts, group, free, expected, on_two", [
    (None, 8, 4, ENOUGH + 1, None, None), (None, 8, 4, ENOUGH - 1, 28, None),
    (None, 8, 4, ENOUGH / 2 - 1, 12, 24), (None, 8, 4, 0, 4, 8), (None, 8, 1, 0, 1, 2),
    (16, 8, 4, 0, 16, 16), (16, 8, 3, 0, 15, 12), (4, 8, 6, 0, 6, 12)])
def test_slots_are_the_configs_or_what_memory_holds(slots, prompts, group, free, expected, on_two):
  """Of all devices together; each one has whole groups."""
  def slots_on(mesh):
    c = base.get_config()
    c.rollouts.slots = slots
    return sampling_lib.most_rows(
        run_lib.sampling_options(c, run_lib.sizes_of(c)),
        build_prompts.texts_of(c, tokenizer.characters("a")), CONFIG, mesh, free, prompts, group,
        c.rollouts.max_tokens)
  assert slots_on(sharding.make_mesh()) == expected
  assert slots_on(sharding.make_mesh(data=2)) == on_two


def test_a_model_is_built_for_the_runs_longest_sequence(monkeypatch):
  """Which dynamic and longrope need, and which has to fit its context."""
  monkeypatch.setattr(weights, "load", lambda path, dtype, shapes: (CONFIG, {}, None))
  c = base.get_config()
  c.prompts.max_tokens, c.rollouts.max_tokens = 60, 40
  assert build_models.load_model(c, "m")[0].length == 100
  c.rollouts.max_tokens = 41
  with pytest.raises(ValueError, match="^prompts.max_tokens=60 [+] rollouts.max_tokens=41: 'm' "
                     "supports at most 100 positions"):
    build_models.load_model(c, "m")


def test_slots_of_a_mesh_are_whole_groups_of_each_device():
  c = quickstart.get_config("smoke")
  c.rollouts.slots, c.mesh.data = c.rollouts.per_prompt, 2
  with pytest.raises(ValueError, match="^rollouts.slots=4: a multiple of .*per_prompt=4 x 2"):
    build.build(c)


def step_scores(verdicts, rollouts, tokens):
  columns = host_fields.columns_of_steps(padding.completions(rollouts), tokens, ";")
  return host_fields.step_scores_BT(columns, None, None, rollouts, lambda *_: verdicts,
                                    verifier="steps")


def test_spans_of_characters_are_scores_of_the_tokens_that_they_touch():
  """The tokens ab, c and EOS, de; -, ., + and ? are 0, 1/2, 1, unknown."""
  pieces = {(1, 2, 3): ["ab", "c", ""], (4,): ["de"], (): []}
  tokens = types.SimpleNamespace(pieces=lambda ids: pieces[tuple(ids)])
  rollouts, texts = types.SimpleNamespace(sampler_logps_BT=np.zeros((6, 4))), ["abc"] * 3 + [
      "de", "abc", ""]
  read = dict(zip("-.+?", (0, .5, 1, nan)))
  verdicts = [[read[x] for x in signs] for signs in (".+-", "+?.", "...", "-+", "..", "")]
  verdicts[2] = 0.0  # Its verifier fails: of all characters.
  got_BT = host_fields.span_scores_BT(
      [[1, 2, 3]] * 3 + [[4], [1, 2, 3], []], None, texts, rollouts, tokens, lambda *_: verdicts,
      verifier="spans")
  np.testing.assert_array_equal(got_BT, [
      [1, 0, .5, 0], [nan, .5, .5, 0], [0, 0, .5, 0], [.5, 0, 0, 0], [nan] * 4, [0] * 4])
  batch = records.Batch(3, action_BT=np.ones((6, 4), bool), outcome_B=np.zeros(6),
                        span_scores_BT=got_BT)
  assert batch.learn_B.tolist() == [True, False, True, True, False, True]
  drawn_BT = np.arange(4) < np.array([[3], [3], [3], [1], [3], [0]])
  np.testing.assert_array_equal(
      steps.spans(got_BT, drawn_BT, drawn_BT & batch.learn_BT),
      [[1, -1, 0, 0], [0] * 4, [-1, -1, 0, 0], [0] * 4, [0] * 4, [0] * 4])


def test_scores_of_prefixes():
  """Of the first verifier, on the last token of each step; EOS is no step."""
  tokens = tokenizer.characters("0123456789;#")
  texts, prompts = ["7;3#3", "", "2"], [records.Prompt(id=i, text="", answer="") for i in "abc"]
  completions = [[*tokens.encode(t), tokens.eos_ids[0]] for t in texts]
  rollouts = types.SimpleNamespace(sampler_logps_BT=np.zeros((3, 7)))
  asked = []
  def verify(path, prompts, prefixes):
    asked.append((path, [p.id for p in prompts], prefixes))
    return [nan if p == "7;3" else len(p) / 8 for p in prefixes]
  for separator, columns in (("", [0, 1, 2, 3, 4]), (";", [1, 4])):
    steps = host_fields.columns_of_steps(completions, tokens, separator)
    got_BT = host_fields.prefix_scores_BT(steps, completions, prompts, tokens, rollouts, verify,
                                          verifiers=("grade", "other"))
    expected_BT = np.zeros((3, 7))
    expected_BT[0, columns] = [nan if c == 2 else (c + 1) / 8 for c in columns]
    expected_BT[2, 0] = 1 / 8
    np.testing.assert_array_equal(got_BT, expected_BT)
  assert asked[1] == ("grade", list("aac"), ["7;", "7;3#3", "2"])
  assert len(asked[0][2]) == 6


def test_a_scorer_of_prefixes_reads_the_text_alone():
  c = red.get_config("smoke")
  pool = types.SimpleNamespace(fields_of=lambda path: ("finish_B",),
                               lookup=lambda path: stages.score)
  with pytest.raises(ValueError, match=r"^verifier.scores=\('chain.step_share',\): one that reads"):
    build_verifiers.prompt_rows_of(c, build_methods.resolve_methods(c), None, pool, [])


def test_step_scores_are_on_the_steps_of_the_text():
  tokens = tokenizer.characters("0123456789;#")
  texts = ["7;3;5#5", "7;2;5#5", "7;2", "7;2;5#"]
  completions_BT, len_B = padding.pad_right(
      [[*tokens.encode(t), tokens.eos_ids[0]] for t in texts], 9, tokens.pad_id)
  rollouts = records.Rollouts(
      tokens_BS=completions_BT, prompt_len_B=np.zeros(4, int), completion_len_B=len_B,
      sampler_logps_BT=np.zeros((4, 9)), finish_B=np.ones(4, int), prompt_P=None)
  # Of the last two: a verdict too few, one too many.
  # A number is that of every step: the completion made its verifier fail.
  np.testing.assert_array_equal(
      step_scores([0.0, [], 0.0, []], rollouts, tokens)[:2],
      [[0] * 9, [0, nan, 0, nan, 0, 0, nan, 0, 0]])
  got_BT = step_scores([[1, 0, 1], [1, nan, 1], [1], [1, 1, 1, 0]], rollouts, tokens)
  np.testing.assert_array_equal(got_BT, [
      [0, 1, 0, 0, 0, 0, 1, 0, 0], [0, 1, 0, nan, 0, 0, 1, 0, 0],
      [0, 1, nan, 0, 0, 0, 0, 0, 0], [0, 1, 0, 1, 0, 1, 0, 0, 0]])
  ends_BT = host_fields.step_ends_BT(host_fields.columns_of_steps(
      padding.completions(rollouts), tokens, ";"), rollouts)
  np.testing.assert_array_equal(ends_BT[0], [0, 1, 0, 1, 0, 0, 1, 0, 0])
  assert not got_BT[~ends_BT].any()


@pytest.mark.parametrize("changes, message", [
    (dict(prompts__columns=dict(verifier="math_answer.boxed")),
     r"^verifier.workers=0: math_answer.boxed \(prompts.columns.verifier\) .* set verifier.workers"),
    (dict(prompts__columns={}),  # The default of the data set.
     r"^verifier.workers=0: math_answer.final \(prompts.columns.verifier\)"),
    (dict(environment__name="tests.environments.counting:Counting", episodes__workers=0),
     "^episodes.workers=0: a step of tests.environments.counting:Counting may run for ever"),
    (dict(verifier__scores=("gym_task.answer",)),
     r"^verifier.workers=0: gym_task.answer \(verifier.scores\)"),
    (dict(verifier__steps="math_answer.boxed", rollouts__step_separator=";"),
     r"^verifier.workers=0: math_answer.boxed \(verifier.steps\)"),
    (dict(eval__prm_sets=("math_answer.boxed",), rollouts__step_separator=";"),
     r"^verifier.workers=0: math_answer.boxed \(eval.prm_sets\)"),
    (dict(prompts__columns=dict(verifier="chain.anser")),
     "^prompts.columns.verifier: verifier.name='chain.anser'.*'answer'")])
def test_what_the_pool_cannot_run_is_refused_before_the_data_is_read(tmp_path, changes, message):
  c = quickstart.get_config("smoke")
  c.prompts.options.size = 64
  if "prompts__columns" in changes:
    for split in ("train", "test"): (tmp_path / f"{split}.jsonl").write_text("no row")
    c.prompts.source, c.prompts.options = f"jsonl:{tmp_path}/{{split}}.jsonl", {}
    c.prompts.dataset, c.prompts.per_step, c.eval.prompts = "jsonl", 4, 4
  for key, value in changes.items():
    section, _, name = key.partition("__")
    c[section][name] = value
  with pytest.raises(ValueError, match=message) as e:
    build.build(c)
  assert "\n" not in str(e.value)


class Words:
  """Tokens of several characters."""

  def pieces(self, ids):
    return [("7;2;", "5", "#5")[i] for i in ids]


@pytest.mark.parametrize("verdicts, low", [([1, 0, 1], 0), ([0, 1, 1], 0), ([nan, 1, 1], 1)])
def test_of_steps_in_one_token_the_lowest_counts(verdicts, low):
  rollouts = records.Rollouts(
      tokens_BS=np.array([[0, 1, 2]]), prompt_len_B=np.zeros(1, int),
      completion_len_B=np.array([3]), sampler_logps_BT=np.zeros((1, 3)),
      finish_B=np.ones(1, int), prompt_P=None)
  got_BT = step_scores([verdicts], rollouts, Words())
  np.testing.assert_array_equal(got_BT, [[low, 0, 1]])


def test_an_evaluation_samples_no_more_rows_than_it_has_prompts():
  c = quickstart.get_config("smoke")
  c.prompts.options.size, c.eval.prompts, c.eval.batch = 16, 3, 64
  run = build.build(c)
  assert len(run.eval_prompts) == run.sampling.greedy.prompts == run.sampling.sampled.prompts == 3


def test_step_scores_reach_the_advantages():
  """PURE on the chain task: the completion with a wrong step, and the one without."""
  c = quickstart.get_config("smoke")
  c.prompts.options.size, c.prompts.per_step, c.rollouts.per_prompt = 16, 1, 2
  c.eval.prompts = c.eval.batch = 4
  c.verifier.steps = "chain.steps"
  c.rewards = dict(process=dict(name="steps.refine", kind="softmin", signed=True, coef=1.0))
  c.advantages = dict(process=dict(name="process.rloo_steps"), whiten=False)
  run = build.build(c)
  prompt = records.Prompt("p", "4M7m2M5=", "5", "chain.answer")
  rollouts = run.texts.examples([(prompt.text, t) for t in ("7;3;5#5", "7;2;5#5")]).replace(
      prompt_P=np.zeros(1, np.uint32))
  state = records.TrainState(step=0, policy=None, policy_opt=None, kl_coef=np.float32(0))
  placed = stages.score(run, state, rollouts, np.ones(2), [prompt])
  scored, _ = run.rewards_advantages.compute_from_batch(state, placed.batch)
  # Scores 1, -1, 1 and 1, 1, 1. softmin: -1 on the second step; 1/3 on each. Baselines
  # per token: 1/8 and -1/8; the steps have 2, 2 and 3 tokens.
  np.testing.assert_allclose(scored.advantages_BT[:, :8], [
      [-15/8] * 2 + [-13/8] * 2 + [-3/8] * 3 + [0],
      [1 + 7/8] * 2 + [2/3 + 5/8] * 2 + [1/3 + 3/8] * 3 + [0]], atol=1e-6)


@pytest.mark.parametrize("name, updates", [("learner", 6), ("value", 6), ("prm", 3)])
def test_schedules_of_optimizers_count_iterations(name, updates):
  """The size of AdamW's step, with a gradient of one sign, is the learning rate."""
  c = base.get_config()
  c[name].minibatches = 3
  if name != "prm": c[name].epochs = 2
  c[name].optimizer = base.optimizer(1.0, schedule="linear", total_steps=2)
  transform = updates_lib.optimizer_of(c, name)
  params, ones = {"w_D": np.zeros(1, np.float32)}, {"w_D": np.ones(1, np.float32)}
  def step(state, _):
    steps, state = transform.update(ones, state, params)
    return state, -steps["w_D"][0]
  rates = jax.jit(lambda: jax.lax.scan(step, transform.init(params), length=2 * updates + 1)[1])()
  np.testing.assert_allclose(rates, np.linspace(1, 0, 2 * updates + 1), atol=1e-5)


@pytest.mark.parametrize("shards, changes, message", [
    (1, {"learner.minibatches": 5},
     "prompts.per_step=32: .* of learner.minibatches=5 x mesh.data x mesh.fsdp = 1; mini"),
    (1, {"learner.microbatches": 64},
     "learner.minibatches=1 x learner.microbatches=64 x mesh.data x mesh.fsdp = 1; micro.* "
     "Set learner.microbatches=32.$"),
    (4, {"prm.minibatches": 2, "prm.microbatches": 8, "learner.microbatches": 16},
     "learner.minibatches=1 x learner.microbatches=16 x mesh.data x mesh.fsdp = 4; micro.* "
     "Set learner.microbatches=8 prm.microbatches=4.$"),
    # A model that is not trained has no batches.
    (1, {"value.microbatches": 64, "learner.microbatches": 64}, "Set learner.microbatches=32.$"),
    (4, {"value.microbatches": 16, "advantages.outcome.name": "temporal.gae"},
     "value.minibatches=1 x value.microbatches=16 x mesh.data x mesh.fsdp = 4; micro"),
    (3, {}, "prompts.per_step=32: .* mesh.fsdp = 3; mini"),
    (32, {"eval.batch": 48}, "eval.batch=48: must be a multiple of mesh.data x mesh.fsdp = 32"),
    (4, {"rollouts.rehearsal": 2}, "rollouts.rehearsal=2: must be a multiple"),
    (32, {"rollouts.oversample": 1.5}, "rollouts.oversample x .*=48: must be"),
], ids=lambda x: str(x)[:40])
def test_what_does_not_cut_into_whole_groups_is_one_line(shards, changes, message):
  c = base.get_config()
  run_lib.check_cuts(c, shards if 32 % shards == 0 else 1)
  c.update_from_flattened_dict(changes)
  with pytest.raises(ValueError, match=message) as e: run_lib.check_cuts(c, shards)
  assert "\n" not in str(e.value)


@pytest.mark.parametrize("platform, kernel, dtype, line", [
    ("gpu", "auto", "bfloat16", "is used on gpu"), ("gpu", "cudnn", "bfloat16", "is used on gpu"),
    ("gpu", "auto", "float32", "needs model.dtype=bfloat16, not float32: it is not used"),
    ("gpu", "blocks", "bfloat16", None), ("cpu", "auto", "bfloat16", None)])
def test_one_token_has_a_kernel_on_gpus(monkeypatch, capsys, platform, kernel, dtype, line):
  monkeypatch.setattr(sharding, "platform", lambda mesh: platform)
  fault = "is wrong by 1 here"
  monkeypatch.setattr(decode_kernel, "find_fault", lambda **sizes: fault)
  c = base.get_config()
  c.model.attention = kernel
  config = transformer.DecoderConfig(
      vocab_size=32, d_model=32, n_layers=1, n_heads=2, n_kv_heads=2, head_dim=16, d_ff=16,
      dtype=dtype)
  assert build_models.choose_decoding(c, config, sharding.make_mesh()) == config
  err = capsys.readouterr().err
  assert line != "is used on gpu" or f"one token {fault}: it is not used." in err
  fault = None
  chosen = build_models.choose_decoding(c, config, sharding.make_mesh())
  assert chosen.decoding == ("fused" if line == "is used on gpu" else "parts")
  expected = f"rlx: model.attention={kernel!r}: the kernel for one token {line}.\n"
  assert capsys.readouterr().err == (expected if line else "")


WINDOWS = "has one window for all layers, not [0, 4]"


@pytest.mark.parametrize("platform, kernel, changes, chosen, line", [
    ("tpu", "splash", dict(windows=(0, 4)), "blocks", f"splash {WINDOWS}"),
    ("gpu", "cudnn", dict(attn_softcap=5.0), "blocks", "cudnn has no soft cap"),
    ("tpu", "splash", dict(windows=(4, 4)), "splash", None),
    ("cpu", "auto", {}, "blocks", None), (None, "auto", {}, "blocks", None),
    ("gpu", "auto", {}, "cudnn", "cudnn is used on gpu"),
    ("tpu", "auto", dict(dtype="float32"), "splash", "splash is used on tpu"),
    ("tpu", "auto", dict(windows=(0, 4)), "blocks", f"splash {WINDOWS}"),
    ("gpu", "auto", dict(dtype="float32"), "blocks",
     "cudnn needs model.dtype=bfloat16, not float32"),
    ("gpu", "auto", dict(head_dim=256), "blocks",
     "cudnn needs head_dim to be a multiple of 8 up to 128, not 256"),
    ("gpu", "auto", dict(prompt=64), "blocks",
     "cudnn makes 2.0 times the tokens, as completions do not share prompts"),
    ("gpu", "auto", dict(prompt=64, pack=False), "cudnn", "cudnn is used on gpu")], ids=str)
def test_the_kernel_of_attention_is_chosen_by_platform_and_model(
    monkeypatch, capsys, platform, kernel, changes, chosen, line):
  monkeypatch.setattr(sharding, "platform", lambda mesh: platform)
  c, changes = base.get_config(), dict(changes)
  c.model.attention, c.rollouts.per_prompt, c.rollouts.max_tokens = kernel, 4, 32
  c.prompts.max_tokens, c.learner.pack = changes.pop("prompt", 8), changes.pop("pack", True)
  config = transformer.DecoderConfig(**dict(
      vocab_size=32, d_model=16, n_layers=2, n_heads=2, n_kv_heads=2, head_dim=8, d_ff=16,
      dtype="bfloat16") | changes)
  assert build_models.choose_attention(c, config, None, "a/model").attention == chosen
  used = "" if line is None or "is used" in line else ": blocks is used"
  expected = f"rlx: model.attention={kernel!r}: {line}{used} for 'a/model'.\n"
  assert capsys.readouterr().err == (expected if line else "")
