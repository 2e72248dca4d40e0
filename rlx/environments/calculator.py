"""Arithmetic with a calculator: each turn is one operation, or the answer.

  question      37*4+85-12=
  reply         [37*4]        observation  148;
  reply         [148+85]      observation  233;
  reply         [233-12]      observation  221;
  reply         #221          the episode ends with reward 1.0

A call is one operation of two integers with at most DIGITS digits. A reply that begins with #
ends the episode: reward 1.0 if what follows is the answer, else 0.0. Any other reply is answered
"err;" and counts as a call. A call when none is left is not computed: it ends the episode with
reward 0.0, so an episode has at most calls + 1 turns.

No observation has more than 30 characters, whatever the call is.
"""
from collections.abc import Callable
import random
import re
from typing import TYPE_CHECKING
import zlib

from rlx.core import ranges
from rlx.environments import interface

if TYPE_CHECKING: from rlx.core import records

ALPHABET = "0123456789+-*=[]#; eflnort"  # Of prompts, an expert's replies and observations.
# The longest texts in characters, with the default options.
LONGEST = dict(prompt=12, reply=11, observation=9)
OPERATIONS = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b}
DIGITS = 14  # Of a number in a call: a product has at most 28.
HELD_OUT = 4  # One in four questions belongs to the "test" split.

_INTEGER = f"-?[0-9]{{1,{DIGITS}}}"
_CALL = re.compile(rf"\[({_INTEGER})([-+*])({_INTEGER})\]")


class Calculator:
  """Answers calls of a calculator and checks the final answer.

  Args:
    calls: calls that an episode has, those that do not parse included.
  """
  role = "tool"
  is_bounded = True  # It may run in the trainer's process.

  def __init__(self, *, calls: ranges.Count = 4):
    self._calls = calls

  def reset(self, prompt: "records.Prompt") -> str:
    """Starts an episode; returns the question."""
    self._answer, self._used = prompt.answer, 0
    return prompt.text

  def step(self, reply: str) -> interface.Step:
    """Computes a call, or checks the answer."""
    reply = reply.strip()
    info = dict(calls=float(self._used))
    if reply.startswith("#"):
      return interface.Step(reward=float(reply[1:].strip() == self._answer), done=True, info=info)
    if self._used == self._calls:
      return interface.Step("none left;", reward=0.0, done=True, info=info)
    self._used += 1
    return interface.Step(compute(reply), info=dict(calls=float(self._used)))


def compute(call: str) -> str:
  """The observation of a call.

  Example:
    >>> calculator.compute("[148+85]"), calculator.compute("[2+2+2]")
    ('233;', 'err;')
  """
  match = _CALL.fullmatch(call)
  if match is None: return "err;"
  return f"{OPERATIONS[match[2]](int(match[1]), int(match[3]))};"


def prompts(rows, split):
  """Rows -> Prompts. A row has the arguments of `generate`; each is redrawn until its question
  belongs to `split`. `meta["operations"]` is the number of operations."""
  from rlx.core import records  # pylint: disable=g-import-not-at-top
  for row in rows:
    drawn = generate(split=split, **row)
    yield records.Prompt(id=f"calculator/{split}/{row['seed']}/{row['index']}", **drawn)


def generate(seed, index, n_min=2, n_max=3, ops="+-*", digits=2, mixed=False, split="train"):
  """Draws the question of (seed, index): {"text", "answer", "meta"}.

  Args:
    n_min, n_max: least and largest number of operations, which is uniform.
    ops: keys of OPERATIONS, each equally likely.
    digits: largest number of digits of an operand; operands are uniform from 2 on.
    mixed: whether multiplications stand anywhere, and not only in front. They come before
      additions and subtractions; those in front make it right to go from left to right.
    split: "train" or "test".
  """
  if split not in ("train", "test"):
    raise ValueError(f"prompts: calculator has no split {split!r}; train or test.")
  if not ops or set(ops) - set(OPERATIONS):
    raise ValueError(f"prompts.options.ops={ops!r}: one or more of {''.join(OPERATIONS)}.")
  if not 1 <= n_min <= n_max:
    raise ValueError(f"prompts.options: need 1 <= n_min={n_min} <= n_max={n_max}.")
  if not 1 <= digits <= DIGITS // (n_max + 1):
    raise ValueError(f"prompts.options.digits={digits}: 1 or more, and digits * (n_max + 1) at "
                     f"most {DIGITS}, so that every result can be used in a call.")
  rng = random.Random(f"calculator/{seed}/{index}")
  while True:
    drawn = [rng.choice(ops) for _ in range(rng.randint(n_min, n_max))]
    if not mixed: drawn.sort(key=lambda op: op != "*")
    numbers = [rng.randint(2, 10**digits - 1) for _ in range(len(drawn) + 1)]
    text = str(numbers[0]) + "".join(f"{op}{n}" for op, n in zip(drawn, numbers[1:])) + "="
    if split_of(text) == split:
      return dict(text=text, answer=calls_of(text)[-1][1], meta=dict(operations=len(drawn)))


def split_of(text: str) -> str:
  """The split that a question belongs to."""
  return "train" if zlib.crc32(text.encode()) % HELD_OUT else "test"


def calls_of(text: str, change: Callable[[str], str] = lambda call: call) -> list[tuple[str, str]]:
  """The calls that answer a question, multiplications first, each with its result.

  Example:
    >>> calculator.calls_of("85-12*3=")
    [('[12*3]', '36'), ('[85-36]', '49')]

  Args:
    change: call -> the call that is made in its place, whose result is used from there on.
  """
  numbers, ops, calls = re.findall("[0-9]+", text), re.findall("[-+*]", text), []
  while ops:
    i = ops.index("*") if "*" in ops else 0
    call = change(f"[{numbers[i]}{ops.pop(i)}{numbers[i + 1]}]")
    numbers[i:i + 2] = [compute(call).removesuffix(";")]
    calls.append((call, numbers[i]))
  return calls


def expert(prompt: "records.Prompt", rng, *, wrong_rate: ranges.Share = 0.0) -> list[str]:
  """The replies of an episode: one call per operation, then the answer.

  Each reply is wrong with probability `wrong_rate`: a call with another operation, or an answer
  with another last digit. The replies after a wrong call use its result.

  Args:
    prompt: Prompt of this module.
    rng: np.random.Generator.
    wrong_rate: share of replies that are wrong.
  """
  def change(call):
    if rng.random() >= wrong_rate: return call
    a, op, b = _CALL.fullmatch(call).groups()
    return f"[{a}{rng.choice([o for o in OPERATIONS if o != op])}{b}]"
  calls = calls_of(prompt.text, change)
  answer = calls[-1][1]
  if rng.random() < wrong_rate:
    answer = str(rng.choice([a for a in (answer[:-1] + d for d in "0123456789")
                             if a not in (answer, prompt.answer)]))
  return [call for call, _ in calls] + ["#" + answer]
