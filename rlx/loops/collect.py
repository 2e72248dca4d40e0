"""A batch to learn from: prompts, completions, verdicts, groups that pass the filter."""
import numpy as np

from rlx import build
from rlx.core import records
from rlx.core import rng
from rlx.learner import hosts
from rlx.learner import sharding
from rlx.rollouts import budget
from rlx.rollouts import filter_groups
from rlx.rollouts import padding


def batch(run, state, host, step, clock):
  """Samples groups until a batch of them passes the filter.

  Prompts that passed but found no place wait in `host["buffer"]` (ids only)
  and are sampled afresh in the next step, so every completion is on-policy (or
  as old as rollouts.sync_every allows).
  After `rollouts.max_draws` draws the batch is completed with groups that
  failed, which learn or have no verdict from here on, or the run stops, as
  `rollouts.fill` says.

  Returns:
    rollouts on the mesh, {field of Scored: what verifiers say}, metrics.
  """
  c = run.config
  size, want = build.draw_size(c), build.trained(c)
  params, factor_T = state.full(state.sampled_from), run.anneal(step)
  weights = run.lay_out(params)
  clock.lap("hand-over", weights)
  drawn, parts, outcomes, kept, first_look = [], [], [], [], []
  while sum(map(np.sum, kept)) < want and len(parts) < c.rollouts.max_draws:
    waiting, host["buffer"] = host["buffer"][:size], host["buffer"][size:]
    prompts = run.prompts.by_id(waiting)
    prompts += run.prompts.take(size - len(prompts), skip=[*waiting, *host["rehearsed"]])
    key = rng.key(c.seed, "sample", step, len(parts))
    def sample(prompts):
      return hosts.fetch(run.sample(
          params, *run.encode(prompts), key, factor_T, weights))  # pylint: disable=cell-var-from-loop
    rollouts = run.demonstrate(prompts, sample(prompts))
    clock.lap("sample")
    outcome_PG = run.verify(prompts, rollouts)
    first_look.append(outcome_PG)
    if run.budget:
      rollouts, outcome_PG = _second_pass(
          run, prompts, rollouts, outcome_PG, sample, clock)
    run.pool.check(c.verifier.max_error_rate)
    clock.lap("verify")
    cut_PG = (rollouts.finish_B == records.FINISH.index("length")).reshape(outcome_PG.shape)
    kept.append(run.filter_groups(outcome_PG, cut_PG))
    drawn += prompts
    parts.append(rollouts)
    outcomes.append(outcome_PG)
  keep_P, outcome_PG = np.concatenate(kept), np.concatenate(outcomes)
  if keep_P.sum() < want and c.rollouts.fill == "error":
    raise ValueError(
        f"step {step}: {keep_P.sum()} of {len(keep_P)} prompts passed "
        f"rollouts.filter_groups={c.rollouts.filter_groups.to_dict()} in {len(parts)} draws, "
        f"{want} are needed; mean accuracy of the groups was "
        f"{np.nanmean(outcome_PG):.3f}. Widen the band, raise rollouts.max_draws "
        "or set rollouts.fill=drop.")
  chosen = filter_groups.fill(keep_P, want)
  host["buffer"] += [drawn[i].id for i in np.flatnonzero(keep_P) if i not in chosen]
  prompts = [drawn[i] for i in chosen]
  rollouts = padding.select(parts, _rows(chosen, c.rollouts.per_prompt), chosen)
  learns_P1 = keep_P[chosen, None] | (c.rollouts.fill == "failed")
  outcome_B = np.where(learns_P1, outcome_PG[chosen], np.nan).reshape(-1).astype(np.float32)
  lengths_B = rollouts.completion_len_B[rollouts.completion_len_B > 0]
  metrics = {
      "rollouts/accuracy": np.nanmean(np.concatenate(first_look)),
      "rollouts/pass_fraction": keep_P.mean(),
      "rollouts/draws": len(parts),
      "rollouts/filled": max(want - keep_P.sum(), 0),
      "rollouts/tokens": sum(p.completion_len_B.sum() for p in parts),
      "rollouts/length": lengths_B.mean(),
      "rollouts/length_max": lengths_B.max(),
      "rollouts/truncated": (rollouts.finish_B == records.FINISH.index("length")).sum()
                            / len(lengths_B),
      "verifiers/unknown": np.isnan(np.concatenate(first_look)).mean(),
      # Of all verdicts since the last update, those that are 0 because the completion made
      # its verifier fail (rlx/verifiers/pool.py).
      "verifiers/failed": run.pool.failed_share(),
  }
  if run.budget: metrics["rollouts/per_prompt"] = len(lengths_B) / want
  if c.rollouts.rehearsal:
    old, stored = _rehearsal(run, host["rehearsed"], step)
    prompts, rollouts = prompts + old, padding.join([rollouts, stored])
    outcome_B = np.append(outcome_B, np.full(len(stored.finish_B), np.nan, np.float32))
  rollouts = padding.trim(rollouts, c.rollouts.bucket)
  judged = dict(outcome_B=outcome_B, **run.judge(prompts, rollouts),
                **run.greedy(state.full("policy"), prompts))
  run.pool.check(c.verifier.max_error_rate)
  clock.lap("verify")
  rollouts, judged = sharding.place_rows((rollouts, judged), run.mesh)
  return rollouts, judged, metrics


