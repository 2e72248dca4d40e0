"""Evaluates a scorer or a judge on rows of completions whose worth is known.

  rlx evaluate CONFIG scorer=NAME rows=FILE
  rlx evaluate CONFIG judge=judge.pairs rows=hf:allenai/reward-bench::filtered

The rows say what is measured (rlx/prompts/rated.py has their columns):

  chosen, rejected     pair accuracy, by subset, the scores of RewardBench and RewardBench 2; biases
                       for place, length, format and own texts; how often answers win that fit every
                       question, or that only look better; whether other wordings change the winner
  steps, label         first errors as in ProcessBench
  completions, gold    best of n against gold; calibration; with `kl`, gold and proxy against it

Writes judging.json and judging.png, which `rlx view` shows.
"""
import dataclasses
import functools
import itertools
import json
import math
import os
import pathlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from rlx.build import keys, measuring as build_measuring, prompts as build_prompts
from rlx.evals import (
    accuracy, best_of_n, calibration, overoptimization, reward_bench, reward_model, rewordings,
    step_errors, verifier)
from rlx.io import curves, report, rows as io_rows
from rlx.prompts import rated
from rlx.stages import measuring

Metrics = dict[str, dict[str, float]]
_interval = accuracy.bootstrap_mean  # Of one value per row.


def evaluate_judge(config: keys.Config, workdir: str | os.PathLike, *, rows: Any = None,
                   scorer: str | None = None, judge: str | None = None, own: str | None = None,
                   attacks: str = "100", limit: str | None = None,
                   columns: Mapping[str, str] | None = None) -> dict[str, Any]:
  """Asks a scorer or a judge about all rows.

  Args:
    rows: a source of rows (rlx/io/rows.py).
    scorer, judge: see `build.measuring.build_judge`.
    own: name of the model that judges, as the columns of models have it, to measure how much it
      prefers its own texts.
    attacks: number of pairs with which answers that say nothing, padded ones and reworded ones are
      tried; 0: none. Each takes 8 further comparisons, and 10 verdicts of a judge that gives them.
    limit: reads the first rows only.
    columns: {name of a column: what the rows call it}.
  Returns:
    dict(judged, rows, kind, metrics, ...), which is also written to <workdir>/judging.json.
    `metrics` is {name: dict(mean, low, high, prompts)}, with bootstrap intervals over rows; of
    completions with gold also `best_of_n`, `reliability` and `kl`; `used` has what a judge counts.
  """
  for name, text in (("attacks", attacks), ("limit", limit)):
    if text is not None and not str(text).isdigit():
      raise ValueError(f"{name}={text!r}: a number of rows.")
  if rows is None: raise ValueError("rlx evaluate scorer=... or judge=...: rows=FILE is needed.")
  given = rated.read(itertools.islice(_open_rows(rows), None if limit is None else int(limit)),
                     columns)
  given = [dataclasses.replace(x, prompt=build_prompts.add_items(config, x.prompt)) for x in given]
  judge_ = build_measuring.build_judge(config, [x.prompt for x in given], scorer, judge)
  check(judge_, given, own)
  try:
    result = dict(judged=scorer or judge, rows=str(rows)[:200], kind=given[0].kind,
                  count=len(given), **measure(judge_, given, own, int(attacks)))
  finally:
    used = judge_.close()
  if result["metrics"]["unknown"]["mean"] == 1:
    raise RuntimeError(f"{scorer or judge}: none of its numbers is known: {judge_.explain()}.")
  result["used"] = {name: n for name, n in used.items() if n}
  folder = pathlib.Path(workdir)
  folder.mkdir(parents=True, exist_ok=True)
  (folder / "judging.json").write_text(json.dumps(result, indent=2))
  report.print_judging(result)
  for name in ["judging.json"] + ["judging.png"] * curves.draw_judging(
      folder / "judging.png", result): print(f"  {folder / name}")
  return result


def _open_rows(rows: Any) -> Iterator[Mapping[str, Any]]:
  """The rows of a source, of its split test or its only one.

  Raises:
    ValueError: it has several others; one line.
  """
  if not isinstance(rows, str | os.PathLike | Mapping) and not hasattr(rows, "itertuples"):
    rows = list(rows)
  splits = io_rows.find_splits(rows, "rows")
  if len(splits) > 1 and "test" not in splits:
    raise ValueError(f"rows={str(rows)!r:.80}: it has the splits {splits}; name one, or several as "
                     "hf:OWNER/NAME::SPLIT+SPLIT.")
  return io_rows.rows(rows, "test" if "test" in splits else next(iter(splits), None), "rows")


