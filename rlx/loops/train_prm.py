"""Trains a PRM on stored completions: implicit, of verdicts, or with a head, of step labels.

  python -m rlx.loops.train_prm --config=configs/papers/implicit_prm.py --workdir=/tmp/rlx/implicit
  python -m rlx.loops.train_prm --config=configs/papers/implicit_prm.py --workdir=/tmp/rlx/hard --config.train_prm.labels=hard

Completions that train_prm.rollouts and train_prm.held_out do not name are sampled by the
policy into the workdir. Run again with the same workdir to resume. rlx.tools.evaluate and
rlx.tools.convert read what it leaves.
"""
import pathlib

import jax
import numpy as np
import tqdm

from rlx import build
from rlx import cli
from rlx.evals import prm_metrics
from rlx.io import checkpoint
from rlx.io import curves
from rlx.io import metrics as io_metrics
from rlx.io import progress
from rlx.io import strict_json
from rlx.loops import collect
from rlx.loops import prm_sets
from rlx.loops import rl
from rlx.loops import stored
from rlx.tools import evaluate
from rlx.verifiers import answers as answers_lib


def train(config, workdir):
  """Trains config.steps steps of prompts.per_step groups, or on from the newest checkpoint.

  Returns:
    the summary, which is also in <workdir>/summary.json: what `judge` gives, and
    completions, sampled_tokens and training_tokens, of completions, that it took.
  """
  c, workdir, clock = config, pathlib.Path(workdir), progress.Clock()
  if c.prm.order == "none":
    raise ValueError("prm.order='none': single, double or reverse; the PRM learns here.")
  given = c.train_prm.rollouts is not None and c.train_prm.held_out is not None
  run = build.build(c, splits=() if given and c.train_prm.labels is None
                    else ("train", "eval"), learns="prm")
  cli.record(c, workdir)
  checkpoints = checkpoint.Checkpoints(workdir, max_to_keep=c.checkpoint.max_to_keep)
  state, host = rl.restore(run, checkpoints)
  if state.prm is None:
    raise ValueError("rewards: none reads a PRM, so there is none; add implicit.process.")
  clock.lap("build")
  completions, held_out = data(run, state, workdir)
  clock.lap("sample")
  # A head learns of each completion by itself, a loss may compare those of a group.
  groups = stored.grouped(completions) if c.train_prm.labels is None else [completions]
  groups = stored.cut(groups, c.rollouts.per_prompt)
  writer = io_metrics.Writer(workdir, first_step=state.step)
  ranks = jax.jit(prm_metrics.accuracy)
  for step in tqdm.tqdm(range(state.step, c.steps), initial=state.step, total=c.steps,
                        unit="step"):
    rollouts, outcome_B, labels_BT = stored.batch(groups, step, run)
    host.training_tokens += int(rollouts.completion_len_B.sum())
    annotated = run.annotate(state, collect.Collected([], rollouts, outcome_B, None))
    more = {}
    if c.train_prm.labels is None:
      placed = run.score(state, run.place(annotated))
      batch = placed.batch
      more["prm/accuracy"] = ranks(batch.prm_logps_BT, batch.prm_ref_logps_BT, batch.action_BT,
                                   batch.outcome_PG, batch.learn_PG)
      more["prm/beta"] = batch.prm_beta_B[0]
    else:
      placed = run.place(annotated.replace(
          batch=annotated.batch.replace(labels_BT=labels_BT))).append(0)
    state, _, metrics = run.learn_prm(state, placed)
    state = state.replace(step=step + 1)
    clock.lap("prm", state.prm)
    if rl.is_due(step + 1, c.eval.every) and step + 1 < c.steps:
      more |= in_short(judge(run, state, held_out))
      clock.lap("eval")
    writer.write(step, metrics | more)
    clock.end_step()
    if rl.is_due(step + 1, c.checkpoint.every) or step + 1 == c.steps:
      host.seconds = clock.total(host.seconds_before)
      writer.flush()
      rl.save(run, checkpoints, state, host)
  writer.close()
  checkpoints.close()
  found = judge(run, state, held_out)
  run.pool.close()
  clock.lap("eval")
  accuracies = [l["prm/accuracy"] for l in io_metrics.read(workdir) if "prm/accuracy" in l]
  summary = dict(
      found, labels=c.train_prm.labels, loss=c.prm.loss.name, steps=int(state.step),
      seed=c.seed, completions=len(completions),
      sampled_tokens=stored.sampled_tokens(completions),
      training_tokens=host.training_tokens,
      # A mean over steps, as in the RL loop; None of a PRM with a head.
      prm_accuracy=float(np.nanmean(accuracies[-10:])) if accuracies else None,
      seconds=clock.total(host.seconds_before))
  strict_json.write(workdir / "summary.json", summary)
  curves.draw(workdir)
  curves.draw_at_k(workdir / "at_k.png", found)
  evaluate.show(found)
  print("{completions} completions, {sampled_tokens} tokens sampled for them, "
        "{training_tokens} trained on".format(**summary))
  return summary


