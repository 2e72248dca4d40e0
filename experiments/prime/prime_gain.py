"""When does PRIME help? PRIME as published and with step rewards, against verdicts alone.

The tasks are those of configs/prime_steps.py, with 32 completions a step. Settings were tuned on
them with seeds 100 to 102 and other PRMs. Fixed before the runs of `confused`:

- arms: those below, each with the learning rate that was best for it on that task;
- measures: those of experiments/prime/gain.py over 120 steps, threshold 0.5 (also reported at 0.7),
  seeds 0 to 9; two PRMs, one for seeds 0 to 4 and one for seeds 5 to 9;
- target: `steps` needs at least 1.5 times fewer steps than `outcome` on both tasks, with the
  interval above 1. `exact` is the room. `null` has a PRM that was trained on permuted verdicts and
  should gain nothing;
- `outcome-right` starts from a model that was fine-tuned on the right ones of the completions that
  the PRM was trained on: what these completions are worth without a PRM;
- `-band` arms learn from groups of accuracy 0.1 to 0.9, in up to four draws, and thus sample more.

Commands, after those of configs/prime_steps.py that make the initial model, for both tasks:

  rlx train_scorer prime_steps:confused_chain-prm workdir=runs/prm/confused_chain seed=2
  rlx train_scorer prime_steps:confused_chain-prm workdir=runs/prm/confused_chain2 seed=3
  python -m experiments.prime.prime_gain write runs/prm/confused_chain
  rlx train_scorer prime_steps:confused_chain-prm workdir=runs/prm/confused_chain-null seed=2 \\
      train_scorer.rollouts=runs/prm/confused_chain/permuted.jsonl \\
      train_scorer.held_out=runs/prm/confused_chain/held_out.jsonl
  rlx convert source=runs/prm/confused_chain to=runs/prm/confused_chain/model model=prm
                                                     # also the other two
  rlx sft sft_step_tasks:confused_chain-right workdir=runs/right/confused_chain
  rlx grid experiments/prime/prime_gain.py:confused \\
      --out runs/prime_confused --workers 2
  python -m experiments.prime.gain runs/prime_confused --baseline outcome --threshold 0.5 \\
      --prm confused_chain-steps=runs/prm/confused_chain
  rlx grid experiments/prime/prime_gain.py:misread_confused \\
      --out runs/prime_confused_misread --workers 2
  python -m experiments.prime.prime_gain figure

`write` writes permuted.jsonl, the PRM's completions with the verdicts of others, and train.jsonl,
the right completions.

`grid`, `band`, `ablations` and `misread` are the same on lookup, with random mistakes of the
initial model, whose greedy completions are right: runs/prime_gain and runs/prime_misread, one PRM
(runs/prm/lookup, seed=1). `ablations` has PRMs that were also trained on 2,048 and 8,192
completions:

  rlx train_scorer prime_steps:lookup-prm workdir=runs/prm/lookup2048 seed=1 steps=80 \\
      train_scorer.prompts=256
  rlx train_scorer prime_steps:lookup-prm workdir=runs/prm/lookup8192 seed=1 steps=100 \\
      train_scorer.prompts=1024
  rlx grid experiments/prime/prime_gain.py:ablations --out runs/prime_gain

In `misread`, verdicts of steps, of which a share is wrong, take the place of the PRM's log-ratios:
how good must process rewards be? The second command puts the PRM on the same scale:

  rlx grid experiments/prime/prime_gain.py:misread --out runs/prime_misread
  python -m experiments.prime.step_quality runs/prm/lookup
  python -m experiments.prime.prime_gain figure_lookup
"""
import json
import pathlib
import sys

import numpy as np

from configs import prime_steps
from experiments.prime import gain, prime_room, step_quality
from rlx.grids import grid as grids, plots

SEEDS = [{"seed": s} for s in range(10)]
UNTRAINED = {"prm.path": None, "prm.order": "single"}
OUTCOME = UNTRAINED | {
    "rewards": dict(outcome=dict(name="outcome.verdict", coef=1.0)),
    "advantages": dict(outcome=dict(name="group.rloo"), whiten=True), "learner.optimizer.lr": 2e-4,
    "learner.optimizer.schedule": "constant", "learner.optimizer.total_steps": 0}
PRIME = OUTCOME | {
    "rewards": dict(outcome=dict(name="outcome.verdict", coef=1.0),
                    process=dict(name="implicit.process", coef=1.0, floor=0.5)),
    "advantages": dict(outcome=dict(name="group.rloo"), process=dict(name="process.rloo"),
                       whiten=True),
    "prm.optimizer.lr": 5e-5}
