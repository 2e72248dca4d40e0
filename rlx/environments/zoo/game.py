r"""Text games of textarena, whose single-player games are multi-turn, seeded and need no network.

  question      12-43:     a number from 12 to 43
  reply         27
  observation   higher;
  reply         35
  observation   lower;
  reply         30         the number: reward 1.0

This is the short form of GuessTheNumber, for small models of characters. The long form of any
game of GAMES begins with the game's own description, a reply is a move such as `[3 1]` or `3 1`,
and an observation has the game's own messages, cut. Variants have longer names, as
Mastermind-v0-hard. reasoning-gym is not used here: its tasks have one turn.

The prompt's meta["seed"], or else its id, seeds a game, and with the number of the turn whatever
the game draws later. A move that the game refuses costs a turn; two in a row end the episode in
most games. The episode ends with reward 1.0 when the game is won, and with 0.0 when it is lost or
the turns run out. Games that read word lists from the network (Hangman, Wordle), ask a language
model (TwentyQuestions), take seconds to start (Sokoban), keep large states (Crosswords), cannot be
won in textarena 0.7.4 (Bandit, FifteenPuzzle) or have a text as reward there (Countdown) are left
out. The package is installed by `pip install 'rlx[games]'`.
"""
import contextlib
import functools
import io
import pickle
import random
import re
import string
from typing import TYPE_CHECKING

from rlx.core import ranges
from rlx.environments import interface
from rlx.prompts import generated

if TYPE_CHECKING: from rlx.core import records

ALPHABET = string.digits + "-:;" + "adeghilnorvw"  # Of the short form.
# The longest texts of the short form in characters.
LONGEST = dict(prompt=6, reply=2, observation=8)
GAMES = ("2048-v0", "Blackjack-v0", "FrozenLake-v0", "GuessTheNumber-v0", "LightsOut-v0",
         "Mastermind-v0", "Minesweeper-v0", "Secretary-v0", "Sudoku-v0", "TowerOfHanoi-v0")
MAX_REPLY = 200   # Characters that a game reads.
_NUMBER_GAME = "GuessTheNumber-v0"
_INVALID = "invalid;"


class Game:
  """Plays a game; its state is the pickled game of textarena.

  Args:
    turns: replies of an episode, and the limit that a game states, if it has one. Some games
      need more: 7 moves solve TowerOfHanoi-v0.
    limit: characters of the game's messages in an observation; of longer ones, the last.
    partial: True rewards a lost game with what textarena gives for it, and turns that run out
      with the share of the game that is solved; moves that are refused still earn nothing.
    game: played for prompts whose `meta` names no game.
  Raises:
    ImportError: textarena is not installed.
    ValueError: the game is none of GAMES, or of their variants.
  """
  role = "user"
  is_bounded = True  # It may run in the trainer's process: games read MAX_REPLY characters.

  def __init__(self, *, turns: ranges.Count = 6, limit: ranges.Count = 1000,
               partial: bool = False, game: str = _NUMBER_GAME):
    _check("environment.game", game)
    self._turns, self._limit, self._partial, self._game = turns, limit, partial, game

  def reset(self, prompt: "records.Prompt") -> str:
    """Starts a game; returns the question of the short form, or the game's description."""
    name = prompt.meta.get("game", self._game)
    make = _check(f"game of prompt {prompt.id!r}", name)
    self._seed, self._is_short, self._used = (
        prompt.meta.get("seed", prompt.id), prompt.meta.get("short", False), 0)
    with _isolate(self._seed):
      game = make(f"{name}-raw", **prompt.meta.get("options", {}))
      if hasattr(game, "max_turns"): game.max_turns = self._turns
      game.reset(num_players=1, seed=self._seed)
    messages = [text for _, text, _ in game.get_observation()[1]]
    self._state = pickle.dumps(game)
    return prompt.text if self._is_short else "\n".join(messages).strip() + "\n"

  def step(self, reply: str) -> interface.Step:
    """Makes a move."""
    self._used += 1
    move = self._move(reply.strip()[:MAX_REPLY])
    game = pickle.loads(self._state)
    try:
      with _isolate(f"{self._seed}/{self._used}"): done, _ = game.step(move)
    except Exception:  # A move that the game does not expect; the state stays as it was.
      done, messages, game = False, ["Invalid move."], pickle.loads(self._state)
    else:
      messages = [text for _, text, kind in game.get_observation()[1]
                  if kind.name != "PLAYER_ACTION"]
      game.state.logs = []  # The game does not read them.
      self._state = pickle.dumps(game)
    info = dict(turns=float(self._used))
    if done: return interface.Step(reward=self._reward(game), done=True, info=info)
    if self._used == self._turns:
      return interface.Step(reward=self._pay_progress(game), done=True, info=info)
    return interface.Step(self._observation(messages), info=info)

  def _move(self, text):
    if self._is_short: return f"[{text}]" if re.fullmatch("[0-9]{1,9}", text) else ""
    return text if "[" in text else f"[{text}]"

  def _observation(self, messages):
    text = "\n".join(messages).strip()
    if self._is_short:
      return next((f"{hint};" for hint in ("higher", "lower") if f"is {hint}." in text), _INVALID)
    return ".." * (len(text) > self._limit) + text[-self._limit:] + "\n"

  def _reward(self, game):
    """Of a game that has ended."""
    reward = float(game.state.rewards[0])
    if game.state.game_info[0]["invalid_move"]: return 0.0
    return reward if self._partial else float(reward >= 1)

  def _pay_progress(self, game):
    """The reward when the turns run out."""
    share = getattr(game, "_get_percentage_completion", None)  # textarena has no public name.
    return min(float(share()), 1.0) if self._partial and share else 0.0


