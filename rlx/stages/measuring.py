"""What judges completions that are given as texts: a frozen model, or a verifier.

Both give a number for a completion, a preference between two, and numbers for the steps of one;
rlx/build/measuring.py makes them from a config.
"""
import abc
import contextlib
import dataclasses
import math
from collections.abc import Callable, Sequence

import numpy as np

from rlx.core import records
from rlx.evals import verifier as verifier_lib
from rlx.learner import hosts
from rlx.rollouts import padding, trajectories
from rlx.stages import host_fields, outcomes, passes as passes_lib, texts as texts_lib
from rlx.verifiers import pool as pool_lib, steps as verifier_steps

Prompts = Sequence[records.Prompt]
Texts = Sequence[str]


class Judge(abc.ABC):
  """Gives numbers to completions; higher is better, NaN is unknown."""
  compares = False  # Whether it only compares two completions, whose order it may notice.
  threshold = 0.5   # From this number on a step is right.

  def check(self, prompts: Prompts, texts: Texts) -> None:
    """Refuses texts that it cannot read.

    Raises:
      ValueError: one line with the id of the prompt.
    """

  def close(self) -> dict[str, int]:
    """Ends its processes; returns what was counted, such as requests."""
    return {}

  def explain(self) -> str:
    """Why the newest unknown number is unknown."""
    return "the model gives NaN"

  @abc.abstractmethod
  def score(self, prompts: Prompts, texts: Texts) -> np.ndarray:
    """score_N of one text for each prompt."""

  @abc.abstractmethod
  def score_steps(self, prompts: Prompts, steps: Sequence[Texts]) -> list[list[float]]:
    """For each prompt a number for each step of one solution."""

  def score_beginnings(self, prompts: Prompts, steps: Sequence[Texts],
                       separator: str) -> list[list[float]]:
    """`score_steps` whose number for a step is that of the solution up to its end."""
    starts = [separator.join(row[:j + 1]) for row in steps for j in range(len(row))]
    asked = [dataclasses.replace(p, id=f"{p.id}/{j}")
             for p, row in zip(prompts, steps) for j in range(len(row))]
    scores = iter(self.score(asked, starts).tolist())
    return [[next(scores) for _ in row] for row in steps]

  def prefer(self, prompts: Prompts, first: Texts, second: Texts) -> tuple[np.ndarray, np.ndarray]:
    """(a_first_N, a_second_N) as `evals.verifier.ask_both_orders`: how far A is preferred."""
    a_N, b_N = np.split(self.score([*prompts, *prompts], [*first, *second]), 2)
    p_N = np.where(np.isnan(a_N + b_N), np.nan, (a_N > b_N) + 0.5 * (a_N == b_N))
    return p_N, p_N


@dataclasses.dataclass(frozen=True)
class VerifierJudge(Judge):
  """A verifier, such as a judge behind an endpoint.

  Attributes:
    path: as of `Prompt.verifier`.
    compares: whether it is judge.pairs, asked in one order.
    by_prefix: whether the steps of a solution are judged by its beginnings; else the verifier
      gives a number for each step.
  """
  verifiers: outcomes.Verifiers
  pool: pool_lib.Pool
  path: str
  separator: str
  compares: bool = False
  by_prefix: bool = False

  def close(self) -> dict[str, int]:
    self.pool.close()
    return self.pool.take_usage()

  def explain(self) -> str: return self.pool.last_error or "it could not tell"

  def score(self, prompts: Prompts, texts: Texts) -> np.ndarray:
    return self.verifiers.rewards(self._prompts(prompts), list(texts))

  def prefer(self, prompts: Prompts, first: Texts, second: Texts) -> tuple[np.ndarray, np.ndarray]:
    if not self.compares: return super().prefer(prompts, first, second)
    ask: Callable = lambda asked, texts: self.verifiers.rewards(list(asked), list(texts))
    return verifier_lib.ask_both_orders(ask, self._prompts(prompts), first, second)

  def score_steps(self, prompts: Prompts, steps: Sequence[Texts]) -> list[list[float]]:
    if self.by_prefix: return self.score_beginnings(prompts, steps, self.separator)
    lists = self.verifiers.lists(self.path, list(prompts), [self.separator.join(x) for x in steps])
    for p, row, given in zip(prompts, steps, lists):
      if isinstance(given, list) and given and len(given) != len(row):
        raise ValueError(f"judge={self.path!r}: it gives {len(given)} numbers for the {len(row)} "
                         f"steps of {p.id}; rollouts.step_separator={self.separator!r} joins them.")
    return [given if isinstance(given, list) and given else [math.nan] * len(row)
            for given, row in zip(lists, steps)]

  def _prompts(self, prompts: Prompts) -> list[records.Prompt]:
    return [dataclasses.replace(p, verifier=self.path) for p in prompts]


