"""Turns a config into functions, once, at startup.

`build(config)` checks the config before anything compiles and returns a `Run`:
the stages as functions of the state and the records, with all options bound.
`config_validation.py` defines which configs are valid, `verdicts.py` binds the parts that
judge completions. The folder `loops` computes the fields of a batch and updates the models.
"""
import dataclasses
import functools
from collections.abc import Collection, Sequence
from typing import Any, Callable, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from rlx import config_validation
from rlx import inputs
from rlx import keys
from rlx import methods as methods_lib
from rlx import verdicts
from rlx.core import fields
from rlx.core import options as options_lib
from rlx.core import records
from rlx.core import resolve
from rlx.core import rng
from rlx.core.options import key
from rlx.environments import runner
from rlx.io import tokenizer as tokenizer_io
from rlx.io import trackers
from rlx.learner import hosts
from rlx.learner import memory
from rlx.learner import optimizer
from rlx.learner import sharding
from rlx.loops import advantage
from rlx.loops import annotate
from rlx.loops import collect
from rlx.loops import dialogue
from rlx.loops import logps
from rlx.loops import sampling as sampling_lib
from rlx.loops import session
from rlx.loops import texts as texts_lib
from rlx.loops import update
from rlx.models import lora
from rlx.models import transformer
from rlx.models import value as value_model
from rlx.prompts import iterator
from rlx.verifiers import pool

T = TypeVar("T")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sizes:
  """The sizes of batches, of texts and of what is computed for them."""
  prompts: int = key("prompts.per_step")            # P
  group: int = key("rollouts.per_prompt")           # G
  rehearsal: int = key("rollouts.rehearsal")        # prompts whose completions are stored
  draw: int                                         # prompts sampled per draw
  first_pass: int              # completions of a prompt before rollouts.budget adds others
  eval_batch: int = key("eval.batch")
  eval_samples: int = key("eval.samples")
  prompt_tokens: int = key("prompts.max_tokens")
  completion_tokens: int = key("rollouts.max_tokens")
  chunk: int = key("rollouts.chunk")
  bucket: int = key("rollouts.bucket")
  axes: dict[str, int]                              # {"M", "J", "K", "E", "Z"}: see core/axes.py

  @property
  def rows(self) -> int:
    """B, completions of a batch."""
    return self.prompts * self.group

  @property
  def trained(self) -> int:
    """Prompts of a batch whose completions are sampled: all but the rehearsed ones."""
    return self.prompts - self.rehearsal


@dataclasses.dataclass(frozen=True)
class Updates:
  """The updates of all models, and what else changes between RL iterations."""
  prm: Callable                # (state, Placed) -> (state, Batch, metrics)
  value: Callable              # (state, Placed, step) -> (state, metrics)
  policy: Callable             # (state, Placed, step) -> (state, Batch, metrics)
  end_step: Callable           # (state, metrics) -> the state of the next step
  learners: dict[str, update.Learner]  # {"prm", "value", "learner"}
  programs: dict[str, jax.stages.Wrapped]  # {"prm", "value", "learner"}: the jitted optimizer step


@dataclasses.dataclass(frozen=True)
class Run:
  """The built config: stages as functions of the state and the records, with options bound."""
  sizes: Sizes
  texts: texts_lib.Texts
  methods: methods_lib.Methods
  passes: logps.Options        # mesh, models and options of forward passes
  planned: list[fields.Field]  # what is computed for a batch
  prompts: iterator.PromptIterator | None  # training prompts; None without them
  eval_prompts: list[records.Prompt]
  init: Callable               # () -> TrainState
  shapes: Callable             # () -> TrainState of shapes with shardings; allocates nothing
  sampling: sampling_lib.Sampling
  verify: Callable             # (prompts, rollouts) -> outcome_PG
  pool: pool.Pool
  close: Callable              # stops the processes of verifiers and of the environment
  collector: collect.Collector | None  # None without training prompts
  annotate: Callable           # (state, Collected) -> Annotated: fields computed on the host
  place: Callable              # Annotated -> Placed: on the mesh
  score: Callable              # (state, Placed) -> Placed with the log-probs that methods read
  advantage: Callable          # (state, Batch) -> (Batch, metrics): rewards, then advantages
  update: Updates


@dataclasses.dataclass(frozen=True)
class Sft:
  """The built config of supervised fine-tuning."""
  model: transformer.DecoderConfig
  tokenizer: tokenizer_io.Tokenizer
  init: Callable               # () -> TrainState of the policy
  batch: Callable              # step -> Rollouts of worked examples, on the mesh
  update: Callable             # (params, opt_state, Rollouts) -> params, opt_state, metrics, None
  close: Callable              # stops the environment's processes


