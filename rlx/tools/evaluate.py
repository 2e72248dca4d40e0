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
from collections.abc import Sequence
from typing import Any

import numpy as np

from rlx import build
from rlx import cli
from rlx import keys
from rlx.core import records
from rlx.core import rng
from rlx.core.options import key
from rlx.evals import accuracy
from rlx.evals import best_of_n
from rlx.evals import pass_at_k
from rlx.io import checkpoint
from rlx.io import curves
from rlx.loops import prm_sets
from rlx.loops import rl
from rlx.loops import session
from rlx.rollouts import padding

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95, 1.0)


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
    "sampled" and "greedy" accuracy; the metrics of `at_k`; "difficulty/VALUE"; "no_answer" and
    "truncated", shares of completions; "length" in tokens; and under "prm" the metrics of
    prm_sets.py for each of eval.prm_sets. Intervals are 95%: Wilson's over prompts for shares
    (`accuracy.interval`), percentile bootstrap over prompts or problems for "length" and "prm".
  """
  workdir, options = pathlib.Path(workdir), build.options(Options, config)
  run = build.build(config, learns="")
  sets = {path: prm_sets.read(path, run.texts) for path in options.prm_sets
          if path.endswith(".jsonl")}
  difficulty_P = options.difficulty and _meta(run.eval_prompts, options.difficulty)
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
        state.full("policy"), prompts, rng.key(run.passes.seed, "evaluate"))
    outcomes.append(run.verify(prompts, rollouts))
    completions += padding.completions(rollouts)
    finishes.append(rollouts.finish_B)
  outcome_PG, finish_B = np.concatenate(outcomes)[:n], np.concatenate(finishes)[:n * g]
  texts = [run.texts.tokenizer.decode(ids) for ids in completions[:n * g]]
  answers = run.texts.answers(texts)
  prompts_B = [p for p in run.eval_prompts for _ in range(g)]
  steps = prm_sets.score(run, state, list(map(run.texts.prompt_ids, prompts_B)),
                         completions[:n * g]) if has_prm else {}
  scores = prm_sets.scores(steps)
  metrics = {"sampled": accuracy.interval(outcome_PG),
             "greedy": rl.evaluate(run, state, "evaluate", 1, ("greedy",))["greedy"]}
  metrics |= at_k(outcome_PG, answers, scores)
  if difficulty_P:
    metrics |= {f"difficulty/{value}": x for value, x in accuracy.by(
        outcome_PG, difficulty_P, buckets=options.buckets).items()}
  metrics |= text_metrics(outcome_PG, answers, finish_B, list(map(len, completions[:n * g])))
  prm_metrics = {path: prm_sets.evaluate(run, state, s) for path, s in sets.items()}
  for path in [p for p in options.prm_sets if p not in sets]:
    label_B = prm_sets.first_errors(run, path, prompts_B, texts, outcome_PG.ravel(), finish_B)
    prm_sets.write(workdir / f"{path}.jsonl", run, prompts_B, texts, label_B,
                   outcome_PG.ravel())
    prm_metrics[path] = prm_sets.first_error_f1(
        steps, label_B, np.arange(n * g) // g) | prm_sets.sampled_preferences(
            scores, outcome_PG)
  run.close()
  if prm_metrics: metrics["prm"] = prm_metrics
  (workdir / "evaluate.json").write_text(json.dumps(metrics, indent=2))
  curves.draw_at_k(workdir / "evaluate.png", metrics)
  show(metrics)
  for name in ("evaluate.json", "evaluate.png"): print(f"  {workdir / name}")
  return metrics


def at_k(outcome_PG: np.ndarray, answers: list[str | None],
         scores: dict[str, np.ndarray]) -> dict[str, dict]:
  """Computes pass@k, maj@k and, with PRM scores, weighted@k and best@k for k = 1, 2, 4, ...

  Each is the mean over all sets of k completions, or over a sample of them (`maj_at_k`).

  Args:
    outcome_PG: verdicts.
    answers: [B] extracted answers, None where there is none.
    scores: {name: score_B} of the PRM, see `prm_sets.scores`; empty without one.
  Returns:
    {"pass@K", "maj@K", "weighted@K/NAME", "best@K/NAME": as `accuracy.interval`}.
  """
  p, g = outcome_PG.shape
  answers_PG = [answers[i * g:(i + 1) * g] for i in range(p)]
  groups = lambda by_name: {k: np.asarray(v, float).reshape(p, g) for k, v in by_name.items()}
  weights, scores = groups(best_of_n.weights(scores)), groups(scores)
  right_PG = np.where(np.isnan(outcome_PG), np.nan, outcome_PG > 0.5)
  values: dict[str, Sequence | np.ndarray] = {}
  def vote(k, weight_PG=(None,) * p):
    return [pass_at_k.maj_at_k(*row, k, w) for *row, w in zip(
        answers_PG, outcome_PG, weight_PG)]
  for k in [2**i for i in range(g.bit_length()) if 2**i <= g]:
    values |= {f"pass@{k}": pass_at_k.each(outcome_PG, k), f"maj@{k}": vote(k)}
    values |= {f"weighted@{k}/{name}": vote(k, w_PG) for name, w_PG in weights.items()}
    values |= {f"best@{k}/{name}": [best_of_n.at_n(*row, k)[1] for row in zip(
        score_PG, right_PG)] for name, score_PG in scores.items()}
  return {name: accuracy.interval(np.array(value_P)[:, None])
          for name, value_P in values.items()}


def text_metrics(outcome_PG: np.ndarray, answers: list[str | None], finish_B: np.ndarray,
                 length_B: Sequence[int]) -> dict[str, dict]:
  """Computes the shares of completions without an answer and truncated, and their lengths.

  Returns:
    {"no_answer", "truncated": as `accuracy.interval`; "length": in tokens, dict(mean, low, high,
    quantiles, right, wrong)}, where right and wrong are the mean lengths of right and wrong
    completions.
  """
  by_prompt = lambda x_B: np.asarray(x_B, float).reshape(outcome_PG.shape)
  length_PG = by_prompt(length_B)
  mean = lambda part_PG: float(length_PG[part_PG].mean()) if part_PG.any() else float("nan")
  mean_P = length_PG.mean(axis=1)
  return {
      "no_answer": accuracy.interval(by_prompt([a is None for a in answers])),
      "truncated": accuracy.interval(by_prompt(
          np.asarray(finish_B) == records.FINISH.index("length"))),
      "length": accuracy.bootstrap(lambda p: mean_P[p].mean(), len(mean_P)) | dict(
          quantiles=dict(zip(map(str, QUANTILES), np.quantile(length_B, QUANTILES).tolist())),
          right=mean(outcome_PG > 0.5), wrong=mean(outcome_PG <= 0.5))}


def _meta(prompts, field):
  """Returns the value of a field in the metadata of each prompt.

  Raises:
    ValueError: a prompt does not have the field.
  """
  for p in prompts:
    if field not in p.meta:
      raise ValueError(f"eval.difficulty={field!r}: the meta of {p.id!r} has "
                       f"{sorted(p.meta)}.")
  return [p.meta[field] for p in prompts]


def show(metrics: dict[str, dict]) -> None:
  """Prints the metrics: one line each, and those at k in a table with one column per k."""
  from rich import box, console, table  # pylint: disable=g-import-not-at-top
  at_k_rows: dict[str, dict] = {}
  plain = {}
  for name, x in metrics.items():
    kind, is_at_k, rest = name.partition("@")
    if is_at_k:
      k, _, score = rest.partition("/")
      at_k_rows.setdefault(" ".join([kind, *filter(None, [score])]), {})[int(k)] = x
    elif name != "prm":
      plain[name] = x
  plain |= {f"{path}  {name}": x for path, numbers in metrics.get("prm", {}).items()
            for name, x in numbers.items()}
  out = console.Console(width=200, highlight=False)
  for head, rows in (
      (["", "95% interval", "prompts"], [
          [name, cli.interval_text(x), str(x["prompts"])] for name, x in plain.items()]),
      (["k", *map(str, next(iter(at_k_rows.values()), ()))], [
          [name, *map(cli.interval_text, by_k.values())] for name, by_k in at_k_rows.items()])):
    shown = table.Table(*head, box=box.SIMPLE_HEAD)
    for row in rows: shown.add_row(*row)
    if rows: out.print(shown)
