"""When does PRIME help? PRIME as published and with step rewards, against verdicts alone.

Two tasks of configs/prime_steps.py with 32 completions a step: lookup, on which all settings were
tuned with seeds 100 to 102, and facts, on which nothing was tried. The chains of the quickstart are
not among them: exact steps gained nothing there in three runs. Fixed before the runs:

- arms: those of `arms`, each with the learning rate that was best for it on lookup;
- measures: those of experiments/gain.py over 120 steps, threshold 0.5, seeds 0 to 9;
- target: `steps` needs at least 1.5 times fewer steps than `outcome` on both tasks, with the
  interval above 1. `exact` is the room. `null` has a PRM that was trained on permuted verdicts and
  should gain nothing;
- `outcome-right` starts from a model that was fine-tuned on the right ones of the completions that
  the PRM was trained on: what these completions are worth without a PRM.

Commands, for TASK in lookup and facts, after those that make the initial models:

  rlx train_prm prime_steps:TASK-prm workdir=runs/prm/TASK seed=1
  python -m experiments.papers.grids.prime_gain TASK
  rlx train_prm prime_steps:TASK-prm workdir=runs/prm/TASK-null seed=1 \\
      train_prm.rollouts=runs/prm/TASK/permuted.jsonl train_prm.held_out=runs/prm/TASK/held_out.jsonl
  rlx convert source=runs/prm/TASK to=runs/prm/TASK/model model=prm      # and TASK-null
  rlx sft sft_step_tasks:TASK-right workdir=runs/right/TASK
  python -m experiments.run experiments/papers/grids/prime_gain.py --workers 2
  python -m experiments.gain runs/prime_gain --baseline outcome --threshold 0.5 \\
      --prm lookup-steps=runs/prm/lookup facts-steps=runs/prm/facts

The second command writes permuted.jsonl, the PRM's completions with the verdicts of others, and
train.jsonl, the right completions.
"""
import json
import pathlib
import sys

import numpy as np

from experiments import grid as grids
from experiments.papers.grids import prime_room

TASKS = ("lookup", "facts")
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


def arms(task):
  return grids.product(
      [{"arm": task, "config": f"configs/prime_steps.py:{task}"}],
      [{"arm": "outcome"} | OUTCOME,
       {"arm": "outcome-right"} | OUTCOME | {"model.path": f"runs/right/{task}/model"},
       {"arm": "prime"} | PRIME,
       {"arm": "steps"},
       {"arm": "null", "prm.path": f"runs/prm/{task}-null/model"},
       {"arm": "exact", "prm.path": None, "prm.order": "single"} | prime_room.exact()])


def grid(tasks=TASKS):
  return grids.product(SEEDS, [arm for task in tasks for arm in arms(task)])


def lookup():
  return grid(("lookup",))


def facts():
  return grid(("facts",))


def write(folder):
  """Writes permuted.jsonl and train.jsonl (and a part of it as test.jsonl) beside rollouts.jsonl."""
  folder = pathlib.Path(folder)
  rows = [json.loads(line) for line in (folder / "rollouts.jsonl").open()]
  order = np.random.default_rng(0).permutation(len(rows))
  right = [dict(question=r["prompt"], answer=r["completion"]) for r in rows if r["verdict"] == 1]
  for name, some in (("train", right), ("test", right[:64]), ("permuted", [
      r | dict(verdict=rows[i]["verdict"]) for r, i in zip(rows, order)])):
    (folder / f"{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in some))


if __name__ == "__main__":
  write(pathlib.Path("runs/prm") / sys.argv[1])
