"""Evaluation sets for a PRM: solutions with labelled steps, and preference pairs.

A set is a JSONL file of one of two kinds. The key `prompt` may also be `problem` or
`question`.

  {"prompt", "steps": [...], "label"}           index of the first wrong step, -1 if all
                                                are right: ProcessBench, arXiv:2412.06559
  {"prompt", "chosen", "rejected", "subset"?}   a text or a list of texts each: RewardBench,
                                                arXiv:2403.13787, RewardMATH, 2410.01729

A set can also be made of the policy's own completions, which a verifier of steps labels
(`first_errors`).
"""
import dataclasses
import json
import os
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from rlx import build
from rlx.core import records
from rlx.evals import accuracy, best_of_n, reward_model, step_errors
from rlx.io import rows as io_rows
from rlx.learner import hosts
from rlx.rewards import step_labels
from rlx.rollouts import padding, trajectories
from rlx.stages import host_fields, passes as passes_lib, texts as texts_lib
from rlx.verifiers import steps as verifier_steps


@dataclasses.dataclass(frozen=True)
class Solution:
  """A solution of a set: with a label, or with is_right and perhaps a subset."""
  prompt: str               # what the model reads
  text: str
  problem: int              # number of the problem; solutions of the same problem share it
  ends: list | None = None  # ends of the steps; None: rollouts.step_separator splits the text
  label: int | None = None  # index of the first wrong step, -1 if all are right
  is_right: bool | None = None
  subset: str | None = None


def read(path: str | os.PathLike, texts: texts_lib.Texts) -> list[Solution]:
  """Reads the Solutions of a JSONL file.

  Raises:
    ValueError: the file does not exist, or a row is of neither kind; the message names the
      file and the row.
  """
  path = pathlib.Path(path)
  if not path.is_file(): raise ValueError(f"eval.prm_sets: no file {path}.")
  solutions: list[Solution] = []
  seen: dict[str, int] = {}
  for i, (_, row) in enumerate(io_rows.read_lines(path)):
    where = f"{path}: row {i}"
    asked = next((row[k] for k in ("prompt", "problem", "question") if k in row), None)
    if not isinstance(asked, str) or not asked:
      raise ValueError(f"{where} has {sorted(row)}; needed is a text `prompt`, `problem` "
                       "or `question`.")
    prompt = texts.prompt(records.Prompt(id=str(i), text=asked))
    if "steps" in row:  # A problem may have several solutions.
      problem = seen.setdefault(asked, len(seen))
      solutions.append(_read_solution(row, where, texts.step_separator, prompt, problem))
    else:
      solutions += [Solution(prompt, text, i, is_right=is_right, subset=row.get("subset"))
                    for text, is_right in _read_preference(row, where)]
  if len({s.label is None for s in solutions}) != 1:
    raise ValueError(f"{path}: needed are rows of one kind, with `steps` and `label` or "
                     "with `chosen` and `rejected`.")
  return solutions


def _read_solution(row: dict, where: str, separator: str | None, prompt: str,
                   problem: int) -> Solution:
  steps, label = row["steps"], row.get("label")
  if (not isinstance(steps, list) or not steps or not all(isinstance(s, str) and s for s in steps)):
    raise ValueError(f"{where}: `steps` is a list of texts, at least one.")
  if label is None or isinstance(label, bool) or label not in range(-1, len(steps)):
    raise ValueError(f"{where}: label={label!r}; -1 to {len(steps) - 1} are allowed.")
  if separator is None:
    raise ValueError(f"rollouts.step_separator=None: {where} has steps, which it joins.")
  ends = np.cumsum([len(s) + len(separator) for s in steps])
  ends[-1] -= len(separator)  # The last step has none.
  return Solution(prompt, separator.join(steps), problem, ends=ends.tolist(), label=int(label))


def _read_preference(row: dict, where: str) -> list[tuple[str, bool]]:
  """[(text, whether it is the better one)] of a row."""
  sides: list[Any] = [[x] if isinstance(x, str) else x
                      for x in (row.get("chosen"), row.get("rejected"))]
  if not all(isinstance(side, list) and side and all(isinstance(t, str) and t for t in side)
             for side in sides):
    raise ValueError(f"{where} has {sorted(row)}; needed are `steps` and `label`, or "
                     "`chosen` and `rejected`, a text or a list of texts each.")
  return [(text, is_right) for side, is_right in zip(sides, (True, False)) for text in side]


