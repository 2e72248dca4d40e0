"""Config validation: refuses options that contradict each other, and those that a method refuses.

Everything here runs before a model is read or anything compiles. A refusal is a
ValueError of one line: the key, its value, what is allowed. Only `find_toy_numbers` asks the
model's tokenizer.
"""
from collections.abc import Iterable, Sequence
import functools
import inspect
import re
from typing import Any, NoReturn

from absl import logging
import jax
import numpy as np

from rlx.advantages import combine
from rlx.build import (
    judges as build_judges, keys, methods as build_methods, models as build_models,
    options as options_lib, plan as plan_lib, prompts as build_prompts)
from rlx.core import fields, records, resolve
from rlx.core.options import flatten
from rlx.environments import runner
from rlx.io import rows as io_rows, secrets, trackers
from rlx.rewards import step_labels
from rlx.stages import host_fields, methods as methods_lib, texts as texts_lib, update_prm
from rlx.verifiers import items, judge, pool

_TOY_TOKENS = 512  # A vocabulary of characters is smaller.
_ROWS = 2**20  # Completions of a step: methods hold a few arrays with so many rows.
_FEW = 4       # Prompts, tokens, ... of the batch that methods are tried on.


def check(c: keys.Config, methods: methods_lib.Methods) -> None:
  """Refuses a config whose options contradict each other, or are refused by a method.

  Raises:
    ValueError: one line with the key, its value and what is allowed.
  """
  _check_secrets(c)
  _check_functions(c)
  _check_rollouts(c, methods)
  _check_kept(c, methods)
  _check_episodes(c, methods)
  _check_paired(c, methods)
  _check_derived(c, methods)
  _check_kl(c, methods)
  _check_model(c, methods)
  _check_scorers(c, methods)
  _check_learner(c, methods)
  _check_steps(c, methods)
  _check_judge(c)
  _check_value_model(c, methods)
  for name in ("learner", "prm", "value", *build_methods.list_updated(c)):
    optimizer = build_methods.find_trained(c, name).optimizer
    build_methods.bind_schedule(f"{build_methods.name_trained(c, name)}.optimizer", optimizer.lr,
                                optimizer)
  trackers.check(c.log.writers)
  plan_lib.plan_fields(c, methods)
  for key in (plan_lib.FILTER_GROUPS, plan_lib.SELECT_COMPLETIONS):
    plan_lib.plan_filter(c, methods, key)
  _try_methods(c, methods)
  _warn_cancelled(c, methods)
  _warn_uncorrected(c, methods)
  _warn_scaled_up(c, methods)
  for lines in find_summed_steps(c, methods).values():
    for line in lines: logging.warning("%s; see docs/prime.md.", line)


def _refuse(c: keys.Config, key: str, allowed: str) -> NoReturn:
  raise ValueError(f"{key}={options_lib.setting(c)(key)!r}: {allowed}.")


def _check_secrets(c: keys.Config) -> None:
  """Refuses values of a config.json in which a credential was left out."""
  for key, value in flatten(c.to_dict()).items():
    if secrets.HIDDEN in str(value):
      _refuse(c, key, "the run's config.json has no credentials; set the key again, or name an "
              "environment variable in episodes.variables or verifier.variables")


def _check_functions(c: keys.Config) -> None:
  """Refuses names of functions that do not exist, and options that they do not take."""
  for path, key in verifiers(c).items(): pool.lookup(path, key)
  if c.rollouts.demonstration.name is not None:
    resolve.bind("prompts.datasets", c.rollouts.demonstration, "rollouts.demonstration", n_given=2)
  build_prompts.read_weights(c)
  for name, part in build_prompts.list_sources(c).items():
    with build_prompts.name_source(name):
      build_prompts.bind_template(part)
      io_rows.check(part.prompts.source, part.prompts.options.to_dict())
  for name, part in build_prompts.list_eval_sets(c).items():
    if name in c.prompts.mixture:
      raise ValueError(f"eval.sets.{name}: another name; prompts.mixture has a source {name}.")
    if c.prompts.mixture and "source" not in c.eval.sets[name]:
      raise ValueError(f"eval.sets.{name}.source is missing; with prompts.mixture each set has "
                       "its own.")
    with build_prompts.name_source(name, "eval.sets"):
      build_prompts.bind_template(part)
      io_rows.check(part.prompts.source, part.prompts.options.to_dict())
  _check_workers(c)


def _check_workers(c: keys.Config) -> None:
  """Refuses 0 workers where they are needed, before the data is read."""
  checked = pool.Pool(c.verifier.workers, c.verifier.timeout_s,
                      functions=build_judges.verifiers_of(c, None))
  checked.require(verifiers(c))
  own = c.verifier.by_item and getattr(checked.lookup(c.verifier.by_item), "item_keys", None)
  for j, row in enumerate(c.verifier.default_items):
    if problem := items.find_row_problem(row, own):
      raise ValueError(f"verifier.default_items[{j}]={row!r:.80}: {problem}.")
  if c.verifier.by_item and getattr(checked.lookup(c.verifier.by_item), "is_reward", False):
    _refuse(c, "verifier.by_item", "a verifier, which gives numbers in [0, 1]; a reward function "
            "gives rewards of steps (verifier.step_rewards)")
  if c.environment.name is not None:
    options = {k: v for k, v in c.environment.to_dict().items() if k != "name"}
    return runner.check(c.environment.name, options, c.episodes.workers)
  if c.verifier.workers: return
  sources = [("prompts.mixture", x) for x in build_prompts.list_sources(c).items()]
  sources += [("eval.sets", x) for x in build_prompts.list_eval_sets(c).items()
              if build_prompts.find_verifier(c, x[0]) is None]
  for section, (name, part) in sources:
    with build_prompts.name_source(name, section):
      # What the config names for the prompts, or else what their data set has by default.
      option = inspect.signature(build_prompts.bind_dataset(part)[1]).parameters.get("verifier")
      path = part.prompts.columns.get("verifier", option and option.default)
      if isinstance(path, str) and "." in path and ":" not in path:
        checked.require({path: "prompts.columns.verifier"})