def check(judge: measuring.Judge, rows: Sequence[rated.Rated], own: str | None = None) -> None:
  """Refuses rows that do not fit what is judged.

  Raises:
    ValueError: one line.
  """
  if judge.compares and rows[0].kind != "pairs":
    raise ValueError(f"rows: judge.pairs compares completions; needed are rows with `chosen` and "
                     f"`rejected`, not with {rated.SHOWN[rows[0].kind]}.")
  if rows[0].kind != "steps": judge.check(*zip(*((x.prompt, t) for x in rows for t in x.texts)))
  if own is not None and not any(own in x.models for x in rows):
    raise ValueError(f"own={own!r}: no row has it in chosen_model, rejected_model or models; there "
                     f"are {sorted({m for x in rows for m in x.models if m})!s:.200}.")


def measure(judge: measuring.Judge, rows: Sequence[rated.Rated], own: str | None = None,
            attacks: int = 100) -> dict[str, Any]:
  """Asks a judge about rows, which are of one kind; returns figures for `evaluate_judge`."""
  if rows[0].kind == "steps": return dict(metrics=measure_steps(judge, rows))
  if rows[0].kind == "gold": return measure_gold(judge, rows)
  metrics = measure_pairs(judge, rows, own)
  if attacks: metrics |= measure_attacks(judge, rows[:attacks])
  return dict(metrics=metrics, published={
      name: [dict(value=x, of=what, source=source) for x, what, source in figures]
      for name, figures in verifier.PUBLISHED.items()
      if any(key.partition("/")[0] == name for key in metrics)})


def measure_pairs(judge: measuring.Judge, rows: Sequence[rated.Rated],
                  own: str | None = None) -> Metrics:
  """{"accuracy", "accuracy/SUBSET", "ties", "top", a bias, ...}: each with its interval over rows.

  A tie counts as in RewardBench: of a scorer it is a loss, of a judge of pairs half a win.
  """
  pairs = [(i, a, b) for i, x in enumerate(rows) for a, b in itertools.product(
      [t for t, g in zip(x.texts, x.gold) if g], [t for t, g in zip(x.texts, x.gold) if not g])]
  row_N = np.array([i for i, _, _ in pairs])
  scores: list[np.ndarray] = []
  if judge.compares:
    first_N, second_N = _prefer(judge, [(rows[i].prompt, a, b) for i, a, b in pairs])
  else:
    scores = _score_groups(judge, rows)
    p_N = np.concatenate([_compare(s, np.array(x.gold)) for s, x in zip(scores, rows)])
    first_N = second_N = p_N
  p_N = (first_N + second_N) / 2
  right_N = np.where(np.isnan(p_N), np.nan, (p_N > 0.5) + 0.5 * judge.compares * (p_N == 0.5))
  places = [np.flatnonzero(row_N == i) for i in range(len(rows))]
  by_row = lambda value_N: np.array([accuracy.mean(v[~np.isnan(v)]) for v in (
      value_N[place] for place in places)])
  metrics: Metrics = {"accuracy": _interval(right_P := by_row(right_N)),
                      "ties": _interval(by_row(np.where(np.isnan(p_N), np.nan, p_N == 0.5)))}
  metrics["unknown"] = _interval(np.isnan(p_N).astype(float))
  subset_P = np.array([x.subset for x in rows])
  metrics |= {f"accuracy/{s}": _interval(right_P[subset_P == s])
              for s in sorted(set(subset_P) - {""})}
  metrics |= _score_benchmarks(rows, scores, right_P, subset_P)
  if scores and any(len(x.texts) > 2 for x in rows):
    metrics["top"] = _interval(_top(rows, scores))
  sign = lambda measure_: np.array([np.sign(measure_(a) - measure_(b)) for _, a, b in pairs])
  signs = dict(longer_N=sign(len), formatted_N=sign(rewordings.count_marks))
  if own is not None:
    signs["own_N"] = np.concatenate([
        [(m == own) - (n == own) for m, n in itertools.product(
            [m for m, g in zip(x.models, x.gold) if g],
            [m for m, g in zip(x.models, x.gold) if not g])] for x in rows])
  wanted = ["order", "inconsistent"] * judge.compares + ["length", "format"] + ["own"] * bool(own)
  def bias(name: str, chosen: np.ndarray) -> float:
    part = np.concatenate([places[i] for i in chosen])
    return verifier.measure_biases(first_N[part], second_N[part], np.ones(len(part)),
                                   **{k: x[part] for k, x in signs.items()})[name]
  metrics |= {name: accuracy.bootstrap(functools.partial(bias, name), len(rows),
                                       resamples=_RESAMPLES) for name in wanted}
  names = [x.paraphrase for x in rows]
  if any(names): metrics["consistency/paraphrases"] = _measure_consistency(
      by_row(_winner(p_N)), np.array([str(n) if n else f"row {i}" for i, n in enumerate(names)]))
  if scores and any(x.contrast for x in rows): metrics |= _measure_contrast(rows, scores)
  return metrics


