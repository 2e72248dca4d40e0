"""Turns a config into a Run, once, at startup.

`build(config)` checks the config before anything compiles and returns a `Run`: the ten stages of
a training step (rlx/stages) with all their options, and what they share.
"""
import dataclasses
from collections.abc import Collection, Mapping
from typing import Any

from absl import logging
import jax

from rlx.build import (
    judges as build_judges, keys, methods as build_methods, models as build_models,
    options as options_lib, plan as plan_lib, prompts as build_prompts, sets,
    state as build_state, updates, validation, verifiers as build_verifiers)
from rlx.core import fields, records
from rlx.learner import hosts, memory, sharding
from rlx.prompts import iterator, scored_sets
from rlx.rewards import step_labels
from rlx.stages import (
    annotate, collect, columns as columns_lib, dialogue, end_step, judging,
    methods as methods_lib, outcomes as outcomes_lib, passes as passes_lib, place,
    rewards_advantages, sampling as sampling_lib, score, sizes as sizes_lib, texts as texts_lib,
    update_policy, update_prm, update_scorers, update_value)
from rlx.verifiers import pool


@dataclasses.dataclass(frozen=True, kw_only=True)
class Run:
  """The built config: the stages of a step in their order, and what they share."""
  sizes: sizes_lib.Sizes
  texts: texts_lib.Texts
  methods: methods_lib.Methods
  passes: passes_lib.Options   # mesh, models and options of forward passes
  planned: list[fields.Field]  # what is computed for a batch
  prompts: iterator.PromptIterator | None  # training prompts; None without them
  eval_prompts: list[records.Prompt]
  eval_sets: dict[str, list[records.Prompt]]  # of eval.sets
  init: build_state.InitialState
  sampling: sampling_lib.Sampling
  outcomes: outcomes_lib.Outcomes
  pool: pool.Pool
  dialogues: dialogue.Dialogues | None  # of the environment, if there is one
  judges: judging.Judges | None  # those in process, if there are any

  collect: collect.Collect | None  # None without training prompts
  annotate: annotate.Annotate
  place: place.Place
  score: score.Score
  update_prm: update_prm.UpdatePrm | update_prm.UpdatePrmHead
  update_scorers: update_scorers.UpdateScorers
  rewards_advantages: rewards_advantages.RewardsAdvantages
  update_value: update_value.UpdateValue
  update_policy: update_policy.UpdatePolicy
  end_step: end_step.EndStep

  def shapes(self) -> records.TrainState:
    """The shapes of the initial state, with shardings; allocates nothing."""
    return self.init.shapes()

  def list_programs(self, *, evaluates: bool) -> list[str]:
    """Names of the programs of a step, in its order, that take long to compile.

    Args:
      evaluates: whether the step is preceded by an evaluation.
    """
    state = self.shapes()
    scores = any(f.where == "model" for f in self.planned)
    if state.prm is not None: scores |= not getattr(self.update_prm, "uses_own_pass", True)
    wanted = {"evaluation": evaluates, "sampler": True, "scoring": scores,
              "PRM update": state.prm_opt is not None,
              "scorer update": bool(self.update_scorers.updates), "rewards and advantages": True,
              "value update": state.value_opt is not None, "policy update": True}
    return [name for name, is_compiled in wanted.items() if is_compiled]

  @property
  def updates(self) -> dict[str, Any]:
    """{section of the config: the stage that trains its model}."""
    return dict(prm=self.update_prm, value=self.update_value, learner=self.update_policy) | {
        name: update for name, (_, update) in self.update_scorers.updates.items()}

  def close(self) -> None:
    """Stops the processes of verifiers and of the environment."""
    self.pool.close()
    if self.dialogues: self.dialogues.close()


