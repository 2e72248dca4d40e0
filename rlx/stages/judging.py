"""Judges in process: models of the run answer requests, through the sampler with slots.

What a judge is asked and how its reply is read is that of verifiers/judge.py; here a request
becomes a prompt of a model, by its own chat template, and the completion is the reply. A judge is
the policy, its reference or another model of the state, on the mesh of the run. That model is
frozen, or learns beside the policy from its replies (`Task`, stages/update_judge.py).
"""
import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rlx.core import records, rng
from rlx.learner import hosts, sharding
from rlx.rollouts import padding, trajectories
from rlx.stages import passes, sampling
from rlx.verifiers import errors, judge, usage

_LINE = 64  # Tokens of the beginning of a line that states a verdict, at most.
_LENGTH = records.FINISH.index("length")
Asked = Sequence[tuple[judge.Request, judge.Options]]
Begun = tuple[list[int], list[int]]  # Tokens, and the next token of each word that may follow.
# Options of a judge on which its sampler depends; `learns` is its section if it does.
KEYS = ("model", "temperature", "max_tokens", "prompt_tokens", "concurrent", "learns")
Row = tuple[list[int], np.ndarray, int]  # A reply: token ids, the sampler's log-probs, finish.


def key_of(options: judge.Options) -> tuple:
  """What judges have in common that share a LocalJudge."""
  return tuple(map(options.__getitem__, KEYS))


@dataclasses.dataclass(frozen=True)
class LocalJudge:
  """A model that replies to requests.

  Attributes:
    params: name of its parameters in the TrainState.
    sampler: of its replies; `prompts` requests at once, of `texts.prompt_tokens` tokens at most,
      and `group` replies to each, of which the first is read.
  """
  params: str
  sampler: sampling.Sampler

  def encode(self, request: judge.Request) -> list[int]:
    """The tokens of a request as the model reads it.

    Raises:
      errors.Unknown: they are too many, or the tokenizer lacks a character.
    """
    texts = self.sampler.texts
    try:
      ids = texts.prompt_ids(_prompt(request))
    except ValueError as e:
      raise errors.Unknown(f"a request: {e}") from None
    if len(ids) > texts.prompt_tokens:
      raise errors.Unknown(f"verifier.judge.prompt_tokens={texts.prompt_tokens}: a request has "
                           f"{len(ids)} tokens")
    return ids

  def trace(self, params: Any) -> dict[str, tuple]:
    """The programs of replies to requests of full length, see `sampler.trace`."""
    weights = sharding.gather_shapes(jax.eval_shape(functools.partial(
        sampling.lay_out, self.sampler.config, self.sampler.mesh), params), self.sampler.mesh)
    return self.sampler.trace(params, weights)

  def begin(self, request: judge.Request, words: Sequence[str]) -> list[Begun]:
    """For each verdict, the request with the line that states it up to where its words differ.

    Raises:
      errors.Unknown: two words begin with the same token, or as `encode`.
    """
    texts, ids = self.sampler.texts, self.encode(request)
    asked, begun = texts.prompt(_prompt(request)), []
    for number in request.numbers or (None,):
      lines = [texts.tokenizer.pair(asked, judge.write_verdict(request.nonce, number, word))[1]
               for word in words]
      n = next((i for i, column in enumerate(zip(*lines)) if len({*column}) > 1), 0)
      first = [line[n] for line in lines]
      if len({*first}) < len(first):
        raise errors.Unknown(f"verifier.judge.probability=True: of the words {', '.join(words)} "
                             "two begin with the same token")
      begun.append((ids + lines[0][:n], first))
    return begun

  def write(self, params: Any, requests: Sequence[judge.Request], width: int, key: jax.Array
            ) -> list[judge.Reply | Exception]:
    """The replies to requests, see `draw`."""
    return [self.read(rows[0]) for rows in self.draw(params, requests, width, key)]

  def draw(self, params: Any, requests: Sequence[judge.Request], width: int,
           key: jax.Array) -> list[list[Row]]:
    """All replies to each of the requests, which have at most `width` tokens.

    A reply depends on the key and its request alone, but for rounding.
    """
    texts = dataclasses.replace(self.sampler.texts, prompt_tokens=width)
    sampler = dataclasses.replace(self.sampler, texts=texts)
    weights = sampling.lay_out(sampler.config, sampler.mesh, params)
    rows: list[Row] = []
    for batch in padding.batches(list(map(_prompt, requests)), sampler.prompts):
      rollouts = sampler(params, batch, key, None, weights)
      rows += zip(padding.completions(rollouts), rollouts.sampler_logps_BT, rollouts.finish_B)
    group = sampler.group
    rows = rows[:len(requests) * group]
    _count("judge/completion_tokens", sum(len(ids) for ids, *_ in rows))
    return [rows[i:i + group] for i in range(0, len(rows), group)]

  def read(self, row: Row) -> judge.Reply | Exception:
    """A reply as a judge states it, or why there is none."""
    ids, _, finish = row
    text = self.sampler.texts.tokenizer.decode(ids)
    # The last line of a reply that is cut may be incomplete, as that of an endpoint.
    if finish == _LENGTH: return errors.Unknown(f"cut by max_tokens: {text[-80:]!r}")
    return judge.Reply(text)

  def state(self, params: Any, requests: Sequence[judge.Request],
            begun: Sequence[Sequence[Begun]], words: Sequence[str]) -> list[judge.Reply]:
    """The replies that state the most likely words, without reasoning: a forward pass for each
    verdict, whose log-probs the replies have."""
    logps = iter(self._score(params, [row for rows in begun for row in rows], len(words)))
    replies = []
    for request in requests:
      lines = [(judge.write_verdict(request.nonce, number, ""), dict(zip(words, next(logps))))
               for number in request.numbers or (None,)]
      stated = [(head, max(likely, key=likely.__getitem__), likely) for head, likely in lines]
      replies.append(judge.Reply(
          "\n".join(head + word for head, word, _ in stated), tokens=[
              piece for head, word, likely in stated
              for piece in ((head.encode(), {}), (word.encode(), likely), (b"\n", {}))]))
    return replies

  def _score(self, params: Any, rows: Sequence[Begun], words: int) -> list[list[float]]:
    """The log-probs of the words that may follow each row."""
    sampler = self.sampler
    fn = passes.compile_logps(sampler.config, 1.0, 1, sharding.row_shards(sampler.mesh),
                              (("all",),), False)
    width, logps = _find_width(rows, sampler.texts.prompt_tokens + _LINE), []
    for batch in padding.batches(rows, sampler.prompts):
      ids, next_ids = zip(*batch)
      rollouts = trajectories.pairs(ids, [[0]] * len(ids), sampler.texts.tokenizer, 1, width)
      placed, ids_BW = sharding.place_rows((rollouts, np.array(next_ids, np.int32)), sampler.mesh)
      logps += hosts.fetch(_take(fn(params, placed, None)[1], ids_BW)).tolist()
    return logps[:len(rows)]


