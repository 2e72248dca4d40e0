"""How models learn from a batch: PRM, value model, policy, in their orders.

Each function returns `learn`, which the loop calls, and the jitted optimizer step in it:
step(params, opt_state, minibatch).
"""
import dataclasses
from typing import Any

import jax
import jax.numpy as jnp

from rlx.core import records
from rlx.core import resolve
from rlx.core import rng
from rlx.learner import hosts
from rlx.learner import reference
from rlx.learner import sharding
from rlx.learner import step as learner_step
from rlx.loops import advantage
from rlx.loops import logps as logps_lib
from rlx.losses import aggregate
from rlx.losses import diagnostics
from rlx.losses import divergence
from rlx.losses import entropy
from rlx.losses import reward_model
from rlx.losses import value as value_loss
from rlx.models import logps
from rlx.models import value as value_model


@dataclasses.dataclass(frozen=True)
class Learner:
  """What the update of a model is made of, beside its loss."""
  config: Any               # DecoderConfig
  optimizer: Any            # optimizer.Optimizer
  mesh: Any
  group: int                # G
  epochs: int = 1
  minibatches: int = 1      # optimizer steps per epoch
  microbatches: int = 1     # parts that each of them is computed in
  seed: int = 0

  @property
  def shards(self):
    return sharding.row_shards(self.mesh)

  def make(self, loss, before=None):
    """learner.step.make with these cuts."""
    return learner_step.make(loss, self.optimizer, microbatches=self.microbatches,
                             shards=self.shards, group=self.group, before=before)

  def parts(self, placed, *more, step=None):
    """Yields (rollouts, batch, *more, plan) of each minibatch of every epoch, on the mesh.

    Groups are shuffled if `step` is given and there is more than one minibatch.
    """
    whole = placed.rollouts.rows(), placed.batch, *more
    groups = len(placed.rollouts.tokens_BS) // self.group
    for epoch in range(self.epochs):
      order_P = None
      if step is not None and self.minibatches > 1:
        order_P = hosts.fetch(jax.random.permutation(
            rng.key(self.seed, "minibatches", step, epoch), groups))
      for rows_B in learner_step.minibatch_rows(groups, self.group, self.minibatches, order_P):
        part = whole if rows_B is None else jax.tree.map(lambda x: x[rows_B], whole)  # pylint: disable=cell-var-from-loop
        yield *sharding.place_rows(part, self.mesh), placed.plan(
            self.config, self.microbatches, rows_B)


def prm(loss_fn, learner, *, order, snapshot, parts):
  """The PRM's update in the order asked for; the batch comes back with its rewards' log-probs.

  Args:
    loss_fn: Methods.prm.
    order, snapshot: see prm.order and prm.snapshot.
    parts: microbatches of a forward pass over the whole batch.
  Returns:
    learn(state, placed) -> (state, batch, metrics), and the jitted step.
  """
  config, shards = learner.config, learner.shards
  # Of the whole batch, as the reference is scored; and of one minibatch.
  logps_fn = logps_lib.compiled(config, 1.0, parts, shards)
  part_logps_fn = logps_lib.compiled(config, 1.0, learner.microbatches, shards)

  def forward(params, rollouts, batch, plan):
    return dict(prm_logps_BT=logps.logps(
        params, config, rollouts.tokens_BS, rollouts.positions_BS, rollouts.valid_BS,
        completion_width=batch.action_BT.shape[1], with_entropy=False, plan=plan)[0])

  def loss(params, part):
    rollouts, batch, plan, whole = part
    batch = batch.replace(**forward(params, rollouts, batch, plan))
    total, metrics = resolve.measured(loss_fn(batch, **whole))
    return total, diagnostics.means(metrics, batch.learn_BT), None

  update = learner.make(loss, before=_before(
      forward, lambda batch: _statistics(loss_fn, batch), _asks({"prm_logps_BT"}, loss_fn),
      learner))

  def learn(state, placed):
    batch = placed.batch
    if state.prm is None or order == "none": return state, batch, {}
    params, opt_state, before, metrics = state.prm, state.prm_opt, [], []
    for part in learner.parts(placed):
      if not snapshot:
        before.append(part_logps_fn(records.join(state.frozen, params), part[0], part[-1]))
      params, opt_state, m, _ = update(params, opt_state, part, state.frozen)
      metrics.append(m)
    state = state.replace(prm=params, prm_opt=opt_state)
    if order == "double":
      batch = batch.replace(prm_logps_BT=logps_fn(
          state.full("prm"), placed.rollouts.rows(), placed.plan(config, parts)))
    elif not snapshot:
      batch = batch.replace(prm_logps_BT=jnp.concatenate(before))
    return state, batch, _mean("prm", metrics)

  return learn, update


