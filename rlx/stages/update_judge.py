"""The update of a judge that learns beside the policy, by RL on its replies."""
import dataclasses

import jax
import jax.numpy as jnp

from rlx.core import masked, records
from rlx.learner import sharding
from rlx.losses import reward_model
from rlx.stages import learner as learner_lib, passes, place, rewards_advantages, update_policy


@dataclasses.dataclass(frozen=True, kw_only=True)
class UpdateJudge:
  """The stage that trains a judge on its replies of this step, by the verdicts of verifiers.

  Rewards, advantages and loss are those of a policy whose prompts are the requests.

  Attributes:
    balanced: whether the replies about right and about wrong completions have half of the weight.
    temperature: of its replies.
  """
  rewards_advantages: rewards_advantages.RewardsAdvantages
  update: update_policy.UpdatePolicy
  balanced: bool

  @property
  def learner(self) -> learner_lib.Learner:
    return self.update.learner

  @property
  def program(self) -> jax.stages.Wrapped:
    """The jitted optimizer step of the loss."""
    return self.update.program

  def __call__(self, state: records.TrainState, placed: place.Placed
               ) -> tuple[records.TrainState, place.Placed, dict]:
    """(state, placed, metrics) of replies with rewards, see stages/judge_replies.py.

    The metrics are the accuracy of the verdicts, of all replies and of those about right and about
    wrong completions, and those of the loss.
    """
    learner, name = self.learner, self.learner.name
    metrics = {f"{name}/{k}": x for k, x in _measure(placed.batch).items()}
    placed, _ = self.rewards_advantages(state, placed)
    if self.balanced: placed = placed.replace(batch=_balance(placed.batch))
    if not learner.has_one_step:
      score = passes.compile_logps(learner.config, self.update.temperature, learner.microbatches,
                                   sharding.row_shards(learner.mesh), (), False)
      placed = placed.with_columns(old_logps_BT=score(
          state.join_params(name), placed.rollouts.rows(),
          placed.plan(learner.config, learner.microbatches)))
    state, placed, measured = self.update(state, placed, state.step)
    return state, placed, metrics | {
        k.replace("rollouts/", f"{name}/"): x for k, x in measured.items()}


@jax.jit
def _measure(batch: records.Batch) -> dict[str, jax.Array]:
  """Means of the rewards, NaN of none; a reply that cannot be read counts as a wrong verdict."""
  valid_B, label_B = batch.learn_B, batch.label_B
  parts = dict(accuracy=valid_B, accuracy_of_right=valid_B & label_B,
               accuracy_of_wrong=valid_B & ~label_B)
  return {"replies": jnp.sum(valid_B)} | {
      name: jnp.where(jnp.any(rows_B), masked.mean(batch.reward_B, rows_B), jnp.nan)
      for name, rows_B in parts.items()}


@jax.jit
def _balance(batch: records.Batch) -> records.Batch:
  """The batch with advantages times n / (2 n_class), n replies and n_class of the same label."""
  weight_B = reward_model.class_weights(batch.label_B.astype(jnp.float32), batch.learn_B)
  return batch.replace(advantages_BT=weight_B[:, None] * batch.advantages_BT)
