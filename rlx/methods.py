"""The methods that a config names, resolved to functions; config_validation.py checks them."""
import dataclasses
import functools
import inspect
from collections.abc import Iterable, Mapping
from typing import Any, Callable

import numpy as np

from rlx import keys
from rlx.core import fields
from rlx.core import records
from rlx.core import resolve
from rlx.core import schedule
from rlx.loops import annotations
from rlx.loops import logps


@dataclasses.dataclass(frozen=True)
class Methods:
  """The functions that a config names, and the fields that they need."""
  rewards: dict[str, tuple[Callable, resolve.Method]]  # term -> (see `scheduled`, fn)
  estimators: dict[str, tuple[float, resolve.Method]]  # term or "total" -> (gamma, fn)
  policy: resolve.Method
  rollout_correction: resolve.Method | None  # weight of the policy loss; None is off
  token_weight: resolve.Method | None  # weight of the advantages; None is off
  auxiliary: resolve.Method | None  # loss in addition to the policy's; None is off
  prm: resolve.Method
  prm_beta: Callable           # RL iterations done -> beta
  select_completions: resolve.Method  # Batch -> keep_PG
  filter_groups: resolve.Method  # Batch -> keep_P
  reward_std_filter: Callable | None  # (rewards_PG, learn_PG, ema, step) -> keep_P, ema
  budget: Callable | None      # right_P -> completions that a second pass adds; None is off
  anneal: Callable             # RL iterations done -> factor_T of the temperature, or None
  has_kl_reward: bool
  has_kl_loss: bool

  def readers(self) -> dict[str, resolve.Method]:
    """{config key: function} of the methods that read the batch, except the PRM's loss."""
    readers: dict[str, resolve.Method | None] = {
        f"rewards.{term}": fn for term, (_, fn) in self.rewards.items()}
    readers |= {f"advantages.{term}": fn for term, (_, fn) in self.estimators.items()}
    readers |= {"learner.loss": self.policy,
                "learner.rollout_correction": self.rollout_correction,
                "learner.token_weight": self.token_weight,
                "rollouts.select_completions": self.select_completions}
    return {key: fn for key, fn in readers.items() if fn}

  def needs(self, field: str) -> bool:
    """Whether a reader reads this field of the batch."""
    if field == "ref_logps_BT" and (
        self.has_kl_reward or self.has_kl_loss or self.auxiliary
        and field in self.auxiliary.fields): return True
    return bool(self.reading(field))

  def reading(self, field: str) -> list[str]:
    """Config keys of the readers that read this field of the batch."""
    return [key for key, fn in self.readers().items()
            if fields.column(field) in map(fields.column, all_fields(fn))]

  def asking(self, *names: str) -> list[str]:
    """Config keys of the methods that require one of these fields of the batch."""
    losses = {"prm.loss": self.prm, "learner.auxiliary": self.auxiliary}
    return [key for key, fn in (self.readers() | losses).items()
            if fn and any(f in fn.required for f in names)]

  def declared(self) -> dict[str, fields.Field]:
    """{name: Field}: rlx's own fields, and those in the modules of the methods."""
    modules = [fn.module for fn in (*self.readers().values(), self.prm, self.auxiliary) if fn]
    return fields.table(records, annotations, logps, *dict.fromkeys(modules))

  def planned(self, c: keys.Config) -> list[fields.Field]:
    """The Fields to compute for a batch, see `fields.plan`."""
    declared, readers = self.declared(), list(self._plan_readers(c))
    planned = fields.plan(declared, readers, RESOURCES, setting(c))
    if any(f.where == "model" and f.statistic for f in planned):  # The same pass gives it.
      readers.append(fields.Reader("learner", ("old_logps_BT",)))
      planned = fields.plan(declared, readers, RESOURCES, setting(c))
    return planned

  def _plan_readers(self, c):
    yield fields.Reader("rlx", ("action_BT", "outcome_B"), ("scores_BE", "demo_B", "rehearsal_BT"))
    for key, fn in self.readers().items():
      given = () if key == "rollouts.select_completions" else self.given_by_prm(c)
      yield fields.Reader(key, *_without(fn, (*_given_by_update(c, key), *given)))
    if self.auxiliary:
      if "self_logps_B" in self.auxiliary.fields:  # Given by the update's own pass.
        fields.require(logps.self_logps_B.field, "learner.auxiliary", setting(c))
      yield fields.Reader("learner.auxiliary", *_without(
          self.auxiliary, {"self_logps_B", *_given_by_update(c, "learner.auxiliary")}))
    if self.needs("prm_logps_BT"): yield from self._prm_readers(c)
    if self.has_kl_reward: yield fields.Reader("kl", ("old_logps_BT", "ref_logps_BT"))
    if self.has_kl_loss: yield fields.Reader("kl", ("ref_logps_BT",))
    if c.learner.epochs * c.learner.minibatches > 1:
      yield fields.Reader("learner.minibatches", ("old_logps_BT",))

  def planned_for_prm(self, c: keys.Config) -> list[fields.Field]:
    """The Fields that the update of an implicit PRM reads."""
    return fields.plan(self.declared(), self._prm_readers(c), RESOURCES, setting(c))

  def _prm_readers(self, c):
    given = self.given_by_prm(c)
    old = () if given else ("prm_old_logps_BT",)
    return (fields.Reader("prm.loss", *_without(self.prm, given)),
            fields.Reader("prm", (*old, "prm_ref_logps_BT", "prm_beta_B")))

  def given_by_prm(self, c: keys.Config) -> tuple[str, ...]:
    """Fields that the PRM's update computes, which saves a forward pass of the PRM.

    With one optimizer step per batch, the log-probs before the update are those of the gradient's
    own forward pass. They can differ from those of the scoring program by rounding: by 3e-8 in
    float32, but by up to 0.01 in bfloat16 without rematerialisation, where XLA keeps intermediate
    values in float32. Then, and with reference="policy", whose log-ratio at equal weights would
    be this rounding, the scoring program computes them.
    """
    is_one = c.prm.order == "single" and c.prm.snapshot and c.prm.epochs * c.prm.minibatches == 1
    is_exact = c.model.dtype == "float32" or c.model.remat != "none"
    if not is_one or not is_exact or c.prm.reference == "policy": return ()
    return () if "prm_old_logps_BT" in all_fields(self.prm) else (
        "prm_logps_BT", "prm_old_logps_BT")

  @property
  def value_terms(self) -> list[str]:
    """Entries of `estimators` that read the value model; each defines a target for it."""
    return [name for name, (_, fn) in self.estimators.items() if "values_BT" in fn.fields
            or any("values_BT" in reward.fields for term, (_, reward) in self.rewards.items()
                   if name in (term, "total"))]


