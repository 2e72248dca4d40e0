"""Dialogues with environments: replies and observations as texts and as token ids."""
import collections
import contextlib
import dataclasses
import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent import futures
from typing import Any

import jax

from rlx.core import records
from rlx.core.options import key
from rlx.environments import runner as runner_lib
from rlx.io import chat, tokenizer as tokenizer_io
from rlx.learner import hosts
from rlx.rollouts import episodes

_LETTERS = 64    # A token rarely stands for more characters.
_SLACK = 8       # Tokens that texts can take more together than alone.
_WAIT_S = 1.0    # Seconds between two looks for answers of other processes.
_WINDOW = 1024   # Newest episodes whose failures count.
_KNOWN = 4096    # Rendered observations that are remembered.


@dataclasses.dataclass(frozen=True, kw_only=True)
class Options:
  """The config values of episodes."""
  turns: int = key("episodes.turns")
  turn_tokens: int | None = key("episodes.turn_tokens")
  observation_tokens: int = key("episodes.observation_tokens")
  cut_mark: str = key("episodes.cut_mark")
  seconds: float = key("episodes.seconds")
  overlap: float | None = key("episodes.overlap")
  max_error_rate: float = key("verifier.max_error_rate")


@dataclasses.dataclass(frozen=True)
class _Render:
  """Renders an observation as `chat.follow` does; remembers some."""
  tokenizer: tokenizer_io.Tokenizer
  role: str
  opening: Sequence[Mapping[str, Any]]
  tools: list | None
  _known: dict[str, str] = dataclasses.field(default_factory=dict)

  def __call__(self, text: str) -> str:
    if text not in self._known:
      if len(self._known) >= _KNOWN: self._known.clear()
      self._known[text] = chat.follow(self.tokenizer, self.role, text, self.opening,
                                      tools=self.tools)
    return self._known[text]


