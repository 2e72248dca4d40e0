"""Rewards and verdicts of completions: from verifiers, and from the environments of episodes."""
import dataclasses
import itertools
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from rlx.core import fields, records
from rlx.io import tokenizer as tokenizer_io
from rlx.learner import hosts
from rlx.rollouts import trajectories
from rlx.stages import judging, texts as texts_lib
from rlx.verifiers import items as items_lib, pool

FROM_ROLLOUTS = ("action_BT", "sampler_logps_BT", "finish_B")  # Known before any verdict.


def clip_rewards(rewards: np.ndarray) -> np.ndarray:
  """Verdicts, which filters, accuracies and PRMs read: the rewards clipped to [0, 1]."""
  return np.clip(rewards, 0, 1)


class Verifiers:
  """The verifiers of a run; each process asks its pool about its share of the completions.

  A function that gives a list, of rewards of steps or of items of a verdict, may also be the
  verifier of prompts: their reward is then the mean of its list, weighted where the prompt weighs
  the items. The lists are kept until `lists` asks for them, so that the function is called once
  for each completion.
  """

  def __init__(self, pool_: pool.Pool, step_rewards: Sequence[str], items: str | None = None,
               judges: judging.Judges | None = None):
    """`step_rewards`, `items`: paths of verifiers that give a list, None: there is none. `judges`:
    those in process, None: there are none."""
    self._pool, self._step_rewards, self._items = pool_, step_rewards, items
    self._judges = judges
    self._kept: dict[tuple[str, str, str], Any] = {}

  def hold(self, state: records.TrainState) -> None:
    """From now on judges in process are models of this state."""
    if self._judges: self._judges.hold(state)

  def rewards(self, prompts: list[records.Prompt], texts: list[str], *,
              keep: bool = False) -> np.ndarray:
    """The reward of each text by the verifier of its prompt, NaN where it is unknown.

    Args:
      keep: the lists of functions that give some are kept for `lists`.
    """
    has_list_B = np.array([p.verifier in (*self._step_rewards, self._items) for p in prompts], bool)
    reward_B = np.empty(len(texts))
    reward_B[~has_list_B] = self._share_work(
        self._pool.verify, prompts, texts, np.flatnonzero(~has_list_B))
    rows = np.flatnonzero(has_list_B)
    lists = self._share_work(self._pool.verify_lists, prompts, texts, rows)
    reward_B[rows] = [self._mean(prompts[i], texts[i], x) for i, x in zip(rows, lists)]
    if keep: self._kept |= {_key(prompts[i], texts[i]): x for i, x in zip(rows, lists)}
    return reward_B

  def scores(self, path: str, prompts: list[records.Prompt], texts: list[str]) -> list[float]:
    """The verdict of each text by the verifier at a path."""
    return self._share_work(self._pool.verify, _set_verifier(path, prompts), texts,
                            range(len(texts)))

  def lists(self, path: str, prompts: list[records.Prompt], texts: list[str]) -> list:
    """The numbers of the steps or items of each text, see `Pool.verify_lists`."""
    prompts = _set_verifier(path, prompts)
    keys = [_key(p, text) for p, text in zip(prompts, texts)]
    rows = [i for i, key in enumerate(keys) if key not in self._kept]
    asked = dict(zip(rows, self._share_work(self._pool.verify_lists, prompts, texts, rows)))
    lists = [asked[i] if i in asked else self._kept[key] for i, key in enumerate(keys)]
    self._kept = {key: x for key, x in self._kept.items() if key[0] != path}
    return lists

  def _mean(self, prompt: records.Prompt, text: str, values: float | list[float]) -> float:
    """The mean of the known numbers of a text's list; NaN if none is known."""
    if not isinstance(values, list): return values  # Of every step or item.
    if prompt.verifier != self._items:
      # Without steps the list is empty, and also where it is unknown.
      if not text and not values: return 0.0
      return items_lib.average(items_lib.Item("", 1.0, x) for x in values)
    rows = items_lib.get_rows(prompt)
    if rows and len(rows) != len(values): return np.nan
    return items_lib.average(items_lib.read(prompt, values))

  def _share_work(self, verify: Callable, prompts: Sequence[records.Prompt], texts: Sequence[str],
                  rows: Sequence[int] | np.ndarray) -> list:
    """What `verify` returns for these rows, in order; each process computes its share.

    Completions of a prompt that its verifier compares stay together. Verifiers that run on the
    devices of all processes (`is_shared`) get all rows in each.
    """
    is_shared = lambda i: getattr(self._pool.lookup(prompts[i].verifier), "is_shared", False)
    shared = [int(i) for i in rows if is_shared(i)]
    places = [int(i) for i in rows if not is_shared(i)]
    known = dict(zip(shared, verify([prompts[i] for i in shared], [texts[i] for i in shared]))
                 ) if shared else {}
    def group_of(i: int) -> Any:
      prompt = prompts[places[i]]
      is_group = getattr(self._pool.lookup(prompt.verifier), "is_group", False)
      return (prompt.verifier, prompt.id) if is_group else i
    groups = [list(g) for _, g in itertools.groupby(range(len(places)), group_of)]
    def check(part: Sequence[int]) -> list[list]:
      these = [places[i] for g in part for i in groups[g]]
      results = iter(list(verify([prompts[i] for i in these], [texts[i] for i in these])))
      return [list(itertools.islice(results, len(groups[g]))) for g in part]
    known |= zip(places, itertools.chain(*hosts.share_work(check, len(groups))))
    return [known[int(i)] for i in rows]


