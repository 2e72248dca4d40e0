"""Config validation: refuses values that are not allowed, and options that contradict each other.

Everything here runs before a model is read or anything compiles. A refusal is a
ValueError of one line: the key, its value, what is allowed.
"""
import inspect
from collections.abc import Iterator

from absl import logging
import jax
import jax.numpy as jnp
import numpy as np

from rlx.advantages import combine
from rlx.build import keys
from rlx.build import methods as build_methods
from rlx.build import options as options_lib
from rlx.build import plan as plan_lib
from rlx.core import fields
from rlx.core import records
from rlx.core import resolve
from rlx.core import schedule
from rlx.io import trackers
from rlx.learner import optimizer
from rlx.losses import aggregate
from rlx.losses import divergence
from rlx.models import attention
from rlx.models import lora
from rlx.rewards import step_labels
from rlx.stages import host_fields
from rlx.stages import methods as methods_lib
from rlx.verifiers import answers
from rlx.verifiers import judge

_ROWS = 2**20  # Completions of a step: methods hold a few arrays with so many rows.
_FEW = 4       # Prompts, tokens, ... of the batch that methods are tried on.
_DTYPES = ("float32", "bfloat16")
# Keys whose value is one of a few.
CHOICES = {
    "kl.kind": divergence.KINDS,
    "kl.place": ("loss", "reward"),
    "learner.aggregation": aggregate.MODES,
    "likelihood.model": ("policy", "reference"),
    "memory_check": ("error", "warn", "off"),
    "model.attention": attention.KINDS,
    "model.dtype": _DTYPES,
    "model.param_dtype": _DTYPES,
    "model.param_update": optimizer.PARAM_UPDATES,
    "model.remat": ("none", "full", "dots"),
    "prm.order": ("single", "double", "none", "reverse"),
    "prm.reference": ("frozen", "policy", "self"),
    "rollouts.fill": ("drop", "failed", "error"),
    "train_prm.labels": (None, *step_labels.KINDS),
}


def check(c: keys.Config, methods: methods_lib.Methods) -> None:
  """Refuses a config whose values are not allowed or contradict each other.

  Raises:
    ValueError: one line with the key, its value and what is allowed.
  """
  for key, allowed in CHOICES.items():
    if options_lib.setting(c)(key) not in allowed: _refuse(c, key, f"one of {allowed}")
  _resolve_functions(c)
  for section in (_texts, _rollouts, _episodes, _paired, _kl, _model, _learner, _steps):
    for is_wrong, key, allowed in section(c, methods):
      if is_wrong: _refuse(c, key, allowed)
  _check_judge(c)
  _check_value_model(c, methods)
  for name in ("learner", "prm", "value"):
    build_methods.bind_schedule(f"{name}.optimizer", c[name].optimizer.lr, c[name].optimizer)
  trackers.check(c.log.writers)
  plan_lib.plan_fields(c, methods)
  _try(c, methods)
  for line in (*cancelled(c, methods), *uncorrected(c, methods), *loud(c)):
    logging.warning("%s", line)


def _refuse(c, key, allowed):
  raise ValueError(f"{key}={options_lib.setting(c)(key)!r}: {allowed}.")


# Each of these yields (is it wrong, key, what is allowed).


def _texts(c, methods):
  del methods
  yield "" in c.rollouts.stops, "rollouts.stops", "texts that are not empty"
  yield c.likelihood.separator == "", "likelihood.separator", "None or a text"
  for key in ("eval.prm_sets", "train_prm.labels"):  # They cut texts, not tokens.
    value = options_lib.setting(c)(key)
    yield (c.rollouts.step_separator == "" and value, "rollouts.step_separator",
           f"a text with {key}={value!r}")
  yield (not answers.is_pattern(c.eval.answer), "eval.answer",
         "a regular expression with at most one group")
  yield ("{}" not in c.likelihood.answer, "likelihood.answer",
         "a text with {} where the reference answer stands")


