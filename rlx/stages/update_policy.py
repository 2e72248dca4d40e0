"""The update of the policy: its loss, and the optimizer steps on a batch with advantages."""
import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp

from rlx.core import records, resolve
from rlx.core.options import key
from rlx.losses import aggregate, diagnostics, divergence, entropy
from rlx.models import logps
from rlx.stages import learner as learner_lib, methods as methods_lib, place, rewards_advantages


@dataclasses.dataclass(frozen=True, kw_only=True)
class PolicyLoss:
  """The policy's loss over a minibatch, or over one of its microbatches.

    (rollout correction) * loss(token weight * advantages) + entropy bonus + KL

  These terms are aggregated together; the loss of learner.auxiliary is added to the result.
  """
  methods: methods_lib.Methods
  aggregation: aggregate.Mode = key("learner.aggregation")
  max_tokens: int = key("rollouts.max_tokens")    # the "constant" modes of aggregate divide by it
  entropy_coef: float = key("learner.entropy_coef")
  auxiliary_coef: float = key("learner.auxiliary.coef")
  kl_kind: divergence.Kind = key("kl.kind")
  kl_off_policy: bool = key("kl.off_policy")

  def __call__(self, batch: records.Batch, kl_coef_B: jax.Array,
               whole: dict | None = None) -> tuple[records.Weighted, dict]:
    """(loss, metrics).

    Args:
      batch: with the log-probs and entropy of the policy being updated.
      whole: the result of `compute_whole` for the minibatch that `batch` is a part of; if it is
        empty or None, `batch` is the whole minibatch.
    """
    methods, batch = self.methods, with_old_logps(batch)
    if not whole: whole = self.compute_whole(jax.lax.stop_gradient(batch))
    logps_BT, entropy_BT, learn_BT = batch.logps_BT, batch.entropy_BT, batch.learn_BT
    metrics = diagnostics.policy(batch)
    batch = weight_advantages(batch, whole)
    def value_of(name: str) -> Any:
      value, own_metrics = resolve.split_metrics(getattr(methods, name)(batch, **whole[name]))
      metrics.update(diagnostics.means(own_metrics, learn_BT))
      return value
    loss_BT = value_of("policy")
    if methods.rollout_correction:
      weight_BT = value_of("rollout_correction")
      loss_BT = weight_BT * loss_BT
      metrics["rollout_correction_mean"] = aggregate.mean(weight_BT, learn_BT)
    if self.entropy_coef:
      loss_BT = loss_BT + entropy.bonus(entropy_BT, learn_BT, coef=self.entropy_coef)
    if methods.has_kl_loss:
      kl_BT = divergence.estimate(logps_BT, batch.ref_logps_BT, learn_BT, kind=self.kl_kind)
      if self.kl_off_policy:
        kl_BT = divergence.correct_off_policy(kl_BT, logps_BT, batch.old_logps_BT, learn_BT)
      loss_BT = loss_BT + kl_coef_B[:, None] * kl_BT
    if "ref_logps_BT" in batch:
      metrics["kl_ref"] = aggregate.mean(logps_BT - batch.ref_logps_BT, learn_BT)
    total = aggregate.aggregate(loss_BT, learn_BT, mode=self.aggregation, length=self.max_tokens)
    if methods.auxiliary:
      metrics["auxiliary"] = auxiliary = value_of("auxiliary")
      total = total.replace(total=total.total + whole["auxiliary_B"][0] * auxiliary.total)
    return total, metrics

  def compute_whole(self, batch: records.Batch) -> dict[str, Any]:
    """What microbatches cannot compute, one row for each row of the minibatch.

      policy, rollout_correction, auxiliary   {argument: rows} that the method asks for
      token_weight_BT    weights of learner.token_weight
      auxiliary_B        factor of learner.auxiliary's sum:
                         coef (weight of the policy's loss) / (weight of the auxiliary loss)

    With this factor each of the two losses is a mean with its own weight.
    """
    methods, whole = self.methods, {}
    batch = with_old_logps(batch)
    if methods.token_weight: whole["token_weight_BT"] = methods.token_weight(batch)
    batch = weight_advantages(batch, whole)
    for name in ("policy", "rollout_correction", "auxiliary"):
      whole[name] = learner_lib.compute_whole(getattr(methods, name), batch)
    if methods.auxiliary:
      zeros_BT = jnp.zeros(batch.action_BT.shape)  # The weights do not depend on log-probs.
      own = aggregate.aggregate(zeros_BT, batch.learn_BT, mode=self.aggregation).weight
      other = resolve.split_metrics(methods.auxiliary(batch.replace(
          logps_BT=zeros_BT, self_logps_B=zeros_BT[:, 0]), **whole["auxiliary"]))[0].weight
      divided = lambda weight: jnp.where(weight > 0, weight, 1)
      whole["auxiliary_B"] = jnp.full_like(
          batch.outcome_B, self.auxiliary_coef * divided(own) / divided(other))
    return whole

  def reads_logps_whole(self, names: tuple[str, ...]) -> bool:
    """Whether `compute_whole` reads log-probs of the policy or one of these statistics."""
    methods = self.methods
    return methods.token_weight is not None or learner_lib.reads_whole(
        {"logps_BT", "old_logps_BT", "entropy_BT", "self_logps_B", *names},
        methods.policy, methods.rollout_correction, methods.auxiliary)


