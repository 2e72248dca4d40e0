"""From completions to the columns of a batch that are computed on the host."""
import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from rlx.core import fields, records, resolve
from rlx.core.options import key
from rlx.stages import collect, columns as columns_lib, outcomes as outcomes_lib
from rlx.verifiers import pool

THINNED = records.EXCLUDED.index("thinned")
# Sections of metrics, and entries of completions.jsonl, that are not those of fields.
SECTIONS = ("advantages", "derived", "environment", "eval", "judge", "policy", "prm", "rewards",
            "rollouts", "seconds", "value", "verifiers")
ENTRIES = ("advantages", "beta", "completion", "finish", "length", "log_ratio", "prompt",
           "prompt_tokens", "step", "tokens", "turn_rewards", "turns", "verdict")


@dataclasses.dataclass(frozen=True)
class Annotated:
  """Rollouts on the host with the fields that are computed there."""
  rollouts: records.Rollouts   # numpy
  batch: records.Batch         # numpy
  values: dict[str, Any]       # host values without axes, which model fields read
  logged: Sequence[fields.Field] = ()  # of which something is logged, see core/fields.py

  def measure(self) -> dict[str, float]:
    """{field/name: metric} of the fields that declare metrics, over completions with tokens."""
    metrics: dict[str, float] = {}
    for f in self.logged:
      values = zip(self._get(f), self.rollouts.completion_len_B, strict=True)
      measured = f.measure([x for x, n in values if n]) if f.measure else {}
      metrics |= {f"{f.stem}/{name}": x for name, x in measured.items()}
    return metrics

  def show(self, b: int) -> dict[str, Any]:
    """{field: value of row b} of the fields that declare an entry in completions.jsonl."""
    return {f.stem: f.show(self._get(f)[b]) for f in self.logged if f.show}

  def _get(self, f: fields.Field) -> Any:
    return getattr(self.batch, f.name) if f.axes else self.values[f.name]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Annotate:
  """The stage that computes, once, every field that needs texts or token ids. On the host.

  What models compute belongs to `score`, except what the selection of completions reads.

  Attributes:
    select: Batch -> keep_PG, the completions to train on (rollouts.select_completions).
    selecting: the fields that it reads, each after those that it reads itself.
  """
  columns: columns_lib.Columns
  select: resolve.Method
  selecting: list[fields.Field]
  pool: pool.Pool
  group: int = key("rollouts.per_prompt")
  max_error_rate: float = key("verifier.max_error_rate")

  def __post_init__(self) -> None:
    """Refuses a field whose metrics or entries would be taken for others."""
    for f in self.columns.planned:
      if (f.measure and f.stem in SECTIONS) or (f.show and f.stem in ENTRIES):
        raise ValueError(f"{f.name}: {f.stem!r} stands for something else in the metrics or in "
                         "completions.jsonl; give the field another name.")

  def __call__(self, state: records.TrainState, collected: collect.Collected) -> Annotated:
    self.columns.outcomes.hold(state)
    prompts, rollouts, reward_B, excluded_B, texts, known = collected
    given = outcomes_lib.make_columns(rollouts, reward_B, excluded_B) | columns_lib.fit(
        known, rollouts.sampler_logps_BT.shape[1])
    # On the host, learn_B does not yet know of rows that `select` leaves out.
    values = self.columns.host_values(state, prompts, rollouts, given, texts)
    self.pool.check(self.max_error_rate)
    given |= self.columns.model_values(state, rollouts, values, self.selecting)
    hosted = [f for f in self.columns.planned if f.where == "host"]
    batch = records.Batch(self.group, **given | {
        f.name: values[f.name] for f in hosted if f.axes})
    keep_B = np.ravel(self.select(batch))
    excluded_B = np.where((batch.excluded_B == 0) & ~keep_B, THINNED, batch.excluded_B)
    return Annotated(rollouts, batch.replace(excluded_B=excluded_B.astype(np.int8)),
                     {f.name: values[f.name] for f in hosted if not f.axes},
                     [f for f in hosted if f.is_logged])
