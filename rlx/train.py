"""The RL loop: PRIME and everything that fits its stages.

  python -m rlx.train --config=configs/quickstart.py --workdir=/tmp/rlx/quickstart

Run again with the same workdir to resume. Any key of the config can be set:
`--config.learner.optimizer.lr=1e-4`.
"""
import json
import pathlib

import jax
import numpy as np

from rlx import build
from rlx import cli
from rlx import draw
from rlx import preflight
from rlx.core import records
from rlx.core import rng
from rlx.evals import accuracy
from rlx.io import checkpoint
from rlx.io import curves
from rlx.io import metrics as io_metrics
from rlx.io import progress
from rlx.rollouts import padding


def train(config, workdir):
  """Trains to config.steps, or on from the workdir's newest checkpoint.

  Returns:
    the summary, which is also in <workdir>/summary.json.
  """
  if config.train_prm.labels is not None:
    raise ValueError(f"train_prm.labels={config.train_prm.labels!r}: None; the rewards of "
                     "the loop read an implicit PRM.")
  clock = progress.Clock()
  run = build.build(config)
  workdir = pathlib.Path(workdir)
  cli.record(config, workdir)
  clock.lap("build")
  preflight.check(run, workdir)
  clock.lap("compile")
  checkpoints = checkpoint.Checkpoints(workdir, max_to_keep=config.checkpoint.keep)
  state, host = restore(run, checkpoints)
  writer = io_metrics.Writer(workdir, first_step=state.step,
                             trackers=config.log.writers, config=config.to_dict())
  clock.lap("build")
  if host["rehearsed"] is None: host["rehearsed"] = draw.solved(run, state)
  if host["before"] is None:
    host["before"] = evaluate(run, state, "final", config.eval.final_samples)
    clock.lap("eval")
  bar = progress.Bar(config.steps, state.step)
  for step in range(state.step, config.steps):
    held_out = {}
    if is_due(step, config.eval.every):
      held_out = evaluate(run, state, "curve", 1) if step else host["before"]
      clock.lap("eval")
    rollouts, judged, metrics = draw.batch(run, state, host, step, clock)
    scored = run.score(state, rollouts, **judged)           # log-probs of all models
    clock.lap("score", scored)
    state, scored, prm_metrics = run.learn_prm(state, rollouts, scored)
    clock.lap("prm", (state.prm, scored))
    scored, reward_metrics = run.advantage(state, scored)   # rewards, then advantages
    state, value_metrics = run.learn_value(state, rollouts, scored, step)
    state, policy_metrics = run.learn_policy(state, rollouts, scored, step)
    clock.lap("policy", state.policy)
    metrics |= prm_metrics | reward_metrics | value_metrics | policy_metrics
    metrics |= {f"eval/{k}": v["mean"] for k, v in held_out.items()}
    state = run.follow(state, metrics)                      # KL coefficient, stale copies
    if is_due(step, config.log.completions_every):
      writer.table(step, completion_rows(run, rollouts, scored))
    writer.write(step, metrics | clock.metrics(metrics["rollouts/tokens"]))
    stop_if_stuck(writer.last, host, config.learner.max_skipped)
    if is_due(step + 1, config.checkpoint.every) or step + 1 == config.steps:
      host["seconds"] = clock.total(host["seconds_before"])
      save(run, checkpoints, state, host)
    bar.show(writer.last)
    clock.end_step()
  bar.close()
  writer.close()
  checkpoints.close()
  summary = finish(run, state, host, workdir, clock)
  run.pool.close()
  return summary


def evaluate(run, state, stream, repeats, which=("greedy", "sampled")):
  """Held-out accuracy: {"greedy", "sampled"} -> dict(mean, low, high, ...)."""
  c = run.config
  found = {}
  for name in which:
    sample = run.eval_sample[name]
    found[name] = accuracy.interval(accuracy.outcomes(
        lambda prompts, key: sample(  # pylint: disable=cell-var-from-loop
            state.full("policy"), *run.encode(prompts), key),
        run.verify, run.eval_prompts, batch=c.eval.batch,
        repeats=1 if name == "greedy" else repeats,
        key=rng.key(c.seed, f"eval-{stream}")))
  return found


