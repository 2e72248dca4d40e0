"""Tasks whose right completions may have any number of steps, with exact chances of success.

  walk    c>g=                d;c;d;e;f;g#g       from c to g in moves of one letter
  chase   033722...|0=        3;7;2;2#2           follows a table of pairs to a digit that is its
                                                  own successor; there are three such digits

A completion states the value after each step, separated by `;`, then `#` and the last value again.
It is right if it has this form, all of its steps are legal, and its last value is the goal, however
many steps it has. An early answer states a value that is not the goal. A redundant step leads away
(walk), or states the value again (chase). The illegal steps of walk cannot be undone. On chase
every digit of the table is legal: four of ten lead to the goal, so that later steps may undo a
mistake.

The names of this file in a config:

  prompts.dataset            experiments.prime.free_length:walk, chase
  sft.target                 experiments.prime.free_length:trace
  verifier.steps             experiments.prime.free_length:chances
  prm.loss                   experiments.prime.free_length:permuted_ce

The rewards of exact steps are `experiments.prime.step_tasks:gains`.
"""
from collections.abc import Iterator
import functools
import random
import typing

import jax.numpy as jnp
from jax import Array

from rlx.core import ranges, records
from rlx.core.method import method
from rlx.losses import prm
from rlx.prompts import generated
from rlx.verifiers import steps as verifier_steps

SLIP = 0.1  # Share of mistakes of the continuations that `chances` is about.
_LETTERS, _DIGITS = "abcdefghijklmnopqrstuvwxyz", "0123456789"


class Question(typing.NamedTuple):
  """What a question allows; keys are the values before a step."""
  start: str
  goal: str
  forward: dict[str, str]         # The step toward the goal.
  redundant: dict[str, str]       # A legal step that does not lead there.
  legal: dict[str, frozenset[str]]


@functools.lru_cache(maxsize=1 << 14)
def parse(text: str) -> Question:
  """The Question of a prompt."""
  if ">" in text:
    start, goal = text[0], text[2]
    before, after = (dict(zip(_LETTERS[1:], _LETTERS)), dict(zip(_LETTERS, _LETTERS[1:])))
    legal = {v: frozenset({before.get(v, "b"), after.get(v, "y")}) for v in _LETTERS}
    forward = {v: after[v] if v < goal or v == "a" else before[v] for v in _LETTERS}
    return Question(start, goal, forward,
                    {v: min(legal[v] - {forward[v]}, default=forward[v]) for v in _LETTERS}, legal)
  pairs, _, rest = text.partition("|")
  table = dict(zip(pairs[::2], pairs[1::2]))
  goal = start = rest[0]
  while table[goal] != goal: goal = table[goal]
  return Question(start, goal, table, {v: v for v in table},
                  dict.fromkeys(table, frozenset(table)))


def walk(rows, split, *, limit: ranges.Count = 11) -> Iterator[records.Prompt]:
  """Two letters with a distance of two to five. `limit`: the most steps there is room for."""
  for row in rows:
    draw = random.Random(f"walk/{row['seed']}/{row['index']}")
    while True:
      start, goal = draw.sample(range(len(_LETTERS)), 2)
      text = f"{_LETTERS[start]}>{_LETTERS[goal]}="
      if 2 <= abs(start - goal) <= 5 and generated.split_of(text) == split: break
    yield _prompt("walk", split, row, text, limit)


def chase(rows, split, *, limit: ranges.Count = 9) -> Iterator[records.Prompt]:
  """Three branches of four, three and three digits as shuffled pairs, and the tip of the first."""
  for row in rows:
    draw = random.Random(f"chase/{row['seed']}/{row['index']}")
    while True:
      nodes = draw.sample(_DIGITS, 10)
      table = {v: nodes[max(i - 1, first)] for first, end in ((0, 4), (4, 7), (7, 10))
               for i, v in enumerate(nodes[first:end], first)}
      pairs = draw.sample(sorted(table.items()), 10)
      text = "".join(map("".join, pairs)) + f"|{nodes[3]}="
      if generated.split_of(text) == split: break
    yield _prompt("chase", split, row, text, limit)


def _prompt(task, split, row, text, limit):
  question = parse(text)
  return records.Prompt(
      id=f"{task}/{split}/{row['seed']}/{row['index']}", text=text, answer=question.goal,
      verifier="experiments.prime.free_length:answer",
      meta=dict(limit=limit, start=values(text, limit)[question.start]))


