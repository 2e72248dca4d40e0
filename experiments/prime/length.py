"""Does the length term of the published advantage explain PRIME's losses? Two tasks of free length.

The tasks are those of experiments/prime/free_length.py: a right completion may have any number of
steps. The baseline of `process.rloo` is a mean per token, subtracted once for each remaining token
(docs/prime.md); that of `process.totals_loo` is the others' totals, subtracted once. Fixed before
any run:

Arms, each with 8 prompts x 4 completions a step, 200 steps, advantages that are whitened except in
`exact`:

  outcome           RLOO of verdicts alone
  prime             PRIME as published: an implicit PRM that learns online and starts as the policy,
                    `process.rloo`
  totals            `prime` with `process.totals_loo`
  policy-reference  `prime` with prm.reference="policy"
  steps-loo         each step has its own log-ratio, `process.steps_loo`, coefficient 0.3
  bounded           the same with `process.bounded_steps`
  exact             the change of the exact chance of success by each step, as its own advantage
  exact-rloo        these changes as token rewards with the published advantage: the length term
                    without the errors of a PRM
  exact-totals      these changes with `process.totals_loo`
  null              `prime`, its PRM trained on the verdicts of other prompts
  null-totals       `totals` with that PRM

Learning rates: each arm has the one of RATES with the best mean accuracy over the run, over TUNING
seeds. Nothing else is tuned. RATES and the number of steps were chosen after three runs of
`outcome` on walk with seed 100, at 3e-4, 1e-3 and 2e-3, of which the last two collapsed, and one on
chase at 3e-4. Then SEEDS. The first list of rates was 1e-4, 3e-4 and 6e-4. With it the first four
seeds of walk, and of two arms of chase, were run. There prime, totals, null and null-totals had the
lowest rate, and policy-reference the highest, so that a rate was added at each end.

Measures: accuracy of drawn completions over the run and over its last 30 steps; the mean length, in
tokens, of right and of wrong completions, in the first and in the last 30 steps; the correlation of
a completion's first advantage with its length within a batch, of all, right and wrong ones, in the
first and in the last 30 steps. 95% intervals over seeds (Student's t); differences of arms are
paired by seed.

Predictions:

1. With the length term (`prime`, `exact-rloo`, `null`) completions grow while most are wrong: there
   the mean reward is negative, and each further token is paid. They shrink once most are right.
   Right and wrong ones change alike. In `exact-rloo` the correlation of advantage and length within
   wrong completions is positive in the first 30 steps, and negative within right ones in the last
   30 steps if the accuracy is above 1/2 there.
2. Without it (`totals`, `exact-totals`) these correlations are nearer to 0, and the lengths at the
   end are nearer to those of `exact`.
3. `null` changes the length, `null-totals` does not.
4. The term explains PRIME's losses against `outcome` if `prime` is below `outcome` in accuracy over
   the run, `totals` is above `prime` with an interval above 0, and (totals - prime) / (outcome -
   prime) is at least 1/2, on both tasks. Where `prime` is not below `outcome` there is no loss to
   explain.

Commands, after those of configs/free_length.py that make the initial models:

  python -m experiments.prime.length                  # runs what is missing; stops and resumes
  python -m experiments.prime.length --table          # of what is there
  python -m experiments.prime.length --steps 2 --out runs/length_dry.jsonl --seeds 1   # a dry run

A line of the record is a run: a run that was interrupted is done again.
"""
import argparse
import dataclasses
import functools
import itertools
import json
import pathlib
import sys
import time

import numpy as np

from experiments.claims.environments import tabular
from experiments.prime import prime_room
from rlx import build
from rlx.configs import free_length
from rlx.grids import tables
from rlx.io import progress
from rlx.loops import rl
from rlx.prompts import iterator
from rlx.stages import host_state

TASKS = ("walk", "chase")
RATES, TUNING, SEEDS = (3e-5, 1e-4, 3e-4, 6e-4, 1.2e-3), (100, 101), range(10)
EDGE = 30  # Steps at the start and at the end.

_VERDICT = dict(name="outcome.verdict", coef=1.0)
_RLOO = dict(name="group.rloo")
_EXACT = {"verifier__steps": "experiments.prime.free_length:chances"}


def _prime(estimator="process.rloo", *, process=None, **changes):
  process = process or dict(name="implicit.process", coef=1.0, floor=0.5)
  estimator = estimator if isinstance(estimator, dict) else dict(name=estimator)
  return dict(rewards=dict(outcome=_VERDICT, process=process),
              advantages=dict(outcome=_RLOO, process=estimator, whiten=True), **changes)


def _own(estimator):
  return _prime(estimator, process=dict(
      name="implicit.process", coef=0.3, granularity="step", norm="none"))


def _exact(estimator):
  changes = {key.replace(".", "__"): x for key, x in prime_room.exact().items()}
  return changes | dict(advantages=dict(process=dict(name=estimator), whiten=True)) | _EXACT


_NULL = dict(prm__loss=dict(name="experiments.prime.free_length:permuted_ce"))
ARMS = {
    "outcome": {},
    "prime": _prime(),
    "totals": _prime("process.totals_loo"),
    "policy-reference": _prime(prm__reference="policy"),
    "steps-loo": _own(dict(name="process.steps_loo", clip=1.0)),
    "bounded": _own(dict(name="process.bounded_steps", low=-5.0, high=1.0)),
    "exact": _exact("process.rloo") | dict(advantages=prime_room.exact()["advantages"]),
    "exact-rloo": _exact("process.rloo"),
    "exact-totals": _exact("process.totals_loo"),
    "null": _prime(**_NULL),
    "null-totals": _prime("process.totals_loo", **_NULL)}