def options(cls: type[T], c: keys.Config, **values: Any) -> T:
  """An instance of a dataclass of core/options.py, with the values of config keys."""
  return options_lib.read(cls, methods_lib.setting(c), **values)


def session_options(config: keys.Config,
                    cls: type[session.Options] = session.Options) -> session.Options:
  """Checks `config` and returns the session.Options of a training loop, of this class."""
  keys.check(config)
  trackers.check(config.log.writers)
  return options(cls, config)


def build(config: keys.Config, splits: Collection[str] | None = None, recorded: dict | None = None,
          learns: str = "policy", mesh: jax.sharding.Mesh | None = None) -> Run:
  """Checks `config` and binds it.

  Args:
    splits: which prompts are loaded. Without "train" Run.prompts is None, without
      "eval" Run.eval_prompts is empty. None: those that are needed for `learns`.
    recorded: the result of `cli.recorded` for a run that is resumed. With the recorded number
      of slots the sampler's log-probs are bitwise those of an uninterrupted run. None: a new
      run.
    learns: "policy", "prm" if only a PRM is trained, on stored completions, or "" if nothing
      is. Fields of a batch are computed only for the models that learn.
    mesh: of devices that are not here, see tools/targets.py; then no parameters are read, and
      only programs can be traced. None: `mesh` of the config, over the devices of this process.
  Raises:
    ValueError: one line with the key, its value and what is allowed.
  """
  c = config
  keys.check(c)
  methods = methods_lib.resolved(c)
  config_validation.check(c, methods)
  _check_learns(c, methods, learns)
  sizes, splits = sizes_of(c), needed_splits(c, learns) if splits is None else splits
  shapes_only, mesh = mesh is not None, sharding.make_mesh(**c.mesh) if mesh is None else mesh
  check_cuts(c, sharding.row_shards(mesh))
  models, frozen, tokenizer = _models(c, methods, mesh, shapes_only)
  configs = {name: config for name, (config, _) in models.items()}
  texts, dialogues = _texts_and_dialogues(c, tokenizer)
  train_prompts, eval_prompts = inputs.checked_prompts(c, sizes.draw, texts, splits)
  if dialogues: dialogues.start(tokenizer, (train_prompts + eval_prompts)[0])
  verifier_pool = verdicts.pool_of(c, train_prompts + eval_prompts)
  inputs.check_prompts(c, train_prompts + eval_prompts)
  optimizers = {name: optimizer_of(c, name) for name in ("learner", "prm", "value")}
  init, shapes = initializers(c, methods, mesh, optimizers, models, frozen)
  # All processes must use the same value; the first one records it.
  limit = (recorded or {}).get("device_bytes") or hosts.gather(memory.device_bytes(mesh))[0]
  sampling = sampling_lib.make(
      sampling_options(c, sizes), texts, configs["policy"], mesh, device_bytes=limit,
      dialogues=dialogues,
      bytes_free=None if limit is None else limit - memory.tree_bytes(shapes()))
  rows_of = verdicts.rows_of_prompts(c, methods, tokenizer, verifier_pool,
                                     train_prompts + eval_prompts)
  verifiers = annotate.Verifiers(verifier_pool, c.verifier.step_rewards)
  reward = verdicts.reward_of(texts, rows_of, verifiers, verdicts.readers_of(c, methods))
  stages = device_stages(c, methods, configs, mesh, optimizers, token_id=token_id(c, tokenizer),
                         learns=learns)
  prompts = None if "train" not in splits else iterator.PromptIterator(
      train_prompts, seed=c.seed, paired=c.prompts.paired)
  return Run(
      sizes=sizes, texts=texts, methods=methods, prompts=prompts, eval_prompts=eval_prompts,
      init=init, shapes=shapes, sampling=sampling, pool=verifier_pool,
      verify=lambda *args: annotate.verdicts(reward(*args)),
      close=lambda: [x.close() for x in (verifier_pool, dialogues) if x],
      collector=None if prompts is None else options(
          collect.Collector, c, prompts=prompts, sizes=sizes, encode=sampling.encode,
          sample=sampling.train, lay_out=sampling.lay_out, anneal=methods.anneal,
          demonstrate=verdicts.demonstrations(c, texts, train_prompts), decode=texts.completions,
          verify=functools.partial(reward, keep=True), pool=verifier_pool, budget=methods.budget,
          filter_groups=methods.filter_groups,
          played=dialogues.metrics if dialogues else dict),
      annotate=annotate.annotator(
          stages["planned"], methods_lib.field_options(c), select=methods.select_completions,
          group=sizes.group, decode=texts.completions, rows_of=rows_of,
          resources=verdicts.resources_of(c, stages["planned"], tokenizer, verifiers,
                                          train_prompts),
          greedy_outcome=verdicts.greedy_outcome_of(c.seed, sampling, reward),
          check=functools.partial(verifier_pool.check, c.verifier.max_error_rate)),
      place=annotate.Placer(mesh, c.learner.pack), **stages)


