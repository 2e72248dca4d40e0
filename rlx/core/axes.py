"""Axis letters: a tensor's name ends in its axes, so `logps_BT` has shape [B, T].

  P prompts per step    G completions per prompt    B = P * G, row p * G + g
  X prompt positions    T completion positions      S = X + T
  W rows decoded at once; in packing.py the columns of M packed rows   I LoRA rank
  M tokens of a reference answer; in models/ tokens of a flat list
  K in names of log-probs the most likely tokens
  Q query positions     J reasoning steps           V vocabulary
  D model   F feed-forward   N query heads   K kv heads   H head size   L layers
  E verifiers that score a completion beside the one that gives its verdict
  1 a kept axis of size one
"""


def dims(**arrays) -> dict[str, int]:
  """Checks that every `name_AXES=array` agrees on sizes; returns {letter: size}.

  Raises:
    ValueError: an array has another number of axes than its name has letters,
      or two arrays disagree on the size of a letter (or a `1` is not 1).
  """
  sizes = {"1": 1}
  for name, x in arrays.items():
    axes = name.rpartition("_")[2]
    if x.ndim != len(axes):
      raise ValueError(f"{name} must have axes [{', '.join(axes)}], "
                       f"got shape {x.shape}.")
    for axis, size in zip(axes, x.shape):
      if sizes.setdefault(axis, size) != size:
        raise ValueError(f"Axis {axis} is {sizes[axis]} above but {size} in "
                         f"{name} with shape {x.shape}.")
  return sizes
