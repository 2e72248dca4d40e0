"""Turns a config into functions, once, at startup.

`build(config)` checks the config before anything compiles and returns a `Run`:
the stages as functions of the state and the records, with all options bound.
`config_validation.py` defines which configs are valid. The folder `loops` computes the fields
of a batch and updates the models.
"""
import dataclasses
import functools
import inspect
import itertools
import sys
from typing import Any, Callable

import jax
import jax.numpy as jnp
import numpy as np

from rlx import config_validation
from rlx import keys
from rlx import methods as methods_lib
from rlx.core import fields
from rlx.core import records
from rlx.core import resolve
from rlx.core import rng
from rlx.io import chat
from rlx.io import rows as io_rows
from rlx.io import terminal
from rlx.io import tokenizer as tokenizer_io
from rlx.io import trackers
from rlx.io import weights
from rlx.learner import hosts
from rlx.learner import memory
from rlx.learner import optimizer
from rlx.learner import sharding
from rlx.loops import advantage
from rlx.loops import annotate
from rlx.loops import collect
from rlx.loops import logps
from rlx.loops import session
from rlx.loops import texts as texts_lib
from rlx.loops import update
from rlx.models import decode
from rlx.models import lora
from rlx.models import size
from rlx.models import transformer
from rlx.models import value as value_model
from rlx.prompts import filters
from rlx.prompts import iterator
from rlx.rollouts import padding
from rlx.rollouts import sampler
from rlx.rollouts import slots
from rlx.verifiers import pool


@dataclasses.dataclass(frozen=True)
class Sampling:
  """Completions of the policy, for training and for evaluation."""
  encode: Callable             # prompts -> tokens_PX, prompt_len_P, prompt_P
  lay_out: Callable            # params -> weights as decoding reads them, once per policy
  train: Callable              # (params, *encoded, key, factor_T, weights) -> Rollouts
  greedy: Callable             # the same, one completion a prompt
  sampled: Callable            # the same, eval.samples completions a prompt
  slots: dict                  # {"train", "greedy", "sampled"}: most rows decoded at once, or None
  device_bytes: int | None     # memory of a device, which limits the slots; None: unknown


@dataclasses.dataclass(frozen=True)
class Loop:
  """The config values that only the RL loop reads; see configs/base.py for each key."""
  seed: int
  eval_every: int
  eval_batch: int
  final_samples: int           # times that held-out prompts are sampled before and after
  completions: int             # rows of a table of completions
  completions_every: int
  max_skipped: int


@dataclasses.dataclass(frozen=True)
class Run:
  """The built config: stages as functions of the state and the records, with options bound."""
  config: Any                  # for the tools and the record of the run; no stage reads it
  loop: Loop
  methods: Any                 # methods.Methods
  mesh: Any
  texts: Any                   # texts.Texts
  models: dict                 # {"policy", "prm"}: DecoderConfig
  prompts: Any                 # resumable iterator over training prompts; None without them
  eval_prompts: list
  init: Callable               # () -> TrainState
  shapes: Callable             # () -> TrainState of shapes with shardings; allocates nothing
  sampling: Sampling
  verify: Callable             # (prompts, rollouts) -> outcome_PG
  pool: Any                    # verifiers.pool.Pool
  collector: Any               # collect.Collector; None without training prompts
  annotate: Callable           # (state, Collected) -> Annotated: fields computed on the host
  place: Callable              # Annotated -> Placed: on the mesh
  score: Callable              # (state, Placed) -> Placed with the log-probs that methods read
  advantage: Callable          # (state, Batch) -> (Batch, metrics): rewards, then advantages
  learners: dict               # {"prm", "value", "learner"}: update.Learner
  learn_prm: Callable          # (state, Placed) -> (state, Batch, metrics)
  learn_value: Callable        # (state, Placed, step) -> (state, metrics)
  learn_policy: Callable       # (state, Placed, step) -> (state, Batch, metrics)
  updates: dict                # {"prm", "value", "learner"}: the jitted optimizer steps in them
  end_step: Callable           # (state, metrics) -> the state of the next step
  passes: Any                  # logps.Options
  planned: list                # the Fields that are computed for a batch


@dataclasses.dataclass(frozen=True)
class Sft:
  """The built config of supervised fine-tuning."""
  model: Any                   # DecoderConfig
  tokenizer: Any
  init: Callable               # () -> TrainState of the policy
  batch: Callable              # step -> Rollouts of worked examples, on the mesh
  update: Callable             # (params, opt_state, Rollouts) -> params, opt_state, metrics, None