def sizes_of(c: keys.Config) -> Sizes:
  """The Sizes of a config."""
  drawn = c.rollouts.oversample * (c.prompts.per_step - c.rollouts.rehearsal)
  return options(
      Sizes, c, draw=int(round(drawn)),
      first_pass=c.rollouts.budget.first if c.rollouts.budget.name else c.rollouts.per_prompt,
      axes=dict(M=c.likelihood.max_tokens, J=c.likelihood.steps + 1, K=c.distribution.top,
                E=len(c.verifier.scores), Z=len(c.verifier.step_rewards)))


def sampling_options(c: keys.Config, sizes: Sizes) -> sampling_lib.Options:
  """The sampling.Options of a config."""
  return options(sampling_lib.Options, c, draw=sizes.draw, first_pass=sizes.first_pass,
                 decoding=c.rollouts.decoding.to_dict())


def _models(c, methods, mesh, shapes):
  """Returns ({"policy", "prm"}: (DecoderConfig, params), frozen base or None, tokenizer)."""
  made = jax.eval_shape if shapes else lambda fn, *args: fn(*args)
  config, base, tokenizer = inputs.load_model(c, c.model.path, shapes)
  sharding.check(base, mesh)
  config, params, frozen = on_mesh(config, mesh), base, None
  if c.lora.rank:
    config = dataclasses.replace(config, lora_scale=c.lora.alpha / c.lora.rank)
    params = made(lambda base: lora.init(base, rng.key(c.seed, "lora"), rank=c.lora.rank,
                                         targets=tuple(c.lora.targets)), base)
    frozen = made(lambda base: freeze(base, c.model.frozen_dtype), base)
  models = dict(policy=(config, params), prm=(config, params))
  if methods.needs("prm_logps_BT") and c.prm.path is not None:
    prm_config, prm_params, prm_tokenizer = inputs.load_model(c, c.prm.path, shapes)
    models["prm"] = on_mesh(prm_config, mesh), prm_params
    if prm_tokenizer.vocabulary != tokenizer.vocabulary:
      raise ValueError(f"prm.path={c.prm.path!r}: its tokenizer differs from "
                       f"that of model.path={c.model.path!r}.")
  return models, frozen, tokenizer


def sft(config: keys.Config) -> Sft:
  """Checks `config` and binds what supervised fine-tuning needs of it.

  Raises:
    ValueError: one line with the key, its value and what is allowed.
  """
  c = config
  if c.lora.rank: raise ValueError(f"lora.rank={c.lora.rank}: 0; sft trains all parameters.")
  demonstrate = resolve.bind("prompts.datasets", c.sft.target, "sft.target", n_given=2)
  mesh = sharding.make_mesh(**c.mesh)
  shards = sharding.row_shards(mesh)
  if c.sft.batch % (c.sft.microbatches * shards):
    raise ValueError(f"sft.batch={c.sft.batch}: must be a multiple of sft.microbatches="
                     f"{c.sft.microbatches} x mesh.data x mesh.fsdp = {shards}.")
  model_config, params, tokenizer = inputs.sft_start(c)
  model_config = on_mesh(model_config, mesh)
  transform, (texts, dialogues) = optimizer_of(c, "sft"), _texts_and_dialogues(c, tokenizer)
  prompts, _ = inputs.load_prompts(c, texts)
  if dialogues: dialogues.start(tokenizer, prompts[0])
  inputs.note_template(texts, prompts[0])
  seed, size = c.seed, c.sft.batch

  def init():
    policy = sharding.place(params, mesh)
    return records.TrainState(step=0, policy=policy,
                              policy_opt=sharding.made(transform.init, policy, mesh))

  def batch(step):
    draw = np.random.default_rng([seed, rng.number("sft"), step])
    chosen = draw.choice(len(prompts), size, replace=False).tolist()
    rollouts = texts.episodes(map(episode, chosen)) if dialogues else texts.examples(
        [(texts.prompt(prompts[i]), demonstrate(prompts[i], draw)) for i in chosen])
    return sharding.place_rows(rollouts, mesh)

  @functools.cache  # Steps of an environment take longer than drawing a text.
  def episode(i):
    draw = np.random.default_rng([seed, rng.number("sft"), rng.number(prompts[i].id)])
    return dialogues.played(prompts[i], demonstrate(prompts[i], draw))

  return Sft(
      model_config, tokenizer, init, batch, update.sft(
          model_config, transform, microbatches=c.sft.microbatches, mesh=mesh),
      close=dialogues.close if dialogues else lambda: None)


