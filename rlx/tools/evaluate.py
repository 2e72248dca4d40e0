"""Evaluates a checkpoint or a model, and its PRM, on held-out prompts.

  rlx evaluate runs/quickstart eval.samples=8

Loads the newest checkpoint of the run; without a checkpoint, the models named in the config.
`eval.difficulty` groups accuracy by a field of the prompts; `eval.prm_sets` names the sets on
which the PRM is evaluated. Writes evaluate.json and evaluate.png and, for each step verifier in
`eval.prm_sets`, the set that it labelled.
"""
import dataclasses
import json
import os
import pathlib
from typing import Any

import numpy as np

from rlx import build
from rlx.build import keys, options as options_lib
from rlx.core import rng
from rlx.core.options import key
from rlx.evals import accuracy, at_k as at_k_lib
from rlx.io import checkpoint, curves, report as report_lib
from rlx.loops import prm_sets, rl, session
from rlx.rollouts import padding


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
  """The config values that only this tool needs."""
  prm_sets: tuple = key("eval.prm_sets")
  difficulty: str | None = key("eval.difficulty")
  buckets: int = key("eval.buckets")
  prm_path: str | None = key("prm.path")


def evaluate(config: keys.Config, workdir: str | os.PathLike) -> dict[str, Any]:
  """Samples eval.samples completions per held-out prompt and verifies them.

  Returns:
    {metric: dict(mean, low, high, ...)}, which is also written to <workdir>/evaluate.json:
    "sampled" and "greedy" accuracy, and as "greedy/NAME" that of a source of a mixture or of a set
    of eval.sets; the metrics of `at_k`; "difficulty/VALUE"; "no_answer" and "truncated", shares of
    completions; "length" in tokens; and under "prm" the metrics of prm_sets.py for each of
    eval.prm_sets. Intervals are 95%: Wilson's over prompts for shares (`accuracy.interval`),
    percentile bootstrap over prompts or problems for "length" and "prm".
  """
  workdir, options = pathlib.Path(workdir), options_lib.read_options(Options, config)
  run = build.build(config, learns="")
  sets = {path: prm_sets.read(path, run.texts) for path in options.prm_sets
          if path.endswith(".jsonl")}
  # Not every source of a mixture needs to have it.
  rated = {p.source for p in run.eval_prompts if options.difficulty in p.meta}
  is_rated_P = np.array([p.source in rated or not rated for p in run.eval_prompts])
  difficulty_P = options.difficulty and _meta(
      [p for p, is_rated in zip(run.eval_prompts, is_rated_P) if is_rated], options.difficulty)
  checkpoints = checkpoint.Checkpoints(workdir)
  state, _ = session.restore(checkpoints, run.init, run.prompts)
  # A PRM that is neither trained nor loaded from prm.path equals its reference.
  has_prm = state.prm is not None and (
      checkpoints.latest is not None or options.prm_path is not None)
  checkpoints.close()
  if options.prm_sets and not has_prm:
    raise ValueError(f"eval.prm_sets={options.prm_sets!r}: workdir={workdir} has no "
                     "checkpoint and prm.path is None: there is no trained PRM.")
  n, g = len(run.eval_prompts), run.sizes.eval_samples
  outcomes, completions, finishes = [], [], []
  for prompts in padding.batches(run.eval_prompts, run.sizes.eval_batch):
    rollouts = run.sampling.sampled(
        state.join_params("policy"), prompts, rng.key(run.passes.seed, "evaluate"))
    outcomes.append(run.outcomes(prompts, rollouts))
    completions += padding.completions(rollouts)
    finishes.append(rollouts.finish_B)
  outcome_PG, finish_B = np.concatenate(outcomes)[:n], np.concatenate(finishes)[:n * g]
  texts = [run.texts.tokenizer.decode(ids) for ids in completions[:n * g]]
  prompts_B = [p for p in run.eval_prompts for _ in range(g)]
  answers = run.texts.answers(texts, prompts_B)
  steps = prm_sets.score(run, state, list(map(run.texts.prompt_ids, prompts_B)),
                         completions[:n * g]) if has_prm else {}
  scores = prm_sets.scores(steps)
  metrics: dict[str, Any] = {"sampled": accuracy.interval(outcome_PG)}
  for source, x_PG in accuracy.split_by_source(outcome_PG, run.eval_prompts).items():
    metrics[f"sampled/{source}"] = accuracy.interval(x_PG)
  metrics |= rl.measure_accuracy(run, state, "evaluate", 1, ("greedy",), ("greedy", "sampled"))
  metrics |= at_k_lib.at_k(outcome_PG, answers, scores)
  if difficulty_P:
    metrics |= {f"difficulty/{value}": x for value, x in accuracy.measure_by(
        outcome_PG[is_rated_P], difficulty_P, buckets=options.buckets).items()}
  metrics |= at_k_lib.text_metrics(
      outcome_PG, answers, finish_B, list(map(len, completions[:n * g])))
  prm_metrics = {path: prm_sets.measure(run, state, s) for path, s in sets.items()}
  for path in [p for p in options.prm_sets if p not in sets]:
    label_B = prm_sets.first_errors(run, path, prompts_B, texts, outcome_PG.ravel(), finish_B)
    prm_sets.write(workdir / f"{path}.jsonl", run, prompts_B, texts, label_B, outcome_PG.ravel())
    prm_metrics[path] = prm_sets.first_error_f1(
        steps, label_B, np.arange(n * g) // g) | prm_sets.compare_sampled(
            scores, outcome_PG)
  run.close()
  if prm_metrics: metrics["prm"] = prm_metrics
  (workdir / "evaluate.json").write_text(json.dumps(metrics, indent=2))
  curves.draw_at_k(workdir / "evaluate.png", metrics)
  report_lib.print_metrics(metrics)
  for name in ("evaluate.json", "evaluate.png"): print(f"  {workdir / name}")
  return metrics


def _meta(prompts, field):
  """Returns the value of a field in the metadata of each prompt.

  Raises:
    ValueError: a prompt does not have the field.
  """
  for p in prompts:
    if field not in p.meta:
      raise ValueError(f"eval.difficulty={field!r}: the meta of {p.id!r} has {sorted(p.meta)}.")
  return [p.meta[field] for p in prompts]
