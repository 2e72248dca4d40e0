"""Completions on disk: samples and verifies them, labels their steps, and prepares batches.

stored_rows.py says what a row of a file is.
"""
from collections.abc import Sequence
import contextlib
import dataclasses
import json
import math
import os
import pathlib
import sys
from typing import Callable, TypeAlias, cast

import jax.numpy as jnp
import numpy as np

from rlx import build
from rlx.core import prefixes, records, rng
from rlx.evals import best_of_n, preferences
from rlx.learner import hosts, sharding
from rlx.loops import prm_sets, stored_rows
from rlx.models import value
from rlx.rewards import step_labels
from rlx.rollouts import padding, trajectories
from rlx.stages import host_fields, passes as passes_lib, texts as texts_lib, update_prm
from rlx.verifiers import steps as verifier_steps

Completion: TypeAlias = stored_rows.Completion
read = stored_rows.read
_START = -1  # The column after which a whole completion is sampled.


def sample(path: str | os.PathLike, run: build.Run, state: records.TrainState,
           prompts: list[records.Prompt], draw: Callable, *, batch: int, group: int, stream: str,
           verifier: str | None = None) -> None:
  """Samples `group` completions of each prompt and writes them with their verdicts.

  Args:
    path: the file; an incomplete file is completed.
    draw: the sampler, which takes `batch` prompts.
    stream: name of the random stream; samples depend only on it, the seed and the prompt.
    verifier: verifier of steps that `label` is computed with; None leaves it out.
  """
  def make(start: int, stop: int) -> list[dict]:
    these = prompts[start // group:stop // group]
    asked = [these[i % len(these)] for i in range(batch)]
    rollouts = hosts.fetch(draw(
        state.join_params("policy"), asked, rng.key(run.passes.seed, stream)))
    outcome_B = run.outcomes(asked, rollouts).ravel()
    run.pool.check(run.annotate.max_error_rate)
    texts = run.texts.completions(rollouts)
    asked = [p for p in asked for _ in range(group)]
    label_B = np.full(len(texts), np.nan) if verifier is None else prm_sets.first_errors(
        run, verifier, asked, texts, outcome_B, rollouts.finish_B)
    sampled_B = rollouts.action_BT.sum(axis=1)
    rows = [dict(prompt=run.texts.prompt(p), completion=t, verdict=_number(o), group=p.id,
                 finish=records.FINISH[int(f)], sampled=int(n), label=_number(error),
                 **({} if run.texts.reference is None else dict(reference=p.answer)))
            for p, t, o, f, n, error in zip(
                asked, texts, outcome_B, rollouts.finish_B, sampled_B, label_B)]
    if rollouts.turn_BT is not None:  # The tokens of an episode are kept as they are.
      rows = [row | dict(prompt_ids=ids, segments=segments) for row, ids, segments in zip(
          rows, *trajectories.split(rollouts))]
    return rows[:stop - start]  # The last batch has repeated prompts.

  _complete(path, len(prompts) * group, batch * group, make)


def label(path: str | os.PathLike, run: build.Run, state: records.TrainState,
          completions: list[Completion], k: int, *, with_start: bool) -> None:
  """Writes the rows of completions with `values`, Monte Carlo estimates for their steps.

    v_j = share of right completions among k that continue after step j;
          the verdict of the completion itself for the last step
    v_0 = the same among k completions of the prompt, `start`

  An incomplete file is completed. A value is null if no verdict is known. Values that rows have
  stay.

  Source: Math-Shepherd, Wang et al. 2023, arXiv:2312.08935; v_0, GenPRM, Zhao et al. 2025,
  arXiv:2504.00891. Differs from the papers: nothing known.

  Args:
    with_start: whether rows have `start`. It is the same for all completions of a group; its tokens
      count for the first of them in a block of rows.
  Raises:
    ValueError: a completion's group is not the id of a training prompt.
  """
  size = run.sizes.rows

  def make(start: int, stop: int) -> list[dict]:
    ends = run.texts.step_columns([x.ids for x in completions[start:stop]])
    first: dict[str, int] = {}
    for i in range(start, stop): first.setdefault(completions[i].group, i)
    after = [(i, column) for i, columns in enumerate(ends, start) for column in columns[:-1]
             if "values" not in completions[i].row]
    if with_start: after += [(i, _START) for i in first.values()]
    value: dict[tuple[int, int], float | None] = {}
    tokens: dict[int, int] = {}
    for at in range(0, len(after), size):
      starts = after[at:at + size]
      wins_PG, length_P = continue_from(starts)
      for (i, column), wins_G, length in zip(starts, wins_PG, length_P):
        value[i, column] = _number(_mean(wins_G))
        tokens[i] = tokens.get(i, 0) + int(length)
    rows = []
    for i, (x, columns) in enumerate(zip(completions[start:stop], ends), start):
      new: dict = dict(start=value[first[x.group], _START]) if with_start else {}
      if "values" not in x.row:
        new["values"] = [*(value[i, column] for column in columns[:-1]), _number(x.verdict)]
      rows.append(x.row | new | dict(
          sampled=x.row.get("sampled", len(x.ids)) + tokens.get(i, 0)))
    return rows

  def continue_from(starts: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    rollouts, ids = _go_on(run, state, k, "values", [
        (completions[i].prompt, completions[i].ids[:column + 1],
         f"{completions[i].group}/start" if column == _START else f"{i}/{column}")
        for i, column in starts])
    texts = [run.texts.tokenizer.decode(x) for x in ids]
    wins_PG = run.pool.verify(
        [prompts[i] for i, _ in starts for _ in range(k)], texts).reshape(-1, k)
    run.pool.check(run.annotate.max_error_rate)
    return wins_PG, np.asarray(rollouts.completion_len_B).reshape(-1, k).sum(axis=1)

  prompts = _find_prompts(run, completions)
  _complete(path, len(completions), size, make)


def branch(path: str | os.PathLike, run: build.Run, state: records.TrainState,
           completions: list[Completion], k: int) -> None:
  """Writes k completions in the place of each, which begin as it does up to the end of one of its
  steps, drawn at random: leaves of a tree, with its group and a verdict of their own.

  A completion of one step gives k new ones of its prompt. Its own tokens count for the first of
  them. An incomplete file is completed.

  Source: trees of completions, Qiu et al. 2024, arXiv:2402.10184 (its algorithm from memory,
  unverified). Differs from the paper: a tree has one level of branches, after the prompt; all
  leaves have labels, there pairs of them.

  Raises:
    ValueError: as `label`.
  """
  prompts = _find_prompts(run, completions)

  def make(start: int, stop: int) -> list[dict]:
    part = range(start // k, stop // k)
    ends = run.texts.step_columns([completions[i].ids for i in part])
    draws = [np.random.default_rng([run.passes.seed, rng.number("branch"), i]) for i in part]
    at = [int(draw.choice(columns[:-1])) if columns[1:] else _START
          for draw, columns in zip(draws, ends)]
    rollouts, ids = _go_on(run, state, k, "branch", [
        (completions[i].prompt, completions[i].ids[:column + 1], f"{i}/{column}")
        for i, column in zip(part, at)])
    most, tokens = run.texts.completion_tokens, run.texts.tokenizer
    finish = [records.FINISH[int(f)] if len(x) <= most else "length"
              for x, f in zip(ids, rollouts.finish_B)]
    texts = [tokens.decode(x[:most]) for x in ids]
    verdicts = run.pool.verify([prompts[i] for i in part for _ in range(k)], texts)
    run.pool.check(run.annotate.max_error_rate)
    return [dict({name: x for name, x in completions[part[b // k]].row.items() if name in (
        "prompt", "question", "reference")}, group=completions[part[b // k]].group, completion=text,
                 verdict=_number(v), finish=f, begun=at[b // k] + 1,
                 sampled=int(n) + (count_sampled_tokens([completions[part[b // k]]]) or 0
                                   if b % k == 0 else 0))
            for b, (text, v, f, n) in enumerate(zip(
                texts, verdicts, finish, rollouts.completion_len_B))]

  _complete(path, len(completions) * k, run.sizes.rows * k, make)


def _go_on(run: build.Run, state: records.TrainState, k: int, stream: str,
           starts: Sequence[tuple[list[int], list[int], str]]
           ) -> tuple[records.Rollouts, list[list[int]]]:
  """(what the policy draws, the ids of whole completions) of k completions after each start.

  Args:
    k: train_scorer.step_rollouts.
    starts: (ids of the prompt, ids of what has begun, name of the random stream), at most as many
      as a batch has rows.
  """
  asked = [starts[i % len(starts)] for i in range(run.sizes.rows)]
  tokens_PX, length_P = padding.pad_left(
      [prompt + begun for prompt, begun, _ in asked],
      run.sizes.prompt_tokens + run.sizes.completion_tokens, run.texts.tokenizer.pad_id)
  number_P = np.array([rng.number(name) for *_, name in asked], np.uint32)
  rollouts = hosts.fetch(run.sampling.after_steps.sample(
      state.join_params("policy"),
      *sharding.place_rows((tokens_PX, length_P, number_P), run.passes.mesh),
      rng.key(run.passes.seed, stream)))
  drawn = padding.completions(rollouts)[:len(starts) * k]
  return rollouts, [starts[b // k][1] + ids for b, ids in enumerate(drawn)]


def judge(path: str | os.PathLike, run: build.Run, completions: list[Completion],
          verifier: str) -> None:
  """Writes the rows of completions with `judged`, what a verifier of steps says of each step.

  Rows without `values` get them as values, too. Null is unknown, as where there are more or fewer
  verdicts than steps. An incomplete file is completed.

  Source: labels by the votes of several judge prompts, Tan et al. 2025, arXiv:2502.11520 (AURORA);
  by a language model, Zhang et al. 2025, arXiv:2501.07301. Differs from the papers: nothing known.

  Raises:
    ValueError: as `label`.
  """
  prompts = _find_prompts(run, completions)

  def make(start: int, stop: int) -> list[dict]:
    part = completions[start:stop]
    lists = run.outcomes.verifiers.lists(
        verifier, prompts[start:stop], [x.row["completion"] for x in part])
    run.pool.check(run.annotate.max_error_rate)
    rows = []
    for x, columns, given in zip(part, run.texts.step_columns([x.ids for x in part]), lists):
      n = max(len(columns), 1)
      given = given if isinstance(given, list) else [given] * n
      judged = [*map(_number, given)] if len(given) == n else [None] * n
      rows.append(dict(values=judged) | x.row | dict(judged=judged))
    return rows

  _complete(path, len(completions), run.sizes.rows, make)


def mix_judged(completions: list[Completion], share: float) -> list[Completion]:
  """The Completions whose `values` are means with what `judge` said of each step.

    v_j <- (1 - share) v_j + share judged_j, null if one of them is unknown

  Source: labels of a step as the mean of several views of it, Fin-PRM, Zhou et al. 2025,
  arXiv:2508.15202 (from memory, unverified). Differs from the paper: nothing known.
  """
  def mix(x: Completion) -> list[float | None]:
    return [None if None in (a, b) else (1 - share) * a + share * b
            for a, b in zip(x.row["values"], x.row["judged"])]
  return [dataclasses.replace(x, row=x.row | dict(values=mix(x))) for x in completions]


def score(path: str | os.PathLike, run: build.Run, state: records.TrainState,
          completions: list[Completion], names: Sequence[str]) -> None:
  """Writes the rows of completions with `scores`, a number from each of verifiers and scorers.

  Null is unknown. An incomplete file is completed.

  Args:
    names: of frozen scorers, "scorers.NAME", and of verifiers.
  """
  def make(start: int, stop: int) -> list[dict]:
    scores_NM = _score(run, state, completions[start:stop], names)
    return [x.row | dict(scores=[*map(_number, scores_M)])
            for x, scores_M in zip(completions[start:stop], scores_NM)]

  _complete(path, len(completions), run.sizes.rows, make)


def mix_scores(completions: list[Completion], share: float) -> list[Completion]:
  """The Completions whose verdict is a mean with the M numbers that `score` wrote.

    y <- (1 - share) y + share (s_1 + ... + s_M) / M,  NaN if one of them is unknown

  Source: labels of trajectories from their outcome and the knowledge that they use, Fin-PRM, Zhou
  et al. 2025, arXiv:2508.15202 (from memory, unverified). Differs from the paper: nothing known.
  """
  def mix(x: Completion) -> float:
    scores = x.row["scores"]
    if None in scores: return math.nan
    return (1 - share) * x.verdict + share * sum(scores) / len(scores)
  return [dataclasses.replace(x, verdict=mix(x)) for x in completions]


def mutate(path: str | os.PathLike, run: build.Run, completions: list[Completion],
           change: Callable, copies: int, verifier: str | None) -> None:
  """Writes right completions with `values` of 1, and copies of them in which one line is changed.

    v of the changed line = 1[the whole completion is right with it],  v of lines before it = 1

  A copy ends with the changed line, as what follows was written for another one. A line is a step,
  as rollouts.step_separator ends it. Copies without a change, or whose verdict is unknown, have
  unknown values. An incomplete file is completed.

  Source: Process-Supervised Reinforcement Learning for Code Generation, Ye et al. 2025,
  arXiv:2502.01715, as its abstract describes it. Differs from the paper: see
  `evals.mutations.swap_words`.

  Args:
    change: see train_scorer.mutate.
    verifier: what gives 1 to a right completion; None: that of its prompt.
  Raises:
    ValueError: as `label`.
  """
  prompts, each, separator = _find_prompts(run, completions), copies + 1, run.texts.step_separator
  assert separator is not None

  def alter(i: int) -> tuple[str, str, int] | None:
    """(the whole text, the text up to the changed line, its index) of the i-th row."""
    text = completions[i // each].row["completion"]
    ends = verifier_steps.boundaries(text, separator)
    draw = np.random.default_rng([run.passes.seed, rng.number("mutate"), i])
    for j in draw.permutation(len(ends)):
      start, end = (0, *ends)[j], ends[j]
      line = text[start:end]
      if (changed := change(line, text, draw)) is None or changed == line: continue
      if len(verifier_steps.boundaries(text[:start] + changed, separator)) == j + 1:
        return text[:start] + changed + text[end:], text[:start] + changed, int(j)
    return None

  def make(start: int, stop: int) -> list[dict]:
    altered = {i: copy for i in range(start, stop)
               if i % each and (copy := alter(i)) is not None}
    asked, texts = [prompts[i // each] for i in altered], [whole for whole, *_ in altered.values()]
    verdicts = (run.pool.verify(asked, texts) if verifier is None else
                run.outcomes.verifiers.scores(verifier, asked, texts)) if asked else ()
    run.pool.check(run.annotate.max_error_rate)
    is_right, rows = dict(zip(altered, verdicts)), []
    for i in range(start, stop):
      x = completions[i // each]
      n = len(verifier_steps.boundaries(x.row["completion"], separator))
      rows.append(x.row | dict(values=[None if i % each else 1.0] * n))
      if i not in altered or math.isnan(is_right[i]): continue
      _, text, j = altered[i]
      if len(run.texts.tokenizer.encode(text, add_bos=False)) > run.texts.completion_tokens:
        continue
      rows[-1] = x.row | dict(completion=text, finish="length", verdict=None, sampled=0, label=None,
                              values=[1.0] * j + [float(is_right[i] >= 1)])
    return rows

  _complete(path, len(completions) * each, run.sizes.rows, make)


def keep_agreed(completions: list[Completion]) -> list[Completion]:
  """The Completions whose `values` and `judged` have the same first wrong step, or none.

  A value above 0 is a right step, and a verdict of 1/2 and more; rows with unknown ones are left
  out. Source: consensus filtering, Zhang et al. 2025, arXiv:2501.07301.
  """
  known = [x for x in completions if None not in (*x.row["values"], *x.row["judged"])]
  values_BJ, judged_BJ = (best_of_n.pad([x.row[name] for x in known])
                          for name in ("values", "judged"))
  keep_B = step_labels.consensus(jnp.asarray(values_BJ > 0, jnp.float32), jnp.asarray(judged_BJ),
                                 jnp.asarray(~np.isnan(values_BJ)))
  return [x for x, keep in zip(known, np.asarray(keep_B)) if keep]


def _find_prompts(run: build.Run, completions: list[Completion]) -> list[records.Prompt]:
  """The training prompt of each completion, which names its verifier."""
  assert run.prompts is not None
  try:
    return run.prompts.by_id([x.group for x in completions])
  except ValueError as e:
    raise ValueError("train_scorer.labels: the group of a completion "
                     f"must be the id of its prompt, which names the verifier; {e}") from None


def curate(path: str | os.PathLike, run: build.Run, state: records.TrainState,
           completions: list[Completion], names: Sequence[str], choose: Callable
           ) -> list[Completion]:
  """The Completions of the pairs that `choose` keeps or swaps, by scores.

  The pairs are those of `find_pairs`. The `margin` of a pair is by how much the scores prefer the
  better one, in the mean, where rows have none. Pairs are written as such, and a line on stderr
  says how many were swapped and left out.

  Args:
    names: of frozen scorers, "scorers.NAME", and of verifiers.
    choose: (chosen_NM, rejected_NM) -> keep_N: 1, -1 swaps, 0 leaves out.
  Raises:
    ValueError: as `find_pairs`, or no pair is left.
  """
  groups = find_pairs(completions, "train_scorer.curate")
  scores_NM = _score(run, state, [x for group in groups for x in group], names)
  chosen_NM, rejected_NM = scores_NM[::2], scores_NM[1::2]
  keep_N = np.asarray(choose(chosen_NM, rejected_NM))
  strength_N = keep_N * preferences.measure_strength(chosen_NM, rejected_NM)
  kept, rows = [], []
  for group, keep, strength in zip(groups, keep_N, strength_N):
    if not keep: continue
    margin = group[0].row.get("margin", float(strength))
    pair = [dataclasses.replace(x, verdict=verdict, row=x.row | dict(
        verdict=verdict, margin=margin * verdict))
            for x, verdict in zip(group[::int(keep)], (1.0, 0.0))]
    kept += pair
    better, worse = (x.row for x in pair)
    rows.append({name: better[name] for name in ("prompt", "question") if name in better} | dict(
        chosen=better["completion"], rejected=worse["completion"], margin=margin))
  print(f"rlx: train_scorer.curate: of {len(groups)} pairs {sum(keep_N < 0)} are swapped and "
        f"{sum(keep_N == 0)} left out.", file=sys.stderr)
  if not kept: raise ValueError("train_scorer.curate: no pair is left.")
  pathlib.Path(path).write_text("".join(json.dumps(row) + "\n" for row in rows))
  return kept


def find_pairs(completions: list[Completion], key: str) -> list[tuple[Completion, Completion]]:
  """The pair of each group: its first completion of the highest verdict and its first of the lowest.

  A group of one verdict has none.

  Raises:
    ValueError: there is no pair; `key` is what needs one.
  """
  known = [x for x in completions if not math.isnan(x.verdict)]
  ranked = [sorted(group, key=lambda x: -x.verdict) for group in group_completions(known)]
  pairs = [(group[0], next(x for x in group if x.verdict == group[-1].verdict))
           for group in ranked if group[0].verdict > group[-1].verdict]
  if not pairs:
    raise ValueError(f"{key}: rows with pairs, two completions of a group of which one has a "
                     "higher verdict; there is none.")
  return pairs


def score_heads(run: build.Run, state: records.TrainState,
                completions: list[Completion]) -> np.ndarray:
  """heads_NK of the model that learns: what the heads of a mixture give to whole completions."""
  scores: list[np.ndarray] = []
  for rows in padding.batches(completions, run.sizes.rows):
    passes = passes_lib.make_passes(run.passes, state, padding.append(
        _rollouts(rows, run.texts).rows(), 0))
    outputs_BTC = passes.outputs("prm", "prm", run.passes.head_parts)
    heads_BTK = hosts.fetch(value.split_mixture(outputs_BTC)[0])
    scores += [heads_TK[len(x.ids)] for x, heads_TK in zip(rows, heads_BTK)]
  return np.stack(scores[:len(completions)])


def score_ends(run: build.Run, state: records.TrainState,
               completions: list[Completion]) -> tuple[np.ndarray, np.ndarray]:
  """(score_N, features_ND) of the model that learns, of whole completions; its head reads the
  features."""
  parts: list[tuple[np.ndarray, np.ndarray]] = []
  for rows in padding.batches(completions, run.sizes.rows):
    passes = passes_lib.make_passes(run.passes, state, padding.append(
        _rollouts(rows, run.texts).rows(), 0))
    parts.append(hosts.fetch(passes.ends("prm", "prm", run.passes.head_parts)))
  score_N, features_ND = map(np.concatenate, zip(*parts))
  return score_N[:len(completions)], features_ND[:len(completions)]


def fill_labels(run: build.Run, state: records.TrainState, completions: list[Completion],
                names: Sequence[str]) -> list[Completion]:
  """The Completions with labels of both kinds for each step: `rights` where they have no `label`,
  and `values`, by two frozen scorers that give probabilities.

  Source: pseudo labels of DuaShepherd, Wu et al. 2025, arXiv:2506.17533 (from memory, unverified).
  """
  filled = []
  for rows in padding.batches(completions, run.sizes.rows):
    for x, columns_J, scores_TM in zip(rows, run.texts.step_columns([x.ids for x in rows]),
                                       _score_tokens(run, state, rows, names)):
      right_J, value_J = scores_TM[columns_J].T.astype(float)
      more = {} if x.row.get("values") is not None else dict(values=value_J.tolist())
      if x.row.get("label") is None: more["rights"] = right_J.tolist()
      filled.append(dataclasses.replace(x, row=x.row | more))
  return filled[:len(completions)]


def _score_tokens(run: build.Run, state: records.TrainState, rows: list[Completion],
                  names: Sequence[str]) -> np.ndarray:
  """scores_BTM of completions up to each token, by scorers."""
  rollouts = _rollouts(rows, run.texts).rows()
  passes, longer = (passes_lib.make_passes(run.passes, state, x)
                    for x in (rollouts, padding.append(rollouts, 0)))
  return np.stack([hosts.fetch(passes.token_scores(name, longer)) for name in names], axis=2)


def _score(run: build.Run, state: records.TrainState, completions: list[Completion],
           names: Sequence[str]) -> np.ndarray:
  """scores_NM of completions by scorers, at their last tokens, and by verifiers."""
  scorers = list(filter(host_fields.is_scorer, names))
  columns: dict[str, list] = {name: [] for name in names}
  for rows in padding.batches(completions, run.sizes.rows) if scorers else ():
    at = np.arange(len(rows)), [len(x.ids) - 1 for x in rows]
    for name, scores in zip(scorers, _score_tokens(run, state, rows, scorers)[at].T):
      columns[name] += scores.tolist()
  prompts, texts = zip(*((_find_prompt(run, x), x.row["completion"]) for x in completions))
  for name in {*names} - {*scorers}:
    columns[name] = run.outcomes.verifiers.scores(name, list(prompts), list(texts))
    run.pool.check(run.annotate.max_error_rate)
  return np.stack([columns[name][:len(completions)] for name in names], axis=1).astype(float)


def _find_prompt(run: build.Run, x: Completion) -> records.Prompt:
  """The training prompt of a completion, or one that knows what the model reads alone."""
  if run.prompts is not None:
    with contextlib.suppress(ValueError): return run.prompts.by_id([x.group])[0]
  return records.Prompt(x.group, run.texts.tokenizer.decode(x.prompt))


def label_all(completions: list[Completion], run: build.Run,
              merge_steps: bool = False) -> list[Completion]:
  """The Completions with the labels that train_scorer.labels names, those without one left out.

  Args:
    merge_steps: whether a copy of each completion of several steps has two of them as one.
  """
  kind = run.passes.labels
  if kind == "outcome": return label_outcomes(completions)
  if kind == "prefixes": return label_prefixes(completions)
  if kind == "spans": return label_spans(completions, run.texts)
  if kind == "both": return label_both(completions, run.texts)
  if merge_steps: completions = [*completions, *_merge(completions, run.passes.seed)]
  return add_labels(completions, run.texts, cast(step_labels.Kind, kind))


def label_prefixes(completions: list[Completion]) -> list[Completion]:
  """The Completions of known verdict with a label for each token: `prefixes.values` of a group.

  Source: TVM, Lee et al. 2024, arXiv:2407.12863.
  """
  labelled = []
  for group in group_completions([x for x in completions if not math.isnan(x.verdict)]):
    width = max(len(x.ids) for x in group)
    tokens_BT, len_B = padding.pad_right([x.ids for x in group], width, 0)
    values_BT = prefixes.values(
        tokens_BT, np.arange(width)[None] < len_B[:, None],
        np.array([[x.verdict for x in group]], np.float32), np.ones((1, len(group)), bool))
    labelled += [dataclasses.replace(x, labels=tuple(values_T[:len(x.ids)].tolist()))
             for x, values_T in zip(group, np.asarray(values_BT))]
  return labelled


def label_spans(completions: list[Completion], texts: texts_lib.Texts) -> list[Completion]:
  """The Completions with `spans`: a token has the label of the part in which its last character is.

  Source: labels of tokens from edits, Xu et al. 2024, arXiv:2406.02756 (from memory, unverified).
  """
  labelled = []
  for x in completions:
    length_T = np.array([len(piece) for piece in texts.tokenizer.pieces(x.ids)])
    end_T, labels_T = np.cumsum(length_T), np.full(len(x.ids), np.nan)
    for start, end, label in x.row.get("spans", ()):
      labels_T[(start < end_T) & (end_T <= end) & (length_T > 0)] = label
    labelled.append(dataclasses.replace(x, labels=tuple(labels_T.tolist())))
  return [x for x in labelled if not np.isnan(x.labels).all()]


def label_both(completions: list[Completion], texts: texts_lib.Texts) -> list[Completion]:
  """The Completions with `label` (steps before the first wrong one are right, it and later ones are
  not), as labels, or with `values`, as potentials; a row may have one of them alone.

  Source: DuaShepherd, Wu et al. 2025, arXiv:2506.17533 (from memory, unverified).
  """
  labelled = []
  for x, columns_J in zip(completions, texts.step_columns([x.ids for x in completions])):
    n, error, values_J = len(columns_J), x.row.get("label"), x.row.get("values")
    if values_J is not None and len(values_J) != max(n, 1):
      raise ValueError(f"train_scorer.rollouts: {x.row['completion']!r} has {len(values_J)} values "
                       f"for {n} steps.")
    rights_J = x.row.get("rights", [math.nan] * n)
    if error is None and values_J is None: continue
    right_J = rights_J if error is None else [float(error < 0 or j < error) for j in range(n)]
    labelled.append(dataclasses.replace(x, labels=tuple(right_J), potentials=tuple(
        [math.nan if v is None else v for v in values_J or [None] * n])))
  return labelled


def _merge(completions: list[Completion], seed: int) -> list[Completion]:
  """Copies of completions in which a step has no value of its own: it and the next one are one.

  The label of both is that of the later one, which may repair the earlier. Source: HRM, Wang et al.
  2025, arXiv:2503.13551 (from memory, unverified). Differs from the paper: the text between them
  stays.
  """
  copies = []
  for i, x in enumerate(completions):
    if (n := len(x.row.get("values", ()))) < 2: continue
    j = int(np.random.default_rng([seed, rng.number("merge_steps"), i]).integers(n - 1))
    values = [v for k, v in enumerate(x.row["values"]) if k != j]
    copies.append(dataclasses.replace(x, row=x.row | dict(values=values, merged=j)))
  return copies


def add_labels(completions: list[Completion], texts: texts_lib.Texts,
               kind: step_labels.Kind) -> list[Completion]:
  """The Completions with labels of a kind of step_labels, without those with unknown values.

  Raises:
    ValueError: the number of values of a row is not the number of its steps, or a row has no
      `start` and the kind reads it.
  """
  reads_start = kind == "relative"
  for x, columns in zip(completions, texts.step_columns([x.ids for x in completions])):
    n = len(x.row.get("values", ())) + ("merged" in x.row)
    if n != max(len(columns), 1):
      raise ValueError(f"train_scorer.rollouts: {x.row['completion']!r} has {n} values for "
                       f"{len(columns)} steps.")
    if reads_start and "start" not in x.row:
      raise ValueError(f"train_scorer.labels={kind!r}: {x.row['completion']!r} was labelled "
                       "without `start`, the value of its prompt; use another --workdir.")
  completions = [x for x in completions if None not in x.row["values"]
                 and (not reads_start or x.row["start"] is not None)]
  values_BJ = best_of_n.pad([x.row["values"] for x in completions])
  start_B = jnp.asarray([x.row["start"] for x in completions]) if reads_start else None
  labels_BJ = np.asarray(step_labels.from_values(
      jnp.asarray(values_BJ), jnp.asarray(~np.isnan(values_BJ)), start_B, kind=kind))
  labelled = []
  for x, labels_J in zip(completions, labels_BJ):
    labels = labels_J[:len(x.row["values"])].tolist()
    if "merged" in x.row: labels.insert(x.row["merged"], math.nan)
    labelled.append(dataclasses.replace(x, labels=tuple(labels)))
  return labelled


def label_outcomes(completions: list[Completion]) -> list[Completion]:
  """The Completions with a known verdict, which is their label."""
  return [dataclasses.replace(x, labels=(x.verdict,)) for x in completions
          if not math.isnan(x.verdict)]


def group_completions(completions: list[Completion]) -> list[list[Completion]]:
  """Returns a list of the completions of each group."""
  groups: dict[str, list[Completion]] = {}
  for x in completions: groups.setdefault(x.group, []).append(x)
  return list(groups.values())


def split_groups(groups: list[list[Completion]], size: int) -> list[list[Completion]]:
  """Splits groups into parts of at most `size` completions."""
  return [group[i:i + size] for group in groups for i in range(0, len(group), size)]


def fill_group(group: list[Completion], size: int) -> list[Completion]:
  """A group with empty completions, without a verdict and labels, up to `size` of them."""
  empty = dataclasses.replace(group[0], row=dict(completion=""), ids=[], verdict=math.nan,
                              labels=(), potentials=(), segments=())
  return group + [empty] * (size - len(group))


def limit_tokens(completions: list[Completion], tokens: int | None, *,
                 spread: bool) -> list[Completion]:
  """The first completions for which at most `tokens` tokens were sampled in total.

  Args:
    tokens: the limit, or None for no limit.
    spread: take the first completion of every group before the second of any.
  Raises:
    ValueError: the first completion exceeds the limit.
  """
  if tokens is None: return completions
  place = {id(x): i for group in group_completions(completions) for i, x in enumerate(group)}
  order = sorted(completions, key=lambda x: place[id(x)]) if spread else completions
  spent = np.cumsum([x.row.get("sampled", len(x.ids)) for x in order])
  if spent[0] > tokens:
    raise ValueError(f"train_scorer.max_sampled={tokens}: the first completion took {spent[0]}.")
  return order[:int(np.searchsorted(spent, tokens, side="right"))]


def count_sampled_tokens(completions: Sequence[Completion]) -> int | None:
  """Number of tokens that were sampled for the completions, `values` included; None: rows do not
  say."""
  if any("sampled" not in x.row for x in completions): return None
  return sum(x.row["sampled"] for x in completions)


def batch(groups: list[list[Completion]], step: int, run: build.Run, *, add_outcome: bool = False
          ) -> tuple[records.Rollouts, np.ndarray, dict[str, np.ndarray]]:
  """(rollouts, outcome_B, columns of the Batch) of a step, in numpy; groups are reshuffled every
  epoch.

  A group with fewer than rollouts.per_prompt rows is padded with empty rows, which have no
  verdict and no labels. The column labels_BT, and with labels=both also potential_BT, is NaN except
  at the tokens that have labels; margin_B is there if rows have it. With `add_outcome` the last
  token of a completion has its verdict, where no step ends in it.
  """
  n, rows, sizes, asked = len(groups), [], run.sizes, run.passes.asked_scorer
  for i in range(step * sizes.prompts, (step + 1) * sizes.prompts):
    draw = np.random.default_rng([run.passes.seed, rng.number("train_prm"), i // n])
    rows += fill_group(groups[draw.permutation(n)[i % n]], sizes.group)
  ids, verdict_B = [x.ids for x in rows], np.array([x.verdict for x in rows], np.float32)
  arrays: dict[str, np.ndarray] = {}
  if asked is not None:
    rollouts = ask(run, [x.prompt for x in rows], ids)
    ends = [[0] * bool(x) for x in ids]
  else:
    rollouts = padding.trim(_rollouts(rows, run.texts), sizes.multiple)
    if run.passes.labels is None: return rollouts, verdict_B, arrays
    ends = prm_sets.label_columns(run, ids, run.passes.labels)
  names = {"labels_BT": "labels"} | ({"potential_BT": "potentials"} if run.passes.labels == "both"
                                     else {})
  for name, field in names.items():
    arrays[name] = np.full(rollouts.sampler_logps_BT.shape, np.nan, np.float32)
    for labels_T, x, columns_J in zip(arrays[name], rows, ends):
      if labels := getattr(x, field): labels_T[columns_J] = labels[:len(columns_J)]
      if add_outcome and x.ids and len(x.ids) - 1 not in columns_J:
        labels_T[len(x.ids) - 1] = x.verdict
  if isinstance(run.update_prm, update_prm.UpdatePrmHead) and run.update_prm.reads_key:
    draw = np.random.default_rng([run.passes.seed, rng.number("noise"), step])
    arrays["noise_B"] = draw.random(len(rows), np.float32)
  if "margin" in groups[0][0].row:
    arrays["margin_B"] = np.array([x.row.get("margin", 0) for x in rows], np.float32)
  return rollouts, verdict_B, arrays


def ask(run: build.Run, prompts: Sequence[list[int]],
        completions: Sequence[list[int]]) -> records.Rollouts:
  """The rows in which a scorer with train_scorer.head=yes_no is asked about completions."""
  assert run.passes.asked_scorer is not None
  return host_fields.ask_rows(
      prompts, completions, run.passes.asked_scorer.question_ids, run.texts.tokenizer,
      run.sizes.prompt_tokens + run.sizes.completion_tokens)


def _rollouts(rows: list[Completion], texts: texts_lib.Texts) -> records.Rollouts:
  """Rollouts of completions and of episodes."""
  if not any(x.segments for x in rows):
    return texts.rollouts([x.prompt for x in rows], [x.ids for x in rows])
  return texts.episodes((x.prompt, [*x.segments] or [("action", x.ids)]) for x in rows)


def _complete(path: str | os.PathLike, count: int, size: int,
              make: Callable[[int, int], list[dict]]) -> None:
  """Appends the missing rows to a JSONL file of `count` rows: make(start, stop), by `size`."""
  path = pathlib.Path(path)
  path.parent.mkdir(parents=True, exist_ok=True)
  lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
  lines = [line for line in lines if line.endswith(b"\n")]  # SIGKILL may cut the last line.
  if len(lines) > count:
    raise ValueError(f"{path} has {len(lines)} rows, this config makes it {count}; remove "
                     "it or use another --workdir.")
  if len(lines) == count: return
  done = len(lines) // size * size
  path.write_bytes(b"".join(lines[:done]))
  for start in range(done, count, size):
    rows = make(start, min(start + size, count))
    with path.open("a") as f: f.writelines(json.dumps(row) + "\n" for row in rows)


def _number(x: float) -> float | None:
  """The number as JSON stores it: None, which is null, for NaN."""
  return None if math.isnan(x) else float(x)


def _mean(wins_G: np.ndarray) -> float:
  return float(np.nanmean(wins_G)) if not np.isnan(wins_G).all() else math.nan
