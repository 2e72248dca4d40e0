"""The update of scorers and judges beside the policy, on what verifiers say of its completions."""
import dataclasses

import jax
import jax.numpy as jnp

from rlx.core import records
from rlx.learner import sharding
from rlx.stages import passes as passes_lib, place, update_judge, update_prm

LABELS = ("verdicts", "altered")  # What a scorer learns from, see scorers.NAME.online in a config.
# The host field with the rows of one that reads the reference answer.
REFERENCE_ROWS = dict(verdicts="reference_rows", altered="altered_reference_rows")


@dataclasses.dataclass(frozen=True)
class UpdateScorers:
  """The stage that trains models beside the policy that judge its completions.

  The rewards of this step read the scores before it, which `score` or the judge has computed.

    verdicts   the verdict of each completion that learns, for a scorer with a head
    altered    1 of a right completion of each prompt, and 0 of the same with another answer
    SECTION    replies of the judge of this section, with rewards (stages/judge_replies.py)

  A scorer with scorers.NAME.reference learns, as it scores, with that text before the completion.

  Attributes:
    updates: {section of the config: (what it learns from, of the above, and its update)}.
  """
  updates: dict[str, tuple[str, update_prm.UpdatePrmHead | update_judge.UpdateJudge]]

  def __call__(self, state: records.TrainState,
               placed: place.Placed) -> tuple[records.TrainState, dict]:
    """(state, metrics)."""
    metrics: dict[str, jax.Array] = {}
    # Scorers that learn from the same completions share their placement and packing plans.
    rows: dict[tuple[str, str | None], place.Placed] = {}
    for name, (labels, update) in self.updates.items():
      own = placed.values.get(REFERENCE_ROWS.get(labels, ""), {}).get(name)
      shared = labels, None if own is None else name
      if shared not in rows: rows[shared] = self._place(labels, placed, own)
      state, _, more = update(state, rows[shared])
      metrics |= more
    return state, metrics

  def _place(self, labels: str, placed: place.Placed,
             own: records.Rollouts | None) -> place.Placed:
    """The rows that models learn from; of labels with one more token after each completion.

    Args:
      own: the rows (numpy) of a scorer that reads the reference answer; None: it does not.
    """
    if labels == "verdicts":
      batch = records.Batch(placed.batch.group, labels_BT=_label_ends(
          placed.rollouts.mask_BT, placed.batch.outcome_B, placed.batch.learn_B))
      if own is None: return placed.append(0).replace(batch=batch)
      host = own
    elif labels == "altered":
      host, labels_BT = placed.values["altered_rows"]
      host, batch = host if own is None else own, records.Batch(2, labels_BT=labels_BT)
    else:
      host, batch = placed.values["judge_replies"][labels]
    mesh = placed.plan.mesh
    rollouts, batch = sharding.place_rows((host, batch), mesh)
    return place.Placed(rollouts, batch, passes_lib.Planner(host, mesh, placed.plan.pack), {})


@jax.jit
def _label_ends(mask_BT: jax.Array, outcome_B: jax.Array, learn_B: jax.Array) -> jax.Array:
  """labels_BT: the verdict on the last token of a completion that learns, NaN elsewhere."""
  is_last_BT = mask_BT & ~jnp.pad(mask_BT[:, 1:], ((0, 0), (0, 1)))
  return jnp.where(is_last_BT & learn_B[:, None], outcome_B[:, None], jnp.nan)
