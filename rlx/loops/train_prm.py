"""Trains a PRM on stored completions: an implicit PRM on verdicts, or one with a head on labels.

  rlx train_prm papers/implicit_prm workdir=/tmp/rlx/implicit
  rlx train_prm papers/implicit_prm workdir=/tmp/rlx/hard train_prm.labels=hard

If train_prm.rollouts or train_prm.held_out names no file, the policy samples these
completions into the workdir. The same command with the same workdir resumes the run.
rlx.tools.evaluate and rlx.tools.convert read the checkpoints.
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
from rlx.learner import hosts
from rlx.loops import collect
from rlx.loops import prm_sets
from rlx.loops import rl
from rlx.loops import stored
from rlx.tools import evaluate as evaluate_tool
from rlx.verifiers import answers as answers_lib


def train(config, workdir):
  """Trains to config.steps steps of prompts.per_step groups each, from the newest checkpoint.

  Returns:
    the summary, which is also written to <workdir>/summary.json: the metrics of `evaluate`,
    and the numbers of completions, of tokens sampled for them and of tokens trained on.
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
  # A head is trained on single completions; an implicit PRM's loss may compare a group's.
  groups = stored.grouped(completions) if c.train_prm.labels is None else [completions]
  groups = stored.cut(groups, c.rollouts.per_prompt)
  writer = io_metrics.Writer(workdir, first_step=state.step, fetch=hosts.fetch)
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
      more |= curve_metrics(evaluate(run, state, held_out))
      clock.lap("eval")
    writer.write(step, metrics | more)
    clock.end_step()
    if rl.is_due(step + 1, c.checkpoint.every) or step + 1 == c.steps:
      host.seconds = clock.total(host.seconds_before)
      writer.flush()
      rl.save(run, checkpoints, state, host)
  writer.close()
  checkpoints.close()
  evaluation = evaluate(run, state, held_out)
  run.pool.close()
  clock.lap("eval")
  accuracies = [l["prm/accuracy"] for l in io_metrics.read(workdir) if "prm/accuracy" in l]
  summary = dict(
      evaluation, labels=c.train_prm.labels, loss=c.prm.loss.name, steps=int(state.step),
      seed=c.seed, completions=len(completions),
      sampled_tokens=stored.sampled_tokens(completions),
      training_tokens=host.training_tokens,
      # A mean over steps, as in the RL loop; None for a PRM with a head.
      prm_accuracy=float(np.nanmean(accuracies[-10:])) if accuracies else None,
      seconds=clock.total(host.seconds_before))
  strict_json.write(workdir / "summary.json", summary)
  curves.draw(workdir)
  curves.draw_at_k(workdir / "at_k.png", evaluation)
  evaluate_tool.show(evaluation)
  print("{completions} completions, {sampled_tokens} tokens sampled for them, "
        "{training_tokens} trained on".format(**summary))
  return summary


def data(run, state, workdir):
  """Reads (training completions, held-out ones); samples and labels those not yet stored."""
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


def evaluate(run, state, completions):
  """Evaluates the PRM on held-out completions.

  Returns:
    the metrics of tools/evaluate.py's `at_k`, and under "prm" those of prm_sets.py:
    preferences, and the F1 of first errors if rows have a `label`.
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
  metrics = evaluate_tool.at_k(outcome_PG, answers, scores)
  label_B = np.array([x.row.get("label") for x in rows], float)  # None is NaN.
  metrics["prm"] = {"held out": prm_sets.sampled_preferences(scores, outcome_PG)}
  if not np.isnan(label_B).all():
    metrics["prm"]["held out"] |= prm_sets.first_error_f1(
        steps, label_B, np.repeat(np.arange(len(groups)), length_P))
  return metrics


def curve_metrics(evaluation):
  """{metric: number}: the metrics of `evaluate` that are logged during training."""
  k = max(int(name[5:]) for name in evaluation if name.startswith("pass@"))
  f1 = evaluation["prm"]["held out"].get("f1/step", dict(mean=float("nan")))
  return {f"eval/best/{a}": evaluation[f"best@{k}/{a}"]["mean"] for a in ("min", "sum")} | {
      "eval/f1/step": f1["mean"]}


if __name__ == "__main__":
  cli.main(train)
