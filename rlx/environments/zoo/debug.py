r"""Repairs of a line of code: an attempt, what its tests print, the next attempt.

  question      x*3+4 f(2)=9 f(5)=18:    a line that fails, and what f(x) has to be
  reply         x*3+2                    an attempt at the whole line
  observation   f(2)=8;                  the first of the shown tests that fails
  reply         x*3+3                    all tests pass: reward 1.0

The line is an expression of x: x, `*` or `%`, a digit, `+`, `-` or `*`, a digit. The line of a
question differs from the right one in one of these four places, or of those that `places` names;
with `broken=False` a question has the tests alone. The shown tests determine the function: every
line of this form that passes them passes all tests.

The tests of a question are only examples. The reward is decided by hidden tests, other values of
x, and the question does not say which: `[9,18][x>3]` passes what is shown and earns nothing. It
is answered with "hidden;", without a value that a next attempt could list, and costs an attempt
like any other. An attempt that is right is any expression with the values of the right line.

An attempt is evaluated in the sandbox (python.py) and never in this process, except that the
values of a line in the form above come from a table: a sandbox takes 0.1 s. The sandbox gets
the attempt and the values of x; what has to come out is compared outside of it, as text, with
whole numbers alone: an object that is equal to everything is no right value. Hidden tests run
together with the shown ones, so an attempt starts one process. The name of an exception takes
the place of a value, f(2)=NameError; what exceeds a limit, or prints, is answered "killed;".

With `decrease` and `sound` attempts have process rewards, too:

  r_k = decrease (D_{k-1} - D_k) + sound (S_k - S_{k-1}) + (1 if all tests pass)

with D_k the number of shown tests that attempt k fails, D_0 that of the line in the question (all
without one), and S_k = 1 if its values for the shown tests are numbers, S_0 = 0. The reward of
Lanser, Zhang et al. 2025, arXiv:2510.22907, has 0.5 and 0.4 as an example: D counts the
diagnostics of a language server there, S is whether an edit can be applied safely, and an
ambiguous address costs something; an attempt here has no address. There S is paid for every edit,
with which an episode that puts off the repair would earn more than one that repairs at once; here
the rewards add up to what the last attempt is worth. The verdict of an episode is 1.0 for a repair,
else 0.0, whatever its attempts earned, and `info` has it as "right". Questions that belong to the
split "test" have no process rewards.
"""
import collections
import functools
import json
import operator
import re
import string
from typing import TYPE_CHECKING

from rlx.core import ranges
from rlx.environments import interface
from rlx.environments.zoo import python
from rlx.prompts import generated
from rlx.verifiers.sandbox import sandbox

if TYPE_CHECKING: from rlx.core import records

ALPHABET = string.digits + string.ascii_letters + " %()*+-._:;="
# The longest texts in characters, with the default options.
LONGEST = dict(prompt=24, reply=5, observation=26)
MAX_LINE = 200     # Characters; longer attempts are not run.
INPUTS = tuple(range(-9, 31))  # Of all tests, shown and hidden.
_SHOWN = range(10)             # Inputs that may be shown.
_MAX_VALUE = 20                # Characters of a value in an observation.
_FIRST = {"*": operator.mul, "%": operator.mod}
_SECOND = {"+": operator.add, "-": operator.sub, "*": operator.mul}
_DIGITS = "123456789"
_PLACES = "1234"  # Of a line, what can be wrong: all but its first character.
# A value for each input, one per line.
_RUN = """
import json, sys
line, inputs = json.load(sys.stdin.buffer)
def result(x):
  try:
    value = eval(code, {"x": x})
    if type(value) in (int, float, bool, type(None)): return repr(value)[:30]
    return type(value).__name__[:30]
  except BaseException as e:
    return type(e).__name__[:30]
try:
  code = compile(line, "line", "eval")
except BaseException:
  results = ["SyntaxError"] * len(inputs)
else:
  results = [result(x) for x in inputs]
print("\\n".join(results))
"""


class Debug:
  """Runs the tests of attempts.

  Args:
    attempts: replies of an episode.
    cpu_s: whole seconds of CPU time of an attempt, with all tests.
    total_s: seconds that it may take.
    memory_mb: its memory.
    unsafe: True runs attempts with limits but without bubblewrap, as this user.
    decrease, sound: factors of the process rewards, see above; 0: none.
  Raises:
    ImportError: bubblewrap is not installed.
  """
  role = "tool"

  def __init__(self, *, attempts: ranges.Count = 3, cpu_s: ranges.Count = 1,
               total_s: ranges.Positive = 2.0, memory_mb: ranges.Count = 256, unsafe: bool = False,
               decrease: ranges.NotNegative = 0.0, sound: ranges.NotNegative = 0.0):
    if not unsafe: sandbox.bubblewrap("environment.unsafe")
    self._attempts, self._decrease, self._sound = attempts, decrease, sound
    self._limits = dict(cpu_s=cpu_s, total_s=total_s, memory_mb=memory_mb, unsafe=unsafe)

  def reset(self, prompt: "records.Prompt") -> str:
    """Starts an episode; returns the question."""
    self._wanted, self._shown = _texts_of(prompt.answer), tuple(prompt.meta["shown"])
    self._used, self._is_sound = 0, False
    self._is_paid = (bool(self._decrease or self._sound)
                     and generated.split_of(prompt.text) == "train")
    line = prompt.text.partition(" ")[0]
    self._failing = self._failing_of(_texts_of(line) if line in _lines() else {})
    return prompt.text

  def step(self, reply: str) -> interface.Step:
    """Runs the tests of an attempt.

    Raises:
      errors.Unknown: the sandbox did not start, whatever the attempt.
    """
    self._used += 1
    observation, got = self._test(reply.strip())
    done = not observation or self._used == self._attempts
    reward = float(not observation) if done else None
    if self._is_paid: reward = (reward or 0.0) + self._pay(got)
    right = float(not observation)
    return interface.Step(observation, reward=reward, done=done, verdict=right, info=dict(
        attempts=float(self._used), right=right))

  def _test(self, line):
    """Returns what the tests print, "" if all of them pass, and the values, {} if it was killed."""
    if not line: python.check_start(**self._limits)
    if len(line) > MAX_LINE: return "too long;", {}
    got = _values(line, self._limits)
    if got is None: return "killed;", {}
    if failing := self._failing_of(got):
      return f"f({failing[0]})={got[failing[0]][:_MAX_VALUE]};", got
    return "" if got == self._wanted else "hidden;", got

  def _failing_of(self, got):
    """The inputs of the shown tests that values fail."""
    return [x for x in self._shown if got.get(x) != self._wanted[x]]

  def _pay(self, got):
    """The process reward of an attempt with these values."""
    failing, was_sound = len(self._failing), self._is_sound
    self._failing = self._failing_of(got)
    self._is_sound = all(re.match(r"-?\d", got.get(x, "")) for x in self._shown)
    return (self._decrease * (failing - len(self._failing))
            + self._sound * (self._is_sound - was_sound))


