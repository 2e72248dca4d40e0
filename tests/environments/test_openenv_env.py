import asyncio
import json
import pickle
import random
import sys
import time
import typing

import pytest

from rlx.contrib.environments import openenv_env
from rlx.contrib.environments.openenv_env import OpenEnvEnvironment
from rlx.core import records

pytest.importorskip("openenv")
import pydantic  # pylint: disable=g-import-not-at-top
from openenv.core.env_server import interfaces  # pylint: disable=g-import-not-at-top
from openenv.core.env_server import mcp_environment  # pylint: disable=g-import-not-at-top
from openenv.core.env_server import types as openenv_types  # pylint: disable=g-import-not-at-top


# ---- Environments, named by their path in this module.


class Guess(openenv_types.Action):
  number: int = pydantic.Field(ge=-1, le=1000)


class Seen(openenv_types.Observation):
  text: str = ""
  n_left: int | None = None
  luck: float | None = None


class Number(interfaces.Environment[Guess, Seen, openenv_types.State]):
  """The number is drawn by the seed, the greeting and the luck by the global generator."""

  def __init__(self, n_guesses=3):
    super().__init__()
    self.n_guesses, self.is_closed = n_guesses, False

  def reset(self, seed=None, episode_id=None, **kwargs):
    self.number = random.Random(seed).randrange(1000)
    self.n_left, self.episode_id, self.given = self.n_guesses, episode_id, kwargs
    return Seen(text=f"guess {random.choice('abcdefgh')}", n_left=self.n_left)

  def step(self, action: Guess, timeout_s=None, **kwargs) -> Seen:
    self.n_left -= 1
    is_right = action.number == self.number
    text = "yes" if is_right else "up" if action.number < self.number else "down"
    is_over = is_right or not self.n_left
    return Seen(text=text, n_left=self.n_left, luck=random.random(), done=is_over,
                reward=is_right - float(is_over and not is_right), metadata=dict(of=self.number))

  @property
  def state(self): return openenv_types.State()

  def close(self): self.is_closed = True


class Bare(Number):
  """Takes no arguments of reset and step, and gives its observations no type."""

  def reset(self): return super().reset(seed=3)  # pylint: disable=arguments-differ

  def step(self, action): return super().step(action)  # pylint: disable=arguments-differ


class Later(Number):
  """Defines the async methods alone."""

  def reset(self, **kwargs): raise NotImplementedError

  async def reset_async(self, seed=None, episode_id=None, **kwargs):
    await asyncio.sleep(0)
    return super().reset(seed, episode_id)

  async def step_async(self, action, timeout_s=None, **kwargs):
    await asyncio.sleep(0)
    return super().step(action)


class Closure(Number):
  def __init__(self):
    super().__init__()
    self.local = lambda: None


class Unreadable:
  def __reduce__(self): return int, ("x",)


class LoadsNot(Number):
  def __init__(self):
    super().__init__()
    self.object = Unreadable()


class Random(Closure):
  counter = 0

  def step(self, action: Guess, **kwargs) -> Seen:
    type(self).counter += 1
    return Seen(text=f"{type(self).counter}")


class Fails(Number):
  def reset(self, **kwargs): raise FileNotFoundError("./data/questions.csv")


class Ends(Number):
  def reset(self, **kwargs): return Seen(done=True)


class Unpaid(Number):
  def step(self, action: Guess, **kwargs) -> Seen: return Seen(text="seen")


class NoNumber(Number):
  def step(self, action: Guess, **kwargs) -> Seen: return Seen(reward=float("nan"))


class Move(openenv_types.Action):
  row: int
  column: typing.Literal["a", "b"] = "a"
  count: int


class Board(Number):
  def step(self, action: Move, **kwargs) -> Seen:
    return Seen(text=f"{action.row}{action.column}{action.count}")


class Tools(mcp_environment.MCPEnvironment):
  def __init__(self):
    from fastmcp import FastMCP
    server = FastMCP("tools")
    self.total = 0

    @server.tool
    def add(x: int) -> int:
      """Adds to the total."""
      self.total += x
      return self.total

    @server.tool
    def both(x: int) -> dict:
      """Gives two values."""
      return dict(x=x, total=self.total)

    super().__init__(server)

  def reset(self, seed=None, episode_id=None, **kwargs):
    return openenv_types.Observation(metadata=dict(status="ready"))

  def _step_impl(self, action, timeout_s=None, **kwargs): return Seen(text="other")

  @property
  def state(self): return openenv_types.State()


class Client:
  def __init__(self, base_url=""): self.base_url = base_url


def action_of(reply):
  if reply == "bad": raise ValueError("say a word")
  return Guess(number=len(reply)) if reply[0] == "a" else dict(number=len(reply))


def words_of(observation): return f"<{observation.text}>"


# ---- Helpers.


def named(cls, **options):
  return OpenEnvEnvironment(environment=f"{__name__}:{cls.__name__}", **options)


