"""Does a trained scorer rank held-out pairs? On rlx's own completions, and on SmolLM2's.

Fixed before any run:

  own       the quickstart's policy on its chains of digit operations. 8,192 completions of 1,024
            training questions give pairs of a right and a wrong completion of the same question,
            two of each question that has them, stored as `chosen` and `rejected`. A head on the
            policy learns them with `reward_model.bradley_terry`, all parameters trained.
  smollm2   SmolLM2-135M-Instruct on sums of two or three one-digit numbers (chain_sum of
            reasoning-gym, two worked examples in the chat, temperature 0.5, at most 32 tokens), the
            task of configs/smollm2_prime.py. 8 completions each of 64 training questions and of 48
            held-out ones. A head with adapters of rank 8 learns all pairs of a question with
            `reward_model.bradley_terry`, at learning rate 3e-4, 16 steps of 8 questions.
  yes_no    the same completions; the probability of " yes" against " no" after the completion and
            " Is this right?", with adapters of rank 8, learns the verdicts (`reward_model.bce`).

Measure: the share of pairs of held-out questions in which the right completion has the higher
score; pairs are the first right completion of a question and each of its wrong ones (`pair/sum` of
the summary), with a 95% bootstrap interval over questions. No question is in both parts. A scorer
ranks above chance if the interval is above 0.5. Beside it stands what the length alone would give:
the shorter, or the longer, of a pair. Nothing is tuned, and there is one seed.

  python -m experiments.scorers.held_out_pairs own
  python -m experiments.scorers.held_out_pairs smollm2 yes_no --model=WHEEL

They take --folder, and go on where they were stopped. The record is FOLDER/record.jsonl;
held_out_pairs.jsonl has the lines of RESULTS.md. The measures of a line are those of `summarise`.
"""
import argparse
import collections
import itertools
import json
import pathlib
import time

import numpy as np

from experiments.claims.environments import tabular
from experiments.prime import language
from rlx.build import load
from rlx.grids import tables
from rlx.loops import prm_sets, train_scorer

LOSS = dict(train_scorer__labels="outcome",
            train_scorer__loss=dict(name="reward_model.bradley_terry"))
ASKED = dict(train_scorer__head="yes_no", train_scorer__question=" Is this right?",
             train_scorer__yes=" yes", train_scorer__no=" no",
             train_scorer__loss=dict(name="reward_model.bce"))
RECORDED = pathlib.Path(__file__).with_suffix(".jsonl")
_SMOLLM2 = "SmolLM2-135M-Instruct on `chain_sum`"
# {arm: a line of the record -> what the table calls the completions and what was learned}.
LEARNED = dict(
    own=lambda row: ("rlx's own: the quickstart's policy on its chains",
                     f"{row['pairs']:,} pairs, Bradley-Terry, all parameters"),
    smollm2=lambda row: (_SMOLLM2, f"{row['completions']:,} completions of 64 questions, "
                         "Bradley-Terry on all pairs of a question, adapters of rank 8"),
    yes_no=lambda row: (_SMOLLM2, "the same, verdicts, \" yes\" or \" no\", adapters of rank 8"))


def configure(arm, folder, model=None):
  """The config of an arm."""
  if arm == "own":
    c = tabular.changed(
        load.load_config("papers/implicit_prm"), **LOSS, train_scorer__prompts=1024, steps=100,
        eval__prompts=256, eval__batch=256, eval__samples=8, rewards__process__granularity="token")
    c.eval.prm_sets = ()
    return c
  c = tabular.changed(
      load.load_config("smollm2_prime:chain_sum-prm"), **LOSS, model__path=model,
      train_scorer__prompts=64, steps=16, prompts__per_step=8, rollouts__per_prompt=8,
      prm__optimizer__lr=3e-4, lora__rank=8, eval__prompts=48, eval__batch=16, eval__samples=8,
      checkpoint__every=2)
  if arm == "smollm2": return c
  return tabular.changed(c, **ASKED, **{
      f"train_scorer__{name}": str(folder / "smollm2" / f"{name}.jsonl")
      for name in ("rollouts", "held_out")})


