"""How well do process rewards rank steps: a PRM and its signs, verdicts and exact chances of steps.

  python -m experiments.prime.step_quality runs/prm/lookup

The folder is a run of `rlx train_scorer` on a task of step_tasks.py. The measure is the
share of pairs of a right and a wrong step of the same prompt, at the same place, of which the right
one has the higher reward; ties count one half. A share `misread` of the verdicts, and of the steps
that chances are computed for, is wrong. The last step of a completion is left out, because its
chance is the verdict. The steps are those of the completions that the PRM is evaluated on.
"""
import argparse
import dataclasses
import json
import pathlib

import ml_collections
import numpy as np

from experiments.prime import step_tasks
from rlx import build
from rlx.io import checkpoint
from rlx.loops import prm_sets, session, stored

RATES = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5)


def ranked(rewards, verdicts, groups):
  """Returns the share of pairs of steps that are ranked right.

  Args:
    rewards, verdicts: lists of the rewards and verdicts of the steps of each completion.
    groups: the prompt of each completion.
  """
  by_place = {}
  for group, rewards_J, verdicts_J in zip(groups, rewards, verdicts):
    n = len(verdicts_J) - 1
    for place, (reward, is_right) in enumerate(zip(rewards_J[:n], verdicts_J[:n])):
      by_place.setdefault((group, place), ([], []))[bool(is_right)].append(reward)
  higher = pairs = 0.0
  for wrong, right in by_place.values():
    difference = np.subtract.outer(np.array(right, float), np.array(wrong, float))
    higher += np.sum(difference > 0) + np.sum(difference == 0) / 2
    pairs += difference.size
  return float(higher / pairs)


def measure(folder, rates=RATES):
  """Returns {name: share of pairs ranked right}: a run's PRM and its signs, then for `rates`."""
  config = ml_collections.ConfigDict(json.loads((folder / "config.json").read_text()))
  run = build.build(config, learns="")
  checkpoints = checkpoint.Checkpoints(folder)
  state, _ = session.restore(checkpoints, run.init, run.prompts)
  checkpoints.close()
  run.close()
  rows = stored.read(config.train_scorer.held_out or folder / "held_out.jsonl", run.texts)
  of_id = {p.id: p for p in run.eval_prompts}
  prompts, texts = [of_id[x.group] for x in rows], [x.row["completion"] for x in rows]
  verdicts = list(map(step_tasks.right_steps, prompts, texts))
  groups = [x.group for x in rows]
  steps_BJ = prm_sets.score(run, state, [x.prompt for x in rows], [x.ids for x in rows])[""]
  shares = {"PRM": ranked(steps_BJ.tolist(), verdicts, groups),
            "PRM, signs": ranked((steps_BJ > 0).tolist(), verdicts, groups)}
  for rate in rates:
    read = [dataclasses.replace(p, meta=p.meta | dict(misread=rate)) for p in prompts]
    gains = [np.diff([*step_tasks.start_B([p]), *step_tasks.chances(p, text)])
             for p, text in zip(read, texts)]
    shares[f"chances, misread {rate:g}"] = ranked(gains, verdicts, groups)
    shares[f"verdicts, misread {rate:g}"] = ranked(
        list(map(step_tasks.right_steps, read, texts)), verdicts, groups)
  return shares


def main():
  args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  args.add_argument("folder", type=pathlib.Path)
  for name, share in measure(args.parse_args().folder).items(): print(f"{name}: {share:.3f}")


if __name__ == "__main__":
  main()
