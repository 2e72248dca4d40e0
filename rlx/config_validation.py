"""Config validation: refuses values that are not allowed, and options that contradict each other.

Everything here runs before a model is read or anything compiles. A refusal is a
ValueError of one line: key, value found, what is allowed.
"""
import dataclasses
import functools
import inspect

from absl import logging
import jax
import numpy as np

from rlx import methods as methods_lib
from rlx.advantages import combine
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
from rlx.verifiers import answers
from rlx.verifiers import judge

_ROWS = 2**20  # Completions of a step: methods hold a few arrays of so many.
_FEW = 4       # Of prompts, tokens, ... of a batch that methods are tried on.
ORDERS = ("single", "double", "none", "reverse")
REFERENCES = ("frozen", "policy", "self")


def check(c, methods):
  """Values and contradictions. One line each; nothing has compiled yet."""
  def refuse(condition, key, allowed):
    if condition:
      value = functools.reduce(getattr, key.split("."), c)
      raise ValueError(f"{key}={value!r}: {allowed}.")
  refuse(c.prompts.per_step * c.rollouts.per_prompt > _ROWS, "prompts.per_step",
         f"at most {_ROWS} completions a step, with rollouts.per_prompt={c.rollouts.per_prompt}")
  refuse("" in c.rollouts.stops, "rollouts.stops", "texts that are not empty")
  refuse(c.rollouts.step_separator == "", "rollouts.step_separator", "None or a text")
  refuse(not answers.is_pattern(c.eval.answer), "eval.answer", "a regular expression with at "
         "most one group")
  refuse(c.rollouts.slots is not None and c.rollouts.slots % c.rollouts.per_prompt,
         "rollouts.slots", "None, from the device's memory, or a multiple of rollouts.per_prompt="
         f"{c.rollouts.per_prompt}")
  of_sampler = methods.reading("sampler_logps_BT")
  refuse(c.rollouts.demonstration.name is not None and bool(of_sampler),
         "rollouts.demonstration.name", f"None with {', '.join(of_sampler)}, which reads the "
         "sampler's log-probs; those of a demonstration are not known")
  if c.rollouts.demonstration.name is not None:
    resolve.bind("prompts.datasets", c.rollouts.demonstration, "rollouts.demonstration",
                 n_given=2)
  if c.rollouts.budget.name is not None:
    refuse(c.rollouts.budget.first >= c.rollouts.per_prompt, "rollouts.budget.first",
           f"below rollouts.per_prompt={c.rollouts.per_prompt}, of which a second pass draws "
           "the rest")
    for key, off in (("rollouts.demonstration.name", None), ("rollouts.rehearsal", 0)):
      refuse(functools.reduce(getattr, key.split("."), c) != off, key,
             f"{off} with rollouts.budget")
  refuse(c.rollouts.rehearsal >= c.prompts.per_step, "rollouts.rehearsal",
         f"below prompts.per_step={c.prompts.per_step}")
  refuse(c.rollouts.rehearsal and c.prompts.paired, "rollouts.rehearsal",
         "0 with prompts.paired: the other wording would stay in training")
  rehearses = methods.asking("rehearsal_BT")
  refuse(bool(rehearses) != bool(c.rollouts.rehearsal), "rollouts.rehearsal",
         f"{rehearses[0]} learns from them: at least 1" if rehearses else
         "0 without learner.auxiliary.name='auxiliary.rehearsal', which learns from them")
  refuse(c.rollouts.fill not in ("drop", "failed", "error"), "rollouts.fill",
         "drop, failed or error")
  refuse(c.memory_check not in ("error", "warn", "off"), "memory_check",
         "error, warn or off")
  for path in c.eval.prm_sets:
    if path.endswith(".jsonl"): continue
    resolve.lookup("verifiers", path, "eval.prm_sets")
    refuse(c.rollouts.step_separator is None, "rollouts.step_separator",
           f"eval.prm_sets={path!r} needs it")
  refuse(c.train_prm.labels not in (None, *step_labels.KINDS), "train_prm.labels",
         f"None or one of {step_labels.KINDS}")
  refuse(c.train_prm.labels is not None and c.rollouts.step_separator is None,
         "rollouts.step_separator", "train_prm.labels needs it")
  refuse(c.prm.order not in ORDERS, "prm.order", f"one of {ORDERS}")
  refuse(c.prm.reference not in REFERENCES, "prm.reference", f"one of {REFERENCES}")
  refuse(c.kl.place not in ("loss", "reward"), "kl.place", "loss or reward")
  if c.kl.target is not None:
    refuse(not c.kl.coef > 0, "kl.coef", f"> 0 with kl.target={c.kl.target}, which multiplies it")
    least = 0.2 * c.prompts.per_step * c.rollouts.per_prompt  # See divergence.adaptive_coef.
    refuse(not c.kl.horizon > least, "kl.horizon", f"more than {least:g}, a fifth of a step's "
           "completions, or the coefficient becomes negative")
  refuse(c.kl.sync_every and c.rollouts.rehearsal, "kl.sync_every",
         "0 with rollouts.rehearsal, which is of the start")
  refuse(c.kl.sync_every and not methods.needs("ref_logps_BT"), "kl.sync_every",
         "nothing reads the policy's reference; set kl.coef or leave it at 0")
  refuse(c.kl.sync_mix < 1 and c.lora.rank, "kl.sync_mix",
         "1 with lora.rank: a mean of adapters is not the adapter of a mean")
  refuse(c.kl.reset_optimizer and not c.kl.sync_every, "kl.reset_optimizer",
         "it happens with a sync; set kl.sync_every")
  refuse(c.kl.kind not in divergence.KINDS, "kl.kind", f"one of {divergence.KINDS}")
  refuse(c.learner.aggregation not in aggregate.MODES, "learner.aggregation",
         f"one of {aggregate.MODES}")
  forced = getattr(resolve.lookup("losses", c.learner.loss.name), "aggregation", None)
  refuse(forced and c.learner.aggregation != forced, "learner.aggregation",
         f"{c.learner.loss.name} is defined for {forced}")
  refuse(c.model.dtype not in ("float32", "bfloat16"), "model.dtype",
         "float32 or bfloat16")
  refuse(c.model.param_dtype not in ("float32", "bfloat16"), "model.param_dtype",
         "float32 or bfloat16")
  refuse(c.model.param_update not in optimizer.PARAM_UPDATES, "model.param_update",
         f"one of {optimizer.PARAM_UPDATES}")
  refuse(c.kl.reset_optimizer and c.model.param_dtype != "float32" and not c.lora.rank,
         "kl.reset_optimizer", f"False with model.param_dtype={c.model.param_dtype}: what its "
         "parameters lack in bits is in the optimizer's state")
  refuse(c.kl.sync_mix < 1 and c.model.param_dtype != "float32", "kl.sync_mix",
         f"1 with model.param_dtype={c.model.param_dtype}, in which a mean that moves "
         "little by little would be rounded back")
  refuse(c.model.frozen_dtype not in (None, c.model.dtype), "model.frozen_dtype",
         f"None or model.dtype={c.model.dtype}; in another the PRM would differ "
         "from its own start")
  refuse(c.model.attention not in attention.KINDS, "model.attention",
         f"one of {attention.KINDS}")
  refuse(c.model.attention == "cudnn" and (
      c.model.dtype != "bfloat16" or jax.default_backend() != "gpu"), "model.attention",
      "blocks; cudnn needs a GPU and model.dtype=bfloat16")
  refuse(c.model.attention == "splash" and set(c.mesh.values()) != {1},
         "model.attention", "blocks; splash runs on one device")
  refuse(c.model.remat not in ("none", "full", "dots"), "model.remat",
         "none, full or dots")
  refuse(not c.lora.targets or set(c.lora.targets) - set(lora.TARGETS), "lora.targets",
         f"some of {lora.TARGETS}")
  refuse(c.lora.rank and c.prm.path is not None, "prm.path",
         "None with lora.rank: PRM and policy are adapters over one base")
  resolve.bind("rollouts", c.rollouts.filter_groups, "rollouts.filter_groups", n_given=2)
  resolve.bind("prompts.templates", c.prompts.template, "prompts.template", n_given=1)
  lonely = [] if c.rollouts.per_prompt > 1 else compares(c, methods)
  refuse(bool(lonely), "rollouts.per_prompt",
         f"advantages.{lonely[0] if lonely else ''} compares completions of a "
         "group; use >= 2, or an estimator such as batch.reinforce")
  if len(methods.value_terms) > 1:
    keys = ", ".join(f"advantages.{t}.name={c.advantages[t].name!r}" for t in methods.value_terms)
    raise ValueError(f"{keys}: one value model cannot learn the targets of several terms; use "
                     "values in one term, or advantages.total for the sum of the rewards.")
  for name in ("learner", "prm", "value"):
    methods_lib.scheduled(f"{name}.optimizer", c[name].optimizer.lr, c[name].optimizer)
  trackers.check(c.log.writers)
  _check_sources(c, methods, refuse)
  _try(c, methods)
  refuse(c.prm.order != "none" and not methods.needs("prm_logps_BT") and
         c.prm.path is not None, "prm.path",
         "no reward or estimator reads the PRM; drop the path or add a process reward")
  for line in (*cancelled(c, methods), *uncorrected(c, methods), *loud(c)): logging.warning("%s", line)


