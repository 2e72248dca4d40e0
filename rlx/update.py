"""How models learn from a batch: PRM, value model, policy, in their orders.

Each returns `learn`, which the loop calls, and the jitted optimizer step in it:
step(params, opt_state, minibatch).
"""
import jax
import jax.numpy as jnp

from rlx import score
from rlx.core import records
from rlx.core import rng
from rlx.learner import reference
from rlx.learner import sharding
from rlx.learner import step as learner_step
from rlx.losses import aggregate
from rlx.losses import diagnostics
from rlx.losses import divergence
from rlx.losses import entropy
from rlx.losses import reward_model
from rlx.losses import value as value_loss
from rlx.models import logps
from rlx.models import value as value_model
from rlx.rollouts import padding


def prm(c, methods, models, mesh, optimizer_):
  """The PRM's update in the order asked for; scored comes back with its rewards' log-probs."""
  config = models["prm"][0]
  shards = sharding.row_shards(mesh)
  # Of the whole batch, as the reference is scored; and of one minibatch.
  logps_fn = score.logps_fn(config, 1.0, c.learner.microbatches, shards)
  part_logps_fn = score.logps_fn(config, 1.0, c.prm.microbatches, shards)

  def loss(params, batch):
    rollouts, scored, plan = batch
    logps_BT, _ = logps.logps(
        params, config, rollouts.tokens_BS, rollouts.positions_BS, rollouts.valid_BS,
        completion_width=scored.mask_BT.shape[1], with_entropy=False, plan=plan)
    return methods.prm(scored.replace(prm_logps_BT=logps_BT)), {}, None

  update = learner_step.make(loss, optimizer_, microbatches=c.prm.microbatches,
                             shards=shards, group=c.rollouts.per_prompt)

  def learn(state, rollouts, scored):
    if state.prm is None or c.prm.order == "none": return state, scored, {}
    params, opt_state, seen, metrics = state.prm, state.prm_opt, [], []
    parts = learner_step.minibatches((rollouts.rows(), scored),
                                     c.prm.minibatches, scored.group)
    for part in parts:
      part = _placed(c, config, mesh, part, c.prm.microbatches)
      if not c.prm.snapshot: seen.append(part_logps_fn(
          records.join(state.frozen, params), part[0], part[-1]))
      params, opt_state, m, _ = update(params, opt_state, part, state.frozen)
      metrics.append(m)
    state = state.replace(prm=params, prm_opt=opt_state)
    if c.prm.order == "double":
      plan = score.pack(c, config, mesh, rollouts, c.learner.microbatches)
      scored = scored.replace(prm_logps_BT=logps_fn(
          state.full("prm"), rollouts.rows(), plan))
    elif not c.prm.snapshot:
      scored = scored.replace(prm_logps_BT=jnp.concatenate(seen))
    return state, scored, _mean("prm", metrics)

  return learn, update


def steps(c, models, mesh, optimizer_):
  """The update of a PRM with a head: cross-entropy of its log-odds at the ends of steps.

  learn(state, rollouts, labels_BT) -> (state, labels_BT, metrics); labels in [0, 1]
  on the last token of each step, NaN elsewhere.
  """
  config, shards = models["prm"][0], sharding.row_shards(mesh)

  def loss(params, batch):
    rollouts, labels_BT, plan = batch
    scores_BT = score.head(params, config, rollouts, plan)
    return reward_model.bce(scores_BT.ravel(), labels_BT.ravel(),
                            ~jnp.isnan(labels_BT).ravel()), {}, None

  update = learner_step.make(loss, optimizer_, microbatches=c.prm.microbatches,
                             shards=shards, group=c.rollouts.per_prompt)

  def learn(state, rollouts, labels_BT):
    params, opt_state, metrics = state.prm, state.prm_opt, []
    for part in learner_step.minibatches(
        (score.one_longer(rollouts.rows()), labels_BT), c.prm.minibatches,
        c.rollouts.per_prompt):
      params, opt_state, m, _ = update(
          params, opt_state, _placed(c, config, mesh, part, c.prm.microbatches),
          state.frozen)
      metrics.append(m)
    return state.replace(prm=params, prm_opt=opt_state), labels_BT, _mean("prm", metrics)

  return learn, update


