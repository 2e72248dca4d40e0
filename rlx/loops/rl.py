"""The RL loop: sampling, verification, rewards, advantages and updates.

  rlx train quickstart workdir=/tmp/rlx/quickstart

The same command with the same workdir resumes the run, also after SIGTERM or SIGKILL. Every
key of the config can be set, as in `learner.optimizer.lr=1e-4`.
"""
import dataclasses
import os
import pathlib
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import numpy as np

from rlx import build
from rlx.build import keys, memory as run_memory, options as options_lib
from rlx.core import records, rng
from rlx.core.options import key
from rlx.evals import accuracy
from rlx.io import progress, report as report_lib, run_folder
from rlx.learner import hosts
from rlx.loops import session
from rlx.rollouts import padding, trajectories
from rlx.stages import annotate, host_state, sampling


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
  """The config values that only this loop needs."""
  eval_every: int = key("eval.every")
  final_samples: int = key("eval.final_samples")
  completions: int = key("log.completions")
  completions_every: int = key("log.completions_every")
  max_skipped: int = key("learner.max_skipped")
  sync_every: int = key("rollouts.sync_every")
  anneal: str | None = key("rollouts.anneal.name")
  memory_check: str = key("memory_check")


def train(config: keys.Config, workdir: str | os.PathLike) -> dict[str, Any] | None:
  """Trains to config.steps, starting from the workdir's newest checkpoint if there is one.

  Returns:
    the summary, which is also written to <workdir>/summary.json; None if a signal stopped the
    run before the last step. The same call then resumes it.
  """
  with session.Session(session.read_session_options(config), workdir) as s:
    if (summary := s.find_summary(config)) is not None:
      if hosts.is_first(): report_lib.print_summary(summary, s.workdir)
      return summary
    run = build.build(config, recorded=run_folder.read_recorded(workdir))
    s.callback(run.close)
    s.record(config, run.shapes(), device_bytes=run.sampling.device_bytes)
    options = options_lib.read_options(Options, config)
    run_memory.check(run, s.workdir, options.memory_check)
    s.clock.lap("compile")
    s.restore(run.init, run.prompts)
    return _train(run, s, options)


def _train(run: build.Run, s: session.Session, options: Options) -> dict[str, Any] | None:
  """The loop of a run, from the state of the session."""
  assert run.collect is not None
  host, clock = s.host, s.clock
  if host.stuck >= options.max_skipped: host.stuck = 0  # The resumed run tries again.
  s.announce(run.list_programs(evaluates=host.initial_eval is None))
  if host.rehearsed is None: host.rehearsed = run.collect.find_solved(s.state)
  if host.initial_eval is None:
    host.initial_eval = measure_accuracy(run, s.state, "final", options.final_samples)
    clock.lap("eval")
  # Otherwise sampler and trainer have the same weights and temperature, and differ by rounding.
  is_gap_known = options.sync_every > 1 or options.anneal is not None
  for step in s.steps():
    held_out: dict[str, dict] = {}
    if session.is_due(step, options.eval_every):
      held_out = measure_accuracy(run, s.state, "curve", 1) if step else host.initial_eval
      clock.lap("eval")
    s.state, annotated, batch, metrics = iteration(run, s.state, host, step, clock)
    metrics |= {f"eval/{k}": v["mean"] for k, v in held_out.items()} | annotated.measure()
    s.write(metrics, completion_rows(run, annotated, batch, options.completions)
            if session.is_due(step, options.completions_every) else None)
    host.stuck = host.stuck + 1 if is_skipped(metrics) else 0
    is_gap_known = is_gap_known or warn_of_gap(run, metrics, step)
    if host.stuck >= options.max_skipped: s.stop()
  if host.stuck >= options.max_skipped:
    refuse_stuck(options.max_skipped, s.workdir, annotated, batch)
  return finish(run, s, options.final_samples) if s.is_done else None