def prm_head(learner):
  """The update of a PRM with a head: cross-entropy of its log-odds at the ends of steps.

  Returns:
    learn(state, placed) -> (state, batch, metrics), and the jitted step. The column
    labels_BT of the batch is in [0, 1] on the last token of each step, NaN elsewhere; the
    rollouts have a token appended to each completion (`padding.append`).
  """
  def loss(params, part):
    rollouts, batch, plan = part
    scores_B = logps_lib.head(params, learner.config, rollouts, plan).ravel()
    labels_B = batch.labels_BT.ravel()
    return reward_model.bce(scores_B, labels_B, ~jnp.isnan(labels_B)), {}, None

  update = learner.make(loss)

  def learn(state, placed):
    params, opt_state, metrics = state.prm, state.prm_opt, []
    for part in learner.parts(placed):
      params, opt_state, m, _ = update(params, opt_state, part, state.frozen)
      metrics.append(m)
    return (state.replace(prm=params, prm_opt=opt_state), placed.batch,
            _mean("prm", metrics))

  return learn, update


def value(learner, *, clip):
  """The value model's regression on the returns; `clip` is value.clip.

  Returns:
    learn(state, placed, step) -> (state, metrics), and the jitted step.
  """
  def loss(params, part):
    rollouts, batch, plan = part
    values_BT = value_model.values(
        params, learner.config, rollouts.tokens_BS, rollouts.positions_BS, rollouts.valid_BS,
        completion_width=batch.action_BT.shape[1], plan=plan)
    args = values_BT, batch.old_values_BT, batch.returns_BT, batch.learn_BT
    metrics = {} if clip is None else dict(
        clip=diagnostics.value_clip_fraction(*args, clip=clip))
    return aggregate.aggregate(value_loss.clipped(*args, clip=clip), batch.learn_BT,
                               mode="token-mean"), metrics, None

  update = learner.make(loss)

  def learn(state, placed, step):
    if state.value is None: return state, {}
    params, opt_state, metrics = state.value, state.value_opt, []
    for part in learner.parts(placed, step=step):
      params, opt_state, m, _ = update(params, opt_state, part, state.frozen)
      metrics.append(m)
    return state.replace(value=params, value_opt=opt_state), _mean("value", metrics)

  return learn, update


@dataclasses.dataclass(frozen=True)
class PolicyLoss:
  """Options of the policy's loss that are not those of a method."""
  aggregation: str          # one of aggregate.MODES
  max_tokens: int           # the constant length of aggregate's "constant" modes
  entropy_coef: float = 0.0
  auxiliary_coef: float = 0.0
  kl_kind: str = "k3"


def policy_loss(methods, options):
  """(scored, kl_coef_B, whole) -> (Weighted, metrics): policy loss, entropy bonus, KL.

    (rollout correction) * loss(token weight * advantages) + entropy bonus + KL

  under one aggregation, and learner.auxiliary. `scored` has the log-probs and entropy of
  the policy being updated, `whole` what `policy_whole` says of the minibatch that it is a
  part of; empty or None: it is all of it.
  """
  whole_of = policy_whole(methods, options)

  def loss(scored, kl_coef_B, whole=None):
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
      metrics["rollout_correction_mean"] = diagnostics.token_mean(weight_BT, learn_BT)
    if options.entropy_coef:
      loss_BT = loss_BT + entropy.bonus(entropy_BT, learn_BT, coef=options.entropy_coef)
    if methods.has_kl_loss:
      kl_BT = divergence.estimate(logps_BT, scored.ref_logps_BT, learn_BT,
                                  kind=options.kl_kind)
      loss_BT = loss_BT + kl_coef_B[:, None] * kl_BT
    if "ref_logps_BT" in scored:
      metrics["kl_ref"] = diagnostics.token_mean(
          logps_BT - scored.ref_logps_BT, learn_BT)
    total = aggregate.aggregate(loss_BT, learn_BT, mode=options.aggregation,
                                length=options.max_tokens)
    if methods.auxiliary:
      auxiliary = value_of("auxiliary")
      metrics["auxiliary"] = auxiliary
      total = total.replace(total=total.total + whole["auxiliary_B"][0] * auxiliary.total)
    return total, metrics

  return loss


