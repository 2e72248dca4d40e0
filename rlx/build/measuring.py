"""Makes from a config what `rlx evaluate` judges: a scorer of the section `scorers`, or a verifier.

No policy is built, except as the reference of an implicit scorer.
"""
import dataclasses
import math
from collections.abc import Sequence

from rlx.build import (
    judges as build_judges, keys, models as build_models, options as options_lib,
    prompts as build_prompts, run as build_run, sets, verifiers as build_verifiers)
from rlx.core import records
from rlx.io import hub, weights
from rlx.learner import sharding
from rlx.stages import host_fields, judging, measuring, outcomes, passes as passes_lib
from rlx.verifiers import judge as judge_lib


def build_judge(c: keys.Config, prompts: Sequence[records.Prompt], scorer: str | None = None,
                judge: str | None = None) -> measuring.Judge:
  """A scorer, or a judge of completions of these prompts.

  Args:
    scorer: NAME of a section scorers.NAME, or the path of a model with a head, whose section is
      scorers.given.
    judge: a verifier, such as judge.pairs/NAME or chain.answer.
  Raises:
    ValueError: one line with the key, argument or row, its value and what is allowed.
  """
  sets.fill(c)
  keys.check(c)
  if (scorer is None) == (judge is None):
    raise ValueError("rlx evaluate: scorer=NAME or judge=NAME, one of them.")
  if scorer is not None: return scorer_of(c, _name_scorer(c, scorer))
  return verifier_of(c, str(judge), prompts)


def _name_scorer(c: keys.Config, scorer: str) -> str:
  """The section of a scorer, which is made for a path. Raises as `build_judge`."""
  scorer = scorer.removeprefix(host_fields.SCORERS)
  if scorer in c.scorers: return f"{host_fields.SCORERS}{scorer}"
  try:
    weights.kind(hub.folder(scorer, weights=False))
  except ValueError as e:
    raise ValueError(f"scorer={scorer!r}: no model, and no section of scorers, which has "
                     f"{sorted(c.scorers)}; {e}") from None
  with c.unlocked(): c.scorers["given"] = dict(c.scorers.get("given", {}), path=scorer)
  return f"{host_fields.SCORERS}given"


