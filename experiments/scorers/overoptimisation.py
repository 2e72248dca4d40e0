"""Does RL against a learned scorer over-optimise? Does an ensemble, a threshold or a bound help?

The task is that of the quickstart: chains of 5 to 8 maximum and minimum operations, whose verdict
is exact. The policy is configs/models/chain; a third of its completions are right. A scorer is an
implicit reward model (prm.ce, beta 1/2): a copy of the policy that was trained on the verdicts of 4
completions of the initial policy for each of 256 questions, 5 epochs. Its score is the log-odds
z = beta sum log(pi / pi_ref) that a completion is right. Each seed has four scorers, which learned
from the same completions in different order, and start alike. Fixed before any run of the study:

Arms, each with 16 prompts x 4 completions a step and 60 steps, RLOO without whitening:

  gold        the verdict
  one         z of the first scorer
  mean        the mean of the four scores
  least       the least of the four (WCO of arXiv:2310.02743)
  threshold   min(z, number) of the first scorer: what a completion scores beyond is not rewarded
  bound       sigmoid(number (z + 1)) of the first scorer; -1 is about its mean before RL (as
              arXiv:2502.18770, whose reference is completions of the initial policy)
  kl          z of the first scorer, and a KL penalty whose coefficient is the number

Learning rates are constant; each arm has the rate of RATES, and the number of its own, with the
best gold accuracy at the end (mean of the last two measurements), over two other seeds (TUNING). An
arm `one at the rate of gold` has the rate that was chosen for `gold`, where that is another one:
what happens to a person who tunes without a gold verdict. Rates, numbers, the number of steps and
of completions that scorers learn from were chosen after pilot runs of three other seeds.

Measures, every ten steps on two completions of each of 128 held-out questions: gold, the accuracy;
proxy, the mean chance of being right that the arm's own score states, sigmoid(z), z as the arm
joins it (of `gold`, `threshold`, `bound` and `kl` that of the first scorer); the KL from the
initial policy in nats per completion; the share of completions of the right form. From them

  final             gold at the end, mean of the last two measurements
  over-optimisation the highest gold of two neighbouring measurements (their mean) less final;
                    never negative, so that `gold`, whose reward cannot be over-optimised, shows how
                    much of it is noise
  gap               proxy less gold at the end, mean of the last two

with 95% intervals of the bootstrap over ten seeds; arms are compared with `one` by differences that
are paired by seed, because all arms of a seed have the same scorers, questions and random numbers.

Predictions:

1. RL against one scorer over-optimises: at the rate of `gold` the over-optimisation of `one` is
   above that of `gold` with an interval above 0, and its final accuracy is below that of the
   initial policy. At its own rate it is smaller.
2. `mean` has a higher final accuracy than `one`, with an interval above 0; `least` is not above
   `mean`.
3. `threshold` and `bound` have a higher final accuracy than `one` and a smaller gap.
4. `kl` has the smallest gap of all arms with a scorer, and a final accuracy above that of `one`.
5. `gold` is above all others in final accuracy.

Added after the runs of TUNING, before those of other seeds had ended: all arms with scorers except
`kl` had chosen the smallest rate, at which the policy has moved little after 60 steps. To compare
them where it moves, all arms with scorers have ten seeds at the rate MIDDLE too, with the number
that was best there. The second table has these runs, and both tables have the mean of gold over all
measurements of a run (`over the run`).

Commands:

  python -m experiments.scorers.overoptimisation --prepare   # the scorers
  python -m experiments.scorers.overoptimisation             # runs what is missing, and resumes
  python -m experiments.scorers.overoptimisation --seeds 100 101    # only these seeds
  python -m experiments.scorers.overoptimisation --summary experiments/scorers/overoptimisation.csv
  python -m experiments.scorers.overoptimisation --table     # of that file
  python -m experiments.scorers.overoptimisation --figure docs/overoptimisation.png

A line of the record is a run: one that was interrupted is done again.
"""
import argparse
import csv
import dataclasses
import functools
import itertools
import json
import math
import pathlib
import sys
import time

import jax
import numpy as np

