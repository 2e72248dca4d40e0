"""Which reward should one use? Ten arms on four tasks, tuned alike, ten seeds.

Tasks: confused_chain and confused_lookup of configs/prime_steps.py, whose questions fix the number
of steps, and walk and chase of configs/free_length.py, where a right completion may have any
number. All initial models make systematic mistakes. Fixed before any run:

Arms, each with 8 prompts x 4 completions a step, 120 steps (walk and chase 200):

  outcome         RLOO of verdicts alone
  outcome-right   the same, from a model that was fine-tuned on the right ones of the completions
                  below
  prime           PRIME as published: an implicit PRM that learns online and starts as the policy,
                  `process.rloo`
  totals          `prime` without the length term, `process.totals_loo`
  bounded         a PRM that was trained before on 51,200 completions of the initial model, each
                  step its own log-ratio, `process.bounded_steps`
  ipvrm           configs/papers/ipvrm.py without its filter; its PRM was trained before on the same
                  completions, on every prefix, and goes on learning
  spro            configs/papers/spro.py: the policy's own log-ratio, no PRM
  distil          configs/papers/opd.py: a teacher instead of verdicts, the policy that 200 steps of
                  `outcome` made of the model of `outcome-right`
  exact           the change of the exact chance of success by each step, as its own advantage
  null            `bounded` with a PRM that was trained on permuted verdicts

Learning rates are constant; each arm has the one of RATES with the best mean accuracy over the run,
over two other seeds. Nothing else is tuned: `bounded` has the settings of configs/prime_steps.py
(which were tuned on tasks of that file), `ipvrm`, `spro` and `distil` those of their configs.

On walk, which has 134 questions, PRMs learn for 200 steps from 64 completions of each of 128; on
chase from 16 of each of 3,200 instead of 8 of 6,400.

Measures: accuracy of drawn completions, over the run and over its last 30 steps (prompts are never
drawn twice except on walk, so that both are about new prompts); the accuracy, a mean of 20 steps,
after half of the steps, when an arm has sampled as many tokens, and when it has taken as many
seconds of CPU time as `outcome` then; tokens that were sampled before RL. 95% intervals over seeds,
arms paired by seed. On walk and chase the runs of outcome, prime, totals and exact are those of
experiments/prime/length.py, whose record is continued (--out).

Predictions: `outcome-right` and `distil` are above all others on every task. `bounded` is above
`outcome` on the confused tasks. On walk and chase, where its rewards depend on the number of steps,
it is not. `totals` is above `prime` on walk and chase and equal to it on the others. `ipvrm` is
above `prime` on every task, and its PRM ranks steps better than that of `bounded`. `spro` is within
0.02 of `outcome`. `null` is below `outcome`.

Commands, after those of configs/free_length.py and configs/prime_steps.py that make the initial
models:

  python -m experiments.prime.verdict --prepare    # completions, PRMs, fine-tuned models, teacher
  python -m experiments.prime.verdict                  # runs what is missing; stops and resumes
  python -m experiments.prime.verdict --table          # of what is there
  python -m experiments.prime.verdict --summary experiments/prime/verdict.csv
  python -m experiments.prime.verdict --figure docs/verdict.png
"""
import argparse
import itertools
import json
import pathlib
import sys

import numpy as np

from experiments.claims.environments import tabular
from experiments.prime import length, prime_gain, study
from rlx import build
from rlx.configs import free_length, prime_steps, sft_step_tasks, step_tasks
from rlx.grids import plots, tables
from rlx.loops import rl, sft, train_scorer
from rlx.tools import convert

FIXED = ("confused_chain", "confused_lookup")  # Their questions fix the number of steps.
TASKS = (*FIXED, "walk", "chase")
RATES = dict.fromkeys(FIXED, (1e-4, 3e-4, 9e-4)) | dict.fromkeys(length.TASKS, length.RATES)
STEPS = dict.fromkeys(FIXED, 120) | dict.fromkeys(length.TASKS, 200)
ARMS = ("outcome", "outcome-right", "prime", "totals", "bounded", "ipvrm", "spro", "distil",
        "exact", "null")
# Prompts that PRMs learn from, and completions of each.
SAMPLED = dict(walk=(128, 64), chase=(3200, 16))
FOLDER = pathlib.Path("runs/verdict")
WINDOW = 20  # Steps of the accuracy at equal cost.


def configured(task, arm, rate):
  """The config of an arm."""
  return tabular.changed(_start(task), learner__optimizer__lr=rate, **_changes(task, arm))


