r"""A tool that runs Python: the policy writes short programs and reads what they print.

  question      S3,17=                                  sum of the squares of 3, 4, ..., 16
  reply         >print(sum(i*i for i in range(3,17)))
  observation   1491\n
  reply         #1491                                   the answer: ends the episode

A reply ">PROGRAM" is a call; the program may have several lines. The observation is what it
prints, as one line of printable ASCII, cut. If it raises an exception, the observation is the
name of its type instead. A reply "#ANSWER" ends the episode: reward 1.0 if it is the prompt's
answer, else 0.0. Any other reply is a call, too, and is answered with the two forms. When all
calls are used, a reply that is no answer ends the episode with reward 0.0.

Questions, with whole numbers a, b, c:

  Sa,b=      sum of the squares of a, a + 1, ..., b - 1
  Ca,b=      how many of 1, 2, ..., b - 1 are multiples of a
  Da,b=      sum of the digits of a to the power of b
  Pa,b,c=    remainder of a to the power of b, divided by c

Programs run in the sandbox of verifiers/sandbox/sandbox.py, each in a process of its own, which
cannot reach files of the user, the network or other processes. A call takes 0.05 s of CPU time to
start, at most total_s to run, and a few seconds more if the machine is slow to start or end it.
What a program printed is remembered per process, so repetitions are fast. A program that reads
the clock, random bytes, addresses or the order of a set does not always print the same.
"""
import functools
import re
import string
from typing import TYPE_CHECKING, Callable, NamedTuple

from rlx.core import ranges
from rlx.environments import interface
from rlx.prompts import generated
from rlx.verifiers.sandbox import sandbox

if TYPE_CHECKING: from rlx.core import records

ALPHABET = string.digits + string.ascii_letters + string.punctuation + " \n"
# The longest texts in characters, with the default options.
LONGEST = dict(prompt=11, reply=38, observation=23)
MAX_PROGRAM = 2000      # Characters; longer programs are not run.
_MAX_PRINTED = 1000     # Bytes of the start, and of the end, that are remembered.
_FORMS = ">CODE or #ANSWER\n"
# The name of an exception follows the character 0. Everything that `compile` refuses is the same
# exception in all versions of Python.
_RUN = """
import sys
source = sys.stdin.buffer.read().decode()
try:
  code = compile(source, "program", "exec")
except BaseException:
  print("\\0SyntaxError")
else:
  try:
    exec(code, {"__name__": "__main__"})
  except SystemExit:
    pass
  except BaseException as e:
    print("\\0" + type(e).__name__)
"""


class Task(NamedTuple):
  """A kind of question: its program, the bounds of its numbers, and its value."""
  program: str
  bounds: tuple[tuple[int, int], ...]
  value: Callable[..., int]


TASKS = {
    "S": Task("print(sum(i*i for i in range({},{})))", ((2, 49), (50, 99)),
              lambda a, b: sum(i * i for i in range(a, b))),
    "C": Task("print(len(range({0},{1},{0})))", ((3, 19), (100, 999)),
              lambda a, b: len(range(a, b, a))),
    "D": Task("print(sum(map(int,str({}**{}))))", ((2, 99), (10, 40)),
              lambda a, b: sum(map(int, str(a**b)))),
    "P": Task("print(pow({},{},{}))", ((2, 99), (10, 99), (100, 999)), pow)}


class Python:
  """Answers calls of Python.

  Args:
    calls: replies of an episode that are no answer.
    limit: characters of what a program prints; ".." shows that there are more.
    cpu_s: whole seconds of CPU time of a program.
    total_s: seconds that a program may take.
    memory_mb: its memory.
    unsafe: True runs programs with limits but without bubblewrap, as this user.
  Raises:
    ImportError: bubblewrap is not installed.
  """
  role = "tool"

  def __init__(self, *, calls: ranges.Count = 2, limit: ranges.Count = 20, cpu_s: ranges.Count = 1,
               total_s: ranges.Positive = 2.0, memory_mb: ranges.Count = 256, unsafe: bool = False):
    if not unsafe: sandbox.bubblewrap("environment.unsafe")
    self._calls, self._limit = calls, limit
    self._limits = dict(cpu_s=cpu_s, total_s=total_s, memory_mb=memory_mb, unsafe=unsafe)

  def reset(self, prompt: "records.Prompt") -> str:
    """Starts an episode; returns the question."""
    self._answer, self._used, self._failed = prompt.answer, 0, 0
    return prompt.text

  def step(self, reply: str) -> interface.Step:
    """Runs a program or ends the episode.

    Raises:
      errors.Unknown: the sandbox did not start, whatever the program.
    """
    text = reply.strip()
    if text.startswith("#"): return self._end(float(text[1:].strip() == self._answer))
    if self._used == self._calls: return self._end(0.0)
    self._used += 1
    return interface.Step(self._call(text), info=self._info())

  def _end(self, reward):
    return interface.Step(reward=reward, done=True, info=self._info())

  def _info(self): return dict(calls=float(self._used), failed_calls=float(self._failed))

  def _call(self, text):
    if not text: check_start(**self._limits)
    if text.startswith(">"): return self._run(text[1:])
    self._failed += 1
    return _FORMS

  def _run(self, program):
    """What a program prints, as an observation."""
    output, error = None, ""
    if len(program) >= MAX_PROGRAM: error = "too long\n"
    else:
      output = run_program(_RUN, program.strip().encode(errors="replace"), **self._limits)
      if output is None: error = "killed\n"
      elif b"\0" in output: error = _line(output.rpartition(b"\0")[2], self._limit)
    self._failed += bool(error)
    return error or _line(output, self._limit)