from experiments.claims.environments import tabular
from experiments.prime import study
from rlx import build
from rlx.configs import quickstart
from rlx.core import rng
from rlx.evals import accuracy
from rlx.grids import plots, tables
from rlx.io import progress
from rlx.loops import rl, train_scorer
from rlx.prompts import iterator
from rlx.stages import collect, host_state
from rlx.tools import convert
from rlx.verifiers import chain

SCORERS = ("one", "two", "three", "four")
BETA = 0.5
STEPS, EVERY = 60, 10
PROMPTS, SAMPLES = 128, 2  # Of a measurement.
RATES = (3e-5, 1e-4, 3e-4)
MIDDLE = RATES[1]
# {arm: the numbers of its own that are tried}.
ARMS = dict(gold=(None,), one=(None,), mean=(None,), least=(None,), threshold=(-0.5, 0.5),
            bound=(1.0, 2.0), kl=(0.2, 0.6))
FAST = "one at the rate of gold"
ENSEMBLES = dict(mean="mean", least="min")
CURVES = ("gold", "proxy", "one", "others", "kl", "form")
KEY = ("arm", "rate", "number", "seed")
FOLDER = pathlib.Path("runs/overoptimisation")
TABLE = pathlib.Path(__file__).with_suffix(".csv")
RANKED = TABLE.with_stem(TABLE.stem + "_scorers")  # How well the scorers rank held-out pairs.


def configured(arm, rate, number, folder):
  """The config of an arm; `folder` has the scorers of a seed."""
  names = () if arm == "gold" else SCORERS if arm in ENSEMBLES else SCORERS[:1]
  return tabular.changed(
      _task(), rewards=dict(outcome=dict(_reward(arm, number), coef=1.0)),
      learner__optimizer__lr=rate, verifier__scores=tuple(f"scorers.{x}" for x in names),
      scorers={x: dict(path=str(folder / x / "model"), kind="implicit") for x in names},
      kl__coef=number if arm == "kl" else 0.0, kl__kind="k2")


def _task():
  return tabular.changed(
      quickstart.grpo(), prompts__per_step=16, rollouts__per_prompt=4, learner__pack=False,
      advantages=dict(outcome=dict(name="group.rloo"), whiten=False), eval__every=0,
      eval__prompts=PROMPTS, eval__batch=PROMPTS, eval__samples=SAMPLES)


def _reward(arm, number):
  if arm == "gold": return dict(name="outcome.verdict")
  if arm in ENSEMBLES: return dict(name="shaping.ensemble", kind=ENSEMBLES[arm])
  options = dict(name="shaping.plain", kind="linear", k=BETA)
  if arm == "threshold":  # clip is on both sides; the other one is out of reach.
    return options | dict(kind="clip", centre=(number - 100) / BETA, limit=100.0)
  if arm == "bound": return options | dict(kind="sigmoid", k=number * BETA, centre=-1 / BETA)
  return options


def prepare(folder, seed):
  """Trains the scorers of a seed; those that exist are kept."""
  own = folder / str(seed)
  for i, name in enumerate(SCORERS):
    if (own / name / "model").exists(): continue
    # The first one samples the completions that all learn from.
    stored = {f"train_scorer__{x}": str(own / SCORERS[0] / f"{x}.jsonl")
              for x in ("rollouts", "held_out") if i}
    c = tabular.changed(
        _task(), seed=100 * seed + i, steps=80, train_scorer__prompts=256, eval__samples=4,
        checkpoint__every=1000, prm__optimizer__lr=5e-4, prm__beta=BETA,
        rewards=dict(process=dict(name="implicit.process", coef=1.0, norm="none")),
        advantages=dict(process=dict(name="process.rloo"), whiten=False), **stored)
    if train_scorer.train(c, own / name) is None: raise SystemExit("stopped by a signal")
    convert.convert(str(own / name), str(own / name / "model"), model="prm")