def _check_sources(c, methods, refuse):
  """What methods read beside verdict and log-probs has somebody who gives it."""
  scored = methods.asking("step_scores_BT")
  refuse(bool(scored) and c.verifier.steps is None, "verifier.steps",
         f"{', '.join(scored)} reads the scores of steps; name what judges them, "
         "such as chain.steps")
  scored = methods.asking("scores_B", "scores_PG", "scores_BE")
  refuse(bool(scored) and not c.verifier.scores, "verifier.scores",
         f"{', '.join(scored)} reads scores beside the verdict; name verifiers such as "
         "('format.boxed',)")
  for path in c.verifier.scores: resolve.lookup("verifiers", path, "verifier.scores")
  for term, (_, fn) in methods.estimators.items():
    if "greedy_B" not in fn.fields: continue
    plain = dict(name="outcome.verdict", coef=1.0)
    of = [c.rewards[term]] if term in c.rewards else list(c.rewards.values())
    refuse([{k: spec[k] for k in plain} for spec in of] != [plain], f"advantages.{term}.name",
           f"compares with the verdict of a greedy completion, so the reward must be {plain}")
  _check_judge(c, refuse)
  refuse(methods.needs("pair_PG") and not c.prompts.paired, "prompts.paired",
         "a reward compares two wordings of a question; True, and a prompts.dataset that "
         "has them, such as chain_pairs")
  refuse(c.prompts.paired and c.prompts.per_step % 2, "prompts.per_step",
         "must be even with prompts.paired")
  for key, only in (("rollouts.filter_groups.name", "filter_groups.with_verdict"),
                    ("rollouts.oversample", 1.0)):
    refuse(c.prompts.paired and functools.reduce(getattr, key.split("."), c) != only, key,
           f"{only} with prompts.paired: both wordings stay in the batch")
  refuse(c.likelihood.model not in ("policy", "reference"), "likelihood.model",
         "policy or reference")
  refuse("{}" not in c.likelihood.answer, "likelihood.answer",
         "a text with {} where the reference answer stands")
  for field, key, wrong in (
      ("answer_mask_BM", "likelihood.max_tokens", c.likelihood.max_tokens < 1),
      ("step_answer_logps_BJM", "likelihood.steps", c.likelihood.steps < 1),
      ("answer_span_BT", "likelihood.separator", not c.likelihood.separator),
      ("self_logps_B", "likelihood.token", c.likelihood.token is None)):
    refuse(bool(methods.needs(field) or methods.asking(field)) and wrong, key,
           f"a method reads {field} and needs it")
  refuse(c.likelihood.separator == "", "likelihood.separator", "None or a text")
  for field, key, wrong in (
      ("top_logps_BTK", "distribution.top", c.distribution.top < 1),
      ("old_min_p_logps_BT", "distribution.min_p", c.distribution.min_p == 0)):
    refuse(methods.needs(field) and wrong, key, f"a method reads {field} and needs it")
  steps = [f"rewards.{t}.granularity='step'" for t, s in c.rewards.items()
           if dict(s).get("granularity") == "step"] + methods.asking("step_ends_BT")
  if c.verifier.steps is not None:
    resolve.lookup("verifiers", c.verifier.steps, "verifier.steps")
    steps.append(f"verifier.steps={c.verifier.steps!r}")
  refuse(bool(steps) and c.rollouts.step_separator is None,
         "rollouts.step_separator", f"{steps[0] if steps else ''} needs it")