def _measure_contrast(rows: Sequence[rated.Rated], scores: Sequence[np.ndarray]) -> Metrics:
  """{"contrast/NAME"}: `reward_model.contrast` of the sets of rows with the same `contrast`."""
  sets: dict[str, list[int]] = {}
  for i, x in enumerate(rows):
    if x.contrast: sets.setdefault(x.contrast, []).append(i)
  size = max(map(len, sets.values()))
  score_NKK = np.full((len(sets), size, size), np.nan)
  for score_KK, places in zip(score_NKK, sets.values()):
    for a, b in itertools.product(range(len(places)), repeat=2):
      given = dict(zip(rows[places[a]].texts, scores[places[a]]))
      score_KK[a, b] = given.get(rows[places[b]].texts[0], np.nan)
  def measure_sets(chosen: np.ndarray) -> dict[str, float]:
    return reward_model.contrast(score_NKK[chosen])
  return {f"contrast/{name}": accuracy.bootstrap(
      functools.partial(_get_score, measure_sets, name), len(sets), resamples=_RESAMPLES)
          for name in ("response", "instruction", "both")}


_RESAMPLES = 200  # Of biases, each of which takes as long as the rows are many.


def measure_attacks(judge: measuring.Judge, rows: Sequence[rated.Rated]) -> Metrics:
  """How often answers that say nothing, or nothing more, win against the better completion.

    null/K           constant answers; `null` is that of the one that wins most often
    repeated, listed the completion itself, made longer or formatted; above 1/2 is a bias
    accepted         of judges that give verdicts: how often the text without content is accepted
                     that is accepted most often (`evals.verifier.MASTER_KEYS`)
    consistency/NAME whether the pair has the same winner where both completions are reworded
  """
  prompts = [x.prompt for x in rows]
  good = [next(t for t, g in zip(x.texts, x.gold) if g) for x in rows]
  bad = [next(t for t, g in zip(x.texts, x.gold) if not g) for x in rows]
  def win(texts: Sequence[str]) -> dict[str, float]:
    orders = _prefer(judge, list(zip(prompts, texts, good)))
    return _interval(np.mean(orders, axis=0))
  nulls = {f"null/{k}": win([text] * len(rows)) for k, text in enumerate(verifier.NULL_ANSWERS, 1)}
  metrics = {"null": max(nulls.values(), key=lambda x: np.nan_to_num(x["mean"], nan=-1.0)), **nulls}
  metrics |= {name: win([change(t) for t in good]) for name, change in rewordings.PADDED.items()}
  if not judge.compares and judge.threshold > 0:
    verdicts = [judge.score(prompts, [text] * len(rows)) for text in verifier.MASTER_KEYS]
    metrics["accepted"] = max((_interval(np.where(np.isnan(v), np.nan, v > 0.5)) for v in verdicts),
                              key=lambda x: np.nan_to_num(x["mean"], nan=-1.0))
  plain_N = _winner(np.mean(_prefer(judge, list(zip(prompts, good, bad))), axis=0))
  for name, change in rewordings.REWORDED.items():
    asked = [(p, change(a), change(b)) for p, a, b in zip(prompts, good, bad)]
    new_N = _winner(np.mean(_prefer(judge, asked), axis=0))
    metrics[f"consistency/{name}"] = _measure_consistency(
        np.concatenate([plain_N, new_N]), np.tile(np.arange(len(rows)), 2))
  return metrics