def policy_whole(methods, options):
  """The Batch of a whole minibatch -> what its microbatches cannot know, on its rows.

    policy, behaviour, auxiliary   {argument: rows} that the method asks for
    token_weight_BT                of learner.token_weight
    auxiliary_B                    what learner.auxiliary's sum is times:
                                   coef (weight of the policy's loss) / (weight of its own)

  With the last, both losses are means of their own.
  """
  def whole_of(scored):
    scored, whole = _read(scored), {}
    if methods.token_weight: whole["token_weight_BT"] = methods.token_weight(scored)
    scored = _weighted(scored, whole)
    for name in ("policy", "rollout_correction", "auxiliary"):
      whole[name] = _statistics(getattr(methods, name), scored)
    if methods.auxiliary:
      zeros_BT = jnp.zeros(scored.action_BT.shape)  # Weights need no network.
      own = aggregate.aggregate(zeros_BT, scored.learn_BT, mode=options.aggregation).weight
      other = resolve.measured(methods.auxiliary(scored.replace(
          logps_BT=zeros_BT, self_logps_B=zeros_BT[:, 0]), **whole["auxiliary"]))[0].weight
      divided = lambda weight: jnp.where(weight > 0, weight, 1)
      whole["auxiliary_B"] = jnp.full_like(
          scored.outcome_B, options.auxiliary_coef * divided(own) / divided(other))
    return whole

  return whole_of


def _read(scored):
  """Batch as losses read it: with the policy's log-probs before the update.

  Without old_logps_BT the batch has one optimizer step, whose own log-probs are those
  before the update: every ratio is 1 and a forward pass is saved.
  """
  if "old_logps_BT" in scored or "logps_BT" not in scored: return scored
  return scored.replace(old_logps_BT=jax.lax.stop_gradient(scored.logps_BT))


def _weighted(scored, whole):
  """Batch with the token weights of policy_whole, if any, in its advantages."""
  if "token_weight_BT" not in whole: return scored
  return scored.replace(advantages_BT=whole["token_weight_BT"] * scored.advantages_BT)


def _statistics(method, scored):
  """{argument: rows} that a method asks for of the whole minibatch, see resolve.whole."""
  return {name: fn(scored) for name, fn in method.whole.items()} if method else {}


def _asks(fields, *methods):
  """Does a method ask for a statistic that reads one of these fields of Batch?"""
  return any(f in fields for method in methods if method
             for fn in method.whole.values() for f in fn.fields)


def _before(forward, whole_of, asks, learner):
  """(params, part) -> the part with whole_of(batch) as its last entry, for learner.step.

  The entry is {} if the part is not cut: the loss sees all of it.

  Args:
    forward: (params, rollouts, batch, plan) -> {field: rows} of the model.
    asks: does whole_of read these fields? If so they are computed, one more pass.
  """
  def before(params, part):
    rollouts, batch, *_, plan = part
    if learner.microbatches == 1: return *part, {}
    if asks: batch = batch.replace(**learner_step.mapped(
        lambda cut: forward(params, *cut), (rollouts, batch, plan), learner.microbatches,
        learner.shards))
    return *part, whole_of(batch)

  return before