def with_old_logps(batch: records.Batch) -> records.Batch:
  """The Batch as losses read it: with the policy's log-probs before the update.

  A batch without old_logps_BT has one optimizer step. Its own log-probs are then those before
  the update: every ratio is 1, and a forward pass is saved.
  """
  if "old_logps_BT" in batch or "logps_BT" not in batch: return batch
  return batch.replace(old_logps_BT=jax.lax.stop_gradient(batch.logps_BT))


def weight_advantages(batch: records.Batch, whole: dict) -> records.Batch:
  """The Batch with its advantages multiplied by learner.token_weight, if there is one."""
  if "token_weight_BT" not in whole: return batch
  return batch.replace(advantages_BT=whole["token_weight_BT"] * batch.advantages_BT)


@dataclasses.dataclass(frozen=True, kw_only=True)
class UpdatePolicy:
  """The stage that trains the policy on advantages. It sets old_logps_BT, if Score did not.

  With one optimizer step for the batch these are the log-probs of the gradient's own forward pass;
  with several the scoring program computes them before the first.

  Attributes:
    temperature: the sampling temperature.
    statistics: (field, spec) of each distribution statistic that the loss reads.
    token_id: id of likelihood.token, for auxiliary.last_token.
  """
  learner: learner_lib.Learner
  loss: PolicyLoss
  temperature: float
  statistics: tuple = ()
  token_id: int | None = None

  def __call__(self, state: records.TrainState, placed: place.Placed,
               step: int) -> tuple[records.TrainState, place.Placed, dict]:
    """(state, placed, metrics) of a batch with advantages."""
    if "old_logps_BT" not in placed.batch and not self.learner.has_one_step:
      assert placed.passes is not None
      placed = placed.with_columns(old_logps_BT=placed.passes.old("old_logps_BT"))
    kl_coef_B = jnp.full_like(placed.batch.outcome_B, state.kl_coef)
    longer = placed
    if self._reads_self:
      assert self.token_id is not None  # As build/plan.py checks.
      longer = placed.append(self.token_id)
    state, metrics, logps_BT, _ = self.learner.learn(
        self.program, state, self.learner.make_minibatches(longer, kl_coef_B, step))
    if "old_logps_BT" not in placed.batch: placed = placed.with_columns(old_logps_BT=logps_BT)
    return state, placed, metrics | rewards_advantages.old_metrics(placed.batch, self.temperature)

  @functools.cached_property
  def program(self) -> jax.stages.Wrapped:
    """The jitted optimizer step, see `learner.step.make`."""
    names = tuple(name for name, _ in self.statistics)
    forward = self._forward if self.loss.reads_logps_whole(names) else None
    return self.learner.make(self._loss, lambda params, part: self.learner.add_whole(
        params, part, self.loss.compute_whole, forward))

  @property
  def _reads_self(self) -> bool:
    auxiliary = self.loss.methods.auxiliary
    return auxiliary is not None and "self_logps_B" in auxiliary.fields

  def _forward(self, params: records.Params, part: learner_lib.Minibatch) -> dict[str, jax.Array]:
    names, specs = zip(*self.statistics) if self.statistics else ((), ())
    given = dict(zip(("logps_BT", "entropy_BT", *names), logps.of_rollouts(
        params, self.learner.config, part.rollouts, part.plan, temperature=self.temperature,
        statistics=specs, among_kept=True)))
    if not self._reads_self: return given
    # The token after the completion, at temperature 1 except for the normaliser.
    self_logps_B = self.temperature * jnp.take_along_axis(
        given["logps_BT"], part.rollouts.completion_len_B[:, None] - 1, axis=1, mode="clip")[:, 0]
    return dict({k: x[:, :part.batch.action_BT.shape[1]] for k, x in given.items()},
                self_logps_B=self_logps_B)

  def _loss(self, params: records.Params,
            part: learner_lib.Minibatch) -> tuple[records.Weighted, dict, jax.Array]:
    assert part.kl_coef_B is not None
    given = self._forward(params, part)
    total, metrics = self.loss(part.batch.replace(**given), part.kl_coef_B, part.whole)
    return total, metrics, given["logps_BT"]
