"""Each question on arrays and texts that it has to find fault with; all on a real batch."""
import dataclasses
import re

import numpy as np
import pytest

from configs import quickstart
from rlx import build
from rlx.io import chat
from rlx.io import tokenizer
from rlx.learner import memory
from rlx.tools import doctor
from rlx.tools import preflight

nan = np.nan


def levels(findings):
  return {f.question: f.level for f in findings}


@pytest.mark.parametrize("outcome, level, said", [
    ([[0, 1], [1, 1]], "ok", "in 50% of 2 groups, their mean is 0.750"),
    ([[0, 0], [0, 0]], "error", "every verdict is 0; easier prompts (prompts.options)"),
    ([[1, 1], [1, nan]], "error", "every verdict is 1; harder prompts"),
    # Prompts are all right or all wrong.
    ([[0, 0], [1, 1]], "error", "in 0% of 2 groups, their mean is 0.500; more completions"),
    ([[0, 1]] + [[0, 0]] * 9, "warning", "in 10% of 10 groups"),
    ([[nan, 1], [0, nan], [nan, nan], [0, 1]], "error", "50% of verdicts are unknown, last Boom"),
    ([[nan, 1], [0, nan], [0, 1]], "ok", "in 33% of 3 groups, their mean is 0.500"),
    ([[0], [1]], "ok", "in 100% of 1 groups"),  # One completion each: the batch is the group.
], ids=str)
def test_rewards_vary(outcome, level, said):
  found = doctor.rewards_vary(np.array(outcome, float), 0.4, "Boom")
  assert found.level == level and said in str(found), found


@pytest.mark.parametrize("outcome, says", [
    ([[0, 0]], True), ([[0, 1]], True), ([[nan, nan]], False)])
def test_completions_that_make_their_verifier_fail_are_named(outcome, says):
  found = doctor.rewards_vary(np.array(outcome, float), 0.4, "Boom", failed=0.25)
  assert ("the verifier failed on 25% of completions, last Boom" in found.text) == says
  assert "failed" not in doctor.rewards_vary(np.array(outcome, float), 0.4, "Boom").text


def test_verdicts_that_no_reward_reads_are_no_error():
  zeros = np.zeros((2, 2))
  assert doctor.rewards_vary(zeros, 0.1).level == "error"
  found = doctor.rewards_vary(zeros, 0.1, reads_verdicts=False)
  assert found.level == "warning" and "no reward reads verdicts" in found.text


@pytest.mark.parametrize("keep, draws, fill, level, said", [
    ([1, 1, 0, 0], 2, "failed", "ok",
     "50% of groups pass rollouts.filter_groups; 4 of them take 2 draws of 4"),
    ([1, 1, 0, 0], 1, "failed", "warning",
     "after rollouts.max_draws=1 draws rollouts.fill=failed applies"),
    ([0, 0, 0, 0], 9, "error", "error", "take infinitely many draws of 4"),
], ids=str)
def test_draws_suffice(keep, draws, fill, level, said):
  found = doctor.draws_suffice(np.array(keep, bool), 4, 4, draws, fill)
  assert found.level == level and said in str(found), found


@pytest.mark.parametrize("cut, level", [(1, "ok"), (2, "warning"), (15, "error")])
def test_answers_fit(cut, level):
  lengths_B = np.array([8] * cut + [3] * (20 - cut))
  found = doctor.answers_fit(lengths_B, lengths_B == 8, 8)
  assert found.level == level
  assert f"{cut * 5}% are cut at rollouts.max_tokens=8" in found.text
  assert "longest 8" in found.text and ("raise rollouts.max_tokens" in str(found)) == (cut > 1)


PLAIN = doctor.Example("2+2=", "2+2=", [5, 6], [5, 6, 7])


@pytest.mark.parametrize("change, level, said", [
    ({}, "ok", "prompts end with '2+2=', the same in text and in tokens"),
    (dict(back="2 +2="), "warning",
     "1 of 2 prompts change when encoded and decoded: '2+2=' becomes '2 +2='"),
    (dict(whole_ids=[5, 9, 7]), "warning", "in 1 of 2 the prompt's last tokens change"),
    (dict(faults=dict(before="B", history="H")), "warning",
     "in 1 of 2 dialogues the chat template is not prefix-stable: B; H; a model that thinks may "
     "write it itself"),
    (dict(closing="<end>", closes=False), "error",
     "ends a turn with '<end>', which does not end a completion; add it to eos_token_id"),
], ids=str)
def test_template_closes(change, level, said):
  found = doctor.template_closes([PLAIN, dataclasses.replace(PLAIN, **change)])
  assert found.level == level and said in str(found), found


