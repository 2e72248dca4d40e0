"""What is computed of a batch: log-probs, then rewards, then advantages."""
import functools
import math
import types

import jax
import jax.numpy as jnp
import numpy as np

from rlx import config_validation
from rlx.advantages import combine
from rlx.advantages import normalize
from rlx.core import masked
from rlx.core import records
from rlx.core import resolve
from rlx.core import rng
from rlx.evals import best_of_n
from rlx.evals import prm_metrics
from rlx.learner import hosts
from rlx.learner import sharding
from rlx.learner import step as learner_step
from rlx.loops import likelihoods
from rlx.losses import diagnostics
from rlx.losses import divergence
from rlx.models import logps
from rlx.models import packing
from rlx.models import value as value_model
from rlx.rollouts import padding
from rlx.verifiers import steps as verifier_steps


@functools.lru_cache(maxsize=None)
def logps_fn(config, temperature, parts, shards, more=()):
  """One compiled function per (model, temperature): PRM and reference share it,
  so that equal weights give exactly equal log-probs. The PRM's update has
  another program around its forward pass: its log-probs are never used here.

  With `more` (see `logps.distribution_statistics`) it returns (logps_BT, *more)."""
  def logps_of(params, rollouts, plan):
    def one(batch):
      r, plan = batch
      logps_BT, _, *found = logps.logps(
          params, config, r.tokens_BS, r.positions_BS, r.valid_BS,
          completion_width=r.sampler_logps_BT.shape[1], temperature=temperature,
          with_entropy=False, statistics=more, plan=plan)
      return (logps_BT, *found) if more else logps_BT
    return learner_step.mapped(one, (rollouts, plan), parts, shards)
  return jax.jit(logps_of)


def pack(c, config, mesh, rollouts, parts, full=False):
  """packing.Plan of a batch as the model `config` runs over it, or None.

  None where rows are spread over devices: a row must not leave its own. With
  `full` the plan of rows without padding or a shared prompt, the largest: it
  reads shapes only.
  """
  if not c.learner.pack or sharding.row_shards(mesh) > 1: return None
  x, (b, t) = rollouts.prompt_width, rollouts.sampler_logps_BT.shape
  prompt_len_B, completion_len_B, trunk_B = np.full(b, x), np.full(b, t), None
  if not full:
    tokens_BS, prompt_len_B, completion_len_B = map(np.asarray, (
        rollouts.tokens_BS, rollouts.prompt_len_B, rollouts.completion_len_B))
    trunk_B = packing.same_prompt(tokens_BS[:, :x], prompt_len_B)
  return sharding.place_rows(
      packing.plan(prompt_len_B, completion_len_B, x, t, config, parts=parts,
                   trunk_B=trunk_B), mesh)


def scorers(c, models, mesh):
  """(policy, reference, prm) log-probs: jitted functions of (params, rollouts, plan)."""
  def of(name, temperature):
    return logps_fn(models[name][0], temperature, c.learner.microbatches,
                    sharding.row_shards(mesh))
  return of("policy", c.rollouts.decoding.temperature), of("policy", 1.0), of("prm", 1.0)


def _packing_scorers(c, models, mesh, full=False):
  """The same as functions of (params, rollouts)."""
  def of(name, fn):
    return lambda params, rollouts: fn(params, rollouts, pack(
        c, models[name][0], mesh, rollouts, c.learner.microbatches, full))
  return tuple(map(of, ("policy", "policy", "prm"), scorers(c, models, mesh)))


def _ref_logps(c, fns, state, rollouts):
  """log pi_ref of the PRM's log-ratio, as prm.reference says; like log pi_phi at temperature 1."""
  _, reference_logps, prm_logps = fns
  if c.prm.reference == "self": return prm_logps(state.full("prm_reference"), rollouts)
  return reference_logps(
      state.full("policy" if c.prm.reference == "policy" else "reference"), rollouts)