def policy(methods, learner, options, *, temperature, statistics=(), token_id=None):
  """The policy's update by `policy_loss`.

  Args:
    temperature: of sampling.
    statistics: (field, spec) of what the loss reads of whole distributions.
    token_id: of likelihood.token, for auxiliary.last_token.
  Returns:
    learn(state, placed, step) -> (state, batch, metrics), and the jitted step.
  """
  config = learner.config
  names, specs = zip(*statistics) if statistics else ((), ())
  loss_of = policy_loss(methods, options)
  asks_self = methods.auxiliary and "self_logps_B" in methods.auxiliary.fields
  asks = methods.token_weight is not None or _asks(
      {"logps_BT", "old_logps_BT", "entropy_BT", "self_logps_B", *names},
      methods.policy, methods.rollout_correction, methods.auxiliary)

  def forward(params, rollouts, batch, plan):
    given = dict(zip(("logps_BT", "entropy_BT", *names), logps.logps(
        params, config, rollouts.tokens_BS, rollouts.positions_BS, rollouts.valid_BS,
        completion_width=rollouts.sampler_logps_BT.shape[1], temperature=temperature,
        statistics=specs, plan=plan)))
    if not asks_self: return given
    # The token after the completion, at temperature 1 but for the normaliser.
    self_logps_B = temperature * jnp.take_along_axis(
        given["logps_BT"], rollouts.completion_len_B[:, None] - 1, axis=1, mode="clip")[:, 0]
    return dict({k: x[:, :batch.action_BT.shape[1]] for k, x in given.items()},
                self_logps_B=self_logps_B)

  def loss(params, part):
    rollouts, batch, kl_coef_B, plan, whole = part
    given = forward(params, rollouts, batch, plan)
    total, metrics = loss_of(batch.replace(**given), kl_coef_B, whole)
    return total, metrics, given["logps_BT"]

  update = learner.make(loss, before=_before(
      forward, policy_whole(methods, options), asks, learner))

  def learn(state, placed, step):
    params, opt_state, metrics = state.policy, state.policy_opt, []
    kl_coef_B = jnp.full_like(placed.batch.outcome_B, state.kl_coef)
    if asks_self: placed = placed.append(token_id)
    for part in learner.parts(placed, kl_coef_B, step=step):
      params, opt_state, m, logps_BT = update(params, opt_state, part, state.frozen)
      metrics.append(m)
    batch = placed.batch
    if "old_logps_BT" not in batch: batch = batch.replace(old_logps_BT=logps_BT)
    return (state.replace(policy=params, policy_opt=opt_state), batch,
            _mean("policy", metrics) | advantage.old_metrics(batch, temperature))

  return learn, update


@dataclasses.dataclass(frozen=True)
class Moves:
  """What moves beside the models from one RL iteration to the next: see rollouts.sync_every
  and the section kl of the config."""
  sampler_every: int = 1
  reference_every: int = 0
  reference_mix: float = 1.0
  resets_optimizer: bool = False
  kl_target: float | None = None
  kl_horizon: float = 0.0
  completions: int = 0      # of a step, P * G


def end_step(moves, mesh, optimizer_):
  """(state, metrics) -> the state of the next step.

  The KL's coefficient, the running spread of rewards, and after so many iterations the
  sampler's copy of the policy and the policy's reference.
  """
  def kl_coef(state, metrics):
    if moves.kl_target is None: return state.kl_coef
    return divergence.adaptive_coef(
        state.kl_coef, metrics["policy/kl_ref"], target=moves.kl_target,
        horizon=moves.kl_horizon, count=moves.completions)

  def end(state, metrics):
    state = state.replace(step=int(state.step) + 1, kl_coef=kl_coef(state, metrics),
                          reward_std=metrics.get("rewards/std_ema"))
    if state.sampler is not None and state.step % moves.sampler_every == 0:
      state = state.replace(sampler=jax.tree.map(jnp.copy, state.policy))
    if not moves.reference_every or state.step % moves.reference_every: return state
    state = state.replace(kl_reference=reference.moved(
        state.kl_reference, state.policy, mix=moves.reference_mix))
    if not moves.resets_optimizer: return state
    return state.replace(policy_opt=sharding.made(optimizer_.init, state.policy, mesh))

  return end


def _mean(prefix, metrics):
  """Mean over the optimizer steps of an iteration."""
  return {f"{prefix}/{k}": sum(m[k] for m in metrics) / len(metrics)
          for k in metrics[0]}