def session_options(config, section=None):
  """Checks `config` and returns the session.Options of a training loop.

  Args:
    section: the section whose key `steps` is the number of steps; None: the whole config.
  """
  c = config
  keys.check(c)
  trackers.check(c.log.writers)
  return session.Options(
      seed=c.seed, steps=(c if section is None else c[section]).steps, checkpoint_every=c.checkpoint.every,
      max_to_keep=c.checkpoint.max_to_keep, writers=c.log.writers, silence_s=c.log.silence_s)


def build(config, splits=None, recorded=None, learns="policy"):
  """Checks `config` and binds it.

  Args:
    splits: which prompts are loaded. Without "train" Run.prompts is None, without
      "eval" Run.eval_prompts is empty. None: those that are needed for `learns`.
    recorded: the result of `cli.recorded` for a run that is resumed. With the recorded number
      of slots the sampler's log-probs are bitwise those of an uninterrupted run. None: a new
      run.
    learns: "policy", "prm" if only a PRM is trained, on stored completions, or "" if nothing
      is. Fields of a batch are computed only for the models that learn.
  Raises:
    ValueError: one line with the key, its value and what is allowed.
  """
  c = config
  keys.check(c)
  methods = methods_lib.resolved(c)
  config_validation.check(c, methods)
  _check_learns(c, methods, learns)
  if splits is None: splits = needed_splits(c, learns)
  mesh = sharding.make_mesh(**c.mesh)
  check_cuts(c, sharding.row_shards(mesh))
  model_config, start, tokenizer = load_model(c, c.model.path)
  sharding.check(start, mesh)
  base_params, model_config = start, on_rows(model_config, mesh)
  if c.lora.rank:
    model_config = dataclasses.replace(model_config, lora_scale=c.lora.alpha / c.lora.rank)
    start = lora.init(base_params, rng.key(c.seed, "lora"), rank=c.lora.rank,
                      targets=tuple(c.lora.targets))
  models = dict(policy=(model_config, start), prm=(model_config, start))
  if methods.needs("prm_logps_BT") and c.prm.path is not None:
    prm_config, prm_start, prm_tokenizer = load_model(c, c.prm.path)
    models["prm"] = on_rows(prm_config, mesh), prm_start
    if prm_tokenizer.vocabulary != tokenizer.vocabulary:
      raise ValueError(f"prm.path={c.prm.path!r}: its tokenizer differs from "
                       f"that of model.path={c.model.path!r}.")
  texts = texts_of(c, tokenizer)
  train_prompts, eval_prompts = load_prompts(c, texts, splits)
  if "eval" in splits and not eval_prompts:
    raise ValueError(f"eval.split={c.eval.split!r} of prompts.source="
                     f"{c.prompts.source!r} has no prompts.")
  verifier_pool = _pool(c, train_prompts + eval_prompts)
  check_prompts(c, [*train_prompts, *eval_prompts])
  if train_prompts: note_template(texts, train_prompts[0])
  per_draw = draw_size(c)
  if "train" in splits and len(train_prompts) < per_draw:
    raise ValueError(f"prompts.source={c.prompts.source!r}: {len(train_prompts)} "
                     f"training prompts; a draw takes {per_draw} different ones.")
  optimizers = {name: optimizer_of(c, name) for name in ("learner", "prm", "value")}
  frozen = freeze(c, base_params) if c.lora.rank else None
  shapes = functools.partial(shapes_of, c, methods, mesh, optimizers, models, frozen)
  lay_out = layout(model_config, mesh)
  draw = samplers(c, model_config, tokenizer, mesh, lay_out)
  # All processes must use the same value; the first one records it.
  limit = (recorded or {}).get("device_bytes") or hosts.gather(memory.device_bytes(mesh))[0]
  slots_of = functools.partial(
      sampler_slots, c, model_config, mesh,
      None if limit is None else limit - memory.tree_bytes(shapes()))
  slots_ = dict(train=slots_of(per_draw, first_pass(c)),
                greedy=slots_of(c.eval.batch, 1),
                sampled=slots_of(c.eval.batch, c.eval.samples))
  width = c.prompts.max_tokens

  def encode(prompts):
    tokens_PX, len_P = padding.left_pad(
        [texts.prompt_ids(p) for p in prompts], width, tokenizer.pad_id)
    ids_P = np.array([rng.number(p.id) for p in prompts], np.uint32)
    return tuple(sharding.place_rows(x, mesh) for x in (tokens_PX, len_P, ids_P))

  rows_of = _rows_of(c, methods, tokenizer, verifier_pool, train_prompts + eval_prompts)
  reward = reward_of(rows_of, verifier_pool, _verdict_readers(c, methods))
  stages = device_stages(c, methods, {name: model[0] for name, model in models.items()}, mesh,
                         optimizers, token_id=token_id(c, tokenizer), learns=learns)
  sampling = Sampling(
      encode=encode, lay_out=lay_out, slots=slots_, device_bytes=limit,
      train=draw(first_pass(c), c.rollouts.decoding, slots_["train"]),
      greedy=draw(1, dict(temperature=0.0), slots_["greedy"]),
      sampled=draw(c.eval.samples, c.rollouts.decoding, slots_["sampled"]))
  prompts = None if "train" not in splits else iterator.PromptIterator(
      train_prompts, seed=c.seed, paired=c.prompts.paired)
  return Run(
      config=c, loop=Loop(
          seed=c.seed, eval_every=c.eval.every, eval_batch=c.eval.batch,
          final_samples=c.eval.final_samples, completions=c.log.completions,
          completions_every=c.log.completions_every, max_skipped=c.learner.max_skipped),
      methods=methods, mesh=mesh, texts=texts, prompts=prompts,
      eval_prompts=eval_prompts, verify=lambda *args: annotate.verdicts(reward(*args)),
      init=functools.partial(_init, c, methods, mesh, optimizers, models, frozen),
      shapes=shapes, sampling=sampling, pool=verifier_pool,
      collector=prompts and collect.Collector(
          prompts=prompts, encode=encode, sample=sampling.train, lay_out=lay_out,
          anneal=methods.anneal, demonstrate=_demonstrate(c, texts, train_prompts),
          verify=reward, pool=verifier_pool, budget=methods.budget,
          filter_groups=methods.filter_groups, seed=c.seed, per_prompt=c.rollouts.per_prompt,
          draw_size=per_draw, trained=trained(c), max_draws=c.rollouts.max_draws,
          fill=c.rollouts.fill, rehearsal=c.rollouts.rehearsal, max_tokens=c.rollouts.max_tokens,
          bucket=c.rollouts.bucket, max_error_rate=c.verifier.max_error_rate),
      annotate=_annotate(c, methods, stages["planned"], tokenizer, verifier_pool, train_prompts,
                         rows_of, _greedy_outcome(c, draw, encode, reward)),
      place=annotate.Placer(mesh, c.learner.pack), **stages)