def _values(line, limits):
  """Returns {input: value, as text} of an attempt; None if it was killed or prints something."""
  if line in _lines(): return _texts_of(line)
  output = python.run_program(_RUN, json.dumps([line, INPUTS]).encode(), **limits)
  texts = [] if output is None else output.decode(errors="replace").removesuffix("\n").split("\n")
  is_sound = len(texts) == len(INPUTS) and all(
      re.fullmatch(r"[\w.+-]{1,30}", text, re.ASCII) for text in texts)
  return dict(zip(INPUTS, texts)) if is_sound else None


def _texts_of(line):
  """{input: value, as text} of a line of this module's form."""
  return dict(zip(INPUTS, map(str, values(line))))


@functools.cache
def values(line: str) -> tuple[int, ...]:
  """The values of a line of this module's form for all INPUTS."""
  first, second = _FIRST[line[1]], _SECOND[line[3]]
  return tuple(second(first(x, int(line[2])), int(line[4])) for x in INPUTS)


def generate(seed, index, broken=True, places=_PLACES, split="train"):
  """Draws the question of (seed, index): {"text", "answer", "meta"}.

  The answer is the right line. `meta` has the inputs of the shown tests, "shown", and the places
  that may be wrong, "places".

  Args:
    broken: whether a question begins with a line to repair.
    places: of the line that may be wrong: 1 and 3 are the operations, 2 and 4 the digits.
    split: "train" or "test".
  """
  rng = generated.start("debug", seed, index, split)
  ranges.check("prompts.options.broken", broken, ranges.SWITCH)
  if not isinstance(places, str) or not places or set(places) - set(_PLACES):
    raise ValueError(f"prompts.options.places={places!r}: one or more of {_PLACES}, as a text.")
  while True:
    line = rng.choice(_lines())
    shown = rng.sample(_SHOWN, 2)
    wanted = _values_at(line, shown)
    if wanted not in _find_determining_values(*shown): continue
    text = " ".join(f"f({x})={value}" for x, value in zip(shown, wanted)) + ":"
    if broken:
      if not (wrong := _wrong_lines(line, shown, places)): continue
      text = f"{rng.choice(wrong)} {text}"
    if generated.split_of(text) == split:
      return dict(text=text, answer=line, meta=dict(shown=shown, places=places))


prompts = functools.partial(generated.prompts, "debug", generate)


def edits(line: str, places: str = _PLACES) -> list[str]:
  """All lines that differ from a line in one of these places.

  Example:
    >>> len(debug.edits("x*3+4"))
    19
  """
  parts_at = {1: _FIRST, 2: _DIGITS, 3: _SECOND, 4: _DIGITS}
  return [line[:i] + part + line[i + 1:] for i in map(int, places)
          for part in parts_at[i] if part != line[i]]


@functools.cache
def _lines():
  return [f"x{first}{a}{second}{b}" for first in _FIRST for a in _DIGITS
          for second in _SECOND for b in _DIGITS]


def _values_at(line, inputs):
  return tuple(values(line)[INPUTS.index(x)] for x in inputs)


@functools.cache
def _find_determining_values(*inputs):
  """The values at these inputs that only lines with one and the same function have."""
  functions = collections.defaultdict(set)
  for line in _lines(): functions[_values_at(line, inputs)].add(values(line))
  return {wanted for wanted, fitting in functions.items() if len(fitting) == 1}


def _wrong_lines(line, shown, places):
  """The lines that differ in one of these places and fail a shown test."""
  return [other for other in edits(line, places)
          if _values_at(other, shown) != _values_at(line, shown)]


def expert(prompt: "records.Prompt", rng, *, attempts: ranges.Count = 3,
           wrong_rate: ranges.Share = 0.0) -> list[str]:
  """The replies of an episode: attempts until one is right, or none is left.

  Args:
    prompt: Prompt of this module.
    rng: np.random.Generator.
    attempts: as the environment's.
    wrong_rate: share of attempts that differ from the right line in one place, and fail.
  """
  replies: list[str] = []
  while len(replies) < attempts and rng.random() < wrong_rate:
    wrong = _wrong_lines(prompt.answer, prompt.meta["shown"], prompt.meta.get("places", _PLACES))
    replies.append(wrong[int(rng.integers(len(wrong)))])
  return [*replies, prompt.answer][:attempts]
