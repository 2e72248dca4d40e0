"""Episodes in trees of tokens: each token is a turn, and what was read before it follows from the
turns before, so that two turns have the same history if they are drawn at the same node."""
import jax.numpy as jnp

from rlx.core import masked


def columns(batch):
  """Returns the columns of a tabular.Batch that methods of turns read, without rewards."""
  turn_BT = jnp.broadcast_to(jnp.arange(batch.mask_BT.shape[1])[None], batch.mask_BT.shape)
  return dict(turn_BT=turn_BT, turn_ends_BT=batch.mask_BT, turn_prefix_BT=batch.nodes_BT)


def with_outcome(rewards_BT, outcome_B, mask_BT):
  """Returns turn_rewards_BT: rewards, and on the last turn the outcome instead."""
  return jnp.where(masked.last(mask_BT), outcome_B[:, None], rewards_BT)
