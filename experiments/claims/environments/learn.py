"""Gradient descent for toy environments, with the trainer's own step (rlx/learner/step.py)."""
import jax
import jax.numpy as jnp
import numpy as np

from rlx.learner import optimizer as optimizer_lib, step as learner_step


def step(loss_of, transform):
  """Returns the trainer's optimizer step for one loss.

  Args:
    loss_of: function from (params, batch) to a Weighted loss.
    transform: optax transform. Toy environments tune the learning rate of plain SGD or Adam,
      without the trainer's clipping and schedules.
  Returns:
    a function from (params, optimizer state, batch) to (params, optimizer state).
  """
  optimizer = optimizer_lib.Optimizer(*transform, rate=lambda state: jnp.float32(jnp.nan))
  update = learner_step.make(lambda params, batch: (loss_of(params, batch), {}, None), optimizer)
  return lambda params, opt_state, batch: update(params, opt_state, batch)[:2]


def descend(params, loss_of, transform, *, steps=None, batches=None):
  """Returns the parameters after one optimizer step on each batch, or `steps` on all data.

  Args:
    loss_of: function from (params, batch) to a Weighted loss; without batches, batch is None.
    batches: tree of [steps, ...] arrays.
  """
  update = step(loss_of, transform)
  learned, _ = jax.lax.scan(
      lambda learner, batch: (update(*learner, batch), None),
      (params, transform.init(params)), batches, length=steps)
  return learned[0]


def arm(run, measure=None):
  """Returns an arm of a check: `run(seed, rate)` of all seeds at once, then `measure` of each.

  Args:
    run: function that jax can compile.
    measure: function from the arrays of one run to a number, in Numpy; None: `run` returns it.
  """
  run = jax.jit(jax.vmap(run))
  if measure is None: return run
  return lambda seeds, rates: np.array([
      measure(*one) for one in zip(*jax.device_get(run(seeds, rates)))])
