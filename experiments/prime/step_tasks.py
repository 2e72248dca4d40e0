"""Tasks whose completions are steps with a known chance of success.

  chain     4M7m2M5=            7;2;5#5         maximum or minimum with a digit
  lookup    0417263250...|3>>>= 7;5;2#2         follows a table of pairs, one `>` per step
  sums      4+9-3=              13;10#10        running sums of chain_sum of reasoning-gym
  carry     495206=             13;08;06#06     adds 456 and 920, lowest digits first: the sum of
                                                each pair of digits and the carry before it
  reverse   sun=                n;u;s#s         the letters of spell_backward of reasoning-gym

A completion states the value after each operation, separated by `;`, then `#` and the last value
again. It is right if it has this form and its last step and its answer are right; a mistake may
be undone by later steps, on purpose or by luck. With `strict` all of its steps must be right, so
that no mistake can be undone. The names of this file in a config:

  prompts.dataset                experiments.prime.step_tasks:lookup, ... (source "chain", or
                                 "gym:chain_sum" for sums, "gym:spell_backward" for reverse)
  sft.target                     experiments.prime.step_tasks:trace
  verifier.steps                 experiments.prime.step_tasks:chances
  eval.prm_sets                  experiments.prime.step_tasks:right_steps
  rewards.process.name           experiments.prime.step_tasks:gains, or signs of a PRM
  advantages.process.name        experiments.prime.step_tasks:own_steps
"""
from collections.abc import Callable
import functools
import random
import re
import typing

import jax.numpy as jnp
from jax import Array
import numpy as np

from rlx.core import fields, masked, ranges, records
from rlx.core.method import method
from rlx.prompts import generated
from rlx.prompts.datasets import chain as chain_lib
from rlx.rewards import implicit
from rlx.verifiers import steps as verifier_steps

SLIP = 0.1     # Share of mistakes of the continuations that `chances` is about.
LARGEST = 80   # Absolute value up to which the chances of a step are known.
_DIGITS = "0123456789"


class Task(typing.NamedTuple):
  """What the functions below need to know of a task."""
  # question -> its operations: each maps the value before a step to the right value after it.
  operations: Callable[[str], list[Callable[[int], int]]]
  mistakes: tuple[int, ...]   # What a mistake adds to a right value, each equally likely.
  modulus: int | None = None  # Of values after a mistake.
  text: Callable[[int], str] = str  # How a step states a value.


# ---- the tasks. The first operation ignores its argument.


def _chain_operations(question):
  operations = [functools.partial(chain_lib.OPS[op], int(digit)) if op in "Mm" else
                lambda value, op=op, digit=digit: chain_lib.OPS[op](value, int(digit))
                for op, digit in zip(question[1:-1:2], question[2:-1:2])]
  first = operations[0](int(question[0]))
  return [lambda _: first, *operations[1:]]


def _lookup_operations(question):
  pairs, _, rest = question.partition("|")
  table = dict(zip(map(int, pairs[::2]), map(int, pairs[1::2])))
  first = table[int(rest[0])]
  # No value of a completion but a digit is in the table; another one leads nowhere.
  return [lambda _: first] + [lambda value: table.get(value, -1)] * (rest.count(">") - 1)


def _sums_operations(question):
  first, *terms = map(int, re.findall(r"[+-]?\d+", question))
  return [lambda _: first + terms[0]] + [
      lambda value, term=term: value + term for term in terms[1:]]


def _carry_operations(question):
  digits = list(map(int, question[:-1]))
  return [lambda before, pair=a + b: pair + ((before or 0) >= 10)
          for a, b in zip(digits[::2], digits[1::2])]


def _reverse_operations(question):
  return [lambda _, letter=ord(letter) - ord("a"): letter for letter in question[-2::-1]]


_OTHER_DIGITS = tuple(range(1, 10))
TASKS = dict(chain=Task(_chain_operations, _OTHER_DIGITS, 10),
             lookup=Task(_lookup_operations, _OTHER_DIGITS, 10),
             sums=Task(_sums_operations, (-10, -2, -1, 1, 2, 10)),
            carry=Task(_carry_operations, (1, 9, 10, 11, 19), 20, "{:02d}".format),
            reverse=Task(_reverse_operations, tuple(range(1, 26)), 26,
                         lambda value: chr(ord("a") + value)))


