import types

import pytest

pytest.importorskip("reasoning_gym")

from rlx.verifiers import gym_task


@pytest.fixture
def prompt():
  return types.SimpleNamespace(meta=dict(
      task="chain_sum", config=dict(max_terms=3),
      entry=dict(question="4 + 3 =", answer="7", metadata={})))


@pytest.mark.parametrize("verify, text, verdict", [
    (gym_task.answer, "4 + 3\nAnswer: 7", 1.0),
    (gym_task.answer, "Answer: 8\n**answer:** 7", 1.0),
    (gym_task.answer, "first 7\nthen\n7\n", 1.0),           # No mark: the last line.
    (gym_task.answer, "7\nAnswer: 8", 0.0),
    (gym_task.answer, "Answer:", 0.0),
    (gym_task.boxed, r"so \boxed{7}", 1.0),
    (gym_task.boxed, "7", 0.0),
    (gym_task.last_line, "8\n7\n\n", 1.0),
    (gym_task.last_line, "7\n8", 0.0),
    (gym_task.last_line, "", 0.0),
])
def test_where_the_answer_stands(prompt, verify, text, verdict):
  assert verify(prompt, text) == pytest.approx(verdict, abs=0.01)


@pytest.mark.parametrize("text", ["", "Answer:", "\\boxed{}"])
def test_no_answer_is_zero_whatever_the_scorer_gives(prompt, text):
  # This scorer gives 0.01 for any wrong answer, also for an empty one.
  prompt.meta = dict(task="fraction_simplification", config={}, entry=dict(
      question="?", answer="$1/2$", metadata=dict(
          simplified_numerator=1, simplified_denominator=2)))
  assert gym_task.boxed(prompt, text) == 0.0
  assert gym_task.answer(prompt, text.replace("\\boxed{}", "")) == 0.0
  assert gym_task.answer(prompt, "Answer: 3") == 0.01


def test_the_scorer_is_the_tasks_own(prompt):
  # chain_sum compares numbers, not texts.
  assert gym_task.last_line(prompt, "+07.0") == 1.0
  prompt.meta["task"] = "no_such_task"
  with pytest.raises(ValueError, match="no_such_task"):
    gym_task.last_line(prompt, "7")