# What the loop passes to producers of fields.
RESOURCES = ("tokenizer", "rollouts", "prompts", "texts", "group_prompts", "verify", "verify_steps",
             "greedy_outcome", "answer_ids", "passes", "prompt_P")


def setting(c: keys.Config) -> Callable[[str], Any]:
  """config key -> its value."""
  return lambda key: functools.reduce(getattr, key.split("."), c)


def field_options(c: keys.Config) -> Callable[[fields.Field], dict[str, Any]]:
  """(Field) -> {keyword: value} of its producer."""
  value = setting(c)
  return lambda f: {keyword: value(key) for keyword, key in f.options.items()}


def statistics(declared: dict[str, fields.Field], names: Iterable[str], c: keys.Config) -> tuple:
  """((field, spec), ...) of the named fields that are statistics of a distribution.

  A spec is what models/logps.py computes; an option that is a config key has its value.
  """
  value = setting(c)
  return tuple(
      (name, tuple(value(x) if "." in str(x) else x for x in declared[name].statistic))
      for name in names if name in declared and declared[name].statistic)


def all_fields(fn: resolve.Method) -> set[str]:
  """The fields that a method and its statistics of the whole minibatch read."""
  return {f for part in (fn, *fn.whole.values()) for f in part.fields}


def _without(fn, names):
  """(required, optional) fields of a method, without these names."""
  every = [f for f in all_fields(fn) if f not in names and f not in TERM]
  required = {f for part in (fn, *fn.whole.values()) for f in part.required}
  return (tuple(f for f in every if f in required), tuple(f for f in every if f not in required))


TERM = ("rewards_PG", "rewards_BT")  # What combine.with_rewards adds to the batch.


