"""Arithmetic word problems in the form of GSM8K, drawn from templates.

  question   Ann has 3 apples. Ann buys 2 bags with 4 apples each. How many
             apples does Ann have now?
  answer     2 * 4 = 8
             3 + 8 = 11
             #### 11

In a config: prompts.source="generated", prompts.dataset="experiments.prime.word_problems:prompts"
and prompts.options, the arguments of `make_row`. The reader of GSM8K makes prompts of the rows.
"""
from collections.abc import Iterator
import random

from rlx.core import records
from rlx.prompts import generated
from rlx.prompts.datasets import gsm8k

_NAMES = ("Ann", "Ben", "Carla", "David", "Emma", "Felix", "Grace", "Henry", "Iris", "Jack")
_THINGS = ("apples", "books", "cards", "coins", "marbles", "pencils", "shells", "stamps", "toys")
# What happens, and how the number of things changes by it; {m} times {n} where there is an m.
_EVENTS = (("{name} buys {n} more {things}.", 1), ("{friend} gives {name} {n} {things}.", 1),
           ("{name} finds {n} {things}.", 1), ("{name} buys {m} bags with {n} {things} each.", 1),
           ("{name} gives {n} {things} to {friend}.", -1), ("{name} loses {n} {things}.", -1),
           ("{name} sells {n} of the {things}.", -1))


def make_row(seed: int, index: int, split: str, *, events: tuple[int, int] = (1, 2),
             largest: int = 9) -> dict[str, str]:
  """A row {"question", "answer"} of this split, as GSM8K has them.

  Args:
    events: least and most things that happen; one with bags takes two steps.
    largest: of the numbers that the question states.
  """
  draw = generated.start("word_problems", seed, index, split)
  while True:
    question, steps, have = _draw_problem(draw, draw.randint(*events), largest)
    if generated.split_of(question) == split: break
  return dict(question=question, answer="\n".join([*steps, f"#### {have}"]))


def _draw_problem(draw: random.Random, events: int, largest: int) -> tuple[str, list[str], int]:
  """(question, lines of its solution, answer)."""
  (name, friend), things = draw.sample(_NAMES, 2), draw.choice(_THINGS)
  have, steps = draw.randint(2, largest), []
  sentences = [f"{name} has {have} {things}."]
  for _ in range(events):
    text, sign = draw.choice([e for e in _EVENTS if e[1] > 0 or have > 2])
    n, m = draw.randint(2, largest if sign > 0 else min(have, largest)), draw.randint(2, 4)
    sentences.append(text.format(name=name, friend=friend, things=things, n=n, m=m))
    if "{m}" in text:
      steps.append(f"{m} * {n} = {m * n}")
      n *= m
    steps.append(f"{have} {'+' if sign > 0 else '-'} {n} = {have + sign * n}")
    have += sign * n
  return " ".join([*sentences, f"How many {things} does {name} have now?"]), steps, have


def prompts(rows, split: str, *, verifier: str = "math_answer.final") -> Iterator[records.Prompt]:
  """Rows {"seed", "index"} and the options of `make_row` -> Prompts."""
  return gsm8k.prompts((make_row(split=split, **row) for row in rows), split, verifier=verifier)
