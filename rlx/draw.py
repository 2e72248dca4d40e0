"""A batch to learn from: prompts, completions, verdicts, groups that pass the filter."""
import jax
import numpy as np

from rlx import build
from rlx.core import records
from rlx.core import rng
from rlx.learner import sharding
from rlx.rollouts import keep
from rlx.rollouts import padding


def batch(run, state, host, step, clock):
  """Samples groups until a batch of them passes the filter.

  Prompts that passed but found no place wait in `host["buffer"]` (ids only)
  and are sampled afresh in the next step, so every completion is on-policy (or
  as old as rollouts.sync_every allows).
  After `rollouts.max_draws` draws the batch is completed with groups that
  failed, or the run stops, as `rollouts.fill` says.

  Returns:
    rollouts on the mesh, {field of Scored: what verifiers say}, metrics.
  """
  c = run.config
  size, want = build.draw_size(c), c.prompts.per_step
  drawn, parts, outcomes, kept = [], [], [], []
  while sum(map(np.sum, kept)) < want and len(parts) < c.rollouts.max_draws:
    waiting, host["buffer"] = host["buffer"][:size], host["buffer"][size:]
    prompts = run.prompts.by_id(waiting)
    prompts += run.prompts.take(size - len(prompts), skip=waiting)
    key = rng.key(c.seed, "sample", step, len(parts))
    rollouts = run.demonstrate(prompts, jax.device_get(run.sample(
        state.full(state.sampled_from), *run.encode(prompts), key, run.anneal(step))))
    clock.lap("sample")
    outcome_PG = run.verify(prompts, rollouts)
    run.pool.check(c.verifier.max_error_rate)
    clock.lap("verify")
    cut_PG = (rollouts.finish_B == records.FINISH.index("length")).reshape(outcome_PG.shape)
    kept.append(run.keep(outcome_PG, cut_PG))
    drawn += prompts
    parts.append(rollouts)
    outcomes.append(outcome_PG)
  keep_P, outcome_PG = np.concatenate(kept), np.concatenate(outcomes)
  if keep_P.sum() < want and c.rollouts.fill == "error":
    raise ValueError(
        f"step {step}: {keep_P.sum()} of {len(keep_P)} prompts passed "
        f"rollouts.keep={c.rollouts.keep.to_dict()} in {len(parts)} draws, "
        f"{want} are needed; mean accuracy of the groups was "
        f"{np.nanmean(outcome_PG):.3f}. Widen the band, raise rollouts.max_draws "
        "or set rollouts.fill=failed.")
  chosen = keep.fill(keep_P, want)
  host["buffer"] += [drawn[i].id for i in np.flatnonzero(keep_P) if i not in chosen]
  rows = (chosen[:, None] * c.rollouts.per_prompt
          + np.arange(c.rollouts.per_prompt)).reshape(-1)
  rollouts = padding.select(parts, rows, chosen)
  rollouts = padding.trim(rollouts, c.rollouts.bucket)
  lengths_B = rollouts.completion_len_B
  metrics = {
      "rollouts/accuracy": np.nanmean(outcome_PG),
      "rollouts/pass_fraction": keep_P.mean(),
      "rollouts/draws": len(parts),
      "rollouts/filled": max(want - keep_P.sum(), 0),
      "rollouts/tokens": sum(p.completion_len_B.sum() for p in parts),
      "rollouts/length": lengths_B.mean(),
      "rollouts/length_max": lengths_B.max(),
      "rollouts/truncated": np.mean(rollouts.finish_B == records.FINISH.index("length")),
      "verifiers/unknown": np.isnan(outcome_PG).mean(),
  }
  judged = dict(outcome_B=outcome_PG[chosen].reshape(-1).astype(np.float32),
                **run.judge([drawn[i] for i in chosen], rollouts))
  run.pool.check(c.verifier.max_error_rate)
  clock.lap("verify")
  rollouts, judged = sharding.place_rows((rollouts, judged), run.mesh)
  return rollouts, judged, metrics