def _check_learns(c, methods, learns):
  """Checks that the config has what learns."""
  if learns == "policy" and c.train_prm.labels is not None:
    raise ValueError(f"train_prm.labels={c.train_prm.labels!r}: None; the rewards of "
                     "the loop read an implicit PRM.")
  if learns == "prm" and c.prm.order == "none":
    raise ValueError("prm.order='none': single, double or reverse; the PRM learns here.")
  if learns == "prm" and not methods.needs("prm_logps_BT"):
    raise ValueError("rewards: none reads a PRM, so there is none; add implicit.process.")


def needed_splits(c: keys.Config, learns: str) -> tuple[str, ...]:
  """The splits of prompts that are sampled, see `build`; stored completions need none."""
  if not learns: return ("eval",)
  is_stored = (c.train_prm.rollouts is not None and c.train_prm.held_out is not None
               and c.train_prm.labels is None)
  return () if learns == "prm" and is_stored else ("train", "eval")


def device_stages(c: keys.Config, methods: methods_lib.Methods,
                  models: dict[str, transformer.DecoderConfig], mesh: jax.sharding.Mesh,
                  optimizers: dict[str, optimizer.Optimizer], *, token_id: int | None = None,
                  learns: str = "policy") -> dict[str, Any]:
  """{field of Run: value} for the stages from log-probs to the update; allocates nothing.

  Args:
    models: {"policy", "prm"}: DecoderConfig.
    mesh: may be abstract.
    token_id, learns: see `token_id` and `build`.
  """
  planned = {"policy": methods.planned, "prm": methods.planned_for_prm}.get(
      learns, lambda c: [])(c)
  now, before = statistics(c, methods)
  passes = options(
      logps.Options, c, mesh=mesh, models=models, beta=methods.prm_beta, statistics=before,
      head_parts=None if c.train_prm.labels is None else c.prm.microbatches)
  return dict(planned=planned, passes=passes,
              score=annotate.scorer(planned, methods_lib.field_options(c), passes),
              advantage=advantage_of(c, methods),
              update=updates_of(c, methods, models, mesh, optimizers, now, token_id))


def updates_of(c: keys.Config, methods: methods_lib.Methods,
               models: dict[str, transformer.DecoderConfig], mesh: jax.sharding.Mesh,
               optimizers: dict[str, optimizer.Optimizer], statistics_: tuple,
               token_id: int | None) -> Updates:
  """The Updates of a config; for the arguments see `device_stages`."""
  learners = {name: update.Learner(
      config=models["prm" if name == "prm" else "policy"], optimizer=optimizers[name],
      mesh=mesh, group=c.rollouts.per_prompt, epochs=c[name].epochs,
      minibatches=c[name].minibatches, microbatches=c[name].microbatches, seed=c.seed,
      offload=c.offload_optimizers)
              for name in optimizers}
  prm, prm_step = update.prm_head(learners["prm"]) if c.train_prm.labels else update.prm(
      methods.prm, learners["prm"], order=c.prm.order, snapshot=c.prm.snapshot,
      starts_equal=c.prm.path is None or c.prm.reference == "self",
      parts=c.learner.microbatches)
  value, value_step = update.value(learners["value"], clip=c.value.clip)
  policy, policy_step = update.policy(
      methods, learners["learner"], policy_loss_options(c),
      temperature=c.rollouts.decoding.temperature, statistics=statistics_, token_id=token_id)
  moves = options(update.Moves, c, completions=c.prompts.per_step * c.rollouts.per_prompt)
  return Updates(prm=prm, value=value, policy=policy, learners=learners,
                 end_step=update.end_step(moves, mesh, optimizers["learner"]),
                 programs=dict(prm=prm_step, value=value_step, learner=policy_step))


