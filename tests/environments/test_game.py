"""Episodes of textarena's games."""
import collections
import itertools
import pickle
import random
import subprocess
import sys
import time
import types

import numpy as np
import pytest

from rlx.build import load, prompts as build_prompts
from rlx.core import records
from rlx.environments.zoo import game

ROWS = [dict(seed=0, index=i) for i in range(300)]
PROMPTS = list(game.prompts(ROWS, "train"))
NUMBER = "GuessTheNumber-v0"

try:
  import textarena  # pylint: disable=unused-import
except ImportError:
  textarena = None
needed = pytest.mark.skipif(textarena is None, reason="no textarena")

HOSTILE = [
    "", " ", "x", "1" * 100_000, "[" * 100_000, "[1 " * 50, "[]", "]1[", "\u0662\u0666", "-5",
    "1.5", "1e9", "999999999", "[99999999999999999999]", "\0", "\ud800", "\u00e9\U0001f600",
    "higher;",
    "lower;\n7\nhigher;", "1;2;3;4", "[1][2][3]", "[A B][B C]", "[GAME] You won.", "[Player] [up]",
    "open('/etc/passwd').read()", "__import__('os')._exit(1)", "[0 0 0]", "[a->b]", "[-1 -1]",
    "[red] [blue]", "[hit] [stand]", "[" + "9 " * 99 + "]"]


def played(prompt, replies, **options):
  """The steps of an episode, up to its end."""
  environment = game.Game(**options)
  environment.reset(prompt)
  steps = []
  for reply in replies:
    steps.append(environment.step(reply))
    if steps[-1].done: break
  return steps


def full(name, i=0):
  """A prompt of the long form."""
  return next(game.prompts([dict(seed=0, index=i, game=name, short=False)], "train"))


def short(low, high, name):
  return records.Prompt(id=name, text=f"{low}-{high}:", meta=dict(
      game=NUMBER, short=True, options=dict(min_number=low, max_number=high)))


def number_of(prompt):
  """The number to guess."""
  environment = game.Game()
  environment.reset(prompt)
  return pickle.loads(environment._state).game_number


@needed
def test_one_question_has_many_hidden_numbers():
  c = load.load_config("environments/game")
  texts = types.SimpleNamespace(prompt_ids=lambda p: p.text, start_of_reply=lambda p: "")
  prompts, _ = build_prompts.load_prompts(c, texts, ("train",))
  assert len(prompts) == c.prompts.options.size > 2 * len({p.text for p in prompts})
  first = [p for p in prompts if p.text == prompts[0].text]
  assert len({number_of(p) for p in first}) > 1


@needed
def test_an_expert_wins_and_its_mistakes_cost_wins():
  rng = np.random.default_rng(0)
  for prompt in PROMPTS:
    replies = game.expert(prompt, rng)
    steps = played(prompt, replies)
    assert len(steps) == len(replies) <= 5 and (steps[-1].reward, steps[-1].done) == (1.0, True)
    assert steps[-1].info == dict(turns=len(steps))
    assert {s.observation for s in steps[:-1]} <= {"higher;", "lower;"}
  rates = [np.mean([played(p, game.expert(p, rng, wrong_rate=w))[-1].reward for p in PROMPTS])
           for w in (0.3, 1.0)]
  assert 0.8 < rates[0] < 0.95 and rates[1] < 0.5  # Six guesses of 8 to 31 numbers.
  for prompt in PROMPTS[:20]:
    guesses = game.expert(prompt, rng, wrong_rate=1.0, turns=31)
    assert len(set(guesses)) == len(guesses)


@needed
def test_numbers_are_within_the_range_and_differ():
  numbers = [(number_of(p), *map(int, p.text[:-1].split("-"))) for p in PROMPTS]
  assert all(low <= n <= high for n, low, high in numbers)
  places = [(n - low) / (high - low) for n, low, high in numbers]
  assert np.mean(places) == pytest.approx(0.5, abs=0.06) and max(places) == 1 and min(places) == 0


def test_questions_are_the_same_everywhere_and_splits_have_none_in_common():
  train, test = ([p.text for p in game.prompts(ROWS, split)] for split in ("train", "test"))
  assert train == [p.text for p in PROMPTS] and train[0] == "18-38:"
  assert len(set(train)) > 200 and not set(train) & set(test)
  assert max(map(len, train + test)) <= game.LONGEST["prompt"]
  assert set("".join(train) + "higher;lower;invalid;") == set(game.ALPHABET)
  rows = [dict(row, game="Sudoku-v0", short=False) for row in ROWS]
  train, test = ({p.text for p in game.prompts(rows, split)} for split in ("train", "test"))
  assert len(train) == len(test) == 300 and not train & test


