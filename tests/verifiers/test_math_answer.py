import types

import pytest

from rlx.verifiers import math_answer


def prompt(answer):
  return types.SimpleNamespace(text="Of 72 apples, how many are left?", answer=answer)


@pytest.mark.parametrize("answer, text, verdict", [
    (r"\frac{1}{2}", r"so \boxed{0.5}", 1.0),
    (r"\frac{1}{2}", r"\boxed{\frac12}", 1.0),
    (r"\frac{1}{2}", r"\boxed{\frac13}", 0.0),
    ("x^2+1", r"\boxed{1+x^2}", 1.0),
    ("1,000", r"\boxed{1000}", 1.0),
    (r"\text{Monday}", r"\boxed{Monday}", 1.0),
    (r"\text{Monday}", r"\boxed{Tuesday}", 0.0),
    ("3", r"first \boxed{1}, then \boxed{3}", 1.0),   # The last box counts,
    ("3", r"first \boxed{3}, then \boxed{1}", 0.0),
    ("3", r"\boxed{1, 3}", 0.0),                      # all of it.
    ("3", r"\boxed{\boxed{3}}", 1.0),
    ("3", r"\boxed 3", 1.0),
    ("3", r"\boxed{3", 0.0),
    ("3", r"\boxed{}", 0.0),
    ("3", r"\boxed", 0.0),
    ("3", "3", 0.0),
    (r"\{1", r"\boxed{\{1}", 1.0),                    # An escaped brace is no brace.
    ("3", "", 0.0),
])
def test_boxed(answer, text, verdict):
  assert math_answer.boxed(prompt(answer), text) == verdict


@pytest.mark.parametrize("answer, text, verdict", [
    ("72", "48 + 24 = 72.", 1.0),
    ("72", "72, so 73", 0.0),
    ("72", "It is 24 #### 72\n\nQuestion: 5", 1.0),
    ("72", "The answer is 72 dollars, not 71.", 1.0),
    ("72", "**Answer:** $72$", 1.0),
    ("72", "The answer is 71. Wait: the answer is 72.", 1.0),
    ("71", "The answer is 71. Wait: the answer is 72.", 0.0),
    ("72", r"The answer is 71 or \boxed{72}", 1.0),
    ("72", "The answer is unknown.", 0.0),
    ("1000", "#### $1,000.00", 1.0),
    ("-5", "the answer is -5", 1.0),
    ("5", "so x = 3-5", 0.0),                         # A subtraction, still to be done.
    ("-5", "so x = 3-5", 0.0),
    ("1/2", "it is 0.5", 1.0),
    (r"\frac{1}{2}", r"The answer is $\frac{2}{4}$.", 1.0),
    ("72", "no number", 0.0),
    ("72", "Of 72 apples, how many are left?", 0.0),  # The question states no answer.
    ("72", "Of 72 apples, how many are left? 72", 1.0),
    ("10000", r"the answer is $10\,000$", 1.0),
    (r"1.6\times 10^{-19}", r"\boxed{9.1\times 10^{-31}}", 0.0),
    (r"1.6\times 10^{-19}", r"\boxed{0.16\cdot 10^{-18}}", 1.0),
    ("72", "", 0.0),
])
def test_final(answer, text, verdict):
  assert math_answer.final(prompt(answer), text) == verdict


@pytest.mark.parametrize("verify", [math_answer.boxed, math_answer.final])
def test_an_unreadable_answer_is_no_verdict(verify):
  with pytest.raises(ValueError, match="no answer: ''"):
    verify(prompt(""), r"\boxed{3}")