def _set_verifier(path: str, prompts: Sequence[records.Prompt]) -> list[records.Prompt]:
  return [dataclasses.replace(p, verifier=path) for p in prompts]


def _key(prompt: records.Prompt, text: str) -> tuple[str, str, str]:
  return prompt.verifier, prompt.id, text


def make_columns(rollouts: records.Rollouts, reward_B: np.ndarray,
                 excluded_B: np.ndarray | None = None) -> dict[str, Any]:
  """The columns that every batch has. Numpy."""
  return dict(
      action_BT=np.asarray(rollouts.action_BT), reward_B=reward_B, outcome_B=clip_rewards(reward_B),
      sampler_logps_BT=rollouts.sampler_logps_BT, finish_B=rollouts.finish_B,
      excluded_B=np.zeros(len(reward_B), np.int8) if excluded_B is None else excluded_B) | {
          name: x for name in ("turn_BT", "turn_rewards_BT")
          if (x := getattr(rollouts, name)) is not None}


@dataclasses.dataclass(frozen=True)
class PromptRows:
  """(prompts, rollouts, texts) -> each completion's prompt, for its verifiers.

  The meta of these prompts contains the values of the fields that verifiers read by name.

  Attributes:
    planned: these fields and those that they are computed from.
    field_options: {field: options of its producer}.
  """
  planned: list[fields.Field]
  field_options: dict[str, dict[str, Any]]
  tokenizer: tokenizer_io.Tokenizer

  def __call__(self, prompts: list[records.Prompt], rollouts: records.Rollouts,
               texts: list[str]) -> list[records.Prompt]:
    rows = [p for p in prompts for _ in range(len(texts) // len(prompts))] if prompts else []
    names = [f.name for f in self.planned if f.axes]
    if not names: return rows
    values = fields.compute(self.planned, "host", dict(
        tokenizer=self.tokenizer, rollouts=rollouts, group_prompts=prompts, prompts=rows,
        texts=texts, **{n: np.asarray(getattr(rollouts, n)) for n in FROM_ROLLOUTS}),
                            self.field_options)
    return [dataclasses.replace(p, meta={**p.meta, **{n: values[n][b].tolist() for n in names}})
            for b, p in enumerate(rows)]


@dataclasses.dataclass(frozen=True)
class Outcomes:
  """Verdicts in [0, 1] of the completions of prompts, NaN where a verifier could not decide.

  The reward of an episode is its environment's verdict, or the sum of what its turns earned if the
  environment gives none. The prompt's verifier checks a completion, and the last action of an
  episode without any such reward.

  Attributes:
    readers: config keys of what reads the verdict. The first reward outside [0, 1] is reported
      in one line on stderr, which names them.
  """
  texts: texts_lib.Texts
  prompt_rows: PromptRows
  verifiers: Verifiers
  readers: Sequence[str]
  _reported: list[float] = dataclasses.field(default_factory=list, repr=False)

  def hold(self, state: records.TrainState) -> None:
    """From now on judges in process are models of this state."""
    self.verifiers.hold(state)

  def __call__(self, prompts: list[records.Prompt], rollouts: records.Rollouts) -> np.ndarray:
    """outcome_PG: the rewards clipped to [0, 1]."""
    return clip_rewards(self.rewards(prompts, rollouts))

  def rewards(self, prompts: list[records.Prompt], rollouts: records.Rollouts,
              texts: list[str] | None = None, *, keep: bool = False) -> np.ndarray:
    """reward_PG on the scale of the verifiers.

    Args:
      texts: those of the completions; None: they are decoded.
      keep: see `Verifiers.rewards`.
    """
    texts = self.texts.completions(rollouts) if texts is None else texts
    rows = self.prompt_rows(prompts, rollouts, texts)
    reward_B, is_given_B = trajectories.rewards(rollouts)
    if rollouts.turn_BT is not None: texts = self.texts.last_actions(rollouts)
    asked = [b for b, p in enumerate(rows) if p.verifier and not is_given_B[b]]
    reward_B[asked] = self.verifiers.rewards(
        [rows[b] for b in asked], [texts[b] for b in asked], keep=keep)
    reward_PG = reward_B.reshape(len(prompts), -1)
    outside = reward_PG[(reward_PG < 0) | (reward_PG > 1)]
    if len(outside) and not self._reported and hosts.is_first():
      self._reported.append(outside[0])
      print(f"rlx: a reward is {outside[0]:g}; {', '.join(['held-out accuracy', *self.readers])} "
            "read rewards clipped to [0, 1].", file=sys.stderr)
    return reward_PG
