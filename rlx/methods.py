"""The methods that a config names, resolved to functions; config_validation.py checks them."""
import dataclasses
import inspect
from typing import Callable

import numpy as np

from rlx.advantages import combine
from rlx.core import records
from rlx.core import resolve
from rlx.core import schedule


@dataclasses.dataclass(frozen=True)
class Methods:
  """The functions a config names, resolved, and what they ask for."""
  rewards: dict                # term -> (RL iterations done -> coefficient, fn)
  estimators: dict             # term or "total" -> (gamma of spread, fn)
  policy: Callable
  rollout_correction: Callable | None  # weight of the policy loss; None is off
  token_weight: Callable | None  # weight of the advantages; None is off
  auxiliary: Callable | None     # loss beside the policy's; None is off
  prm: Callable
  prm_beta: Callable           # RL iterations done -> beta
  select_completions: Callable  # Scored -> keep_PG
  reward_std_filter: Callable | None  # (rewards_PG, learn_PG, ema, step) -> keep_P, ema
  budget: Callable | None      # right_P -> completions that a second pass adds; None is off
  anneal: Callable             # RL iterations done -> factor_T of the temperature, or None
  has_kl_reward: bool
  has_kl_loss: bool
  has_base: bool               # a reward is taken against the answer's without reasoning

  def readers(self):
    """{config key: function} of the methods that read Scored, but for the PRM's loss."""
    found = {f"rewards.{term}": fn for term, (_, fn) in self.rewards.items()}
    found |= {f"advantages.{term}": fn for term, (_, fn) in self.estimators.items()}
    found |= {"learner.loss": self.policy,
              "learner.rollout_correction": self.rollout_correction,
              "learner.token_weight": self.token_weight,
              "rollouts.select_completions": self.select_completions}
    return {key: fn for key, fn in found.items() if fn}

  def needs(self, *fields):
    """Does a reader read one of these fields of Scored?"""
    if "ref_logps_BT" in fields and (
        self.has_kl_reward or self.has_kl_loss or self.auxiliary
        and "ref_logps_BT" in self.auxiliary.fields): return True
    if "base_answer_logps_BM" in fields: return self.has_base
    return any(self.reading(f) for f in fields)

  def reading(self, field):
    """Config keys of the readers that read this field of Scored."""
    return [key for key, fn in self.readers().items() if field in fn.fields]

  @property
  def value_terms(self):
    """Entries of `estimators` that read the value model; each defines a target for it."""
    return [name for name, (_, fn) in self.estimators.items() if "values_BT" in fn.fields
            or any("values_BT" in reward.fields for term, (_, reward) in self.rewards.items()
                   if name in (term, "total"))]

  def asking(self, *fields):
    """Config keys of the methods that cannot do without one of these fields of Scored."""
    losses = {"prm.loss": self.prm, "learner.auxiliary": self.auxiliary}
    return [key for key, fn in (self.readers() | losses).items()
            if fn and any(f in fn.required for f in fields)]


def of(c):
  """Resolves every named method; unknown names and options end here."""
  rewards = {}
  for term, spec in c.rewards.items():
    spec = dict(spec)
    if "coef" not in spec: raise ValueError(f"rewards.{term}.coef is missing.")
    coef = scheduled(f"rewards.{term}", spec.pop("coef"), spec)
    for option in schedule.OPTIONS: spec.pop(option, None)
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
  def optional(spec, key):
    if spec["name"] is None: return None
    return resolve.resolve("losses", spec, records.Scored, key)
  if "coef" not in c.learner.auxiliary: raise ValueError("learner.auxiliary.coef is missing.")
  auxiliary = {k: v for k, v in c.learner.auxiliary.items() if k != "coef"}
  return Methods(
      rewards, estimators,
      policy=resolve.resolve("losses", c.learner.loss, records.Scored, "learner.loss"),
      rollout_correction=optional(c.learner.rollout_correction, "learner.rollout_correction"),
      token_weight=optional(c.learner.token_weight, "learner.token_weight"),
      auxiliary=optional(auxiliary, "learner.auxiliary"),
      prm=resolve.resolve("losses", c.prm.loss, records.Scored, "prm.loss"),
      prm_beta=scheduled("prm.beta_schedule", c.prm.beta, c.prm.beta_schedule),
      select_completions=resolve.resolve("rollouts", c.rollouts.select_completions,
                                         records.Scored, "rollouts.select_completions"),
      reward_std_filter=None if c.learner.reward_std_filter.name is None else resolve.bind(
          "advantages", c.learner.reward_std_filter, "learner.reward_std_filter", n_given=4),
      budget=_budget(c),
      anneal=_anneal(c),
      has_kl_reward=kl and c.kl.place == "reward",
      has_kl_loss=kl and c.kl.place == "loss",
      has_base=any("base_answer_logps_BM" in fn.fields and
                   dict(c.rewards[t]).get("baseline", "none") != "none"
                   for t, (_, fn) in rewards.items()))


def scheduled(key, peak, section):
  """Steps done -> the value in force, by the options of core/schedule.py in a section."""
  options = {k: section[k] for k in schedule.OPTIONS if k in section}
  of = lambda step: peak * schedule.factor(step, **options)
  try:
    of(0)
  except ValueError as e:
    raise ValueError(f"{key}.{e}") from None
  return of


def _anneal(c):
  if c.rollouts.anneal.name is None: return lambda step: None
  fn = resolve.bind("rollouts", c.rollouts.anneal, "rollouts.anneal", n_given=2)
  return lambda step: fn(np.arange(c.rollouts.max_tokens), step)


def _budget(c):
  if c.rollouts.budget.name is None: return None
  options = {k: v for k, v in c.rollouts.budget.items() if k != "first"}
  fn = resolve.bind("rollouts", options, "rollouts.budget", n_given=3)
  return lambda right_P: fn(right_P, c.rollouts.budget.first, c.rollouts.per_prompt)