VERDICTS = UNTRAINED | {"verifier.steps": "experiments.prime.step_tasks:right_steps",
                        "rewards.process": dict(name="steps.refine", kind="raw", coef=0.3)}


def linear(lr):
  """A learning rate that falls to 0 at the end of the run."""
  return {"learner.optimizer.lr": lr, "learner.optimizer.schedule": "linear",
          "learner.optimizer.total_steps": 120}


def grid():
  return grids.product(SEEDS, [{"config": "configs/prime_steps.py:lookup"}], [
      {"arm": "lookup-outcome"} | OUTCOME,
      {"arm": "lookup-outcome-right"} | OUTCOME | {"model.path": "runs/right/lookup/model"},
      {"arm": "lookup-prime"} | PRIME,
      {"arm": "lookup-steps"},
      {"arm": "lookup-null", "prm.path": "runs/prm/lookup-null/model"},
      {"arm": "lookup-exact"} | UNTRAINED | prime_room.exact()])


def band():
  """Added after `grid` had started: both with groups of accuracy 0.1 to 0.9, in up to four draws.

  With the tuning seeds this filter was the best addition to `outcome`.
  """
  return grids.product(SEEDS, [{"config": "configs/prime_steps.py:lookup"}], [
      {"arm": "lookup-outcome-band"} | OUTCOME | prime_room.BAND,
      {"arm": "lookup-steps-band"} | prime_room.BAND])


CONFUSED = ("confused_chain", "confused_lookup")


def confused():
  """The arms on tasks with systematic mistakes."""
  def arms(task, prm):
    rates = linear(prime_steps.LEARNING_RATES[task])
    outcome, trained = OUTCOME | rates, {"prm.path": f"runs/prm/{prm}/model"}
    return [
        {"arm": f"{task}-outcome"} | outcome,
        {"arm": f"{task}-steps"} | trained,
        {"arm": f"{task}-exact"} | UNTRAINED | prime_room.exact() | linear(5e-4),
        {"arm": f"{task}-outcome-right"} | outcome | {"model.path": f"runs/right/{task}/model"},
        {"arm": f"{task}-outcome-band"} | outcome | linear(3e-4) | prime_room.BAND,
        {"arm": f"{task}-steps-band"} | trained | linear(3e-4) | prime_room.BAND,
        {"arm": f"{task}-prime"} | PRIME | rates,
        {"arm": f"{task}-null", "prm.path": f"runs/prm/{task}-null/model"}]
  return grids.chain(*[
      grids.product(seeds, [{"config": f"configs/prime_steps.py:{task}"}], arms(task, task + which))
      for seeds, which in ((SEEDS[:5], ""), (SEEDS[5:], "2")) for task in CONFUSED])


def misread_confused(rates=(0.0, 0.2, 0.3, 0.5)):
  """`misread` on the tasks of `confused`; verdicts need a baseline, because they are 0 or 1."""
  return grids.product(SEEDS[:3], [a for task in CONFUSED for a in grids.product(
      [{"config": f"configs/prime_steps.py:{task}"} | VERDICTS | {
          "advantages.process": dict(name="process.steps_loo", clip=1.0)}],
      [{"arm": f"{task}-{rate:g}", "prompts.columns": dict(strict=True, misread=rate)}
       for rate in rates])])


ROOM = ("confused_carry", "confused_reverse")


def room():
  """Exact steps against the better of two rates of verdicts alone, on two more tasks; five seeds.

  The measures are those of `confused`.
  """
  return grids.product(SEEDS[:5], [a for task in ROOM for a in grids.product(
      [{"config": f"configs/prime_steps.py:{task}"} | UNTRAINED],
      [{"arm": f"{task}-outcome"} | OUTCOME | linear(3e-4),
       {"arm": f"{task}-outcome5"} | OUTCOME | linear(5e-4),
       {"arm": f"{task}-exact"} | prime_room.exact() | linear(5e-4)])])


def rates():
  """Learning rates of confused_carry, on which those of `room` are too high; tuning seeds."""
  task = "confused_carry"
  return grids.product([{"seed": s} for s in (100, 101)], [
      {"config": f"configs/prime_steps.py:{task}"} | UNTRAINED], [
          {"arm": f"{task}-{name}-{lr:g}"} | changes | linear(lr) for lr in (1e-4, 2e-4)
          for name, changes in (("outcome", OUTCOME), ("exact", prime_room.exact()))])