def _start(task):
  """Verdicts alone on a task."""
  if task not in FIXED: return free_length.get_config(task)
  c = step_tasks.get_config(task)
  c.model.path = prime_steps.STARTS[task]
  c.prompts.per_step, c.rollouts.per_prompt, c.learner.pack = 8, 4, False
  c.prm.optimizer.lr = 5e-5
  return c


def _changes(task, arm):
  if arm == "outcome-right": return dict(model__path=_path(task, "right"))
  if arm == "exact" and task in FIXED:
    return length.ARMS["exact"] | dict(verifier__steps="experiments.prime.step_tasks:chances")
  if arm in ("bounded", "null"):
    return length.ARMS["bounded"] | dict(
        prm__path=_path(task, "prm" if arm == "bounded" else "null"), prm__order="none",
        prm__beta=0.5)
  if arm == "spro": return study.take("papers/spro")
  if arm == "distil": return study.take("papers/opd") | dict(teacher__path=_path(task, "teacher"))
  if arm == "ipvrm":
    return study.take("papers/ipvrm", *study.PRM) | dict(prm__path=_path(task, "prefix"))
  return length.ARMS[arm]


STUDY = study.Study(configured, ARMS, RATES, STEPS)


def _path(task, name): return str(FOLDER / task / name / "model")


def prepare(task):
  """Makes the models that the arms of a task start from; those that exist are kept."""
  folder = FOLDER / task
  def make(name, train, config, model):
    if (folder / name / "model").exists(): return
    if train(config, folder / name) is None: raise SystemExit("stopped by a signal")
    if model is not None: convert.convert(str(folder / name), _path(task, name), model=model)
  def trained_before(**changes):
    prompts, group = SAMPLED.get(task, (6400, 8))
    return tabular.changed(
        configured(task, "prime", 1e-4), steps=200, seed=2, prompts__per_step=256 // group,
        rollouts__per_prompt=group, train_scorer__prompts=prompts, **dict(
            prm__optimizer__lr=5e-4, prm__beta=0.5) | changes)
  make("prm", train_scorer.train, trained_before(), "prm")
  prime_gain.write(folder / "prm")
  stored = {f"train_scorer__{name}": str(folder / "prm" / f"{name}.jsonl")
            for name in ("rollouts", "held_out")}
  make("null", train_scorer.train, trained_before(
      **stored | dict(train_scorer__rollouts=str(folder / "prm" / "permuted.jsonl"))), "prm")
  make("prefix", train_scorer.train, trained_before(**stored, **study.train_prefix()), "prm")
  c, start = sft_step_tasks.get_config("confused_chain-right"), _start(task)
  c.rollouts = start.rollouts
  c.prompts.source = f"jsonl:{folder}/prm/{{split}}.jsonl"
  c.prompts.max_tokens, c.model.path = start.prompts.max_tokens, start.model.path
  make("right", sft.train, c, None)  # Writes the model itself.
  make("teacher", rl.train, tabular.changed(configured(task, "outcome-right", 3e-4), steps=200,
                                            seed=100), "policy")


def measure_cost(task, rounds=5, steps=10):
  """{arm: median CPU seconds of a step}; the arms take turns."""
  runs = {arm: build.build(configured(task, arm, 1e-4)) for arm in ARMS}
  seconds = {arm: [] for arm in ARMS}
  for i, arm in itertools.product(range(rounds + 1), ARMS):
    spent = study.train(runs[arm], 100, steps)["cpu_seconds"] / steps
    if i: seconds[arm].append(spent)  # The first round compiles.
  return {arm: float(np.median(x)) for arm, x in seconds.items()}


def sample_before(task, arm):
  """Tokens that were sampled for the models of an arm before RL."""
  if arm not in ("outcome-right", "bounded", "null", "ipvrm", "distil"): return 0
  tokens = json.loads((FOLDER / task / "prm" / "summary.json").read_text())["sampled_tokens"]
  if arm == "distil":
    tokens += sum(json.loads(line).get("rollouts/tokens", 0)
                  for line in (FOLDER / task / "teacher" / "metrics.jsonl").open())
  return tokens


def at_step(row, step):
  """The accuracy of a run at a step, a mean of the last WINDOW ones; NaN after its end."""
  if step > row["steps"]: return np.nan
  return np.mean(row["accuracy"][max(step - WINDOW, 0):max(step, 1)])