def build(config: keys.Config, splits: Collection[str] | None = None, recorded: dict | None = None,
          learns: str = "policy", mesh: jax.sharding.Mesh | None = None) -> Run:
  """Checks `config` and binds it.

  Args:
    splits: which prompts are loaded. Without "train" Run.prompts is None, without
      "eval" Run.eval_prompts is empty. None: those that are needed for `learns`.
    recorded: the result of `run_folder.read_recorded` for a run that is resumed. With the recorded
      number of slots the sampler's log-probs are bitwise those of an uninterrupted run. None: a
      new run.
    learns: "policy", "prm" if only a PRM is trained, on stored completions, or "" if nothing
      is. Fields of a batch are computed only for the models that learn.
    mesh: of devices that are not here, see tools/targets.py; then no parameters are read, and
      only programs can be traced. None: `mesh` of the config, over the devices of this process.
  Raises:
    ValueError: one line with the key, its value and what is allowed.
  """
  c = config
  sets.fill(c)
  keys.check(c)
  methods = build_methods.resolve_methods(c)
  validation.check(c, methods)
  _check_learns(c, methods, learns)
  sizes, splits = sizes_of(c), choose_splits(c, learns) if splits is None else splits
  shapes_only, mesh = mesh is not None, sharding.make_mesh(**c.mesh) if mesh is None else mesh
  check_cuts(c, sharding.row_shards(mesh))
  models, frozen, tokenizer = build_models.load_models(c, methods, mesh, shapes_only)
  configs = {name: config for name, (config, _) in models.items()  # Frozen judges read no batch.
             if not name.startswith("verifier.") or name in build_methods.list_updated(c)}
  texts, dialogues = build_prompts.texts_and_dialogues(c, tokenizer)
  tokenizer = texts.tokenizer  # With the variables of its chat template.
  train_prompts, eval_prompts = build_prompts.load_and_check_prompts(c, sizes.draw, texts, splits)
  derive = build_prompts.derive_of(c, texts, train_prompts)
  all_prompts = train_prompts + eval_prompts
  main_prompts, eval_sets = build_prompts.split_sets(c, eval_prompts)
  # A batch has no more rows than there are prompts.
  fit = lambda prompts, shards=sharding.row_shards(mesh): min(
      c.eval.batch, -(-len(prompts) // shards) * shards) if prompts else c.eval.batch
  sizes = dataclasses.replace(sizes, eval_batch=fit(main_prompts))
  for line in validation.find_toy_numbers(c, texts, all_prompts, learns):
    logging.warning("%s.", line)
  if dialogues: dialogues.start(tokenizer, all_prompts[0])
  optimizers = {name: updates.optimizer_of(c, name)
                for name in ("learner", "prm", "value", *build_methods.list_updated(c))}
  init = build_state.initial_state_of(c, methods, mesh, optimizers, models, frozen, sizes)
  # All processes must use the same value; the first one records it.
  limit = (recorded or {}).get("device_bytes") or hosts.gather(memory.device_bytes(mesh))[0]
  bytes_free = None if limit is None else limit - memory.tree_bytes(init.shapes())
  options = sampling_options(c, sizes, {name: fit(prompts) for name, prompts in eval_sets.items()})
  sampling = sampling_lib.make_sampling(options, texts, configs["policy"], mesh, device_bytes=limit,
                                        dialogues=dialogues, bytes_free=bytes_free)
  judges = build_judges.judges_of(c, models, tokenizer, options, mesh, bytes_free)
  verifier_pool = build_verifiers.pool_of(c, all_prompts, judges)
  build_verifiers.check_prompts(c, all_prompts)
  outcomes = build_verifiers.outcomes_of(c, methods, texts, verifier_pool, judges, all_prompts)
  stages = updates.device_stages(c, methods, configs, mesh, optimizers,
                                 scorers=build_models.scorers_of(c, tokenizer),
                                 asked=build_models.find_asked_scorer(c, tokenizer),
                                 token_id=updates.find_token_id(c, tokenizer), learns=learns)
  planned, is_policy = stages["planned"], learns == "policy"
  filtering, selecting = (plan_lib.plan_filter(c, methods, key) if is_policy else []
                          for key in (plan_lib.FILTER_GROUPS, plan_lib.SELECT_COMPLETIONS))
  columns = columns_of(c, planned, build_verifiers.resources_of(
      c, planned, texts, outcomes.verifiers, train_prompts, judges), texts=texts, outcomes=outcomes,
                       sampling=sampling, passes=stages["passes"])
  prompts = build_prompts.make_iterator(c, train_prompts) if "train" in splits else None
  return Run(
      sizes=sizes, texts=texts, methods=methods, prompts=prompts, eval_prompts=main_prompts,
      eval_sets=eval_sets, init=init, sampling=sampling, outcomes=outcomes, pool=verifier_pool,
      dialogues=dialogues, judges=judges,
      collect=None if prompts is None else options_lib.read_options(
          collect.Collect, c, prompts=prompts, sizes=sizes, texts=texts, sampling=sampling,
          outcomes=outcomes, pool=verifier_pool, filter_groups=methods.filter_groups,
          anneal=methods.anneal, budget=methods.budget, dialogues=dialogues,
          derive=derive, columns=dataclasses.replace(columns, planned=filtering) if any(
              f.where in ("host", "model") for f in filtering) else None,
          demonstrations=build_verifiers.demonstrations_of(c, texts, train_prompts)),
      annotate=options_lib.read_options(
          annotate.Annotate, c, columns=columns, select=methods.select_completions,
          selecting=selecting, pool=verifier_pool),
      place=place.Place(mesh, c.learner.pack), **stages)


def columns_of(c: keys.Config, planned: list[fields.Field], resources: Mapping[str, Any],
               **parts: Any) -> columns_lib.Columns:
  """The Columns of a config."""
  sizes, shards = sizes_of(c), parts["passes"].shards
  return options_lib.read_options(
      columns_lib.Columns, c, planned=planned, field_options=plan_lib.field_options(c, planned),
      resources=resources, microbatch=sizes.rows // shards // c.learner.microbatches, **parts)


def sizes_of(c: keys.Config) -> sizes_lib.Sizes:
  """The Sizes of a config."""
  derived = build_prompts.count_derived(c)
  drawn = c.rollouts.oversample * (c.prompts.per_step - c.rollouts.rehearsal - derived)
  return options_lib.read_options(
      sizes_lib.Sizes, c, draw=int(round(drawn)), derived=derived,
      first_pass=c.rollouts.budget.first if c.rollouts.budget.name else c.rollouts.per_prompt,
      axes=dict(M=c.likelihood.max_tokens, J=c.likelihood.steps + 1, K=c.distribution.top,
                E=len(c.verifier.scores), Z=len(c.verifier.step_rewards),
                I=c.verifier.max_items))


def sampling_options(c: keys.Config, sizes: sizes_lib.Sizes,
                     batches: Mapping[str, int] | None = None) -> sampling_lib.Options:
  """The sampling.Options of a config; `batches`: prompts of eval.sets that are sampled at once."""
  parts = {"": c, **build_prompts.list_eval_sets(c)}
  return options_lib.read_options(
      sampling_lib.Options, c, sizes=sizes, decoding=c.rollouts.decoding.to_dict(),
      evaluation={name: _read_rule(part, (batches or {}).get(name, sizes.eval_batch))
                  for name, part in parts.items()})


def _read_rule(c: keys.Config, batch: int) -> sampling_lib.Rule:
  own = {key: x for key, x in c.eval.decoding.items() if x is not None}
  return sampling_lib.Rule(
      decoding=c.rollouts.decoding.to_dict() | own, samples=c.eval.samples, batch=batch,
      max_tokens=c.eval.max_tokens or c.rollouts.max_tokens)


def _check_learns(c: keys.Config, methods: methods_lib.Methods, learns: str) -> None:
  """Checks that the config has what learns."""
  if learns == "policy" and c.train_scorer.labels is not None:
    raise ValueError(f"train_scorer.labels={c.train_scorer.labels!r}: None; the rewards of "
                     "the loop read an implicit PRM.")
  if learns == "prm" and c.prm.order == "none":
    raise ValueError("prm.order='none': single, double or reverse; the PRM learns here.")
  most, longest = c.rollouts.max_tokens, c.eval.max_tokens or 0
  if learns == "prm" and longest > most and c.train_scorer.held_out is None:
    raise ValueError(f"eval.max_tokens={longest}: at most rollouts.max_tokens={most}; the PRM is "
                     "evaluated on such completions.")
  if learns == "prm" and not methods.needs("prm_logps_BT"):
    raise ValueError("rewards: none reads a PRM, so there is none; add implicit.process.")


def choose_splits(c: keys.Config, learns: str) -> tuple[str, ...]:
  """The splits of prompts that are sampled, see `build`; stored completions need none."""
  if not learns: return ("eval",)
  is_stored = (c.train_scorer.rollouts is not None and c.train_scorer.held_out is not None
               and not c.train_scorer.tree
               and (c.train_scorer.labels not in step_labels.KINDS
                    or scored_sets.split_name(c.train_scorer.rollouts, scored_sets.OF_STEPS)))
  return () if learns == "prm" and is_stored else ("train", "eval")


def check_cuts(c: keys.Config, shards: int) -> None:
  """Checks that minibatches, microbatches and devices get whole groups of a batch.

  Args:
    shards: number of devices that rows are spread over.
  Raises:
    ValueError: one line naming the keys.
  """
  rows = f"mesh.data x mesh.fsdp = {shards}"
  fits: dict[str, tuple[int, keys.Config]] = {}
  for name in build_methods.list_trained(c):
    section = build_methods.find_trained(c, name)
    key = build_methods.name_trained(c, name)
    n, parts = section.minibatches * shards, section.microbatches
    if most := [m for m in range(parts, 0, -1) if c.prompts.per_step % (n * m) == 0]:
      if most[0] < parts: fits[key] = most[0], section
      continue
    raise ValueError(
        f"prompts.per_step={c.prompts.per_step}: must be a multiple of {key}.minibatches="
        f"{section.minibatches} x {rows}; minibatches hold whole groups.")
  if fits:
    key, (_, section) = next(iter(fits.items()))
    raise ValueError(
        f"prompts.per_step={c.prompts.per_step}: must be a multiple of {key}.minibatches="
        f"{section.minibatches} x {key}.microbatches={section.microbatches} x {rows}; "
        "microbatches hold whole groups. Set "
        + " ".join(f"{k}.microbatches={m}" for k, (m, _) in fits.items()) + ".")
  derived = build_prompts.count_derived(c)
  less = " - prompts.derived" * bool(derived)
  for name, n in (("eval.batch", c.eval.batch), ("rollouts.rehearsal", c.rollouts.rehearsal),
                  ("the sum of prompts.derived.*.per_step", derived),
                  (f"rollouts.oversample x (prompts.per_step - rollouts.rehearsal{less})",
                   sizes_of(c).draw)):
    if n % shards: raise ValueError(f"{name}={n}: must be a multiple of {rows}.")
  if (c.rollouts.slots or 0) % (c.rollouts.per_prompt * shards):
    raise ValueError(f"rollouts.slots={c.rollouts.slots}: a multiple of rollouts.per_prompt="
                     f"{c.rollouts.per_prompt} x {shards} devices over which rows are spread.")