def value(c, methods, models, mesh, optimizer_):
  """The value model's regression on the returns."""
  config = models["policy"][0]
  shards = sharding.row_shards(mesh)

  def loss(params, batch):
    rollouts, scored, plan = batch
    values_BT = value_model.values(
        params, config, rollouts.tokens_BS, rollouts.positions_BS, rollouts.valid_BS,
        completion_width=scored.mask_BT.shape[1], plan=plan)
    mask_BT = scored.mask_BT & scored.valid_B[:, None]
    loss_BT = value_loss.clipped(values_BT, scored.old_values_BT, scored.returns_BT,
                                 mask_BT, clip=c.value.clip)
    return aggregate.aggregate(loss_BT, mask_BT, mode="token-mean"), {}, None

  update = learner_step.make(loss, optimizer_, microbatches=c.value.microbatches,
                             shards=shards, group=c.rollouts.per_prompt)

  def learn(state, rollouts, scored, step):
    if state.value is None: return state, {}
    params, opt_state, metrics = state.value, state.value_opt, []
    for part in _epochs(c, "value", rollouts, scored, step):
      params, opt_state, m, _ = update(
          params, opt_state, _placed(c, config, mesh, part, c.value.microbatches),
          state.frozen)
      metrics.append(m)
    return state.replace(value=params, value_opt=opt_state), _mean("value", metrics)

  return learn, update


def policy_loss(c, methods):
  """(scored, kl_coef_B, beside_B) -> (Weighted, metrics): policy loss, entropy bonus, KL.

    (behaviour weight) * loss(token weight * advantages) + entropy bonus + KL

  under one aggregation, and learner.auxiliary, whose sum is multiplied by beside_B
  (see `auxiliary_coef`; None without it).
  `scored` has the log-probs and entropy of the policy being updated. Without
  old_logps_BT the batch has one optimizer step, whose own log-probs are those before
  the update: every ratio is 1 and a forward pass is saved.
  """
  def of(scored, kl_coef_B, beside_B=None):
    logps_BT, entropy_BT = scored.logps_BT, scored.entropy_BT
    mask_BT = scored.mask_BT & scored.valid_B[:, None]
    scored = scored.replace(mask_BT=mask_BT)
    if scored.old_logps_BT is None:
      scored = scored.replace(old_logps_BT=jax.lax.stop_gradient(logps_BT))
    metrics = diagnostics.policy(scored)
    if methods.token_weight:
      scored = scored.replace(
          advantages_BT=methods.token_weight(scored) * scored.advantages_BT)
    loss_BT = methods.policy(scored)
    if methods.behaviour:
      weight_BT = methods.behaviour(scored)
      loss_BT = weight_BT * loss_BT
      metrics["behaviour_mean"] = diagnostics.token_mean(weight_BT, mask_BT)
    if c.learner.entropy_coef:
      loss_BT = loss_BT + entropy.bonus(entropy_BT, mask_BT, coef=c.learner.entropy_coef)
    if methods.has_kl_loss:
      kl_BT = divergence.estimate(logps_BT, scored.policy_ref_logps_BT, mask_BT,
                                  kind=c.kl.kind)
      loss_BT = loss_BT + kl_coef_B[:, None] * kl_BT
    if scored.policy_ref_logps_BT is not None:
      metrics["kl_ref"] = diagnostics.token_mean(
          logps_BT - scored.policy_ref_logps_BT, mask_BT)
    loss = aggregate.aggregate(loss_BT, mask_BT, mode=c.learner.aggregation,
                               length=c.rollouts.max_tokens)
    if methods.auxiliary:
      beside = methods.auxiliary(scored)
      metrics["auxiliary"] = beside
      loss = loss.replace(total=loss.total + beside_B[0] * beside.total)
    return loss, metrics

  return of


def auxiliary_coef(c, methods):
  """Scored of a minibatch -> beside_B, in every row what learner.auxiliary's sum is times.

    coef (weight of the policy's loss) / (weight of the auxiliary one)

  so that each is a mean of its own, however the minibatch is cut: weights need no network.
  """
  @jax.jit
  def of(scored):
    zeros_BT = jnp.zeros(scored.mask_BT.shape)
    own = aggregate.aggregate(zeros_BT, scored.mask_BT & scored.valid_B[:, None],
                              mode=c.learner.aggregation).weight
    beside = methods.auxiliary(scored.replace(
        logps_BT=zeros_BT, self_logps_B=zeros_BT[:, 0])).weight
    divided = lambda weight: jnp.where(weight > 0, weight, 1)
    return jnp.full_like(scored.outcome_B,
                         c.learner.auxiliary.coef * divided(own) / divided(beside))

  return of if methods.auxiliary else lambda scored: None