def sft(config):
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
  model_config, params, tokenizer = sft_start(c)
  model_config = on_rows(model_config, mesh)
  transform, texts = optimizer_of(c, "sft"), texts_of(c, tokenizer)
  prompts, _ = load_prompts(c, texts)
  note_template(texts, prompts[0])
  seed, size = c.seed, c.sft.batch

  def init():
    policy = sharding.place(params, mesh)
    return records.TrainState(step=0, policy=policy,
                              policy_opt=sharding.made(transform.init, policy, mesh))

  def batch(step):
    draw = np.random.default_rng([seed, rng.number("sft"), step])
    chosen = [prompts[i] for i in draw.choice(len(prompts), size, replace=False)]
    return sharding.place_rows(
        texts.examples([(texts.prompt(p), demonstrate(p, draw)) for p in chosen]), mesh)

  return Sft(model_config, tokenizer, init, batch, update.sft(
      model_config, transform, microbatches=c.sft.microbatches, shards=shards))


def sft_start(c):
  """Loads the model of model.path; if it is None, initialises one with the sizes of sft.fresh.

  Raises:
    ValueError: sft.fresh lacks a size or has an unknown one.
  """
  if c.model.path is not None: return load_model(c, c.model.path)
  sizes = c.sft.fresh.to_dict()
  options = {f.name: f.default for f in dataclasses.fields(transformer.DecoderConfig)}
  needed = {k for k, v in options.items() if v is dataclasses.MISSING}
  needed = needed - {"vocab_size"} | {"alphabet"}
  if needed - sizes.keys() or sizes.keys() - needed - options.keys():
    raise ValueError(f"sft.fresh has {sorted(sizes)}; needed are {sorted(needed)}.")
  tokens = tokenizer_io.characters(sizes.pop("alphabet"))
  config = transformer.DecoderConfig(
      vocab_size=len(tokens.vocabulary), dtype=c.model.dtype, param_dtype=c.model.param_dtype,
      attention=c.model.attention, remat=c.model.remat, **sizes)
  return config, transformer.init(config, rng.key(c.seed, "init")), tokens


def _check_learns(c, methods, learns):
  """Checks that the config has what learns."""
  if learns == "policy" and c.train_prm.labels is not None:
    raise ValueError(f"train_prm.labels={c.train_prm.labels!r}: None; the rewards of "
                     "the loop read an implicit PRM.")
  if learns == "prm" and c.prm.order == "none":
    raise ValueError("prm.order='none': single, double or reverse; the PRM learns here.")
  if learns == "prm" and not methods.needs("prm_logps_BT"):
    raise ValueError("rewards: none reads a PRM, so there is none; add implicit.process.")


