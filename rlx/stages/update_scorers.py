"""The update of scorers beside the policy, on what verifiers say of this step's completions."""
import dataclasses

import jax
import jax.numpy as jnp

from rlx.core import records
from rlx.learner import sharding
from rlx.stages import passes as passes_lib, place, update_prm

LABELS = ("verdicts", "altered")  # What a scorer learns from, see scorers.NAME.online in a config.
# The host field with the rows of one that reads the reference answer.
REFERENCE_ROWS = dict(verdicts="reference_rows", altered="altered_reference_rows")


@dataclasses.dataclass(frozen=True)
class UpdateScorers:
  """The stage that trains scorers with a head, each on labels at the ends of completions.

  The rewards of this step read the scores before it, which `score` has computed.

    verdicts   the verdict of each completion that learns
    altered    1 of a right completion of each prompt, and 0 of the same with another answer

  A scorer with scorers.NAME.reference learns, as it scores, with that text before the completion.

  Attributes:
    updates: {section of the config: (one of LABELS, the update that a PRM with a head has too)}.
  """
  updates: dict[str, tuple[str, update_prm.UpdatePrmHead]]

  def __call__(self, state: records.TrainState,
               placed: place.Placed) -> tuple[records.TrainState, dict]:
    """(state, metrics)."""
    metrics: dict[str, jax.Array] = {}
    # Scorers that learn from the same completions share their placement and packing plans.
    rows: dict[tuple[str, str | None], place.Placed] = {}
    for name, (labels, update) in self.updates.items():
      own = placed.values.get(REFERENCE_ROWS[labels], {}).get(name)
      shared = labels, None if own is None else name
      if shared not in rows: rows[shared] = self._place(labels, placed, own)
      state, _, more = update(state, rows[shared])
      metrics |= more
    return state, metrics

  def _place(self, labels: str, placed: place.Placed,
             own: records.Rollouts | None) -> place.Placed:
    """The rows with one more token after each completion, and their column labels_BT.

    Args:
      own: the rows (numpy) of a scorer that reads the reference answer; None: it does not.
    """
    if labels == "verdicts":
      batch = records.Batch(placed.batch.group, labels_BT=_label_ends(
          placed.rollouts.mask_BT, placed.batch.outcome_B, placed.batch.learn_B))
      if own is None: return placed.append(0).replace(batch=batch)
      host = own
    else:
      host, labels_BT = placed.values["altered_rows"]
      host, batch = host if own is None else own, records.Batch(2, labels_BT=labels_BT)
    mesh = placed.plan.mesh
    rollouts, batch = sharding.place_rows((host, batch), mesh)
    return place.Placed(rollouts, batch, passes_lib.Planner(host, mesh, placed.plan.pack), {})


@jax.jit
def _label_ends(mask_BT: jax.Array, outcome_B: jax.Array, learn_B: jax.Array) -> jax.Array:
  """labels_BT: the verdict on the last token of a completion that learns, NaN elsewhere."""
  is_last_BT = mask_BT & ~jnp.pad(mask_BT[:, 1:], ((0, 0), (0, 1)))
  return jnp.where(is_last_BT & learn_B[:, None], outcome_B[:, None], jnp.nan)