CHAT = ("{% for m in messages %}<{{ m.role }}>{{ m.content }}" "%s" "{% endfor %}"
        "{% if add_generation_prompt %}<assistant>{% endif %}")


@pytest.mark.parametrize("end, closes", [("<eos>", True), ("!", False), ("", False)])
def test_a_chat_template_is_asked_how_a_turn_ends(end, closes):
  tokens = tokenizer.characters("abcdefghijklmnopqrstuvwxyz-7<>!=+2/\n48")
  assert doctor.example(tokens, "2+2=", "7") == doctor.Example(
      "2+2=", "2+2=", tokens.encode("2+2="), tokens.encode("2+2=7"))
  tokens.hf.chat_template = CHAT.replace("%s", end)
  messages = [dict(role="user", content="2+2=")]
  found = doctor.example(tokens, messages, "7")
  assert found.text == tokens.chat(messages) and found.faults == {}
  assert found.closing == end and found.closes == closes
  assert doctor.example(tokens, messages, "7", stops=("!",)).closes == (end == "!" or closes)
  # A prompt without the template is not held to it.
  assert doctor.example(tokens, "2+2=", "7").closes


def test_a_chat_template_that_is_not_prefix_stable_is_said_with_what_to_do():
  tokens = tokenizer.characters("abcdefghijklmnopqrstuvwxyz-7<>!=+2/\n48")
  tokens.hf.chat_template = CHAT.replace("%s", "<eos>").replace("<assistant>", "")
  example = doctor.example(tokens, [dict(role="user", content="2+2=")], "7")
  assert list(example.faults) == ["before", "history"]
  found = doctor.template_closes([example])
  assert found.level == "warning" and "in 1 of 1 dialogues" in found.text
  assert "a finished dialogue has '<assistant>' in addition before the reply" in found.text
  assert all(doctor.ADVICE[kind] in found.advice for kind in example.faults)
  assert set(doctor.ADVICE) == set(re.findall(r"^      (\w+)  ", chat.faults.__doc__, re.M))


@pytest.mark.parametrize("lengths, level", [([3, 4], "ok"), ([3, 5], "warning")])
def test_prompts_fit(lengths, level):
  found = doctor.prompts_fit(lengths, 4)
  assert found.level == level and f"longest {lengths[1]}" in found.text


@pytest.mark.parametrize("answers, outcome, level, said", [
    (["7", None], [1, 0], "ok",
     "50% of 2 completions state an answer (eval.answer='#(.)'), accuracy 0.500"),
    (["7", None, None], [1, 0, 0], "warning", "show the format"),
    ([None, None], [0, 0], "error", "use another model (model.path)"),
    ([None, None], [0, nan], "error", "accuracy 0.000"),
    (["7", "7"], [0, 0], "warning", "use another model"),
    ([None, None], [1, 0], "warning", "verdicts find answers where eval.answer does not"),
], ids=str)
def test_base_answers(answers, outcome, level, said):
  found = doctor.base_answers(answers, np.array([outcome], float), "#(.)")
  assert found.level == level and said in str(found), found


def _ends(**changes):
  """Two completions: one ends by EOS (1), one at the length."""
  given = dict(completions=[[5, 6, 1], [5, 6, 7, 8]], finish_B=np.array([1, 0]),
               mask_BT=np.array([[1, 1, 1, 0], [1, 1, 1, 1]], bool),
               logps_BT=np.full((2, 4), -1.0), eos_ids=(1, 2))
  given["logps_BT"][0, 3] = nan  # Padding may hold anything.
  return doctor.masks_cover_eos(**given | changes)