def verifiers(c: keys.Config) -> dict[str, str]:
  """{path: config key} of the verifiers that a config names, other than those of prompts."""
  steps = [x for x in (c.verifier.steps,) if x is not None and not host_fields.is_scorer(x)]
  sets = [path for path in c.eval.prm_sets if not path.endswith(".jsonl")]
  own = [path for path in c.verifier.scores if not host_fields.is_scorer(path)]
  return {path: key for key, paths in (
      *((f"eval.sets.{name}.verifier", filter(None, [build_prompts.find_verifier(c, name)]))
        for name in c.eval.sets),
      ("verifier.scores", own), ("verifier.step_rewards", c.verifier.step_rewards),
      ("verifier.steps", steps), ("verifier.spans", [
          x for x in (c.verifier.spans,) if x is not None and not host_fields.is_scorer(x)]),
      ("verifier.by_item", filter(None, [c.verifier.by_item])),
      ("eval.prm_sets", sets)) for path in paths}


def _check_rollouts(c: keys.Config, methods: methods_lib.Methods) -> None:
  r, group = c.rollouts, f"rollouts.per_prompt={c.rollouts.per_prompt}"
  if c.prompts.per_step * r.per_prompt > _ROWS:
    _refuse(c, "prompts.per_step", f"at most {_ROWS} completions a step, with {group}")
  if r.slots is not None and r.slots % r.per_prompt:
    _refuse(c, "rollouts.slots", f"None, from the device's memory, or a multiple of {group}")
  readers = methods.find_readers("sampler_logps_BT")
  if r.demonstration.name is not None and readers:
    _refuse(c, "rollouts.demonstration.name",
            f"None with {', '.join(readers)}, which reads the sampler's log-probs; those of a "
            "demonstration are not known")
  if r.budget.name is not None:
    if r.budget.first >= r.per_prompt:
      _refuse(c, "rollouts.budget.first", f"below {group}, of which a second pass draws the rest")
    _require_off(c, "with rollouts.budget", {
        "rollouts.demonstration.name": None, "rollouts.rehearsal": 0})
  if r.rehearsal >= c.prompts.per_step:
    _refuse(c, "rollouts.rehearsal", f"below prompts.per_step={c.prompts.per_step}")
  learners = methods.find_requiring("rehearsal_BT")
  if learners and not r.rehearsal:
    _refuse(c, "rollouts.rehearsal", f"{learners[0]} learns from them: at least 1")
  if r.rehearsal and not learners:
    _refuse(c, "rollouts.rehearsal",
            "0 without learner.auxiliary.name='auxiliary.rehearsal', which learns from them")
  if r.per_prompt == 1 and (terms := find_comparing(c, methods)):
    _refuse(c, "rollouts.per_prompt", f"advantages.{terms[0]} compares completions of a group; "
            "use >= 2, or an estimator such as batch.reinforce")
  if (r.per_prompt == 1 and c.prm.order != "none" and methods.needs("prm_logps_BT")
      and c.train_scorer.labels is None and does_prm_compare(c, methods)):
    _refuse(c, "rollouts.per_prompt", f"prm.loss.name={c.prm.loss.name!r} compares completions of "
            "a group; use >= 2, or a loss of single ones such as prm.ce")


def _check_kept(c: keys.Config, methods: methods_lib.Methods) -> None:
  """Refuses decoding of which training would not know what distribution tokens were drawn from."""
  d = c.rollouts.decoding
  if not d.top_k and (d.top_p < 1 or d.min_p):
    _refuse(c, "rollouts.decoding.top_k",
            f"at least 1, such as 64, with rollouts.decoding.top_p={d.top_p}, min_p={d.min_p}: "
            "log-probs are among the tokens that are kept, of which at most top_k are recorded")
  if d.top_k and (read := [f for now in plan_lib.find_statistics(c, methods) for f, _ in now]):
    _refuse(c, "rollouts.decoding.top_k", f"0 with {read[0]}, which a method reads: it is of "
            "whole distributions, and log-probs are among the tokens that are kept")


def _require_off(c: keys.Config, why: str, values: dict[str, Any]) -> None:
  """Refuses other values than these, {key: value with which it is off}."""
  for key, off in values.items():
    if options_lib.setting(c)(key) != off: _refuse(c, key, f"{off} {why}")


def _check_episodes(c: keys.Config, methods: methods_lib.Methods) -> None:
  """Refuses what has no meaning where a prompt has a dialogue instead of a completion, and the
  reverse."""
  if c.environment.name is not None:
    _require_off(c, f"with environment.name={c.environment.name!r}", {
        "rollouts.demonstration.name": None, "rollouts.budget.name": None,
        "rollouts.rehearsal": 0, "eval.prm_sets": (), "likelihood.separator": None,
        "train_scorer.tree": False})
    if c.train_scorer.labels not in (None, "outcome"):
      _refuse(c, "train_scorer.labels",
              f"None or outcome with environment.name={c.environment.name!r}")
    for key in methods.find_requiring("prefix_scores_BT"):
      _refuse(c, f"{key}.name", "scores of prefixes are those of single completions, and not with "
              f"environment.name={c.environment.name!r}")
    for key, part in [
        *((f"prompts.mixture.{x}", part) for x, part in build_prompts.list_sources(c).items()),
        *((f"eval.sets.{x}", part) for x, part in build_prompts.list_eval_sets(c).items())]:
      if part.prompts.template != c.prompts.template:
        raise ValueError(f"{key}.template: that of prompts.template with "
                         f"environment.name={c.environment.name!r}, whose observations follow one "
                         "template.")
    return
  if c.rollouts.step_separator == host_fields.TURN:
    _refuse(c, "rollouts.step_separator",
            "another text without environment.name: there are no turns")
  for term, spec in c.rewards.items():
    if spec.get("granularity") == "turn":
      _refuse(c, f"rewards.{term}.granularity",
              "token, step or completion without environment.name: there are no turns")


