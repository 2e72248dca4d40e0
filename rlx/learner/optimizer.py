"""Options -> optax transform: schedule, clipping, AdamW."""
import jax
import optax


def adamw(*, lr, warmup_steps=0, schedule="constant", total_steps=0,
          final_lr_fraction=0.0, b1=0.9, b2=0.999, eps=1e-8, weight_decay=0.0,
          decay="matrices", max_grad_norm=1.0):
  """AdamW behind a global-norm clip.

  Args:
    lr: peak learning rate.
    warmup_steps: optimizer steps of linear warm-up; step k of it (from 0) uses
      (k + 1) / warmup_steps of `lr`, so that the first step is never empty.
    schedule: "constant", "linear" or "cosine" decay after the warm-up, ...
    total_steps: ... ending at this optimizer step, ...
    final_lr_fraction: ... at this fraction of `lr`.
    b1, b2, eps, weight_decay: as in AdamW (Loshchilov & Hutter,
      arXiv:1711.05101); decay is multiplied by the learning rate.
    decay: "matrices" spares vectors (norms, biases), "all" does not (PyTorch).
    max_grad_norm: None is off.
  """
  if schedule not in ("constant", "linear", "cosine"):
    raise ValueError(f"schedule={schedule!r}: constant, linear or cosine.")
  if schedule != "constant" and total_steps <= warmup_steps:
    raise ValueError(f"schedule={schedule!r} needs total_steps > warmup_steps, "
                     f"found {total_steps} and {warmup_steps}.")
  if decay not in ("matrices", "all"):
    raise ValueError(f"decay={decay!r}: matrices or all.")
  span = max(total_steps - warmup_steps, 1)
  after = {"constant": optax.constant_schedule(lr),
           "linear": optax.linear_schedule(lr, lr * final_lr_fraction, span),
           "cosine": optax.cosine_decay_schedule(lr, span, final_lr_fraction),
          }[schedule]
  rate = optax.join_schedules(
      [lambda k: lr * (k + 1) / max(warmup_steps, 1), after], [warmup_steps])
  mask = None if decay == "all" else lambda params: jax.tree.map_with_path(
      lambda path, _: not _is_vector(path[-1].key), params)
  clip = (optax.identity() if max_grad_norm is None
          else optax.clip_by_global_norm(max_grad_norm))
  return optax.chain(clip, optax.adamw(rate, b1, b2, eps,
                                       weight_decay=weight_decay, mask=mask))


def _is_vector(name):
  """Norm scales and biases, by name: stacked layers give them extra axes."""
  return name.startswith(("scale_", "b_")) or "_bias_" in name