@pytest.mark.parametrize("options, message", [
    (dict(split="validation"), "no split 'validation'"), (dict(game="Sudoku-v0"), "short=True"),
    (dict(n_min=1), "n_min=1"), (dict(n_min=9, n_max=8), "n_max=8"), (dict(n_max=51), "n_max=51")])
def test_bad_options_are_refused(options, message):
  with pytest.raises(ValueError, match=message): game.generate(0, 0, **options)


@needed
def test_games_that_are_not_offered_are_refused():
  for name in ("Chess-v0", "Hangman-v0", "FifteenPuzzle-v0", "Mastermind-v0-raw", "", "Bandit-v0"):
    with pytest.raises(ValueError, match="environment.game=.*: one of 2048-v0, "):
      game.Game(game=name)
  with pytest.raises(ValueError, match="game of prompt 'p'='Chess-v0'"):
    game.Game().reset(records.Prompt(id="p", text="", meta=dict(game="Chess-v0")))
  with pytest.raises(ValueError, match="only the short form has an expert"):
    game.expert(full("Sudoku-v0"), np.random.default_rng(0))
  game.Game(game="Mastermind-v0-hard")


def test_without_textarena_the_extra_is_named(monkeypatch):
  monkeypatch.setitem(sys.modules, "textarena", None)
  monkeypatch.setitem(sys.modules, "textarena.envs", None)
  with pytest.raises(ImportError, match=r"rlx\[games\]"): game.Game()


@needed
def test_observations_of_the_short_form():
  prompt = short(10, 30, "a")
  n = number_of(prompt)
  steps = played(prompt, ["10", "30", f"{n} ", "x"])
  assert 10 < n < 30 and [s.observation for s in steps] == ["higher;", "lower;", ""]
  assert [s.reward for s in steps] == [None, None, 1.0]
  for reply in ("9", "31", "x", "", f"[{n}]", f"{n};", f"={n}", f"{n} {n}", "\u0661\u0662",
                f"10\n{n}"):
    assert played(prompt, [reply])[0].observation == "invalid;"
  steps = played(prompt, ["10", "10", "11", "x", "y", str(n)])
  assert [s.observation for s in steps[:4]] == ["higher;", "invalid;", "higher;", "invalid;"]
  assert (steps[-1].reward, len(steps)) == (0.0, 5)  # Two refused moves in a row.


@needed
def test_turns_are_limited():
  prompt = short(10, 30, "a")
  others = [str(n) for n in range(10, 31) if n != number_of(prompt)]
  last = others[:5] + [str(number_of(prompt))]
  assert [s.reward for s in played(prompt, last)] == [None] * 5 + [1.0]
  assert [s.reward for s in played(prompt, others)] == [None] * 5 + [0.0]
  assert len(played(prompt, others, turns=3)) == 3


@needed
def test_partial_rewards_are_an_option():
  prompt = short(10, 30, "a")
  n = number_of(prompt)
  near = [str(n - 1)]
  assert [s.reward for s in played(prompt, near, turns=1, partial=True)] == [pytest.approx(0.95)]
  assert [s.reward for s in played(prompt, near, turns=1)] == [0.0]
  refused = near + ["x", "x"]  # Ends the game, and is no way to the reward of the last guess.
  assert played(prompt, refused, partial=True)[-1].reward == 0.0
  assert played(prompt, [str(n)], partial=True)[-1].reward == 1.0
  rewards = [played(full("Blackjack-v0", i), ["[stand]"] * 9, turns=9, partial=p)[-1].reward
             for i in range(4) for p in (False, True)]
  assert set(rewards[::2]) == {0.0} and 0 < max(rewards[1::2]) < 1


def solution(prompt, moves):
  """Moves that win a game whose state is seen, found by trying all."""
  start = game.Game(turns=50)
  start.reset(prompt)
  todo, known = collections.deque([(start, [])]), set()
  while todo:
    before, path = todo.popleft()
    for move in moves:
      after = pickle.loads(pickle.dumps(before))
      step = after.step(move)
      if step.reward: return [*path, move]
      if not step.done and "invalid" not in step.observation and step.observation not in known:
        known.add(step.observation)
        todo.append((after, [*path, move]))
  return []


@needed
@pytest.mark.parametrize("name, moves", [
    ("FrozenLake-v0", ["up", "[down]", "[left]", "right"]),
    ("TowerOfHanoi-v0", [f"[{a} {b}]" for a, b in itertools.permutations("ABC", 2)]),
    ("Secretary-v0", ["accept", "continue"]),
    ("Mastermind-v0", [f"[{' '.join(code)}]" for code in itertools.permutations("123456", 4)])])
