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

No observation has more than 30 characters for each call of the reply.

With `turn_rewards` other turns than the last have rewards, too. The steps of a question are its
operations with their results, above (*, 148), (+, 233) and (-, 221); a call solves a step that
has its operation and its result and that no call before has solved.

  calls   a reply that is no answer: 1/n for each of the question's n steps that it solves
          an answer: as without
  ftrl    calls: 2 solved / (calls + 1)
          a call that does not parse: -0.3, and -0.5 if the reply is empty
          a right answer: 1 + unsolved
          a wrong answer: 0.5 if all steps are solved, else 0

The rewards of ftrl are those of FTRL, Ye et al. 2025, arXiv:2508.08791, in its released code
(bytedance/FTRL, compute_solve_f1). Differs from the paper: there a reply without calls ends the
episode, and a right answer has 1 / (1 + unsolved). There each turn is compared with others after
the same history alone; in the sum over an episode three calls without an answer would have 3, and
a right answer without calls 1/4. Here the answer without calls has 4, as much as with them.

The verdict of an episode is 1.0 for the right answer, else 0.0, whatever its turns earned, and
`info` has it as "right". Questions that belong to the split "test" have the reward of the answer
alone, whatever `turn_rewards` is.
"""
from collections.abc import Callable
import functools
import re
from typing import TYPE_CHECKING, Literal

from rlx.core import ranges
from rlx.environments import interface
from rlx.prompts import generated
from rlx.verifiers import overlap as overlap_lib

if TYPE_CHECKING: from rlx.core import records

ALPHABET = "0123456789+-*=[]#; eflnort"  # Of prompts, an expert's replies and observations.
# The longest texts in characters, with the default options.
LONGEST = dict(prompt=12, reply=11, observation=9)
OPERATIONS = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b}
DIGITS = 14  # Of a number in a call: a product has at most 28.

_INTEGER = f"-?[0-9]{{1,{DIGITS}}}"
_CALL = re.compile(rf"\[({_INTEGER})([-+*])({_INTEGER})\]")


class Calculator:
  """Answers calls of a calculator and checks the final answer.

  Args:
    calls: calls that an episode has, those that do not parse included.
    at_once: calls that a reply may have, one after the other, as "[3*4][5+6]".
    turn_rewards: which turns have rewards, see above; outcome: the last one.
  """
  role = "tool"
  is_bounded = True  # It may run in the trainer's process.

  def __init__(self, *, calls: ranges.Count = 4, at_once: ranges.Count = 1,
               turn_rewards: Literal["outcome", "calls", "ftrl"] = "outcome"):
    self._calls, self._at_once, self._turn_rewards = calls, at_once, turn_rewards

  def reset(self, prompt: "records.Prompt") -> str:
    """Starts an episode; returns the question."""
    self._answer, self._used = prompt.answer, 0
    self._pays = self._turn_rewards if generated.split_of(prompt.text) == "train" else "outcome"
    self._unsolved = [] if self._pays == "outcome" else [
        _step_of(call, result) for call, result in calls_of(prompt.text)]
    self._steps = len(self._unsolved)
    return prompt.text

  def step(self, reply: str) -> interface.Step:
    """Computes calls, or checks the answer."""
    reply = reply.strip()
    if reply.startswith("#"): return self._end_episode(reply[1:].strip() == self._answer)
    calls = self._calls_in(reply)
    if self._used + max(len(calls), 1) > self._calls:
      return self._step("none left;", reward=0.0, done=True)
    self._used += max(len(calls), 1)
    results = [compute(call) for call in calls]
    return self._step("".join(results) or "err;", reward=self._pay(reply, calls, results))

  def _calls_in(self, reply):
    """The calls of a reply, none if it is anything but calls or has too many."""
    several = rf"(?:{_CALL.pattern}){{1,{self._at_once}}}"
    return [m[0] for m in _CALL.finditer(reply)] if re.fullmatch(several, reply) else []

  def _step(self, observation="", *, is_right=False, **options):
    info = dict(calls=float(self._used), right=float(is_right))
    return interface.Step(observation, info=info, verdict=float(is_right), **options)

  def _end_episode(self, is_right):
    reward = float(is_right)
    if self._pays == "ftrl":
      reward = 1.0 + len(self._unsolved) if is_right else 0.0 if self._unsolved else 0.5
    return self._step(is_right=is_right, reward=reward, done=True)

  def _pay(self, reply, calls, results):
    """The reward of a reply that is no answer."""
    if self._pays == "outcome": return None
    solved = sum(self._solves(call, result) for call, result in zip(calls, results))
    if self._pays == "calls": return solved / self._steps
    if not calls: return -0.3 if reply else -0.5
    return 2 * solved / (len(calls) + 1)

  def _solves(self, call, result):
    step = _step_of(call, result.removesuffix(";"))
    if step not in self._unsolved: return False
    self._unsolved.remove(step)
    return True


def _step_of(call, result):
  """The step that a call solves: its operation and its result."""
  return _CALL.fullmatch(call)[2], result


def compute(call: str) -> str:
  """The observation of a call.

  Example:
    >>> calculator.compute("[148+85]"), calculator.compute("[2+2+2]")
    ('233;', 'err;')
  """
  match = _CALL.fullmatch(call)
  if match is None: return "err;"
  return f"{OPERATIONS[match[2]](int(match[1]), int(match[3]))};"


def parsed(prompt: "records.Prompt", text: str) -> float:
  """A verifier for verifier.scores: 1.0 if no call of an episode failed to parse, else 0.0.

  A reply that writes an observation like "err;" itself can only lower its score.
  """
  del prompt
  return float("err;" not in text)


def overlap(prompt: "records.Prompt", text: str) -> float:
  """A verifier for verifier.scores: BLEU of the characters of an episode's answer, see
  verifiers/overlap.py; 0.0 without an answer."""
  return overlap_lib.bleu(text.rpartition("#")[2].strip(), prompt.answer) if "#" in text else 0.0


for _fn in (parsed, overlap): vars(_fn)["is_bounded"] = True


def generate(seed, index, n_min=2, n_max=3, ops="+-*", digits=2, mixed=False, split="train"):
  """Draws the question of (seed, index): {"text", "answer", "meta"}.

  `meta["operations"]` is the number of operations.

  Args:
    n_min, n_max: least and largest number of operations, which is uniform.
    ops: keys of OPERATIONS, each equally likely.
    digits: largest number of digits of an operand; operands are uniform from 2 on.
    mixed: whether multiplications stand anywhere, and not only in front. They come before
      additions and subtractions; those in front make it right to go from left to right.
    split: "train" or "test".
  """
  rng = generated.start("calculator", seed, index, split)
  if not ops or set(ops) - set(OPERATIONS):
    raise ValueError(f"prompts.options.ops={ops!r}: one or more of {''.join(OPERATIONS)}.")
  if not 1 <= n_min <= n_max:
    raise ValueError(f"prompts.options: need 1 <= n_min={n_min} <= n_max={n_max}.")
  if not 1 <= digits <= DIGITS // (n_max + 1):
    raise ValueError(f"prompts.options.digits={digits}: 1 or more, and digits * (n_max + 1) at "
                     f"most {DIGITS}, so that every result can be used in a call.")
  while True:
    drawn = [rng.choice(ops) for _ in range(rng.randint(n_min, n_max))]
    if not mixed: drawn.sort(key=lambda op: op != "*")
    numbers = [rng.randint(2, 10**digits - 1) for _ in range(len(drawn) + 1)]
    text = str(numbers[0]) + "".join(f"{op}{n}" for op, n in zip(drawn, numbers[1:])) + "="
    if generated.split_of(text) == split:
      return dict(text=text, answer=calls_of(text)[-1][1], meta=dict(operations=len(drawn)))


prompts = functools.partial(generated.prompts, "calculator", generate)


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
