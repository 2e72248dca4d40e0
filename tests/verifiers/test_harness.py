"""GSM8K as lm-evaluation-harness grades it, beside math_answer.final, on 300 stated answers.

The rules are those of lm_eval/tasks/gsm8k/gsm8k-cot-zeroshot.yaml of
EleutherAI/lm-evaluation-harness: two regular expressions, and what is removed before two texts are
compared.
"""
import re

import pytest

from rlx.core import records
from rlx.verifiers import math_answer

NUMBERS = (8, 12, 204, 1450, 70000, 7, 45, 996, 25000, 61)
QUESTION = "Ann buys boxes of pens for $2 each. How much does she pay for the pens?"
# Ends of a solution, {n}: the stated number, {c}: with commas; and who accepts the right number:
# s strict-match, f flexible-extract, r rlx. docs/verifiers.md explains the differences of f and r.
READ = {
    "The answer is {n}.": "sfr", "The answer is {c}.": "sfr", "The answer is ${n}.": "fr",
    "The answer is {n}.00.": "sfr", "So she pays {n} dollars.": "fr", "{n}": "fr",
    "#### {n}": "fr", "Answer: {n}": "fr", "**Answer:** {c} dollars": "fr",
    "It is \\boxed{{{n}}}": "fr",
    "Therefore, the answer is {n} dollars.": "fr", "= {n}\nThe answer is {n}": "fr",
    "She pays ${c} in total.": "fr",
    "Therefore, the final answer is: $\\boxed{{{n}}}$. I hope it is correct": "r",
    "The answer is {n}, since 2 + 1 = 3.": "sr"}


def clean(text):
  for pattern in (",", r"\$", r"(?s).*#### ", r"\.$", r"\.0+$"): text = re.sub(pattern, "", text)
  return text.lower()


def grade(text, gold):
  """Who accepts a text: letters of READ."""
  strict = re.findall(r"The answer is (\-?[0-9\.\,]+).", text)
  flexible = re.findall(r"(-?[$0-9.,]{2,})|(-?[0-9]+)", text)
  stated = dict(s=strict[:1], f=[next(filter(None, groups)) for groups in flexible[-1:]])
  prompt = records.Prompt("g", QUESTION, str(gold))
  return "".join(k for k, found in stated.items()
                 if found and clean(found[0].strip()) == clean(f"So.\n#### {gold}")
                 ) + "r" * (math_answer.final(prompt, text) == 1.0)


@pytest.mark.parametrize("ending", READ)
def test_who_accepts_an_answer(ending):
  for number in NUMBERS:
    text = "There are 4 boxes with 2 pens each.\n" + ending.format(n=number, c=f"{number:,}")
    assert grade(text, number) == READ[ending], text
    assert grade(text, number + 1) == "", text