def test_long_forms_are_won(name, moves):
  prompt = full(name)
  replies = solution(prompt, moves)
  steps = played(prompt, replies, turns=len(replies))
  assert replies and [s.reward for s in steps] == [None] * (len(replies) - 1) + [1.0]
  assert all(s.observation.endswith("\n") for s in steps[:-1])


@needed
def test_observations_of_the_long_form():
  environment = game.Game(turns=4)
  text = environment.reset(full("Mastermind-v0"))
  assert text.startswith("You are playing Mastermind.") and "You have 4 turns" in text
  assert text.endswith("\n") and not text.endswith("\n\n")
  assert environment.step("1 2 3 4").observation.startswith("Submitted [1 2 3 4]. Feedback: ")
  assert environment.step("nonsense").observation.startswith("You attempted an invalid move.")
  long = "[" + "1" * 10_000 + "]"  # Not what Python refuses to convert.
  assert played(full(NUMBER), [long])[0].observation.startswith("You attempted")
  cut = played(full("Mastermind-v0"), ["[1 2 3 4]"], limit=9)[0].observation
  assert cut == "..e peg(s).\n"
  assert game.Game(game="Sudoku-v0").reset(records.Prompt(id="p", text="")).startswith("You are")


@needed
@pytest.mark.parametrize("name", game.GAMES)
def test_episodes_continue_from_a_pickle_and_touch_no_other_generator(name):
  replies = ["[1 2]", "[up]", "[hit]", "[continue]", "[A C]", "[5]", "[1 2 3 4]", "[left]"]
  for first in replies:  # A move of this game.
    rest = [first] + [r for r in replies if r != first]
    if not played(full(name), rest, turns=9)[0].observation.startswith("You attempted"): break
  steps = played(full(name), rest, turns=9)
  random.seed(7)
  copy, copied, state = game.Game(turns=9), [], random.getstate()
  copy.reset(full(name))
  for reply in rest:
    content = pickle.dumps(copy)
    assert len(content) < 8000
    copy = pickle.loads(content)
    copied.append(copy.step(reply))
    if copied[-1].done: break
  assert copied == steps and random.getstate() == state


@needed
def test_other_processes_play_the_same_games():
  code = """
import pickle, sys
from rlx.environments.zoo import game
for name in game.GAMES:
  e = game.Game(game=name)
  class prompt: id, text, meta = "p", "", {}
  print(repr(e.reset(prompt)))
  for r in ("[up]", "[hit]", "[1 2]", "[0]"): print(e.step(r))
print([m for m in ("jax", "flax", "ml_collections") if m in sys.modules])"""
  outs = [subprocess.run([sys.executable, "-c", code], env=dict(PYTHONHASHSEED=seed, PATH=""),
                         check=True, capture_output=True, text=True).stdout for seed in "12"]
  assert outs[0] == outs[1] and outs[0].endswith("[]\n")


@needed
@pytest.mark.parametrize("prompt", [short(10, 30, "a"), *map(full, game.GAMES)],
                         ids=lambda p: p.text.split()[0])
def test_nothing_that_a_reply_contains_raises_or_earns_reward(prompt):
  game.Game().reset(prompt)  # Imports.
  for reply in HOSTILE:
    start = time.process_time()
    steps = played(prompt, [reply, reply])
    assert time.process_time() - start < 20
    assert not any(s.reward for s in steps), reply
    for step in steps:
      assert len(step.observation) <= 1003 and (step.done or step.observation[-1:] in ("\n", ";"))


@needed
def test_a_game_that_fails_stays_as_it_was(monkeypatch):
  prompt = short(10, 30, "a")
  environment = game.Game()
  environment.reset(prompt)
  kind, before = type(pickle.loads(environment._state)), environment._state
  real = kind.step
  def step(self, action):
    self.game_number = 10
    raise IndexError(action)
  monkeypatch.setattr(kind, "step", step)
  step = environment.step("10")
  assert (step.observation, step.done) == ("invalid;", False) and environment._state == before
  monkeypatch.setattr(kind, "step", real)
  assert environment.step(str(number_of(prompt))).reward == 1.0


@needed
def test_states_stay_small():
  environment = game.Game(turns=50)
  environment.reset(prompt := full(NUMBER))
  others = [n for n in range(1, 21) if n != number_of(prompt)]
  for n in others: assert not environment.step(f"[{n}]" + "x" * 1000).done
  assert len(pickle.dumps(environment)) < 1500


@needed
def test_what_games_print_is_not_seen(capsys):
  environment = game.Game(game="GuessTheNumber-v0")
  environment.reset(types.SimpleNamespace(id="p", text="", meta={}))
  with game._isolate("seed"): print("noise")
  assert capsys.readouterr().out == ""
