import types

import pytest

from rlx.verifiers import chain


def prompt(text, answer):
  return types.SimpleNamespace(text=text, answer=answer)


# 4 M 7 = 7, 7 m 2 = 2, 2 M 5 = 5.
@pytest.mark.parametrize("text, verdict", [
    ("7;2;5#5", 1.0),
    ("9;9;9#5", 1.0),      # The steps are not the answer's business.
    ("7;2;5#2", 0.0),
    ("7;2;5", 0.0),        # Unfinished.
    ("2;5#5", 0.0),        # A step is missing,
    ("7;2;5;5#5", 0.0),    # or one too many.
    ("7;2;5;#5", 0.0),
    ("7;2;5#5\n", 0.0),
    (" 7;2;5#5", 0.0),
    ("7;2;5#55", 0.0),
    ("7;2;5#5#5", 0.0),
    ("7;2;٥#5", 0.0),      # A digit, but not one of ours.
    ("#5", 0.0),
    ("", 0.0),
])
def test_answer(text, verdict):
  assert chain.answer(prompt("4M7m2M5=", "5"), text) == verdict


@pytest.mark.parametrize("text, verdict", [
    ("7;2;5#5", 1.0), ("9;9;9#0", 1.0),  # Right or not.
    ("7;2#2", 0.0), ("7;2;5;5#5", 0.0), ("7;2;5", 0.0), ("7;2;5#55", 0.0), ("", 0.0)])
def test_form(text, verdict):
  assert chain.form(prompt("4M7m2M5=", "5"), text) == verdict


@pytest.mark.parametrize("text, verdict", [
    ("7;2;5;3#3", 1.0),
    ("9;2;5;3#3", 1.0),      # The first step is no answer.
    ("7;3;5;3#3", 0.0),      # The first answer is wrong, the last is right.
    ("7;2;9;3#3", 1.0),
    ("7;2;5;4#4", 0.0), ("7;2;5;4#3", 0.0),  # The last, in the steps, too.
    ("7;2#2", 0.0), ("", 0.0)])
def test_milestones(text, verdict):
  # max(4, 7) = 7, min(7, 2) = 2; max(2, 5) = 5, min(5, 3) = 3.
  two = types.SimpleNamespace(text="4M7m2M5m3=", answer="3", meta=dict(ends=[1, 3]))
  assert chain.milestones(two, text) == verdict


@pytest.mark.parametrize("text, checks", [
    ("7;2;5#5", [True, True, True]),
    # min(7, 2) is not 3, but max(3, 5) is 5: right given the stated 3.
    ("7;3;5#5", [True, False, True]),
    ("4;2;5#5", [False, True, True]),
    ("7;2", [True, True]),
    ("7;2;", [True, True, False]),
    # What follows a step without a value cannot be told to be right.
    ("7;x;5#5", [True, False, False]),
    ("7;;7#7", [True, False, False]),
    ("7;2;5;5#5", [True, True, True, False]),
    ("#5", []),
    ("", []),
])
def test_steps(text, checks):
  assert chain.steps(prompt("4M7m2M5=", "5"), text) == checks


def test_steps_of_other_operations():
  # 8 + 7 = 15 -> 5; 5 - 6 = -1 -> 9; 9 * 9 = 81 -> 1.
  assert chain.steps(prompt("8+7-6*9=", "1"), "5;9;1#1") == [True] * 3
  assert chain.steps(prompt("8+7-6*9=", "1"), "5;1;9#1") == [True, False, True]


def test_what_can_still_be_made_good():
  # 4M7m2M5: from any digit after the first step min 2 and max 5 lead to 5.
  assert chain.recoverable(prompt("4M7m2M5=", "5"), "7;9;9#5") == [True, False, False]
  assert chain.recoverable(prompt("4M7m2M5=", "5"), "1;;5;5") == [True, False, True, False]
  # 8+7=5, 5-6=9, 9*9=1: one digit alone leads from each step to the answer.
  checks = [chain.recoverable(prompt("8+7-6*9=", "1"), f"{d};{d};{d}") for d in range(10)]
  assert [[d for d in range(10) if checks[d][i]] for i in range(3)] == [[5], [9], [1]]
  assert chain.recoverable(prompt("8+7-6*9=", "1"), "") == []


@pytest.mark.parametrize("text, share", [
    ("7;2;5#5", 1.0),
    ("7;3;5#5", 2 / 3),      # A right answer of a wrong step.
    ("7;2;6#6", 2 / 3),      # A wrong answer of right ones.
    ("7;2", 2 / 3),          # What is not stated is not right,
    ("7;2;5;5#5", 3 / 4),    # what is too much is wrong.
    ("#5", 0.0),
    ("", 0.0),
])
def test_step_share(text, share):
  assert chain.step_share(prompt("4M7m2M5=", "5"), text) == share


@pytest.mark.parametrize("text, ends", [
    ("7;2;5#5", [2, 4]), ("7;", [2]), (";;", [1, 2]), ("", [])])
def test_step_ends(text, ends):
  assert chain.step_ends(text) == ends
