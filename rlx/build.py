"""Config -> functions, once, at startup; the only place that says no to a config.

`build(config)` checks every key before anything compiles and returns a `Run`:
the stages as functions of the state and the records, with all options bound.
"""
import dataclasses
import functools
import inspect
import itertools
from typing import Any, Callable

import jax
import jax.numpy as jnp
import numpy as np

from configs import base
from rlx.advantages import combine
from rlx.core import masked
from rlx.core import records
from rlx.core import resolve
from rlx.core import rng
from rlx.evals import prm_metrics
from rlx.io import rows as io_rows
from rlx.io import weights
from rlx.learner import optimizer
from rlx.learner import sharding
from rlx.learner import step as learner_step
from rlx.losses import aggregate
from rlx.losses import diagnostics
from rlx.losses import divergence
from rlx.losses import policy as policy_losses
from rlx.losses import value as value_loss
from rlx.models import logps
from rlx.models import transformer
from rlx.models import value as value_model
from rlx.prompts import filters
from rlx.prompts import iterator
from rlx.rollouts import padding
from rlx.rollouts import sampler
from rlx.verifiers import pool
from rlx.verifiers import steps as verifier_steps

ORDERS = ("single", "double", "none", "reverse")
REFERENCES = ("frozen", "policy", "self")
FREE = ("rewards", "advantages", "prompts.options", "prompts.columns",
        "sft.fresh")  # Keys inside are checked by who reads them.


@dataclasses.dataclass(frozen=True)
class Run:
  """What a config became. Functions hold their options; state is passed in."""
  config: Any
  mesh: Any
  tokenizer: Any
  model_config: Any            # DecoderConfig of the policy
  prompts: Any                 # resumable iterator over training prompts
  eval_prompts: list
  init: Callable               # () -> TrainState
  encode: Callable             # prompts -> tokens_PX, prompt_len_P, prompt_P
  sample: Callable             # (params, tokens_PX, prompt_len_P, prompt_P, key) -> Rollouts
  eval_sample: dict            # {"greedy", "sampled"}: as sample
  verify: Callable             # (prompts, rollouts) -> outcome_PG
  pool: Any
  keep: Callable               # (outcome_PG, truncated_PG) -> keep_P
  score: Callable              # (state, rollouts, outcome_B) -> Scored
  log_ratio: Callable          # (state, rollouts) -> log pi_phi - log pi_ref, step_ends_BT
  learn_prm: Callable          # (state, rollouts, scored) -> (state, scored, metrics)
  advantage: Callable          # (state, scored) -> (scored, metrics)
  learn_value: Callable        # (state, rollouts, scored, step) -> (state, metrics)
  learn_policy: Callable       # (state, rollouts, scored, step) -> (state, metrics)
  control_kl: Callable         # (state, metrics) -> the KL coefficient of the next step


