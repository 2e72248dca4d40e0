"""The update of the policy."""
import dataclasses
from typing import Callable

import jax
import jax.numpy as jnp

from rlx.core.options import key
from rlx.core import resolve
from rlx.losses import aggregate
from rlx.losses import diagnostics
from rlx.losses import divergence
from rlx.losses import entropy
from rlx.stages import learner as learner_lib
from rlx.stages import methods as methods_lib
from rlx.stages import passes as passes_lib
from rlx.stages import rewards_advantages


@dataclasses.dataclass(frozen=True, kw_only=True)
class PolicyLoss:
  """Options of the policy's loss that do not belong to a method."""
  aggregation: str = key("learner.aggregation")   # one of aggregate.MODES
  max_tokens: int = key("rollouts.max_tokens")    # the "constant" modes of aggregate divide by it
  entropy_coef: float = key("learner.entropy_coef")
  auxiliary_coef: float = key("learner.auxiliary.coef")
  kl_kind: str = key("kl.kind")


def policy_loss(methods: methods_lib.Methods, options: PolicyLoss) -> Callable:
  """Returns a function (batch, kl_coef_B, whole) -> (Weighted, metrics): the policy's loss.

    (rollout correction) * loss(token weight * advantages) + entropy bonus + KL

  These terms are aggregated together; the loss of learner.auxiliary is added to the result.
  `batch` has the log-probs and entropy of the policy being updated. `whole` is the result of
  `policy_whole` for the minibatch that `batch` is a part of; if it is empty or None, `batch`
  is the whole minibatch.
  """
  whole_of = policy_whole(methods, options)

  def loss(batch, kl_coef_B, whole=None):
    batch = _read(batch)
    if not whole: whole = whole_of(jax.lax.stop_gradient(batch))
    logps_BT, entropy_BT, learn_BT = batch.logps_BT, batch.entropy_BT, batch.learn_BT
    metrics = diagnostics.policy(batch)
    batch = _weighted(batch, whole)
    def value_of(name):
      value, own_metrics = resolve.measured(getattr(methods, name)(batch, **whole[name]))
      metrics.update(diagnostics.means(own_metrics, learn_BT))
      return value
    loss_BT = value_of("policy")
    if methods.rollout_correction:
      weight_BT = value_of("rollout_correction")
      loss_BT = weight_BT * loss_BT
      metrics["rollout_correction_mean"] = aggregate.mean(weight_BT, learn_BT)
    if options.entropy_coef:
      loss_BT = loss_BT + entropy.bonus(entropy_BT, learn_BT, coef=options.entropy_coef)
    if methods.has_kl_loss:
      kl_BT = divergence.estimate(logps_BT, batch.ref_logps_BT, learn_BT,
                                  kind=options.kl_kind)
      loss_BT = loss_BT + kl_coef_B[:, None] * kl_BT
    if "ref_logps_BT" in batch:
      metrics["kl_ref"] = aggregate.mean(
          logps_BT - batch.ref_logps_BT, learn_BT)
    total = aggregate.aggregate(loss_BT, learn_BT, mode=options.aggregation,
                                length=options.max_tokens)
    if methods.auxiliary:
      auxiliary = value_of("auxiliary")
      metrics["auxiliary"] = auxiliary
      total = total.replace(total=total.total + whole["auxiliary_B"][0] * auxiliary.total)
    return total, metrics

  return loss