def scorer_of(c: keys.Config, section: str) -> measuring.ScorerJudge:
  """The ScorerJudge of a section scorers.NAME, with the model's own tokenizer.

  Raises:
    ValueError: one line with the key, its value and what is allowed.
  """
  name = section.removeprefix(host_fields.SCORERS)
  c = c.copy_and_resolve_references()
  with c.unlocked():
    c.scorers = {name: c.scorers[name]}
    # Of the rows; what the model supports is checked with each.
    c.prompts.max_tokens = c.rollouts.max_tokens = 1
    c.likelihood.max_tokens, c.eval.max_tokens = 0, None
  part, mesh = build_models.read_scorers(c)[name], sharding.make_mesh(**c.mesh)
  build_models.check_question(name, part)
  config, params, tokenizer = build_models.load_model(c, part.path, key=f"{section}.path")
  build_models.check_scorer(c, section, config, tokenizer, tokenizer)
  models = {section: (config, params)}
  if part.kind == "implicit":
    reference = build_models.load_model(c, c.model.path)
    if reference[2].vocabulary != tokenizer.vocabulary:
      raise ValueError(f"{section}.path={part.path!r}: its tokenizer differs from that of "
                       f"model.path={c.model.path!r}, which is its reference.")
    models["policy"] = reference[:2]
  configs = {key: build_models.adapt_to_mesh(
      build_models.choose_attention(c, config, mesh, key, group=1), mesh)
             for key, (config, _) in models.items()}
  placed = {key: sharding.place(build_models.freeze(x, c.model.frozen_dtype), mesh, copies=True)
            for key, (_, x) in models.items()}
  shards = sharding.row_shards(mesh)
  rows = -(-c.eval.batch // shards) * shards
  parts = math.gcd(c.learner.microbatches, rows // shards)
  # There is no policy and no PRM, which other options are for.
  unused = {f.name: None for f in dataclasses.fields(passes_lib.Options) if "key" not in f.metadata}
  options = options_lib.read_options(passes_lib.Options, c, **unused | dict(
      mesh=mesh, models=configs, scorers=build_models.scorers_of(c, tokenizer), statistics=(),
      parts=parts, value_parts=parts, pack=False))
  state = records.TrainState(
      step=0, policy=None, policy_opt=None, kl_coef=None,
      reference=placed.pop("policy", None), frozen_models=placed)
  return measuring.ScorerJudge(
      options, state, build_prompts.texts_of(c, tokenizer), section, rows, c.rollouts.bucket,
      config.max_positions)


def verifier_of(c: keys.Config, path: str,
                prompts: Sequence[records.Prompt]) -> measuring.VerifierJudge:
  """The VerifierJudge of a verifier at a path, such as judge.pairs/NAME.

  Judges of pairs are asked in one order at a time, about two completions alone.

  Raises:
    ValueError: one line with the key or row, its value and what is allowed.
  """
  c = c.copy_and_resolve_references()
  form, _, name = path.partition("/")
  compares = form == "judge.pairs"
  with c.unlocked():
    for options in (c.verifier.judge, *c.verifier.judges.values()):
      if "online" in options: options.online.replies = None  # Nothing learns here.
      if compares:
        options.update(both_orders=False, against="group", opponents=0, strength="win_rate")
    c.verifier.workers = max(c.verifier.workers, 1)
    c.environment.name = None
    if form == "judge.rubric": c.verifier.by_item = path
  prompts = [dataclasses.replace(p, verifier=path) for p in prompts]
  try:
    judges = judges_of(c)
    pool = build_verifiers.pool_of(c, prompts, judges)
  except ValueError as e:
    raise ValueError(f"judge={path!r}: {e}") from None
  build_verifiers.check_prompts(c, prompts)
  if form in ("judge.chat", "judge.function"):
    own = c.verifier.judges.get(name, {}).get("template") or c.verifier.judge.template
    if own is None or "{reference}" in own:
      if without := next((p.id for p in prompts if not p.answer), None):
        raise ValueError(f"{without} has no `answer`, which {path} reads as {{reference}}; add it, "
                         "set a verifier.judge.template without {reference}, or use judge.pairs.")
  has_items = path == c.verifier.by_item
  return measuring.VerifierJudge(
      outcomes.Verifiers(pool, (), path if has_items else None, judges), pool, path,
      c.rollouts.step_separator or "\n", compares, by_prefix=path.startswith("judge."))


def judges_of(c: keys.Config) -> judging.Judges | None:
  """The judges in process of a config, with their models; None: there are none.

  A judge that is the policy or its reference is model.path, as at the start of a run.

  Raises:
    ValueError: one line with the key, its value and what is allowed.
  """
  if not (local := build_judges.list_in_process(c)): return None
  mesh, tokenizer = sharding.make_mesh(**c.mesh), None
  models = build_models.load_judges(c, mesh)
  if any(options["model"] in judge_lib.OF_RUN for options in local.values()):
    config, params, tokenizer = build_models.load_sampled(c, c.model.path, mesh)
    models["policy"] = config, params
  judges = build_judges.judges_of(
      c, models, tokenizer, build_run.sampling_options(c, build_run.sizes_of(c)), mesh, None)
  assert judges is not None
  placed = {name: sharding.place(build_models.freeze(params, c.model.frozen_dtype), mesh,
                                 copies=True) for name, (_, params) in models.items()}
  policy = placed.pop("policy", None)
  judges.hold(records.TrainState(step=0, policy=policy, policy_opt=None, kl_coef=None,
                                 reference=policy, frozen_models=placed))
  return judges