@dataclasses.dataclass(frozen=True)
class Lab:
  """The runs of a folder; all seeds of an arm share its compiled programs."""
  folder: pathlib.Path

  @functools.cache
  def build(self, arm, rate, number):
    """The Run of an arm, with the scorers of any seed."""
    return build.build(configured(arm, rate, number, self.folder / str(study.TUNING[0])))

  @functools.lru_cache(maxsize=1)
  def probe(self, seed):
    """(Run, state) that measure any policy by the four scorers of a seed."""
    c = configured("mean", RATES[0], None, self.folder / str(seed))
    run = build.build(tabular.changed(c, kl__coef=1.0, prompts__per_step=PROMPTS,
                                      rollouts__per_prompt=SAMPLES))
    return run, run.init()

  def train(self, arm, rate, number, seed, steps=STEPS):
    """A run: the measurements of its policy before the first step and after every tenth."""
    begin, cpu = time.perf_counter(), time.process_time()
    run, (probe, start) = self.build(arm, rate, number), self.probe(seed)
    prompts = iterator.PromptIterator(run.prompts.all(), seed=seed)
    run = dataclasses.replace(
        run, prompts=prompts, collect=dataclasses.replace(run.collect, prompts=prompts, seed=seed))
    state, host, clock = run.init(), host_state.HostState(), progress.Clock()
    if state.frozen_models:
      state = state.replace(frozen_models={x: start.frozen_models[x] for x in state.frozen_models})
    curves = {}
    for step in range(steps + 1):
      if step % EVERY == 0:
        study.extend(curves, measure(arm, probe, start.replace(policy=state.policy), seed, step))
      if step < steps: state, *_ = rl.iteration(run, state, host, step, clock)
    return dict(steps=steps, **curves, seconds=round(time.perf_counter() - begin, 1),
                cpu_seconds=round(time.process_time() - cpu, 1))