def _check_judge(c, refuse):
  """Options of verifiers/judge.py, and that the pool has the patience for them."""
  options = c.verifier.judge.to_dict()
  found = judge.problem(options)
  refuse(bool(found), f"verifier.judge.{found[0]}" if found else "", found and found[1])
  named = {*c.verifier.scores, c.prompts.columns.get("verifier")}
  for verifier, key in (("judge.chat", "url"), ("judge.function", "function")):
    refuse(verifier in named and options[key] is None, f"verifier.judge.{key}",
           f"{verifier} needs it")
  longest = judge.longest_s(options)
  refuse("judge.chat" in named and c.verifier.workers > 0
         and c.verifier.timeout_s <= longest, "verifier.timeout_s",
         f"judge.chat may take {longest:g} s with its repeats; allow more, or lower "
         "verifier.judge.timeout_s or .retries")


def _try(c, methods):
  """Runs every method on shapes: what its options may be is known to itself alone."""
  scored = _example(c)
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
  # It runs on the host, with numpy.
  attempt("rollouts.select_completions", methods.select_completions, scored, lambda f: f())
  attempt("rollouts.anneal", methods.anneal, 0)
  attempt("rollouts.budget", methods.budget, np.zeros(1))
  attempt("learner.reward_std_filter", methods.reward_std_filter and (
      lambda s: methods.reward_std_filter(s.outcome_PG, s.learn_PG, np.float32(0), 0)), scored)


