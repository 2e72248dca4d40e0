"""Trees in which a completion is right if each of its tokens is a right step."""
import jax
import jax.numpy as jnp
import numpy as np


def right_steps(key, world, count):
  """ok_PNV: at every node `count` tokens, drawn at random, are right steps."""
  draw_PNV = jax.random.uniform(key, (world.prompts, world.nodes, world.vocab))
  return draw_PNV <= jnp.sort(draw_PNV)[..., count - 1:count]


def right_leaves(world, ok_PNV):
  """right_PL: every step is right."""
  tokens_LT, mask_LT = map(jnp.asarray, world.leaves)
  nodes_LT = world.batch(jnp.zeros(len(tokens_LT), int), tokens_LT, mask_LT).nodes_BT
  return jnp.all(ok_PNV[:, nodes_LT, tokens_LT] | ~mask_LT, axis=2)


def verdict_B(ok_PNV, batch):
  """Of a batch, 1 where every step is right."""
  ok_BT = ok_PNV[batch.prompt_B[:, None], batch.nodes_BT, batch.tokens_BT]
  return 1.0 * jnp.all(ok_BT | ~batch.mask_BT, axis=1)


def saved(found_IS, other_IS):
  """Share of the other's steps that an arm saves on the way to what both reach.

  Args:
    found_IS, other_IS: accuracy of every seed before each step and at the end.
  """
  level_I1 = np.minimum(found_IS[:, -1:], other_IS[:, -1:])
  first_I, other_I = (np.argmax(x_IS >= level_I1, axis=1) for x_IS in (found_IS, other_IS))
  return 1 - first_I / np.maximum(other_I, 1)
