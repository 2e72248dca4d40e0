"""Warm-up and decay of a learning rate, a coefficient or a scale."""
import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

SCHEDULES = ("constant", "linear", "cosine")
OPTIONS = ("warmup_steps", "schedule", "total_steps", "final_fraction")


def factor(step, *, warmup_steps=0, schedule="constant", total_steps=0, final_fraction=0.0):
  """What the peak value is multiplied by at a step.

    (k + 1) / w                              k < w, so that the first step is never empty
    1                                        afterwards, constant
    1 - (1 - f) x                            linear, x = min((k - w) / (n - w), 1)
    f + (1 - f) (1 + cos(pi x)) / 2          cosine

  Args:
    step: k, steps done; may be traced.
    warmup_steps: w, steps of linear warm-up.
    schedule: "constant", "linear" or "cosine" after the warm-up, ...
    total_steps: n: ... ending at this step, ...
    final_fraction: f: ... at this fraction of the peak.
  Returns:
    float32 scalar.
  Raises:
    ValueError: an unknown schedule, or one that ends before its warm-up.
  """
  if schedule not in SCHEDULES:
    raise ValueError(f"schedule={schedule!r}: constant, linear or cosine.")
  if schedule != "constant" and not total_steps > warmup_steps:
    raise ValueError(f"total_steps={total_steps!r}: schedule={schedule!r} needs more than "
                     f"warmup_steps={warmup_steps!r}.")
  step = jnp.asarray(step, jnp.float32)
  x = jnp.clip((step - warmup_steps) / max(total_steps - warmup_steps, 1), 0, 1)
  after = {"constant": jnp.ones_like(x), "linear": 1 - x,
           "cosine": (1 + jnp.cos(jnp.pi * x)) / 2}[schedule]
  if schedule != "constant": after = final_fraction + (1 - final_fraction) * after
  return jnp.where(step < warmup_steps, (step + 1) / max(warmup_steps, 1), after)


@dataclasses.dataclass(frozen=True)
class Schedule:
  """A value by the number of steps done: peak * factor(step)."""
  peak: float
  warmup_steps: int = 0
  schedule: str = "constant"
  total_steps: int = 0
  final_fraction: float = 0.0

  def __call__(self, step: Any) -> jax.Array:
    return self.peak * factor(step, **{name: getattr(self, name) for name in OPTIONS})
