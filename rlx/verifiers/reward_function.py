"""A user's reward function as a verifier."""
import asyncio
from concurrent import futures
import copy
import inspect
import itertools
import math
from typing import TYPE_CHECKING, Callable

from rlx.core import resolve
from rlx.verifiers import errors

if TYPE_CHECKING: from rlx.core import records


class RewardFunction:
  """(prompt, texts) -> the rewards that `fn(completions, **columns)` gives the texts.

  The columns of the rows `prompt.meta["rows"]` that fn takes are passed by name, as lists. They are
  copies: what fn does to its arguments changes nothing else. Where the rows have no column
  `prompts`, an argument of that name gets the column `prompt`, so that TRL's
  `fn(prompts, completions, **columns)` works. An `async` function is awaited.
  """
  is_reward = True  # It is called with lists and returns any numbers, see pool.py.

  def __init__(self, name: str, fn: Callable):
    self.name, self.fn = name, fn

  def __call__(self, prompt: "records.Prompt", texts: list[str]) -> list:
    return self.rewards(texts, prompt.meta["rows"])

  def rewards(self, completions: list[str], rows: list[dict]) -> list:
    """What fn returns for completions of these rows, as floats; NaN where it says None.

    Raises:
      errors.Unknown: it returned something else than a reward for each completion.
    """
    names = self.columns(rows[0])
    given = {name: [copy.deepcopy(row.get("prompt" if name == "prompts" and name not in row
                                          else name)) for row in rows] for name in names}
    if self._takes_completions_by_name():
      returned = self.fn(completions=list(completions), **given)
    else:
      returned = self.fn(list(completions), **given)
    if inspect.isawaitable(returned): returned = _await(returned)
    return _numbers(self.name, returned, len(completions))

  def columns(self, row: dict) -> list[str]:
    """Names of the row's columns that fn takes.

    Raises:
      ValueError: it needs one that the row does not have, or takes no completions.
    """
    parameters = list(inspect.signature(self.fn).parameters.values())
    if self._takes_completions_by_name():
      parameters.sort(key=lambda p: p.name != "completions")
    elif not parameters or parameters[0].kind is inspect.Parameter.KEYWORD_ONLY or (
        parameters[0].name in ("prompt", "prompts")):
      raise ValueError(f"reward {self.name!r}: its first argument has to be the completions, or "
                       "one has to be called `completions`.")
    there = sorted(row)
    if "prompt" in row: row = dict(prompts=row["prompt"]) | row
    named = [p for p in parameters[1:] if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    if missing := [p.name for p in named if p.default is p.empty and p.name not in row]:
      raise ValueError(f"reward {self.name!r} takes {missing[0]!r}; the rows have the columns "
                       f"{there}.")
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
      return [name for name in row if name != parameters[0].name]
    return [p.name for p in named if p.name in row]

  def _takes_completions_by_name(self):
    """Whether `completions` is an argument that can be passed by name, the first one or not."""
    p = inspect.signature(self.fn).parameters.get("completions")
    return p is not None and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)


def __getattr__(name: str) -> RewardFunction:
  """The reward function `package/module/function`, by which a config records package.module's."""
  module, _, fn = name.rpartition("/")
  if not module: raise AttributeError(name)
  return RewardFunction(fn, resolve.lookup("", f"{module.replace('/', '.')}:{fn}", "reward"))


def _await(returned):
  """The result of an awaitable, also in a thread whose event loop runs, such as a notebook's."""
  async def wait(): return await returned
  with futures.ThreadPoolExecutor(1) as thread: return thread.submit(asyncio.run, wait()).result()


def _numbers(name, returned, n):
  """Rewards as a list of floats, or of lists of them where the function gives several."""
  if not hasattr(returned, "__iter__") or isinstance(returned, str | bytes | dict):
    raise errors.Unknown(f"reward {name!r} returned {returned!r:.60}; a list is needed, with one "
                        "reward for each completion")
  rewards = list(itertools.islice(returned, n + 1))  # A generator may have no end.
  if len(rewards) != n:
    count = len(rewards) if len(rewards) < n else f"more than {n}"
    raise errors.Unknown(f"reward {name!r} returned {count} rewards for {n} completions")
  return [_number(name, reward) for reward in rewards]


def _number(name, reward):
  if hasattr(reward, "tolist"): reward = reward.tolist()  # Of numpy, jax or torch.
  if reward is None: return math.nan
  if isinstance(reward, list | tuple): return [_number(name, part) for part in reward]
  if not isinstance(reward, int | float) or math.isinf(reward):
    raise errors.Unknown(f"reward {name!r} returned {reward!r:.60} for a completion; a number, "
                        "None or a list of numbers is needed")
  return float(reward)
