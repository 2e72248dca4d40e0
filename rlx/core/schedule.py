"""Warm-up and decay of a learning rate, a coefficient or a scale."""
import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

SCHEDULES = ("constant", "linear", "cosine")
OPTIONS = ("warmup_steps", "schedule", "total_steps", "final_fraction")


@dataclasses.dataclass(frozen=True)
class Schedule:
  """A value by the number k of steps done: the peak, multiplied by

    (k + 1) / w                              k < w, so that the first step is never empty
    1                                        afterwards, constant
    1 - (1 - f) x                            linear, x = min((k - w) / (n - w), 1)
    f + (1 - f) (1 + cos(pi x)) / 2          cosine

  Attributes:
    peak: the largest value.
    warmup_steps: w, steps of linear warm-up.
    schedule: "constant", "linear" or "cosine" after the warm-up, ...
    total_steps: n: ... ending at this step, ...
    final_fraction: f: ... at this fraction of the peak.
  """
  peak: float
  warmup_steps: int = 0
  schedule: str = "constant"
  total_steps: int = 0
  final_fraction: float = 0.0

  def __call__(self, step: Any) -> jax.Array:
    """The value after `step` steps, which may be traced, as a float32 scalar.

    Raises:
      ValueError: an unknown schedule, or one that ends before its warm-up.
    """
    warmup, kind, f = self.warmup_steps, self.schedule, self.final_fraction
    if kind not in SCHEDULES: raise ValueError(f"schedule={kind!r}: constant, linear or cosine.")
    if kind != "constant" and not self.total_steps > warmup:
      raise ValueError(f"total_steps={self.total_steps!r}: schedule={kind!r} needs more than "
                       f"warmup_steps={warmup!r}.")
    step = jnp.asarray(step, jnp.float32)
    x = jnp.clip((step - warmup) / max(self.total_steps - warmup, 1), 0, 1)
    after = {"constant": jnp.ones_like(x), "linear": 1 - x,
             "cosine": (1 + jnp.cos(jnp.pi * x)) / 2}[kind]
    if kind != "constant": after = f + (1 - f) * after
    return self.peak * jnp.where(step < warmup, (step + 1) / max(warmup, 1), after)
