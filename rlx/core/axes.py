"""Axis letters: a tensor's name ends in its axes, so `logps_BT` has shape [B, T].

  P prompts per step    G completions per prompt    B = P * G, row p * G + g
  X prompt positions    T completion positions      S = X + T
  J reasoning steps     M tokens of a reference answer
  V vocabulary          D model      F feed-forward     L layers     I LoRA rank
  N query heads         K key-value heads               R = N / K
  H head size           Q queries of attention that read the same keys
  W rows decoded at once              Y packed rows of C columns
  U tokens in a list without padding  A see models/decode.py
  O devices over which rows are spread
  E verifiers or reward functions in addition to the one that gives the verdict
  Z reward functions that give each step a reward
  1 a kept axis of size one

In models/, E counts the experts of a mixture; in names of log-probs outside of it, K counts the
most likely tokens. In fields of a batch, I counts the parts of a verdict.
"""
from typing import Any


def dims(**arrays: Any) -> dict[str, int]:
  """Checks that every `name_AXES=array` agrees on sizes; returns {letter: size}.

  Raises:
    ValueError: an array has another number of axes than its name has letters,
      or two arrays disagree on the size of a letter (or a `1` is not 1).
  """
  sizes = {"1": 1}
  for name, x in arrays.items():
    axes = name.rpartition("_")[2]
    if x.ndim != len(axes):
      raise ValueError(f"{name} must have axes [{', '.join(axes)}], got shape {x.shape}.")
    for axis, size in zip(axes, x.shape):
      if sizes.setdefault(axis, size) != size:
        raise ValueError(f"Axis {axis} is {sizes[axis]} above but {size} in "
                         f"{name} with shape {x.shape}.")
  return sizes