def _given_by_update(c, key):
  """Fields of a loss that the update itself computes.

  With one optimizer step per batch, the log-probs before the update are those of the update.
  """
  is_single = c.learner.epochs * c.learner.minibatches == 1
  return ("old_logps_BT",) if key.startswith("learner.") and is_single else ()


def resolved(c: keys.Config) -> Methods:
  """Resolves all methods that a config names.

  Raises:
    ValueError: a name or an option is unknown, or a term lacks its coefficient or estimator.
  """
  rewards = {}
  for term, spec in c.rewards.items():
    spec = dict(spec)
    if "coef" not in spec: raise ValueError(f"rewards.{term}.coef is missing.")
    coef = scheduled(f"rewards.{term}", spec.pop("coef"), spec)
    for option in schedule.OPTIONS: spec.pop(option, None)
    rewards[term] = coef, resolve.resolve(
        "rewards", spec, f"rewards.{term}")
  estimators = {}
  for term, spec in c.advantages.items():
    if term == "whiten": continue
    spec = dict(spec)
    gamma = spec.get("gamma", 1.0)
    fn = resolve.lookup("advantages", spec["name"], f"advantages.{term}")
    # Estimators of whole completions take no gamma; it then only spreads their estimates.
    if "gamma" not in inspect.signature(fn).parameters: spec.pop("gamma", None)
    estimators[term] = gamma, resolve.resolve(
        "advantages", spec, f"advantages.{term}")
  kl = c.kl.coef != 0.0
  terms = set(rewards) | ({"kl"} if kl and c.kl.place == "reward" else set())
  if set(estimators) != {"total"} and set(estimators) != terms:
    raise ValueError(
        f"advantages has entries {sorted(estimators)}; it needs one for every "
        f"reward term {sorted(terms)}, or `total` alone.")
  def optional(spec, key):
    if spec["name"] is None: return None
    return resolve.resolve("losses", spec, key)
  if "coef" not in c.learner.auxiliary: raise ValueError("learner.auxiliary.coef is missing.")
  auxiliary = {k: v for k, v in c.learner.auxiliary.items() if k != "coef"}
  return Methods(
      rewards, estimators,
      policy=resolve.resolve("losses", c.learner.loss, "learner.loss"),
      rollout_correction=optional(c.learner.rollout_correction, "learner.rollout_correction"),
      token_weight=optional(c.learner.token_weight, "learner.token_weight"),
      auxiliary=optional(auxiliary, "learner.auxiliary"),
      prm=resolve.resolve("losses", c.prm.loss, "prm.loss"),
      prm_beta=scheduled("prm.beta_schedule", c.prm.beta, c.prm.beta_schedule),
      select_completions=resolve.resolve("rollouts", c.rollouts.select_completions,
                                         "rollouts.select_completions"),
      filter_groups=resolve.resolve("rollouts", c.rollouts.filter_groups,
                                    "rollouts.filter_groups"),
      reward_std_filter=None if c.learner.reward_std_filter.name is None else resolve.bind(
          "advantages", c.learner.reward_std_filter, "learner.reward_std_filter", n_given=4),
      budget=_budget(c),
      anneal=_anneal(c),
      has_kl_reward=kl and c.kl.place == "reward",
      has_kl_loss=kl and c.kl.place == "loss")


def scheduled(key: str, peak: float, section: Mapping) -> Callable:
  """Returns steps done -> current value, by a section's options of core/schedule.py."""
  options = {k: section[k] for k in schedule.OPTIONS if k in section}
  value = lambda step: peak * schedule.factor(step, **options)
  try:
    value(0)
  except ValueError as e:
    raise ValueError(f"{key}.{e}") from None
  return value


def _anneal(c):
  if c.rollouts.anneal.name is None: return lambda step: None
  fn = resolve.bind("rollouts", c.rollouts.anneal, "rollouts.anneal", n_given=2)
  return lambda step: fn(np.arange(c.rollouts.max_tokens), step)


def _budget(c):
  if c.rollouts.budget.name is None: return None
  options = {k: v for k, v in c.rollouts.budget.items() if k != "first"}
  fn = resolve.bind("rollouts", options, "rollouts.budget", n_given=3)
  return lambda right_P: fn(right_P, c.rollouts.budget.first, c.rollouts.per_prompt)