def solved(run, state):
  """{id: token ids}: a completion of each training prompt that the start always solves.

  What rollouts.rehearsal keeps in the batch; empty without it. All per_prompt completions
  are right; the first is stored.
  """
  if not run.config.rollouts.rehearsal: return {}
  c, found, size = run.config, {}, build.draw_size(run.config)
  for prompts in padding.batches(run.prompts.all(), size):
    rollouts = hosts.fetch(run.sample(
        state.full("policy"), *run.encode(prompts), rng.key(c.seed, "rehearsal"), None))
    first_P = padding.completions(rollouts)[::c.rollouts.per_prompt]
    for prompt, ids, outcome_G in zip(prompts, first_P, run.verify(prompts, rollouts)):
      if (outcome_G == 1).all(): found[prompt.id] = ids
  if len(found) < c.rollouts.rehearsal:
    raise ValueError(
        f"rollouts.rehearsal={c.rollouts.rehearsal}: the start solves {len(found)} of "
        f"{len(run.prompts.all())} training prompts in all of its "
        f"{c.rollouts.per_prompt} completions; that many are needed.")
  return found


def _second_pass(run, prompts, rollouts, outcome_PG, sample, clock):
  """The same with more completions of the prompts that rollouts.budget finds worth them.

  Groups become rollouts.per_prompt wide; what was not drawn is an empty row without a
  verdict. Completions are keyed by prompt and round, so that no two are drawn alike.
  """
  known_PG = ~np.isnan(outcome_PG)
  right_P = (np.where(known_PG, outcome_PG, 0).sum(axis=1) * outcome_PG.shape[1]
             / np.maximum(known_PG.sum(axis=1), 1))
  again, row_PG = budget.rows(np.asarray(run.budget(right_P)), outcome_PG.shape[1],
                              run.config.rollouts.per_prompt)
  batches = list(padding.batches(again, len(prompts)))
  clock.lap("verify")
  parts = [sample([prompts[p].again(i) for p, i in pairs]) for pairs in batches]
  clock.lap("sample")
  outcome_B = np.concatenate([outcome_PG.ravel()] + [
      run.verify([prompts[p] for p, _ in pairs], part).ravel()
      for pairs, part in zip(batches, parts)])
  is_drawn_B = row_PG.ravel() >= 0
  whole = padding.select([rollouts, *parts], np.maximum(row_PG, 0).ravel(), np.arange(len(prompts)))
  outcome_B = np.where(is_drawn_B, outcome_B[row_PG.ravel()], np.nan)
  return padding.emptied(whole, ~is_drawn_B), outcome_B.reshape(row_PG.shape)


def _rehearsal(run, rehearsed, step):
  """(prompts, rollouts): stored completions, each the last row of a group else empty."""
  c = run.config
  ids = sorted(rehearsed)
  at = np.random.default_rng([c.seed, rng.number("rehearsal"), step]).choice(
      len(ids), c.rollouts.rehearsal, replace=False)
  prompts = run.prompts.by_id([ids[i] for i in at])
  empty = padding.empty(*hosts.fetch(run.encode(prompts)), c.rollouts.per_prompt,
                        c.rollouts.max_tokens)
  return prompts, padding.put_last(empty, [rehearsed[p.id] for p in prompts],
                                   records.FINISH.index("eos"))


def _rows(groups_P, group):
  """Numbers of the rows of these groups, in order."""
  return (groups_P[:, None] * group + np.arange(group)).reshape(-1)
