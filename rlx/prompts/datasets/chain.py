r"""Chains of digit operations: multi-step reasoning whose every step can be checked.

  question    4M7m2M5=     start at 4, max with 7, min with 2, max with 5
  completion  7;2;5#5      every intermediate result, then the answer

Synthetic, `prompts.source="chain"`: a row has the arguments of `generate`.
"""
from collections.abc import Callable
import functools

from rlx.core import ranges
from rlx.prompts import generated

OPS: dict[str, Callable[[int, int], int]] = {
    "M": max, "m": min, "+": lambda a, b: (a + b) % 10, "-": lambda a, b: (a - b) % 10,
    "*": lambda a, b: (a * b) % 10}

_DIGITS = "0123456789"


def generate(seed, index, n_min=2, n_max=6, ops="Mm", split="train"):
  """Draws the question of (seed, index): {"text", "answer", "verifier", "meta"}.

  `meta["operations"]` is the number of steps.

  Args:
    n_min, n_max: least and largest number of operations, which is uniform.
    ops: keys of OPS, each equally likely.
    split: "train" or "test".
  """
  rng = generated.start("chain", seed, index, split)
  if not ops or set(ops) - set(OPS):
    raise ValueError(f"prompts.options.ops={ops!r}: one or more of {''.join(OPS)}.")
  if not 1 <= n_min <= n_max:
    raise ValueError(f"prompts.options: need 1 <= n_min={n_min} <= n_max={n_max}.")
  while True:
    text = rng.choice(_DIGITS)
    for _ in range(rng.randint(n_min, n_max)):
      text += rng.choice(ops) + rng.choice(_DIGITS)
    text += "="
    if generated.split_of(text) == split:
      return dict(text=text, answer=str(solve(text)[-1]), verifier="chain.answer",
                  meta=dict(operations=(len(text) - 2) // 2))


prompts = functools.partial(generated.prompts, "chain", generate)


def solve(text: str, change: Callable[[int], int] = lambda value: value) -> list[int]:
  """Every intermediate result of a question.

  Example:
    >>> chain.solve("4M7m2M5=")
    [7, 2, 5]

  Args:
    change: result of an operation -> the number that is stated and used from there on.
  """
  steps, value = [], int(text[0])
  for op, digit in zip(text[1:-1:2], text[2:-1:2]):
    value = change(OPS[op](value, int(digit)))
    steps.append(value)
  return steps


def trace(prompt, rng, *, wrong_rate: ranges.Share):
  """A completion for supervised training, with wrong steps at a known rate.

  Each step is a wrong digit with probability `wrong_rate`; the steps after it are right given
  that digit.

  Args:
    prompt: Prompt of this data set.
    rng: np.random.Generator.
    wrong_rate: share of steps that are wrong.
  """
  def change(value):
    return (value + int(rng.integers(1, 10))) % 10 if rng.random() < wrong_rate else value
  steps = solve(prompt.text, change)
  return ";".join(map(str, steps)) + f"#{steps[-1]}"