def prm_steps(c, methods, models, mesh, tokenizer):
  """(state, rollouts, columns=None) -> {variant: steps_BJ} of the PRM, for evaluation.

    ""      beta sum over the step's tokens of log pi_phi - log pi_ref
    no_ref  the same of log pi_phi alone

  The last step ends with the completion, EOS included. A PRM with a head
  (train_prm.labels) has "" alone, its log-odds at the end of each step. NaN where a
  row has fewer steps. `columns` are those in which each row's steps end; None: as
  rollouts.step_separator cuts them, without one a completion is one step.
  """
  fns = *_, prm_logps = _packing_scorers(c, models, mesh)
  odds = head_scores(c, models, mesh)

  def of(state, rollouts, columns=None):
    rollouts = rollouts.rows()
    if columns is None:
      columns = step_columns(padding.completions(rollouts), tokenizer,
                             c.rollouts.step_separator)
    if c.train_prm.labels is not None:
      return {"": best_of_n.padded([row[columns_J] for row, columns_J in zip(
          np.asarray(odds(state, rollouts)), columns)])}
    prm_BT = prm_logps(state.full("prm"), rollouts)
    variants = {"": prm_BT - _ref_logps(c, fns, state, rollouts), "no_ref": prm_BT}
    last_B = np.asarray(rollouts.completion_len_B) - 1
    ends_BJ = best_of_n.padded([[*found[:-1], last] if found else [] for found, last in zip(
        columns, last_B)])
    ends_BJ = np.where(np.isnan(ends_BJ), -1, ends_BJ).astype(int)
    scale = float(methods.prm_beta(state.step))
    return {name: best_of_n.step_rewards(best_of_n.step_values(
        ratio_BT, rollouts.mask_BT, ends_BJ, scale=scale))
            for name, ratio_BT in variants.items()}

  return of


def head_scores(c, models, mesh):
  """(state, rollouts) -> scores_BT of a PRM with a head: its log-odds after each token."""
  config, parts, shards = models["prm"][0], c.prm.microbatches, sharding.row_shards(mesh)
  fn = jax.jit(lambda params, rollouts, plan: learner_step.mapped(
      lambda batch: head(params, config, *batch), (rollouts, plan), parts, shards))

  def of(state, rollouts):
    rollouts = one_longer(rollouts)
    return fn(state.full("prm"), rollouts, pack(c, config, mesh, rollouts, parts))

  return of


def one_longer(rollouts):
  """With a token, any, behind each completion: a column of its own for the last state."""
  return padding.append(rollouts, 0)


def head(params, config, rollouts, plan):
  """scores_BT after each token, of rollouts that are `one_longer`."""
  return value_model.values(
      params, config, rollouts.tokens_BS, rollouts.positions_BS, rollouts.valid_BS,
      completion_width=rollouts.sampler_logps_BT.shape[1], plan=plan)[:, 1:]


def beyond(c, methods, when=""):
  """{field of Scored: its spec for `logps.distribution_statistics`} of those that methods read.

  Args:
    when: "" for those of the policy being updated, "old_" for before its update.
  """
  found = {"mean_logps_BT": ("mean",), "logits_BT": ("logit",),
           "sum_pi_squared_BT": ("squared",),
           "top_logps_BTK": ("top", c.distribution.top),
           "min_p_logps_BT": ("min_p", c.distribution.min_p)}
  return {when + f: spec for f, spec in found.items() if methods.needs(when + f)}


def reads_old_logps(c, methods):
  """Is the policy asked for its log-probs before its update?

  If not, there is one optimizer step per batch and it computes them itself.
  """
  before = [methods.prm, *(fn for _, fn in methods.rewards.values()),
            *(fn for _, fn in methods.estimators.values())]
  return (c.learner.epochs * c.learner.minibatches > 1 or methods.has_kl_reward
          or bool(beyond(c, methods, "old_"))
          or any("old_logps_BT" in fn.fields for fn in before))