@dataclasses.dataclass(frozen=True)
class ScorerJudge(Judge):
  """A frozen model: `Passes.token_scores` at the last token, or its answer to a question.

  A completion ends with EOS. Rows are sorted by length, so that short ones are not padded to the
  longest.

  Attributes:
    name: its section of the config, scorers.NAME.
    rows: completions in a forward pass.
    multiple: widths are this times a power of two.
    most: positions that the model supports; None: any number.
  """
  options: passes_lib.Options
  state: records.TrainState
  texts: texts_lib.Texts
  name: str
  rows: int
  multiple: int
  most: int | None = None

  @property
  def threshold(self) -> float:  # type: ignore[override]
    return 0.0 if self._scorer.kind in ("head", "energy", "implicit") else 0.5

  @property
  def _scorer(self) -> passes_lib.Scorer: return self.options.scorers[self.name]

  def check(self, prompts: Prompts, texts: Texts) -> None:
    for p, text in zip(prompts, texts): self._encode(p, text)

  def score(self, prompts: Prompts, texts: Texts) -> np.ndarray:
    score_N, rows, question = np.full(len(texts), np.nan), {}, list(self._scorer.question_ids)
    for i, (p, text) in enumerate(zip(prompts, texts)):
      with contextlib.suppress(ValueError):  # Such as a text that is too long once it is repeated.
        asked, ids = self._encode(p, text)
        rows[i] = ([*asked, *ids[:-1], *question], question[:1]) if question else (asked, ids)
    if not rows: return score_N
    columns = [[len(ids) - 1] for _, ids in rows.values()]
    read = self._ask if question else self._read
    score_N[list(rows)] = self._run(list(rows.values()), columns, read)[:, 0]
    return score_N

  def score_steps(self, prompts: Prompts, steps: Sequence[Texts]) -> list[list[float]]:
    separator = self.texts.step_separator or "\n"
    if self._scorer.question_ids or self._scorer.kind == "energy":
      return self.score_beginnings(prompts, steps, separator)
    rows = [self._encode(p, separator.join(row)) for p, row in zip(prompts, steps)]
    columns = []
    for row, (_, ids) in zip(steps, rows):
      lengths = [len(x) + len(separator) for x in row[:-1]] + [len(row[-1])]
      columns.append(verifier_steps.token_ends(
          np.cumsum(lengths).tolist(), self.texts.tokenizer.pieces(ids[:-1])))
    if self._scorer.kind == "implicit":  # The log-ratio of a step; the last one has EOS.
      columns = [[*c[:-1], len(ids) - 1] for c, (_, ids) in zip(columns, rows)]
    scores_BJ = self._run(rows, columns, self._read)
    if self._scorer.kind == "implicit": scores_BJ = np.diff(scores_BJ, axis=1, prepend=0.0)
    return [x[:len(row)].tolist() for x, row in zip(scores_BJ, steps)]

  def _encode(self, prompt: records.Prompt, text: str) -> tuple[list[int], list[int]]:
    """Token ids of a prompt, and of a completion with EOS.

    Raises:
      ValueError: the tokenizer cannot encode them, or they are longer than the model supports.
    """
    tokens = self.texts.tokenizer
    asked = prompt.text if prompt.meta.get("is_rendered") else self.texts.prompt(prompt)
    try:
      ids, completion = tokens.pair(asked, text)
    except ValueError as e:
      raise ValueError(f"{prompt.id}: {e}") from None
    if self._scorer.reference is not None:
      ids = ids + host_fields.reference_ids(prompt, self._scorer.reference, tokens)
    n = len(ids) + len(completion) + 1 + len(self._scorer.question_ids)
    if self.most is not None and n > self.most:
      raise ValueError(f"{prompt.id} has {n} tokens; {self.name} supports {self.most} positions. "
                       "Leave the row out.")
    return ids, [*completion, tokens.end_id]

  def _run(self, rows: list[tuple[list[int], list[int]]], columns: list[list[int]],
           read: Callable) -> np.ndarray:
    """scores_BJ at columns of each completion, NaN where a row has fewer."""
    scores_BJ = np.full((len(rows), max(map(len, columns))), np.nan)
    order = sorted(range(len(rows)), key=lambda i: len(rows[i][0]) + len(rows[i][1]))
    width = lambda n: self.multiple * 2 ** max(math.ceil(math.log2(n / self.multiple)), 0)
    for chosen in padding.batches(order, self.rows):
      asked, ids = zip(*(rows[i] for i in chosen))
      scores_BT = read(trajectories.pairs(
          asked, ids, self.texts.tokenizer, width(max(map(len, ids))),
          width(max(map(len, asked)))))
      for i, scores_T in zip(chosen, scores_BT):
        scores_BJ[i, :len(columns[i])] = scores_T[columns[i]]
    return scores_BJ

  def _read(self, rollouts: records.Rollouts) -> np.ndarray:
    make = lambda x: passes_lib.make_passes(self.options, self.state, x.rows())
    longer = padding.append(rollouts.rows(), 0)
    return hosts.fetch(make(rollouts).token_scores(self.name, make(longer)))

  def _ask(self, rollouts: records.Rollouts) -> np.ndarray:
    passes = passes_lib.make_passes(self.options, self.state, rollouts.rows())
    return hosts.fetch(passes.yes_no_scores(self.name, rollouts.rows()))[:, None]