@contextlib.contextmanager
def _isolate(seed):
  """Games draw from Python's global generator, and some print."""
  state = random.getstate()
  random.seed(seed)
  try:
    with contextlib.redirect_stdout(io.StringIO()): yield
  finally:
    random.setstate(state)


def _check(key, name):
  """Returns the function of textarena that makes games, if it can make this one."""
  try:
    from textarena.envs import registration  # pylint: disable=g-import-not-at-top
  except ImportError:
    raise ImportError("environment: needs textarena: `pip install 'rlx[games]'`") from None
  if not str(name).startswith(GAMES) or f"{name}-raw" not in registration.ENV_REGISTRY:
    raise ValueError(f"{key}={name!r:.80}: one of {', '.join(GAMES)}, or a variant of one.")
  return registration.make


def generate(seed, index, game=_NUMBER_GAME, short=True, n_min=8, n_max=31, split="train"):
  """Draws the question of (seed, index): {"text", "meta"}.

  `meta` has the game, its seed, from which the hidden part comes, whether it has the short form,
  and its options in textarena. In the long form the text of a prompt names the game and a number;
  the environment replaces it by the game's description.

  Args:
    game: one of GAMES, or a variant.
    short: the short form, which only GuessTheNumber-v0 has.
    n_min, n_max: of the short form: least and largest size of the range, which is uniform.
    split: "train" or "test".
  """
  rng = generated.start("game", seed, index, split)
  if short and game != _NUMBER_GAME:
    raise ValueError(f"prompts.options.short=True: only {_NUMBER_GAME} has a short form, "
                     f"not {game!r:.80}.")
  if not 2 <= n_min <= n_max <= 50:
    raise ValueError(f"prompts.options: need 2 <= n_min={n_min} <= n_max={n_max} <= 50.")
  while True:
    size = rng.randint(n_min, n_max)
    low = rng.randint(1, 49)
    high = low + size - 1
    text = f"{low}-{high}:" if short else f"{game} {rng.randrange(10**9)}"
    options = dict(min_number=low, max_number=high) if short else {}
    if generated.split_of(text) == split:
      return dict(text=text, meta=dict(game=game, short=short, options=options,
                                       seed=f"{split}/{seed}/{index}"))


prompts = functools.partial(generated.prompts, "game", generate)


def expert(prompt: "records.Prompt", rng, *, turns: ranges.Count = 6,
           wrong_rate: ranges.Share = 0.0) -> list[str]:
  """The replies of an episode of the short form: halves what is left until the number is found.

  A range of n numbers takes at most ceil(log2(n + 1)) replies.

  Args:
    prompt: Prompt of this module.
    rng: np.random.Generator.
    turns: as the environment's.
    wrong_rate: share of replies that are any number of the range instead, not guessed before.
  Raises:
    ValueError: a prompt of the long form.
  """
  if not prompt.meta.get("short"):
    raise ValueError(f"game of prompt {prompt.id!r}: only the short form has an expert.")
  environment = Game(turns=turns)
  environment.reset(prompt)
  low, high = first, last = tuple(map(int, prompt.text[:-1].split("-")))
  replies: list[str] = []
  while True:
    guess = (low + high) // 2
    if rng.random() < wrong_rate:
      others = [n for n in range(first, last + 1) if str(n) not in replies]
      guess = others[int(rng.integers(len(others)))]
    replies.append(str(guess))
    step = environment.step(replies[-1])
    if step.done: return replies
    if step.observation == "higher;": low = max(low, guess + 1)
    else: high = min(high, guess - 1)