def solve(task, question, change=lambda before, right: right):
  """The values of all steps; each step starts from the changed value of the step before."""
  value, steps = None, []
  for operation in TASKS[task].operations(question):
    value = change(value, operation(value))
    steps.append(value)
  return steps


# ---- data sets (prompts.dataset). Keys of prompts.columns: `strict`, see `answer`; `misread` and
# `slip`, see `chances`.


def chain(rows, split, *, strict: bool = False, misread: ranges.Share = 0.0,
          slip: ranges.Share = SLIP):
  """Questions of rlx/prompts/datasets/chain.py."""
  for row in rows:
    yield _prompt("chain", split, row, chain_lib.generate(split=split, **row)["text"],
                  strict=strict, misread=misread, slip=slip)


def lookup(rows, split, *, strict: bool = False, misread: ranges.Share = 0.0,
           slip: ranges.Share = SLIP):
  """A permutation of ten digits as shuffled pairs, a digit, and `n_min` to `n_max` steps."""
  for row in rows:
    rng = random.Random(f"lookup/{row['seed']}/{row['index']}")
    while True:
      keys, values = rng.sample(_DIGITS, 10), rng.sample(_DIGITS, 10)
      text = "".join(k + v for k, v in zip(keys, values)) + "|" + rng.choice(_DIGITS)
      text += ">" * rng.randint(row["n_min"], row["n_max"]) + "="
      if generated.split_of(text) == split: break
    yield _prompt("lookup", split, row, text, strict=strict, misread=misread, slip=slip)


def sums(rows, split, *, strict: bool = False, misread: ranges.Share = 0.0,
         slip: ranges.Share = SLIP):
  """The expressions of chain_sum, without words and spaces."""
  for row in rows:
    question = row["entry"]["question"].partition(":")[2].replace(" ", "")
    yield _prompt("sums", split, row, question, strict=strict, misread=misread, slip=slip)


def carry(rows, split, *, strict: bool = True, misread: ranges.Share = 0.0,
          slip: ranges.Share = SLIP):
  """Two numbers of `n_min` to `n_max` digits; the digits of both take turns, lowest first."""
  for row in rows:
    rng = random.Random(f"carry/{row['seed']}/{row['index']}")
    while True:
      digits = rng.choices(_DIGITS, k=2 * rng.randint(row["n_min"], row["n_max"]))
      text = "".join(digits) + "="
      if generated.split_of(text) == split: break
    yield _prompt("carry", split, row, text, strict=strict, misread=misread, slip=slip)


def reverse(rows, split, *, strict: bool = True, misread: ranges.Share = 0.0,
            slip: ranges.Share = SLIP):
  """The words of spell_backward."""
  for row in rows:
    word = row["entry"]["metadata"]["word"].lower()
    yield _prompt("reverse", split, row, f"{word}=", strict=strict, misread=misread, slip=slip)


def _prompt(task, split, row, text, **meta):
  steps = solve(task, text)
  return records.Prompt(
      id=f"{task}/{split}/{row['seed']}/{row['index']}", text=text,
      answer=TASKS[task].text(steps[-1]),
      verifier="experiments.prime.step_tasks:answer",
      meta=dict(task=task, operations=len(steps), **meta))


def trace(prompt, rng, *, wrong_rate: ranges.Share, confused: ranges.Share = 0.0):
  """A completion for supervised training; each step is wrong with probability `wrong_rate`.

  Args:
    wrong_rate: the share of wrong steps.
    confused: if above 0, mistakes are systematic: steps are wrong only in this share of cases, and
      a case has always the same wrong value. A case is the value before the step and the right one
      after it. The most likely completion of a model trained on such traces has wrong steps;
      random mistakes are avoided by greedy decoding.
  """
  name = prompt.meta["task"]
  task = TASKS[name]
  def change(before, right):
    mistake = _confusion(name, before, right, confused) if confused else int(
        rng.choice(task.mistakes))
    return _moved(task, right, mistake) if mistake and rng.random() < wrong_rate else right
  steps = list(map(task.text, solve(name, prompt.text, change)))
  return ";".join(steps) + f"#{steps[-1]}"