def policy_whole(methods: methods_lib.Methods, options: PolicyLoss) -> Callable:
  """Returns a function of a minibatch's Batch that computes what microbatches cannot.

  Its result has one row for each row of the minibatch:

    policy, rollout_correction, auxiliary   {argument: rows} that the method asks for
    token_weight_BT    weights of learner.token_weight
    auxiliary_B        factor of learner.auxiliary's sum:
                       coef (weight of the policy's loss) / (weight of the auxiliary loss)

  With this factor each of the two losses is a mean with its own weight.
  """
  def whole_of(batch):
    batch, whole = _read(batch), {}
    if methods.token_weight: whole["token_weight_BT"] = methods.token_weight(batch)
    batch = _weighted(batch, whole)
    for name in ("policy", "rollout_correction", "auxiliary"):
      whole[name] = learner_lib.statistics_of(getattr(methods, name), batch)
    if methods.auxiliary:
      zeros_BT = jnp.zeros(batch.action_BT.shape)  # The weights do not depend on log-probs.
      own = aggregate.aggregate(zeros_BT, batch.learn_BT, mode=options.aggregation).weight
      other = resolve.measured(methods.auxiliary(batch.replace(
          logps_BT=zeros_BT, self_logps_B=zeros_BT[:, 0]), **whole["auxiliary"]))[0].weight
      divided = lambda weight: jnp.where(weight > 0, weight, 1)
      whole["auxiliary_B"] = jnp.full_like(
          batch.outcome_B, options.auxiliary_coef * divided(own) / divided(other))
    return whole

  return whole_of


def _read(batch):
  """The Batch as losses read it: with the policy's log-probs before the update.

  A batch without old_logps_BT has one optimizer step. Its own log-probs are then those before
  the update: every ratio is 1, and a forward pass is saved.
  """
  if "old_logps_BT" in batch or "logps_BT" not in batch: return batch
  return batch.replace(old_logps_BT=jax.lax.stop_gradient(batch.logps_BT))


def _weighted(batch, whole):
  """The Batch with its advantages multiplied by the token weights of policy_whole, if any."""
  if "token_weight_BT" not in whole: return batch
  return batch.replace(advantages_BT=whole["token_weight_BT"] * batch.advantages_BT)


def policy(methods: methods_lib.Methods, learner: learner_lib.Learner, options: PolicyLoss, *,
           temperature: float, statistics: tuple = (),
           token_id: int | None = None) -> tuple[Callable, jax.stages.Wrapped]:
  """The policy's update by `policy_loss`.

  Args:
    temperature: the sampling temperature.
    statistics: (field, spec) of each distribution statistic that the loss reads.
    token_id: id of likelihood.token, for auxiliary.last_token.
  Returns:
    learn(state, placed, step) -> (state, batch, metrics), and the jitted step.
  """
  config = learner.config
  names, specs = zip(*statistics) if statistics else ((), ())
  loss_of = policy_loss(methods, options)
  asks_self = methods.auxiliary and "self_logps_B" in methods.auxiliary.fields
  asks = methods.token_weight is not None or learner_lib.asks_for(
      {"logps_BT", "old_logps_BT", "entropy_BT", "self_logps_B", *names},
      methods.policy, methods.rollout_correction, methods.auxiliary)

  def forward(params, rollouts, batch, plan):
    given = dict(zip(("logps_BT", "entropy_BT", *names), passes_lib.forward(
        params, config, rollouts, plan, temperature=temperature, statistics=specs)))
    if not asks_self: return given
    # The token after the completion, at temperature 1 except for the normaliser.
    self_logps_B = temperature * jnp.take_along_axis(
        given["logps_BT"], rollouts.completion_len_B[:, None] - 1, axis=1, mode="clip")[:, 0]
    return dict({k: x[:, :batch.action_BT.shape[1]] for k, x in given.items()},
                self_logps_B=self_logps_B)

  def loss(params, part):
    rollouts, batch, kl_coef_B, plan, whole = part
    given = forward(params, rollouts, batch, plan)
    total, metrics = loss_of(batch.replace(**given), kl_coef_B, whole)
    return total, metrics, given["logps_BT"]

  update = learner.make(loss, before=learner_lib.add_whole(
      forward, policy_whole(methods, options), asks, learner))

  def learn(state, placed, step):
    kl_coef_B = jnp.full_like(placed.batch.outcome_B, state.kl_coef)
    if asks_self: placed = placed.append(token_id)
    state, metrics, logps_BT, _ = learner.learn(
        update, state, "policy", placed, kl_coef_B, step=step)
    batch = placed.batch
    if "old_logps_BT" not in batch: batch = batch.replace(old_logps_BT=logps_BT)
    return state, batch, metrics | rewards_advantages.old_metrics(batch, temperature)

  return learn, update