def _check_paired(c: keys.Config, methods: methods_lib.Methods) -> None:
  if not c.prompts.paired:
    if methods.needs("pair_PG"):
      _refuse(c, "prompts.paired", "a reward compares two wordings of a question; True, and a "
              "prompts.dataset that has them, such as chain_pairs")
    return
  if c.rollouts.rehearsal:
    _refuse(c, "rollouts.rehearsal",
            "0 with prompts.paired: the other wording would stay in training")
  if c.prompts.per_step % 2: _refuse(c, "prompts.per_step", "must be even with prompts.paired")
  _require_off(c, "with prompts.paired: both wordings stay in the batch", {
      "rollouts.filter_groups.name": "filter_groups.with_verdict", "rollouts.oversample": 1.0})


def _check_derived(c: keys.Config, methods: methods_lib.Methods) -> None:
  """Refuses what prompts about completions cannot have."""
  if not c.prompts.derived:
    if keys_ := methods.find_readers("derived_B"):
      raise ValueError(f"prompts.derived: none; {keys_[0]} reads derived_B, whether a completion "
                       "is of such a prompt.")
    return
  build_prompts.bind_derived(c)
  for name, part in build_prompts.list_derived(c).items():
    with build_prompts.name_source(name, "prompts.derived"): build_prompts.bind_template(part)
    if name in (*c.prompts.mixture, *c.eval.sets):
      raise ValueError(f"prompts.derived.{name}: another name; prompts.mixture or eval.sets has "
                       "it.")
  n, most = build_prompts.count_derived(c), c.prompts.per_step // 2
  if n > most:
    raise ValueError(f"prompts.derived: {n} prompts a step (per_step); at most {most}, half of "
                     f"prompts.per_step={c.prompts.per_step}, as the others give the completions.")
  _require_off(c, "with prompts.derived", {
      "environment.name": None, "rollouts.demonstration.name": None, "rollouts.budget.name": None,
      "rollouts.rehearsal": 0, "prompts.paired": False})
  for f in plan_lib.plan_fields(c, methods):
    if {"answer_ids", "hinted_ids"} & set(f.reads):
      raise ValueError(f"prompts.derived: none with {f.name}, which a method reads; it is of the "
                       "reference answers of prompts that are known at the start.")


def _check_kl(c: keys.Config, methods: methods_lib.Methods) -> None:
  if c.kl.target is not None:
    if c.kl.coef == 0:
      _refuse(c, "kl.coef", f"> 0 with kl.target={c.kl.target}, which multiplies it")
    least = 0.2 * c.prompts.per_step * c.rollouts.per_prompt  # See divergence.adaptive_coef.
    if c.kl.horizon <= least:
      _refuse(c, "kl.horizon", f"more than {least:g}, a fifth of a step's completions, or the "
              "coefficient becomes negative")
  if c.kl.off_policy and (c.kl.place != "loss" or c.kl.kind not in ("k1", "k3")):
    _refuse(c, "kl.off_policy",
            f"False with kl.place={c.kl.place!r} and kl.kind={c.kl.kind!r}: the "
            "ratio makes the gradient of a loss exact with the kinds k1 and k3 only")
  if c.kl.sync_every and c.rollouts.rehearsal:
    _refuse(c, "kl.sync_every",
            "0 with rollouts.rehearsal, whose completions are those of the start")
  if c.kl.sync_every and not methods.needs("ref_logps_BT"):
    _refuse(c, "kl.sync_every",
            "nothing reads the policy's reference; set kl.coef or leave it at 0")
  dtype = f"model.param_dtype={c.model.param_dtype}"
  if c.kl.reset_optimizer and not c.kl.sync_every:
    _refuse(c, "kl.reset_optimizer", "it happens with a sync; set kl.sync_every")
  if c.kl.reset_optimizer and c.model.param_dtype != "float32" and not c.lora.rank:
    _refuse(c, "kl.reset_optimizer", f"False with {dtype}: the bits that its parameters lack are "
            "in the optimizer's state")
  if c.kl.sync_mix < 1 and c.lora.rank:
    _refuse(c, "kl.sync_mix", "1 with lora.rank: a mean of adapters is not the adapter of a mean")
  if c.kl.sync_mix < 1 and c.model.param_dtype != "float32":
    _refuse(c, "kl.sync_mix",
            f"1 with {dtype}, in which small changes of a mean would be rounded away")