def completion_rows(run, rollouts, scored):
  """The first completions of the batch as readable rows, with their rewards."""
  n, x = run.config.log.completions, rollouts.prompt_width
  completions = padding.completions(rollouts)[:n]
  rollouts, scored = jax.device_get((rollouts, scored))
  prompts = [run.tokenizer.decode(ids[x - k:x]) for ids, k in zip(
      rollouts.tokens_BS[:n], rollouts.prompt_len_B)]
  process_BT = (None if scored.prm_logps_BT is None
                else scored.prm_logps_BT - scored.ref_logps_BT)
  rows = []
  for b, (prompt, ids) in enumerate(zip(prompts, completions)):
    mask_T, verdict = scored.mask_BT[b], float(scored.outcome_B[b])
    rows.append(dict(
        prompt=prompt, completion=run.tokenizer.decode(ids),
        verdict=None if np.isnan(verdict) else verdict,
        finish=records.FINISH[int(rollouts.finish_B[b])],
        tokens=run.tokenizer.pieces(ids),
        log_ratio=None if process_BT is None else
        process_BT[b][mask_T].astype(float).round(4).tolist(),
        advantages=scored.advantages_BT[b][mask_T].astype(float).round(4).tolist()))
  return rows


def restore(run, checkpoints):
  """(state, host): the newest checkpoint's, or the start's."""
  state = run.init()
  host = dict(before=None, after=None, buffer=[], stuck=0, seconds=None,
              rehearsed=None, prompts=None)
  if checkpoints.latest is not None:
    kept = state
    state, saved = checkpoints.restore(_saved(state))
    host |= saved  # One written by an earlier version may lack entries.
    state = state.replace(reference=kept.reference, prm_reference=kept.prm_reference,
                          frozen=kept.frozen)
    if run.prompts is not None: run.prompts.restore(host["prompts"])
  host["seconds_before"] = host["seconds"]
  return state, host


def save(run, checkpoints, state, host):
  """State and host state of this step. References that do not change are not saved."""
  host = {k: v for k, v in host.items() if k != "seconds_before"}
  prompts = None if run.prompts is None else run.prompts.state()
  checkpoints.save(state.step, _saved(state), host | dict(prompts=prompts))


def _saved(state):
  return state.replace(reference=None, prm_reference=None, frozen=None)


def stop_if_stuck(metrics, host, limit):
  """Stops a run whose gradients stay non-finite; its parameters are the last good ones."""
  host["stuck"] = host["stuck"] + 1 if metrics.get("policy/nonfinite") else 0
  if host["stuck"] >= limit:
    raise ValueError(f"learner.max_skipped={limit}: that many updates in a row had "
                     "a gradient that is not finite; parameters are as before them. "
                     "Lower learner.optimizer.lr or look at metrics.jsonl.")


def finish(run, state, host, workdir, clock):
  """Evaluates, writes summary.json and curves.png, prints what they say."""
  c = run.config
  after = host["before"]
  if c.steps:
    after = evaluate(run, state, "final", c.eval.final_samples)
    clock.lap("eval")
  accuracies = [l["prm/accuracy"] for l in io_metrics.read(workdir) if "prm/accuracy" in l]
  summary = dict(before=host["before"], after=after, steps=state.step,
                 # A mean over steps: one step has few pairs once most answers are right.
                 prm_accuracy=float(np.nanmean(accuracies[-10:])) if accuracies else None,
                 seed=c.seed, seconds=clock.total(host["seconds_before"]))
  (workdir / "summary.json").write_text(json.dumps(summary, indent=2))
  curves.draw(workdir)
  cli.report(summary, workdir)
  return summary


def is_due(step, every):
  return bool(every) and step % every == 0


if __name__ == "__main__":
  cli.main(train)
