"""When does PRIME help? PRIME as published and with step rewards, against verdicts alone.

The task is lookup of configs/prime_steps.py, with 32 completions a step. All settings were tuned on
it with seeds 100 to 102. The chains of the quickstart are not compared: there, exact steps gained
nothing in three runs. Fixed before the runs:

- arms: those of `grid`, each with the learning rate that was best for it;
- measures: those of experiments/gain.py over 120 steps, threshold 0.5, seeds 0 to 9;
- target: `steps` needs at least 1.5 times fewer steps than `outcome`, with the interval above 1.
  `exact` is the room. `null` has a PRM that was trained on permuted verdicts and should gain
  nothing;
- `outcome-right` starts from a model that was fine-tuned on the right ones of the completions that
  the PRM was trained on: what these completions are worth without a PRM.

A second task, several entries of a table, was fixed too. It has no runs, because its initial model
did not learn the task in 1000 steps.

Commands, after those of configs/prime_steps.py that make the initial model:

  rlx train_prm prime_steps:lookup-prm workdir=runs/prm/lookup seed=1
  python -m experiments.papers.grids.prime_gain write
  rlx train_prm prime_steps:lookup-prm workdir=runs/prm/lookup-null seed=1 \\
      train_prm.rollouts=runs/prm/lookup/permuted.jsonl \\
      train_prm.held_out=runs/prm/lookup/held_out.jsonl
  rlx convert source=runs/prm/lookup to=runs/prm/lookup/model model=prm      # and lookup-null
  rlx sft sft_step_tasks:lookup-right workdir=runs/right/lookup
  python -m experiments.run experiments/papers/grids/prime_gain.py --workers 2
  python -m experiments.run experiments/papers/grids/prime_gain.py:band --out runs/prime_gain
  python -m experiments.gain runs/prime_gain --baseline outcome --threshold 0.5 \\
      --prm lookup-steps=runs/prm/lookup

The second command writes permuted.jsonl, the PRM's completions with the verdicts of others, and
train.jsonl, the right completions.

What made the difference? `ablations`, with PRMs that were also trained on 2,048 and 8,192
completions:

  rlx train_prm prime_steps:lookup-prm workdir=runs/prm/lookup2048 seed=1 steps=80 \\
      train_prm.prompts=256
  rlx train_prm prime_steps:lookup-prm workdir=runs/prm/lookup8192 seed=1 steps=100 \\
      train_prm.prompts=1024
  python -m experiments.run experiments/papers/grids/prime_gain.py:ablations --out runs/prime_gain

How good must process rewards be? Verdicts of steps, of which a share is wrong, take the place of
the PRM's log-ratios in `steps`, with the same measures and seeds 0 to 4. The second command puts
the PRM on the same scale:

  python -m experiments.run experiments/papers/grids/prime_gain.py:misread --out runs/prime_misread
  python -m experiments.step_quality runs/prm/lookup
  python -m experiments.papers.grids.prime_gain figure
"""
import json
import pathlib
import sys

import numpy as np

from experiments import gain
from experiments import grid as grids
from experiments import plots
from experiments import step_quality
from experiments.papers.grids import prime_room

SEEDS = [{"seed": s} for s in range(10)]
OUTCOME = {"rewards": dict(outcome=dict(name="outcome.verdict", coef=1.0)),
           "advantages": dict(outcome=dict(name="group.rloo"), whiten=True),
           "learner.optimizer.lr": 2e-4, "learner.optimizer.schedule": "constant",
           "learner.optimizer.total_steps": 0, "prm.path": None, "prm.order": "single"}
PRIME = OUTCOME | {
    "rewards": dict(outcome=dict(name="outcome.verdict", coef=1.0),
                    process=dict(name="implicit.process", coef=1.0, floor=0.5)),
    "advantages": dict(outcome=dict(name="group.rloo"), process=dict(name="process.rloo"),
                       whiten=True),
    "prm.optimizer.lr": 5e-5}


def grid():
  return grids.product(SEEDS, [{"config": "configs/prime_steps.py:lookup"}], [
      {"arm": "lookup-outcome"} | OUTCOME,
      {"arm": "lookup-outcome-right"} | OUTCOME | {"model.path": "runs/right/lookup/model"},
      {"arm": "lookup-prime"} | PRIME,
      {"arm": "lookup-steps"},
      {"arm": "lookup-null", "prm.path": "runs/prm/lookup-null/model"},
      {"arm": "lookup-exact", "prm.path": None, "prm.order": "single"} | prime_room.exact()])


def band():
  """Added after `grid` had started: both with groups of accuracy 0.1 to 0.9, in up to four draws.

  With the tuning seeds this filter was the best addition to `outcome`.
  """
  return grids.product(SEEDS, [{"config": "configs/prime_steps.py:lookup"}], [
      {"arm": "lookup-outcome-band"} | OUTCOME | prime_room.BAND,
      {"arm": "lookup-steps-band"} | prime_room.BAND])


