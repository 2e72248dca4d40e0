"""Each question on arrays and texts that it has to find fault with; all on a real batch."""
import dataclasses
import json
import re

import jax
import numpy as np
import pytest

from configs import prime_steps, quickstart
from rlx import build
from rlx.build import memory as run_memory, methods as build_methods, validation
from rlx.io import chat, compile_cache, hf, tokenizer, weights
from rlx.learner import memory
from rlx.loops import prm_sets, record
from rlx.models import transformer
from rlx.tools import doctor

nan = np.nan


def levels(findings):
  return {f.question: f.level for f in findings}


def vary(outcome, **options):
  return doctor.rewards_vary(np.array(outcome, float), 0.4, "Boom", **options)


def suffice(keep, draws, fill):
  return doctor.draws_suffice(np.array(keep, bool), 4, 4, draws, fill)


def fit(cut):
  """Of 20 answers, `cut` are cut."""
  lengths_B = np.array([8] * cut + [3] * (20 - cut))
  return doctor.answers_fit(lengths_B, lengths_B == 8, 8)


def base(answers, outcome):
  return doctor.base_answers(answers, np.array([outcome], float), "#(.)")


PLAIN = doctor.Example("2+2=", "2+2=", [5, 6], [5, 6, 7])


def closes(**change):
  return doctor.template_closes([PLAIN, dataclasses.replace(PLAIN, **change)])


def ends(**changes):
  """Two completions: one ends by EOS (1), one at the length."""
  given = dict(completions=[[5, 6, 1], [5, 6, 7, 8]], finish_B=np.array([1, 0]),
               mask_BT=np.array([[1, 1, 1, 0], [1, 1, 1, 1]], bool),
               logps_BT=np.full((2, 4), -1.0), eos_ids=(1, 2))
  given["logps_BT"][0, 3] = nan  # Padding may hold anything.
  return doctor.masks_cover_eos(**given | changes)


def agrees(gap, dtype, is_annealed=False):
  logps_BT, mask_BT = np.full((2, 3), -1.0, np.float32), np.array([[1, 1, 0], [1, 0, 0]], bool)
  return doctor.sampler_agrees(logps_BT, np.where(mask_BT, logps_BT + gap, 9.0), mask_BT, dtype,
                               is_annealed)


def room(outcome, rows=32, score=None):
  """Answers are letters, the same one for wrong completions of a prompt."""
  outcome_PG = np.array(outcome, float)
  answers = [chr(97 + int(o == 1)) for o in outcome_PG.ravel()]
  return doctor.verdicts_leave_room(outcome_PG, answers, rows,
                                    None if score is None else np.array(score, float))


def ranks(right, prompts, verdicts=(1, 0)):
  """All right completions are above the wrong ones in this many of the prompts, below in others.

  Scores of different prompts are not comparable.
  """
  sign_P1 = np.where(np.arange(prompts) < right, 1, -1)[:, None]
  outcome_PG = np.tile(np.array(verdicts, float), (prompts, 1))
  return doctor.prm_ranks(sign_P1 * np.nan_to_num(outcome_PG) + 9 * np.arange(prompts)[:, None],
                          outcome_PG)


def signs(terms=("process",), **series):
  """{question: finding} of a run whose metrics change between the given values, 20 steps each."""
  names = {"accuracy": "rollouts/accuracy", "length": "rollouts/length",
           "truncated": "rollouts/truncated", "process": "rewards/process"}
  given = dict(accuracy=[0.5] * 3, length=[10.0] * 3, truncated=[0.0] * 3,
               process=[0.0] * 3) | series
  noise = np.tile([-0.01, 0.01], 30)
  columns = {names.get(name, name): np.repeat(values, 20) + noise for name, values in given.items()}
  lines = [dict(step=i) | {name: x_S[i] for name, x_S in columns.items()} for i in range(60)]
  return {f.question: f for f in doctor.check_metrics(lines, terms)}


def sign(question, **series):
  return signs(**series)[question]


FAR = np.zeros((1, 1000))
FAR[0, 0] = 0.05  # 5e-5 on average.