def _check_model(c: keys.Config, methods: methods_lib.Methods) -> None:
  if c.prm.path is not None and c.prm.order != "none" and not methods.needs("prm_logps_BT"):
    _refuse(c, "prm.path",
            "no reward or estimator reads the PRM; drop the path or add a process reward")
  if c.value.path is not None and not methods.needs("values_BT"):
    _refuse(c, "value.path", "no estimator reads the value model; drop the path or take "
            "temporal.gae")
  if c.value.path is not None and c.lora.rank:
    _refuse(c, "value.path", "None with lora.rank: value model and policy are adapters over one "
            "base")
  if host_fields.is_scorer(c.value.path):
    name, scorers = c.value.path.partition(".")[2], build_models.read_scorers(c)
    if name not in scorers:
      _refuse(c, "value.path", f"a path, or one of scorers: {sorted(scorers)}")
    if scorers[name].kind != "head":
      _refuse(c, "value.path", f"a scorer of kind head; the scores of scorers.{name}.kind="
              f"{scorers[name].kind!r} are not what a head for values gives")
  if c.teacher.path is not None and not build_models.needs_teacher(methods):
    _refuse(c, "teacher.path",
            "no reward and no loss reads the teacher; drop the path or add implicit.teacher")
  if c.teacher.hint is not None and not methods.needs("hinted_logps_BT"):
    _refuse(c, "teacher.hint", "no reward reads it; drop the hint or add implicit.hinted")
  if c.teacher.hint is not None and c.environment.name is not None:
    _refuse(c, "teacher.hint", "None with environment.name, which writes the prompts itself")
  if not c.prm.snapshot and c.prm.epochs > 1:
    _refuse(c, "prm.snapshot", f"True with prm.epochs={c.prm.epochs}, as the PRM would score each "
            "completion several times")
  if c.model.frozen_dtype not in (None, c.model.dtype):
    _refuse(c, "model.frozen_dtype", f"None or model.dtype={c.model.dtype}; in another the PRM "
            "would differ from its own start")
  if c.model.attention == "cudnn" and c.model.dtype != "bfloat16":
    _refuse(c, "model.attention", f"blocks with model.dtype={c.model.dtype}; cudnn needs bfloat16")
  if c.lora.rank and c.prm.path is not None:
    _refuse(c, "prm.path", "None with lora.rank: PRM and policy are adapters over one base")


def _check_scorers(c: keys.Config, methods: methods_lib.Methods) -> None:
  """Refuses scorers that are missing, or read by nothing, or that cannot give what is asked."""
  scorers = build_models.read_scorers(c)
  named = [("verifier.scores", path) for path in c.verifier.scores]
  named = [(key, path) for key, path in (*named, ("verifier.steps", c.verifier.steps),
                                         ("verifier.spans", c.verifier.spans))
           if host_fields.is_scorer(path)]
  for key, path in named:
    name = path.partition(".")[2]
    if name not in scorers:
      _refuse(c, key, f"there is no {path}; set {path}.path, or name one of {sorted(scorers)}")
    if key == "verifier.steps" and scorers[name].kind not in ("head", "probability"):
      _refuse(c, key, f"a scorer with a head; {path}.kind={scorers[name].kind!r} is of completions")
    if key == "verifier.spans" and scorers[name].kind != "probability":
      _refuse(c, key, "a scorer of kind probability, whose scores of tokens are between 0 and 1, "
              f"not {path}.kind={scorers[name].kind!r}")
  for name, part in scorers.items():
    if f"scorers.{name}" not in (path for _, path in named):
      raise ValueError(f"scorers.{name}: verifier.scores and verifier.steps do not name it; drop "
                       f"it or add 'scorers.{name}' to verifier.scores.")
    build_models.check_question(name, part)
  for section in build_methods.list_online_scorers(c): _check_update(c, section, scorers)
  if readers := methods.find_readers("token_scores_BT"):
    first = (*c.verifier.scores, "scorers.NAME")[0]
    if not host_fields.is_scorer(first):
      _refuse(c, "verifier.scores",
              f"a scorer first, as {readers[0]} reads its score of each token")
  others = [path for path in c.verifier.scores if not host_fields.is_scorer(path)
            or scorers[path.partition(".")[2]].kind != "head"]
  if others and (readers := methods.find_readers("score_spreads_BE")):
    _refuse(c, "verifier.scores", f"scorers of kind head alone, as {readers[0]} reads their "
            "spreads")
  if scorers and "token_scores_BT" in [f.name for f in plan_lib.plan_fields(c, methods)]:
    if (kind := scorers[c.verifier.scores[0].partition(".")[2]].kind) in ("yes_no", "energy"):
      _refuse(c, "verifier.scores", f"a scorer of another kind than {kind} first, as scores of "
              "parts of a completion are read")


def _check_update(c: keys.Config, section: str, scorers: dict[str, keys.Config]) -> None:
  """Refuses a scorer that cannot learn beside the policy as its section says."""
  online, key = build_methods.find_trained(c, section), f"{section}.online"
  if (kind := scorers[section.partition(".")[2]].kind) not in ("head", "probability"):
    raise ValueError(f"{key}.labels={online.labels!r}: None with {section}.kind={kind!r}; a model "
                     "with a head learns here, and an implicit one as the section prm says.")
  loss = resolve.bind("losses", online.loss, f"{key}.loss")
  if not {"scores_N", "chosen_N"} & set(inspect.signature(loss).parameters):
    raise ValueError(f"{key}.loss.name={online.loss.name!r}: a loss of scores, such as "
                     "reward_model.bce, or of pairs, such as reward_model.bradley_terry.")
  if online.labels == "scores" and len(
      [path for path in c.verifier.scores[:2] if not host_fields.is_scorer(path)]) < 2:
    raise ValueError(f"{key}.labels='scores': verdicts with verifier.scores="
                     f"{tuple(c.verifier.scores)!r}, whose first two are not verifiers: one that "
                     "gives the label, and one that says where there is one.")
  if online.labels == "altered" and c.environment.name is not None:
    raise ValueError(f"{key}.labels='altered': verdicts with environment.name="
                     f"{c.environment.name!r}, whose episodes have no single text.")