def policy(c, methods, models, mesh, optimizer_, token_id=None):
  """The policy's update by `policy_loss`; token_id is that of likelihood.token."""
  config, temperature = models["policy"][0], c.rollouts.decoding.temperature
  shards = sharding.row_shards(mesh)
  loss_of, more = policy_loss(c, methods), score.beyond(c, methods)
  beside_of = auxiliary_coef(c, methods)
  asks_self = methods.auxiliary and "self_logps_B" in methods.auxiliary.fields

  def loss(params, batch):
    rollouts, scored, kl_coef_B, beside_B, plan = batch
    logps_BT, entropy_BT, *found = logps.logps(
        params, config, rollouts.tokens_BS, rollouts.positions_BS, rollouts.valid_BS,
        completion_width=rollouts.sampler_logps_BT.shape[1], temperature=temperature,
        more=tuple(more.values()), plan=plan)
    if asks_self:
      # The token after the completion, at temperature 1 but for the normaliser.
      scored = scored.replace(self_logps_B=temperature * jnp.take_along_axis(
          logps_BT, scored.lengths_B[:, None], axis=1, mode="clip")[:, 0])
      logps_BT, entropy_BT, *found = (
          x[:, :scored.mask_BT.shape[1]] for x in (logps_BT, entropy_BT, *found))
    total, metrics = loss_of(scored.replace(
        logps_BT=logps_BT, entropy_BT=entropy_BT, **dict(zip(more, found))),
                             kl_coef_B, beside_B)
    return total, metrics, logps_BT

  update = learner_step.make(loss, optimizer_, microbatches=c.learner.microbatches,
                             shards=shards, group=c.rollouts.per_prompt)

  def learn(state, rollouts, scored, step):
    params, opt_state, metrics = state.policy, state.policy_opt, []
    kl_coef_B = jnp.full_like(scored.outcome_B, state.kl_coef)
    if asks_self: rollouts = padding.append(rollouts, token_id)
    for part in _epochs(c, "learner", rollouts, scored, step, kl_coef_B):
      part = *part, beside_of(part[1])
      params, opt_state, m, logps_BT = update(
          params, opt_state, _placed(c, config, mesh, part, c.learner.microbatches),
          state.frozen)
      metrics.append(m)
    if scored.old_logps_BT is None: scored = scored.replace(old_logps_BT=logps_BT)
    return (state.replace(policy=params, policy_opt=opt_state),
            _mean("policy", metrics) | score.old_metrics(scored, temperature))

  return learn, update


def control_kl(c, state, metrics):
  """The adaptive coefficient, or the same one again."""
  if c.kl.target is None: return state.kl_coef
  return divergence.adaptive_coef(
      state.kl_coef, metrics["policy/kl_ref"], target=c.kl.target,
      horizon=c.kl.horizon, count=c.prompts.per_step * c.rollouts.per_prompt)


def follow(c, mesh, optimizer_):
  """(state, metrics) -> state of the next step: what moves beside the models.

  The KL's coefficient, the running spread of rewards, and after so many iterations
  the sampler (rollouts.sync_every) and the policy's reference (kl.sync_every).
  """
  def of(state, metrics):
    state = state.replace(
        step=int(state.step) + 1, kl_coef=control_kl(c, state, metrics),
        reward_std=metrics.get("rewards/std_ema"))
    if state.sampler is not None and state.step % c.rollouts.sync_every == 0:
      state = state.replace(sampler=jax.tree.map(jnp.copy, state.policy))
    if not c.kl.sync_every or state.step % c.kl.sync_every: return state
    state = state.replace(kl_reference=reference.moved(
        state.kl_reference, state.policy, mix=c.kl.sync_mix))
    if not c.kl.reset_optimizer: return state
    return state.replace(policy_opt=sharding.made(optimizer_.init, state.policy, mesh))

  return of


def _epochs(c, name, rollouts, scored, step, *more):
  """Minibatches of every epoch, groups shuffled when there is something to shuffle."""
  for epoch in range(c[name].epochs):
    order_P = None
    if c[name].minibatches > 1:
      order_P = jax.random.permutation(
          rng.key(c.seed, "minibatches", step, epoch), c.prompts.per_step)
    yield from learner_step.minibatches(
        (rollouts.rows(), scored, *more), c[name].minibatches,
        scored.group, order_P)


def _placed(c, config, mesh, part, microbatches):
  """A part of the batch on the mesh, with the plan of how its rows are packed."""
  part = sharding.place_rows(part, mesh)
  return *part, score.pack(c, config, mesh, part[0], microbatches)


def _mean(prefix, metrics):
  """Mean over the optimizer steps of an iteration."""
  return {f"{prefix}/{k}": sum(m[k] for m in metrics) / len(metrics)
          for k in metrics[0]}
