"""How good can an implicit PRM be? One change of its data or training at a time, offline.

  rlx sft sft_step_tasks:confused_lookup workdir=runs/clean/half sft.fresh.d_model=48 \
      sft.fresh.d_ff=144 sft.fresh.n_heads=2 sft.fresh.n_kv_heads=1
  rlx sft sft_step_tasks:confused_lookup-noisy workdir=runs/starts/half \
      model.path=runs/clean/half/model
  python -m experiments.prime.prm_offline confused_lookup --out runs/prm_offline

The first two commands make the initial model of the smaller PRM. Each arm is a run of
`rlx train_scorer` with the config prime_steps:TASK-prm, which has 51,200 completions, 200 updates,
beta 0.5, learning rate 5e-4 and cross-entropy. All arms start from the
same model and are evaluated on the same completions, 16 for each held-out prompt. Finished arms are
not run again. `--arms` chooses some of them by number. Prints a Markdown table:

  pairs        share of pairs of completions, a right and a wrong one, that the sum of the rewards
               ranks right
  step pairs   the same for steps, see experiments/prime/step_quality.py
  F1           of the first wrong step (the least reward of a step)
  best of 16   accuracy of the completion with the highest sum
"""
import argparse
import json
import pathlib

from configs import prime_steps
from rlx.grids import tables
from experiments.prime import step_quality
from rlx.loops import train_scorer

ARMS = {
    "51,200 completions": {},
    "512 completions": {"train_scorer.prompts": 64},
    "2,048 completions": {"train_scorer.prompts": 256},
    "8,192 completions": {"train_scorer.prompts": 1024},
    "153,600 completions": {"train_scorer.prompts": 19200, "steps": 600},
    "three epochs": {"steps": 600},
    "half the width": {"prm.path": "runs/starts/half/model", "prm.reference": "self"},
    "beta 0.1": {"prm.beta": 0.1},
    "beta 2": {"prm.beta": 2.0},
    "learning rate 1e-4": {"prm.optimizer.lr": 1e-4},
    "learning rate 2e-3": {"prm.optimizer.lr": 2e-3},
    "DPO": {"prm.loss": dict(name="prm.dpo")},
}


def run(task, changes, folder, held_out, seed):
  """Trains a PRM, unless it is done, and returns the row of the table."""
  if not (folder / "summary.json").exists():
    c = prime_steps.get_config(f"{task}-prm")
    c.seed = seed
    if held_out: c.train_scorer.held_out = str(held_out)
    c.update_from_flattened_dict(changes)
    train_scorer.train(c, folder)
  summary = json.loads((folder / "summary.json").read_text())
  prm, pairs = summary["prm"]["held out"], step_quality.measure(folder, rates=())["PRM"]
  return (summary["sampled_tokens"] // 1000, *(f"{x:.3f}" for x in (
      prm["pair/sum"]["mean"], pairs, prm["f1/step"]["mean"], summary["best@16/sum"]["mean"])))


def main():
  args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  args.add_argument("task", choices=list(prime_steps.STARTS))
  args.add_argument("--out", type=pathlib.Path, required=True)
  args.add_argument("--seed", type=int, default=4)
  args.add_argument("--arms", type=int, nargs="+", default=range(len(ARMS)))
  args = args.parse_args()
  rows, held_out = [], None
  for name, changes in [list(ARMS.items())[i] for i in args.arms]:
    folder = args.out / args.task / name.replace(" ", "_").replace(",", "")
    rows.append((name, *run(args.task, changes, folder, held_out, args.seed)))
    held_out = held_out or folder / "held_out.jsonl"
  print(tables.markdown(
      ("change", "1000 tokens sampled", "pairs", "step pairs", "F1", "best of 16"), rows))


if __name__ == "__main__":
  main()