def _check_learner(c: keys.Config, methods: methods_lib.Methods) -> None:
  forced = getattr(resolve.lookup("losses", c.learner.loss.name), "aggregation", None)
  if forced and c.learner.aggregation != forced:
    _refuse(c, "learner.aggregation", f"{c.learner.loss.name} is defined for {forced}")
  for term, (_, fn) in methods.estimators.items():
    if "greedy_B" not in fn.fields: continue
    specs = [c.rewards[term]] if term in c.rewards else list(c.rewards.values())
    is_plain = [spec["coef"] == 1.0 and getattr(
        resolve.lookup("rewards", spec["name"]), "unchanged", False) for spec in specs]
    if is_plain != [True]:
      plain = dict(name="outcome.verdict", coef=1.0)
      _refuse(c, f"advantages.{term}.name", "compares with the verdict of a greedy completion, so "
              f"the reward must be {plain}")


def _check_steps(c: keys.Config, methods: methods_lib.Methods) -> None:
  """Refuses what needs a text that ends reasoning steps, where there is none."""
  if c.rollouts.step_separator == "":
    _require_off(c, "with rollouts.step_separator='', as it cuts texts, not tokens", {
        "eval.prm_sets": (), "train_scorer.tree": False})
    if c.train_scorer.labels in step_labels.OF_STEPS:
      _refuse(c, "train_scorer.labels", "None or outcome with rollouts.step_separator='', as it "
              "cuts texts, not tokens")
  parts = [c.prompts, *(part.prompts for part in build_prompts.list_sources(c).values())]
  is_of_steps = c.train_scorer.labels in step_labels.OF_STEPS
  if is_of_steps and any("max_tokens" in part.columns for part in parts):
    raise ValueError("prompts.columns.max_tokens: leave it out with train_scorer.labels, whose "
                     "completions go on after each step.")
  if c.train_scorer.labels is None:
    _require_off(c, "without train_scorer.labels", {
        "train_scorer.balanced": False, "train_scorer.head": "plain", "train_scorer.margins": False,
        "train_scorer.merge_steps": False, "train_scorer.add_outcome": False,
        "train_scorer.scored_share": 0.0, "train_scorer.energy.steps": 0,
        "train_scorer.labelled_by": "rollouts", "train_scorer.reference": None,
        "train_scorer.auxiliary.name": None, "train_scorer.loss.name": "reward_model.bce"})
  _check_head(c)
  if c.rollouts.step_separator is not None: return
  needing = [f"{key}={path!r}" for path, key in verifiers(c).items()
             if not key.startswith(("verifier.scores", "verifier.by_item", "verifier.spans",
                                    "eval.sets."))]
  if is_of_steps: needing.append("train_scorer.labels")
  if c.train_scorer.tree: needing.append("train_scorer.tree=True")
  needing += [f"rewards.{term}.granularity='step'" for term, spec in c.rewards.items()
              if spec.get("granularity") == "step"]
  needing += methods.find_requiring("step_ends_BT")
  if needing: _refuse(c, "rollouts.step_separator", f"{needing[0]} needs it")


# {argument of a loss of losses/reward_model.py: the head that alone gives it}.
_HEADS = {"spreads_N": "spread", "chosen_spread_N": "spread", "chosen_NK": "mixture"}


def _check_head(c: keys.Config) -> None:
  """Refuses heads, losses and labels that do not belong together."""
  part = c.train_scorer
  loss = resolve.bind("losses", part.loss, "train_scorer.loss")
  taken, named = inspect.signature(loss).parameters, f"train_scorer.loss.name={part.loss.name!r}"
  compares = update_prm.COMPARED & set(taken)
  if not compares and "scores_N" not in taken:
    _refuse(c, "train_scorer.loss.name", "a loss of scores, such as reward_model.bce or .mse, or "
            "of pairs, such as reward_model.bradley_terry")
  if compares and part.labels != "outcome":
    _refuse(c, "train_scorer.labels", f"outcome with {named}, which compares completions")
  if part.balanced and "weight_N" not in taken:
    _refuse(c, "train_scorer.balanced", f"False with {named}")
  if part.margins and "margin_N" not in taken:
    _refuse(c, "train_scorer.margins", f"False with {named}")
  wanted = next((head for name, head in _HEADS.items() if name in taken), None)
  if wanted and part.head != wanted: _refuse(c, "train_scorer.head", f"{wanted} with {named}")
  if part.head in ("spread", "mixture") and wanted != part.head:
    losses = dict(spread="gaussian or .uncertain_bradley_terry", mixture="mixture")[part.head]
    _refuse(c, "train_scorer.loss.name", f"reward_model.{losses} with train_scorer.head="
            f"{part.head!r}")
  if part.adapt_rate is not None and part.head != "mixture":
    _refuse(c, "train_scorer.adapt_rate", f"None with train_scorer.head={part.head!r}; it is of "
            "the weights of a mixture's heads")
  if part.energy.steps and (part.labels != "outcome" or part.head == "yes_no"):
    _refuse(c, "train_scorer.energy.steps", f"0 with train_scorer.labels={part.labels!r} and .head="
            f"{part.head!r}; an energy corrects what a head gives to whole completions")
  if part.energy.steps and not part.energy.stds:
    _refuse(c, "train_scorer.energy.stds", "one standard deviation or more, such as (3.5,)")
  if (part.labels == "both") != (part.head == "product"):
    _refuse(c, "train_scorer.head", "product with train_scorer.labels='both', and only then")
  if part.head == "yes_no" and part.labels != "outcome":
    _refuse(c, "train_scorer.labels", "outcome with train_scorer.head='yes_no', which is asked "
            "about whole completions")
  if (part.head == "yes_no") != (part.question is not None):
    raise ValueError(f"train_scorer.question={part.question!r}: " + (
        "a text, which asks whether the completion is right, with train_scorer.head='yes_no'."
        if part.question is None else f"None with train_scorer.head={part.head!r}."))
  if part.merge_steps and part.labels not in ("until_first_zero", "relative"):
    _refuse(c, "train_scorer.merge_steps", f"False with train_scorer.labels={part.labels!r}: the "
            "labels of later steps do not depend on earlier ones")
  _check_curation(c)
  if (auxiliary := build_methods.bind_auxiliary(c)) is not None:
    if "chosen_ND" not in inspect.signature(auxiliary).parameters:
      _refuse(c, "train_scorer.auxiliary.name", "a loss of the features of pairs, such as "
              "reward_model.contrast_pairs")
    if not compares & {"chosen_N", "chosen_NK"} or part.head == "yes_no":
      _refuse(c, "train_scorer.auxiliary.name", f"None with {named} and train_scorer.head="
              f"{part.head!r}; it is added to a loss of pairs, of a model with a head")
  _check_labelling(c)