@pytest.mark.parametrize("changes, level, said", [
    ({}, "ok", "1 of 2 completions end by EOS, which the mask and the log-probs cover"),
    (dict(mask_BT=np.array([[1, 1, 0, 0], [1, 1, 1, 1]], bool)), "error",
     "1 of 2 completions have a mask that does not cover exactly their tokens"),
    (dict(mask_BT=np.ones((2, 4), bool)), "error",
     "1 of 2 completions have a mask that does not cover exactly their tokens"),
    (dict(logps_BT=np.array([[-1, -1, nan, 0], [-1] * 4])), "error",
     "1 of 2 completions have a token without a log-prob"),
    (dict(eos_ids=(9,)), "error",
     "1 of 2 completions count as ended by EOS but end with another token"),
    (dict(eos_ids=(1, 6)), "error", "2 of 2 completions have tokens after an EOS"),
    (dict(finish_B=np.array([0, 0])), "warning", "the EOS ids are [1, 2]; is one of them"),
], ids=lambda x: str(x)[:30])
def test_masks_cover_eos(changes, level, said):
  found = _ends(**changes)
  assert found.level == level and said in str(found), found


@pytest.mark.parametrize("gap, dtype, is_annealed, level", [
    (1e-5, "float32", False, "ok"), (1e-3, "float32", False, "warning"),
    (1e-3, "bfloat16", False, "ok"), (0.2, "bfloat16", False, "error"),
    (0.2, "float32", True, "warning"), (nan, "float32", True, "error")])
def test_sampler_agrees(gap, dtype, is_annealed, level):
  logps_BT = np.full((2, 3), -1.0, np.float32)
  mask_BT = np.array([[1, 1, 0], [1, 0, 0]], bool)
  found = doctor.sampler_agrees(logps_BT, np.where(mask_BT, logps_BT + gap, 9.0), mask_BT,
                                dtype, is_annealed)
  assert found.level == level and "of 3 tokens" in found.text
  assert ("learner.rollout_correction" in str(found)) == (level != "ok")


def test_one_token_that_is_far_off_is_a_warning():
  logps_BT = np.zeros((1, 1000))
  other_BT = logps_BT.copy()
  other_BT[0, 0] = 0.05  # 5e-5 on average.
  found = doctor.sampler_agrees(logps_BT, other_BT, logps_BT == 0, "float32")
  assert found.level == "warning" and "5.0e-02 at most" in found.text


@pytest.mark.parametrize("need, limit, refusal, level", [
    (5, 10, None, "ok"), (9.5, 10, None, "warning"), (5, None, None, "warning"),
    (20, 10, "a device has 10, this run needs 20", "error")])
def test_memory_fits(need, limit, refusal, level):
  assert doctor.memory_fits(need, limit, refusal).level == level


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
  run, found = batch
  monkeypatch.setattr(build, "build", lambda c: run)
  monkeypatch.setattr(doctor, "first_batch", lambda run: found)
  findings = doctor.doctor(config_of())
  assert set(levels(findings).values()) == {"ok"}, findings
  assert len(findings) == 9
  lines = capsys.readouterr().out.splitlines()
  assert lines == [str(f) for f in findings] and all(l.startswith("ok  ") for l in lines)
  texts = {f.question: f.text for f in findings}
  closing = texts["the template closes"]
  assert "turns" not in closing and "prompts end with" in closing
  assert "of 64 prompts" in texts["prompts fit"]


def test_a_batch_is_what_training_draws(batch):
  """8 prompts of 4 completions; at another temperature the trainer's numbers are others."""
  run, (prompts, rollouts, outcome_PG, logps_BT) = batch
  assert len(prompts) == 8 and outcome_PG.shape == (8, 4) == (8, len(rollouts.tokens_BS) // 8)
  findings = levels(doctor.check_batch(
      run, [1], {}, prompts, rollouts, outcome_PG, 2 * logps_BT))
  assert [q for q, level in findings.items() if level != "ok"] == ["sampler and trainer agree"]


def test_an_error_is_exit_code_1_and_memory_ends_it(batch, monkeypatch, capsys):
  run, _ = batch
  monkeypatch.setattr(build, "build", lambda c: run)
  monkeypatch.setattr(memory, "device_bytes", lambda mesh: 1000)
  monkeypatch.setattr(preflight, "compiled_bytes", lambda run, state: {
      "KV cache of sampling": 10**6})
  with pytest.raises(SystemExit) as e: doctor.main(config_of())
  assert e.value.code == 1
  lines = capsys.readouterr().out.splitlines()
  assert len(lines) == 1 and lines[0].startswith("error    memory fits  ")
  assert "mesh.fsdp" in lines[0]
