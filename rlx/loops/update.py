"""How models learn from a batch: PRM, value model, policy, in their orders.

Each returns `learn`, which the loop calls, and the jitted optimizer step in it:
step(params, opt_state, minibatch).
"""
import functools

import jax
import jax.numpy as jnp

from rlx.core import records
from rlx.core import resolve
from rlx.core import rng
from rlx.learner import reference
from rlx.learner import sharding
from rlx.learner import step as learner_step
from rlx.loops import score
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

  def forward(params, rollouts, scored, plan):
    return dict(prm_logps_BT=logps.logps(
        params, config, rollouts.tokens_BS, rollouts.positions_BS, rollouts.valid_BS,
        completion_width=scored.action_BT.shape[1], with_entropy=False, plan=plan)[0])

  def loss(params, batch):
    rollouts, scored, plan, whole = batch
    scored = scored.replace(**forward(params, rollouts, scored, plan))
    total, found = resolve.measured(methods.prm(scored, **whole))
    return total, diagnostics.means(found, scored.learn_BT), None

  update = learner_step.make(
      loss, optimizer_, microbatches=c.prm.microbatches, shards=shards,
      group=c.rollouts.per_prompt,
      before=_before(forward, functools.partial(_statistics, methods.prm),
                     _asks({"prm_logps_BT"}, methods.prm), c.prm.microbatches, shards))

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
        completion_width=scored.action_BT.shape[1], plan=plan)
    learn_BT = scored.learn_BT
    loss_BT = value_loss.clipped(values_BT, scored.old_values_BT, scored.returns_BT,
                                 learn_BT, clip=c.value.clip)
    metrics = {} if c.value.clip is None else dict(clip=diagnostics.value_clip_fraction(
        values_BT, scored.old_values_BT, scored.returns_BT, learn_BT, clip=c.value.clip))
    return aggregate.aggregate(loss_BT, learn_BT, mode="token-mean"), metrics, None

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
  """(scored, kl_coef_B, whole) -> (Weighted, metrics): policy loss, entropy bonus, KL.

    (rollout correction) * loss(token weight * advantages) + entropy bonus + KL

  under one aggregation, and learner.auxiliary. `scored` has the log-probs and entropy of
  the policy being updated, `whole` what `policy_whole` says of the minibatch that it is a
  part of; empty or None: it is all of it.
  """
  whole_of = policy_whole(c, methods)

  def of(scored, kl_coef_B, whole=None):
    scored = _read(scored)
    if not whole: whole = whole_of(jax.lax.stop_gradient(scored))
    logps_BT, entropy_BT, learn_BT = scored.logps_BT, scored.entropy_BT, scored.learn_BT
    metrics = diagnostics.policy(scored)
    scored = _weighted(scored, whole)
    def value_of(name):
      value, found = resolve.measured(getattr(methods, name)(scored, **whole[name]))
      metrics.update(diagnostics.means(found, learn_BT))
      return value
    loss_BT = value_of("policy")
    if methods.rollout_correction:
      weight_BT = value_of("rollout_correction")
      loss_BT = weight_BT * loss_BT
      metrics["behaviour_mean"] = diagnostics.token_mean(weight_BT, learn_BT)
    if c.learner.entropy_coef:
      loss_BT = loss_BT + entropy.bonus(entropy_BT, learn_BT, coef=c.learner.entropy_coef)
    if methods.has_kl_loss:
      kl_BT = divergence.estimate(logps_BT, scored.ref_logps_BT, learn_BT,
                                  kind=c.kl.kind)
      loss_BT = loss_BT + kl_coef_B[:, None] * kl_BT
    if scored.ref_logps_BT is not None:
      metrics["kl_ref"] = diagnostics.token_mean(
          logps_BT - scored.ref_logps_BT, learn_BT)
    loss = aggregate.aggregate(loss_BT, learn_BT, mode=c.learner.aggregation,
                               length=c.rollouts.max_tokens)
    if methods.auxiliary:
      beside = value_of("auxiliary")
      metrics["auxiliary"] = beside
      loss = loss.replace(total=loss.total + whole["auxiliary_B"][0] * beside.total)
    return loss, metrics

  return of


