"""Does a generative verifier that is trained by RL on verdicts judge better than its start?

The policy is the initial model of the quickstart, which solves some chains of operations. Its
completions are stored with their verdicts. A decoder of 0.1M parameters judges them
(configs/judge_chain.py): it reads a question and a completion and replies with steps of its own and
a verdict, y or n. A quarter of the questions, by their hash, is held out. Fixed before any run:

Arms, from the same start, a solver fine-tuned on the judgements of 1024 completions, whose steps
are wrong at a rate of 35% but whose verdicts are the labels:

  rl     GRPO on verdicts alone, 100 steps of 32 completions x 8 judgements, labels balanced
  null   the same with the verdicts of other completions (permuted among all rows)

Each seed draws its own questions and completions, and judgements of RL. Solver and start are one
for all seeds, since training them takes longer than RL. They and the learning rate were chosen on
the completions of seed 100, which is not among the seeds, after two starts and three runs of RL:

  start of 256 judgements, 200 steps: balanced accuracy 0.547; RL of 16 completions a step at the
  rate 5e-4: 0.518
  start of 1024 judgements, 400 steps: 0.634; RL at 1e-3: 0.727, at 5e-4: 0.779

Measure: balanced accuracy of judgements drawn at temperature 1, 8 for each of at most 512 held-out
completions (about as many right as wrong ones), after training less before it. 95% interval:
percentile bootstrap over seeds and, within a seed, over its held-out questions, 10,000 resamples.

Predictions:

1. `rl` is better than its start: the interval is above 0, and the difference above 0.05.
2. `null` is not: the interval includes 0, or is below it.
3. The most frequent verdict of 8 is better than a single one before training, and its advantage
   shrinks with RL.

Commands:

  python -m experiments.judging.verdicts                     # runs what is missing
  python -m experiments.judging.verdicts --table             # of what is there
  python -m experiments.judging.verdicts --summary experiments/judging/verdicts.csv
  python -m experiments.judging.verdicts --completions runs/judging/completions.jsonl
  python -m experiments.judging.verdicts --seeds 1 --steps 2 --out runs/judging_dry   # a dry run

A line of the record is a run; one that was interrupted is continued.
"""
import argparse
import csv
import itertools
import json
import pathlib
import random
import time

import numpy as np

from rlx import build
from rlx.configs import judge_chain, quickstart
from rlx.core import ranges, rng
from rlx.grids import tables
from rlx.io import checkpoint
from rlx.loops import rl, session, sft, stored
from rlx.prompts.datasets import chain
from rlx.rollouts import padding
from rlx.tools import judgements

START, SEEDS, ARMS = 100, 6, ("rl", "null")
QUESTIONS, EACH, SAMPLES = 2048, 4, 8
METRICS = ("balanced", "accuracy", "label/y", "label/n", "no_verdict", "balanced@8",
           "p_yes/balanced", "p_yes_reasoned/balanced")


def judge(prompt, draw, *, wrong_rate: ranges.Share):
  """A judgement for supervised training: noisy steps of which the verdict is the label.

  Steps are drawn until what they say of the completion's answer is the label, at most 64 times.
  """
  judged = prompt.meta["judged"]
  def change(value):
    return (value + int(draw.integers(1, 10))) % 10 if draw.random() < wrong_rate else value
  for _ in range(64):
    steps = chain.solve(judged["question"], change)
    if judged["answer"].endswith(f"#{steps[-1]}") == (prompt.answer == "y"): break
  return ";".join(map(str, steps)) + f"#{prompt.answer}"