def _rollouts(c, methods):
  r, group = c.rollouts, f"rollouts.per_prompt={c.rollouts.per_prompt}"
  yield (c.prompts.per_step * r.per_prompt > _ROWS, "prompts.per_step",
         f"at most {_ROWS} completions a step, with {group}")
  yield (r.slots is not None and r.slots % r.per_prompt, "rollouts.slots",
         f"None, from the device's memory, or a multiple of {group}")
  readers = methods.reading("sampler_logps_BT")
  yield (r.demonstration.name is not None and readers, "rollouts.demonstration.name",
         f"None with {', '.join(readers)}, which reads the sampler's log-probs; those of a "
         "demonstration are not known")
  if r.budget.name is not None:
    yield (r.budget.first >= r.per_prompt, "rollouts.budget.first",
           f"below {group}, of which a second pass draws the rest")
    for key, off in (("rollouts.demonstration.name", None), ("rollouts.rehearsal", 0)):
      yield options_lib.setting(c)(key) != off, key, f"{off} with rollouts.budget"
  yield (r.rehearsal >= c.prompts.per_step, "rollouts.rehearsal",
         f"below prompts.per_step={c.prompts.per_step}")
  learners = methods.asking("rehearsal_BT")
  yield (bool(learners) != bool(r.rehearsal), "rollouts.rehearsal",
         f"{learners[0]} learns from them: at least 1" if learners else
         "0 without learner.auxiliary.name='auxiliary.rehearsal', which learns from them")
  compared = [] if r.per_prompt > 1 else compares(c, methods)
  yield (compared, "rollouts.per_prompt",
         f"advantages.{' '.join(compared[:1])} compares completions of a group; use >= 2, or an "
         "estimator such as batch.reinforce")


def _episodes(c, methods):
  """What has no meaning where a prompt has a dialogue instead of a completion, and the reverse."""
  del methods
  if c.environment.name is None:
    yield (c.rollouts.step_separator == host_fields.TURN, "rollouts.step_separator",
           "another text without environment.name: there are no turns")
    for term, spec in c.rewards.items():
      yield (dict(spec).get("granularity") == "turn", f"rewards.{term}.granularity",
             "token, step or completion without environment.name: there are no turns")
    return
  by = f"with environment.name={c.environment.name!r}"
  for key, off in (("rollouts.demonstration.name", None), ("rollouts.budget.name", None),
                   ("rollouts.rehearsal", 0), ("train_prm.labels", None), ("eval.prm_sets", ()),
                   ("likelihood.separator", None)):
    yield options_lib.setting(c)(key) != off, key, f"{off} {by}"


def _paired(c, methods):
  yield (methods.needs("pair_PG") and not c.prompts.paired, "prompts.paired",
         "a reward compares two wordings of a question; True, and a prompts.dataset that "
         "has them, such as chain_pairs")
  if not c.prompts.paired: return
  yield (c.rollouts.rehearsal, "rollouts.rehearsal",
         "0 with prompts.paired: the other wording would stay in training")
  yield c.prompts.per_step % 2, "prompts.per_step", "must be even with prompts.paired"
  for key, only in (("rollouts.filter_groups.name", "filter_groups.with_verdict"),
                    ("rollouts.oversample", 1.0)):
    yield (options_lib.setting(c)(key) != only, key,
           f"{only} with prompts.paired: both wordings stay in the batch")


def _kl(c, methods):
  if c.kl.target is not None:
    yield not c.kl.coef > 0, "kl.coef", f"> 0 with kl.target={c.kl.target}, which multiplies it"
    least = 0.2 * c.prompts.per_step * c.rollouts.per_prompt  # See divergence.adaptive_coef.
    yield (not c.kl.horizon > least, "kl.horizon",
           f"more than {least:g}, a fifth of a step's completions, or the coefficient becomes "
           "negative")
  yield (c.kl.sync_every and c.rollouts.rehearsal, "kl.sync_every",
         "0 with rollouts.rehearsal, whose completions are those of the start")
  yield (c.kl.sync_every and not methods.needs("ref_logps_BT"), "kl.sync_every",
         "nothing reads the policy's reference; set kl.coef or leave it at 0")
  yield (c.kl.reset_optimizer and not c.kl.sync_every, "kl.reset_optimizer",
         "it happens with a sync; set kl.sync_every")
  dtype = f"model.param_dtype={c.model.param_dtype}"
  yield (c.kl.reset_optimizer and c.model.param_dtype != "float32" and not c.lora.rank,
         "kl.reset_optimizer", f"False with {dtype}: the bits that its parameters lack are in "
         "the optimizer's state")
  if c.kl.sync_mix < 1:
    yield (c.lora.rank, "kl.sync_mix",
           "1 with lora.rank: a mean of adapters is not the adapter of a mean")
    yield (c.model.param_dtype != "float32", "kl.sync_mix",
           f"1 with {dtype}, in which small changes of a mean would be rounded away")


