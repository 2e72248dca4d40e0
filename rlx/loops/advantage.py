"""Rewards, then advantages, of a batch whose log-probs are computed. Jitted; pure inside."""
import functools

import jax
import jax.numpy as jnp

from rlx.advantages import combine
from rlx.advantages import normalize
from rlx.core import masked
from rlx.core import records
from rlx.core import resolve
from rlx.evals import prm_metrics
from rlx.losses import diagnostics
from rlx.losses import divergence


def make(methods, *, whiten, whiten_signal_only, kl_kind):
  """(state, batch) -> (batch with advantages, metrics).

  Args:
    methods: build.Methods.
    whiten: whiten the sum of the terms' advantages.
    whiten_signal_only: leave groups whose advantages are all 0 out of the whitening.
    kl_kind: one of divergence.KINDS, of the reward term "kl".
  """

  @jax.jit
  def compute(kl_coef, step, scored, *running):
    found = {name: resolve.measured(fn(scored)) for name, (_, fn) in methods.rewards.items()}
    rewards = {name: reward for name, (reward, _) in found.items()}
    own = _own("rewards", found, scored)
    coefs = {name: coef(step) for name, (coef, _) in methods.rewards.items()}
    kept = {}
    if methods.reward_std_filter:
      scored, kept = _kept(methods, rewards, coefs, scored, *running, step)
    kept |= excluded(scored)
    if methods.has_kl_reward:
      rewards["kl"] = -divergence.estimate(
          scored.old_logps_BT, scored.ref_logps_BT, scored.learn_BT, kind=kl_kind)
      coefs["kl"] = kl_coef
    learn_BT = scored.learn_BT
    if "total" in methods.estimators:
      total_BT = sum(coefs[name] * combine.place(r, learn_BT)
                     for name, r in rewards.items())
      found = dict(total=combine.estimate(total_BT, scored, *methods.estimators["total"]))
      parts = estimates = dict(total=found["total"][0])
    else:
      # After the estimator: one that divides by a spread would undo a factor before it.
      found = {name: combine.estimate(r, scored, *methods.estimators[name])
               for name, r in rewards.items()}
      estimates = {name: estimate for name, (estimate, _) in found.items()}
      parts = {name: coefs[name] * estimate for name, estimate in estimates.items()}
    advantages_BT = masked.where_valid(sum(parts.values()), learn_BT)
    for name in methods.value_terms:  # At most one, see methods.check.
      scored = scored.replace(old_values_BT=scored.values_BT, returns_BT=combine.value_targets(
          estimates[name], scored.values_BT, learn_BT))
    if whiten:
      advantages_BT = normalize.whiten(
          advantages_BT, learn_BT & _has_signal(advantages_BT, scored.group)
          if whiten_signal_only else learn_BT)
    metrics = _reward_metrics(rewards, coefs, parts, scored) | kept | own
    metrics |= _own("advantages", found, scored)
    return scored.replace(advantages_BT=advantages_BT), metrics

  def advantage(state, scored):
    running = (state.reward_std,) if methods.reward_std_filter else ()
    return compute(state.kl_coef, state.step, scored, *running)

  return advantage


def excluded(scored):
  """{rollouts/excluded/<reason>: rows} of every reason for which a row does not learn."""
  code_B = scored.get("excluded_B", jnp.zeros(scored.outcome_B.shape, jnp.int8))
  is_empty_B = ~jnp.any(scored.action_BT, axis=1)
  derived_B = jnp.where(scored.learn_B, 0, jnp.where(
      is_empty_B, records.EXCLUDED.index("empty"), records.EXCLUDED.index("unknown")))
  code_B = jnp.where(code_B == 0, derived_B, code_B)
  return {f"rollouts/excluded/{reason}": jnp.sum(code_B == i)
          for i, reason in enumerate(records.EXCLUDED) if reason}


