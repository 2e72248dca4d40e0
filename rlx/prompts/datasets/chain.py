r"""Chains of digit operations: multi-step reasoning whose every step can be checked.

  question    4M7m2M5=     start at 4, max with 7, min with 2, max with 5
  completion  7;2;5#5      every intermediate result, then the answer

Synthetic: a row is the seed and index that it is drawn from.
"""
import random
import zlib

from rlx.core import ranges
from rlx.core import records

SOURCE = "chain"  # io/rows.py: no file; the rows are arguments of `generate`.
HELD_OUT = 4      # One question in so many belongs to the "test" split.
OPS = {
    "M": max,
    "m": min,
    "+": lambda a, b: (a + b) % 10,
    "-": lambda a, b: (a - b) % 10,
    "*": lambda a, b: (a * b) % 10,
}

_DIGITS = "0123456789"


def prompts(rows, split):
  """Rows -> Prompts. Every row is redrawn until its question is of `split`.

  `meta["operations"]` is how many steps it takes.
  """
  for row in rows:
    drawn = generate(split=split, **row)
    yield records.Prompt(
        id=f"chain/{split}/{row['seed']}/{row['index']}", text=drawn["text"],
        answer=drawn["answer"], verifier="chain.answer",
        meta=dict(operations=(len(drawn["text"]) - 2) // 2))


def generate(seed, index, n_min=2, n_max=6, ops="Mm", split="train"):
  """Draws the question of (seed, index): {"text", "answer"}.

  Splits have no question in common: a hash of the text decides which one a
  question belongs to, and draws of the other split are drawn again.

  Args:
    n_min, n_max: operations, uniform in between, both included.
    ops: keys of OPS, each equally likely.
    split: "train" or "test".
  """
  if split not in ("train", "test"):
    raise ValueError(f"prompts: chain has no split {split!r}; train or test.")
  if not ops or set(ops) - set(OPS):
    raise ValueError(f"prompts.options.ops={ops!r}: one or more of {''.join(OPS)}.")
  if not 1 <= n_min <= n_max:
    raise ValueError(f"prompts.options: need 1 <= n_min={n_min} <= n_max={n_max}.")
  # Seeded by text: the same on every platform, and cheap to make.
  rng = random.Random(f"chain/{seed}/{index}")
  while True:
    text = rng.choice(_DIGITS)
    for _ in range(rng.randint(n_min, n_max)):
      text += rng.choice(ops) + rng.choice(_DIGITS)
    text += "="
    if split_of(text) == split:
      return dict(text=text, answer=str(solve(text)[-1]))


def split_of(text):
  """The split that a question belongs to."""
  return "train" if zlib.crc32(text.encode()) % HELD_OUT else "test"


def solve(text):
  """Every intermediate result of a question: "4M7m2M5=" -> [7, 2, 5]."""
  steps, value = [], int(text[0])
  for op, digit in zip(text[1:-1:2], text[2:-1:2]):
    value = OPS[op](value, int(digit))
    steps.append(value)
  return steps


def trace(prompt, rng, *, wrong_rate: ranges.SHARE):
  """A completion for supervised training, wrong on purpose at a known rate.

  Each step is a wrong digit with probability `wrong_rate`; the steps after it
  are right given it, as when a model slips once.

  Args:
    prompt: Prompt of this data set.
    rng: np.random.Generator.
    wrong_rate: share of steps that are wrong.
  """
  text = prompt.text
  steps, value = [], int(text[0])
  for op, digit in zip(text[1:-1:2], text[2:-1:2]):
    value = OPS[op](value, int(digit))
    if rng.random() < wrong_rate:
      value = (value + int(rng.integers(1, 10))) % 10
    steps.append(str(value))
  return ";".join(steps) + "#" + steps[-1]