def advantage_of(c: keys.Config, methods: methods_lib.Methods) -> Callable:
  """Returns this config's (state, Batch) -> (Batch, metrics): rewards, then advantages."""
  compares = config_validation.find_comparing(c, methods) if c.advantages.whiten else ()
  return advantage.make(methods, whiten=c.advantages.whiten, kl_kind=c.kl.kind,
                        whiten_signal_only=len(compares) == len(methods.estimators))


def policy_loss_options(c: keys.Config) -> update.PolicyLoss:
  """update.PolicyLoss of this config."""
  return options(update.PolicyLoss, c)


def statistics(c: keys.Config, methods: methods_lib.Methods) -> tuple[tuple, ...]:
  """The distribution statistics that methods read.

  Returns:
    ((field, spec), ...) for the policy being updated, and the same for the policy before its
    update.
  """
  declared = methods.declared()
  read = {name for fn in (*methods.readers().values(), methods.auxiliary) if fn
          for name in methods_lib.all_fields(fn)}
  return tuple(methods_lib.statistics(
      declared, [name for name, f in declared.items() if f.where == where and name in read], c)
               for where in ("later", "model"))


def optimizer_of(c: keys.Config, name: str) -> optimizer.Optimizer:
  """AdamW for "learner", "prm", "value" or "sft", for parameters in model.param_dtype."""
  updates = 1 if name == "sft" else c[name].epochs * c[name].minibatches
  adamw = optimizer.adamw(**c[name].optimizer, updates=updates)
  if c.model.param_dtype == "float32" or c.lora.rank: return adamw  # Adapters are float32.
  return optimizer.over_bfloat16(adamw, rng.key(c.seed, "rounding", rng.number(name)),
                                 param_update=c.model.param_update)


def check_cuts(c: keys.Config, shards: int) -> None:
  """Checks that minibatches, microbatches and devices get whole groups of a batch.

  Args:
    shards: number of devices that rows are spread over.
  Raises:
    ValueError: one line naming the keys.
  """
  rows = f"mesh.data x mesh.fsdp = {shards}"
  for name in ("learner", "prm", "value"):
    n, parts = c[name].minibatches, c[name].microbatches
    if c.prompts.per_step % (n * parts * shards):
      raise ValueError(
          f"prompts.per_step={c.prompts.per_step}: must be a multiple of {name}.minibatches={n} "
          f"x {name}.microbatches={parts} x {rows}; microbatches hold whole groups.")
  for name, n in (("eval.batch", c.eval.batch), ("rollouts.rehearsal", c.rollouts.rehearsal),
                 ("rollouts.oversample x (prompts.per_step - rollouts.rehearsal)",
                  sizes_of(c).draw)):
    if n % shards: raise ValueError(f"{name}={n}: must be a multiple of {rows}.")
  if (c.rollouts.slots or 0) % (c.rollouts.per_prompt * shards):
    raise ValueError(f"rollouts.slots={c.rollouts.slots}: a multiple of rollouts.per_prompt="
                     f"{c.rollouts.per_prompt} x {shards} devices over which rows are spread.")


