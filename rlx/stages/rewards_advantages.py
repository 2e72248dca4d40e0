"""Rewards and advantages of a batch that has its log-probs. One jitted, pure function."""
import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp

from rlx.advantages import combine
from rlx.core import masked, records, resolve
from rlx.evals import prm_metrics
from rlx.losses import diagnostics, divergence
from rlx.stages import methods as methods_lib, place

Terms = dict[str, jax.Array]  # By reward term, or "total".
State = dict[str, dict[str, jax.Array]]  # {config key of a method: {name: value}}


@dataclasses.dataclass(frozen=True)
class RewardsAdvantages:
  """The stage that computes rewards, then advantages. One jitted, pure function.

  Attributes:
    whiten: whiten the sum of the terms' advantages.
    whiten_signal_only: leave groups whose advantages are all 0 out of the whitening.
    kl_kind: estimator of the reward term "kl", one of divergence.KINDS.
  """
  methods: methods_lib.Methods
  whiten: bool
  whiten_signal_only: bool
  kl_kind: divergence.Kind

  def __call__(self, state: records.TrainState, placed: place.Placed) -> tuple[place.Placed, dict]:
    """(placed with advantages and the methods' next state, metrics) of a batch with log-probs."""
    batch, metrics, method_state = self.compute(state, placed.batch)
    return placed.replace(batch=batch, method_state=method_state), metrics

  def compute_from_batch(self, state: records.TrainState,
                         batch: records.Batch) -> tuple[records.Batch, dict]:
    """(batch, metrics) of `compute`."""
    return self.compute(state, batch)[:2]

  def compute(self, state: records.TrainState, batch: records.Batch) -> tuple[
      records.Batch, dict, State | None]:
    """(batch with advantages, metrics, next method_state).

    Of the state it reads kl_coef, step and, if methods have state, method_state.
    """
    before = state.method_state if self.methods.list_stateful() else None
    return self._program(state.kl_coef, state.step, batch, before)

  @functools.cached_property
  def _program(self) -> jax.stages.Wrapped:
    return jax.jit(self._compute)

  def _compute(self, kl_coef: jax.Array, step: Any, batch: records.Batch,
               before: State | None) -> tuple[records.Batch, dict[str, Any], State | None]:
    methods, after = self.methods, {}
    def call(key: str, fn: Any, *args: Any) -> tuple[jax.Array, dict[str, Any]]:
      value, metrics, state = resolve.split(fn(*args, **(before or {}).get(key, {})))
      if state: after[key] = state
      return value, metrics
    measured = {name: call(f"rewards.{name}", fn, batch)
                for name, (_, fn) in methods.rewards.items()}
    rewards = {name: reward for name, (reward, _) in measured.items()}
    reward_metrics = _method_metrics("rewards", measured, batch)
    coefs = {name: coef(step) for name, (coef, _) in methods.rewards.items()}
    row_metrics: dict[str, jax.Array] = {}
    if methods.reward_std_filter:
      keep = functools.partial(call, "learner.reward_std_filter", functools.partial(
          methods.reward_std_filter.fn, **methods.reward_std_filter.options))
      batch, row_metrics = _filter_groups(keep, rewards, coefs, batch, step)
    row_metrics |= count_excluded(batch)
    if methods.has_kl_reward:
      rewards["kl"] = -divergence.estimate(
          batch.old_logps_BT, batch.ref_logps_BT, batch.learn_BT, kind=self.kl_kind)
      coefs["kl"] = kl_coef
    learn_BT = batch.learn_BT
    estimate = lambda name, r: call(f"advantages.{name}", functools.partial(
        combine.estimate, r, batch, *methods.estimators[name]))
    if "total" in methods.estimators:
      total_BT = sum(coefs[name] * combine.place(r, learn_BT) for name, r in rewards.items())
      measured = dict(total=estimate("total", total_BT))
      parts = estimates = dict(total=measured["total"][0])
    else:
      # Coefficients multiply the estimates, because an estimator that divides by the standard
      # deviation of the rewards would cancel a factor of the rewards.
      measured = {name: estimate(name, r) for name, r in rewards.items()}
      estimates = {name: estimate for name, (estimate, _) in measured.items()}
      parts = {name: coefs[name] * estimate for name, estimate in estimates.items()}
    advantages_BT = masked.where_valid(sum(parts.values()), learn_BT)
    for name in methods.value_terms:  # At most one, see build/validation.py.
      batch = batch.replace(old_values_BT=batch.values_BT, returns_BT=masked.where_valid(
          estimates[name] + batch.values_BT, learn_BT))
    if self.whiten:
      advantages_BT = masked.whiten(
          advantages_BT, learn_BT & _has_signal(advantages_BT, batch.group)
          if self.whiten_signal_only else learn_BT)
    metrics = _reward_metrics(rewards, coefs, parts, batch) | row_metrics | reward_metrics
    metrics |= _method_metrics("advantages", measured, batch)
    return batch.replace(advantages_BT=advantages_BT), metrics, after or None