def iteration(run: build.Run, state: records.TrainState, host: host_state.HostState, step: int,
              clock: progress.Clock) -> tuple[records.TrainState, annotate.Annotated,
                                              records.Batch, dict]:
  """One RL iteration, a line a stage: (state, Annotated, Batch, metrics)."""
  assert run.collect is not None
  collected, metrics = run.collect(state, host, step, clock)    # completions with verdicts
  annotated = run.annotate(state, collected)                    # on the host: texts, steps, scores
  metrics |= run.pool.take_usage()                              # those of an evaluation, too
  clock.lap("verify")
  placed = run.score(state, run.place(annotated))               # references, values
  clock.lap("score", placed.batch)
  state, placed, prm_metrics = run.update_prm(state, placed)    # sets prm_logps_BT
  state, scorer_metrics = run.update_scorers(state, placed)
  clock.lap("prm", (state.prm, state.scorers, placed.batch))
  placed, reward_metrics = run.rewards_advantages(state, placed)
  state, value_metrics = run.update_value(state, placed, step)
  state, placed, policy_metrics = run.update_policy(state, placed, step)  # sets old_logps_BT
  clock.lap("policy", state.policy)
  metrics |= prm_metrics | scorer_metrics | reward_metrics | value_metrics | policy_metrics
  state = run.end_step(state, metrics, placed.method_state)     # KL coefficient, copies
  return state, annotated, placed.batch, metrics


def measure_accuracy(run: build.Run, state: records.TrainState, stream: str, repeats: int,
                     which: Sequence[str] = ("greedy", "sampled"),
                     of_sets: Sequence[str] | None = None) -> dict[str, dict]:
  """Held-out accuracy: {"greedy", "sampled"} -> dict(mean, low, high, ...), and by source of a
  mixture and by set of eval.sets, as "greedy/NAME".

  Args:
    of_sets: which accuracies of eval.sets; None: `which`.
  """
  run.outcomes.hold(state)
  params = state.join_params("policy")
  accuracies, weights = {}, run.sampling.lay_out(params)
  def measure(name: str, sample: sampling.Sampler, prompts: list[records.Prompt]) -> np.ndarray:
    return accuracy.outcomes(
        lambda prompts, key: sample(params, prompts, key, None, weights), run.outcomes, prompts,
        batch=sample.prompts, repeats=1 if name == "greedy" else repeats,
        key=rng.key(run.passes.seed, f"eval-{stream}"))
  for name in which:
    outcome_PG = measure(name, getattr(run.sampling, name), run.eval_prompts)
    accuracies[name] = accuracy.interval(outcome_PG)
    accuracies |= {f"{name}/{source}": accuracy.interval(x_PG) for source, x_PG in
                   accuracy.split_by_source(outcome_PG, run.eval_prompts).items()}
  for name in which if of_sets is None else of_sets:
    accuracies |= {f"{name}/{of_set}": accuracy.interval(
        measure(name, run.sampling.sets[of_set][name], prompts))
                   for of_set, prompts in run.eval_sets.items()}
  return accuracies