def measure_steps(judge: measuring.Judge, rows: Sequence[rated.Rated]) -> Metrics:
  """{"f1", "f1/SUBSET", "erroneous/...", "correct/..."} of first wrong steps, as ProcessBench.

  "f1/tuned" has the threshold that is best on the other half of the problems. With several subsets
  `f1` is the mean of theirs, as published.
  """
  scores = judge.score_steps([x.prompt for x in rows], [x.texts for x in rows])
  steps_BJ = best_of_n.pad([[x - judge.threshold for x in row] for row in scores])
  label_B = np.array([x.label for x in rows])
  is_known_B = np.array([not np.isnan(s).any() for s in scores])
  error_B = np.where(is_known_B, step_errors.first_error(steps_BJ, 0.5), np.nan)
  _, problem_B = np.unique([x.prompt.text for x in rows], return_inverse=True)
  tuned_B = np.full(len(rows), np.nan)
  tuned_B[is_known_B] = step_errors.cross_validate(
      steps_BJ[is_known_B], label_B[is_known_B], problem_B[is_known_B] % 2 == 0)
  subset_B = np.array([x.subset for x in rows])
  subsets = sorted(set(subset_B))
  def f1(prediction_B: np.ndarray, key: str, part: np.ndarray) -> float:
    part = part[~np.isnan(prediction_B[part])]
    return step_errors.f1(prediction_B[part], label_B[part])[key]
  def mean_f1(prediction_B: np.ndarray, part: np.ndarray) -> float:
    return float(np.mean([f1(prediction_B, "f1", part[subset_B[part] == s]) for s in subsets]))
  def every(fn: Callable, rows_B: np.ndarray) -> dict[str, float]:
    return accuracy.bootstrap(lambda chosen: fn(rows_B[chosen]), len(rows_B))
  all_ = np.arange(len(rows))
  metrics = {"f1": every(functools.partial(mean_f1, error_B), all_),
             "f1/tuned": every(functools.partial(mean_f1, tuned_B), all_)}
  for key in ("erroneous", "correct"):
    metrics[key] = every(functools.partial(f1, error_B, key), all_)
  for s in subsets if len(subsets) > 1 else ():
    for key in ("f1", "erroneous", "correct"):
      metrics[f"{key}/{s}"] = every(functools.partial(f1, error_B, key),
                                    np.flatnonzero(subset_B == s))
  return metrics | dict(unknown=_interval(1.0 - is_known_B))


def measure_gold(judge: measuring.Judge, rows: Sequence[rated.Rated]) -> dict[str, Any]:
  """Best-of-n curves, the order within groups, calibration, and the curve along KL."""
  scores, golds = _score_groups(judge, rows), [np.array(x.gold) for x in rows]
  pairs = [_compare(s, g) for s, g in zip(scores, golds)]
  right_P = np.array([accuracy.mean(p[~np.isnan(p)]) for p in pairs])
  metrics = {"ranking": _interval(right_P),
             "unknown": _interval(np.isnan(np.concatenate(scores)).astype(float))}
  most = max(map(len, golds))
  sizes = [2**k for k in range(most.bit_length()) if 2**k <= most]
  best = [dict(n=n, kl=overoptimization.compute_best_of_n_kl(n), **{
      name: _interval(np.array([best_of_n.at_n(by, value, n)[1]
                                for by, value in zip(order, values)]))
      for name, order, values in (("gold", scores, golds), ("proxy", scores, scores),
                                ("best possible", golds, golds))}) for n in sizes]
  result: dict[str, Any] = dict(metrics=metrics, best_of_n=best)
  if len(sizes) > 2: result["best_of_n_fit"] = overoptimization.fit(
      [x["kl"] for x in best], [x["gold"]["mean"] for x in best], "best_of_n")
  score_B, gold_B = np.concatenate(scores), np.concatenate(golds)
  group_B = np.repeat(np.arange(len(rows)), list(map(len, golds)))
  known_B = ~np.isnan(score_B + gold_B)
  p_B, outcome_B = score_B[known_B], gold_B[known_B]
  if len(p_B) and min(*p_B, *outcome_B) >= 0 and max(*p_B, *outcome_B) <= 1:
    result["reliability"] = calibration.reliability(p_B, outcome_B, group_B[known_B], bins=10)
    for name, fn in (("ece", calibration.compute_expected_error), ("brier", calibration.brier)):
      metrics[name] = accuracy.bootstrap(
          functools.partial(_of_groups, fn, p_B, outcome_B, group_B[known_B]), len(rows),
          resamples=_RESAMPLES)
  if len({x.kl for x in rows} - {None}) > 1:
    result["kl"] = [dict(kl=kl, **{
        name: _interval(np.array([accuracy.mean(v[~np.isnan(v)]) for v, x in zip(values, rows)
                                  if x.kl == kl])) for name, values in (
                                      ("gold", golds), ("proxy", scores))})
                    for kl in sorted({x.kl for x in rows if x.kl is not None})]
    result["kl_fit"] = overoptimization.fit([x["kl"] for x in result["kl"]],
                                            [x["gold"]["mean"] for x in result["kl"]])
  return result