def needed_splits(c, learns):
  """The splits of prompts that are sampled, see `build`; stored completions need none."""
  if not learns: return ("eval",)
  is_stored = (c.train_prm.rollouts is not None and c.train_prm.held_out is not None
               and c.train_prm.labels is None)
  return () if learns == "prm" and is_stored else ("train", "eval")


def device_stages(c, methods, models, mesh, optimizers, *, token_id=None, learns="policy"):
  """{field of Run: value} for the stages from log-probs to the update; allocates nothing.

  Args:
    models: {"policy", "prm"}: DecoderConfig.
    mesh: may be abstract.
    token_id, learns: see `token_id` and `build`.
  """
  learners = {name: update.Learner(
      config=models["prm" if name == "prm" else "policy"], optimizer=optimizers[name],
      mesh=mesh, group=c.rollouts.per_prompt, epochs=1 if name == "prm" else c[name].epochs,
      minibatches=c[name].minibatches, microbatches=c[name].microbatches, seed=c.seed)
              for name in optimizers}
  learn_prm, prm_step = update.prm_head(learners["prm"]) if c.train_prm.labels else update.prm(
      methods.prm, learners["prm"], order=c.prm.order, snapshot=c.prm.snapshot,
      parts=c.learner.microbatches)
  learn_value, value_step = update.value(learners["value"], clip=c.value.clip)
  now, before = statistics(c, methods)
  learn_policy, policy_step = update.policy(
      methods, learners["learner"], policy_loss_options(c),
      temperature=c.rollouts.decoding.temperature, statistics=now, token_id=token_id)
  planned = methods.planned(c) if learns == "policy" else methods.planned_for_prm(c)
  passes = logps.Options(
      mesh=mesh, models=models, temperature=c.rollouts.decoding.temperature,
      parts=c.learner.microbatches, value_parts=c.value.microbatches, pack=c.learner.pack,
      prm_reference=c.prm.reference, asked=c.likelihood.model, group=c.rollouts.per_prompt,
      beta=methods.prm_beta, seed=c.seed, statistics=before)
  return dict(
      models=models, planned=planned, passes=passes,
      score=annotate.scorer(planned, methods_lib.field_options(c), passes),
      advantage=advantage_of(c, methods), learners=learners, learn_prm=learn_prm,
      learn_value=learn_value, learn_policy=learn_policy,
      updates=dict(prm=prm_step, value=value_step, learner=policy_step),
      end_step=update.end_step(update.Moves(
          sampler_every=c.rollouts.sync_every, reference_every=c.kl.sync_every,
          reference_mix=c.kl.sync_mix, resets_optimizer=c.kl.reset_optimizer,
          kl_target=c.kl.target, kl_horizon=c.kl.horizon,
          completions=c.prompts.per_step * c.rollouts.per_prompt), mesh, optimizers["learner"]))


def advantage_of(c, methods):
  """Returns this config's (state, Batch) -> (Batch, metrics): rewards, then advantages."""
  compares = config_validation.compares(c, methods) if c.advantages.whiten else ()
  return advantage.make(methods, whiten=c.advantages.whiten, kl_kind=c.kl.kind,
                        whiten_signal_only=len(compares) == len(methods.estimators))


def policy_loss_options(c):
  """update.PolicyLoss of this config."""
  return update.PolicyLoss(
      aggregation=c.learner.aggregation, max_tokens=c.rollouts.max_tokens,
      entropy_coef=c.learner.entropy_coef, auxiliary_coef=c.learner.auxiliary.coef,
      kl_kind=c.kl.kind)


def statistics(c, methods):
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


def optimizer_of(c, name):
  """AdamW for "learner", "prm", "value" or "sft", for parameters in model.param_dtype."""
  epochs = c[name].epochs if name in ("learner", "value") else 1
  minibatches = 1 if name == "sft" else c[name].minibatches
  adamw = optimizer.adamw(**c[name].optimizer, updates=epochs * minibatches)
  if c.model.param_dtype == "float32" or c.lora.rank: return adamw  # Adapters are float32.
  return optimizer.over_bfloat16(adamw, rng.key(c.seed, "rounding", rng.number(name)),
                                 param_update=c.model.param_update)


def check_cuts(c, shards):
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
  for key, n in (("eval.batch", c.eval.batch), ("rollouts.rehearsal", c.rollouts.rehearsal),
                 ("rollouts.oversample x (prompts.per_step - rollouts.rehearsal)",
                  draw_size(c))):
    if n % shards: raise ValueError(f"{key}={n}: must be a multiple of {rows}.")
  if c.rollouts.slots is not None and shards > 1:
    raise ValueError(f"rollouts.slots={c.rollouts.slots}: None where rows are spread "
                     f"over {rows} devices.")