def build(config):
  """Checks `config` and binds it.

  Raises:
    ValueError: one line naming the key, the value found and what is allowed.
  """
  c = config
  check_keys(c, base.get_config())
  methods = methods_of(c)
  check(c, methods)
  mesh = sharding.make_mesh(**c.mesh)
  shards = sharding.row_shards(mesh)
  if c.prompts.per_step % shards:
    raise ValueError(f"prompts.per_step={c.prompts.per_step}: must be a multiple "
                     f"of mesh.data x mesh.fsdp = {shards}.")
  model_config, start, tokenizer = load_model(c, c.model.path)
  sharding.check(start, mesh)
  models = dict(policy=(model_config, start), prm=(model_config, start))
  if methods.needs("prm_logps_BT") and c.prm.path is not None:
    *models["prm"], prm_tokenizer = load_model(c, c.prm.path)
    if prm_tokenizer.vocabulary != tokenizer.vocabulary:
      raise ValueError(f"prm.path={c.prm.path!r}: its tokenizer differs from "
                       f"that of model.path={c.model.path!r}.")
  text = text_of(c, tokenizer)
  train_prompts, eval_prompts = load_prompts(c, tokenizer, text)
  per_draw = draw_size(c)
  if len(train_prompts) < per_draw:
    raise ValueError(f"prompts.source={c.prompts.source!r}: {len(train_prompts)} "
                     f"training prompts; a draw takes {per_draw} different ones.")
  optimizers = {name: optimizer.adamw(**c[name].optimizer)
                for name in ("learner", "prm", "value")}
  draw = _sampler(c, model_config, tokenizer)
  verifier_pool = pool.Pool(workers=c.verifier.workers,
                            timeout_s=c.verifier.timeout_s)

  def encode(prompts):
    tokens_PX, len_P = padding.left_pad(
        [tokenizer.encode(text(p)) for p in prompts], c.prompts.max_tokens,
        tokenizer.pad_id)
    ids_P = np.array([rng.number(p.id) for p in prompts], np.uint32)
    return tuple(sharding.place_rows(x, mesh) for x in (tokens_PX, len_P, ids_P))

  def verify(prompts, rollouts):
    texts = [tokenizer.decode(ids) for ids in padding.completions(rollouts)]
    group = len(texts) // len(prompts)
    outcome_B = verifier_pool.verify([p for p in prompts for _ in range(group)], texts)
    return outcome_B.reshape(-1, group)

  keep_fn = resolve.lookup("rollouts", c.rollouts.keep.name, "rollouts.keep")
  keep_options = {k: v for k, v in c.rollouts.keep.items() if k != "name"}
  return Run(
      config=c, mesh=mesh, tokenizer=tokenizer, model_config=model_config,
      prompts=iterator.PromptIterator(train_prompts, seed=c.seed),
      eval_prompts=eval_prompts,
      init=functools.partial(_init, c, methods, models, mesh, optimizers),
      encode=encode, sample=draw(c.rollouts.per_prompt, c.rollouts.decoding),
      eval_sample=dict(
          greedy=draw(1, dict(temperature=0.0)),
          sampled=draw(c.eval.samples, c.rollouts.decoding)),
      verify=verify, pool=verifier_pool,
      keep=functools.partial(keep_fn, **keep_options),
      score=_score(c, methods, models, mesh, tokenizer),
      log_ratio=_log_ratio(c, models, mesh, tokenizer),
      learn_prm=_learn_prm(c, methods, models, mesh, optimizers["prm"]),
      advantage=_advantage(c, methods),
      learn_value=_learn_value(c, methods, models, mesh, optimizers["value"]),
      learn_policy=_learn_policy(c, methods, models, mesh, optimizers["learner"]),
      control_kl=functools.partial(_control_kl, c))


# ---------------------------------------------------------------- the methods


@dataclasses.dataclass(frozen=True)
class _Methods:
  """The functions a config names, resolved, and what they ask for."""
  rewards: dict                # term -> (coef, fn)
  estimators: dict             # term or "total" -> (gamma of spread, fn)
  policy: Callable
  prm: Callable
  has_kl_reward: bool
  has_kl_loss: bool

  def needs(self, field):
    """Does any reward, estimator or policy loss read this field of Scored?"""
    if field == "policy_ref_logps_BT":
      return self.has_kl_reward or self.has_kl_loss
    fns = [fn for _, fn in self.rewards.values()]
    fns += [fn for _, fn in self.estimators.values()]
    return any(field in fn.fields for fn in fns + [self.policy])


