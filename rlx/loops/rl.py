"""The RL loop: sampling, verification, rewards, advantages and updates.

  rlx train quickstart workdir=/tmp/rlx/quickstart

The same command with the same workdir resumes the run, also after SIGTERM or SIGKILL. Every
key of the config can be set, as in `learner.optimizer.lr=1e-4`.
"""
import contextlib
import dataclasses
import pathlib

import numpy as np

from rlx import build
from rlx import cli
from rlx.core import records
from rlx.core import rng
from rlx.evals import accuracy
from rlx.io import checkpoint
from rlx.io import curves
from rlx.io import metrics as io_metrics
from rlx.io import preemption
from rlx.io import progress
from rlx.io import strict_json
from rlx.learner import hosts
from rlx.loops import collect
from rlx.rollouts import padding
from rlx.tools import preflight


def train(config, workdir):
  """Trains to config.steps, starting from the workdir's newest checkpoint if there is one.

  Returns:
    the summary, which is also written to <workdir>/summary.json; None if SIGTERM stopped the
    run before the last step. The same call then resumes it.
  """
  if config.train_prm.labels is not None:
    raise ValueError(f"train_prm.labels={config.train_prm.labels!r}: None; the rewards of "
                     "the loop read an implicit PRM.")
  with (contextlib.closing(progress.Clock(config.log.silence_s)) as clock,
        contextlib.closing(preemption.Notice()) as notice):
    return _train(config, workdir, clock, notice)


@dataclasses.dataclass
class HostState:
  """The state of a run that is kept on the host; saved with every checkpoint."""
  before: dict | None = None       # held-out accuracy before training
  buffer: list = dataclasses.field(default_factory=list)  # ids of prompts for the next step
  stuck: int = 0                   # consecutive updates without a finite loss and gradient
  seconds: float | None = None     # run time up to the last checkpoint, restarts included
  seconds_before: float | None = None  # run time before the last restart
  rehearsed: dict | None = None    # prompt id -> token ids, see collect.solved
  prompts: dict | None = None      # state of the prompt iterator
  training_tokens: int = 0         # tokens that a PRM was trained on (loops/train_prm.py)


def _train(config, workdir, clock, notice):
  workdir = pathlib.Path(workdir)
  run = build.build(config, recorded=cli.recorded(workdir))
  cli.record(config, workdir, device_bytes=run.sampling.device_bytes)
  loop = run.loop
  checkpoints = checkpoint.Checkpoints(workdir, max_to_keep=loop.max_to_keep)
  checkpoints.check_room(_saved(run.shapes()))
  clock.lap("build")
  preflight.check(run, workdir)
  clock.lap("compile")
  state, host = restore(run, checkpoints)
  writer = io_metrics.Writer(workdir, first_step=state.step, writes=hosts.is_first(), fetch=hosts.fetch,
                             trackers=loop.writers, config=config.to_dict())
  clock.lap("build")
  if host.rehearsed is None: host.rehearsed = collect.solved(run.collector, state)
  if host.before is None:
    host.before = evaluate(run, state, "final", loop.final_samples)
    clock.lap("eval")
  bar = progress.Bar(loop.steps, state.step, is_shown=hosts.is_first())
  for step in range(state.step, loop.steps):
    held_out = {}
    if is_due(step, loop.eval_every):
      held_out = evaluate(run, state, "curve", 1) if step else host.before
      clock.lap("eval")
    state, annotated, batch, metrics = iteration(run, state, host, step, clock)
    metrics |= {f"eval/{k}": v["mean"] for k, v in held_out.items()}
    if is_due(step, loop.completions_every):
      writer.table(step, completion_rows(run, annotated, batch))
    writer.write(step, metrics | clock.metrics(metrics["rollouts/tokens"]))
    host.stuck = host.stuck + 1 if is_skipped(metrics) else 0
    is_last = (step + 1 == loop.steps or hosts.any_of(notice.is_given)
               or host.stuck >= loop.max_skipped)
    if is_due(step + 1, loop.checkpoint_every) or is_last:
      writer.flush()  # A resumed run does not write the lines before its checkpoint again.
      host.seconds = clock.total(host.seconds_before)
      save(run, checkpoints, state, host)
    bar.show(writer.last)
    clock.end_step()
    if is_last: break
  for part in (bar, writer, checkpoints, run.pool): part.close()
  if host.stuck >= loop.max_skipped: refuse_stuck(run, workdir, annotated, batch)
  if state.step < loop.steps: return cli.leave(state.step, loop.steps, workdir)
  return finish(run, state, host, workdir, clock)


def iteration(run, state, host, step, clock):
  """One RL iteration: (state, Annotated, Batch, metrics)."""
  collected, metrics = collect.batch(run.collector, state, host, step, clock)
  annotated = run.annotate(state, collected)             # on the host: texts, steps, scores
  clock.lap("verify")
  placed = run.score(state, run.place(annotated))        # log-probs of all models
  clock.lap("score", placed.batch)
  state, batch, prm_metrics = run.learn_prm(state, placed)
  clock.lap("prm", (state.prm, batch))
  batch, reward_metrics = run.advantage(state, batch)    # rewards, then advantages
  placed = placed.replace(batch=batch)
  state, value_metrics = run.learn_value(state, placed, step)
  state, batch, policy_metrics = run.learn_policy(state, placed, step)
  clock.lap("policy", state.policy)
  metrics |= prm_metrics | reward_metrics | value_metrics | policy_metrics
  state = run.end_step(state, metrics)                   # KL coefficient, copies of the policy
  return state, annotated, batch, metrics


