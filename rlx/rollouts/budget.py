"""The number of completions that a second pass adds to each prompt, from a first pass."""
from typing import Literal

from jax import Array
import jax.numpy as jnp
import numpy as np

def dars(right_P: Array, n: int, most: int, *, schedule: Literal["equal", "hard"] = "equal",
         divides_by_std: bool = False) -> Array:
  """Completions of a second pass, so that hard prompts have as much weight as others.

    a = right / n, 1/2 / n where none was right
    S = 2 a (1 - a), or 2 sqrt(a (1 - a)) where advantages are divided by the spread
    equal    n' = ceil((M - n S) / S)                M = n max_a S
    hard     n' = ceil((2 (1 - a) M - n S) / S)

  n S is the sum of a group's |advantages|, largest at a = 1/2: equal lifts prompts below
  that to its value, hard further the harder they are. With a >= 1/2 there are none.

  Source: DARS, Yang et al. 2025, arXiv:2508.13755, and its code. Differs from the
  paper: nothing known.

  Args:
    right_P: right completions of the first pass, 0 to n.
    n: completions of the first pass.
    most: largest number of completions of a prompt in both passes, >= n; the code has 32
      with equal and 64 with hard.
    schedule: equal or hard.
    divides_by_std: whether the estimator divides by the standard deviation of the group.
  Returns:
    more_P, int32 in [0, most - n].
  Example: of 8 completions 1, 4 and 8 were right.
    >>> budget.dars(jnp.array([1, 4, 8]), 8, 32)
    Array([11,  0,  0], dtype=int32)
  """
  a_P = jnp.where(right_P == 0, 0.5, right_P) / n
  def mass(a): return 2 * jnp.sqrt(a * (1 - a)) if divides_by_std else 2 * a * (1 - a)
  aim_P = n * mass(0.5) * (2 * (1 - a_P) if schedule == "hard" else 1)
  mass_P = mass(jnp.minimum(a_P, 0.5))
  # Subtracts a tolerance, so that rounding errors do not lift a whole number to the next one.
  more_P = jnp.ceil((aim_P - n * mass_P) / mass_P - 1e-4)
  return jnp.where(a_P < 0.5, jnp.clip(more_P, 0, most - n), 0).astype(jnp.int32)


def rows(more_P: np.ndarray, n: int, most: int) -> tuple[list[tuple[int, int]], np.ndarray]:
  """The places of the completions of both passes in groups of `most`. Numpy.

  The second pass draws n completions at a time, as the first; surplus ones are not used.

  Args:
    more_P: completions wanted in addition to the first n, at most `most` - n.
  Returns:
    again: (prompt, round) of each n completions to draw; rounds of a prompt are consecutive.
    row_PG: number of the completion in each place, counting those of the first pass and then
      those of `again`; -1 if the place is empty.
  """
  rounds_P = -(-more_P // n)
  again = [(p, i) for p, rounds in enumerate(rounds_P) for i in range(rounds)]
  p = len(more_P)
  second_P1 = (p + np.cumsum(rounds_P) - rounds_P - 1)[:, None] * n
  g_1G = np.arange(most)[None, :]
  row_PG = g_1G + np.where(g_1G < n, np.arange(p)[:, None] * n, second_P1)
  return again, np.where(g_1G < n + more_P[:, None], row_PG, -1)