@pytest.mark.parametrize("finding, level, said", [
    (vary([[0, 1], [1, 1]]), "ok", "in 50% of 2 groups, their mean is 0.750"),
    (vary([[0, 0], [0, 0]]), "error", "every verdict is 0; easier prompts (prompts.options)"),
    (vary([[1, 1], [1, nan]]), "error", "every verdict is 1; harder prompts"),
    # Prompts are all right or all wrong.
    (vary([[0, 0], [1, 1]]), "error", "in 0% of 2 groups, their mean is 0.500; more completions"),
    (vary([[0, 1]] + [[0, 0]] * 9), "warning", "in 10% of 10 groups"),
    (vary([[nan, 1], [0, nan], [nan, nan], [0, 1]]), "error",
     "50% of verdicts are unknown, last Boom"),
    (vary([[nan, 1], [0, nan], [0, 1]]), "ok", "in 33% of 3 groups, their mean is 0.500"),
    (vary([[0], [1]]), "ok", "in 100% of 1 groups"),  # One completion each: the batch is the group.
    (vary([[0, 0]], failed=0.25), "error", "verifier failed on 25% of completions, last Boom"),
    (vary([[0, 1]], failed=0.25), "ok", "verifier failed on 25% of completions, last Boom"),
    (vary([[nan, nan]], failed=0.25), "error", "100% of verdicts are unknown, last Boom; fix"),
    (vary([[0, 0]], reads_verdicts=False), "warning", "is 0; no reward reads verdicts; easier"),
    (suffice([1, 1, 0, 0], 2, "failed"), "ok",
     "50% of groups pass rollouts.filter_groups; 4 of them take 2 draws of 4"),
    (suffice([1, 1, 0, 0], 1, "failed"), "warning",
     "after rollouts.max_draws=1 draws rollouts.fill=failed applies"),
    (suffice([0, 0, 0, 0], 9, "error"), "error", "take infinitely many draws of 4"),
    (fit(1), "ok", "5% are cut at rollouts.max_tokens=8; lengths: half of them <= 3, 95% <= 3, "
     "longest 8"),
    (fit(2), "warning", "10% are cut at rollouts.max_tokens=8"),
    (fit(15), "error", "longest 8; raise rollouts.max_tokens, or tell the model to end"),
    (closes(), "ok", "prompts end with '2+2=', the same in text and in tokens"),
    (closes(back="2 +2="), "warning",
     "1 of 2 prompts change when encoded and decoded: '2+2=' becomes '2 +2='"),
    (closes(whole_ids=[5, 9, 7]), "warning", "in 1 of 2 the prompt's last tokens change"),
    (closes(faults=dict(before="B", history="H")), "warning",
     "in 1 of 2 dialogues the chat template is not prefix-stable: B; H; a model that thinks may "
     "write it itself"),
    (closes(closing="<end>", closes=False), "error",
     "ends a turn with '<end>', which does not end a completion; add it to eos_token_id"),
    (doctor.prompts_fit([3, 4], 4), "ok", "longest 4"),
    (doctor.prompts_fit([3, 5], 4), "warning", "50.0% of 2 prompts are longer"),
    (base(["7", None], [1, 0]), "ok",
     "50% of 2 completions state an answer (eval.answer='#(.)'), accuracy 0.500"),
    (base(["7", None, None], [1, 0, 0]), "warning", "show the format"),
    (base([None, None], [0, 0]), "error", "use another model (model.path)"),
    (base([None, None], [0, nan]), "error", "accuracy 0.000"),
    (base(["7", "7"], [0, 0]), "warning", "use another model"),
    (base([None, None], [1, 0]), "warning", "verdicts find answers where eval.answer does not"),
    (ends(), "ok", "1 of 2 completions end by EOS, which the mask and the log-probs cover"),
    (ends(mask_BT=np.array([[1, 1, 0, 0], [1, 1, 1, 1]], bool)), "error",
     "1 of 2 completions have a mask that does not cover exactly their tokens"),
    (ends(mask_BT=np.ones((2, 4), bool)), "error",
     "1 of 2 completions have a mask that does not cover exactly their tokens"),
    (ends(logps_BT=np.array([[-1, -1, nan, 0], [-1] * 4])), "error",
     "1 of 2 completions have a token without a log-prob"),
    (ends(eos_ids=(9,)), "error",
     "1 of 2 completions count as ended by EOS but end with another token"),
    (ends(eos_ids=(1, 6)), "error", "2 of 2 completions have tokens after an EOS"),
    (ends(finish_B=np.array([0, 0])), "warning", "the EOS ids are [1, 2]; is one of them"),
    (agrees(1e-5, "float32"), "ok", "log-probs of 3 tokens differ by 1.0e-05 on average"),
    (agrees(1e-3, "float32"), "warning", "learner.rollout_correction.name"),
    (agrees(1e-3, "bfloat16"), "ok", "rounding in bfloat16"),
    (agrees(0.2, "bfloat16"), "error", "learner.rollout_correction.name"),
    (agrees(0.2, "float32", True), "warning", "rollouts.anneal draws at other temperatures"),
    (agrees(nan, "float32", True), "error", "of 3 tokens"),
    (doctor.sampler_agrees(np.zeros((1, 1000)), FAR, FAR == FAR, "float32"), "warning",
     "5.0e-02 at most"),
    (doctor.memory_fits(5, 10, None), "ok", "at most 0.0 MB of 0.0 MB"),
    (doctor.memory_fits(9.5, 10, None), "warning", "little is left"),
    (doctor.memory_fits(5, None, None), "warning", "does not report its memory"),
    (doctor.memory_fits(20, 10, "a device has 10, this run needs 20"), "error", "needs 20"),
    (doctor.no_constant_passes({"a": None}), "ok", "tests of 0 of 1 prompts"),
    (doctor.no_constant_passes({"a": "7", "b": None}), "warning",
     "of 1 of 2 prompts, such as 'a' by 7; add tests"),
    # Of the votes of the first prompt, half choose the right one of two answers.
    (room([[1, 0], [0, 0]]), "ok", "pass@1 0.250, maj@2 0.250, pass@2 0.500: a perfect choice "
     "among 2 gains 0.250; verdicts differ in 50% of groups, 32 completions a step"),
    (room([[1, 0], [0, 0]], score=[[2, 1], [0, 0]]), "ok", "maj@2 0.250, the PRM's best@2 0.500, "),
    (room([[1, 0], [0, 0]], score=[[1, 2], [0, 0]]), "ok", "the PRM's best@2 0.000, pass@2 0.500"),
    (room([[1, 0], [0, nan]]), "ok", "pass@1 0.500, maj@2 0.500, pass@2 1.000"),
    (room([[nan, 0]]), "ok", "unknown, every group has an unknown verdict"),
    (room([[1, 0], [1, 1], [0, 1]], 256), "ok", "in 67% of groups, 256 completions a step"),
    (ranks(12, 20), "ok", "it ranks 0.600 [0.387, 0.781] of 20 pairs right"),
    (ranks(11, 20), "warning", "it ranks 0.550 [0.342, 0.742] of 20 pairs right"),
    (ranks(10, 20), "warning", "it ranks 0.500 [0.299, 0.701] of 20 pairs right"),
    (ranks(50, 100), "error", "of 100 pairs right; the PRMs that helped had 0.71 and more, "
     "one that did harm 0.46; train the PRM on more completions"),
    (ranks(51, 100), "warning", "it ranks 0.510"),
    (ranks(103, 200), "warning", "it ranks 0.515 [0.446, 0.583] of 200 pairs right"),
    (ranks(19, 19), "warning", "unknown, 19 pairs of a right and a wrong completion are too few"),
    (ranks(4, 5, (1, 0, 0, 1, nan)), "ok", "it ranks 0.800 [0.376, 0.964] of 20 pairs right"),
    (ranks(0, 9, (1, 1, 1)), "warning", "unknown, 0 pairs"),
    (doctor.prm_ranks(None, np.eye(2)), "ok", "starts as its reference and ranks nothing yet; "
     "train it first with rlx train_scorer, see docs/prime.md"),
    (doctor.prm_ranks(np.zeros((2, 2)), np.eye(2)), "warning", "equals its reference; train it"),
    (doctor.steps_are_own("process", []), "ok", "advantages.process does not add rewards of later"),
    (doctor.steps_are_own("process", ["A", "B"]), "warning",
     "A; B; advantages.process.name=process.bounded_steps with its defaults"),
    (sign("accuracy lasts", accuracy=[0.2, 0.6, 0.32]), "ok",
     "0.320 in the last 10 steps, 0.600 in the best 10"),
    (sign("accuracy lasts", accuracy=[0.2, 0.6, 0.28]), "warning", "the policy collapses"),
    (sign("lengths last", length=[10, 30, 14.9]), "ok",
     "mean length 10.0 in the first 10 steps, 14.9 in the last; 0% and 0% are cut"),
    (sign("lengths last", length=[10, 10, 15.1]), "warning", "read completions.jsonl"),
    (sign("lengths last", length=[10, 10, 6.8]), "ok", "6.8 in the last"),
    (sign("lengths last", length=[10, 10, 6.6]), "warning", "6.6 in the last"),
    (sign("lengths last", truncated=[0.1, 0.1, 0.29]), "ok", "10% and 29% are cut"),
    (sign("lengths last", truncated=[0.1, 0.1, 0.31]), "warning", "10% and 31% are cut"),
    (sign("lengths last", truncated=[0.5, 0.5, 0.4]), "ok", "50% and 40% are cut"),
    (sign("the PRM keeps up", **{"prm/accuracy": [0.7, 0.5, 0.56], "prm/varied": [1, 1, 1]}), "ok",
     "it ranks 0.560 +- 0.004 of new pairs right in the last 20 steps, 0.700 in the first 20"),
    (sign("the PRM keeps up", **{"prm/accuracy": [0.7, 0.7, 0.54], "prm/varied": [1, 1, 1]}),
     "warning", "below 0.55 it says little"),
    # Verdicts differ in a fifth of the groups: of these the PRM ranks 0.5 + 0.04 / 0.2 right.
    (sign("the PRM keeps up", **{"prm/accuracy": [0.7, 0.7, 0.54], "prm/varied": [0.8, 0.5, 0.2]}),
     "ok", "it ranks 0.700 +- 0.022 of new pairs right in the last 20 steps, 0.750 in the first"),
    (sign("the PRM keeps up", **{"prm/accuracy": [0.7, 0.7, 0.52], "prm/varied": [0.8, 0.5, 0.5]}),
     "warning", "it ranks 0.540 +- 0.009 of new pairs"),
    (doctor.prm_lasts(np.full(40, 0.5), np.repeat([0.3, 0], 20)), "ok",
     "unknown, no prompt of the last 20 steps had both verdicts"),
    (sign("rewards follow verdicts", accuracy=[0.3, 0.6, 0.5], process=[0, 0.1, 0.2]), "warning",
     "rewards/process 0.100 and accuracy 0.600 in steps 20 to 39, 0.200 and 0.500 in the last 20; "
     "the policy exploits the PRM: lower its weight (rewards.process.coef)"),
    (sign("rewards follow verdicts", accuracy=[0.3, 0.6, 0.5], process=[0, 0.1, 0.1]), "ok", ""),
    (sign("rewards follow verdicts", accuracy=[0.3, 0.4, 0.5], process=[0, 0.1, 0.2]), "ok", ""),
    # Within three standard errors, 0.01.
    (sign("rewards follow verdicts", accuracy=[0.3, 0.6, 0.592], process=[0, 0.1, 0.2]), "ok", ""),
    (sign("rewards follow verdicts", accuracy=[0.3, 0.6, 0.588], process=[0, 0.1, 0.2]), "warning",
     ""),
], ids=lambda x: None if isinstance(x, doctor.Finding) else x[:40])
def test_a_check_has_a_level_a_measure_and_advice(finding, level, said):
  assert finding.level == level and said in str(finding), finding
  assert (finding.advice in str(finding)) == (level != "ok") or not finding.advice