def _model(c, methods):
  yield (c.prm.path is not None and c.prm.order != "none" and not methods.needs("prm_logps_BT"),
         "prm.path", "no reward or estimator reads the PRM; drop the path or add a process reward")
  yield (not c.prm.snapshot and c.prm.epochs > 1, "prm.snapshot",
         f"True with prm.epochs={c.prm.epochs}, as the PRM would score each completion "
         "several times")
  yield (c.model.frozen_dtype not in (None, c.model.dtype), "model.frozen_dtype",
         f"None or model.dtype={c.model.dtype}; in another the PRM would differ "
         "from its own start")
  yield (c.model.attention == "cudnn" and c.model.dtype != "bfloat16", "model.attention",
         f"blocks with model.dtype={c.model.dtype}; cudnn needs bfloat16")
  yield (not c.lora.targets or set(c.lora.targets) - set(lora.TARGETS), "lora.targets",
         f"some of {lora.TARGETS}")
  yield (c.lora.rank and c.prm.path is not None, "prm.path",
         "None with lora.rank: PRM and policy are adapters over one base")


def _learner(c, methods):
  forced = getattr(resolve.lookup("losses", c.learner.loss.name), "aggregation", None)
  yield (forced and c.learner.aggregation != forced, "learner.aggregation",
         f"{c.learner.loss.name} is defined for {forced}")
  for term, (_, fn) in methods.estimators.items():
    if "greedy_B" not in fn.fields: continue
    plain = dict(name="outcome.verdict", coef=1.0)
    specs = [c.rewards[term]] if term in c.rewards else list(c.rewards.values())
    is_plain = [getattr(resolve.lookup("rewards", spec["name"]), "unchanged", False)
                and spec["coef"] == 1.0 for spec in specs] == [True]
    yield (not is_plain, f"advantages.{term}.name",
           f"compares with the verdict of a greedy completion, so the reward must be {plain}")


def _steps(c, methods):
  """What needs a text that ends reasoning steps."""
  needing = [f"{key}={path!r}" for path, key in verifiers(c).items() if key != "verifier.scores"]
  if c.train_prm.labels is not None: needing.append("train_prm.labels")
  needing += [f"rewards.{term}.granularity='step'" for term, spec in c.rewards.items()
              if dict(spec).get("granularity") == "step"]
  needing += methods.asking("step_ends_BT")
  yield (needing and c.rollouts.step_separator is None, "rollouts.step_separator",
         f"{' '.join(needing[:1])} needs it")


def _resolve_functions(c):
  """Refuses names of functions that do not exist, and options that they do not take."""
  for path, key in verifiers(c).items(): resolve.lookup("verifiers", path, key)
  if c.rollouts.demonstration.name is not None:
    resolve.bind("prompts.datasets", c.rollouts.demonstration, "rollouts.demonstration",
                 n_given=2)
  resolve.bind("prompts.templates", c.prompts.template, "prompts.template", n_given=1)


def verifiers(c: keys.Config) -> dict[str, str]:
  """{path: config key} of the verifiers that a config names, other than those of prompts."""
  steps = [] if c.verifier.steps is None else [c.verifier.steps]
  sets = [path for path in c.eval.prm_sets if not path.endswith(".jsonl")]
  return {path: key for key, paths in (
      ("verifier.scores", c.verifier.scores), ("verifier.step_rewards", c.verifier.step_rewards),
      ("verifier.steps", steps), ("eval.prm_sets", sets)) for path in paths}