def _line(output, limit):
  """What a program printed as one line of ALPHABET, cut."""
  text = output.decode(errors="replace").strip().replace("\n", " ") or "no output"
  text = re.sub(r"[^ -~]", "?", text)
  return text[:limit] + ".." * (len(text) > limit) + "\n"


def check_start(**limits: float) -> None:
  """Starts the sandbox with these limits (see `Python`), for replies that are empty.

  If a step fails, runner.py takes it again with an empty reply, to find out whether the reply was
  the reason. A sandbox that does not start then has to fail again.

  Raises:
    errors.Unknown: it does not start.
  """
  sandbox.output("", b"", **limits)


def run_program(source: str, stdin: bytes, **limits: float) -> bytes | None:
  """Returns what a program prints; None if a limit or a crash ends it.

  Of a long output, the first and the last 1,000 bytes.

  Args:
    source: Python.
    stdin: what the program can read.
    **limits: cpu_s, total_s, memory_mb and unsafe, see `Python`.
  """
  try:
    return _run_cached(source, stdin, **limits)
  except _Killed:
    return None


class _Killed(Exception):
  """A program did not end by itself. Not remembered: a busy machine may be the reason."""


@functools.lru_cache(maxsize=4096)
def _run_cached(source, stdin, **limits):
  output, has_ended = sandbox.output(source, stdin, **limits)
  if not has_ended: raise _Killed
  if len(output) <= 2 * _MAX_PRINTED: return output
  return output[:_MAX_PRINTED] + output[-_MAX_PRINTED:]


def generate(seed, index, kinds="SCDP", split="train"):
  """Draws the question of (seed, index): {"text", "answer"}.

  Args:
    kinds: keys of TASKS, each equally likely.
    split: "train" or "test".
  """
  rng = generated.start("python", seed, index, split)
  if not kinds or set(kinds) - set(TASKS):
    raise ValueError(f"prompts.options.kinds={kinds!r}: one or more of {''.join(TASKS)}.")
  while True:
    kind = rng.choice(kinds)
    text = _question(kind, [rng.randint(*bounds) for bounds in TASKS[kind].bounds])
    if generated.split_of(text) == split: return dict(text=text, answer=str(solve(text)))


prompts = functools.partial(generated.prompts, "python", generate)


def solve(text: str) -> int:
  """The answer to a question.

  Example:
    >>> python.solve("S3,17=")
    1491
  """
  kind, numbers = _parts(text)
  return TASKS[kind].value(*numbers)


def program(text: str) -> str:
  """A program that prints the answer to a question.

  Example:
    >>> python.program("C7,100=")
    'print(len(range(7,100,7)))'
  """
  kind, numbers = _parts(text)
  return TASKS[kind].program.format(*numbers)


def _question(kind, numbers): return f"{kind}{','.join(map(str, numbers))}="


def _parts(text): return text[0], [int(number) for number in text[1:-1].split(",")]


def expert(prompt: "records.Prompt", rng, *, wrong_rate: ranges.Share = 0.0,
           slip_rate: ranges.Share = 0.0) -> list[str]:
  """The replies of an episode: a program, and what it prints as the answer.

  Args:
    prompt: Prompt of this module.
    rng: np.random.Generator.
    wrong_rate: share of episodes whose program has a wrong number and prints something else,
      which earns nothing.
    slip_rate: share of episodes whose first program lacks a bracket and is written again, which
      takes a second call.
  """
  text = _make_mistake(prompt.text, rng) if rng.random() < wrong_rate else prompt.text
  code = ">" + program(text)
  slips = [code[:-1]] if rng.random() < slip_rate else []
  return [*slips, code, f"#{solve(text)}"]


def _make_mistake(text, rng):
  """A question with another number and another answer."""
  kind, numbers = _parts(text)
  while True:
    changed, i = list(numbers), int(rng.integers(len(numbers)))
    low, high = TASKS[kind].bounds[i]
    changed[i] = int(rng.integers(low, high + 1))
    if solve(other := _question(kind, changed)) != solve(text): return other