def load_model(c, path):
  """(DecoderConfig, params, tokenizer) of a path, in the dtypes of `model`.

  Raises:
    ValueError: no path, or sequences could be longer than the model supports.
  """
  if path is None: raise ValueError("model.path=None: a model; only `rlx sft` makes one.")
  config, params, tokenizer = weights.load(path, dtype=c.model.param_dtype)
  length = c.prompts.max_tokens + c.rollouts.max_tokens + c.likelihood.max_tokens
  if config.max_positions is not None and length > config.max_positions:
    terms = [f"{stage}.max_tokens={c[stage].max_tokens}"
             for stage in ("prompts", "rollouts", "likelihood") if c[stage].max_tokens]
    raise ValueError(f"{' + '.join(terms)}: {path!r} supports at most "
                     f"{config.max_positions} positions (max_position_embeddings).")
  config = dataclasses.replace(config, dtype=c.model.dtype, length=length,
                               param_dtype=c.model.param_dtype,
                               attention=c.model.attention, remat=c.model.remat)
  return config, params, tokenizer


def on_rows(config, mesh):
  """A DecoderConfig whose activations and caches are sharded by rows.

  Without these constraints XLA keeps the parameters in place and transfers activations.
  """
  if sharding.row_shards(mesh) == 1: return config
  by_rows = lambda *axes: jax.sharding.NamedSharding(
      mesh, jax.sharding.PartitionSpec(*sharding.ROWS, *axes))
  return dataclasses.replace(config, rows=by_rows(), heads=by_rows("tensor"))


def texts_of(c, tokenizer):
  """The texts.Texts of a config and a tokenizer."""
  return texts_lib.Texts(
      tokenizer, resolve.bind("prompts.templates", c.prompts.template, "prompts.template"),
      c.rollouts.step_separator, c.prompts.max_tokens, c.rollouts.max_tokens)


def note_template(texts, prompt):
  """Prints a line on stderr if the chat template is not prefix-stable."""
  messages = texts.template(prompt)
  if isinstance(messages, str) or not hosts.is_first(): return
  faults = {}
  for reply in chat.PROBES: faults |= chat.faults(texts.tokenizer, messages, reply)
  if faults:
    print("rlx: the chat template is not prefix-stable: "
          + terminal.line("; ".join(faults.values()))
          + ". Training uses the prompt as it is rendered for sampling (rlx/io/chat.py).",
          file=sys.stderr)


def read_prompts(c, split):
  """Returns all prompts of a split."""
  path = c.prompts.dataset
  if isinstance(path, str) and ":" not in path: path = f"datasets.{path}.prompts"
  resolve.lookup("prompts", path, "prompts.dataset")
  dataset = resolve.bind("prompts", dict(c.prompts.columns, name=path), "prompts.columns",
                         n_given=2)
  return dataset(io_rows.rows(c.prompts.source, split, **c.prompts.options), split)


def load_prompts(c, texts, splits=("train", "eval")):
  """Returns (training prompts, held-out prompts), filtered and without common texts."""
  def load(split, at_most=None):
    prompts = itertools.islice(read_prompts(c, split), at_most)
    return filters.by_length(filters.unique(list(prompts)),
                             lambda p: len(texts.prompt_ids(p)),
                             c.prompts.max_tokens)
  # Reads twice as many rows as held-out prompts are wanted, because the filters drop some.
  held_out = (load(c.eval.split, 2 * c.eval.prompts)[:c.eval.prompts]
              if "eval" in splits else [])
  train = filters.not_in(load(c.prompts.split), held_out) if "train" in splits else []
  return train[:c.prompts.limit], held_out


def check_prompts(c, prompts):
  """Checks that the verifiers support the prompts, and that no constant answer passes them.

  A verifier may have `check(prompt)`, which raises a ValueError, and `constant(prompt)`, which
  describes an answer that passes whatever the question is.

  Raises:
    ValueError: one line about the first prompt that fails.
  """
  errors = []
  for p in prompts:
    try:
      for fn in verifiers_of(c, p):
        if hasattr(fn, "check"): fn.check(p)
      if not c.verifier.allow_constant and (constant := constant_of(c, p)):
        raise ValueError(f"its tests are passed by {constant}, whatever is asked: add tests, "
                         "leave it out, or take it with verifier.allow_constant=true")
    except ValueError as e:
      errors.append(f"prompt {p.id!r}: {e}")
  if errors:
    more = f" ({len(errors) - 1} more such prompts)" if len(errors) > 1 else ""
    raise ValueError(f"{errors[0].rstrip('.')}.{more}")