def on_mesh(config: transformer.DecoderConfig,
            mesh: jax.sharding.Mesh) -> transformer.DecoderConfig:
  """A DecoderConfig for the devices of a mesh.

  Activations and caches are sharded by rows: without these constraints XLA keeps the parameters in
  place and transfers activations. If there are fewer key-value heads than devices of the tensor
  axis, each device has a copy of one.
  """
  platform = sharding.platform(mesh)
  if config.attention == "cudnn" and platform not in ("gpu", None):
    raise ValueError("model.attention='cudnn': blocks; cudnn needs a GPU.")
  config = dataclasses.replace(config, platform=platform)
  tensor, heads = mesh.shape["tensor"], config.n_kv_heads
  if tensor % heads == 0 and config.n_heads % tensor == 0:
    config = dataclasses.replace(config, kv_copies=tensor // heads)
  if mesh.size == 1: return config
  by_rows = lambda *axes: jax.sharding.NamedSharding(
      mesh, jax.sharding.PartitionSpec(*sharding.ROWS, *axes))
  return dataclasses.replace(config, rows=by_rows(), heads=by_rows("tensor"))


def _texts_and_dialogues(c, tokenizer):
  """Returns (texts.Texts, dialogue.Dialogues); the second is None without an environment.

  With one, episodes start with what it says of a prompt and not with the prompt's own text.
  """
  texts, e = inputs.texts_of(c, tokenizer), c.episodes
  if c.environment.name is None: return texts, None
  given = {k: v for k, v in c.environment.to_dict().items() if k != "name"}
  dialogues = dialogue.Dialogues(
      runner.Runner(c.environment.name, given, workers=e.workers, timeout_s=e.timeout_s),
      options(dialogue.Options, c), texts.template)
  return dataclasses.replace(texts, template=dialogues.opening), dialogues


def token_id(c: keys.Config, tokenizer: tokenizer_io.Tokenizer) -> int | None:
  """The id of likelihood.token; None if no token is configured.

  Raises:
    ValueError: the token is not in the vocabulary.
  """
  token = c.likelihood.token
  if token is not None and token not in tokenizer.vocabulary:
    raise ValueError(f"likelihood.token={token!r}: a token of the vocabulary.")
  return tokenizer.vocabulary.get(token)


def freeze(params: Any, dtype: str | None) -> Any:
  """Casts parameters that only forward passes read to model.frozen_dtype, None: as they are.

  Norm scales keep their dtype, because a forward pass multiplies by them in float32 and casts
  all other parameters to model.dtype first. The log-probs are therefore bitwise the same.
  """
  if dtype is None: return params
  return jax.tree.map_with_path(
      lambda path, x: x if path[-1].key.startswith("scale_") else x.astype(dtype), params)


def initializers(c: keys.Config, methods: methods_lib.Methods, mesh: jax.sharding.Mesh,
                 optimizers: dict[str, optimizer.Optimizer],
                 models: dict[str, tuple[transformer.DecoderConfig, Any]],
                 frozen: Any) -> tuple[Callable, Callable]:
  """Returns (init, shapes): () -> the TrainState before the first step, and its shapes.

  The state has copies of the models, because steps donate it. With adapters, the references are
  the initial adapters, whose output is 0. The same program then runs for the PRM and its
  reference, so that equal weights give exactly equal log-probs. The shapes have shardings;
  computing them allocates nothing.

  Args:
    models: {"policy", "prm"}: (DecoderConfig, params).
    frozen: the base parameters if the models are adapters, else None.
  """
  has_prm, has_policy_ref = methods.needs("prm_logps_BT"), methods.needs("ref_logps_BT")
  is_asked = c.likelihood.model == "reference" and any(
      methods.needs(f) for f in ("answer_mask_BM", "answer_logps_BM"))
  has_reference = (has_prm and c.prm.reference == "frozen") or is_asked or (
      has_policy_ref and not c.kl.sync_every)
  configs = {name: config for name, (config, _) in models.items()}

  def state_of(params, frozen):
    policy, prm = params["policy"], params["prm"]
    copy = functools.partial(sharding.place, mesh=mesh, copies=True)
    number = lambda x: sharding.place(jnp.float32(x), mesh)
    def learned(name, optimizer_name, params):
      params = copy(params)
      return {name: params,
              f"{name}_opt": sharding.made(optimizers[optimizer_name].init, params, mesh)}
    parts = dict(learned("policy", "learner", policy), kl_coef=number(c.kl.coef),
                 frozen=None if frozen is None else copy(frozen))
    if has_policy_ref and c.kl.sync_every: parts["kl_reference"] = copy(policy)
    if has_reference: parts["reference"] = copy(freeze(policy, c.model.frozen_dtype))
    if has_prm:
      has_head = c.train_prm.labels is not None
      parts |= learned("prm", "prm", value_model.init(configs["prm"], prm) if has_head else prm)
      if c.prm.order == "none": del parts["prm_opt"]
      if c.prm.reference == "self":
        parts["prm_reference"] = copy(freeze(prm, c.model.frozen_dtype))
    if methods.needs("values_BT"):
      parts |= learned("value", "value", value_model.init(configs["policy"], policy))
    if c.rollouts.sync_every > 1: parts["sampler"] = copy(policy)
    if methods.reward_std_filter: parts["reward_std"] = number(jnp.nan)
    return records.TrainState(step=0, **parts)

  start = {name: params for name, (_, params) in models.items()}
  return (lambda: idle(c, state_of(start, frozen)),
          lambda: idle(c, sharding.shapes(jax.eval_shape(state_of, start, frozen), mesh)))


def idle(c: keys.Config, state: records.TrainState) -> records.TrainState:
  """A state, or its shapes, as it is between updates: see `offload_optimizers`."""
  if not c.offload_optimizers: return state
  return dataclasses.replace(state, **{
      name: sharding.moved(getattr(state, name), "pinned_host")
      for name in ("policy_opt", "prm_opt", "value_opt")})