def configured(task, arm, rate):
  """The config of an arm."""
  return tabular.changed(free_length.get_config(task), learner__optimizer__lr=rate, **ARMS[arm])


@functools.lru_cache(maxsize=1)
def built(task, arm, rate):
  """The Run of an arm, whose compiled programs all seeds share."""
  return build.build(configured(task, arm, rate))


def train(task, arm, rate, seed, steps):
  """Returns the record of one run; the seed draws prompts and completions."""
  run, begin = built(task, arm, rate), time.perf_counter()
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
  return dict(task=task, arm=arm, rate=rate, seed=seed, steps=steps, **curves,
              seconds=round(time.perf_counter() - begin, 1))


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


def run_all(path, arms, tasks, seeds, steps):
  """Runs what the record lacks: all rates with TUNING seeds, then `seeds` at the best rate."""
  path.parent.mkdir(parents=True, exist_ok=True)
  known = read(path)
  def add(task, arm, rate, seed):
    if (task, arm, rate, seed) in known: return
    row = known[task, arm, rate, seed] = train(task, arm, rate, seed, steps)
    with path.open("a") as f: f.write(json.dumps(row) + "\n")
    print(f"{task} {arm} {rate:g} seed {seed}: {np.mean(row['accuracy']):.3f}, "
          f"{row['seconds']} s", flush=True)
  # All arms have some seeds before any has all, so that a record that was cut short is of use.
  for some in (seeds[:4], seeds[4:]):
    for task, arm in itertools.product(tasks, arms):
      for rate, seed in itertools.product(RATES, TUNING): add(task, arm, rate, seed)
      for seed in some: add(task, arm, choose_rate(known, task, arm), seed)


def choose_rate(known, task, arm):
  """The rate of RATES with the best mean accuracy over TUNING seeds."""
  return max(RATES, key=lambda rate: np.mean(
      [known[task, arm, rate, seed]["accuracy"] for seed in TUNING]))


def ends(row, name):
  """(mean over the first EDGE steps, over the last) of a measure; NaN if it has no value there."""
  x = np.array(row[name], float)
  return [np.nanmean(part) if np.any(~np.isnan(part)) else np.nan for part in (x[:EDGE], x[-EDGE:])]


def tabulate(path, tasks, seeds):
  """Markdown of the table and of the comparisons that the predictions are about."""
  known, text = read(path), []
  for task in tasks:
    rows, of_arm = [], {}
    for arm in ARMS:
      if any((task, arm, rate, seed) not in known for rate in RATES for seed in TUNING): continue
      rate = choose_rate(known, task, arm)
      of_arm[arm] = {s: known[task, arm, rate, s] for s in seeds if (task, arm, rate, s) in known}
      runs = list(of_arm[arm].values())
      if len(runs) < 2: continue
      cells = [[np.mean(r["accuracy"]) for r in runs], [ends(r, "accuracy")[1] for r in runs]]
      for name in ("length_right", "length_wrong", "correlation_all", "correlation_right",
                   "correlation_wrong"):
        cells += [[ends(r, name)[i] for r in runs] for i in (0, 1)]
      rows.append([f"`{arm}`", f"{rate:g}", len(runs), *map(_cell, cells)])
    text += [f"\n{task}\n", tables.markdown(
        ["arm", "rate", "seeds", "accuracy", "accuracy, last",
         *(f"{what}, {when}" for what in ("length of right", "of wrong", "correlation", "of right",
                                          "of wrong") for when in ("first", "last"))], rows)]
    text += [f"{task}: {line}" for line in _compare(of_arm)]
  return "\n".join(text)


def _compare(of_arm):
  """Differences of mean accuracy between arms, paired by seed."""
  for first, second in (("prime", "outcome"), ("totals", "prime"), ("totals", "outcome"),
                        ("exact-totals", "exact-rloo"), ("exact", "outcome"),
                        ("null-totals", "null"),
                        ("policy-reference", "prime"), ("steps-loo", "outcome"),
                        ("bounded", "outcome")):
    both = sorted(of_arm.get(first, {}).keys() & of_arm.get(second, {}).keys())
    if len(both) < 2: continue
    yield f"{first} - {second}: " + _cell([np.mean(of_arm[first][s]["accuracy"])
                                           - np.mean(of_arm[second][s]["accuracy"]) for s in both])


def _cell(values):
  values = [x for x in values if not np.isnan(x)]
  if len(values) < 2: return "-"
  return "{:.3g} [{:.3g}, {:.3g}]".format(*tables.interval(values))


def main():
  args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  args.add_argument("--out", type=pathlib.Path, default=pathlib.Path("runs/length.jsonl"))
  args.add_argument("--table", action="store_true")
  args.add_argument("--steps", type=int, default=200)
  args.add_argument("--seeds", type=int, default=len(SEEDS))
  args.add_argument("--arms", nargs="+", choices=ARMS, default=list(ARMS))
  args.add_argument("--tasks", nargs="+", choices=TASKS, default=TASKS)
  args = args.parse_args()
  if not args.table: run_all(args.out, args.arms, args.tasks, SEEDS[:args.seeds], args.steps)
  sys.stdout.write(tabulate(args.out, args.tasks, SEEDS[:args.seeds]) + "\n")


if __name__ == "__main__":
  main()