def trace(prompt, rng, *, wrong_rate: ranges.Share, confused: ranges.Share, redundant: ranges.Share,
          early: ranges.Share, late: ranges.Share) -> str:
  """A completion for supervised training.

  Args:
    wrong_rate, confused: in a share `confused` of the cases, which are the value before a step, the
      right one after it and the goal, the step is wrong with probability `wrong_rate`, and has
      always the same wrong value.
    redundant: share of the other steps that are redundant.
    early: how often a completion ends after a step that is not at the goal.
    late: how often it goes on after a step at the goal, or at the end of another branch.
  """
  question, value, steps = parse(prompt.text), parse(prompt.text).start, []
  while len(steps) < prompt.meta["limit"]:
    right = question.forward[value]
    mistake = _confuse(question.goal, value, right, confused, tuple(sorted(question.forward)))
    if mistake is not None and rng.random() < wrong_rate: value = mistake
    elif rng.random() < redundant: value = question.redundant[value]
    else: value = right
    steps.append(value)
    is_end = value in (question.goal, question.forward[value])
    if rng.random() < (1 - late if is_end else early): break
  return ";".join(steps) + f"#{steps[-1]}"


@functools.lru_cache(maxsize=1 << 14)
def _confuse(goal, before, right, confused, values_):
  """The wrong value that is stated in a case; None if none is."""
  draw = random.Random(f"free_length/{goal}/{before}/{right}")
  return draw.choice([v for v in values_ if v != right]) if draw.random() < confused else None


def answer(prompt: records.Prompt, text: str) -> float:
  """1.0 for a right completion, else 0.0."""
  question, (stated, mark, last) = parse(prompt.text), text.partition("#")
  steps, before = stated.split(";"), question.start
  if not mark or last != steps[-1] or last != prompt.answer: return 0.0
  for step in steps:
    if step not in question.legal[before]: return 0.0
    before = step
  return 1.0


def chances(prompt: records.Prompt, text: str) -> list[float]:
  """The chance of success after each step, of a continuation that makes mistakes (share SLIP).

    V_0(v) = 1[v is the goal],  V_r(goal) = 1
    V_r(v) = (1 - SLIP) V_{r-1}(forward(v)) + SLIP mean_m V_{r-1}(m)

  with r the steps that there is room for, and m all other values of the question; after an illegal
  step it is 0. The last step ends with the text, and its chance is the verdict.
  """
  question, limit, known = parse(prompt.text), prompt.meta["limit"], []
  before, start = question.start, 0
  ends = verifier_steps.boundaries(text, ";")
  for k, end in enumerate(ends[:-1], 1):
    step, start = text[start:end].removesuffix(";"), end
    is_legal = before is not None and k < limit and step in question.legal[before]
    before = step if is_legal else None
    known.append(values(prompt.text, limit - k)[before] if is_legal else 0.0)
  return known + [answer(prompt, text)] * bool(ends)


for _fn in (answer, chances): vars(_fn)["is_bounded"] = True


@functools.lru_cache(maxsize=1 << 16)
def values(text: str, room: int) -> dict[str, float]:
  """{value: chance of success from it} with room for so many more steps."""
  question = parse(text)
  if room == 0: return {v: float(v == question.goal) for v in question.forward}
  after = values(text, room - 1)
  def chance(value):
    right = question.forward[value]
    wrong = [after[m] * (m in question.legal[value]) for m in after if m != right]
    return (1 - SLIP) * after[right] + SLIP * sum(wrong) / len(wrong)
  return {v: 1.0 if v == question.goal else chance(v) for v in question.forward}


@method
def permuted_ce(prm_logps_BT: Array, prm_ref_logps_BT: Array, learn_BT: Array, outcome_B: Array,
                learn_B: Array, prm_beta: Array | float) -> records.Weighted:
  """`prm.ce` with the verdict of another prompt's completion: a PRM that can learn nothing.

  The verdicts are those of the rows half of a batch away; it needs prm.minibatches=1 and
  prm.microbatches=1.
  """
  shift = len(outcome_B) // 2
  outcome_B = jnp.where(learn_B, outcome_B, 0.0)
  return prm.ce(prm_logps_BT, prm_ref_logps_BT, learn_BT, jnp.roll(outcome_B, shift),
                learn_B & jnp.roll(learn_B, shift), prm_beta)
