"""Questions that a module draws from a seed, with two splits that have no question in common.

Rows have the arguments of the module's `generate`, among them a seed and an index.
"""
from collections.abc import Callable, Iterable, Iterator, Mapping
import random
from typing import TYPE_CHECKING, Any
import zlib

if TYPE_CHECKING: from rlx.core import records

HELD_OUT = 4  # One in four questions belongs to the "test" split.


def split_of(text: str) -> str:
  """The split that a question belongs to, which a hash of its text decides.

  A question of the other split is drawn again.
  """
  return "train" if zlib.crc32(text.encode()) % HELD_OUT else "test"


def start(name: str, seed: int, index: int, split: str) -> random.Random:
  """The generator from which the question of (seed, index) is drawn.

  Raises:
    ValueError: the split is neither train nor test.
  """
  if split not in ("train", "test"):
    raise ValueError(f"prompts: {name} has no split {split!r}; train or test.")
  # A text as seed gives the same questions on every platform, and is fast.
  return random.Random(f"{name}/{seed}/{index}")


def prompts(name: str, generate: Callable[..., dict[str, Any]], rows: Iterable[Mapping],
            split: str, *, verifier: str = "") -> "Iterator[records.Prompt]":
  """Rows -> Prompts, with the fields that `generate(split=split, **row)` returns.

  Args:
    verifier: of all prompts; "": the one that `generate` returns.
  """
  from rlx.core import records  # Processes of environments do not import jax.
  for row in rows:
    if "seed" not in row:
      raise ValueError(f"prompts.dataset={name!r}: it makes questions of its own; for rows with a "
                       "question, prompts.dataset=jsonl.")
    yield records.Prompt(id=f"{name}/{split}/{row['seed']}/{row['index']}",
                         **generate(split=split, **row) | (
                             dict(verifier=verifier) if verifier else {}))
