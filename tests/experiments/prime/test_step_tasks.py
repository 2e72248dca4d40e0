"""Tasks with known chances: hand-worked questions, and the chances against drawn continuations."""
import dataclasses
import functools

import jax
import numpy as np
import pytest

from experiments.prime import step_tasks
from rlx.core import records
from rlx.verifiers import steps as verifier_steps

# task: question, right completion, a completion with a wrong answer.
CASES = dict(chain=("4M7m2M5=", "7;2;5#5", "7;2;6#6"),
             lookup=("06172839405162738495|3>>>=", "9;5;1#1", "9;4;0#0"),
             sums=("4+9-3+5=", "13;10;15#15", "13;11;16#16"),
             carry=("495206=", "13;08;06#06", "13;08;07#07"),
             reverse=("sun=", "n;u;s#s", "n;u;t#t"))


def _prompt(task, misread=0.0, strict=False):
  question, right, _ = CASES[task]
  return records.Prompt(id="0", text=question, answer=right.partition("#")[2], verifier="",
                        meta=dict(task=task, operations=right.count(";") + 1, misread=misread,
                                  strict=strict, slip=step_tasks.SLIP))


@pytest.mark.parametrize("task", CASES)
def test_known_completions(task):
  question, right, wrong = CASES[task]
  prompt = _prompt(task)
  steps = map(step_tasks.TASKS[task].text, step_tasks.solve(task, question))
  assert ";".join(steps) == right.partition("#")[0]
  assert step_tasks.answer(prompt, right) == 1 and step_tasks.answer(prompt, wrong) == 0
  assert step_tasks.chances(prompt, right)[-1] == 1 and step_tasks.chances(prompt, wrong)[-1] == 0


def test_chances_by_hand():
  # After 9 the next steps are 5 and 1. With a share s of mistakes, from 5 the answer is reached
  # with 1 - s, from another digit with s / 9: a mistake adds each of 1 to 9.
  s, prompt = step_tasks.SLIP, _prompt("lookup")
  from_9 = (1 - s) ** 2 + s * s / 9
  np.testing.assert_allclose(step_tasks.chances(prompt, "9;5;1#1"), [from_9, 1 - s, 1])
  np.testing.assert_allclose(step_tasks.chances(prompt, "9;4;1#1"), [from_9, s / 9, 1])


def test_another_share_of_mistakes_has_other_chances():
  prompt = dataclasses.replace(_prompt("lookup"), meta=_prompt("lookup").meta | dict(slip=0.3))
  np.testing.assert_allclose(step_tasks.chances(prompt, "9;5;1#1")[:2], [.7 ** 2 + .3 ** 2 / 9, .7])
  assert step_tasks.start_B([prompt]) == [step_tasks.values("lookup", prompt.text, .3)[0][None]]


@pytest.mark.parametrize("task", CASES)
def test_with_strict_no_mistake_is_undone(task):
  prompt, keep = _prompt(task, strict=True), 1 - step_tasks.SLIP
  _, right, _ = CASES[task]
  first, second, last = right.partition("#")[0].split(";")
  assert step_tasks.answer(prompt, right) == 1
  np.testing.assert_allclose(step_tasks.chances(prompt, right), [keep ** 2, keep, 1])
  undone = {"carry": "12", "reverse": "m"}.get(task) or str(int(first) - 1)
  undone = f"{undone};{second};{last}#{last}"
  assert step_tasks.answer(_prompt(task), undone) == 1 and step_tasks.answer(prompt, undone) == 0
  assert step_tasks.chances(prompt, undone) == [0, 0, 0]
  assert step_tasks.answer(prompt, f"{first};{second};{last};{last}#{last}") == 0
  assert step_tasks.start_B([prompt]) == pytest.approx([keep ** 3])


@pytest.mark.parametrize("text, verdicts", [
    ("9;5;1#1", [True, True, True]), ("9;4;0#0", [True, False, True]),
    ("8;4;0#0", [False, True, True]), ("9;5;1#2", [True, True, False]),
    ("9;x;1#1", [True, False, False]), ("9;5;1;7#7", [True, True, True, False]),
    ("9;5", [True, True]), ("9;5;", [True, True]), ("", [])])
def test_steps_follow_from_the_value_before(text, verdicts):
  assert step_tasks.right_steps(_prompt("lookup"), text) == verdicts
  assert len(verdicts) == len(verifier_steps.boundaries(text, ";"))


@pytest.mark.parametrize("rate", [0.25, 1.0])
def test_a_share_of_steps_is_misread(rate):
  prompt = _prompt("lookup", rate)
  texts = [f"{a};{b};1#1" for a in range(10) for b in range(10)]
  right = [step_tasks.chances(_prompt("lookup"), text) for text in texts]
  read = [step_tasks.chances(prompt, text) for text in texts]
  assert read == [step_tasks.chances(prompt, text) for text in texts]  # The same in every call.
  assert [x[-1] for x in read] == [x[-1] for x in right]  # The verdict is never wrong.
  # The value after which the answer is right, 5, is misread with this probability.
  changed = np.mean([x[1] != y[1] for x, y, text in zip(read, right, texts) if text[2] == "5"])
  assert changed == 1 if rate == 1 else 0 < changed < 1