CHAT = ("{% for m in messages %}<{{ m.role }}>{{ m.content }}" "%s" "{% endfor %}"
        "{% if add_generation_prompt %}<assistant>{% endif %}")


@pytest.mark.parametrize("end, closes", [("<eos>", True), ("!", False), ("", False)])
def test_a_chat_template_is_asked_how_a_turn_ends(end, closes):
  tokens = tokenizer.characters("abcdefghijklmnopqrstuvwxyz-7<>!=+2/\n48")
  assert doctor.example(tokens, "2+2=", "7") == doctor.Example(
      "2+2=", "2+2=", tokens.encode("2+2="), tokens.encode("2+2=7"))
  tokens.hf.chat_template = CHAT.replace("%s", end)
  messages = [dict(role="user", content="2+2=")]
  example = doctor.example(tokens, messages, "7")
  assert example.text == tokens.chat(messages) and example.faults == {}
  assert example.closing == end and example.closes == closes
  assert doctor.example(tokens, messages, "7", stops=("!",)).closes == (end == "!" or closes)
  # A prompt without the template is not held to it.
  assert doctor.example(tokens, "2+2=", "7").closes


def test_a_chat_template_that_is_not_prefix_stable_is_said_with_what_to_do():
  tokens = tokenizer.characters("abcdefghijklmnopqrstuvwxyz-7<>!=+2/\n48")
  tokens.hf.chat_template = CHAT.replace("%s", "<eos>").replace("<assistant>", "")
  example = doctor.example(tokens, [dict(role="user", content="2+2=")], "7")
  assert list(example.faults) == ["before", "history"]
  finding = doctor.template_closes([example])
  assert finding.level == "warning" and "in 1 of 1 dialogues" in finding.text
  assert "a finished dialogue has '<assistant>' in addition before the reply" in finding.text
  assert all(doctor.ADVICE[kind] in finding.advice for kind in example.faults)
  assert set(doctor.ADVICE) == set(re.findall(r"^      (\w+)  ", chat.faults.__doc__, re.M))