def measure(run: build.Run, state: records.TrainState,
            solutions: list[Solution]) -> dict[str, dict]:
  """Evaluates the PRM on a set.

  Returns:
    {metric: dict(mean, low, high, ...)} of `first_error_f1` or `preferences`.
  """
  t, has_labels = run.texts.tokenizer, solutions[0].label is not None
  prompts, ids = zip(*(t.pair(s.prompt, s.text) for s in solutions))
  columns = [verifier_steps.token_ends(s.ends or (), t.pieces(row))
             for s, row in zip(solutions, ids)] if has_labels else None
  steps = score(run, state, prompts, [[*row, t.end_id] for row in ids], columns)
  problem_B = np.array([s.problem for s in solutions])
  if has_labels: return first_error_f1(steps, np.array([s.label for s in solutions]), problem_B)
  subset_of = {s.problem: s.subset for s in solutions}
  return preferences(scores(steps), np.array([s.is_right for s in solutions]), problem_B,
                     [subset_of[problem] for problem in sorted(subset_of)])


def score(run: build.Run, state: records.TrainState, prompts: Sequence[list[int]],
          completions: Sequence[list[int]],
          columns: list[list[int]] | None = None,
          segments: Sequence[Sequence[tuple[str, list[int]]]] | None = None
          ) -> dict[str, np.ndarray]:
  """Computes {variant: steps_BJ} of `step_rewards` for prompts and completions, in parts.

  Args:
    prompts, completions: lists of token ids.
    columns: see `step_rewards`.
    segments: of completions that are episodes, as of `trajectories.rows`; empty for others.
  """
  n, size = len(prompts), run.sizes.rows
  rows = [list(x) or [("action", list(ids))] for x, ids in zip(
      segments or [()] * n, completions)]
  multiple = run.sizes.bucket
  longest = [-(-max(map(len, x)) // multiple) * multiple for x in (prompts, completions)]
  parts = []
  for chosen in padding.batches(range(n), size):  # Repeated rows fill the last part.
    take = lambda x: [x[i] for i in chosen]  # pylint: disable=cell-var-from-loop
    rollouts = trajectories.rows(
        take(prompts), take(rows), width=longest[1], pad_id=run.texts.tokenizer.pad_id,
        prompt_width=padding.bucket(max(map(len, take(prompts))), longest[0]))
    parts.append(step_rewards(run, state, rollouts, columns and take(columns)))
  return {k: best_of_n.stack([part[k] for part in parts])[:n] for k in parts[0]}


def label_columns(run: build.Run, completions: Sequence[list[int]],
                  labels: str | None) -> list[list[int]]:
  """The columns of completions, lists of token ids, that have labels, see train_scorer.labels."""
  if labels == "outcome": return [[len(x) - 1] * bool(x) for x in completions]
  if labels in step_labels.OF_TOKENS: return [list(range(len(x))) for x in completions]
  return run.texts.step_columns(list(completions))


def step_rewards(run: build.Run, state: records.TrainState, rollouts: records.Rollouts,
                 columns: list[list[int]] | None = None) -> dict[str, np.ndarray]:
  """Computes the PRM's reward of each step, for rollouts on the host.

    ""      beta sum over the step's tokens of log pi_phi - log pi_ref
    no_ref  the same with log pi_phi alone

  The last step ends with the completion, EOS included. A PRM with a head
  (train_scorer.labels) has only the variant "": what it gives at the end of each step, at each
  token with train_scorer.labels=spans, or with outcome and prefixes at the end of the completion.

  Args:
    columns: the columns in which each row's steps end. None: rollouts.step_separator splits
      the completions; without a separator a completion is one step.
  Returns:
    {variant: steps_BJ}, NaN where a row has fewer than J steps.
  """
  rollouts, labels, asked = rollouts.rows(), run.passes.labels, run.passes.asked_scorer
  if columns is None:  # The value of the longest prefix is the score of the completion.
    columns = label_columns(run, padding.completions(rollouts),
                            "outcome" if labels == "prefixes" else labels)
  has_head = labels is not None
  if asked is not None:
    ids = padding.completions(rollouts)
    rollouts = host_fields.ask_rows(host_fields.prompt_ids(rollouts), ids, asked.question_ids,
                                    run.texts.tokenizer, rollouts.tokens_BS.shape[1])
    columns = [[0] * bool(row) for row in ids]
  elif has_head: rollouts = padding.append(rollouts, 0)
  passes = passes_lib.make_passes(run.passes, state, rollouts)
  if has_head:
    odds_BT = hosts.fetch(passes.head_scores())
    return {"": best_of_n.pad([row[columns_J] for row, columns_J in zip(odds_BT, columns)])}
  prm_BT, ref_BT = hosts.fetch((passes.logps("prm", "prm"), passes.prm_reference()))
  ends_BJ = best_of_n.pad([[*ends[:-1], last] if ends else []
                           for ends, last in zip(columns, rollouts.completion_len_B - 1)])
  ends_BJ = np.where(np.isnan(ends_BJ), -1, ends_BJ).astype(int)
  scale = float(run.methods.prm_beta(state.step))
  return {name: best_of_n.step_rewards(best_of_n.step_values(
      ratio_BT, rollouts.action_BT, ends_BJ, scale=scale))
          for name, ratio_BT in {"": prm_BT - ref_BT, "no_ref": prm_BT}.items()}


def scores(steps: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
  """Aggregates {variant: steps_BJ} to {aggregate or aggregate/variant: score_B}."""
  return {a + (variant and f"/{variant}"): score_B for variant, steps_BJ in steps.items()
          for a, score_B in best_of_n.scores(steps_BJ).items()}


def first_errors(run: build.Run, verifier: str, prompts: list[records.Prompt], texts: list[str],
                 outcome_B: np.ndarray, finish_B: np.ndarray) -> np.ndarray:
  """Labels completions with the index of the first wrong step: label_B, -1 if all are right.

  If a completion is wrong although all of its steps are right, the label is its last step,
  which states the answer. The label is NaN if the verifier fails or returns another number
  of steps than rollouts.step_separator gives, or if the completion was truncated.
  """
  verdicts = run.pool.verify_lists(
      [dataclasses.replace(p, verifier=verifier) for p in prompts], texts)
  cut, separator = records.FINISH.index("length"), run.texts.step_separator
  assert separator is not None  # As build/validation.py checks.
  labels = []
  for verdicts_J, text, outcome, finish in zip(verdicts, texts, outcome_B, finish_B):
    if not isinstance(verdicts_J, list): verdicts_J = []  # The verifier failed.
    n = len(verifier_steps.boundaries(text, separator))
    is_known = (n == len(verdicts_J) > 0 and finish != cut
                and not np.isnan([outcome, *verdicts_J]).any())
    first = next((j for j, v in enumerate(verdicts_J) if v < 0.5), -1 if outcome > 0.5 else n - 1)
    labels.append(first if is_known else np.nan)
  return np.array(labels, float)


def write(path: str | os.PathLike, run: build.Run, prompts: list[records.Prompt],
          texts: list[str], label_B: np.ndarray, outcome_B: np.ndarray) -> None:
  """Writes the labels of `first_errors` as a file for `read`, without unknown labels."""
  separator = run.texts.step_separator
  assert separator is not None
  with pathlib.Path(path).open("w") as f:
    for i, (p, text, label, outcome) in enumerate(zip(prompts, texts, label_B, outcome_B)):
      if np.isnan(label): continue
      ends = verifier_steps.boundaries(text, separator)
      steps = [text[a:b] for a, b in zip([0, *ends], ends)]
      f.write(json.dumps(dict(id=f"{p.id}/{i}", problem=p.text, label=int(label),
                              steps=[s.removesuffix(separator) for s in steps[:-1]] + steps[-1:],
                              final_answer_correct=bool(outcome > 0.5))) + "\n")


def first_error_f1(steps: dict[str, np.ndarray], label_B: np.ndarray,
                   problem_B: np.ndarray) -> dict[str, dict]:
  """F1 of finding the first wrong step, see `step_errors.f1`.

  A step counts as wrong below a threshold. For each half of the problems it is the one that
  is best on the other half. f1/step compares the log-odds of the steps, f1/value their running
  sum, which for an implicit PRM is the expected outcome. Rows whose label is NaN are ignored.
  """
  # pylint: disable=cell-var-from-loop
  known_B = ~np.isnan(label_B)
  label_B, problem_B = label_B[known_B].astype(int), np.asarray(problem_B)[known_B]
  _, problem_B = np.unique(problem_B, return_inverse=True)
  n, metrics = len(np.unique(problem_B)), {}
  often = lambda p: np.bincount(p, minlength=n)[problem_B]
  for variant, steps_BJ in steps.items():
    for name, scores_BJ in (("step", steps_BJ), ("value", np.cumsum(steps_BJ, axis=1))):
      error_B = step_errors.cross_validate(scores_BJ[known_B], label_B, problem_B % 2 == 0)
      f1 = step_errors.f1(error_B, label_B)
      metrics[f"f1/{name}" + (variant and f"/{variant}")] = accuracy.bootstrap(
          lambda p: step_errors.f1(error_B, label_B, often(p))["f1"], n) | dict(
              erroneous=f1["erroneous"], correct=f1["correct"], solutions=len(label_B))
  return metrics


def preferences(scores_: dict[str, np.ndarray], right_B: np.ndarray, problem_B: np.ndarray,
                subset_P: list | None = None) -> dict[str, dict]:
  """How often a right solution scores above a wrong one (pair) or above all (one_to_many).

  Args:
    scores_: {name: score_B}.
    right_B: bool.
    subset_P: name of each problem's subset; the pair accuracy is also computed for each
      subset. None: there are no subsets.
  Returns:
    {"pair/NAME"[, "pair/NAME/SUBSET"], "one_to_many/NAME": dict(mean, low, high, ...)}.
    "pair" is the mean over all pairs with a bootstrap interval over problems, "one_to_many"
    the mean over problems with Wilson's interval.
  """
  # pylint: disable=cell-var-from-loop
  rows_P = [np.flatnonzero(np.equal(problem_B, p)) for p in np.unique(problem_B)]
  parts = {} if subset_P is None else {
      f"/{s}": np.flatnonzero([s == t for t in subset_P])
      for s in sorted({s for s in subset_P if s is not None})}
  metrics = {}
  for name, score_B in scores_.items():
    score_B, right_B = np.asarray(score_B, float), np.asarray(right_B)
    sides_P = [(score_B[rows][right_B[rows]], score_B[rows][~right_B[rows]]) for rows in rows_P]
    pairs_P = [np.broadcast_arrays(better[:, None], worse) for better, worse in sides_P]
    count_P = np.array([better.size for better, _ in pairs_P])
    right_P = np.nan_to_num([reward_model.pair_accuracy(*p) for p in pairs_P]) * count_P
    share = lambda p: (right_P[p].sum() / count_P[p].sum() if count_P[p].any() else float("nan"))
    for part, chosen in {"": np.arange(len(rows_P)), **parts}.items():
      metrics[f"pair/{name}{part}"] = accuracy.bootstrap(lambda p: share(chosen[p]), len(chosen))
    each_P = [reward_model.one_to_many(score_B[None, rows], right_B[None, rows]) for rows in rows_P]
    column = lambda key: np.array([x[key] for x in each_P])[:, None]
    if each_P: metrics[f"one_to_many/{name}"] = accuracy.interval(column("accuracy")) | dict(
        mrr=accuracy.interval(column("mrr"))["mean"])
  return metrics


def compare_sampled(scores_: dict[str, np.ndarray], outcome_PG: np.ndarray) -> dict[str, dict]:
  """`preferences` of sampled groups.

  Each prompt's first right completion is compared with its wrong ones, as in RewardMATH,
  arXiv:2410.01729.
  """
  right_PG = outcome_PG > 0.5
  is_first_PG = right_PG & (np.cumsum(right_PG, axis=1) == 1)
  use_PG = (is_first_PG | (outcome_PG <= 0.5)) & right_PG.any(1, keepdims=True)
  rows = np.flatnonzero(use_PG)
  return preferences({k: np.asarray(s_B)[rows] for k, s_B in scores_.items()},
                     right_PG.ravel()[rows], rows // outcome_PG.shape[1])