def verifiers_of(c, prompt):
  """The functions that compute the verdict and the scores of a prompt's completions."""
  return [_verifier(path) for path in dict.fromkeys((prompt.verifier, *c.verifier.scores))]


@functools.cache  # The prompts of a run share a few verifiers.
def _verifier(path):
  return resolve.lookup("verifiers", path, "verifier")


def constant_of(c, prompt):
  """Describes an answer that passes a verifier whatever the question is; None if there is none."""
  constants = (fn.constant(prompt) for fn in verifiers_of(c, prompt) if hasattr(fn, "constant"))
  return next(filter(None, constants), None)


def _verdict_readers(c, methods):
  """Config keys of the methods that read the verdict."""
  readers = methods.readers() | {"rollouts.filter_groups": methods.filter_groups}
  if methods.needs("prm_logps_BT") and c.prm.order != "none": readers["prm.loss"] = methods.prm
  return [key for key, fn in readers.items()
          if "outcome_B" in map(fields.column, fn.required)]


def _pool(c, prompts):
  """Returns the pool of verifiers, after a check that it can run all verifiers of the run."""
  verifiers = pool.Pool(
      workers=c.verifier.workers, timeout_s=c.verifier.timeout_s, gather=hosts.gather,
      options=dict(
          judge=dict(c.verifier.judge.to_dict(), key=rng.secret(c.seed, "judge")),
          code=dict(unsafe=c.verifier.unsafe, test_s=c.verifier.test_s,
                    test_mb=c.verifier.test_mb, total_s=0.8 * c.verifier.timeout_s)))
  verifiers.require({p.verifier: f"prompt {p.id!r}" for p in prompts})
  for key in ("scores", "step_rewards"):
    verifiers.require({path: f"verifier.{key}" for path in c.verifier[key]})
  verifiers.require({path: "verifier.steps" for path in [c.verifier.steps] if path is not None})
  verifiers.require({path: "eval.prm_sets" for path in c.eval.prm_sets
                     if not path.endswith(".jsonl")})
  return verifiers


def reward_of(rows_of, pool_, readers):
  """Returns (prompts, rollouts) -> reward_PG, what the prompts' verifiers return.

  The first reward outside [0, 1] is reported in one line on stderr.

  Args:
    readers: config keys of what reads the verdict, which is clipped to [0, 1].
  """
  reported = []

  def reward(prompts, rollouts):
    rows, texts = rows_of(prompts, rollouts)
    reward_PG = np.array(_shared(pool_.verify, rows, texts)).reshape(len(prompts), -1)
    outside = reward_PG[(reward_PG < 0) | (reward_PG > 1)]
    if len(outside) and not reported and hosts.is_first():
      reported.append(True)
      print(f"rlx: a reward is {outside[0]:g}; {', '.join(['held-out accuracy', *readers])} read "
            "rewards clipped to [0, 1].", file=sys.stderr)
    return reward_PG

  return reward


FROM_ROLLOUTS = ("action_BT", "sampler_logps_BT", "finish_B")  # Known before any verdict.