def test_metrics_of_a_run_that_say_nothing_are_no_sign():
  """Of a run without a PRM, of few steps, of another command, or of no run."""
  assert set(signs(terms=())) == {"accuracy lasts", "lengths last"}
  assert levels(signs(**{"prm/accuracy": [0.7] * 3, "prm/varied": [1.0] * 3}).values()) == {
      "accuracy lasts": "ok", "lengths last": "ok", "the PRM keeps up": "ok",
      "rewards follow verdicts": "ok"}
  step = {"rollouts/accuracy": 0.5, "rollouts/length": 9.0, "rollouts/truncated": 0.0}
  for lines, known in (([], 0), ([step] * 39 + [{}] * 9, 39), ([{"sft/loss": 1.0}] * 60, 0)):
    (finding,) = doctor.check_metrics(lines, ["process"])
    assert finding.text.startswith(f"metrics.jsonl has {known} steps of RL, 40 are needed")
    assert finding.level == ("ok" if known else "warning")
  assert len(list(doctor.check_metrics([step] * 40, []))) == 2


def test_an_estimator_that_rewards_a_step_for_others_is_named():
  def faults(config=None, **changes):
    c = prime_steps.get_config("lookup") if config is None else config
    c.update_from_flattened_dict({k.replace("__", "."): v for k, v in changes.items()})
    return validation.find_summed_steps(c, build_methods.resolve_methods(c))
  assert faults() == {"process": []}
  def with_estimator(**spec):
    c = prime_steps.get_config("lookup")
    c.advantages.process = spec
    return c
  for name in ("process.rloo", "process.reinforce", "process.rloo_steps", "process.grpo"):
    (summed,) = faults(with_estimator(name=name))["process"]
    assert summed == f"advantages.process.name={name!r} adds the rewards of later steps"
  assert faults(with_estimator(name="process.rloo", gamma=0.0)) == {"process": []}
  assert faults(with_estimator(name="process.steps")) == {"process": []}
  (last,) = faults(with_estimator(name="process.steps_loo", include_last=True))["process"]
  assert last.startswith("advantages.process.include_last=True rewards the step that states")
  assert faults(with_estimator(name="process.rloo"), rewards__process__granularity="token") == {}
  assert faults(with_estimator(name="process.rloo"), prm__path=None) == {}
  assert faults(quickstart.get_config()) == {}