def _check_value_model(c, methods):
  if len(methods.value_terms) < 2: return
  keys = ", ".join(f"advantages.{t}.name={c.advantages[t].name!r}" for t in methods.value_terms)
  raise ValueError(f"{keys}: one value model cannot learn the targets of several terms; use "
                   "values in one term, or advantages.total for the sum of the rewards.")


def _check_judge(c):
  """Options of verifiers/judge.py; the pool's deadline must leave time for its requests."""
  options = c.verifier.judge.to_dict()
  if problem := judge.problem(options): _refuse(c, f"verifier.judge.{problem[0]}", problem[1])
  named = {*c.verifier.scores, c.prompts.columns.get("verifier")}
  for verifier, key in (("judge.chat", "url"), ("judge.function", "function")):
    if verifier in named and options[key] is None:
      _refuse(c, f"verifier.judge.{key}", f"{verifier} needs it")
  longest = judge.longest_s(options)
  if ("judge.chat" in named and c.verifier.workers > 0 and c.verifier.timeout_s <= longest):
    _refuse(c, "verifier.timeout_s", f"judge.chat may take {longest:g} s with its repeats; "
            "allow more, or lower verifier.judge.timeout_s or .retries")


def _try(c, methods):
  """Runs every method on shapes: what its options may be is known to itself alone."""
  scored = _example(c, methods)
  def attempt(key, fn, record, run=jax.eval_shape):
    try:
      return run(lambda: fn and fn(record))
    except ValueError as e:
      raise ValueError(f"{key}.{e}") from None
  shapes = {term: resolve.measured(attempt(f"rewards.{term}", fn, scored))[0].shape
            for term, (_, fn) in methods.rewards.items()}
  for name, (_, fn) in methods.estimators.items():
    rewards = np.zeros(shapes.get(name, scored.action_BT.shape), np.float32)
    attempt(f"advantages.{name}", fn, combine.Term(rewards=rewards, scored=scored))
  for key, fn in (("prm.loss", methods.prm), ("learner.loss", methods.policy),
                  ("learner.rollout_correction", methods.rollout_correction),
                  ("learner.token_weight", methods.token_weight),
                  ("learner.auxiliary", methods.auxiliary)):
    attempt(key, fn, scored)
  # These run on the host, with numpy.
  for name in ("select_completions", "filter_groups"):
    attempt(f"rollouts.{name}", getattr(methods, name), scored, lambda f: f())
  attempt("rollouts.anneal", methods.anneal, 0)
  attempt("rollouts.budget", methods.budget, np.zeros(1))
  attempt("learner.reward_std_filter", methods.reward_std_filter and (
      lambda s: methods.reward_std_filter(s.outcome_PG, s.learn_PG, np.float32(0), 0)), scored)


def compares(c: keys.Config, methods: methods_lib.Methods) -> list[str]:
  """Entries of `advantages` that give 0 to groups whose completions have equal rewards.

  For others, such as batch.reinforce, 0 is the advantage of a wrong answer. Found by
  running each estimator on groups in which all completions have the same reward.
  """
  scored = _example(c, methods)
  scored = scored.replace(action_BT=np.ones_like(scored.action_BT))
  rewards_B = jnp.repeat(jnp.arange(_FEW, dtype=jnp.float32), c.rollouts.per_prompt)
  term = combine.Term(rewards=rewards_B, scored=scored)
  return [name for name, (_, fn) in methods.estimators.items()
          if not np.any(resolve.measured(fn(term))[0])]


def _example(c, methods):
  """A Batch of whole groups of this config, all zeros; it is small, however large a batch is.

  It has scores_BE only if the config names verifiers: methods may do without.
  """
  sizes = dict(B=_FEW * c.rollouts.per_prompt, T=_FEW, E=len(c.verifier.scores),
               Z=max(len(c.verifier.step_rewards), 1), M=_FEW, J=_FEW, K=_FEW)
  return records.Batch(c.rollouts.per_prompt, **{
      f.name: fields.zeros(f, sizes) for f in methods.declared().values()
      if f.axes and f.name not in records.DERIVED and ("E" not in f.axes or c.verifier.scores)})