@functools.lru_cache(maxsize=1 << 14)
def _confusion(name, before, right, confused):
  """The mistake that is made in a case; 0 if none is."""
  draw = random.Random(f"confused/{name}/{before}/{right}")
  return draw.choice(TASKS[name].mistakes) if draw.random() < confused else 0


# ---- verifiers


def answer(prompt, text):
  """1.0 for a right completion, else 0.0. With `strict` all of its steps are right."""
  task = TASKS[prompt.meta["task"]]
  stated, mark, last = text.partition("#")
  steps = stated.split(";")
  if not mark or last != steps[-1]: return 0.0
  if prompt.meta["strict"]:
    return float(steps == list(map(task.text, solve(prompt.meta["task"], prompt.text))))
  return float(last == prompt.answer and len(steps) == prompt.meta["operations"]
               and all(_value(task, step) is not None for step in steps))


def right_steps(prompt, text):
  """Tells of every step whether it follows from the value stated before it.

  A step that states no value, the step after it and steps after the last operation do not. The
  last step ends with the text and must state its value again after `#`. The verdicts of a share
  `misread` of the other steps are exchanged; which ones depends on the prompt and the text so far.
  """
  stated, mark, last = text.partition("#")
  steps, before, verdicts = stated.split(";"), None, []
  task = TASKS[prompt.meta["task"]]
  operations = task.operations(prompt.text)
  for k, step in enumerate(steps):
    value = _value(task, step)
    is_known = value is not None and k < len(operations) and (k == 0 or before is not None)
    verdicts.append(is_known and value == operations[k](before))
    before = value
  if mark: verdicts[-1] = verdicts[-1] and last == steps[-1]
  ends = verifier_steps.boundaries(text, ";")
  return [verdict != (_misread(prompt, text[:end]) is not None)
          for verdict, end in zip(verdicts, ends[:-1])] + verdicts[len(ends) - 1:len(ends)]


def chances(prompt, text):
  """The chance of success after each step, of a continuation that makes mistakes (share `slip`).

    V_n(v) = 1[v is the answer]
    V_k(v) = (1 - slip) V_{k+1}(f(v)) + slip mean_m V_{k+1}(f(v) + m)

  with f the next operation and m the mistakes. With `strict` it is (1 - slip)^(n - k) while all
  steps are right, then 0. The last step ends with the text, and its chance is the verdict. `text`
  has one step for each piece that `;` ends.

  A share `misread` of the other steps is read with a mistake: their chance is that of another
  value. Which ones depends on the prompt and on the text up to the step.
  """
  task, is_strict = prompt.meta["task"], prompt.meta["strict"]
  table, steps = values(task, prompt.text, prompt.meta["slip"], is_strict), []
  right, is_right = solve(task, prompt.text), True
  ends = verifier_steps.boundaries(text, ";")
  start = 0
  for k, end in enumerate(ends[:-1], 1):
    stated = _value(TASKS[task], text[start:end].removesuffix(";"))
    value, draw = stated, _misread(prompt, text[:end])
    if stated is not None and draw:
      value = _moved(TASKS[task], stated, draw.choice(TASKS[task].mistakes))
    is_open = value is not None and k < len(table) - 1 and steps.count(None) == 0
    is_open = is_open and (is_right or not is_strict)
    steps.append(None if value is None else table[k].get(value, 0.0) if is_open else 0.0)
    is_right = is_right and k <= len(right) and stated == right[k - 1]
    start = end
  return [step or 0.0 for step in steps] + [answer(prompt, text)] * bool(ends)


for _fn in (answer, right_steps, chances): vars(_fn)["is_bounded"] = True