def _check_labelling(c: keys.Config) -> None:
  """Refuses ways to label completions and steps that do not fit what is learned."""
  part, scorers = c.train_scorer, build_models.read_scorers(c)
  def is_share(path: str) -> bool:
    return (not host_fields.is_scorer(path)
            or scorers[path.partition(".")[2]].kind == "probability")
  if part.pseudo_labels:
    if part.labels != "both":
      _refuse(c, "train_scorer.pseudo_labels", f"False with train_scorer.labels={part.labels!r}")
    if len(c.verifier.scores) != 2 or not all(
        host_fields.is_scorer(path) and is_share(path) for path in c.verifier.scores):
      _refuse(c, "verifier.scores", "two scorers of kind probability, of steps that are right and "
              "of their values, with train_scorer.pseudo_labels=True")
  is_of_values = part.labels in step_labels.KINDS
  if part.add_outcome and not is_of_values:
    _refuse(c, "train_scorer.add_outcome", f"False with train_scorer.labels={part.labels!r}: it is "
            "added to labels of steps")
  if part.scored_share:
    if part.labels != "outcome" and not part.add_outcome:
      _refuse(c, "train_scorer.scored_share", f"0 with train_scorer.labels={part.labels!r} and "
              "train_scorer.add_outcome=False: no verdict is learned")
    if not c.verifier.scores or not all(map(is_share, c.verifier.scores)):
      _refuse(c, "verifier.scores", "verifiers or scorers of kind probability, with "
              f"train_scorer.scored_share={part.scored_share!r}")
  if part.labelled_by == "rollouts": return
  if not is_of_values or part.labels == "relative" and part.labelled_by in (
      "verifier", "mutations"):
    _refuse(c, "train_scorer.labelled_by", f"rollouts with train_scorer.labels={part.labels!r}")
  if part.labelled_by == "mutations":
    build_methods.bind_mutation(c)
    if c.verifier.scores and host_fields.is_scorer(c.verifier.scores[0]):
      _refuse(c, "verifier.scores", "verifiers, the first of which says whether a changed "
              "completion is right, with train_scorer.labelled_by='mutations'")
    return
  if c.verifier.steps is None or host_fields.is_scorer(c.verifier.steps):
    _refuse(c, "verifier.steps", "a verifier of steps, such as judge.steps, with "
            f"train_scorer.labelled_by={part.labelled_by!r}")


def _check_curation(c: keys.Config) -> None:
  """Refuses a choice of pairs without scorers, or where none are learned."""
  if c.train_scorer.curate.name is None: return
  build_methods.bind_curation(c)
  if c.train_scorer.labels != "outcome":
    _refuse(c, "train_scorer.curate.name", f"None with train_scorer.labels="
            f"{c.train_scorer.labels!r}; it chooses pairs of whole completions")
  scorers = build_models.read_scorers(c)
  if not c.verifier.scores or any(
      host_fields.is_scorer(path) and scorers[path.partition(".")[2]].kind == "yes_no"
      for path in c.verifier.scores):
    _refuse(c, "verifier.scores", "scorers and verifiers, none of kind yes_no, with "
            f"train_scorer.curate.name={c.train_scorer.curate.name!r}")


def _check_value_model(c: keys.Config, methods: methods_lib.Methods) -> None:
  if len(methods.value_terms) < 2: return
  keys = ", ".join(f"advantages.{t}.name={c.advantages[t].name!r}" for t in methods.value_terms)
  raise ValueError(f"{keys}: one value model cannot learn the targets of several terms; use "
                   "values in one term, or advantages.total for the sum of the rewards.")


def _check_judge(c: keys.Config) -> None:
  """Options of verifiers/judge.py, of the judges that the config names."""
  parts = (*build_prompts.list_sources(c).values(), *build_prompts.list_eval_sets(c).values())
  named = {*verifiers(c), *(part.prompts.columns.get("verifier") for part in parts)}
  check_judges(c, named)
  for section in build_judges.list_learning(c): _check_learning_judge(c, section)


# What the rows of stages/judge_replies.py have, and what the update of a judge adds.
_OF_REPLIES = {"outcome", "reward", "action", "finish", "lengths", "excluded", "learn", "logps",
               "old_logps", "sampler_logps", "entropy", "advantages", "rewards"}