def methods_of(c):
  """Resolves every named method; unknown names and options end here."""
  rewards = {}
  for term, spec in c.rewards.items():
    spec = dict(spec)
    if "coef" not in spec: raise ValueError(f"rewards.{term}.coef is missing.")
    coef = spec.pop("coef")
    rewards[term] = coef, resolve.resolve(
        "rewards", spec, records.Scored, f"rewards.{term}")
  estimators = {}
  for term, spec in c.advantages.items():
    if term == "whiten": continue
    spec = dict(spec)
    gamma = spec.get("gamma", 1.0)
    fn = resolve.lookup("advantages", spec["name"], f"advantages.{term}")
    # Estimators of whole completions know no time: gamma is for their spread.
    if "gamma" not in inspect.signature(fn).parameters: spec.pop("gamma", None)
    estimators[term] = gamma, resolve.resolve(
        "advantages", spec, combine.Term, f"advantages.{term}")
  kl = c.kl.coef != 0.0
  terms = set(rewards) | ({"kl"} if kl and c.kl.place == "reward" else set())
  if set(estimators) != {"total"} and set(estimators) != terms:
    raise ValueError(
        f"advantages has entries {sorted(estimators)}; it needs one for every "
        f"reward term {sorted(terms)}, or `total` alone.")
  return _Methods(
      rewards, estimators,
      policy=resolve.resolve("losses", c.learner.loss, records.Scored, "learner.loss"),
      prm=resolve.resolve("losses", c.prm.loss, records.Scored, "prm.loss"),
      has_kl_reward=kl and c.kl.place == "reward",
      has_kl_loss=kl and c.kl.place == "loss")