def count_excluded(batch: records.Batch) -> dict[str, jax.Array]:
  """{rollouts/excluded/<reason>: number of rows} for every reason not to train on a row."""
  code_B = getattr(batch, "excluded_B", jnp.zeros(batch.outcome_B.shape, jnp.int8))
  is_empty_B = ~jnp.any(batch.action_BT, axis=1)
  derived_B = jnp.where(batch.learn_B, 0, jnp.where(
      is_empty_B, records.EXCLUDED.index("empty"), records.EXCLUDED.index("unknown")))
  code_B = jnp.where(code_B == 0, derived_B, code_B)
  return {f"rollouts/excluded/{reason}": jnp.sum(code_B == i)
          for i, reason in enumerate(records.EXCLUDED) if reason}


def _has_signal(advantages_BT: jax.Array, group: int) -> jax.Array:
  """bool [B, 1]: whether any token of the row's group has an advantage other than 0."""
  any_P = jnp.any(advantages_BT.reshape(-1, group * advantages_BT.shape[1]) != 0, axis=1)
  return jnp.repeat(any_P, group)[:, None]


def _method_metrics(stage: str, measured: dict[str, tuple[Any, dict]],
                    batch: records.Batch) -> dict[str, jax.Array]:
  """{stage/term_name: mean} of the metrics that methods return, {term: (value, metrics)}."""
  return {f"{stage}/{term}_{name}": mean.mean() for term, (_, metrics) in measured.items()
          for name, mean in diagnostics.means(metrics, batch.learn_BT).items()}


def _filter_groups(keep: resolve.UserFunction, rewards: Terms, coefs: Terms, batch: records.Batch,
                   step: Any) -> tuple[records.Batch, dict[str, jax.Array]]:
  """(batch, metrics): excludes the groups that `keep`, learner.reward_std_filter, does not keep."""
  rewards_B = jnp.asarray(sum(
      coefs[name] * (r if r.ndim == 1 else masked.total(r, batch.learn_BT, axis=1))
      for name, r in rewards.items()))
  keep_P, metrics = keep(rewards_B.reshape(-1, batch.group), batch.learn_PG, step)
  left_out_B = batch.learn_B & ~jnp.repeat(keep_P, batch.group)
  excluded_B = jnp.where(left_out_B, records.EXCLUDED.index("filtered"),
                         getattr(batch, "excluded_B", jnp.zeros(left_out_B.shape, jnp.int8)))
  return (batch.replace(excluded_B=excluded_B.astype(jnp.int8)),
          {f"rewards/{name}": x for name, x in metrics.items()} | {"rewards/kept": keep_P.mean()})


def _reward_metrics(rewards: Terms, coefs: Terms, parts: Terms,
                    batch: records.Batch) -> dict[str, jax.Array]:
  """Metrics of each reward term and of the PRM.

  They are the mean reward before its coefficient, the current coefficient, and the variance
  of the term's advantages after the coefficient.
  """
  learn_B, metrics = batch.learn_B, {}
  for name, reward in rewards.items():
    per_row_B = reward if reward.ndim == 1 else masked.total(reward, batch.learn_BT, axis=1)
    metrics[f"rewards/{name}"] = masked.mean(per_row_B, learn_B)
    metrics[f"rewards/{name}_coef"] = coefs[name]
  for name, a_BT in parts.items():
    metrics[f"advantages/variance_{name}"] = masked.var(a_BT, batch.learn_BT)
  if "prm_logps_BT" in batch:
    # Log-probs before the PRM's update, even if the rewards are computed after it: these
    # metrics are of completions that the PRM was not trained on.
    before_BT = batch.prm_old_logps_BT
    ratio_BT = masked.where_valid(before_BT - batch.prm_ref_logps_BT, batch.action_BT)
    metrics |= {
        "prm/beta": batch.prm_beta_B[0],
        "prm/accuracy": prm_metrics.accuracy(
            before_BT, batch.prm_ref_logps_BT, batch.action_BT, batch.outcome_PG, batch.learn_PG),
        "prm/varied": prm_metrics.share_of_varied(batch.outcome_PG, batch.learn_PG),
        "prm/abs_log_ratio": masked.mean(jnp.abs(ratio_BT), batch.learn_BT),
        "prm/correlation": prm_metrics.correlation(
            jnp.sum(ratio_BT, axis=1), batch.outcome_B, learn_B)}
  return metrics


@functools.partial(jax.jit, static_argnames="temperature")
def old_metrics(batch: records.Batch, temperature: float) -> dict[str, jax.Array]:
  """Compares the policy before its update with the sampler and the PRM's reference.

  Args:
    temperature: of the policy's log-probs. The PRM's reference has temperature 1; with
      another temperature there is no prm/kl_policy.
  """
  sampled_BT = batch.action_BT
  if "demo_B" in batch: sampled_BT = sampled_BT & ~batch.demo_B[:, None]
  if "rehearsal_BT" in batch: sampled_BT = sampled_BT & ~batch.rehearsal_BT
  gap_BT = jnp.abs(masked.where_valid(batch.old_logps_BT - batch.sampler_logps_BT, sampled_BT))
  metrics = {"rollouts/sampler_gap_max": jnp.max(gap_BT),
             "rollouts/sampler_gap_mean": masked.mean(gap_BT, sampled_BT)}
  if "prm_ref_logps_BT" in batch and temperature == 1.0:
    # The k1 estimate of KL(policy, reference): the completions are samples of the policy.
    metrics["prm/kl_policy"] = masked.mean(
        batch.old_logps_BT - batch.prm_ref_logps_BT, batch.learn_BT)
  return metrics