def config_of():
  c = quickstart.get_config("smoke")
  c.prompts.options.size = 64
  return c


@pytest.fixture(scope="module")
def batch():
  """The first batch of the smoke run, and the run."""
  run = build.build(config_of())
  return run, doctor.first_batch(run)


def test_the_quickstart_passes(batch, monkeypatch, capsys):
  run, first = batch
  monkeypatch.setattr(build, "build", lambda c: run)
  monkeypatch.setattr(doctor, "first_batch", lambda *_: first)
  findings = doctor.doctor(config_of())
  assert set(levels(findings).values()) == {"ok"}, findings
  assert len(findings) == 11
  lines = capsys.readouterr().out.splitlines()
  assert lines == [str(f) for f in findings] and all(l.startswith("ok  ") for l in lines)
  texts = {f.question: f.text for f in findings}
  closing = texts["the template closes"]
  assert "turns" not in closing and "prompts end with" in closing
  assert "of 64 prompts" in texts["prompts fit"]


def test_a_batch_is_what_training_draws(batch):
  """8 prompts of 4 completions; at another temperature the trainer's numbers are others."""
  run, (prompts, rollouts, outcome_PG, logps_BT, score_PG) = batch
  assert score_PG is None  # The PRM starts as its reference.
  assert len(prompts) == 8 and outcome_PG.shape == (8, 4) == (8, len(rollouts.tokens_BS) // 8)
  findings = levels(doctor.check_batch(
      run, [1], {}, prompts, rollouts, outcome_PG, 2 * logps_BT, None))
  assert [q for q, level in findings.items() if level != "ok"] == ["sampler and trainer agree"]


def never(completions, answer): return [0.0 for _ in answer]


def test_other_rows_and_another_reward_are_what_is_checked(tmp_path, command, monkeypatch):
  """Of a run, whose own rows stay; without them its verdicts vary."""
  monkeypatch.setattr(compile_cache, "keep_compiled", lambda *args: None)
  record.record(config_of(), tmp_path / "run")
  rows = [dict(Asked=f"{i}M{j}=", answer=str(max(i, j))) for i in range(8) for j in range(8)]
  (tmp_path / "rows.json").write_text(json.dumps(rows))
  (tmp_path / "run/rows.jsonl").write_text("its own")
  done = command("doctor", str(tmp_path / "run"), f"rows={tmp_path}/rows.json",
                 "columns.prompt=Asked", f"reward={__name__}:never", "eval.prompts=4")
  assert done.returncode == 1 and re.search("^error +rewards vary +every verdict is 0",
                                            done.stdout, re.M), done
  n, = re.findall(r"prompts fit +0.0% of (\d+) prompts .* longest 4$", done.stdout, re.M)
  assert 60 <= int(n) < len(rows)  # All but those held out.
  assert (tmp_path / "run/rows.jsonl").read_text() == "its own"


def test_an_error_is_exit_code_1_and_memory_ends_it(batch, monkeypatch, capsys):
  run, _ = batch
  monkeypatch.setattr(build, "build", lambda c: run)
  monkeypatch.setattr(memory, "device_bytes", lambda mesh: 1000)
  monkeypatch.setattr(run_memory, "measure_compiled_bytes", lambda run, state: {
      "KV cache of sampling": 10**6})
  with pytest.raises(SystemExit) as e: doctor.main(config_of())
  assert e.value.code == 1
  lines = capsys.readouterr().out.splitlines()
  assert len(lines) == 1 and lines[0].startswith("error    memory fits  ")
  assert "mesh.fsdp" in lines[0]


def test_a_trained_prm_and_the_metrics_of_a_run_are_checked(batch, tmp_path, capsys):
  """Of the same batch: the PRM, a random model, scores it and changes nothing else."""
  model, _, tokens = weights.load(quickstart.get_config().model.path)
  hf.save(tmp_path / "prm", model, transformer.init(model, jax.random.key(1)), tokens)
  (tmp_path / "metrics.jsonl").write_text("".join(json.dumps({
      "step": i, "rollouts/accuracy": 0.5, "rollouts/length": 9.0, "rollouts/truncated": 0.0,
      "prm/accuracy": 0.5, "prm/varied": 1.0, "rewards/process": 0.0}) + "\n" for i in range(40)))
  c = config_of()
  c.prm.path = str(tmp_path / "prm")
  findings = {f.question: f for f in doctor.doctor(c, tmp_path)}
  assert findings["the PRM keeps up"].level == "warning"
  assert findings["accuracy lasts"].level == findings["rewards follow verdicts"].level == "ok"
  run = build.build(c)
  prompts, rollouts, outcome_PG, _, score_PG = doctor.first_batch(run, True)
  np.testing.assert_array_equal(outcome_PG, batch[1][2])
  steps_BJ = prm_sets.step_rewards(run, run.init(), rollouts)[""]
  np.testing.assert_allclose(score_PG.ravel(), np.nansum(steps_BJ, axis=1) / c.prm.beta, rtol=1e-4)
  assert np.ptp(score_PG) > 1
  assert findings["the PRM ranks verdicts"] == doctor.prm_ranks(score_PG, outcome_PG)
  assert "the PRM's best@4" in findings["verdicts leave room"].text
  assert len(findings) == 9 + 2 + 4 == len(capsys.readouterr().out.splitlines())
