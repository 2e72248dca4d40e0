"""Updates the reference model of the policy's KL, if it is not fixed to the initial policy."""
from typing import Any

import jax
import jax.numpy as jnp


def move(reference: Any, policy: Any, *, mix: float) -> Any:
  """Returns the next reference, an interpolation between the last one and the policy.

    reference <- (1 - mix) reference + mix policy

  The result is a copy even if mix = 1, because the policy's arrays are donated to its next update.

  Source: Gorbatovski et al. 2024, arXiv:2404.09656 (soft update, mix < 1; hard
  update, mix = 1); Liu et al. 2025, arXiv:2507.12507 (hard reset). Differs from
  the papers: nothing known.

  Args:
    reference, policy: trees of parameters of the same shapes.
    mix: weight of the policy, in (0, 1].
  Example:
    >>> reference.move(jnp.zeros(2), jnp.ones(2), mix=0.25)
    Array([0.25, 0.25], dtype=float32)
  """
  if mix == 1: return jax.tree.map(jnp.copy, policy)
  return jax.tree.map(lambda r, p: (1 - mix) * r + mix * p, reference, policy)