def write_completions(path, seed):
  """Stores completions of the quickstart's initial model with their verdicts."""
  c = quickstart.grpo()
  c.seed, c.prompts.per_step, c.rollouts.per_prompt = seed, 128, EACH
  c.prompts.options = dict(size=QUESTIONS, seed=seed, n_min=4, n_max=5, ops="Mm")
  c.eval.prompts = 1
  run = build.build(c)
  prompts = run.prompts.all()
  path.parent.mkdir(parents=True, exist_ok=True)
  stored.sample(path, run, run.init(), prompts[:len(prompts) // 128 * 128], run.sampling.train,
                batch=128, group=EACH, stream="judged")


def permute_labels(path, seed):
  """The file of completions with the verdicts of other ones, among those of train."""
  rows = list(map(json.loads, path.read_text().splitlines()))
  verdicts = [row["verdict"] for row in rows]
  random.Random(seed).shuffle(verdicts)
  other = path.with_name("permuted.jsonl")
  other.write_text("".join(json.dumps(row | dict(verdict=v)) + "\n"
                           for row, v in zip(rows, verdicts)))
  return other


def measure(config, workdir):
  """{metric: value} on the held-out completions, and the right share of each with its label and
  question."""
  run = build.build(config, learns="")
  checkpoints = checkpoint.Checkpoints(workdir)
  state, _ = session.restore(checkpoints, run.init, run.prompts)
  checkpoints.close()
  texts = []
  for prompts in padding.batches(run.eval_prompts, run.sizes.eval_batch):
    rollouts = run.sampling.sampled(
        state.join_params("policy"), prompts, rng.key(run.passes.seed, "evaluate"))
    texts += run.texts.completions(rollouts)
  texts = texts[:len(run.eval_prompts) * SAMPLES]
  metrics = judgements.measure(run, state, run.eval_prompts, texts)
  right_P = np.mean(run.pool.verify([p for p in run.eval_prompts for _ in range(SAMPLES)],
                                    texts).reshape(-1, SAMPLES), axis=1)
  run.close()
  held_out = [[p.answer, p.meta["judged"]["question"], round(float(x), 4)]
              for p, x in zip(run.eval_prompts, right_P)]
  return {name: metrics[f"judging/{name}"]["mean"] for name in METRICS}, held_out


def train_start(folder):
  """Trains the solver, and from it the start on completions of its own, if they are not there."""
  if (folder / "start/model").exists(): return
  file = folder / f"seed_{START}/completions.jsonl"
  if not file.exists(): write_completions(file, START)
  sft.train(judge_chain.get_config("solver"), folder / "solver")
  c = judge_chain.get_config("start")
  c.seed, c.prompts.source = START, f"judging:{file}"
  c.model.path = str(folder / "solver/model")
  sft.train(c, folder / "start")


def run(folder, seed, arm, steps):
  """(row of the record, held-out judgements) of an arm, or of the start that all arms have."""
  begin, of_seed = time.process_time(), folder / f"seed_{seed}"
  file = of_seed / "completions.jsonl"
  if not file.exists(): write_completions(file, seed)
  def configured(path):
    c = judge_chain.get_config()
    c.seed, c.eval.samples, c.log.baseline = seed, SAMPLES, None
    c.prompts.source, c.steps, c.model.path = f"judging:{path}", steps, str(folder / "start/model")
    return c
  if arm != "start":
    rl.train(configured(file if arm == "rl" else permute_labels(file, seed)), of_seed / arm)
  values, held_out = measure(configured(file), of_seed / arm)
  return dict(arm=arm, seed=seed, **values,
              cpu_seconds=round(time.process_time() - begin, 1)), held_out


def bootstrap(pairs, resamples=10_000):
  """(mean, low, high) of the difference in balanced accuracy over seeds and their questions.

  Args:
    pairs: of each seed (held-out judgements before, those after), of the same prompts.
  """
  draw, seeds = np.random.default_rng(0), []
  for before, after in pairs:
    questions = {q: i for i, q in enumerate(dict.fromkeys(q for _, q, _ in before))}
    of_P = np.array([questions[q] for _, q, _ in before])
    is_yes_P = np.array([x == "y" for x, *_ in before])
    change_P = np.array([b[2] - a[2] for a, b in zip(before, after, strict=True)])
    seeds.append((len(questions), of_P, is_yes_P, change_P))
  def balanced(seed, weight_Q):
    _, of_P, is_yes_P, change_P = seed
    sides = [weight_Q[of_P] * side_P for side_P in (is_yes_P, ~is_yes_P)]
    return np.mean([w_P @ change_P / w_P.sum() for w_P in sides])
  values = [np.mean([balanced(seeds[i], np.bincount(
      draw.integers(seeds[i][0], size=seeds[i][0]), minlength=seeds[i][0]))
                     for i in draw.integers(len(seeds), size=len(seeds))])
            for _ in range(resamples)]
  mean = np.mean([balanced(seed, np.ones(seed[0])) for seed in seeds])
  return float(mean), *map(float, np.quantile(values, (0.025, 0.975)))


def read(folder):
  """{(arm, seed): {"row", "held_out"}} of a record."""
  path = folder / "record.jsonl"
  lines = map(json.loads, path.read_text().splitlines() if path.exists() else ())
  return {(x["row"]["arm"], x["row"]["seed"]): x for x in lines}


def tabulate(known):
  """Prints the measures by arm, and the differences that the predictions are about."""
  rows = []
  for arm in ("start", *ARMS):
    of_arm = [x["row"] for (name, _), x in known.items() if name == arm]
    rows.append([f"`{arm}`", len(of_arm), *(f"{np.mean([r[name] for r in of_arm]):.3f}"
                                            for name in METRICS if of_arm)])
  print(tables.markdown(["arm", "seeds", *METRICS], rows))
  for arm in ARMS:
    pairs = [(known["start", s]["held_out"], known[arm, s]["held_out"]) for s in range(SEEDS)
             if ("start", s) in known and (arm, s) in known]
    if pairs: print(f"{arm} - start, {len(pairs)} seeds:", "{:+.3f} [{:+.3f}, {:+.3f}]".format(
        *bootstrap(pairs)))


def main():
  parser = argparse.ArgumentParser()
  parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("runs/judging"))
  parser.add_argument("--seeds", type=int, default=SEEDS)
  parser.add_argument("--steps", type=int, default=100)
  parser.add_argument("--table", action="store_true")
  parser.add_argument("--summary", type=pathlib.Path, help="writes the rows of the record there")
  parser.add_argument("--completions", type=pathlib.Path, help="writes some, no more")
  args = parser.parse_args()
  if args.completions:
    write_completions(args.completions, 0)
    return
  known = read(args.out)
  if not args.table and not args.summary:
    train_start(args.out)
    # All seeds have their start and RL before the control.
    for arms in (("start", "rl"), ("null",)):
      for seed, arm in itertools.product(range(args.seeds), arms):
        if (arm, seed) in known: continue
        row, held_out = run(args.out, seed, arm, args.steps)
        known[arm, seed] = dict(row=row, held_out=held_out)
        with (args.out / "record.jsonl").open("a") as f:
          f.write(json.dumps(known[arm, seed]) + "\n")
  if args.summary:
    with args.summary.open("w", newline="") as f:
      writer = csv.DictWriter(f, ("arm", "seed", *METRICS, "cpu_seconds"))
      writer.writeheader()
      writer.writerows({k: round(v, 4) if isinstance(v, float) else v for k, v in x["row"].items()}
                       for _, x in sorted(known.items()))
  tabulate(known)


if __name__ == "__main__": main()