def _rows_of(c, methods, tokenizer, pool_, prompts):
  """Returns (prompts, rollouts) -> each completion's prompt and text.

  The meta of these prompts contains the values of the fields that verifiers read by name.

  Raises:
    ValueError: a verifier reads a field that nothing computes on the host.
  """
  paths = dict.fromkeys([*(p.verifier for p in prompts), *c.verifier.scores,
                         *filter(None, [c.verifier.steps]), *c.verifier.step_rewards])
  read = {path: pool_.fields_of(path) for path in paths}
  declared = fields.table(*dict.fromkeys(
      inspect.getmodule(pool_.lookup(path)) for path in paths if read[path])) if any(
          read.values()) else {}
  declared = methods.declared() | declared
  planned = fields.plan(declared, [fields.Reader(path, names) for path, names in read.items()],
                        methods_lib.RESOURCES, methods_lib.setting(c))
  for f in planned:
    if f.where != "host" and f.name not in FROM_ROLLOUTS:
      raise ValueError(f"a verifier reads {f.name}, which is computed after the verdicts.")
  names = [f.name for f in planned if f.axes]

  def rows_of(prompts, rollouts):
    texts = [tokenizer.decode(ids) for ids in padding.completions(rollouts)]
    rows = [p for p in prompts for _ in range(len(texts) // len(prompts))] if prompts else []
    if not names: return rows, texts
    values = fields.compute(planned, "host", dict(
        tokenizer=tokenizer, rollouts=rollouts, group_prompts=prompts, prompts=rows, texts=texts,
        **{n: np.asarray(getattr(rollouts, n)) for n in FROM_ROLLOUTS}),
                            methods_lib.field_options(c))
    return [dataclasses.replace(p, meta={**p.meta, **{n: values[n][b].tolist() for n in names}})
            for b, p in enumerate(rows)], texts

  return rows_of


def _shared(verify, prompts, texts):
  """The verdicts of `verify` on the texts, in order; each process computes its share."""
  return hosts.shared(lambda rows: list(verify(
      [prompts[i] for i in rows], [texts[i] for i in rows])), len(texts))


def _annotate(c, methods, planned, tokenizer, pool_, prompts, rows_of, greedy_outcome):
  """Returns a function (state, Collected) -> Annotated."""
  def verified_by(path, rows): return [dataclasses.replace(p, verifier=path) for p in rows]
  resources = dict(
      tokenizer=tokenizer,
      verify=lambda path, rows, texts: _shared(pool_.verify, verified_by(path, rows), texts),
      verify_steps=lambda path, rows, texts: _shared(
          pool_.verify_steps, verified_by(path, rows), texts))
  if any("answer_ids" in f.reads for f in planned):
    resources["answer_ids"] = _answer_ids(c, tokenizer, prompts)
  run = annotate.annotator(planned, methods_lib.field_options(c), group=c.rollouts.per_prompt,
                           select=methods.select_completions, rows_of=rows_of,
                           resources=resources)

  max_error_rate = c.verifier.max_error_rate

  def annotate_(state, collected):
    annotated = run(*collected, greedy_outcome=functools.partial(greedy_outcome, state))
    pool_.check(max_error_rate)
    return annotated

  return annotate_


def _demonstrate(c, texts, prompts):
  """Returns (prompts, rollouts) -> rollouts whose groups end with the prompt's demonstration.

  Raises:
    ValueError: a demonstration is longer than rollouts.max_tokens.
  """
  if c.rollouts.demonstration.name is None: return lambda prompts, rollouts: rollouts
  written = resolve.bind("prompts.datasets", c.rollouts.demonstration,
                         "rollouts.demonstration")
  ids_of = {}
  for p in prompts:
    draw = np.random.default_rng([c.seed, rng.number(p.id)])
    _, ids = texts.example(texts.prompt(p), written(p, draw))
    ids_of[p.id] = ids
    if len(ids) > c.rollouts.max_tokens:
      raise ValueError(f"rollouts.max_tokens={c.rollouts.max_tokens}: the demonstration "
                       f"of {p.id!r} has {len(ids)} tokens.")
  eos = records.FINISH.index("eos")
  return lambda prompts, rollouts: padding.put_last(
      rollouts, [ids_of[p.id] for p in prompts], eos)


def _greedy_outcome(c, draw, encode, verify):
  """Returns (state, prompts) -> verdicts of the policy's greedy completions of the prompts."""
  sample, seed = draw(1, dict(temperature=0.0), None), c.seed

  def greedy_outcome(state, prompts):
    rollouts = hosts.fetch(sample(state.full("policy"), *encode(prompts),
                                  rng.key(seed, "greedy")))
    return verify(prompts, rollouts)[:, 0]

  return greedy_outcome


def _answer_ids(c, tokenizer, prompts):
  """Returns a function from a Prompt to the token ids of its reference answer.

  Raises:
    ValueError: an answer is empty or longer than likelihood.max_tokens.
  """
  ids_of, most = {}, c.likelihood.max_tokens
  for p in prompts:
    ids_of[p.id] = ids = tokenizer.encode(c.likelihood.answer.replace("{}", p.answer),
                                          add_bos=False)
    if not p.answer or len(ids) > most:
      raise ValueError(f"likelihood.max_tokens={most}: the reference answer of "
                       f"{p.id!r} has {len(ids) if p.answer else 0} tokens; 1 to "
                       f"{most} are allowed.")
  return lambda prompt: ids_of[prompt.id]


def token_id(c, tokenizer):
  """The id of likelihood.token; None if no token is configured.

  Raises:
    ValueError: the token is not in the vocabulary.
  """
  token = c.likelihood.token
  if token is not None and token not in tokenizer.vocabulary:
    raise ValueError(f"likelihood.token={token!r}: a token of the vocabulary.")
  return tokenizer.vocabulary.get(token)


def trained(c):
  """Number of prompts of a batch whose completions are sampled: all but the rehearsed ones."""
  return c.prompts.per_step - c.rollouts.rehearsal


def draw_size(c):
  """Number of prompts sampled per draw."""
  return int(round(trained(c) * c.rollouts.oversample))


def first_pass(c):
  """Completions of a prompt in the first pass; rollouts.budget may add others."""
  return c.rollouts.budget.first if c.rollouts.budget.name else c.rollouts.per_prompt


def sampler_slots(c, model_config, mesh, bytes_free, prompts, group):
  """The largest number of rows of a draw that are decoded at once; None: all of them.

  Args:
    prompts, group: P and G of the draw.
    bytes_free: memory of a device that the state does not use; None: unknown.
  """
  if sharding.row_shards(mesh) > 1: return None  # Rows stay where they are.
  if c.rollouts.slots is not None: return max(c.rollouts.slots // group, 1) * group
  # A row may need its own copy of its prompt's cache, and its cache grows by chunks.
  tokens = c.prompts.max_tokens + c.rollouts.max_tokens + c.rollouts.chunk
  return slots.that_fit(prompts * group, group,
                        tokens * size.kv_bytes_per_token(model_config), bytes_free)


def layout(config, mesh):
  """Returns params -> the decoder's weights, replicated except over the tensor axis.

  Trained parameters are sharded over fsdp. A decode step multiplies few rows and would gather
  all parameters for each token.
  """
  return jax.jit(lambda params: sharding.gathered(decode.lay_out(params, config), mesh))


def samplers(c, model_config, tokenizer, mesh, lay_out):
  """Returns (completions per prompt, decoding rule, slots) -> sample, see `sampler.make`."""
  def draw(group, rule, slots_):
    return sampler.make(
        model_config, lay_out=lay_out, group=group, max_tokens=c.rollouts.max_tokens,
        chunk=c.rollouts.chunk, slots=slots_, eos_ids=tokenizer.eos_ids,
        pad_id=tokenizer.pad_id, stops=tuple(c.rollouts.stops),
        decode=tokenizer.decode, moves=sharding.row_shards(mesh) == 1,
        fetch=hosts.fetch, put=hosts.put, **rule)
  return draw


def freeze(c, params):
  """Casts parameters that only forward passes read to model.frozen_dtype.

  Norm scales keep their dtype, because a forward pass multiplies by them in float32 and casts
  all other parameters to model.dtype first. The log-probs are therefore bitwise the same.
  """
  if c.model.frozen_dtype is None: return params
  return jax.tree.map_with_path(
      lambda path, x: x if path[-1].key.startswith("scale_")
      else x.astype(c.model.frozen_dtype), params)


def shapes_of(c, methods, mesh, optimizers, models, frozen):
  """The result of `_init` as shapes with shardings."""
  def init(params, frozen):
    return _init(c, methods, mesh, optimizers,
                 {name: (models[name][0], p) for name, p in params.items()}, frozen)
  return sharding.shapes(jax.eval_shape(
      init, {name: p for name, (_, p) in models.items()}, frozen), mesh)


def _init(c, methods, mesh, optimizers, models, frozen):
  """The state before the first step. It has copies of the models, because steps donate it.

  With adapters, the references are the initial adapters, whose output is 0. The same program
  then runs for the PRM and its reference, so that equal weights give exactly equal log-probs.
  """
  def copy(params):
    return sharding.place(params, mesh, copies=True)
  def start(config, params, name):
    params = copy(params)
    return params, sharding.made(optimizers[name].init, params, mesh)
  policy, policy_opt = start(*models["policy"], "learner")
  state = records.TrainState(step=0, policy=policy, policy_opt=policy_opt,
                             frozen=None if frozen is None else copy(frozen))
  has_prm = methods.needs("prm_logps_BT")
  is_frozen = has_prm and c.prm.reference == "frozen"
  is_asked = c.likelihood.model == "reference" and any(
      methods.needs(f) for f in ("answer_mask_BM", "answer_logps_BM"))
  has_policy_ref = methods.needs("ref_logps_BT")
  if has_policy_ref and c.kl.sync_every:
    state = state.replace(kl_reference=copy(models["policy"][1]))
  if is_frozen or is_asked or (has_policy_ref and not c.kl.sync_every):
    state = state.replace(reference=copy(freeze(c, models["policy"][1])))
  if has_prm:
    config, params = models["prm"]
    if c.train_prm.labels is not None: params = value_model.init(config, params)
    prm, prm_opt = start(config, params, "prm")
    state = state.replace(prm=prm, prm_opt=prm_opt if c.prm.order != "none" else None)
    if c.prm.reference == "self":
      state = state.replace(prm_reference=copy(freeze(c, models["prm"][1])))
  if methods.needs("values_BT"):
    params = value_model.init(models["policy"][0], models["policy"][1])
    value, value_opt = start(models["policy"][0], params, "value")
    state = state.replace(value=value, value_opt=value_opt)
  if c.rollouts.sync_every > 1: state = state.replace(sampler=copy(models["policy"][1]))
  place = lambda number: sharding.place(jnp.float32(number), mesh)
  if methods.reward_std_filter: state = state.replace(reward_std=place(jnp.nan))
  return state.replace(kl_coef=place(c.kl.coef))