def score(c, methods, models, mesh, tokenizer, answer_of):
  """(state, rollouts, outcome_B, **more) -> Scored: what `measure` gives, what is read
  off the text, and `more`, the fields that verifiers gave beside the verdict.

  A completion that rollouts.select_completions leaves out has no verdict from here on.

  Args:
    answer_of: (number of a prompt, its ids) -> ids of its reference answer.
  """
  measure_ = measure(c, methods, models, mesh)
  likelihoods_ = likelihoods.make(
      c, methods, tokenizer, answer_of, _asker(c, models, mesh),
      lambda rollouts: step_ends(rollouts, tokenizer, c.rollouts.step_separator))

  def of(state, rollouts, outcome_B, **more):
    scored = measure_(state, rollouts, outcome_B).replace(**more)
    found = likelihoods_(state, rollouts)
    if methods.needs("noise_B", "noise_PG"):
      found["noise_B"] = noise(c, state.step, rollouts.prompt_P)
    if c.rollouts.step_separator is not None:
      found["step_ends_BT"] = step_ends(
          hosts.fetch(rollouts), tokenizer, c.rollouts.step_separator)
    scored = scored.replace(**sharding.place_rows(found, mesh))
    keep_PG = methods.select_completions(types.SimpleNamespace(**hosts.fetch(
        {f: getattr(scored, f) for f in methods.select_completions.fields})))
    return scored.replace(outcome_B=sharding.place_rows(jnp.where(
        np.ravel(keep_PG), scored.outcome_B, jnp.nan), mesh))

  return of


def noise(c, step, prompt_P):
  """noise_B: of seed, step, prompt and place in the group, nothing else."""
  return jax.vmap(lambda prompt: jax.random.uniform(
      rng.key(c.seed, "noise", step, prompt), (c.rollouts.per_prompt,)))(prompt_P).ravel()