@functools.lru_cache(maxsize=1 << 14)
def values(name, question, slip, is_strict=False):
  """[{None: chance before the first step}, {value: chance after the first step}, ...].

  With `is_strict` these are the chances of values after right steps.
  """
  task = TASKS[name]
  known = range(task.modulus) if task.modulus else range(-LARGEST, LARGEST + 1)
  operations = task.operations(question)
  if is_strict:
    states = enumerate([None, *solve(name, question)])
    return [{value: (1 - slip) ** (len(operations) - k)} for k, value in states]
  table = [{value: float(value == solve(name, question)[-1]) for value in known}]
  for k in range(len(operations) - 1, -1, -1):
    after = table[0]
    def chance(value):
      right = operations[k](value)  # pylint: disable=cell-var-from-loop
      wrong = [after.get(_moved(task, right, m), 0.0) for m in task.mistakes]  # pylint: disable=cell-var-from-loop
      return (1 - slip) * after.get(right, 0.0) + slip * sum(wrong) / len(wrong)  # pylint: disable=cell-var-from-loop
    table.insert(0, {value: chance(value) for value in (known if k else [None])})
  return table


def _moved(task, value, mistake):
  value += mistake
  return value if task.modulus is None else value % task.modulus


def _misread(prompt, text):
  """None, or a generator that draws how the last step of a text is misread."""
  share = prompt.meta["misread"]
  draw = random.Random(f"misread/{prompt.id}/{text}") if share else None
  return draw if draw and draw.random() < share else None


@functools.lru_cache(maxsize=1 << 12)
def _value(task, text):
  """The value that a step states; None if it states none."""
  if task.modulus is None: return int(text) if re.fullmatch(r"0|-?[1-9][0-9]{0,2}", text) else None
  return next((value for value in range(task.modulus) if task.text(value) == text), None)


# ---- exact advantages of steps


@fields.field(np.float32)
def start_B(prompts):
  """The chance of success before the first step; meta["start"] where the data set gives it."""
  return [p.meta["start"] if "start" in p.meta else
          values(p.meta["task"], p.text, p.meta["slip"], p.meta["strict"])[0][None]
          for p in prompts]


@method
def gains(step_scores_BT: Array, step_ends_BT: Array, start_B: Array, learn_BT: Array,
          learn_B: Array) -> Array:
  """The change of the chance of success by each step, on its last token.

    r_k = V_k - V_{k-1}

  The reward of the last step is on EOS. The rewards of a completion add up to its verdict less
  the chance before the first step, however many steps it has.
  """
  ends_BT, last_BT = masked.step_ends(step_ends_BT, learn_BT), masked.last(learn_BT)
  final_B = masked.total(step_scores_BT, masked.last(step_ends_BT & learn_BT), axis=1)
  scores_BT = masked.where_valid(
      jnp.where(last_BT, final_B[:, None], step_scores_BT), ends_BT)
  # The score of the last step before each token.
  carried_BT = jnp.pad(masked.accumulate(scores_BT, ~ends_BT)[:, :-1], ((0, 0), (1, 0)))
  is_first_BT = jnp.cumsum(ends_BT, axis=1) - ends_BT == 0
  before_BT = jnp.where(is_first_BT, start_B[:, None], carried_BT)
  return masked.where_valid(scores_BT - before_BT, ends_BT)


@method
def signs(prm_logps_BT: Array, prm_ref_logps_BT: Array, step_ends_BT: Array, learn_BT: Array,
          learn_B: Array) -> Array:
  """A PRM's verdict of each step, on its last token: 1 if the log-ratio is above 0, else 0.

  Verdicts of steps that are wrong where the PRM is wrong.
  """
  ratio_BT, _ = implicit.process(prm_logps_BT, prm_ref_logps_BT, learn_BT, learn_B, 1.0,
                                 step_ends_BT, granularity="step", norm="none")
  return masked.where_valid((ratio_BT > 0).astype(ratio_BT.dtype),
                            masked.step_ends(step_ends_BT, learn_BT))


@method
def own_steps(rewards_BT: Array, step_ends_BT: Array, learn_BT: Array, learn_PG: Array, *,
              gamma: ranges.Share = 0.0) -> Array:
  """Rewards of steps to go on every token of the step; EOS belongs to the last step.

    A_t = sum_{k >= step of t} gamma^(k - step of t) r_k
  """
  ends_BT = masked.step_ends(step_ends_BT, learn_BT)
  return masked.accumulate(masked.where_valid(rewards_BT, ends_BT),
                           jnp.where(ends_BT, gamma, 1.0), reverse=True)
