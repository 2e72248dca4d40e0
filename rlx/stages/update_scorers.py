"""The update of scorers beside the policy, on what verifiers say of this step's completions."""
import dataclasses

import jax
import jax.numpy as jnp

from rlx.core import records
from rlx.learner import sharding
from rlx.stages import passes as passes_lib, place, update_prm

# What a scorer learns from, see scorers.NAME.online in a config.
LABELS = ("verdicts", "scores", "altered")


@dataclasses.dataclass(frozen=True)
class UpdateScorers:
  """The stage that trains scorers with a head, each on labels at the ends of completions.

  The rewards of this step read the scores before it, which `score` has computed.

    verdicts   the verdict of each completion that learns
    scores     its first score of verifier.scores, where the second is above 1/2
    altered    1 of a right completion of each prompt, and 0 of the same with another answer

  Attributes:
    updates: {section of the config: (one of LABELS, the update that a PRM with a head has too)}.
  """
  updates: dict[str, tuple[str, update_prm.UpdatePrmHead]]

  def __call__(self, state: records.TrainState,
               placed: place.Placed) -> tuple[records.TrainState, dict]:
    """(state, metrics)."""
    metrics: dict[str, jax.Array] = {}
    # Scorers that learn from the same completions share their placement and packing plans.
    rows = {labels: self._place(labels, placed)
            for labels in sorted({labels for labels, _ in self.updates.values()})}
    for labels, update in self.updates.values():
      state, _, more = update(state, rows[labels])
      metrics |= more
    return state, metrics

  def _place(self, labels: str, placed: place.Placed) -> place.Placed:
    """The rows with one more token after each completion, and their column labels_BT."""
    if labels != "altered":
      batch = placed.batch
      label_B = (batch.outcome_B if labels == "verdicts" else
                 jnp.where(batch.scores_BE[:, 1] > 0.5, batch.scores_BE[:, 0], jnp.nan))
      labels_BT = _label_ends(placed.rollouts.mask_BT, label_B, batch.learn_B)
      return placed.append(0).replace(
          batch=records.Batch(placed.batch.group, labels_BT=labels_BT))
    host, labels_BT = placed.values["altered_rows"]
    rollouts, batch = sharding.place_rows(
        (host, records.Batch(2, labels_BT=labels_BT)), placed.plan.mesh)
    return place.Placed(rollouts, batch, passes_lib.Planner(
        host, placed.plan.mesh, placed.plan.pack), {})


@jax.jit
def _label_ends(mask_BT: jax.Array, label_B: jax.Array, learn_B: jax.Array) -> jax.Array:
  """labels_BT: the label on the last token of a completion that learns, NaN elsewhere."""
  is_last_BT = mask_BT & ~jnp.pad(mask_BT[:, 1:], ((0, 0), (0, 1)))
  return jnp.where(is_last_BT & learn_B[:, None], label_B[:, None], jnp.nan)