def compares(c, methods):
  """Entries of `advantages` that give 0 to groups whose completions have equal rewards.

  For others, such as batch.reinforce, 0 is the advantage of a wrong answer. Found by
  running each estimator on groups in which all completions have the same reward.
  """
  scored = _example(c)
  scored = scored.replace(action_BT=np.ones_like(scored.action_BT))
  rewards_B = np.repeat(np.arange(_FEW, dtype=np.float32), c.rollouts.per_prompt)
  term = combine.Term(rewards=rewards_B, scored=scored)
  return [name for name, (_, fn) in methods.estimators.items()
          if not np.any(resolve.measured(fn(term))[0])]


def _example(c):
  """Scored of whole groups of this config, all zeros; it is small, however large a batch is."""
  size = dict(B=_FEW * c.rollouts.per_prompt, T=_FEW, E=max(len(c.verifier.scores), 1),
              M=_FEW, J=_FEW, K=_FEW)
  def zeros(name):
    dtype = (bool if any(word in name for word in ("action", "mask", "ends", "span", "demo")) else
             np.int32 if name in ("answer_B", "finish_B", "pair_B", "tokens_BT") else np.float32)
    return np.zeros([size[axis] for axis in name.rpartition("_")[2]], dtype)
  return records.Scored(group=c.rollouts.per_prompt, **{
      f.name: zeros(f.name) for f in dataclasses.fields(records.Scored)
      if f.name != "group"})


def cancelled(c, methods):
  """A line for each reward term that its estimator undoes, see `resolve.declares`.

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


def uncorrected(c, methods):
  """A line where an older policy samples and nothing weighs what it drew.

  The log-probs before an update are the trainer's own, so that its ratios start at 1. A
  loss without them and without advantages, such as sequence.dpo, asks nobody who sampled.
  """
  if c.rollouts.sync_every == 1 or methods.needs("sampler_logps_BT"): return
  if {"old_logps_BT", "advantages_BT"} & set(methods.policy.fields):
    yield (f"rollouts.sync_every={c.rollouts.sync_every}: completions are from an older policy, "
           f"for which learner.loss.name={c.learner.loss.name!r} does not correct; "
           "learner.rollout_correction.name='rollout_correction.tis' does.")


def loud(c):
  """A line for each implicit reward that is scaled up before its PRM has learned anything.

  A PRM that starts as its reference gives log-ratios of almost 0 after one update, and the
  normaliser makes them as large as those of a PRM that has learned.
  """
  for term, spec in c.rewards.items():
    if spec["name"] != "implicit.process" or c.prm.path is not None: continue
    warmup_steps = dict(spec).get("warmup_steps", 0)  # Off where a term does not name it.
    options = {k: v for k, v in spec.items() if k not in ("coef", *schedule.OPTIONS)}
    found = inspect.signature(resolve.bind("rewards", options)).parameters
    if found["norm"].default == "max_return" and not found["floor"].default and not warmup_steps:
      yield (f"rewards.{term}.floor=0.0, rewards.{term}.warmup_steps=0: norm='max_return' makes "
             "the rewards of a PRM that has hardly moved as large as those of a trained one; "
             "set one of the two.")
