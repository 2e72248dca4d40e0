"""Completions on disk: samples and verifies them, labels their steps, and reads batches.

A row of a file is one completion:

  prompt      the text that the model reads; or `question`, to which prompts.template is applied
  completion  its text
  verdict     in [0, 1]; null if unknown
  group       name of the group that the row belongs to; the default is the prompt
  finish      eos, stop or length; the default is eos, for which an EOS token is added
  values      for each step, the share of right completions among those sampled after it
  start       the same of the prompt, before the first step; read by train_scorer.labels=relative
  sampled     number of tokens sampled for the row, including those sampled for `values` and `start`
  label       index of the first wrong step, -1 if all are right; only for evaluation

A row may have a pair instead, the texts `chosen` and `rejected`: it is two completions with the
verdicts 1 and 0, which are a group of their own. Values of steps that people, a formal checker or
another model gave are labels too: with `values` in all rows nothing is sampled.
"""
import dataclasses
import json
import math
import os
import pathlib
from typing import Callable

import jax.numpy as jnp
import numpy as np

from rlx import build
from rlx.core import ranges, records, rng
from rlx.evals import best_of_n
from rlx.io import rows as io_rows
from rlx.learner import hosts, sharding
from rlx.loops import prm_sets
from rlx.rewards import step_labels
from rlx.rollouts import padding
from rlx.stages import texts as texts_lib