def write_pairs(rollouts, path, per_question=2):
  """Writes pairs of a right and a wrong completion of the same question; how many."""
  groups, pairs = collections.defaultdict(lambda: ([], [])), []
  for row in map(json.loads, rollouts.open()):
    if row["finish"] == "eos" and row["verdict"] in (0, 1):
      groups[row["group"]][int(row["verdict"])].append(row)
  for wrong, right in groups.values():
    pairs += [dict(prompt=b["prompt"], chosen=b["completion"], rejected=a["completion"])
              for b, a in itertools.islice(zip(right, wrong), per_question)]
  path.write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
  return len(pairs)


def run(arm, folder, model):
  """The record of an arm; None if a signal stopped it."""
  start, workdir, c = time.monotonic(), folder / arm, configure(arm, folder, model)
  more = {}
  if arm == "own":
    sampled = folder / "own_sampled"
    if train_scorer.train(tabular.changed(c, steps=0), sampled) is None: return None
    more["pairs"] = write_pairs(sampled / "rollouts.jsonl", folder / "pairs.jsonl")
    c = tabular.changed(
        c, train_scorer__rollouts=str(folder / "pairs.jsonl"), rollouts__per_prompt=2,
        train_scorer__held_out=str(sampled / "held_out.jsonl"))
  summary = train_scorer.train(c, workdir)
  if summary is None: return None
  return dict(arm=arm, **more, seconds=round(time.monotonic() - start), **summarise(
      summary, pathlib.Path(c.train_scorer.held_out or workdir / "held_out.jsonl"),
      (folder / ("own_sampled" if arm == "own" else "smollm2")) / "rollouts.jsonl"))


def summarise(summary, held_out, sampled):
  """The measures of a trained scorer.

  Args:
    summary: what summary.json has.
    held_out: file of the held-out completions.
    sampled: of those of the training questions, also if pairs of them are learned.
  """
  rows = [json.loads(line) for line in held_out.open()]
  learned = [json.loads(line)["verdict"] for line in sampled.open()]
  group = len(rows) // len({row["group"] for row in rows})
  verdict_PG = np.reshape([np.nan if r["verdict"] is None else r["verdict"] for r in rows],
                          (-1, group))
  right_PG = verdict_PG > 0.5
  length_B = np.array([len(row["completion"]) for row in rows], float)
  by_length = prm_sets.compare_sampled(dict(longer=length_B, shorter=-length_B), verdict_PG)
  return dict(
      completions=summary["completions"], sampled_tokens=summary["sampled_tokens"],
      learned_right=float(np.mean(np.array(learned, float) > 0.5)),
      right=float(np.mean(right_PG)), held_out_questions=len(right_PG),
      questions_with_pairs=int(np.sum(right_PG.any(axis=1) & (verdict_PG <= 0.5).any(axis=1))),
      pair=summary["prm"]["held out"]["pair/sum"],
      **{name: by_length[f"pair/{name}"] for name in ("longer", "shorter")},
      best={name: summary[name] for name in ("pass@1", "best@8/sum", "pass@8")})


def tabulate(record):
  """Markdown of the lines of a record."""
  def cell(x): return "{mean:.3f} [{low:.3f}, {high:.3f}]".format(**x)
  rows = [[*LEARNED[row["arm"]](row),
           f"{row['questions_with_pairs']} of {row['held_out_questions']}", cell(row["pair"]),
           f"{cell(row['longer'])}, {cell(row['shorter'])}", f"{row['seconds']:,}"]
          for row in record]
  return tables.markdown(["completions", "learned from", "held-out questions with pairs",
                          "accuracy on pairs", "of the longer, the shorter", "seconds"], rows)


def main(*words):
  args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  args.add_argument("arms", nargs="+", choices=("own", "smollm2", "yes_no"))
  args.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("runs/held_out_pairs"))
  args.add_argument("--model", help="of SmolLM2: wheel, .gguf file or folder")
  args = args.parse_args(words or None)
  args.folder.mkdir(parents=True, exist_ok=True)
  for arm in args.arms:
    model = None if arm == "own" else language.find_model(args.model)
    if (row := run(arm, args.folder, model)) is None: return
    with (args.folder / "record.jsonl").open("a") as f: f.write(json.dumps(row) + "\n")
    print(json.dumps(row, indent=1))


if __name__ == "__main__":
  main()
