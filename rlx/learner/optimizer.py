"""Options -> optax transform: schedule, clipping, AdamW."""
import jax
import optax

from rlx.core import schedule as schedules


def adamw(*, lr, warmup_steps=0, schedule="constant", total_steps=0,
          final_fraction=0.0, b1=0.9, b2=0.999, eps=1e-8, weight_decay=0.0,
          decay="matrices", max_grad_norm=1.0, updates=1):
  """AdamW behind a global-norm clip.

  Args:
    lr: peak learning rate.
    warmup_steps, schedule, total_steps, final_fraction: of the learning rate, as in
      core/schedule.py; steps are iterations.
    b1, b2, eps, weight_decay: as in AdamW (Loshchilov & Hutter,
      arXiv:1711.05101); decay is multiplied by the learning rate.
    decay: "matrices" spares vectors (norms, biases), "all" does not (PyTorch).
    max_grad_norm: None is off.
    updates: optimizer steps of an iteration; no key of a config: build gives it.
  """
  if decay not in ("matrices", "all"):
    raise ValueError(f"decay={decay!r}: matrices or all.")
  rate = lambda k: lr * schedules.factor(
      k, warmup_steps=warmup_steps * updates, schedule=schedule,
      total_steps=total_steps * updates, final_fraction=final_fraction)
  rate(0)  # Refuses its options before anything compiles.
  mask = None if decay == "all" else lambda params: jax.tree.map_with_path(
      lambda path, _: not _is_vector(path[-1].key), params)
  clip = (optax.identity() if max_grad_norm is None
          else optax.clip_by_global_norm(max_grad_norm))
  return optax.chain(clip, optax.adamw(rate, b1, b2, eps,
                                       weight_decay=weight_decay, mask=mask))


def _is_vector(name):
  """Norm scales and biases, by name: stacked layers give them extra axes."""
  return name.startswith(("scale_", "b_")) or "_bias_" in name