def policy_whole(c, methods):
  """Scored of a whole minibatch -> what its microbatches cannot know, on its rows.

    policy, rollout_correction, auxiliary   {argument: rows} that the method asks for
    token_weight_BT                of learner.token_weight
    auxiliary_B                    what learner.auxiliary's sum is times:
                                   coef (weight of the policy's loss) / (weight of its own)

  With the last, both losses are means of their own.
  """
  def of(scored):
    scored, whole = _read(scored), {}
    if methods.token_weight: whole["token_weight_BT"] = methods.token_weight(scored)
    scored = _weighted(scored, whole)
    for name in ("policy", "rollout_correction", "auxiliary"):
      whole[name] = _statistics(getattr(methods, name), scored)
    if methods.auxiliary:
      zeros_BT = jnp.zeros(scored.action_BT.shape)  # Weights need no network.
      own = aggregate.aggregate(zeros_BT, scored.learn_BT, mode=c.learner.aggregation).weight
      beside = resolve.measured(methods.auxiliary(scored.replace(
          logps_BT=zeros_BT, self_logps_B=zeros_BT[:, 0]), **whole["auxiliary"]))[0].weight
      divided = lambda weight: jnp.where(weight > 0, weight, 1)
      whole["auxiliary_B"] = jnp.full_like(
          scored.outcome_B, c.learner.auxiliary.coef * divided(own) / divided(beside))
    return whole

  return of


def _read(scored):
  """Scored as losses read it: with the policy's log-probs before the update.

  Without old_logps_BT the batch has one optimizer step, whose own log-probs are those
  before the update: every ratio is 1 and a forward pass is saved.
  """
  if scored.old_logps_BT is not None: return scored
  return scored.replace(old_logps_BT=jax.lax.stop_gradient(scored.logps_BT))


def _weighted(scored, whole):
  """Scored with the token weights of policy_whole, if any, in its advantages."""
  if "token_weight_BT" not in whole: return scored
  return scored.replace(advantages_BT=whole["token_weight_BT"] * scored.advantages_BT)


def _statistics(method, scored):
  """{argument: rows} that a method asks for of the whole minibatch, see resolve.whole."""
  return {name: fn(scored) for name, fn in method.whole.items()} if method else {}


def _asks(fields, *methods):
  """Does a method ask for a statistic that reads one of these fields of Scored?"""
  return any(f in fields for method in methods if method
             for fn in method.whole.values() for f in fn.fields)


def _before(forward, whole_of, asks, parts, shards):
  """(params, batch) -> the batch with whole_of(scored) as its last entry, for learner.step.

  The entry is {} if the batch is not cut: the loss sees all of it.

  Args:
    forward: (params, rollouts, scored, plan) -> {field of Scored: rows} of the model.
    asks: does whole_of read these fields? If so they are computed, one more pass.
  """
  def of(params, batch):
    rollouts, scored, *_, plan = batch
    if parts == 1: return *batch, {}
    if asks: scored = scored.replace(**learner_step.mapped(
        lambda part: forward(params, *part), (rollouts, scored, plan), parts, shards))
    return *batch, whole_of(scored)

  return of


def policy(c, methods, models, mesh, optimizer_, token_id=None):
  """The policy's update by `policy_loss`; token_id is that of likelihood.token."""
  config, temperature = models["policy"][0], c.rollouts.decoding.temperature
  shards = sharding.row_shards(mesh)
  loss_of, more = policy_loss(c, methods), score.beyond(c, methods)
  asks_self = methods.auxiliary and "self_logps_B" in methods.auxiliary.fields
  asks = methods.token_weight is not None or _asks(
      {"logps_BT", "old_logps_BT", "entropy_BT", "self_logps_B", *more},
      methods.policy, methods.rollout_correction, methods.auxiliary)

  def forward(params, rollouts, scored, plan):
    found = dict(zip(("logps_BT", "entropy_BT", *more), logps.logps(
        params, config, rollouts.tokens_BS, rollouts.positions_BS, rollouts.valid_BS,
        completion_width=rollouts.sampler_logps_BT.shape[1], temperature=temperature,
        statistics=tuple(more.values()), plan=plan)))
    if not asks_self: return found
    # The token after the completion, at temperature 1 but for the normaliser.
    self_logps_B = temperature * jnp.take_along_axis(
        found["logps_BT"], scored.lengths_B[:, None], axis=1, mode="clip")[:, 0]
    return dict({k: x[:, :scored.action_BT.shape[1]] for k, x in found.items()},
                self_logps_B=self_logps_B)

  def loss(params, batch):
    rollouts, scored, kl_coef_B, plan, whole = batch
    found = forward(params, rollouts, scored, plan)
    total, metrics = loss_of(scored.replace(**found), kl_coef_B, whole)
    return total, metrics, found["logps_BT"]

  update = learner_step.make(
      loss, optimizer_, microbatches=c.learner.microbatches, shards=shards,
      group=c.rollouts.per_prompt,
      before=_before(forward, policy_whole(c, methods), asks, c.learner.microbatches, shards))

  def learn(state, rollouts, scored, step):
    params, opt_state, metrics = state.policy, state.policy_opt, []
    kl_coef_B = jnp.full_like(scored.outcome_B, state.kl_coef)
    if asks_self: rollouts = padding.append(rollouts, token_id)
    for part in _epochs(c, "learner", rollouts, scored, step, kl_coef_B):
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