@pytest.mark.parametrize("rate", [0.25, 1.0])
def test_a_share_of_verdicts_is_exchanged(rate):
  texts = [f"{a};{b};1#1" for a in range(10) for b in range(10)]
  right, read = ([step_tasks.right_steps(_prompt("lookup", r), text) for text in texts]
                 for r in (0.0, rate))
  changed = np.mean([x[:-1] != y[:-1] for x, y in zip(right, read)], axis=0)
  assert changed == 1 if rate == 1 else 0.2 < changed < 0.8
  assert [x[-1] for x in read] == [x[-1] for x in right]


@pytest.mark.parametrize("task", CASES)
@pytest.mark.parametrize("text", [
    "", "#", ";", ";;7", "7;2", "x;2;5#5", "7;2;5;1#1", "7;2;5#", "7;2;5#5#5", "07;2;5#5", "#5",
    "7;;2;5#5", "-;2", "99999;2;5#5", "7;2;5#5;", "13;10;15#5", "7;2;6#5"])
def test_malformed_completions_fail(task, text):
  prompt = _prompt(task)
  chances = step_tasks.chances(prompt, text)
  assert step_tasks.answer(prompt, text) == 0
  assert len(chances) == len(verifier_steps.boundaries(text, ";")) and all(
      0 <= v <= 1 for v in chances) and chances[-1:] in ([], [0])


@pytest.mark.parametrize("task", ["chain", "lookup", "carry"])
def test_questions_and_traces(task):
  rows = [dict(seed=0, index=i, n_min=2, n_max=4) for i in range(30)]
  draw = lambda split: list(getattr(step_tasks, task)(rows, split))
  prompts = draw("train")
  assert list(map(dataclasses.asdict, prompts)) == list(map(dataclasses.asdict, draw("train")))
  assert not {p.text for p in draw("test")} & {p.text for p in prompts}
  rng = np.random.default_rng(0)
  verdicts = {rate: [step_tasks.answer(p, step_tasks.trace(p, rng, wrong_rate=rate))
                     for p in prompts] for rate in (0.0, 0.5)}
  assert all(verdicts[0.0]) and 0 < sum(verdicts[0.5]) < len(prompts)


def test_systematic_mistakes_are_the_same_every_time():
  rng, cases = np.random.default_rng(0), {}
  for question in [f"0617283940516273849{i}|{j}>>>>=" for i in (5, 0) for j in range(10)] * 200:
    prompt = dataclasses.replace(_prompt("lookup"), text=question)
    steps = step_tasks.trace(prompt, rng, wrong_rate=0.5, confused=0.4).partition("#")[0].split(";")
    operations = step_tasks.TASKS["lookup"].operations(question)
    before = None
    for operation, step in zip(operations, map(int, steps)):
      right = operation(before)
      if right >= 0: cases.setdefault((before, right), []).append(step)
      before = step
  often = {case: steps for case, steps in cases.items() if len(steps) > 50}
  wrong = {case: {step for step in steps if step != case[1]} for case, steps in often.items()}
  assert len(often) > 10 and set(map(len, wrong.values())) == {0, 1}
  for case, steps in often.items():
    if wrong[case]: assert 0.2 < np.mean([step == case[1] for step in steps]) < 0.8


@pytest.mark.parametrize("task", CASES)
def test_the_chance_is_the_share_of_right_continuations(task):
  prompt, rng = _prompt(task), np.random.default_rng(0)
  texts = [step_tasks.trace(prompt, rng, wrong_rate=step_tasks.SLIP) for _ in range(4000)]
  right = np.array([step_tasks.answer(prompt, text) for text in texts])
  first = np.array([text.partition(";")[0] for text in texts])
  table = step_tasks.values(task, prompt.text, step_tasks.SLIP)
  assert abs(right.mean() - table[0][None]) < 0.03
  for value in set(first):
    share, n = right[first == value].mean(), np.sum(first == value)
    chance = table[1][next(v for v in table[1] if step_tasks.TASKS[task].text(v) == value)]
    assert abs(share - chance) < 4 * (chance * (1 - chance) / n) ** 0.5 + 1e-9, value


def test_gains_of_steps_add_up_to_the_verdict_less_the_start():
  # Tokens 9 ; 4 ; 1 EOS, padding; then an empty completion, and one without a step end.
  ends_BT = np.array([[0, 1, 0, 1, 1, 0, 0], [0] * 7, [0, 1, 0, 0, 0, 0, 0]], bool)
  learn_BT = np.array([[1, 1, 1, 1, 1, 1, 0], [1] + [0] * 6, [1, 1, 1, 0, 0, 0, 0]], bool)
  scores_BT = np.array([[0, .5, 0, .1, 1, 0, 0], [0] * 7, [0] * 7], np.float32)
  start_B, learn_B = np.array([.4, .4, .3], np.float32), np.ones(3, bool)
  gains_BT = jax.jit(step_tasks.gains)(scores_BT, ends_BT, start_B, learn_BT, learn_B)
  np.testing.assert_allclose(gains_BT, [
      [0, .1, 0, -.4, 0, .9, 0], [-.4] + [0] * 6, [0, 0, -.3, 0, 0, 0, 0]], atol=1e-6)
  advantage = lambda gamma: np.asarray(jax.jit(functools.partial(
      step_tasks.own_steps, gamma=gamma))(gains_BT, ends_BT, learn_BT, learn_B[None]))
  np.testing.assert_allclose(advantage(0.0)[0], [.1, .1, -.4, -.4, .9, .9, 0], atol=1e-6)
  np.testing.assert_allclose(advantage(1.0)[0], [.6, .6, .5, .5, .9, .9, 0], atol=1e-6)