def data(run, state, workdir):
  """(completions to learn from, held-out ones), sampled and labelled if they are not stored."""
  c = run.config
  verifier = next((p for p in c.eval.prm_sets if not p.endswith(".jsonl")), None)
  held_out, rollouts = c.train_prm.held_out, c.train_prm.rollouts
  if held_out is None:
    held_out = workdir / "held_out.jsonl"
    stored.sample(held_out, run, state, run.eval_prompts, run.sampling.sampled,
                  batch=c.eval.batch, group=c.eval.samples, stream="held_out",
                  verifier=verifier)
  if rollouts is None:
    rollouts = workdir / "rollouts.jsonl"
    stored.sample(rollouts, run, state, run.prompts.first(c.train_prm.prompts),
                  run.sampling.train,
                  batch=c.prompts.per_step, group=c.rollouts.per_prompt, stream="rollouts")
  completions = stored.read(rollouts, run)
  if c.train_prm.labels is not None:
    if any("values" not in x.row for x in completions):
      stored.label(workdir / "labelled.jsonl", run, state, completions)
      completions = stored.read(workdir / "labelled.jsonl", run)
    completions = stored.labelled(completions, run)
  return stored.affordable(completions, c.train_prm.max_sampled,
                           spread=c.train_prm.labels is not None), stored.read(held_out, run)


def judge(run, state, completions):
  """What the PRM is worth on held-out completions.

  Returns:
    what `evaluate.at_k` gives, and under "prm" the numbers of prm_sets.py on them:
    F1 of first errors, where rows have a `label`, and preferences.
  """
  groups = stored.grouped(completions)
  rows = [x for group in groups for x in group]
  length_P = np.array([len(group) for group in groups])
  column_G = np.arange(length_P.max())
  at_PG = (np.cumsum(length_P) - length_P)[:, None] + column_G  # Row of each completion.
  has_PG = column_G < length_P[:, None]
  spread = lambda x_B: np.where(has_PG, np.asarray(x_B, float)[np.where(has_PG, at_PG, 0)],
                                np.nan)
  steps = prm_sets.score(run, state, [x.prompt for x in rows], [x.ids for x in rows])
  scores = {k: spread(s_B).ravel() for k, s_B in prm_sets.scores(steps).items()}
  stated = answers_lib.stated([x.row["completion"] for x in rows], run.config.eval.answer)
  answers = [stated[i] if has else None for i, has in zip(at_PG.ravel(), has_PG.ravel())]
  outcome_PG = spread([x.verdict for x in rows])
  found = evaluate.at_k(outcome_PG, answers, scores)
  label_B = np.array([x.row.get("label") for x in rows], float)  # None is NaN.
  found["prm"] = {"held out": prm_sets.sampled_preferences(scores, outcome_PG)}
  if not np.isnan(label_B).all():
    found["prm"]["held out"] |= prm_sets.first_error_f1(
        steps, label_B, np.repeat(np.arange(len(groups)), length_P))
  return found


def in_short(found):
  """{metric: number} of what `judge` gives, for the curves."""
  k = max(int(name[5:]) for name in found if name.startswith("pass@"))
  f1 = found["prm"]["held out"].get("f1/step", dict(mean=float("nan")))
  return {f"eval/best/{a}": found[f"best@{k}/{a}"]["mean"] for a in ("min", "sum")} | {
      "eval/f1/step": f1["mean"]}


if __name__ == "__main__":
  cli.main(train)