COMPARED = (("totals", "prime"), ("ipvrm", "prime"), ("outcome-right", "distil"),
            ("bounded", "ipvrm"), ("exact", "bounded"))


def tabulate(path, tasks, seeds):
  """Markdown of a table of each task."""
  known, text = study.read(path), []
  for task in tasks:
    arms, rows, accuracy = STUDY.of_arms(known, task, seeds), [], {}
    cost = json.loads((FOLDER / task / "cost.json").read_text())
    half, rivals = STEPS[task] // 2, arms["outcome"][1]
    for arm, (rate, of_seed) in arms.items():
      runs = list(of_seed.values())
      accuracy[arm] = {s: np.mean(r["accuracy"]) for s, r in of_seed.items()}
      budgets = [np.sum(rivals[s]["tokens"][:half]) for s in of_seed]
      steps = [int(np.searchsorted(np.cumsum(r["tokens"]), b, side="right"))
               for r, b in zip(runs, budgets)]
      rows.append([
          f"`{arm}`", f"{rate:g}", len(runs), study.cell(list(accuracy[arm].values())),
          study.compare(accuracy, arm, "outcome") if arm != "outcome" else "",
          study.cell([study.ends(r, "accuracy")[1] for r in runs]),
          *(study.cell(list(map(at_step, runs, some))) for some in (
              [half] * len(runs), steps,
              [int(half * cost["outcome"] / cost[arm])] * len(runs))),
          f"{np.mean([np.sum(r['tokens']) for r in runs]) / 1e3:.0f}",
          f"{sample_before(task, arm) / 1e3:.0f}", f"{1e3 * cost[arm]:.0f}"])
    text += [f"\n{task}\n", tables.markdown(
        ["arm", "rate", "seeds", "over the run", "less outcome", "last 30 steps", "equal steps",
         "equal tokens", "equal seconds", "1000 tokens of the run", "before it",
         "CPU ms of a step"], rows)]
    text += [f"{task}: {first} - {second}: {study.compare(accuracy, first, second)}"
             for first, second in COMPARED]
  return "\n".join(text)


def draw(path, tasks, file):
  """Draws the accuracy over the run of all arms, with 95% intervals over seeds; a panel a task."""
  known, plt = study.read(path), plots.pyplot()
  fig, axes = plt.subplots(1, len(tasks), figsize=(11, 3.6), layout="constrained", sharey=True)
  for axis, task in zip(axes, tasks):
    arms = STUDY.of_arms(known, task, study.SEEDS)
    for place, arm in enumerate(reversed(ARMS)):
      mean, low, high = tables.interval([np.mean(r["accuracy"]) for r in arms[arm][1].values()])
      color = "C0" if arm == "outcome" else "C3" if arm in ("prime", "totals") else "0.25"
      axis.errorbar(mean, place, xerr=[[mean - low], [high - mean]], fmt="o", color=color)
      if arm == "outcome": axis.axvline(mean, color="C0", linewidth=0.8, alpha=0.5)
    axis.set(title=task, xlim=(0, None), xlabel="accuracy over the run")
    axis.grid(axis="x", alpha=0.3)
  axes[0].set_yticks(range(len(ARMS)), reversed(ARMS))
  fig.savefig(file, dpi=110)


def main():
  args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  args.add_argument("--out", type=pathlib.Path, default=FOLDER / "runs.jsonl")
  args.add_argument("--prepare", action="store_true")
  args.add_argument("--table", action="store_true")
  args.add_argument("--summary", type=pathlib.Path, metavar="FILE", help="a line for each run")
  args.add_argument("--figure", type=pathlib.Path, metavar="FILE")
  args.add_argument("--seeds", type=int, default=len(study.SEEDS))
  args.add_argument("--arms", nargs="+", choices=ARMS, default=ARMS)
  args.add_argument("--tasks", nargs="+", choices=TASKS, default=TASKS)
  args = args.parse_args()
  seeds = study.SEEDS[:args.seeds]
  if args.summary: return study.write_summary(study.read(args.out), args.summary)
  if args.prepare:
    for task in args.tasks: prepare(task)
    return
  if args.figure: draw(args.out, args.tasks, args.figure)
  elif not args.table:
    STUDY.run_all(args.out, args.arms, args.tasks, seeds)
    for task in args.tasks:
      if not (file := FOLDER / task / "cost.json").exists():
        file.write_text(json.dumps(measure_cost(task)))
  sys.stdout.write(tabulate(args.out, args.tasks, seeds) + "\n")


if __name__ == "__main__":
  main()
