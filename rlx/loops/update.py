"""Updates of the PRM, the value model and the policy on a batch.

Each function returns `learn`, which the loop calls, and the jitted optimizer step that
`learn` uses: step(params, opt_state, minibatch).
"""
import dataclasses
import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Callable

import jax
import jax.numpy as jnp

from rlx.core import records
from rlx.core import resolve
from rlx.core import rng
from rlx.core.options import key
from rlx.learner import hosts
from rlx.learner import optimizer
from rlx.learner import reference
from rlx.learner import sharding
from rlx.learner import step as learner_step
from rlx.loops import advantage
from rlx.loops import annotate
from rlx.loops import logps
from rlx.losses import aggregate
from rlx.losses import diagnostics
from rlx.losses import divergence
from rlx.losses import entropy
from rlx.losses import reward_model
from rlx.losses import sft as sft_loss
from rlx.losses import value as value_loss
from rlx.models import transformer

if TYPE_CHECKING: from rlx import methods as methods_lib


@dataclasses.dataclass(frozen=True)
class Learner:
  """The parts of a model's update other than its loss."""
  config: transformer.DecoderConfig
  optimizer: optimizer.Optimizer
  mesh: jax.sharding.Mesh
  group: int                # G
  epochs: int = 1
  minibatches: int = 1      # optimizer steps per epoch
  microbatches: int = 1     # parts in which the gradient of each step is computed
  seed: int = 0
  offload: bool = False     # whether optimizer states are in the host's memory between updates

  @property
  def shards(self) -> int:
    return sharding.row_shards(self.mesh)

  def make(self, loss: Callable, before: Callable | None = None) -> jax.stages.Wrapped:
    """`learner.step.make` with these microbatches and shards."""
    return learner_step.make(loss, self.optimizer, microbatches=self.microbatches,
                             shards=self.shards, group=self.group, before=before,
                             pinned=functools.partial(sharding.pinned, mesh=self.mesh))

  def parts(self, placed: annotate.Placed, *more: Any, step: int | None = None) -> Iterator[tuple]:
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
        # pylint: disable-next=cell-var-from-loop
        part = whole if rows_B is None else jax.tree.map(lambda x: x[rows_B], whole)
        yield *sharding.place_rows(part, self.mesh), placed.plan(
            self.config, self.microbatches, rows_B)


  def learn(self, update: Callable, state: records.TrainState, name: str, placed: annotate.Placed,
            *more: Any, step: int | None = None, before: Callable | None = None) -> tuple:
    """Applies `update`, a result of `make`, to a model of the state on every minibatch.

    Args:
      name: field of the TrainState.
      more, step: see `parts`.
      before: (params, minibatch) -> rows that the step does not return; None: there are none.
    Returns:
      state, metrics averaged over the steps, rows of the last minibatch, rows of `before`.
    """
    params, opt_state = getattr(state, name), getattr(state, f"{name}_opt")
    if self.offload: opt_state = sharding.moved(opt_state, None)
    metrics, rows_before = [], []
    for part in self.parts(placed, *more, step=step):
      if before: rows_before.append(before(records.join(state.frozen, params), part))
      params, opt_state, measured, rows = update(params, opt_state, part, state.frozen)
      metrics.append(measured)
    mean = {f"{name}/{k}": sum(m[k] for m in metrics) / len(metrics) for k in metrics[0]}
    # The next stage needs the memory that is free only after the transfer.
    if self.offload: opt_state = jax.block_until_ready(sharding.moved(opt_state, "pinned_host"))
    state = dataclasses.replace(state, **{name: params, f"{name}_opt": opt_state})
    return state, mean, rows, rows_before


