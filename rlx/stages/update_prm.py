"""The update of the process reward model."""
from typing import Callable

import jax
import jax.numpy as jnp

from rlx.core import resolve
from rlx.learner import optimizer
from rlx.losses import diagnostics
from rlx.losses import reward_model
from rlx.stages import learner as learner_lib
from rlx.stages import passes as passes_lib


def prm(loss_fn: Callable, learner: learner_lib.Learner, *, order: str, snapshot: bool, starts_equal: bool,
        parts: int) -> tuple[Callable, jax.stages.Wrapped]:
  """The PRM's update; `learn` returns the batch with the log-probs that its rewards read.

  Args:
    loss_fn: Methods.prm.
    order, snapshot: see prm.order and prm.snapshot.
    starts_equal: whether the PRM's reference is the PRM before its first update.
    parts: microbatches of a forward pass over the whole batch.
  Returns:
    learn(state, placed) -> (state, batch, metrics), and the jitted step.
  """
  config, shards = learner.config, learner.shards
  # One for the whole batch, cut as for the reference's log-probs, and one for a minibatch.
  logps_fn = passes_lib.compiled(config, 1.0, parts, shards)
  part_logps_fn = passes_lib.compiled(config, 1.0, learner.microbatches, shards)

  def forward(params, rollouts, batch, plan):
    return dict(prm_logps_BT=passes_lib.forward(params, config, rollouts, plan, with_entropy=False)[0])

  def loss(params, part):
    rollouts, batch, plan, whole = part
    batch = batch.replace(**forward(params, rollouts, batch, plan))
    total, metrics = resolve.measured(loss_fn(batch, **whole))
    return total, diagnostics.means(metrics, batch.learn_BT), batch.prm_logps_BT

  update = learner.make(loss, before=learner_lib.add_whole(
      forward, lambda batch: learner_lib.statistics_of(loss_fn, batch), learner_lib.asks_for({"prm_logps_BT"}, loss_fn),
      learner))

  def learn(state, placed):
    batch = placed.batch
    if state.prm is None or order == "none": return state, batch, {}
    is_first = optimizer.updates_done(state.prm_opt) == 0
    state, metrics, logps_BT, before = learner.learn(
        update, state, "prm", placed, before=None if snapshot else lambda params, part:
        part_logps_fn(params, part[0], part[-1]))
    if "prm_old_logps_BT" not in batch:  # See Methods.given_by_prm.
      # Two programs round differently; equal weights must give a log-ratio of exactly 0.
      if starts_equal: logps_BT = jnp.where(is_first, batch.prm_ref_logps_BT, logps_BT)
      batch = batch.replace(prm_logps_BT=logps_BT, prm_old_logps_BT=logps_BT)
    if order == "double":
      batch = batch.replace(prm_logps_BT=logps_fn(
          state.full("prm"), placed.rollouts.rows(), placed.plan(config, parts)))
    elif not snapshot:
      batch = batch.replace(prm_logps_BT=jnp.concatenate(before))
    return state, batch, metrics

  return learn, update


def prm_head(learner: learner_lib.Learner) -> tuple[Callable, jax.stages.Wrapped]:
  """The update of a PRM with a head: cross-entropy of its log-odds at the ends of steps.

  Returns:
    learn(state, placed) -> (state, batch, metrics), and the jitted step. The batch's column
    labels_BT is in [0, 1] on the last token of each step and NaN elsewhere. The rollouts have
    a token appended to each completion (`padding.append`).
  """
  def loss(params, part):
    rollouts, batch, plan = part
    scores_B = passes_lib.values(params, learner.config, rollouts, plan)[:, 1:].ravel()
    labels_B = batch.labels_BT.ravel()
    return reward_model.bce(scores_B, labels_B, ~jnp.isnan(labels_B)), {}, None

  update = learner.make(loss)

  def learn(state, placed):
    state, metrics, *_ = learner.learn(update, state, "prm", placed)
    return state, placed.batch, metrics

  return learn, update