@dataclasses.dataclass(frozen=True)
class Observations:
  """What the policy reads between two turns.

  Attributes:
    before, after: texts around an observation, see `chat.between`; "" without a chat template.
    render: writes an observation with these around it, as the chat template does; None: as it is.
    limit: tokens of an observation; of a longer one the start is kept, and then `mark`.
  """
  tokenizer: tokenizer_io.Tokenizer
  before: str
  after: str
  limit: int
  mark: str
  render: _Render | None

  def _write(self, text: str) -> str:
    return text if self.render is None else self.render(text)

  @functools.cached_property
  def most(self) -> int:
    """The largest number of tokens that `ids` gives."""
    return self.limit + len(self._encode(self.before + self.after)) + _SLACK

  def ids(self, text: str, last_id: int) -> list[int]:
    """The ids to read after a reply whose last token is `last_id`.

    The text is data: special tokens that it spells are broken up, and characters that the
    tokenizer cannot encode are left out; then the chat template renders it. If the reply has ended
    with the token that the template puts after it, the template's own is left out.
    """
    text = text[:_LETTERS * (self.limit + 1)]  # Of which more than `limit` tokens come.
    for special in self._special: text = text.replace(special, f"{special[0]} {special[1:]}")
    try:
      ids = self._encode(text)
    except ValueError:
      text = "".join(filter(self._is_known, text))
      ids = self._encode(text)
    kept, read = len(ids), ids
    if kept > self.limit:
      kept = max(self.limit - len(self._encode(self.mark)), 0)
      text = self.tokenizer.decode(ids[:kept]) + self.mark
    if self.before or self.after or len(ids) > self.limit: read = self._encode(self._write(text))
    # A template can write more than it is given, as "\\n" for a line break.
    while len(read) > self.most and kept:
      kept = min(max(kept - len(read) + self.most, kept // 2), kept - 1)
      text = self.tokenizer.decode(ids[:kept]) + self.mark
      read = self._encode(self._write(text))
    read = read[:self.most]
    return read[1:] if self.before and read[:1] == [last_id] else read

  @functools.cached_property
  def _special(self) -> list[str]:
    added = self.tokenizer.hf.added_tokens_decoder.values()
    names = {*map(str, self.tokenizer.hf.all_special_tokens), *(str(t) for t in added if t.special)}
    return sorted(names, key=lambda name: (-len(name), name))

  def _is_known(self, character: str) -> bool:
    try:
      return bool(self._encode(character))
    except ValueError:
      return False

  def _encode(self, text: str) -> list[int]:
    return self.tokenizer.encode(text, add_bos=False) if text else []


def observations(tokenizer: tokenizer_io.Tokenizer, *, role: str, is_chat: bool, limit: int,
                 mark: str, opening: Sequence[Mapping[str, Any]] = chat.QUESTION,
                 tools: list | None = None) -> Observations:
  """The Observations of a run whose dialogues start with messages such as `opening`.

  Raises:
    ValueError: the chat template cannot be extended turn by turn, or the tokenizer cannot encode
      the mark.
  """
  before = after = ""
  render = None
  if is_chat:
    if opening[-1]["role"] == "assistant": opening = opening[:-1]  # The start of a reply.
    before, after = chat.between(tokenizer, role, opening, tools=tools)
    render = _Render(tokenizer, role, opening, tools)
  try:
    n = len(tokenizer.encode(mark, add_bos=False))
  except ValueError:
    n = limit + 1
  if n > limit:
    raise ValueError(f"episodes.cut_mark={mark!r}: a text of at most episodes.observation_tokens="
                     f"{limit} tokens that the tokenizer can encode.")
  return Observations(tokenizer, before, after, limit, mark, render)


class Answers:
  """The environments of the rows of a draw, as `episodes.make` asks them.

  With several processes each takes the steps of its share of the rows, and all get every answer.

  Attributes:
    info: the newest `Step.info` of each row.
    is_unknown: whether the environment of a row failed, not because of a reply.
    failed: number of steps that a reply made fail.
  """

  def __init__(self, runner: runner_lib.Runner, observations_: Observations,
               states: Sequence[str], seconds: float):
    """`states`: the pickled environment of each row; `seconds`: for all steps of an episode."""
    self._runner, self._observations = runner, observations_
    self._states, self._left_s = list(states), [seconds] * len(states)
    self._last_id = [0] * len(states)
    self._jobs: dict[int, futures.Future] = {}
    self.info: list[dict[str, float]] = [{} for _ in states]
    self.is_unknown, self.failed = [False] * len(states), 0

  def submit(self, row: int, ids: list[int]) -> None:
    """Takes a step with the text of a finished action."""
    self._last_id[row] = ids[-1]
    if row % jax.process_count() != jax.process_index(): return
    reply = self._observations.tokenizer.decode(ids)
    self._jobs[row] = self._runner.step(self._states[row], reply)

  def take(self, rows: Sequence[int]) -> list[tuple[int, episodes.Answer]]:
    """The answers of these rows, in this order, once all have arrived."""
    arrived: dict[int, list] = {}
    while len(arrived) < len(rows):
      own = {job: row for row in rows if (job := self._jobs.get(row)) is not None}
      # Processes that have nothing to wait for look again, so that none waits for the others long.
      done = futures.wait(own, _WAIT_S).done
      here = [self._take(row, self._jobs.pop(row).result()) for job, row in own.items()
              if job in done]
      arrived |= {x[0]: x for x in sum(hosts.gather(here), [])}
    return [self._answer(*arrived[row]) for row in rows]

  def _take(self, row: int, taken: runner_lib.Taken) -> list:
    """The arguments of `_answer`, which are JSON."""
    self._states[row] = taken.state
    self._left_s[row] -= taken.seconds
    step = taken.step
    if step is None: return [row, None, None, None, False, False, {}]
    ends = step.done or self._left_s[row] <= 0
    return [row, None if ends else step.observation, step.reward, step.verdict, True, taken.failed,
            step.info]

  def _answer(self, row: int, observation: str | None, reward: float | None,
              verdict: float | None, is_known: bool, failed: bool,
              info: dict[str, float]) -> tuple[int, episodes.Answer]:
    self.info[row], self.is_unknown[row] = info, not is_known
    self.failed += failed
    ids = None if observation is None else self._observations.ids(observation, self._last_id[row])
    reward, verdict = (math.nan if x is None else x for x in (reward, verdict))
    return row, episodes.Answer(ids, reward, is_known, verdict)


class Dialogues:
  """The environment of a run: its episodes' first texts, and the answers of those under way.

  Attributes:
    sizes: options of `episodes.make`, for the most tokens after the prompt of an episode.
  """

  def __init__(self, runner: runner_lib.Runner, options: Options, template: Callable):
    """`template`: Prompt -> text or messages, of a prompt whose episode starts with a text."""
    self._runner, self._options, self._template = runner, options, template
    self._openings: dict[str, str | list] = {}
    self._totals: collections.defaultdict[str, float] = collections.defaultdict(float)
    self._recent: collections.deque = collections.deque(maxlen=_WINDOW)  # Is it unknown?
    self._observations: Observations | None = None

  def open_episode(self, prompt: records.Prompt) -> str | list:
    """The text or chat messages that an episode of a prompt starts with."""
    if prompt.id not in self._openings:
      opening, _ = self._runner.reset(prompt)
      if prompt.messages and isinstance(opening, str) and opening != prompt.text:
        raise ValueError("the environment starts the episode with a text of its own, which would "
                         "replace the messages of the row; give it a text as question.")
      self._openings[prompt.id] = opening if isinstance(opening, list) else self._template(
          dataclasses.replace(prompt, text=opening))
    return self._openings[prompt.id]

  def start(self, tokenizer: tokenizer_io.Tokenizer, prompt: records.Prompt) -> None:
    """Prepares observations, with a chat template if the opening of this prompt has one.

    Raises:
      ValueError: see `observations`.
    """
    opening = self.open_episode(prompt)
    self._observations = observations(
        tokenizer, role=self._runner.role, is_chat=not isinstance(opening, str),
        limit=self._options.observation_tokens, mark=self._options.cut_mark,
        opening=opening if not isinstance(opening, str) else chat.QUESTION,
        tools=list(prompt.tools) or None)

  @property
  def observations(self) -> Observations:
    assert self._observations is not None, "start comes first"
    return self._observations

  def sizes(self, max_tokens: int) -> dict[str, Any]:
    o = self._options
    return dict(turns=o.turns, turn_tokens=o.turn_tokens or max_tokens, overlap=o.overlap,
                answer_tokens=self.observations.most)

  @contextlib.contextmanager
  def start_episodes(self, prompts: Sequence[records.Prompt], group: int, *,
                     counts: bool) -> Iterator[Answers]:
    """The Answers of `group` episodes of each prompt, which `metrics` counts or not."""
    states = [state for _, state in self._runner.begin(prompts) for _ in range(group)]
    answers = Answers(self._runner, self.observations, states, self._options.seconds)
    yield answers
    if counts:
      counted: dict[str, float] = dict(episodes=len(states), failed=answers.failed)
      for info in (counted, *answers.info):
        for name, value in info.items(): self._totals[name] += value
    self._recent.extend(answers.is_unknown)
    lost, most = sum(self._recent), self._options.max_error_rate
    if lost > most * len(self._recent):
      raise RuntimeError(
          f"verifier.max_error_rate={most}: the environment failed in {lost} of the last "
          f"{len(self._recent)} episodes, not because of a reply (last message: "
          f"{self._runner.last_error}).")

  def play(self, prompt: records.Prompt, replies: Sequence[str]) -> tuple[list, list]:
    """The ids of an episode's opening, and its segments, when the policy writes these replies.
    """
    tokenizer, (_, state) = self.observations.tokenizer, self._runner.reset(prompt)
    context = tokenizer.render(self.open_episode(prompt), tools=list(prompt.tools) or None)
    opening, segments = tokenizer.encode(context), []
    for reply in replies:
      ids = [*tokenizer.pair(context, reply)[1], tokenizer.end_id]
      segments.append(("action", ids))
      taken = self._runner.step(state, reply).result()
      if taken.step is None or taken.step.done: break
      state, context = taken.state, self.observations.after or taken.step.observation
      segments.append(("observation", self.observations.ids(taken.step.observation, ids[-1])))
    return opening, segments if segments[-1][0] == "action" else segments[:-1]

  def close(self) -> None:
    """Stops the environment's processes."""
    self._runner.close()

  def metrics(self) -> dict[str, float]:
    """{metric: mean over the episodes since the last call}, which `Step.info` names."""
    n, totals = self._totals.pop("episodes", 0.0), dict(self._totals)
    self._totals.clear()
    return {f"environment/{name}": total / n for name, total in totals.items()}