def evaluate(run, state, stream, repeats, which=("greedy", "sampled")):
  """Held-out accuracy: {"greedy", "sampled"} -> dict(mean, low, high, ...)."""
  params = state.full("policy")
  accuracies, weights = {}, run.sampling.lay_out(params)
  for name in which:
    sample = getattr(run.sampling, name)
    accuracies[name] = accuracy.interval(accuracy.outcomes(
        lambda prompts, key: hosts.fetch(sample(  # pylint: disable=cell-var-from-loop
            params, *run.sampling.encode(prompts), key, None, weights)),
        run.verify, run.eval_prompts, batch=run.loop.eval_batch,
        repeats=1 if name == "greedy" else repeats,
        key=rng.key(run.loop.seed, f"eval-{stream}")))
  return accuracies


def completion_rows(run, annotated, batch):
  """The first completions of the batch as rows of a table, with their rewards."""
  rollouts, n = annotated.rollouts, run.loop.completions
  x, batch = rollouts.prompt_width, hosts.fetch(batch)
  completions = padding.completions(rollouts)[:n]
  prompts = [run.tokenizer.decode(ids[x - k:x]) for ids, k in zip(
      rollouts.tokens_BS[:n], rollouts.prompt_len_B)]
  process_BT = (batch.prm_logps_BT - batch.prm_ref_logps_BT if "prm_logps_BT" in batch
                else None)
  rows = []
  for b, (prompt, ids) in enumerate(zip(prompts, completions)):
    mask_T, verdict = batch.action_BT[b], float(batch.outcome_B[b])
    rows.append(dict(
        prompt=prompt, completion=run.tokenizer.decode(ids),
        verdict=None if np.isnan(verdict) else verdict,
        finish=records.FINISH[int(rollouts.finish_B[b])],
        tokens=run.tokenizer.pieces(ids),
        log_ratio=None if process_BT is None else
        process_BT[b][mask_T].astype(float).round(4).tolist(),
        beta=None if process_BT is None else round(float(batch.prm_beta_B[0]), 6),
        advantages=batch.advantages_BT[b][mask_T].astype(float).round(4).tolist()))
  return rows


def restore(run, checkpoints):
  """(state, host) of the newest checkpoint; initial ones if there is no checkpoint."""
  state = run.init()
  host = HostState()
  if checkpoints.latest is not None:
    initial = state
    state, saved = checkpoints.restore(_saved(state))
    # A checkpoint of an earlier version may lack entries.
    host = HostState(**{f.name: saved[f.name] for f in dataclasses.fields(HostState)
                        if f.name in saved})
    state = state.replace(reference=initial.reference, prm_reference=initial.prm_reference,
                          frozen=initial.frozen)
    if run.prompts is not None: run.prompts.restore(host.prompts)
    if host.stuck >= run.loop.max_skipped: host.stuck = 0  # The resumed run tries again.
  host.seconds_before = host.seconds
  return state, host


def save(run, checkpoints, state, host):
  """Saves the state and the host state, without references that do not change."""
  host.prompts = None if run.prompts is None else run.prompts.state()
  checkpoints.save(state.step, _saved(state), dataclasses.asdict(host))


def _saved(state):
  return state.replace(reference=None, prm_reference=None, frozen=None)


def is_skipped(metrics):
  """Whether an update was skipped because its loss or gradient was not finite."""
  counts = hosts.fetch({k: v for k, v in metrics.items() if k.endswith("/nonfinite")})
  return any(v > 0 for v in counts.values())


def refuse_stuck(run, workdir, annotated, batch):
  """Ends a run whose updates stay non-finite and writes the last batch to a file."""
  fields = {f"rollouts.{f.name}": getattr(annotated.rollouts, f.name)
            for f in dataclasses.fields(annotated.rollouts)}
  fields |= {f"batch.{name}": x for name, x in hosts.fetch(batch.columns).items()}
  path = workdir / "stuck.npz"
  if hosts.is_first():
    np.savez(path, **{k: v for k, v in fields.items() if v is not None})
  raise ValueError(f"learner.max_skipped={run.loop.max_skipped}: that many consecutive updates "
                   f"had a non-finite loss or gradient. {path} has the last batch, and the "
                   "checkpoint has the parameters before these updates; lower "
                   "learner.optimizer.lr or inspect metrics.jsonl.")


def finish(run, state, host, workdir, clock):
  """Evaluates the policy, writes summary.json and curves.png, and prints a summary."""
  after = host.before
  if run.loop.steps:
    after = evaluate(run, state, "final", run.loop.final_samples)
    clock.lap("eval")
  accuracies = [l["prm/accuracy"] for l in io_metrics.read(workdir) if "prm/accuracy" in l]
  summary = dict(before=host.before, after=after, steps=state.step,
                 # A mean over steps, because one step has few pairs when most answers are right.
                 prm_accuracy=float(np.nanmean(accuracies[-10:])) if accuracies else None,
                 seed=run.loop.seed, seconds=clock.total(host.seconds_before))
  if hosts.is_first():
    strict_json.write(workdir / "summary.json", summary)
    curves.draw(workdir)
    cli.report(summary, workdir)
  return summary


def is_due(step, every):
  """Whether something that happens at multiples of `every` steps happens now; 0 is never."""
  return bool(every) and step % every == 0


if __name__ == "__main__":
  cli.main(train)