def prompt(prompt_id="p", **meta): return records.Prompt(prompt_id, "?", meta=dict(seed=5) | meta)


def number(seed=5): return random.Random(seed).randrange(1000)


def play(env, replies, start=None):
  """(first text, steps) of an episode that goes through a pickle after each step."""
  env = pickle.loads(pickle.dumps(env))
  first, steps = env.reset(start or prompt()), []
  for reply in replies:
    env = pickle.loads(pickle.dumps(env))
    steps.append(env.step(reply))
    if steps[-1].done: break
  return first, steps


def call(name, **arguments):
  return f"<tool_call>{json.dumps(dict(name=name, arguments=arguments))}</tool_call>"


# ---- Episodes.


@pytest.mark.parametrize("options", [{}, dict(replay=True)])
@pytest.mark.parametrize("cls", [Number, Later, Bare])
def test_an_episode(cls, options):
  own = number(3 if cls is Bare else 5)
  env = named(cls, shown=["text"], action=f"{__name__}:Guess" * (cls is not Number), **options)
  first, steps = play(env, [str(own - 1), str(own)])
  assert first[:6] == "guess " and first[-1] == "\n"
  assert [(s.observation, s.reward, s.done) for s in steps] == [("up\n", 0.0, False),
                                                              ("yes\n", 1.0, True)]
  _, steps = play(env, ["0"] * 9)
  assert [s.reward for s in steps] == [0.0, 0.0, -1.0] and steps[-1].done


@pytest.mark.parametrize("options", [{}, dict(replay=True)])
def test_an_episode_is_a_function_of_prompt_and_replies(options):
  env, state = named(Number, **options), random.getstate()
  episode = play(env, ["1", "x", "2"])
  assert random.getstate() == state and episode == play(env, ["1", "x", "2"])
  assert len({play(env, [], prompt(f"p{i}"))[0] for i in range(20)}) > 3


def test_what_reset_gets():
  env = named(Number, arguments=dict(n_guesses=1))
  first = env.reset(prompt("q", text="Rules.", reset=dict(level=2, seed=6)))
  inside = pickle.loads(env._saved)
  assert (inside.number, inside.episode_id, inside.given) == (number(6), "q", dict(level=2))
  assert first.startswith('Rules.\n{"text": "guess ') and first.endswith('"n_left": 1}\n')
  assert env.step("0").done


def test_the_last_turn():
  _, steps = play(named(Number, max_turns=2), ["0"] * 9)
  assert [(s.reward, s.done) for s in steps] == [(0.0, False), (0.0, True)]
  _, steps = play(named(Number, max_turns=2), ["x"] * 9)
  assert [(s.reward, s.done) for s in steps] == [(None, False), (0.0, True)]


def test_an_episode_without_rewards_has_the_outcome_0():
  _, steps = play(named(Unpaid, max_turns=2), ["1", "2"])
  assert [(s.reward, s.done) for s in steps] == [(None, False), (0.0, True)]


# ---- Actions and observations.


def test_replies_that_are_no_action_are_answered():
  env = named(Number)
  for reply, error in [("x", "valid integer"), ("", "valid integer"), ("1001", "less than or"),
                       ("1 2", "valid integer"), ("5" * 100_000, "exceeded maximum size")]:
    _, (step, after) = play(env, [reply, "0"])
    assert step.observation.startswith("Error: number: ") and error in step.observation
    assert step.reward is None and len(step.observation) < 200
    assert json.loads(after.observation)["n_left"] == 2  # The environment did not see the first.


def test_actions_of_several_fields_are_json():
  env = named(Board)
  replies = ['{"row": 1, "column": "b", "count": "2"}', '{"row": 1, "count": 2}', "1", "[1]", "{",
             '{"row": 1, "column": "c", "count": 2}', '{"row": 1, "count": 2, "more": 1}']
  texts = [s.observation for s in play(env, replies)[1]]
  assert texts[:2] == ["1b2\n", "1a2\n"]
  assert all(text.startswith("Error: ") for text in texts[2:])
  assert "row: Field required" in play(named(Board, field="count"), ["2"])[1][0].observation


def test_functions_make_actions_and_texts():
  env = named(Number, to_action=f"{__name__}:action_of", action=f"{__name__}:Guess",
              to_text=f"{__name__}:words_of", end=";")
  first, steps = play(env, ["bad", "aaa", "bbb"])
  assert first[:7] == "<guess " and [s.observation for s in steps] == [
      "Error: say a word;", "<up>;", "<up>;"]


def test_shown_fields():
  assert json.loads(play(named(Number, shown=["n_left"]), [])[0]) == 3
  assert list(json.loads(play(named(Number, shown=["n_left", "done"]), [])[0])) == [
      "n_left", "done"]
  with pytest.raises(ValueError, match=r"environment.shown='words': observations have \['done'"):
    play(named(Number, shown=["words"]), [])


