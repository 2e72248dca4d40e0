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
  python -m experiments.prime.length --summary experiments/prime/length.csv
  python -m experiments.prime.length --steps 2 --out runs/length_dry.jsonl --seeds 1   # a dry run

A line of the record is a run: a run that was interrupted is done again.
"""
import argparse
import pathlib
import sys

import numpy as np

from experiments.claims.environments import tabular
from experiments.prime import prime_room, study
from rlx.configs import free_length
from rlx.grids import tables

TASKS = ("walk", "chase")
RATES = (3e-5, 1e-4, 3e-4, 6e-4, 1.2e-3)

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


STUDY = study.Study(configured, tuple(ARMS), dict.fromkeys(TASKS, RATES), dict.fromkeys(TASKS, 200))

COMPARED = (("prime", "outcome"), ("totals", "prime"), ("totals", "outcome"),
            ("exact-totals", "exact-rloo"), ("exact", "outcome"), ("null-totals", "null"),
            ("policy-reference", "prime"), ("steps-loo", "outcome"), ("bounded", "outcome"))


def tabulate(path, tasks, seeds):
  """Markdown of the table and of the comparisons that the predictions are about."""
  known, text = study.read(path), []
  for task in tasks:
    rows, accuracy = [], {}
    for arm, (rate, of_seed) in STUDY.of_arms(known, task, seeds).items():
      accuracy[arm] = {s: np.mean(r["accuracy"]) for s, r in of_seed.items()}
      runs = of_seed.values()
      cells = [list(accuracy[arm].values()), [study.ends(r, "accuracy")[1] for r in runs]]
      for name in ("length_right", "length_wrong", "correlation_all", "correlation_right",
                   "correlation_wrong"):
        cells += [[study.ends(r, name)[i] for r in runs] for i in (0, 1)]
      rows.append([f"`{arm}`", f"{rate:g}", len(runs), *map(study.cell, cells)])
    text += [f"\n{task}\n", tables.markdown(
        ["arm", "rate", "seeds", "accuracy", "accuracy, last",
         *(f"{what}, {when}" for what in ("length of right", "of wrong", "correlation", "of right",
                                          "of wrong") for when in ("first", "last"))], rows)]
    text += [f"{task}: {first} - {second}: {study.compare(accuracy, first, second)}"
             for first, second in COMPARED]
  return "\n".join(text)


def main():
  args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  args.add_argument("--out", type=pathlib.Path, default=pathlib.Path("runs/length.jsonl"))
  args.add_argument("--table", action="store_true")
  args.add_argument("--summary", type=pathlib.Path, metavar="FILE", help="a line for each run")
  args.add_argument("--steps", type=int, default=200)
  args.add_argument("--seeds", type=int, default=len(study.SEEDS))
  args.add_argument("--arms", nargs="+", choices=ARMS, default=list(ARMS))
  args.add_argument("--tasks", nargs="+", choices=TASKS, default=TASKS)
  args = args.parse_args()
  seeds = study.SEEDS[:args.seeds]
  if args.summary: return study.write_summary(study.read(args.out), args.summary)
  if not args.table: STUDY.run_all(args.out, args.arms, args.tasks, seeds, args.steps)
  sys.stdout.write(tabulate(args.out, args.tasks, seeds) + "\n")


if __name__ == "__main__":
  main()