def measure(arm, probe, state, seed, step):
  """{name: number}, the names those of CURVES, of held-out completions of the state's policy."""
  prompts = probe.eval_prompts
  rollouts = probe.sampling.sampled(state.policy, prompts, rng.key(seed, "measure", step), None,
                                    probe.sampling.lay_out(state.policy))
  outcome_B = probe.outcomes(prompts, rollouts).ravel()
  texts = probe.texts.completions(rollouts)
  forms = [chain.form(prompts[i // SAMPLES], text) for i, text in enumerate(texts)]
  annotated = probe.annotate(state, collect.Collected(prompts, rollouts, outcome_B, None))
  batch = jax.device_get(probe.score(state, probe.place(annotated)).batch)
  ratio_BT = batch.sampler_logps_BT - batch.ref_logps_BT
  return dict(gold=np.mean(outcome_B), form=np.mean(forms),
              kl=np.where(batch.action_BT, ratio_BT, 0).sum(axis=1).mean(),
              **mean_chances(arm, BETA * batch.scores_BE))


def mean_chances(arm, z_BE):
  """Mean chance of being right by the arm's own score, the first scorer and the others."""
  own_B = (z_BE.mean(axis=1) if arm == "mean" else z_BE.min(axis=1) if arm == "least" else
           z_BE[:, 0])
  chance = lambda z: float(np.mean(1 / (1 + np.exp(-z))))
  return dict(proxy=chance(own_B), one=chance(z_BE[:, 0]), others=chance(z_BE[:, 1:]))


def choose(known, arm, rates=RATES):
  """(rate, number) with the best final gold accuracy over TUNING seeds."""
  return max(_settings(arm, rates), key=lambda of: np.mean(
      [summarise(known[arm, *of, seed])["final"] for seed in study.TUNING]))


def list_arms(known, rates=RATES):
  """{name: (arm, rate, number)} at the best of these rates, and FAST if they are all."""
  arms = {arm: (arm, *choose(known, arm, rates)) for arm in ARMS if rates == RATES or arm != "gold"}
  fast = ("one", arms["gold"][1], None) if "gold" in arms else arms["one"]
  return arms if fast == arms["one"] else arms | {FAST: fast}


def _settings(arm, rates=RATES): return list(itertools.product(rates, ARMS[arm]))


def list_runs(known, seeds):
  """The keys of the runs of some seeds: all settings of TUNING seeds, the chosen ones of others.

  Raises:
    ValueError: others are asked for before those of TUNING are there.
  """
  tuning = [(arm, *of, s) for s in study.TUNING for arm in ARMS for of in _settings(arm)]
  if others := [s for s in seeds if s not in study.TUNING]:
    if missing := [key for key in tuning if key not in known]:
      raise ValueError(f"seeds={others}: {len(missing)} runs of the seeds {study.TUNING} are "
                       f"missing; add --seeds {' '.join(map(str, study.TUNING))} first.")
  chosen = [of for rates in (RATES, (MIDDLE,)) if others
            for of in list_arms(known, rates).values()]
  return [key for key in tuning if key[-1] in seeds] + list(dict.fromkeys(
      (*of, s) for s in others for of in chosen))


def run_all(folder, seeds, limit, steps=STEPS):
  """Runs what the record lacks of these seeds, for at most `limit` seconds."""
  lab, path, end = Lab(folder), folder / "runs.jsonl", time.perf_counter() + limit
  for key in list_runs(study.read(path, KEY), seeds):
    if time.perf_counter() > end: return print("Stopped by --limit; the same command goes on.")
    if key in study.read(path, KEY): continue
    row = dict(zip(KEY, key)) | lab.train(*key, steps)
    with path.open("a") as f: f.write("\n" + json.dumps(row))  # The last one may be cut.
    print(*key, {name: round(x, 3) for name, x in summarise(row).items()}, row["seconds"],
          row["cpu_seconds"], flush=True)


def summarise(row):
  """The measures of a run."""
  gold, proxy = (np.convolve(row[name], [0.5, 0.5], "valid") for name in ("gold", "proxy"))
  return dict(final=float(gold[-1]), over=float(gold.max() - gold[-1]),
              run=float(np.mean(row["gold"])), gap=float(proxy[-1] - gold[-1]),
              kl=row["kl"][-1], form=row["form"][-1])


def write_table(known, file):
  """Writes a line for each run; a curve is its numbers with spaces between them."""
  with file.open("w", newline="") as f:
    out = csv.writer(f, lineterminator="\n")
    out.writerow([*KEY, *CURVES])
    for key, row in sorted(known.items(), key=lambda x: str(x[0])):
      out.writerow(["" if x is None else x for x in key]
                   + [" ".join(map(str, row[name])) for name in CURVES])


def read_table(file):
  """{key: run} of a file of `write_table`."""
  with file.open(newline="") as f: rows = list(csv.DictReader(f))
  number = lambda x: None if x == "" else float(x)
  return {(r["arm"], float(r["rate"]), number(r["number"]), int(r["seed"])):
          {name: [float(x) for x in r[name].split()] for name in CURVES} for r in rows}


def write_ranks(folder, file):
  """Writes a line for each scorer: the share of held-out pairs that it ranks right."""
  with file.open("w", newline="") as f:
    out = csv.writer(f, lineterminator="\n")
    out.writerow(["seed", "scorer", "pairs"])
    for seed, name in itertools.product(study.SEEDS, SCORERS):
      summary = json.loads((folder / str(seed) / name / "summary.json").read_text())
      out.writerow([seed, name, round(summary["prm"]["held out"]["pair/sum"]["mean"], 5)])


def mean_ranks(file):
  """{seed: the mean of its scorers} of a file of `write_ranks`."""
  with file.open(newline="") as f: rows = list(csv.DictReader(f))
  return {int(seed): float(np.mean([float(r["pairs"]) for r in rows if r["seed"] == seed]))
          for seed in {r["seed"] for r in rows}}


def of_arms(known, rates=RATES):
  """{name: (rate, number, {seed: run})} of the SEEDS that are there."""
  return {name: (*of[1:], {s: known[*of, s] for s in study.SEEDS if (*of, s) in known})
          for name, of in list_arms(known, rates).items()}


def tabulate(known, rates=RATES):
  """Markdown of the measures of arms at the best of these rates."""
  arms, cell = of_arms(known, rates), _cells(known, rates)
  def mean(name, arm): return np.mean([summarise(r)[name] for r in arms[arm][2].values()])
  rows = [[f"`{arm}`", f"{rate:g}", "" if number is None else f"{number:g}", cell("final", arm),
           cell("final", arm, "one") if arm != "one" else "",
           *(cell(name, arm) for name in ("run", "over", "gap")),
           f"{mean('kl', arm):.1f}", f"{mean('form', arm):.2f}"]
          for arm, (rate, number, _) in arms.items()]
  return tables.markdown(["arm", "rate", "number", "final gold", "less `one`", "gold over the run",
                          "over-optimisation", "gap", "KL", "right form"], rows)


def compare(known, rates=RATES):
  """Markdown of the differences of arms at the best of these rates to `one`."""
  cell = _cells(known, rates)
  rows = [[f"`{arm}`", *(cell(name, arm, "one") for name in ("final", "run", "over", "gap"))]
          for arm in list_arms(known, rates) if arm != "one"]
  return tables.markdown(["less `one`", "final gold", "gold over the run", "over-optimisation",
                          "gap"], rows)


def _cells(known, rates):
  """A function (measure, arm, arm that is subtracted) -> its mean with interval over seeds."""
  measured = {arm: {s: summarise(r) for s, r in of_seed.items()}
              for arm, (_, _, of_seed) in of_arms(known, rates).items()}
  def cell(name, arm, less=None):
    seeds = sorted(measured[arm].keys() & measured[less or arm].keys())
    return "{mean:.3f} [{low:.3f}, {high:.3f}]".format(**accuracy.bootstrap_mean([
        measured[arm][s][name] - (measured[less][s][name] if less else 0) for s in seeds]))
  return cell


def draw(known, file):
  """Draws gold and proxy along the root of the KL, with 95% intervals over seeds.

  A panel is an arm with scorers; above at its own rate, below at MIDDLE.
  """
  plt, names = plots.pyplot(), [arm for arm in ARMS if arm != "gold"]
  fig, axes = plt.subplots(2, len(names), figsize=(13, 5), layout="constrained", sharey=True)
  for row, rates in zip(axes, (RATES, (MIDDLE,))):
    arms = of_arms(known, rates)
    for axis, arm in zip(row, names):
      rate, number, of_seed = arms[arm]
      x = np.sqrt(np.maximum(np.mean([r["kl"] for r in of_seed.values()], axis=0), 0))
      for name, color, style in (("proxy", "C3", "--"), ("gold", "C0", "-")):
        mean, low, high = np.transpose([tables.interval(at) for at in zip(
            *(r[name] for r in of_seed.values()))])
        axis.plot(x, mean, style, color=color, marker="o", markersize=3, label=name)
        axis.fill_between(x, low, high, color=color, alpha=0.2, linewidth=0)
      more = "" if number is None else f", {number:g}"
      axis.set_title(f"{arm}{more}, rate {rate:g}", fontsize=9)
      axis.set(ylim=(0, 1), xlim=(0, None))
      axis.grid(alpha=0.3)
    row[0].set_ylabel("chance of being right")
  for axis in axes[-1]: axis.set_xlabel("root of the KL (nats)")
  axes[0, 0].legend()
  fig.savefig(file, dpi=110)


def main():
  args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  args.add_argument("--folder", type=pathlib.Path, default=FOLDER)
  args.add_argument("--prepare", action="store_true", help="trains the scorers")
  args.add_argument("--table", action="store_true")
  args.add_argument("--summary", type=pathlib.Path, metavar="FILE",
                    help="a line for each run, and in FILE_scorers for each scorer")
  args.add_argument("--figure", type=pathlib.Path, metavar="FILE")
  args.add_argument("--seeds", type=int, nargs="+", default=[*study.TUNING, *study.SEEDS])
  args.add_argument("--limit", type=float, default=math.inf, help="seconds")
  args.add_argument("--steps", type=int, default=STEPS)
  args = args.parse_args()
  if args.summary:
    write_ranks(args.folder, args.summary.with_stem(args.summary.stem + "_scorers"))
    return write_table(study.read(args.folder / "runs.jsonl", KEY), args.summary)
  if args.figure: return draw(read_table(TABLE), args.figure)
  if args.table:
    known = read_table(TABLE)
    return sys.stdout.write("\n\n".join(make(known, rates) for make in (tabulate, compare)
                                        for rates in (RATES, (MIDDLE,))) + "\n")
  if args.prepare: return [prepare(args.folder, seed) for seed in args.seeds]
  if tuning := [s for s in args.seeds if s in study.TUNING]:
    run_all(args.folder, tuning, args.limit, args.steps)
  run_all(args.folder, [s for s in args.seeds if s not in tuning], args.limit, args.steps)


if __name__ == "__main__":
  main()