def completion_rows(run: build.Run, annotated: annotate.Annotated, batch: records.Batch,
                    n: int) -> list[dict]:
  """The first n completions of the batch as rows of a table, with their rewards.

  `prompt` and `tokens` have all special tokens, as the model read and drew them; `completion` is
  the text that verifiers read. Tokens of an observation have the turn -1 and numbers 0;
  `turn_rewards` has a number for each turn, None for a turn without a reward.
  """
  rollouts, tokenizer = annotated.rollouts, run.texts.tokenizer
  x, batch = rollouts.prompt_width, hosts.fetch(batch)
  prompts = [tokenizer.show(ids[x - k:x]) for ids, k in zip(
      rollouts.tokens_BS[:n], rollouts.prompt_len_B)]
  process_BT = (batch.prm_logps_BT - batch.prm_ref_logps_BT if "prm_logps_BT" in batch else None)
  rows = []
  for b, (prompt, ids) in enumerate(zip(prompts, padding.completions(rollouts)[:n])):
    verdict = float(batch.outcome_B[b])
    # pylint: disable=cell-var-from-loop
    def list_numbers(x_BT: np.ndarray) -> list[float]:
      x_T = np.where(batch.action_BT[b], x_BT[b], 0.0)[:len(ids)]
      return x_T.astype(float).round(4).tolist()
    more = {}
    if rollouts.turn_BT is not None: more["turns"] = rollouts.turn_BT[b][:len(ids)].tolist()
    if rollouts.turn_rewards_BT is not None:
      more["turn_rewards"] = trajectories.list_turn_rewards(rollouts, b)
    rows.append(dict(
        prompt=prompt, prompt_tokens=int(rollouts.prompt_len_B[b]),
        completion=tokenizer.decode(ids), verdict=None if np.isnan(verdict) else verdict,
        finish=records.FINISH[int(rollouts.finish_B[b])], length=len(ids),
        tokens=tokenizer.pieces(ids, shows=True), **more, **annotated.show(b),
        log_ratio=None if process_BT is None else list_numbers(process_BT),
        beta=None if process_BT is None else round(float(batch.prm_beta_B[0]), 6),
        advantages=list_numbers(batch.advantages_BT)))
  return rows


def is_skipped(metrics: dict) -> bool:
  """Whether an update was skipped because its loss or gradient was not finite."""
  counts = hosts.fetch({k: v for k, v in metrics.items() if k.endswith("/nonfinite")})
  return any(v > 0 for v in counts.values())


def warn_of_gap(run: build.Run, metrics: dict, step: int) -> bool:
  """Whether sampler and trainer differ by more than rounding; then a line on stderr says so."""
  names = [f"rollouts/sampler_gap_{x}" for x in ("mean", "max")]
  gaps = hosts.fetch([metrics[name] for name in names if name in metrics])
  dtype = run.sampling.train.config.dtype
  if all(gap <= bound for gap, bound in zip(gaps, sampling.GAPS[dtype])): return False
  if hosts.is_first():
    seen, allowed = (" and ".join(f"{x:.1e}" for x in pair) for pair in (
        gaps, sampling.GAPS[dtype]))
    print(f"rlx: step {step}: log-probs of sampler and trainer differ by {seen} (mean, largest); "
          f"rounding in {dtype} explains {allowed}. `rlx doctor` says what to do.", file=sys.stderr)
  return True


def refuse_stuck(max_skipped: int, workdir: pathlib.Path, annotated: annotate.Annotated,
                 batch: records.Batch) -> NoReturn:
  """Ends a run whose updates stay non-finite and writes the last batch to a file."""
  fields = {f"rollouts.{f.name}": getattr(annotated.rollouts, f.name)
            for f in dataclasses.fields(annotated.rollouts)}
  fields |= {f"batch.{name}": x for name, x in hosts.fetch(batch.columns).items()}
  path = workdir / "stuck.npz"
  if hosts.is_first():
    np.savez(path, **{k: v for k, v in fields.items() if v is not None})
  raise ValueError(f"learner.max_skipped={max_skipped}: that many consecutive updates "
                   f"had a non-finite loss or gradient. {path} has the last batch, and the "
                   "checkpoint has the parameters before these updates; lower "
                   "learner.optimizer.lr or inspect metrics.jsonl.")


def finish(run: build.Run, s: session.Session, final_samples: int) -> dict[str, Any]:
  """Evaluates the policy, writes the summary and prints it."""
  after = s.host.initial_eval
  if s.options.steps:
    after = measure_accuracy(run, s.state, "final", final_samples)
    s.clock.lap("eval")
  # Means over steps, because one step has few pairs when most answers are right.
  ranked, varied = s.recent_mean("prm/accuracy"), s.recent_mean("prm/varied")
  summary = s.finish(
      before=s.host.initial_eval, after=after,
      prm_accuracy=None if ranked is None or varied is None else
      accuracy.take_out_ties(ranked, varied))
  if hosts.is_first(): report_lib.print_summary(summary, s.workdir)
  return summary