@dataclasses.dataclass(frozen=True)
class Completion:
  """A row with its token ids."""
  row: dict
  prompt: list      # token ids
  ids: list         # EOS included
  group: str
  verdict: float    # NaN if unknown
  labels: tuple = ()  # one for each step, see `add_labels`


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
    some = prompts[start // group:stop // group]
    asked = [some[i % len(some)] for i in range(batch)]
    rollouts = draw(state.join_params("policy"), asked, rng.key(run.passes.seed, stream))
    outcome_B = run.outcomes(asked, rollouts).ravel()
    run.pool.check(run.annotate.max_error_rate)
    texts = run.texts.completions(rollouts)
    asked = [p for p in asked for _ in range(group)]
    label_B = np.full(len(texts), np.nan) if verifier is None else prm_sets.first_errors(
        run, verifier, asked, texts, outcome_B, rollouts.finish_B)
    rows = [dict(prompt=run.texts.prompt(p), completion=t, verdict=_number(o), group=p.id,
                 finish=records.FINISH[int(f)], sampled=int(n), label=_number(error))
            for p, t, o, f, n, error in zip(
                asked, texts, outcome_B, rollouts.finish_B, rollouts.completion_len_B, label_B)]
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
  size, width = run.sizes.rows, run.sizes.prompt_tokens + run.sizes.completion_tokens

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
      some = after[at:at + size]
      wins_PG, length_P = continue_from(some)
      for (i, column), wins_G, length in zip(some, wins_PG, length_P):
        value[i, column] = _number(_mean(wins_G))
        tokens[i] = tokens.get(i, 0) + int(length)
    rows = []
    for i, (x, columns) in enumerate(zip(completions[start:stop], ends), start):
      own: dict = dict(start=value[first[x.group], _START]) if with_start else {}
      if "values" not in x.row:
        own["values"] = [*(value[i, column] for column in columns[:-1]), _number(x.verdict)]
      rows.append(x.row | own | dict(
          sampled=x.row.get("sampled", len(x.ids)) + tokens.get(i, 0)))
    return rows

  def continue_from(some: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    asked = [some[i % len(some)] for i in range(size)]
    starts = [completions[i].ids[:column + 1] for i, column in asked]
    tokens_PX, length_P = padding.pad_left(
        [completions[i].prompt + ids for (i, _), ids in zip(asked, starts)], width,
        run.texts.tokenizer.pad_id)
    number_P = np.array([rng.number(
        f"{completions[i].group}/start" if column == _START else f"{i}/{column}")
                         for i, column in asked], np.uint32)
    rollouts = hosts.fetch(run.sampling.after_steps.sample(
        state.join_params("policy"),
        *sharding.place_rows((tokens_PX, length_P, number_P), run.passes.mesh),
        rng.key(run.passes.seed, "values")))
    texts = [run.texts.tokenizer.decode(starts[b // k] + ids)
             for b, ids in enumerate(padding.completions(rollouts)[:len(some) * k])]
    wins_PG = run.pool.verify([prompts[i] for i, _ in some for _ in range(k)], texts).reshape(-1, k)
    run.pool.check(run.annotate.max_error_rate)
    return wins_PG, rollouts.completion_len_B.reshape(-1, k).sum(axis=1)

  assert run.prompts is not None
  try:
    prompts = run.prompts.by_id([x.group for x in completions])
  except ValueError as e:
    raise ValueError("train_scorer.labels: the group of a completion "
                     f"must be the id of its prompt, which names the verifier; {e}") from None
  _complete(path, len(completions), size, make)


def read(path: str | os.PathLike, texts: texts_lib.Texts) -> list[Completion]:
  """Reads the Completions of a file, in order.

  Raises:
    ValueError: the file does not exist, a row lacks a field or has an invalid one, or a text
      is too long; the message names the file and the line.
  """
  path, completions = pathlib.Path(path), []
  if not path.is_file(): raise ValueError(f"train_scorer: no file {path}.")
  for i, row in ((i, part) for i, row in io_rows.read_lines(path) for part in _split_pair(i, row)):
    where, prompt = f"{path}:{i}", row.get("prompt")
    if prompt is None and isinstance(row.get("question"), str):
      prompt = texts.prompt(records.Prompt(id="", text=row["question"]))
    if not isinstance(prompt, str) or not isinstance(row.get("completion"), str):
      raise ValueError(f"{where} has {sorted(row)}; needed are texts `prompt` or "
                       "`question`, and `completion`, or `chosen` and `rejected`.")
    for key, allowed in _ALLOWED.items():
      if key in row or key == "verdict":
        ranges.check(f"{where}: {key}", row.get(key, "none"), allowed)
    try:
      ids = texts.tokenizer.pair(prompt, row["completion"])
    except ValueError as e:
      raise ValueError(f"{where}: {e}") from None
    if row.get("finish", "eos") == "eos": ids[1].append(texts.tokenizer.end_id)
    for key, n, most in (("prompts.max_tokens", len(ids[0]), texts.prompt_tokens),
                         ("rollouts.max_tokens", len(ids[1]), texts.completion_tokens)):
      if not 0 < n <= most: raise ValueError(f"{where} has {n} tokens; {key}={most}.")
    verdict = row["verdict"]
    completions.append(Completion(row, ids[0], ids[1], group=str(row.get("group", prompt)),
                                  verdict=math.nan if verdict is None else float(verdict)))
  if not completions: raise ValueError(f"{path}: no rows.")
  return completions


def _split_pair(i: int, row: dict) -> list[dict]:
  """The completions of a row: two of a pair."""
  if not {"chosen", "rejected"} <= row.keys(): return [row]
  rest = {key: x for key, x in row.items() if key not in ("chosen", "rejected")}
  return [dict(dict(group=f"pair {i}"), **rest, completion=row[side], verdict=verdict)
          for side, verdict in (("chosen", 1.0), ("rejected", 0.0))]


_START = -1  # The column after which a whole completion is sampled.
_SHARE = ranges.SHARE.or_none
_ALLOWED = {  # field -> the values that are valid
    "verdict": _SHARE,
    "values": ranges.Kind("a list of numbers from 0 to 1, or nulls",
                          lambda x: isinstance(x, list) and all(value in _SHARE for value in x)),
    "start": _SHARE,
    "finish": ranges.Kind(f"one of {list(records.FINISH)}", lambda x: x in records.FINISH),
    "sampled": ranges.WHOLE,
    "label": ranges.Range(-1, 2**31 - 1).or_none,
    "group": ranges.Kind("a text or a whole number", lambda x: isinstance(x, str | int))}


def add_labels(completions: list[Completion], texts: texts_lib.Texts,
               kind: step_labels.Kind) -> list[Completion]:
  """The Completions with labels of a kind of step_labels, without those with unknown values.

  Raises:
    ValueError: the number of values of a row is not the number of its steps, or a row has no
      `start` and the kind reads it.
  """
  reads_start = kind == "relative"
  for x, columns in zip(completions, texts.step_columns([x.ids for x in completions])):
    if (n := len(x.row.get("values", ()))) != max(len(columns), 1):
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
  return [dataclasses.replace(x, labels=tuple(labels_J[:len(x.row["values"])].tolist()))
          for x, labels_J in zip(completions, labels_BJ)]


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
                              labels=())
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
  spent = np.cumsum([count_sampled_tokens([x]) for x in order])
  if spent[0] > tokens:
    raise ValueError(f"train_scorer.max_sampled={tokens}: the first completion took {spent[0]}.")
  return order[:int(np.searchsorted(spent, tokens, side="right"))]


def count_sampled_tokens(completions: list[Completion]) -> int:
  """Number of tokens that were sampled for the completions, `values` included."""
  return sum(x.row.get("sampled", len(x.ids)) for x in completions)


def batch(groups: list[list[Completion]], step: int,
          run: build.Run) -> tuple[records.Rollouts, np.ndarray, np.ndarray]:
  """(rollouts, outcome_B, labels_BT) of a step, in numpy; groups are reshuffled every epoch.

  A group with fewer than rollouts.per_prompt rows is padded with empty rows, which have no
  verdict and no labels. labels_BT is NaN except at the ends of labelled steps, or completions.
  """
  n, rows, sizes = len(groups), [], run.sizes
  for i in range(step * sizes.prompts, (step + 1) * sizes.prompts):
    draw = np.random.default_rng([run.passes.seed, rng.number("train_prm"), i // n])
    rows += fill_group(groups[draw.permutation(n)[i % n]], sizes.group)
  rollouts = padding.trim(run.texts.rollouts([x.prompt for x in rows], [x.ids for x in rows]),
                          sizes.multiple)
  labels_BT = np.full(rollouts.sampler_logps_BT.shape, np.nan, np.float32)
  if any(x.labels for x in rows):
    ids = [x.ids for x in rows]
    ends = ([[len(x) - 1] * bool(x) for x in ids] if run.passes.head_at_end else
            run.texts.step_columns(ids))
    for labels_T, x, columns in zip(labels_BT, rows, ends):
      labels_T[columns] = x.labels[:len(columns)]
  return rollouts, np.array([x.verdict for x in rows], np.float32), labels_BT


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