@dataclasses.dataclass(frozen=True)
class Task:
  """What a judge that learns is trained on: its replies about the completions of a batch.

  Attributes:
    path: judge.FORM/NAME, as a config names it.
    options: of the judge.
    meta: what verifiers read of a prompt beside its own.
  """
  path: str
  options: judge.Options
  meta: Mapping[str, Any]


class Judges:
  """The judges in process of a run; `hold` says of which state.

  Attributes:
    seed: of the run.
    tasks: {section: Task} of the judges that learn.
  """

  def __init__(self, local: Mapping[tuple, LocalJudge], seed: int,
               tasks: Mapping[str, Task] | None = None):
    """`local`: {key_of(options): the judge}."""
    self.local, self.seed, self.tasks = local, seed, tasks or {}
    self._params: dict[str, Any] = {}
    self._step = 0
    # {(section, text of a request): (its tokens, replies)} of this step, of judges that learn.
    self._drawn: dict[tuple[str, str], tuple[list[int], list[Row]]] = {}

  def hold(self, state: records.TrainState) -> None:
    """From now on judges are models of this state; keys depend on its step."""
    self._params = {x.params: state.join_params(x.params) for x in self.local.values()}
    if self._step != int(state.step): self._drawn = {}
    self._step = int(state.step)

  def encode(self, request: judge.Request, options: judge.Options) -> list[Begun]:
    """What the model of a judge reads of a request.

    Raises:
      errors.Unknown: it cannot read it, see `LocalJudge`.
    """
    local = self.local[key_of(options)]
    if not options["probability"]: return [(local.encode(request), [])]
    return local.begin(request, judge.spell_words(options))

  def send(self, asked: Asked, receive: judge.Receive) -> None:
    """Lets models reply to requests, see `judge.Send`."""
    parts: dict[tuple, list[int]] = {}
    for i, (_, options) in enumerate(asked):
      words = judge.spell_words(options) if options["probability"] else ()
      parts.setdefault((key_of(options), words), []).append(i)
    for (key, words), places in parts.items():
      local, fit = self.local[key], {}
      for i in places:
        _count("judge/requests")
        try:
          fit[i] = self.encode(*asked[i])
          _count("judge/prompt_tokens", sum(len(ids) for ids, _ in fit[i]))
        except errors.Unknown as e:
          _count("judge/failed")
          receive(i, e)
      for i, reply in zip(fit, self._reply(local, [asked[i][0] for i in fit], [*fit.values()],
                                           words)):
        receive(i, reply)

  def _reply(self, local: LocalJudge, requests: list[judge.Request],
             begun: list[list[Begun]], words: tuple[str, ...]) -> Sequence:
    if not requests: return ()
    params = self._params[local.params]
    if words: return local.state(params, requests, begun, words)
    width = _find_width([rows[0] for rows in begun], local.sampler.texts.prompt_tokens)
    key = rng.key(self.seed, "judge", self._step)
    if local.params not in self.tasks: return local.write(params, requests, width, key)
    drawn = local.draw(params, requests, width, key)
    self._drawn |= {(local.params, request.text): (rows[0][0], replies)
                    for request, rows, replies in zip(requests, begun, drawn)}
    return [local.read(replies[0]) for replies in drawn]

  def draw(self, section: str, asked: Asked) -> list[tuple[list[int], list[Row]] | None]:
    """(tokens, replies) of each request to a judge that learns; None: it cannot read the request.

    A request has been replied to once in a step, whether a reward asked or this does.
    """
    self.send([x for x in asked if (section, x[0].text) not in self._drawn], lambda *_: None)
    return [self._drawn.get((section, request.text)) for request, _ in asked]


@jax.jit
def _take(all_B1V: jax.Array, words_BW: jax.Array) -> jax.Array:
  return jnp.take_along_axis(all_B1V[:, 0], words_BW, axis=1)


def _find_width(rows: Sequence[Begun], most: int) -> int:
  """Columns for all of these: of few widths, as each is compiled, 1.4 times the longest at most."""
  longest = max(len(ids) for ids, _ in rows)
  return next(width for width in padding.list_widths(most, 8) if width >= longest)


def _prompt(request: judge.Request) -> records.Prompt:
  """A request as a prompt, whose random keys depend on its text."""
  return records.Prompt(request.text, request.text)


def _count(name: str, n: int = 1) -> None:
  """Counts, once for all processes."""
  if hosts.is_first(): usage.count(name, n)