def _has_signal(advantages_BT, group):
  """[B, 1]: does any token of the row's group have an advantage?"""
  any_P = jnp.any(advantages_BT.reshape(-1, group * advantages_BT.shape[1]) != 0, axis=1)
  return jnp.repeat(any_P, group)[:, None]


def _own(stage, found, scored):
  """{stage/term_name: mean} of what methods, {term: (value, metrics)}, return beside it."""
  return {f"{stage}/{term}_{name}": mean.mean() for term, (_, metrics) in found.items()
          for name, mean in diagnostics.means(metrics, scored.learn_BT).items()}


def _kept(methods, rewards, coefs, scored, ema, step):
  """(batch, metrics): groups that learner.reward_std_filter leaves out are excluded."""
  rewards_B = sum(coefs[name] * (r if r.ndim == 1 else masked.total(r, scored.learn_BT, axis=1))
                  for name, r in rewards.items())
  keep_P, ema = methods.reward_std_filter(
      rewards_B.reshape(-1, scored.group), scored.learn_PG, ema, step)
  left_out_B = scored.learn_B & ~jnp.repeat(keep_P, scored.group)
  excluded_B = jnp.where(left_out_B, records.EXCLUDED.index("filtered"),
                         scored.get("excluded_B", jnp.zeros(left_out_B.shape, jnp.int8)))
  return (scored.replace(excluded_B=excluded_B.astype(jnp.int8)),
          {"rewards/std_ema": ema, "rewards/kept": keep_P.mean()})


def _reward_metrics(rewards, coefs, parts, scored):
  """The mean of each reward, before its coefficient, the coefficient in force, and the
  variance of the term's advantages, after it."""
  learn_B, metrics = scored.learn_B, {}
  for name, reward in rewards.items():
    per_row_B = reward if reward.ndim == 1 else masked.total(reward, scored.learn_BT, axis=1)
    metrics[f"rewards/{name}"] = masked.mean(per_row_B, learn_B)
    metrics[f"rewards/{name}_coef"] = coefs[name]
  spread = {name: masked.var(a_BT, scored.learn_BT) for name, a_BT in parts.items()}
  for name, v in spread.items():
    metrics[f"advantages/variance_{name}"] = v
  if "prm_logps_BT" in scored:
    # Before its update, also where the rewards are of after it: unseen completions.
    before_BT = scored.prm_old_logps_BT
    ratio_BT = masked.where_valid(before_BT - scored.prm_ref_logps_BT, scored.action_BT)
    metrics |= {
        "prm/beta": scored.prm_beta_B[0],
        "prm/accuracy": prm_metrics.accuracy(
            before_BT, scored.prm_ref_logps_BT, scored.action_BT,
            scored.outcome_PG, scored.learn_PG),
        "prm/abs_log_ratio": masked.mean(jnp.abs(ratio_BT), scored.learn_BT),
        "prm/correlation": prm_metrics.correlation(
            jnp.sum(ratio_BT, axis=1), scored.outcome_B, learn_B)}
  return metrics


@functools.partial(jax.jit, static_argnames="temperature")
def old_metrics(scored, temperature):
  """The policy before its update, against the sampler and the PRM's reference.

  Args:
    temperature: of the policy's log-probs. Those of the PRM's reference are at 1: at
      another there is no prm/kl_policy.
  """
  sampled_BT = scored.action_BT
  if "demo_B" in scored: sampled_BT = sampled_BT & ~scored.demo_B[:, None]
  if "rehearsal_BT" in scored: sampled_BT = sampled_BT & ~scored.rehearsal_BT
  metrics = {"rollouts/sampler_gap_max": jnp.max(jnp.abs(masked.where_valid(
      scored.old_logps_BT - scored.sampler_logps_BT, sampled_BT)))}
  if "prm_ref_logps_BT" in scored and temperature == 1.0:
    # k1 of KL(policy, reference): the completions are the policy's.
    metrics["prm/kl_policy"] = masked.mean(
        scored.old_logps_BT - scored.prm_ref_logps_BT,
        scored.learn_BT)
  return metrics