def cancelled(c: keys.Config, methods: methods_lib.Methods) -> Iterator[str]:
  """A line for each reward term that its estimator undoes, see core/method.py.

  Only where the term is estimated by itself: in a sum it shifts the other terms.
  """
  for term, spec in c.rewards.items():
    entry, spec = term if term in methods.estimators else "total", dict(spec)
    if entry == "total" and len(c.rewards) + methods.has_kl_reward > 1: continue
    reward = resolve.lookup("rewards", spec["name"])
    estimator = resolve.lookup("advantages", c.advantages[entry].name)
    for attribute, options, left in getattr(reward, "cancelled", ()):
      if getattr(estimator, attribute, False) and options.items() <= spec.items():
        yield (f"rewards.{term}.name={spec['name']!r}: advantages.{entry}.name="
               f"{c.advantages[entry].name!r} leaves {left}; an estimator such as "
               "batch.reinforce keeps it.")


def uncorrected(c: keys.Config, methods: methods_lib.Methods) -> Iterator[str]:
  """A line where an older policy samples and nothing weighs what it drew.

  The log-probs before an update are the trainer's own, so that its ratios start at 1. A
  loss without them and without advantages, such as sequence.dpo, asks nobody who sampled.
  """
  if c.rollouts.sync_every == 1 or methods.needs("sampler_logps_BT"): return
  if {"old_logps_BT", "advantages_BT"} & set(methods.policy.fields):
    yield (f"rollouts.sync_every={c.rollouts.sync_every}: completions are from an older policy, "
           f"for which learner.loss.name={c.learner.loss.name!r} does not correct; "
           "learner.rollout_correction.name='rollout_correction.tis' does.")


def loud(c: keys.Config) -> Iterator[str]:
  """A line for each implicit reward that is scaled up before its PRM has learned anything.

  A PRM that starts as its reference gives log-ratios of almost 0 after one update, and the
  normaliser makes them as large as those of a PRM that has learned.
  """
  for term, spec in c.rewards.items():
    if spec["name"] != "implicit.process" or c.prm.path is not None: continue
    warmup_steps = dict(spec).get("warmup_steps", 0)  # Off where a term does not name it.
    options = {k: v for k, v in spec.items() if k not in ("coef", *schedule.OPTIONS)}
    bound = inspect.signature(resolve.bind("rewards", options)).parameters
    if bound["norm"].default == "max_return" and not bound["floor"].default and not warmup_steps:
      yield (f"rewards.{term}.floor=0.0, rewards.{term}.warmup_steps=0: norm='max_return' makes "
             "the rewards of a PRM that has hardly moved as large as those of a trained one; "
             "set one of the two.")


def harmful_steps(c: keys.Config) -> dict[str, list[str]]:
  """What was measured to undo the gain of a trained PRM's rewards of steps; see docs/prime.md.

  Returns:
    {term that is such a reward: lines about its estimator}; a term of its own estimator only.
  """
  found: dict[str, list[str]] = {}
  for term, spec in c.rewards.items():
    estimator = dict(c.advantages.get(term, {}))
    if (spec["name"] != "implicit.process" or spec.get("granularity") != "step"
        or c.prm.path is None or not estimator): continue
    found[term] = lines = []
    if estimator["name"] in SUMMING and estimator.get("gamma", 1.0):
      lines.append(f"advantages.{term}.name={estimator['name']!r} adds the rewards of later steps: "
                   "mean accuracy 0.036 on lookup, where process.steps_loo had 0.612")
    if estimator["name"] == "process.steps_loo" and estimator.get("include_last"):
      lines.append(f"advantages.{term}.include_last=True: mean accuracy 0.347 on lookup, where "
                   "False had 0.612")
  return found


# Estimators that add later rewards to a step's own.
SUMMING = ("process.rloo", "process.rloo_steps", "process.grpo", "process.reinforce")