def judged():
  """Verdicts of steps that are wrong where a PRM is wrong, for PRMs of several sizes of data.

  As in `misread_confused`, each verdict is 0 or 1. `prm` has the log-ratios of these PRMs, as
  `steps` has. The other arms are those of `confused` and `misread_confused`, because the model and
  its PRMs were made again for this grid.
  """
  verdicts = {"advantages.process": dict(name="process.steps_loo", clip=1.0)}
  signs = verdicts | {"rewards.process": dict(name="experiments.prime.step_tasks:signs", coef=0.3)}
  prms = [{"arm": f"{JUDGED}-{kind}{n}", "prm.path": f"runs/prm/{JUDGED}{n}/model"} | changes
          for n in ("512", "2048", "8192", "") for kind, changes in (("signs", signs), ("prm", {}))]
  return grids.product(SEEDS[:3], [{"config": f"configs/prime_steps.py:{JUDGED}"}], [
      *prms,
      {"arm": f"{JUDGED}-outcome"} | OUTCOME | linear(prime_steps.LEARNING_RATES[JUDGED]),
      {"arm": f"{JUDGED}-exact"} | UNTRAINED | prime_room.exact() | linear(5e-4),
      *[{"arm": f"{JUDGED}-misread{rate:g}", "prompts.columns": dict(strict=True, misread=rate)}
        | VERDICTS | verdicts for rate in (0.0, 0.2, 0.3)]])


def again():
  """`prm`, `outcome` and `exact` of `judged`, ten seeds."""
  arms = ("prm", "outcome", "exact")
  kept = [r for r in judged() if r["arm"].removeprefix(f"{JUDGED}-") in arms]
  return [r | seed for seed in SEEDS for r in kept if r["seed"] == 0]


JUDGED = "confused_lookup"


def right():
  """What `steps` adds after fine-tuning on right completions; five seeds, the PRM of `steps`."""
  return grids.product(SEEDS[:5], [{
      "config": f"configs/prime_steps.py:{JUDGED}", "model.path": f"runs/right/{JUDGED}/model"}], [
          {"arm": f"{JUDGED}-outcome-right"} | OUTCOME | linear(
              prime_steps.LEARNING_RATES[JUDGED]),
          {"arm": f"{JUDGED}-steps-right"}])


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
      {"arm": "lookup-scratch", "prm.optimizer.lr": 5e-5} | UNTRAINED])


def misread(rates=(0.0, 0.05, 0.1, 0.2, 0.3, 0.5)):
  return grids.product(
      SEEDS[:5], [{"config": "configs/prime_steps.py:lookup"} | VERDICTS],
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


CURVES = ("outcome", "steps", "exact", "outcome-right", "outcome-band", "steps-band", "prime")


def figure(path="docs/prime_curves.png"):
  """Draws the curves of the arms of `confused`."""
  plt = plots.pyplot()
  runs = plots.arms("runs/prime_confused")[0]
  fig, axes = plt.subplots(1, len(CONFUSED), figsize=(11, 4), layout="constrained", sharey=True)
  for axis, task in zip(axes, CONFUSED):
    _curves(axis, runs, task)
    axis.set(title=task)
  axes[1].set(ylabel=None)
  axes[0].legend(fontsize=8)
  fig.savefig(path, dpi=110)


def figure_lookup(path="docs/prime_steps.png", threshold=0.5):
  """Draws the curves of the arms, and the steps to the threshold by the share of right verdicts."""
  plt = plots.pyplot()
  runs, read = (plots.arms(f"runs/{name}")[0] for name in ("prime_gain", "prime_misread"))
  fig, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
  _curves(left, runs, "lookup")
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


def _curves(axis, runs, task):
  """Draws the accuracy of the drawn completions of CURVES, with the band of the seeds."""
  for i, arm in enumerate(CURVES):
    if f"{task}-{arm}" not in runs: continue
    x, mean, low, high = plots.band(runs[f"{task}-{arm}"], gain.METRIC, "steps", gain.SMOOTH)
    axis.plot(x, mean, linestyle=plots.DASHES[i % len(plots.DASHES)], color=f"C{i}", label=arm)
    axis.fill_between(x, low, high, color=f"C{i}", alpha=0.15, linewidth=0)
  axis.set(xlabel="steps", ylabel=f"accuracy of drawn completions (mean of {gain.SMOOTH} steps)")


if __name__ == "__main__":
  dict(write=write, figure=figure, figure_lookup=figure_lookup)[sys.argv[1]](*sys.argv[2:])
