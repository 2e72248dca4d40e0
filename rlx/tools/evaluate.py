"""Evaluates a checkpoint or a model, and its PRM, on held-out prompts.

  rlx evaluate runs/quickstart eval.samples=8
  rlx evaluate runs/quickstart suite=math

Loads the newest checkpoint of the run; without a checkpoint, the models named in the config.
`eval.difficulty` groups accuracy by a field of the prompts; `eval.prm_sets` names the sets on
which the PRM is evaluated. Writes evaluate.json and evaluate.png and, for each step verifier in
`eval.prm_sets`, the set that it labelled. With a suite (configs/suites), its sets are measured and
nothing else.
"""
import dataclasses
import json
import os
import pathlib
from typing import Any

import numpy as np

from rlx import build
from rlx.build import keys, options as options_lib, prompts as build_prompts
from rlx.core import records, rng
from rlx.core.options import key
from rlx.evals import accuracy, at_k as at_k_lib
from rlx.io import checkpoint, curves, report as report_lib
from rlx.loops import prm_sets, rl, session
from rlx.rollouts import padding
from rlx.tools import judgements


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
    of eval.sets; the metrics of `at_k`; of prompts that judge completions those of
    `judgements.measure`; "difficulty/VALUE"; "no_answer" and "truncated", shares of
    completions; "length" in tokens; and under "prm" the metrics of prm_sets.py for each of
    eval.prm_sets. Intervals are 95%: Wilson's over prompts for shares (`accuracy.interval`),
    percentile bootstrap over prompts or problems for "length" and "prm". Of a suite, those of
    `measure_suite`.
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
  run.outcomes.hold(state)
  if options.prm_sets and not has_prm:
    raise ValueError(f"eval.prm_sets={options.prm_sets!r}: workdir={workdir} has no "
                     "checkpoint and prm.path is None: there is no trained PRM.")
  if not run.eval_prompts:
    suite = measure_suite(config, run, state)
    run.close()
    (workdir / "evaluate.json").write_text(json.dumps(suite, indent=2))
    report_lib.print_suite(suite)
    print(f"  {workdir / 'evaluate.json'}")
    return suite
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
  metrics |= judgements.measure(run, state, run.eval_prompts, texts)
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


def measure_suite(config: keys.Config, run: build.Run,
                  state: records.TrainState) -> dict[str, dict[str, Any]]:
  """Accuracies of the sets of eval.sets, each decoded in one way: greedily, or sampled if it has
  `samples` (avg@samples, the mean over samples and prompts).

  Returns:
    {"greedy/NAME" or "avg@SAMPLES/NAME": dict(mean, low, high, prompts, unknown, asked, truncated,
    tokens, settings)}: a 95% interval by prompts (`accuracy.interval`); `asked`, the number of
    prompts that the suite asks for, which differs from `prompts` where some are dropped or unknown;
    the share of truncated completions and their mean length; and what has to be the same where two
    results are compared.
  """
  params = state.join_params("policy")
  weights, metrics = run.sampling.lay_out(params), {}
  for name, part in build_prompts.list_eval_sets(config).items():
    is_sampled, prompts = config.eval.sets[name].get("samples") is not None, run.eval_sets[name]
    sample = run.sampling.sets[name]["sampled" if is_sampled else "greedy"]
    outcomes: list[np.ndarray] = []
    finishes: list[np.ndarray] = []
    lengths: list[int] = []
    for batch in padding.batches(prompts, sample.prompts):
      rollouts = sample(params, batch, rng.key(run.passes.seed, "evaluate"), None, weights)
      outcomes.append(run.outcomes(batch, rollouts))
      finishes.append(np.asarray(rollouts.finish_B))
      lengths += map(len, padding.completions(rollouts))
    n = len(prompts) * sample.group
    outcome_PG, finish_B = np.concatenate(outcomes)[:len(prompts)], np.concatenate(finishes)[:n]
    metrics[f"avg@{sample.group}/{name}" if is_sampled else f"greedy/{name}"] = accuracy.interval(
        outcome_PG) | dict(
            asked=part.eval.prompts,
            truncated=float(np.mean(finish_B == records.FINISH.index("length"))),
            tokens=float(np.mean(lengths[:n])), settings=dict(
                source=part.prompts.source, split=part.eval.split,
                options=part.prompts.options.to_dict(), columns=part.prompts.columns.to_dict(),
                template=part.prompts.template.to_dict(), decoding=dict(sample.rule),
                max_tokens=sample.max_tokens, verifiers=sorted({p.verifier for p in prompts})))
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