def check(c, methods):
  """Values and contradictions. One line each; nothing has compiled yet."""
  def refuse(condition, key, allowed):
    if condition:
      value = functools.reduce(getattr, key.split("."), c)
      raise ValueError(f"{key}={value!r}: {allowed}.")
  refuse(c.steps < 0, "steps", "must be >= 0")
  for key in ("prompts.per_step", "prompts.max_tokens",
              "rollouts.per_prompt", "rollouts.max_tokens", "rollouts.chunk",
              "rollouts.bucket", "rollouts.max_draws", "learner.epochs",
              "learner.minibatches", "learner.microbatches", "prm.minibatches",
              "prm.microbatches", "eval.samples"):
    refuse(functools.reduce(getattr, key.split("."), c) < 1, key, "must be >= 1")
  refuse(c.rollouts.decoding.temperature <= 0, "rollouts.decoding.temperature",
         "training samples at a temperature > 0; greedy is for evaluation")
  refuse(not 0 < c.rollouts.decoding.top_p <= 1, "rollouts.decoding.top_p",
         "must be in (0, 1]")
  refuse(not 0 <= c.rollouts.decoding.min_p < 1, "rollouts.decoding.min_p",
         "must be in [0, 1)")
  refuse(c.rollouts.oversample < 1, "rollouts.oversample", "must be >= 1")
  refuse(c.rollouts.fill not in ("failed", "error"), "rollouts.fill",
         "failed or error")
  refuse(c.prm.order not in ORDERS, "prm.order", f"one of {ORDERS}")
  refuse(c.prm.reference not in REFERENCES, "prm.reference", f"one of {REFERENCES}")
  refuse(c.kl.place not in ("loss", "reward"), "kl.place", "loss or reward")
  refuse(c.kl.kind not in divergence.KINDS, "kl.kind", f"one of {divergence.KINDS}")
  refuse(c.learner.aggregation not in aggregate.MODES, "learner.aggregation",
         f"one of {aggregate.MODES}")
  forced = policy_losses.AGGREGATION.get(c.learner.loss.name.removeprefix("policy."))
  refuse(forced and c.learner.aggregation != forced, "learner.aggregation",
         f"{c.learner.loss.name} is defined for {forced}")
  refuse(c.model.dtype not in ("float32", "bfloat16"), "model.dtype",
         "float32 or bfloat16")
  refuse(c.model.param_dtype not in ("float32", "bfloat16"), "model.param_dtype",
         "float32 or bfloat16")
  refuse(c.model.remat not in ("none", "full", "dots"), "model.remat",
         "none, full or dots")
  for name in ("learner", "prm", "value"):
    n = c[name].minibatches
    refuse(c.prompts.per_step % n, f"{name}.minibatches",
           f"must divide prompts.per_step={c.prompts.per_step}")
    groups, parts = c.prompts.per_step // n, c[name].microbatches
    rows = groups * c.rollouts.per_prompt
    refuse(rows % parts, f"{name}.microbatches",
           f"must divide the {rows} rows of a minibatch")
  asks_groups = any(f.endswith("_PG") for f in methods.prm.fields)
  refuse(asks_groups and (c.prompts.per_step // c.prm.minibatches) % c.prm.microbatches,
         "prm.microbatches", f"{c.prm.loss.name} compares completions of a group "
         "and needs whole groups in a microbatch")
  if c.rollouts.per_prompt == 1:
    lonely = [t for t, (_, fn) in methods.estimators.items()
              if any(f.endswith("_PG") for f in fn.fields)]
    refuse(bool(lonely), "rollouts.per_prompt",
           f"advantages.{lonely[0] if lonely else ''} compares completions of a "
           "group; use >= 2, or an estimator such as batch.reinforce")
  steps = [t for t, s in c.rewards.items() if dict(s).get("granularity") == "step"]
  refuse(bool(steps) and c.rollouts.step_separator is None,
         "rollouts.step_separator",
         f"rewards.{steps[0] if steps else ''}.granularity='step' needs it")
  refuse(c.prm.order != "none" and not methods.needs("prm_logps_BT") and
         c.prm.path is not None, "prm.path",
         "no reward or estimator reads the PRM; drop the path or add a process reward")


def check_keys(config, known):
  """Refuses keys that `known` does not have: they would be read by nobody."""
  def walk(c, b, prefix):
    for key in c:
      path = prefix + key
      if path in FREE: continue
      if key not in b:
        raise ValueError(f"{path}: no such key; there are {sorted(b)}.")
      is_method = hasattr(c[key], "keys") and "name" in c[key]
      if hasattr(c[key], "keys") and not is_method:
        walk(c[key], b[key], path + ".")
  walk(config, known, "")


# ------------------------------------------------------------------- the data


def load_model(c, path):
  """(DecoderConfig, params, tokenizer) of a path, in the dtypes of `model`."""
  config, params, tokenizer = weights.load(path, dtype=c.model.param_dtype)
  config = dataclasses.replace(config, dtype=c.model.dtype,
                               param_dtype=c.model.param_dtype, remat=c.model.remat)
  return config, params, tokenizer


def text_of(c, tokenizer):
  """Prompt -> what the model reads, as prompts.template says."""
  name = c.prompts.template.name
  template = resolve.lookup("prompts", f"templates.{name}", "prompts.template")
  options = {k: v for k, v in c.prompts.template.items() if k != "name"}
  return lambda p: tokenizer.render(template(p, **options))


def load_prompts(c, tokenizer, text):
  """(training prompts, held-out prompts), filtered, with no text in common."""
  dataset = resolve.lookup("prompts", f"datasets.{c.prompts.dataset}.prompts",
                           "prompts.dataset")
  def load(split, at_most=None):
    found = io_rows.rows(c.prompts.source, split, **c.prompts.options)
    found = itertools.islice(dataset(found, split, **c.prompts.columns), at_most)
    return filters.by_length(filters.unique(list(found)),
                             lambda p: len(tokenizer.encode(text(p))),
                             c.prompts.max_tokens)
  # Twice as many rows as held-out prompts are wanted: some are dropped.
  held_out = load(c.eval.split, 2 * c.eval.prompts)[:c.eval.prompts]
  return filters.not_in(load(c.prompts.split), held_out), held_out


def draw_size(c):
  """Prompts sampled per draw."""
  return int(round(c.prompts.per_step * c.rollouts.oversample))


def _sampler(c, model_config, tokenizer):
  def draw(group, rule):
    return sampler.make(
        model_config, group=group, max_tokens=c.rollouts.max_tokens,
        chunk=c.rollouts.chunk, eos_ids=tokenizer.eos_ids,
        pad_id=tokenizer.pad_id, stops=tuple(c.rollouts.stops),
        decode=tokenizer.decode, **rule)
  return draw


# ------------------------------------------------------------------ the state


def _init(c, methods, models, mesh, optimizers):
  """The state before the first step. Models start from copies: all are donated."""
  def copy(params):
    return sharding.place(jax.tree.map(jnp.array, params), mesh)
  def start(config, params, name):
    params = copy(params)
    state = jax.jit(optimizers[name].init)(params)
    return params, sharding.place(state, mesh)
  policy, policy_opt = start(*models["policy"], "learner")
  state = records.TrainState(step=0, policy=policy, policy_opt=policy_opt)
  has_prm = methods.needs("prm_logps_BT")
  frozen = has_prm and c.prm.reference == "frozen"
  if frozen or methods.needs("policy_ref_logps_BT"):
    state = state.replace(reference=copy(models["policy"][1]))
  if has_prm:
    prm, prm_opt = start(*models["prm"], "prm")
    state = state.replace(prm=prm, prm_opt=prm_opt if c.prm.order != "none" else None)
    if c.prm.reference == "self":
      state = state.replace(prm_reference=copy(models["prm"][1]))
  if methods.needs("values_BT"):
    params = value_model.init(models["policy"][0], models["policy"][1])
    value, value_opt = start(models["policy"][0], params, "value")
    state = state.replace(value=value, value_opt=value_opt)
  return state.replace(kl_coef=jnp.float32(c.kl.coef))


# --------------------------------------------------------------- the log-probs


@functools.lru_cache(maxsize=None)
def _logps_fn(config, temperature, parts, shards):
  """One compiled function per (model, temperature): PRM and reference share it,
  so that equal weights give exactly equal log-probs."""
  def logps_of(params, rollouts):
    def one(r):
      return logps.logps(params, config, r.tokens_BS, r.positions_BS, r.valid_BS,
                         completion_width=r.sampler_logps_BT.shape[1],
                         temperature=temperature, with_entropy=False)[0]
    return learner_step.mapped(one, rollouts, parts, shards)
  return jax.jit(logps_of)


def _scorers(c, models, mesh):
  """(policy, reference, prm) log-probs: functions of (params, rollouts)."""
  def of(name, temperature):
    return _logps_fn(models[name][0], temperature, c.learner.microbatches,
                     sharding.row_shards(mesh))
  return of("policy", c.rollouts.decoding.temperature), of("policy", 1.0), of("prm", 1.0)


def _ref_logps(c, scorers, state, rollouts, old_logps_BT):
  """log pi_ref of the PRM's log-ratio, as prm.reference says."""
  _, reference_logps, prm_logps = scorers
  if c.prm.reference == "policy": return old_logps_BT
  if c.prm.reference == "self": return prm_logps(state.prm_reference, rollouts)
  return reference_logps(state.reference, rollouts)


def _log_ratio(c, models, mesh, tokenizer):
  """(state, rollouts) -> (log_ratio_BT, step_ends_BT) for evaluation."""
  scorers = policy_logps, _, prm_logps = _scorers(c, models, mesh)

  def log_ratio(state, rollouts):
    rollouts = _inputs(rollouts)
    ratio_BT = prm_logps(state.prm, rollouts) - _ref_logps(
        c, scorers, state, rollouts, policy_logps(state.policy, rollouts))
    if c.rollouts.step_separator is None:
      return ratio_BT, masked.last(rollouts.mask_BT)
    return ratio_BT, _step_ends(rollouts, tokenizer, c.rollouts.step_separator)

  return log_ratio


def _score(c, methods, models, mesh, tokenizer):
  """(state, rollouts, outcome_B) -> Scored, with every log-prob asked for."""
  scorers = policy_logps, _, prm_logps = _scorers(c, models, mesh)
  values_of = jax.jit(lambda params, r: value_model.values(
      params, models["policy"][0], r.tokens_BS, r.positions_BS, r.valid_BS,
      completion_width=r.sampler_logps_BT.shape[1]))

  def score(state, rollouts, outcome_B):
    rollouts = _inputs(rollouts)
    old_BT = policy_logps(state.policy, rollouts)
    scored = records.Scored(
        mask_BT=rollouts.mask_BT, outcome_B=outcome_B, old_logps_BT=old_BT,
        sampler_logps_BT=rollouts.sampler_logps_BT, finish_B=rollouts.finish_B,
        group=c.rollouts.per_prompt)
    if methods.needs("policy_ref_logps_BT"):
      scored = scored.replace(
          policy_ref_logps_BT=policy_logps(state.reference, rollouts))
    if state.prm is not None:
      prm_BT = prm_logps(state.prm, rollouts)
      scored = scored.replace(
          prm_logps_BT=prm_BT, prm_old_logps_BT=prm_BT,
          ref_logps_BT=_ref_logps(c, scorers, state, rollouts, old_BT))
      if "kl_ratio_B" in methods.prm.fields:
        other = _mismatched(rollouts, c.rollouts.per_prompt)
        ratio_BT = prm_logps(state.prm, other) - _ref_logps(
            c, scorers, state, other, policy_logps(state.policy, other))
        scored = scored.replace(
            kl_ratio_B=masked.total(ratio_BT, other.mask_BT, axis=1))
    if state.value is not None:
      scored = scored.replace(values_BT=values_of(state.value, rollouts))
    if c.rollouts.step_separator is not None:
      scored = scored.replace(step_ends_BT=sharding.place_rows(
          _step_ends(rollouts, tokenizer, c.rollouts.step_separator), mesh))
    return scored

  return score


def _mismatched(rollouts, group):
  """Each prompt with the completion of the next prompt's group (for KTO's KL)."""
  x = rollouts.prompt_width
  rolled = jax.tree.map(lambda a: jnp.roll(a, -group, axis=0), rollouts)
  return rolled.replace(
      tokens_BS=jnp.concatenate(
          [rollouts.tokens_BS[:, :x], rolled.tokens_BS[:, x:]], axis=1),
      prompt_len_B=rollouts.prompt_len_B)


def _step_ends(rollouts, tokenizer, separator):
  """step_ends_BT: the tokens that end a reasoning step. Host side, on text."""
  ends_BT = np.zeros(rollouts.sampler_logps_BT.shape, bool)
  for row, ids in zip(ends_BT, padding.completions(rollouts)):
    texts = tokenizer.pieces(ids)
    offsets = verifier_steps.boundaries("".join(texts), separator)
    row[verifier_steps.token_ends(offsets, texts)] = True
  return ends_BT


# -------------------------------------------------------- rewards, advantages


def _advantage(c, methods):
  """(state, scored) -> (scored with advantages, metrics). Jitted; pure inside."""

  @jax.jit
  def advantage(kl_coef, scored):
    terms = {name: coef * fn(scored) for name, (coef, fn) in methods.rewards.items()}
    if methods.has_kl_reward:
      terms["kl"] = -kl_coef * divergence.estimate(
          scored.old_logps_BT, scored.policy_ref_logps_BT, scored.mask_BT,
          kind=c.kl.kind)
    mask_BT = scored.mask_BT & scored.valid_B[:, None]
    if "total" in methods.estimators:
      rewards_BT = sum(combine.place(r, scored.mask_BT) for r in terms.values())
      parts = dict(total=combine.estimate(rewards_BT, scored, *methods.estimators["total"]))
    else:
      parts = {name: combine.estimate(r, scored, *methods.estimators[name])
               for name, r in terms.items()}
    advantages_BT = masked.keep(sum(parts.values()), mask_BT)
    if scored.values_BT is not None:
      scored = scored.replace(old_values_BT=scored.values_BT,
                              returns_BT=combine.value_targets(
                                  advantages_BT, scored.values_BT, mask_BT))
    if c.advantages.whiten:
      advantages_BT = masked.whiten(advantages_BT, mask_BT)
    metrics = _reward_metrics(terms, parts, scored, mask_BT)
    return scored.replace(advantages_BT=advantages_BT), metrics

  return lambda state, scored: advantage(state.kl_coef, scored)


def _reward_metrics(terms, parts, scored, mask_BT):
  """What the rewards and advantages of this batch were."""
  valid_B, metrics = scored.valid_B, {
      "rollouts/sampler_gap_max": jnp.max(jnp.abs(masked.keep(
          scored.old_logps_BT - scored.sampler_logps_BT, scored.mask_BT)))}
  for name, reward in terms.items():
    per_row_B = reward if reward.ndim == 1 else masked.total(reward, mask_BT, axis=1)
    metrics[f"rewards/{name}"] = masked.mean(per_row_B, valid_B)
  spread = {name: masked.var(a_BT, mask_BT) for name, a_BT in parts.items()}
  for name, v in spread.items():
    metrics[f"advantages/variance_{name}"] = v
  if scored.prm_logps_BT is not None:
    ratio_BT = masked.keep(scored.prm_logps_BT - scored.ref_logps_BT, scored.mask_BT)
    togo_BT = jnp.cumsum(ratio_BT[:, ::-1], axis=1)[:, ::-1]
    metrics |= {
        "prm/accuracy": prm_metrics.accuracy(
            scored.prm_logps_BT, scored.ref_logps_BT, scored.mask_BT,
            scored.outcome_PG, scored.valid_PG),
        "prm/abs_log_ratio": masked.mean(jnp.abs(ratio_BT), mask_BT),
        # k1 of KL(policy, reference): the completions are the policy's.
        "prm/kl_policy": masked.mean(
            scored.old_logps_BT - scored.ref_logps_BT, mask_BT),
        "prm/max_return": jnp.max(jnp.abs(togo_BT)),
        "prm/correlation": prm_metrics.correlation(
            jnp.sum(ratio_BT, axis=1), scored.outcome_B, valid_B)}
  return metrics


# ----------------------------------------------------------------- the updates


def _inputs(rollouts):
  """Rollouts with rows only, so that a batch can be cut anywhere."""
  return rollouts.replace(prompt_P=None)


def _learn_prm(c, methods, models, mesh, optimizer_):
  """The PRM's update in the order asked for; scored comes back with its rewards' log-probs."""
  config = models["prm"][0]
  shards = sharding.row_shards(mesh)
  score = _logps_fn(config, 1.0, c.learner.microbatches, shards)

  def loss(params, batch):
    rollouts, scored = batch
    logps_BT, _ = logps.logps(
        params, config, rollouts.tokens_BS, rollouts.positions_BS, rollouts.valid_BS,
        completion_width=scored.mask_BT.shape[1], with_entropy=False)
    return methods.prm(scored.replace(prm_logps_BT=logps_BT)), {}

  update = learner_step.make(loss, optimizer_, microbatches=c.prm.microbatches,
                             shards=shards)

  def learn(state, rollouts, scored):
    if state.prm is None or c.prm.order == "none": return state, scored, {}
    prm, prm_opt, seen, metrics = state.prm, state.prm_opt, [], []
    parts = learner_step.minibatches((_inputs(rollouts), scored),
                                     c.prm.minibatches, scored.group)
    for part in parts:
      if not c.prm.snapshot: seen.append(score(prm, part[0]))
      prm, prm_opt, m = update(prm, prm_opt, sharding.place_rows(part, mesh))
      metrics.append(m)
    state = state.replace(prm=prm, prm_opt=prm_opt)
    if c.prm.order == "double":
      scored = scored.replace(prm_logps_BT=score(prm, _inputs(rollouts)))
    elif not c.prm.snapshot:
      scored = scored.replace(prm_logps_BT=jnp.concatenate(seen))
    return state, scored, _mean("prm", metrics)

  return learn


def _learn_value(c, methods, models, mesh, optimizer_):
  """The value model's regression on the returns."""
  config = models["policy"][0]
  shards = sharding.row_shards(mesh)

  def loss(params, batch):
    rollouts, scored = batch
    values_BT = value_model.values(
        params, config, rollouts.tokens_BS, rollouts.positions_BS, rollouts.valid_BS,
        completion_width=scored.mask_BT.shape[1])
    mask_BT = scored.mask_BT & scored.valid_B[:, None]
    loss_BT = value_loss.clipped(values_BT, scored.old_values_BT, scored.returns_BT,
                                 mask_BT, clip=c.value.clip)
    return aggregate.aggregate(loss_BT, mask_BT, mode="token-mean"), {}

  update = learner_step.make(loss, optimizer_, microbatches=c.value.microbatches,
                             shards=shards)

  def learn(state, rollouts, scored, step):
    if state.value is None: return state, {}
    value, value_opt, metrics = state.value, state.value_opt, []
    for part in _epochs(c, "value", rollouts, scored, step):
      value, value_opt, m = update(value, value_opt, sharding.place_rows(part, mesh))
      metrics.append(m)
    return state.replace(value=value, value_opt=value_opt), _mean("value", metrics)

  return learn


def _learn_policy(c, methods, models, mesh, optimizer_):
  """The policy's update: policy loss, entropy bonus, KL, under one aggregation."""
  config = models["policy"][0]
  shards = sharding.row_shards(mesh)

  def loss(params, batch):
    rollouts, scored, kl_coef_B = batch
    logps_BT, entropy_BT = logps.logps(
        params, config, rollouts.tokens_BS, rollouts.positions_BS, rollouts.valid_BS,
        completion_width=scored.mask_BT.shape[1],
        temperature=c.rollouts.decoding.temperature)
    scored = scored.replace(logps_BT=logps_BT, entropy_BT=entropy_BT)
    mask_BT = scored.mask_BT & scored.valid_B[:, None]
    loss_BT = methods.policy(scored.replace(mask_BT=mask_BT))
    metrics = diagnostics.policy(scored.replace(mask_BT=mask_BT))
    if c.learner.entropy_coef:
      loss_BT = loss_BT - c.learner.entropy_coef * entropy_BT
    if methods.has_kl_loss:
      kl_BT = divergence.estimate(logps_BT, scored.policy_ref_logps_BT, mask_BT,
                                  kind=c.kl.kind)
      loss_BT = loss_BT + kl_coef_B[:, None] * kl_BT
    if scored.policy_ref_logps_BT is not None:
      metrics["kl_ref"] = diagnostics.token_mean(
          logps_BT - scored.policy_ref_logps_BT, mask_BT)
    return aggregate.aggregate(loss_BT, mask_BT, mode=c.learner.aggregation,
                               length=c.rollouts.max_tokens), metrics

  update = learner_step.make(loss, optimizer_, microbatches=c.learner.microbatches,
                             shards=shards)

  def learn(state, rollouts, scored, step):
    policy, policy_opt, metrics = state.policy, state.policy_opt, []
    kl_coef_B = jnp.full_like(scored.outcome_B, state.kl_coef)
    for part in _epochs(c, "learner", rollouts, scored, step, kl_coef_B):
      policy, policy_opt, m = update(policy, policy_opt, sharding.place_rows(part, mesh))
      metrics.append(m)
    return state.replace(policy=policy, policy_opt=policy_opt), _mean("policy", metrics)

  return learn


def _control_kl(c, state, metrics):
  """The adaptive coefficient, or the same one again."""
  if c.kl.target is None: return state.kl_coef
  return divergence.adaptive_coef(
      state.kl_coef, metrics["policy/kl_ref"], target=c.kl.target,
      horizon=c.kl.horizon, count=c.prompts.per_step * c.rollouts.per_prompt)


def _epochs(c, name, rollouts, scored, step, *more):
  """Minibatches of every epoch, groups shuffled when there is something to shuffle."""
  for epoch in range(c[name].epochs):
    order_P = None
    if c[name].minibatches > 1:
      order_P = jax.random.permutation(
          rng.key(c.seed, "minibatches", step, epoch), c.prompts.per_step)
    yield from learner_step.minibatches(
        (_inputs(rollouts), scored, *more), c[name].minibatches,
        scored.group, order_P)


def _mean(prefix, metrics):
  """Mean over the optimizer steps of an iteration."""
  return {f"{prefix}/{k}": sum(m[k] for m in metrics) / len(metrics)
          for k in metrics[0]}