def _asker(c, models, mesh):
  """(params, rollouts, temperature) -> logps_BT of the policy's model, of any rows."""
  config, shards = models["policy"][0], sharding.row_shards(mesh)

  def logps_of(params, rollouts, temperature):
    parts = math.gcd(c.learner.microbatches, len(rollouts.tokens_BS) // shards)
    return logps_fn(config, temperature, parts, shards)(
        params, sharding.place_rows(rollouts, mesh), pack(c, config, mesh, rollouts, parts))

  return logps_of


def _added(c, methods, b, t):
  """{field: (shape, dtype)} of what `score` adds to what `measure` gives."""
  shapes = {f: s for f, s in likelihoods.shapes(c, b, t).items() if methods.needs(f)}
  if c.rollouts.step_separator is not None: shapes["step_ends_BT"] = (b, t), bool
  if c.verifier.steps: shapes["step_scores_BT"] = (b, t), jnp.float32
  if c.verifier.scores: shapes["scores_BE"] = (b, len(c.verifier.scores)), jnp.float32
  if methods.needs("answer_PG"): shapes["answer_B"] = (b,), jnp.int32
  if methods.needs("pair_PG"): shapes["pair_B"] = (b,), jnp.int32
  if methods.needs("greedy_B"): shapes["greedy_B"] = (b,), jnp.float32
  if methods.needs("noise_B", "noise_PG"): shapes["noise_B"] = (b,), jnp.float32
  return shapes


def measure(c, methods, models, mesh, full=False):
  """(state, rollouts, outcome_B) -> Scored, with every log-prob asked for.

  Networks that play two parts are run once where completions are sampled at temperature 1,
  at which the PRM and its reference are: the policy where it is the PRM's
  reference, the start where it is the reference of both log-ratios. With `full`
  (see `pack`) no value is read, so that it can be traced.
  """
  fns = policy_logps, _, prm_logps = _packing_scorers(c, models, mesh, full)
  config, before = models["policy"][0], beyond(c, methods, "old_")
  old_fn = before and logps_fn(
      config, c.rollouts.decoding.temperature, c.learner.microbatches,
      sharding.row_shards(mesh), tuple(before.values()))
  values_fn = jax.jit(lambda params, rollouts, plan: learner_step.mapped(
      lambda batch: value_model.values(
          params, config, batch[0].tokens_BS, batch[0].positions_BS, batch[0].valid_BS,
          completion_width=batch[0].sampler_logps_BT.shape[1], plan=batch[1]),
      (rollouts, plan), c.value.microbatches, sharding.row_shards(mesh)))

  def of(state, rollouts, outcome_B):
    rollouts = rollouts.rows()
    scored = records.Scored(
        action_BT=rollouts.mask_BT, outcome_B=outcome_B,
        sampler_logps_BT=rollouts.sampler_logps_BT, finish_B=rollouts.finish_B,
        group=c.rollouts.per_prompt)
    if c.rollouts.demonstration.name is not None:
      group = c.rollouts.per_prompt
      scored = scored.replace(demo_B=jnp.arange(len(outcome_B)) % group == group - 1)
    if c.rollouts.rehearsal:
      first = (c.prompts.per_step - c.rollouts.rehearsal) * c.rollouts.per_prompt
      scored = scored.replace(
          rehearsal_BT=rollouts.mask_BT & (jnp.arange(len(outcome_B)) >= first)[:, None])
    if methods.needs("tokens_BT"):
      scored = scored.replace(tokens_BT=rollouts.completions_BT)
    if state.prm is not None:
      prm_BT = prm_logps(state.full("prm"), rollouts)
      scored = scored.replace(
          prm_logps_BT=prm_BT, prm_old_logps_BT=prm_BT,
          prm_ref_logps_BT=_ref_logps(c, fns, state, rollouts),
          prm_beta_B=jnp.full_like(outcome_B, methods.prm_beta(state.step)))
      if "kl_ratio_B" in methods.prm.fields:
        other = mismatched(rollouts, c.rollouts.per_prompt)
        ratio_BT = prm_logps(state.full("prm"), other) - _ref_logps(c, fns, state, other)
        scored = scored.replace(kl_ratio_B=jnp.where(
            other.completion_len_B > 0, masked.total(ratio_BT, other.mask_BT, axis=1),
            jnp.nan))
    if before:  # A pass of its own also where the policy is the PRM's reference.
      old_BT, *found = old_fn(state.full("policy"), rollouts, pack(
          c, config, mesh, rollouts, c.learner.microbatches, full))
      scored = scored.replace(old_logps_BT=old_BT, **dict(zip(before, found)))
    elif (state.prm is not None and c.prm.reference == "policy"
          and c.rollouts.decoding.temperature == 1.0):
      scored = scored.replace(old_logps_BT=scored.prm_ref_logps_BT)
    elif reads_old_logps(c, methods):
      scored = scored.replace(old_logps_BT=policy_logps(state.full("policy"), rollouts))
    if methods.needs("ref_logps_BT"):
      moves = state.kl_reference is not None
      is_prm_ref = (state.prm is not None and c.prm.reference == "frozen" and not moves
                    and c.rollouts.decoding.temperature == 1.0)
      scored = scored.replace(
          ref_logps_BT=scored.prm_ref_logps_BT if is_prm_ref else policy_logps(
              state.full("kl_reference" if moves else "reference"), rollouts))
    if state.value is not None:
      scored = scored.replace(values_BT=values_fn(
          state.full("value"), rollouts,
          pack(c, config, mesh, rollouts, c.value.microbatches, full)))
    if full:
      scored = scored.replace(**{f: jnp.zeros(*s) for f, s in _added(
          c, methods, *scored.action_BT.shape).items()})
    return scored

  return of


def mismatched(rollouts, group):
  """Each prompt with the completion of the next prompt's group (for KTO's KL)."""
  x = rollouts.prompt_width
  rolled = jax.tree.map(lambda a: jnp.roll(a, -group, axis=0), rollouts)
  return rolled.replace(
      tokens_BS=jnp.concatenate(
          [rollouts.tokens_BS[:, :x], rolled.tokens_BS[:, x:]], axis=1),
      prompt_len_B=rollouts.prompt_len_B)


def step_ends(rollouts, tokenizer, separator):
  """step_ends_BT: the tokens that end a reasoning step. Host side, on text."""
  ends_BT = np.zeros(rollouts.sampler_logps_BT.shape, bool)
  for row, columns in zip(ends_BT, step_columns(
      padding.completions(rollouts), tokenizer, separator)):
    row[columns] = True
  return ends_BT


def step_scores(verdicts, rollouts, tokenizer, separator):
  """step_scores_BT: the k-th verdict of a row on the last token of its k-th step.

  A step without a verdict is NaN; a number instead of a list is that of every step. Of
  steps that end in one token the lowest counts. Host side, on text.
  """
  scores_BT = np.zeros(rollouts.sampler_logps_BT.shape, np.float32)
  for row, columns, found in zip(
      scores_BT, step_columns(padding.completions(rollouts), tokenizer, separator), verdicts):
    row[columns] = np.nan
    if not isinstance(found, list): found = [found] * len(columns)
    for column, verdict in zip(columns, found):
      row[column] = np.fmin(row[column], verdict)
  return scores_BT


def step_columns(completions, tokenizer, separator):
  """For every list of ids, the columns in which its steps end; separator None: one step."""
  found = []
  for ids in completions:
    texts = tokenizer.pieces(ids)
    whole = "".join(texts)
    offsets = ([len(whole)] * bool(whole) if separator is None else
               verifier_steps.boundaries(whole, separator))
    found.append(verifier_steps.token_ends(offsets, texts))
  return found


def advantage(c, methods):
  """(state, scored) -> (scored with advantages, metrics). Jitted; pure inside."""

  leaves_out = c.advantages.whiten and len(config_validation.compares(c, methods)) == len(
      methods.estimators)

  @jax.jit
  def of(kl_coef, step, scored, *running):
    found = {name: resolve.measured(fn(scored)) for name, (_, fn) in methods.rewards.items()}
    rewards = {name: reward for name, (reward, _) in found.items()}
    own = _own("rewards", found, scored)
    coefs = {name: coef(step) for name, (coef, _) in methods.rewards.items()}
    kept = {}
    if methods.reward_std_filter:
      scored, kept = _kept(methods, rewards, coefs, scored, *running, step)
    if methods.has_kl_reward:
      rewards["kl"] = -divergence.estimate(
          scored.old_logps_BT, scored.ref_logps_BT, scored.learn_BT, kind=c.kl.kind)
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
    for name in methods.value_terms:  # At most one, see config_validation.check.
      scored = scored.replace(old_values_BT=scored.values_BT, returns_BT=combine.value_targets(
          estimates[name], scored.values_BT, learn_BT))
    if c.advantages.whiten:
      advantages_BT = normalize.whiten(
          advantages_BT, learn_BT & _has_signal(advantages_BT, scored.group)
          if leaves_out else learn_BT)
    metrics = _reward_metrics(rewards, coefs, parts, scored) | kept | own
    metrics |= _own("advantages", found, scored)
    return scored.replace(advantages_BT=advantages_BT), metrics

  def learned(state, scored):
    running = (state.reward_std,) if methods.reward_std_filter else ()
    return of(state.kl_coef, state.step, scored, *running)

  return learned


def _has_signal(advantages_BT, group):
  """[B, 1]: does any token of the row's group have an advantage?"""
  any_P = jnp.any(advantages_BT.reshape(-1, group * advantages_BT.shape[1]) != 0, axis=1)
  return jnp.repeat(any_P, group)[:, None]


def _own(stage, found, scored):
  """{stage/term_name: mean} of what methods, {term: (value, metrics)}, return beside it."""
  return {f"{stage}/{term}_{name}": mean.mean() for term, (_, metrics) in found.items()
          for name, mean in diagnostics.means(metrics, scored.learn_BT).items()}


def _kept(methods, rewards, coefs, scored, ema, step):
  """(scored, metrics): groups that learner.reward_std_filter leaves out lose their verdicts."""
  rewards_B = sum(coefs[name] * (r if r.ndim == 1 else masked.total(r, scored.learn_BT, axis=1))
                  for name, r in rewards.items())
  keep_P, ema = methods.reward_std_filter(
      rewards_B.reshape(-1, scored.group), scored.learn_PG, ema, step)
  outcome_PG = jnp.where(keep_P[:, None], scored.outcome_PG, jnp.nan)
  return (scored.replace(outcome_B=outcome_PG.reshape(-1)),
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
  if scored.prm_logps_BT is not None:
    # Before its update, also where the rewards are of after it: unseen completions.
    before_BT = scored.prm_old_logps_BT
    ratio_BT = masked.where_valid(before_BT - scored.prm_ref_logps_BT, scored.action_BT)
    metrics |= {
        "prm/beta": scored.prm_beta,
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
  if scored.demo_B is not None: sampled_BT = sampled_BT & ~scored.demo_B[:, None]
  if scored.rehearsal_BT is not None: sampled_BT = sampled_BT & ~scored.rehearsal_BT
  metrics = {"rollouts/sampler_gap_max": jnp.max(jnp.abs(masked.where_valid(
      scored.old_logps_BT - scored.sampler_logps_BT, sampled_BT)))}
  if scored.prm_ref_logps_BT is not None and temperature == 1.0:
    # k1 of KL(policy, reference): the completions are the policy's.
    metrics["prm/kl_policy"] = masked.mean(
        scored.old_logps_BT - scored.prm_ref_logps_BT,
        scored.learn_BT)
  return metrics