def _check_learning_judge(c: keys.Config, section: str) -> None:
  """Refuses a judge that cannot learn beside the policy as its section says."""
  options, key = build_judges.list_in_process(c)[section], f"{section}.online"
  replies = build_methods.find_trained(c, section).replies
  def refuse(allowed: str) -> None:
    raise ValueError(f"{key}.replies={replies!r}: {allowed}.")
  if options["model"] in judge.OF_RUN:
    refuse(f"None with model={options['model']!r}; a judge with the path of its own model learns")
  for name, allowed in dict(cache=None, probability=False, per_item=False).items():
    if options[name] != allowed: refuse(f"None with {name}={options[name]!r}; its replies are "
                                        "drawn in each step, one to a completion")
  if not options["temperature"]: refuse("None with temperature=0.0, whose replies are all alike")
  paths = build_judges.list_task_paths(c, section)
  if len(paths) != 1 or paths[0].partition("/")[0] not in ("judge.chat", "judge.steps"):
    refuse("None, unless verifier.scores or verifier.steps names it once, as judge.chat or "
           f"judge.steps, which is what it learns; named are {paths}")
  if paths[0].startswith("judge.steps") and not options["whole"]:
    refuse(f"None without {section}.whole, as the verdict on the whole answer is what is learned")
  part, methods = build_methods.resolve_judging(c, section)
  for name, own, fn in (("advantages", part.advantages.outcome, methods.estimators["outcome"][1]),
                        ("loss", part.learner.loss, methods.policy)):
    read = {fields.column(f).rpartition("_")[0] for f in fn.required}
    other = sorted(read - _OF_REPLIES) or [*(getattr(fn, "state", None) or ())]
    if other:
      raise ValueError(f"{key}.{name}.name={own.name!r}: one that keeps no state and reads only "
                       f"what replies of a judge have; it has {other[0]}.")
  forced = getattr(resolve.lookup("losses", part.learner.loss.name), "aggregation", None)
  if forced and c.learner.aggregation != forced:
    raise ValueError(f"{key}.loss.name={part.learner.loss.name!r}: one that is defined for "
                     f"learner.aggregation={c.learner.aggregation!r}, not {forced}.")


def check_judges(c: keys.Config, paths: Iterable[str | None]) -> None:
  """Refuses options of the judges among the verifiers at these paths.

  Raises:
    ValueError: one line with the key, its value and what is allowed.
  """
  judges, separator = build_judges.list_judges(c), c.rollouts.step_separator
  for path in sorted({path for path in paths if path and path.startswith("judge.")}):
    if path.startswith("judge.steps") and separator in (None, "", host_fields.TURN):
      _refuse(c, "rollouts.step_separator", f"a text that ends reasoning steps, with {path}")
    if problem := judge.find_problem(judges, path):
      key, value, allowed = problem
      raise ValueError(f"{key}={value!r}: {allowed}.")


def _try_methods(c: keys.Config, methods: methods_lib.Methods) -> None:
  """Runs every method on shapes: what its options may be is known to itself alone."""
  scored = _make_example(c, methods)
  def attempt(key: str, fn: Any, record: Any, run: Any = jax.eval_shape) -> Any:
    try:
      return run(lambda: fn and fn(record))
    except ValueError as e:
      raise ValueError(f"{key}.{e}") from None
  shapes = {term: resolve.split_metrics(attempt(f"rewards.{term}", fn, scored))[0].shape
            for term, (_, fn) in methods.rewards.items()}
  for name, (_, fn) in methods.estimators.items():
    rewards = np.zeros(shapes.get(name, scored.action_BT.shape), np.float32)
    attempt(f"advantages.{name}", lambda s: fn(combine.with_rewards(s, rewards)), scored)
  for key, loss in (("prm.loss", methods.prm), ("learner.loss", methods.policy),
                    ("learner.rollout_correction", methods.rollout_correction),
                    ("learner.token_weight", methods.token_weight),
                    ("learner.auxiliary", methods.auxiliary)):
    attempt(key, loss, scored)
  # These run on the host, with numpy.
  for name in ("select_completions", "filter_groups"):
    attempt(f"rollouts.{name}", getattr(methods, name), scored, lambda f: f())
  attempt("rollouts.anneal", methods.anneal, 0)
  attempt("rollouts.budget", methods.budget, np.zeros(1))
  keep = methods.reward_std_filter
  attempt("learner.reward_std_filter", lambda s: keep and keep.fn(
      s.outcome_PG, s.learn_PG, 0, **keep.options), scored)


def find_comparing(c: keys.Config, methods: methods_lib.Methods) -> list[str]:
  """Entries of `advantages` that give 0 to groups whose completions have equal rewards.

  For others, such as batch.reinforce, 0 is the advantage of a wrong answer. Found by
  running each estimator on groups in which all completions have the same reward.
  """
  scored = _make_example(c, methods)
  scored = scored.replace(action_BT=np.ones_like(scored.action_BT))
  rewards_B = np.repeat(np.arange(_FEW, dtype=np.float32), c.rollouts.per_prompt)
  return [name for name, (_, fn) in methods.estimators.items()
          if not np.any(_estimate(fn, scored, rewards_B))]


def does_prm_compare(c: keys.Config, methods: methods_lib.Methods) -> bool:
  """Whether prm.loss learns nothing of groups whose completions have equal verdicts.

  Found by running it on such groups.
  """
  tied = _make_example(c, methods)
  tied = tied.replace(action_BT=np.ones_like(tied.action_BT))
  loss = resolve.split_metrics(jax.jit(methods.prm)(tied))[0]
  return not (np.any(loss.total) or np.any(loss.weight))


@functools.partial(jax.jit, static_argnums=0)
def _estimate(fn: resolve.Method, scored: records.Batch, rewards_B: jax.Array) -> jax.Array:
  return resolve.split_metrics(fn(combine.with_rewards(scored, rewards_B)))[0]


def _make_example(c: keys.Config, methods: methods_lib.Methods) -> records.Batch:
  """A Batch of whole groups of this config, all zeros; it is small, however large a batch is.

  It has the fields of the plan, and those that methods require from an update.
  """
  sizes = dict(B=_FEW * c.rollouts.per_prompt, T=_FEW, E=len(c.verifier.scores),
               Z=max(len(c.verifier.step_rewards), 1), I=c.verifier.max_items,
               M=_FEW, J=_FEW, K=_FEW, V=_FEW)
  tried = (*methods.readers().values(), methods.prm, methods.auxiliary)
  names = [*(f.name for f in plan_lib.plan_fields(c, methods)),
           *(name for fn in tried if fn for name in fn.required)]
  columns = fields.example(methods.list_fields(), names, sizes)
  return records.Batch(c.rollouts.per_prompt, **{
      name: x for name, x in columns.items() if name not in records.DERIVED})