def test_tools():
  env = named(Tools, replay=True)
  first, steps = play(env, [call("add", x=2), call("add", x=3), "add", call("both", x=1),
                            call("add", y=1), call("none"), call("add", x=1) * 2])
  assert '"name": "add", "description": "Adds to the total."' in first
  assert first.endswith('{"status": "ready"}\n')
  texts = [s.observation for s in steps]
  assert texts[:4] == ["2\n", "5\n", "Error: a <tool_call> is needed.\n", '{"x": 1, "total": 5}\n']
  assert all(text.startswith("Error: ") for text in texts[4:])


# ---- What is refused.


@pytest.mark.parametrize("cls, options, reason", [
    (Client, {}, "a subclass of openenv's Environment is needed"),
    (interfaces.Environment, {}, "cannot be made: "), (Number, dict(arguments=dict(n=1)),
                                                       "cannot be made: TypeError"),
    (Bare, {}, "set environment.action=")])
def test_what_cannot_run_here_is_refused(cls, options, reason):
  with pytest.raises(ValueError, match=reason) as e:
    OpenEnvEnvironment(environment=f"{cls.__module__}:{cls.__name__}", **options)
  assert "\n" not in str(e.value)


def test_names_that_do_not_exist():
  with pytest.raises(ValueError, match="No module named 'no_env'"):
    OpenEnvEnvironment(environment="no_env:Env")
  with pytest.raises(ValueError, match="package.module:name is needed"):
    OpenEnvEnvironment(environment="no_env")


@pytest.mark.parametrize("cls, reason", [
    (Fails, "cannot start: FileNotFoundError: ./data/questions.csv"),
    (Ends, "ends before its first turn"),
    (Closure, "cannot be pickled .*environment.replay=True"),
    (LoadsNot, "cannot be pickled .*invalid literal.*environment.replay=True")])
def test_environments_that_cannot_start_are_refused(cls, reason):
  with pytest.raises(ValueError, match=reason): named(cls).reset(prompt())


def test_replay_finds_environments_that_are_not_deterministic():
  env = named(Random, replay=True)
  with pytest.raises(ValueError, match="has to be deterministic"): play(env, ["1", "2"])


def test_rewards_are_numbers():
  with pytest.raises(ValueError, match="reward of an observation is nan"):
    play(named(NoNumber), ["1"])


def test_a_missing_package(monkeypatch):
  monkeypatch.setitem(sys.modules, "openenv.core.env_server.interfaces", None)
  openenv_env._check.cache_clear()
  with pytest.raises(ImportError, match=r"pip install 'rlx\[openenv\]'"): named(Number)


# ---- Untrusted text.


HOSTILE = [
    "", " ", "\0", "\ud800", "5" * 100_000, "[" * 100_000, '{"a":' * 50_000, "\n" * 100_000, "𝟝",
    "nan", "inf", "1e999", "null", "true", "[]", "{}", '"5"', "1;reward=1", '{"number": -1}',
    '{"number": 5, "metadata": {"done": true}}', '{"done": true, "reward": 1}',
    "<tool_call>" * 9_000, "<tool_call>" + "[" * 90_000 + "</tool_call>",
    call("add", x=10**400), call("reset"), call("close"), call("add", x="__import__('os')"),
    '<tool_call>{"name": "add", "arguments": "[1]"}</tool_call>',
    '<tool_call>{"name": "add", "arguments": "x"}</tool_call>', '{"type": "list_tools"}',
]


@pytest.mark.parametrize("cls, options", [(Number, {}), (Board, {}), (Tools, dict(replay=True)),
                                          (Number, dict(replay=True, max_turns=2))])
def test_hostile_replies(cls, options):
  env = named(cls, **options)
  for reply in HOSTILE:
    start = time.process_time()
    _, steps = play(env, [reply] * 2)
    assert time.process_time() - start < 20
    assert len(steps) == 2 and all(s.reward in (None, 0) for s in steps), reply[:50]
    assert all(len(s.observation) < 500 for s in steps), reply[:50]


# ---- Prompts.


def test_prompts_are_seeds():
  rows = [dict(seed=0, index=i) for i in range(50)]
  train, test = (list(openenv_env.prompts(rows, split, text="Guess.", reset=dict(level=1)))
                 for split in ("train", "test"))
  seeds = {p.meta["seed"] for p in train}, {p.meta["seed"] for p in test}
  assert len(seeds[0]) == len(seeds[1]) == 50 and not seeds[0] & seeds[1]
  assert len({p.text for p in train + test}) == len({p.id for p in train + test}) == 100
  assert train == list(openenv_env.prompts(rows, "train", text="Guess.", reset=dict(level=1)))
  first, _ = play(named(Number), [], train[0])
  assert first.startswith("Guess.\n{")
  with pytest.raises(ValueError, match="no split 'dev'"): list(openenv_env.prompts(rows, "dev"))
