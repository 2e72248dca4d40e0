"""Runs of arms over learning rates and seeds, each a line of a record that can be continued.

experiments/prime/length.py and experiments/prime/verdict.py state what is compared. Each arm has
the one of `rates` with the best mean accuracy over the run, over seeds of their own (`TUNING`).
"""
import dataclasses
import functools
import itertools
import json
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rlx import build
from rlx.grids import tables
from rlx.io import progress
from rlx.loops import rl
from rlx.prompts import iterator
from rlx.stages import host_state

TUNING, SEEDS = (100, 101), range(10)
EDGE = 30  # Steps at the start and at the end.


@dataclasses.dataclass(frozen=True)
class Study:
  """What the arms of a comparison are.

  Attributes:
    configure: (task, arm, rate) -> config.
    arms: names.
    rates: {task: learning rates}.
    steps: {task: steps of a run}.
  """
  configure: Callable[[str, str, float], Any]
  arms: Sequence[str]
  rates: dict[str, Sequence[float]]
  steps: dict[str, int]

  def run_all(self, path, arms, tasks, seeds, steps=None):
    """Runs what a record lacks: all rates with TUNING seeds, then `seeds` at the best rate."""
    path.parent.mkdir(parents=True, exist_ok=True)
    known = read(path)
    def add(task, arm, rate, seed):
      if (task, arm, rate, seed) in known: return
      row = dict(task=task, arm=arm, rate=rate, seed=seed) | train(
          _build(self.configure, task, arm, rate), seed, steps or self.steps[task])
      known[task, arm, rate, seed] = row
      with path.open("a") as f: f.write("\n" + json.dumps(row))  # The last one may be cut.
      print(f"{task} {arm} {rate:g} seed {seed}: {np.mean(row['accuracy']):.3f}, "
            f"{row['seconds']} s", flush=True)
    # All arms have some seeds before any has all, so that a record that was cut short is of use.
    for some in (seeds[:4], seeds[4:]):
      for task, arm in itertools.product(tasks, arms):
        for rate, seed in itertools.product(self.rates[task], TUNING): add(task, arm, rate, seed)
        for seed in some: add(task, arm, self.choose_rate(known, task, arm), seed)

  def choose_rate(self, known, task, arm):
    """The rate with the best mean accuracy over TUNING seeds."""
    return max(self.rates[task], key=lambda rate: np.mean(
        [known[task, arm, rate, seed]["accuracy"] for seed in TUNING]))

  def of_arms(self, known, task, seeds):
    """{arm: (rate, {seed: run})} of the arms that are tuned and have two runs or more."""
    found = {}
    for arm in self.arms:
      if any((task, arm, rate, seed) not in known
             for rate in self.rates[task] for seed in TUNING): continue
      rate = self.choose_rate(known, task, arm)
      runs = {s: known[task, arm, rate, s] for s in seeds if (task, arm, rate, s) in known}
      if len(runs) > 1: found[arm] = rate, runs
    return found


@functools.lru_cache(maxsize=1)
def _build(configure, task, arm, rate):
  """The Run of an arm, whose compiled programs all seeds share."""
  return build.build(configure(task, arm, rate))


def train(run, seed, steps):
  """Returns the measures of each step of one run; the seed draws prompts and completions."""
  begin, cpu = time.perf_counter(), time.process_time()
  prompts = iterator.PromptIterator(run.prompts.all(), seed=seed)
  run = dataclasses.replace(
      run, prompts=prompts, collect=dataclasses.replace(run.collect, prompts=prompts, seed=seed))
  state, host, clock = run.init(), host_state.HostState(), progress.Clock()
  curves = {}
  for step in range(steps):
    state, annotated, batch, _ = rl.iteration(run, state, host, step, clock)
    for name, x in measure(annotated.rollouts.completion_len_B, np.asarray(batch.outcome_B),
                           np.asarray(batch.advantages_BT)).items():
      curves.setdefault(name, []).append(None if np.isnan(x) else round(float(x), 5))
  return dict(steps=steps, **curves, seconds=round(time.perf_counter() - begin, 1),
              cpu_seconds=round(time.process_time() - cpu, 3))


def measure(length_B, outcome_B, advantages_BT):
  """The measures of one batch; NaN where there are too few completions."""
  is_right_B, first_B = outcome_B > 0.5, advantages_BT[:, 0]
  kinds = dict(all=np.ones_like(is_right_B), right=is_right_B, wrong=~is_right_B)
  measures = dict(accuracy=outcome_B.mean(), tokens=length_B.sum())
  for name, of_B in kinds.items():
    x, y = length_B[of_B], first_B[of_B]
    measures[f"length_{name}"] = x.mean() if len(x) else np.nan
    varies = len(x) > 2 and np.ptp(x) > 0 and np.ptp(y) > 0
    measures[f"correlation_{name}"] = np.corrcoef(x, y)[0, 1] if varies else np.nan
  return measures


def read(path):
  """The runs of a record, the newest of each (task, arm, rate, seed)."""
  lines = path.read_text().splitlines() if path.exists() else []
  rows = [json.loads(line) for line in lines if line.endswith("}")]
  return {(r["task"], r["arm"], r["rate"], r["seed"]): r for r in rows}


def write_summary(known, file):
  """Writes a table with a line for each run of a record: which, and its accuracies."""
  lines = [",".join([*map(str, key), f"{np.mean(row['accuracy']):.4f}",
                     f"{ends(row, 'accuracy')[1]:.4f}"]) for key, row in sorted(known.items())]
  file.write_text("\n".join(["task,arm,rate,seed,accuracy,last", *lines]) + "\n")


def ends(row, name):
  """(mean over the first EDGE steps, over the last) of a measure; NaN if it has no value there."""
  x = np.array(row[name], float)
  return [np.nanmean(part) if np.any(~np.isnan(part)) else np.nan for part in (x[:EDGE], x[-EDGE:])]


def compare(measured, first, second):
  """The cell of the differences of two arms, {arm: {seed: value}}, paired by seed."""
  both = sorted(measured.get(first, {}).keys() & measured.get(second, {}).keys())
  return cell([measured[first][s] - measured[second][s] for s in both])


def cell(values):
  """A mean with its 95% interval, by Student's t; - for fewer than two values."""
  values = [x for x in values if not np.isnan(x)]
  if len(values) < 2: return "-"
  return "{:.3g} [{:.3g}, {:.3g}]".format(*tables.interval(values))