def ablations():
  """Changes of `steps`, one at a time; three seeds."""
  loo = lambda **options: {"advantages.process": dict(name="process.steps_loo", **options)}
  return grids.product(SEEDS[:3], [{"config": "configs/prime_steps.py:lookup"}], [
      {"arm": "lookup-summed", "advantages.process": dict(name="process.rloo")},
      {"arm": "lookup-clip3"} | loo(clip=3.0),
      {"arm": "lookup-clip0.5"} | loo(clip=0.5),
      {"arm": "lookup-last"} | loo(clip=1.0, include_last=True),
      {"arm": "lookup-coef0.1", "rewards.process.coef": 0.1},
      {"arm": "lookup-coef1", "rewards.process.coef": 1.0},
      {"arm": "lookup-prm2048", "prm.path": "runs/prm/lookup2048/model"},
      {"arm": "lookup-prm8192", "prm.path": "runs/prm/lookup8192/model"},
      {"arm": "lookup-learning", "prm.order": "single", "prm.optimizer.lr": 5e-5},
      {"arm": "lookup-scratch", "prm.path": None, "prm.order": "single",
       "prm.optimizer.lr": 5e-5}])


def misread(rates=(0.0, 0.05, 0.1, 0.2, 0.3, 0.5)):
  verdicts = {"prm.path": None, "prm.order": "single",
              "verifier.steps": "experiments.step_tasks:right_steps",
              "rewards.process": dict(name="steps.refine", kind="raw", coef=0.3)}
  return grids.product(
      SEEDS[:5], [{"config": "configs/prime_steps.py:lookup"} | verdicts],
      [{"arm": f"lookup-{rate:g}", "prompts.columns": dict(misread=rate)} for rate in rates])


def write(folder):
  """Writes permuted.jsonl, train.jsonl and test.jsonl, a part of it, beside rollouts.jsonl."""
  folder = pathlib.Path(folder)
  rows = [json.loads(line) for line in (folder / "rollouts.jsonl").open()]
  order = np.random.default_rng(0).permutation(len(rows))
  right = [dict(question=r["prompt"], answer=r["completion"]) for r in rows if r["verdict"] == 1]
  for name, some in (("train", right), ("test", right[:64]), ("permuted", [
      r | dict(verdict=rows[i]["verdict"]) for r, i in zip(rows, order)])):
    (folder / f"{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in some))


CURVES = tuple(f"lookup-{arm}" for arm in (
    "outcome", "outcome-right", "prime", "steps", "exact", "outcome-band", "steps-band"))


def figure(path="docs/prime_steps.png", threshold=0.5):
  """Draws the curves of the arms, and the steps to the threshold by the share of right verdicts."""
  import matplotlib  # pylint: disable=g-import-not-at-top
  matplotlib.use("Agg")
  from matplotlib import pyplot as plt  # pylint: disable=g-import-not-at-top
  runs, read = (plots.arms(f"runs/{name}")[0] for name in ("prime_gain", "prime_misread"))
  fig, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
  for i, arm in enumerate(CURVES):
    some = runs[arm]
    x, mean, low, high = plots.band(some, gain.METRIC, "steps", gain.SMOOTH)
    left.plot(x, mean, linestyle=plots.DASHES[i % len(plots.DASHES)], color=f"C{i}",
              label=arm.removeprefix("lookup-"))
    left.fill_between(x, low, high, color=f"C{i}", alpha=0.15, linewidth=0)
  left.set(xlabel="steps", ylabel=f"accuracy of drawn completions (mean of {gain.SMOOTH} steps)")
  left.legend()
  def against_outcome(some):
    seeds = {r.name.rpartition("-seed")[2]: r for r in runs["lookup-outcome"]}
    steps = [[gain.reached(r, threshold, "steps")[0] for r in rows] for rows in (
        some, [seeds[r.name.rpartition("-seed")[2]] for r in some])]
    ratio, low, high = gain.ratio(*steps)
    return ratio, [[ratio - low], [high - ratio]]
  for arm, some in read.items():
    ratio, error = against_outcome(some)
    right.errorbar(1 - float(arm.removeprefix("lookup-")), ratio, error, fmt="o", color="C0")
  ratio, error = against_outcome(runs["lookup-steps"])
  share = step_quality.measure(pathlib.Path("runs/prm/lookup"))["PRM"]
  right.errorbar(share, ratio, error, fmt="s", color="C3", label="PRM of `steps`")
  right.axhline(1, color="grey", linewidth=0.8)
  right.set(xlabel="share of pairs of a right and a wrong step that are ranked right",
            ylabel=f"steps to {threshold:g}, divided by those of `outcome`", ylim=(0, 2))
  right.legend()
  fig.savefig(path, dpi=110)


if __name__ == "__main__":
  dict(write=lambda: write("runs/prm/lookup"), figure=figure)[sys.argv[1]]()
