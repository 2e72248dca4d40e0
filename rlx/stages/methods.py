"""The functions that a config names, and the fields that they read."""
import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from rlx.core import fields, method, records, resolve, schedule
from rlx.stages import host_fields, model_fields, scorer_fields


@dataclasses.dataclass(frozen=True)
class Anneal:
  """RL iterations done -> factor_T of the temperature, or None without rollouts.anneal."""
  fn: resolve.UserFunction | None
  tokens: int                  # T

  def __call__(self, step: int) -> Any:
    return self.fn and self.fn(np.arange(self.tokens), step)


@dataclasses.dataclass(frozen=True)
class Budget:
  """right_P of a first pass -> completions that a second pass adds."""
  fn: resolve.UserFunction
  first: int                   # completions of the first pass
  most: int                    # of both passes

  def __call__(self, right_P: np.ndarray) -> Any:
    return self.fn(right_P, self.first, self.most)


@dataclasses.dataclass(frozen=True)
class Methods:
  """The functions that a config names, and the fields that they need."""
  rewards: dict[str, tuple[schedule.Schedule, resolve.Method]]  # term -> (coefficient, method)
  estimators: dict[str, tuple[float, resolve.Method]]  # term or "total" -> (gamma, method)
  policy: resolve.Method
  rollout_correction: resolve.Method | None  # weight of the policy loss; None is off
  token_weight: resolve.Method | None  # weight of the advantages; None is off
  auxiliary: resolve.Method | None  # loss in addition to the policy's; None is off
  prm: resolve.Method
  prm_beta: schedule.Schedule
  select_completions: resolve.Method  # Batch -> keep_PG
  filter_groups: resolve.Method  # Batch -> keep_P
  reward_std_filter: resolve.Method | None  # (rewards_PG, learn_PG, step) -> keep_P
  budget: Budget | None        # completions that a second pass adds; None is off
  anneal: Anneal
  has_kl_reward: bool
  has_kl_loss: bool
  scored: frozenset[str] = frozenset()  # the fields of verifiers that scorers compute

  def readers(self) -> dict[str, resolve.Method]:
    """{config key: function} of the methods that read the batch, except the PRM's loss."""
    readers: dict[str, resolve.Method | None] = {
        f"rewards.{term}": fn for term, (_, fn) in self.rewards.items()}
    readers |= {f"advantages.{term}": fn for term, (_, fn) in self.estimators.items()}
    readers |= {"learner.loss": self.policy, "learner.rollout_correction": self.rollout_correction,
                "learner.token_weight": self.token_weight,
                "rollouts.select_completions": self.select_completions,
                "rollouts.filter_groups": self.filter_groups}
    return {key: fn for key, fn in readers.items() if fn}

  def list_stateful(self) -> dict[str, resolve.Method]:
    """{config key: method} of the methods that keep state between steps."""
    methods = self.readers() | {"learner.reward_std_filter": self.reward_std_filter}
    return {key: fn for key, fn in methods.items() if fn and getattr(fn, "state", None)}

  def make_state(self, sizes: Mapping[str, int]) -> dict[str, dict[str, np.ndarray]] | None:
    """{config key: {name: array}} of what methods keep between steps, as it starts; None: nothing.

    Args:
      sizes: {axis letter: size}.
    Raises:
      ValueError: as `method.make_state`; the message begins with the key.
    """
    made = {}
    for key, fn in self.list_stateful().items():
      try:
        made[key] = method.make_state(fn.state, fn.options, sizes)
      except ValueError as e:
        raise ValueError(f"{key}.{e}") from None
    return made or None

  def needs(self, field: str) -> bool:
    """Whether a reader reads this field of the batch."""
    if field == "ref_logps_BT":
      if self.has_kl_reward or self.has_kl_loss: return True
      if self.auxiliary and field in self.auxiliary.fields: return True
    return bool(self.find_readers(field))

  def find_readers(self, field: str) -> list[str]:
    """Config keys of the readers that read this field of the batch."""
    return [key for key, fn in self.readers().items()
            if fields.column(field) in map(fields.column, all_fields(fn))]

  def find_requiring(self, *names: str) -> list[str]:
    """Config keys of the methods that require one of these fields of the batch."""
    losses = {"prm.loss": self.prm, "learner.auxiliary": self.auxiliary}
    return [key for key, fn in (self.readers() | losses).items()
            if fn and any(f in fn.required for f in names)]

  def list_fields(self) -> dict[str, fields.Field]:
    """{name: Field}: rlx's own fields, and those in the modules of the methods."""
    modules = [fn.module for fn in (*self.readers().values(), self.prm, self.auxiliary) if fn]
    table = fields.table(records, host_fields, model_fields, *dict.fromkeys(modules))
    return table | {name: f for name, f in fields.table(scorer_fields).items()
                    if name in self.scored}

  @property
  def value_terms(self) -> list[str]:
    """Entries of `estimators` that read the value model; each defines a target for it."""
    return [name for name, (_, fn) in self.estimators.items() if "values_BT" in fn.fields
            or any("values_BT" in reward.fields for term, (_, reward) in self.rewards.items()
                   if name in (term, "total"))]


def all_fields(fn: resolve.Method) -> set[str]:
  """The fields that a method and its statistics of the whole minibatch read."""
  return {f for part in (fn, *fn.whole.values()) for f in part.fields}