def _warn_cancelled(c: keys.Config, methods: methods_lib.Methods) -> None:
  """Names each reward term that its estimator undoes, see core/method.py.

  Only where the term is estimated by itself: in a sum it shifts the other terms.
  """
  for term, spec in c.rewards.items():
    entry = term if term in methods.estimators else "total"
    if entry == "total" and len(c.rewards) + methods.has_kl_reward > 1: continue
    reward = resolve.lookup("rewards", spec["name"])
    name = c.advantages[entry].name
    for attribute, options, left in getattr(reward, "cancelled", ()):
      if getattr(resolve.lookup("advantages", name), attribute, False) and (
          options.items() <= methods.rewards[term][1].options.items()):
        logging.warning("rewards.%s.name=%r: advantages.%s.name=%r leaves %s; an estimator such as "
                        "batch.reinforce keeps it.", term, spec["name"], entry, name, left)


def _warn_uncorrected(c: keys.Config, methods: methods_lib.Methods) -> None:
  """Says that an older policy samples and nothing weighs what it drew.

  The log-probs before an update are the trainer's own, so that its ratios start at 1. A
  loss without them and without advantages, such as sequence.dpo, asks nobody who sampled.
  """
  if c.rollouts.sync_every == 1 or methods.needs("sampler_logps_BT"): return
  if {"old_logps_BT", "advantages_BT"} & set(methods.policy.fields):
    logging.warning("rollouts.sync_every=%d: completions are from an older policy, for which "
                    "learner.loss.name=%r does not correct; learner.rollout_correction.name="
                    "'rollout_correction.tis' does.", c.rollouts.sync_every, c.learner.loss.name)


def _warn_scaled_up(c: keys.Config, methods: methods_lib.Methods) -> None:
  """Names each implicit reward that is scaled up before its PRM has learned anything.

  A PRM that starts as its reference gives log-ratios of almost 0 after one update, and the
  normaliser makes them as large as those of a PRM that has learned.
  """
  for term, (_, fn) in methods.rewards.items():
    is_late = fn.options.get("floor") or c.rewards[term].get("warmup_steps")
    if c.prm.path is None and fn.options.get("norm") == "max_return" and not is_late:
      logging.warning("rewards.%s.floor=0.0, rewards.%s.warmup_steps=0: norm='max_return' makes "
                      "the rewards of a PRM that has hardly moved as large as those of a trained "
                      "one; set one of the two.", term, term)


def find_toy_numbers(c: keys.Config, texts: texts_lib.Texts, prompts: Sequence[records.Prompt],
                     learns: str = "policy") -> list[str]:
  """Values that suit a toy of a few characters, where the model is a language model.

  Args:
    prompts: of which the first shows what the model is asked for.
    learns: as of `build.build`.
  Returns:
    one line for each value, with what to write instead.
  """
  has_chat, lines = texts.tokenizer.hf.chat_template is not None, []
  if not has_chat and len(texts.tokenizer.vocabulary) < _TOY_TOKENS: return []
  if c.rollouts.max_tokens <= 32:
    lines.append(f"rollouts.max_tokens={c.rollouts.max_tokens}: few answers of a language model "
                 "are so short; base=gsm8k, or rollouts.max_tokens=1024")
  if (rate := c.learner.optimizer.lr) >= 1e-4 and not c.lora.rank and learns == "policy":
    lines.append(f"learner.optimizer.lr={rate:g}: on all weights of a language model this destroys "
                 "it within a few steps; base=gsm8k, or learner.optimizer.lr=1e-6")
  plain = [f"prompts.{f'mixture.{name}.' if name else ''}template.name"
           for name, part in build_prompts.list_sources(c).items()
           if part.prompts.template.name == "plain"]
  if has_chat and plain:
    lines.append(f"{plain[0]}='plain': the model's chat template is not used; base=gsm8k, or "
                 f"{plain[0]}=chat")
  if prompts and not re.search(c.eval.answer, texts.prompt(prompts[0])):
    lines.append(f"eval.answer={c.eval.answer!r}: the prompt does not ask for an answer of this "
                 "form, so votes over answers may find none; base=gsm8k, or prompts.template.name="
                 r"boxed with eval.answer='\\boxed\{(.*)\}'")
  return lines


def find_summed_steps(c: keys.Config, methods: methods_lib.Methods) -> dict[str, list[str]]:
  """What undoes the gain of a trained PRM's rewards of steps, see docs/prime.md.

  Returns:
    {term that is such a reward: lines about its estimator}; a term of its own estimator only.
  """
  by_term: dict[str, list[str]] = {}
  for term, (_, reward) in methods.rewards.items():
    is_of_steps = "prm_logps_BT" in reward.fields and reward.options.get("granularity") == "step"
    if c.prm.path is None or term not in methods.estimators or not is_of_steps: continue
    by_term[term] = lines = []
    name, options = c.advantages[term].name, methods.estimators[term][1].options
    adds_later = getattr(resolve.lookup("advantages", name), "adds_later", False)
    if adds_later and options.get("gamma", 1.0):
      lines.append(f"advantages.{term}.name={name!r} adds the rewards of later steps")
    if options.get("include_last"):
      lines.append(f"advantages.{term}.include_last=True rewards the step that states the answer, "
                   "which the verdict covers")
  return by_term