def _of_groups(fn: Callable, p_B: np.ndarray, outcome_B: np.ndarray, group_B: np.ndarray,
               chosen: np.ndarray) -> float:
  """A measure of the completions of these groups, with repeats."""
  rows = np.concatenate([np.flatnonzero(group_B == g) for g in chosen])
  return fn(p_B[rows], outcome_B[rows])


def _score_groups(judge: measuring.Judge, rows: Sequence[rated.Rated]) -> list[np.ndarray]:
  """The scores of each row's texts."""
  scores = judge.score([x.prompt for x in rows for _ in x.texts],
                       [t for x in rows for t in x.texts])
  return np.split(scores, np.cumsum([len(x.texts) for x in rows])[:-1])


def _prefer(judge: measuring.Judge, asked: Sequence[tuple[Any, str, str]]
            ) -> tuple[np.ndarray, np.ndarray]:
  return judge.prefer(*map(list, zip(*asked)))


def _compare(score_G: np.ndarray, gold_G: np.ndarray) -> np.ndarray:
  """p_N of all pairs whose gold differs: 1 if the better has the higher score, 0 if the worse has,
  1/2 for a tie, NaN is unknown."""
  i, j = np.nonzero(gold_G[:, None] > gold_G)
  return np.where(np.isnan(score_G[i] + score_G[j]), np.nan,
                  (score_G[i] > score_G[j]) + 0.5 * (score_G[i] == score_G[j]))


def _winner(p_N: np.ndarray) -> np.ndarray:
  return np.where(np.isnan(p_N), np.nan, (np.sign(p_N - 0.5) + 1) / 2)


def _measure_consistency(better_N: np.ndarray, group_N: np.ndarray) -> dict[str, float]:
  groups = [better_N[group_N == g] for g in np.unique(group_N)]
  return _interval(np.array([reward_model.consistency(x, np.zeros(len(x))) for x in groups]))


def _top(rows: Sequence[rated.Rated], scores: Sequence[np.ndarray]) -> np.ndarray:
  """For each row the share of right completions among those with the highest score."""
  return np.array([reward_model.one_to_many(s[None], [np.array(x.gold) > 0])["top"]
                   for s, x in zip(scores, rows)])


def _score_benchmarks(rows: Sequence[rated.Rated], scores: Sequence[np.ndarray],
                      right_P: np.ndarray, subset_P: np.ndarray) -> Metrics:
  """The sections and scores of RewardBench and RewardBench 2, of rows with their subsets."""
  metrics: Metrics = {}
  names, every = set(subset_P.tolist()), np.arange(len(rows))
  def add(benchmark: str, score: Callable[[np.ndarray], dict[str, float]]) -> None:
    for name in score(every):
      metrics[f"{benchmark}/{name}"] = accuracy.bootstrap(
          functools.partial(_get_score, score, name), len(rows), resamples=_RESAMPLES)
  if names & {s for part in reward_bench.SECTIONS.values() for s in part}:
    add("RewardBench", lambda chosen: reward_bench.score_sections(
        _mean_by_subset(right_P[chosen], subset_P[chosen])))
  if scores and {x.lower() for x in names} & {x.lower() for x in reward_bench.SUBSETS_2}:
    top_P = _top(rows, scores)
    def score_subsets(chosen: np.ndarray) -> dict[str, float]:
      means = _mean_by_subset(top_P[chosen], subset_P[chosen])
      means |= {s: _score_ties(rows, scores, chosen[subset_P[chosen] == s])
                for s in names if s.lower() == "ties"}
      return means | reward_bench.score_subsets_2(means)
    add("RewardBench 2", score_subsets)
  return metrics


def _get_score(score: Callable, name: str, chosen: np.ndarray) -> float:
  return score(chosen).get(name, math.nan)


def _mean_by_subset(value_P: np.ndarray, subset_P: np.ndarray) -> dict[str, float]:
  return {str(s): accuracy.mean(x[~np.isnan(x)]) for s in np.unique(subset_P)
          for x in [value_P[subset_P == s]]}


def _score_ties(rows: Sequence[rated.Rated], scores: Sequence[np.ndarray],
                part: np.ndarray) -> float:
  """`reward_bench.score_ties` of rows whose ids are ref:K and tied:K."""
  sides: dict[str, dict[str, tuple[np.ndarray, np.ndarray]]] = dict(ref={}, tied={})
  for i in part:
    kind, _, k = rows[i].id.partition(":")
    is_right_G = np.array(rows[i].gold) > 0
    if kind in sides: sides[kind][k] = scores[i][is_right_G], scores[i][~is_right_G]
  return reward_bench.score_ties(sides["ref"], sides["tied"])