def prm(loss_fn: Callable, learner: Learner, *, order: str, snapshot: bool, starts_equal: bool,
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
  logps_fn = logps.compiled(config, 1.0, parts, shards)
  part_logps_fn = logps.compiled(config, 1.0, learner.microbatches, shards)

  def forward(params, rollouts, batch, plan):
    return dict(prm_logps_BT=logps.forward(params, config, rollouts, plan, with_entropy=False)[0])

  def loss(params, part):
    rollouts, batch, plan, whole = part
    batch = batch.replace(**forward(params, rollouts, batch, plan))
    total, metrics = resolve.measured(loss_fn(batch, **whole))
    return total, diagnostics.means(metrics, batch.learn_BT), batch.prm_logps_BT

  update = learner.make(loss, before=_before(
      forward, lambda batch: _statistics(loss_fn, batch), _asks({"prm_logps_BT"}, loss_fn),
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


def prm_head(learner: Learner) -> tuple[Callable, jax.stages.Wrapped]:
  """The update of a PRM with a head: cross-entropy of its log-odds at the ends of steps.

  Returns:
    learn(state, placed) -> (state, batch, metrics), and the jitted step. The batch's column
    labels_BT is in [0, 1] on the last token of each step and NaN elsewhere. The rollouts have
    a token appended to each completion (`padding.append`).
  """
  def loss(params, part):
    rollouts, batch, plan = part
    scores_B = logps.values(params, learner.config, rollouts, plan)[:, 1:].ravel()
    labels_B = batch.labels_BT.ravel()
    return reward_model.bce(scores_B, labels_B, ~jnp.isnan(labels_B)), {}, None

  update = learner.make(loss)

  def learn(state, placed):
    state, metrics, *_ = learner.learn(update, state, "prm", placed)
    return state, placed.batch, metrics

  return learn, update


def value(learner: Learner, *, clip: float | None) -> tuple[Callable, jax.stages.Wrapped]:
  """The value model's regression on the returns.

  Args:
    clip: value.clip.
  Returns:
    learn(state, placed, step) -> (state, metrics), and the jitted step.
  """
  def loss(params, part):
    rollouts, batch, plan = part
    values_BT = logps.values(params, learner.config, rollouts, plan)
    args = values_BT, batch.old_values_BT, batch.returns_BT, batch.learn_BT
    metrics = {} if clip is None else dict(
        clip=diagnostics.value_clip_fraction(*args, clip=clip))
    return aggregate.aggregate(value_loss.clipped(*args, clip=clip), batch.learn_BT,
                               mode="token-mean"), metrics, None

  update = learner.make(loss)

  def learn(state, placed, step):
    if state.value is None: return state, {}
    return learner.learn(update, state, "value", placed, step=step)[:2]

  return learn, update


def sft(config: transformer.DecoderConfig, optimizer_: optimizer.Optimizer, *, microbatches: int,
        mesh: jax.sharding.Mesh) -> Callable:
  """Returns the jitted step of supervised fine-tuning: (params, opt_state, rollouts) -> ...

  Args:
    config: DecoderConfig.
    optimizer_, microbatches: see `learner.step.make`.
  """
  def loss(params, rollouts):
    logps_BT, _ = logps.forward(params, config, rollouts, None, with_entropy=False)
    mask_BT = rollouts.action_BT
    return aggregate.aggregate(sft_loss.nll(logps_BT, mask_BT), mask_BT,
                               mode="token-mean"), {}, None

  return learner_step.make(
      loss, optimizer_, microbatches=microbatches, shards=sharding.row_shards(mesh),
      pinned=functools.partial(sharding.pinned, mesh=mesh))


@dataclasses.dataclass(frozen=True, kw_only=True)
class PolicyLoss:
  """Options of the policy's loss that do not belong to a method."""
  aggregation: str = key("learner.aggregation")   # one of aggregate.MODES
  max_tokens: int = key("rollouts.max_tokens")    # the "constant" modes of aggregate divide by it
  entropy_coef: float = key("learner.entropy_coef")
  auxiliary_coef: float = key("learner.auxiliary.coef")
  kl_kind: str = key("kl.kind")


def policy_loss(methods: "methods_lib.Methods", options: PolicyLoss) -> Callable:
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


def policy_whole(methods: "methods_lib.Methods", options: PolicyLoss) -> Callable:
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
      whole[name] = _statistics(getattr(methods, name), batch)
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


def _statistics(method, batch):
  """{argument: rows}: a method's statistics of the whole minibatch, see core/method.py."""
  return {name: fn(batch) for name, fn in method.whole.items()} if method else {}


def _asks(fields, *methods):
  """Whether any method has a minibatch statistic that reads one of these fields of Batch."""
  return any(f in fields for method in methods if method
             for fn in method.whole.values() for f in fn.fields)


def _before(forward, whole_of, asks, learner):
  """Returns (params, part) -> the part with whole_of(batch) as its last entry.

  It is the argument `before` of `learner.step.make`. The entry is {} if there is one
  microbatch, because the loss then sees the whole minibatch.

  Args:
    forward: (params, rollouts, batch, plan) -> {field: rows} of the model.
    asks: whether whole_of reads these fields; they then take one more forward pass.
  """
  def before(params, part):
    rollouts, batch, *_, plan = part
    if learner.microbatches == 1: return *part, {}
    if asks: batch = batch.replace(**learner_step.mapped(
        lambda cut: forward(params, *cut), (rollouts, batch, plan), learner.microbatches,
        learner.shards))
    return *part, whole_of(batch)

  return before


def policy(methods: "methods_lib.Methods", learner: Learner, options: PolicyLoss, *,
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
  asks = methods.token_weight is not None or _asks(
      {"logps_BT", "old_logps_BT", "entropy_BT", "self_logps_B", *names},
      methods.policy, methods.rollout_correction, methods.auxiliary)

  def forward(params, rollouts, batch, plan):
    given = dict(zip(("logps_BT", "entropy_BT", *names), logps.forward(
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

  update = learner.make(loss, before=_before(
      forward, policy_whole(methods, options), asks, learner))

  def learn(state, placed, step):
    kl_coef_B = jnp.full_like(placed.batch.outcome_B, state.kl_coef)
    if asks_self: placed = placed.append(token_id)
    state, metrics, logps_BT, _ = learner.learn(
        update, state, "policy", placed, kl_coef_B, step=step)
    batch = placed.batch
    if "old_logps_BT" not in batch: batch = batch.replace(old_logps_BT=logps_BT)
    return state, batch, metrics | advantage.old_metrics(batch, temperature)

  return learn, update


@dataclasses.dataclass(frozen=True, kw_only=True)
class Moves:
  """Options of what changes between RL iterations in addition to the models."""
  completions: int                           # completions per step, P * G
  sampler_every: int = key("rollouts.sync_every")
  reference_every: int = key("kl.sync_every")
  reference_mix: float = key("kl.sync_mix")
  resets_optimizer: bool = key("kl.reset_optimizer")
  kl_target: float | None = key("kl.target")
  kl_horizon: float = key("kl.horizon")


def end_step(moves: Moves, mesh: jax.sharding.Mesh, optimizer_: optimizer.Optimizer) -> Callable:
  """Returns a function (state, metrics) -> the state of the next step.

  It updates the KL coefficient and the running spread of rewards in each iteration, and at
  their intervals the sampler's copy of the policy and the policy's reference.
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
    places = jax.tree.map(lambda x: x.sharding, state.policy_opt)  # Also in the host's memory.
    opt_state = sharding.made(optimizer_.init, state.policy, mesh)
    return state.replace(policy_opt=jax.device_put(opt_state, places))

  return end
