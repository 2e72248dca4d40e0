"""The worker process of runner.py, which starts episodes and takes steps in them.

It imports no jax, so that it starts fast. An environment comes as a pickle and goes back as one,
in the reply's JSON as base64: only worker processes unpickle it.
"""
import base64
import functools
import pickle

from rlx.core import resolve
from rlx.environments import interface
from rlx.verifiers import process

MAX_STATE = 2**21  # Bytes of a pickled environment.


def main():
  """Serves requests until the runner closes the connection."""
  process.serve(answer)


@functools.lru_cache(maxsize=None)
def factory(path):
  """The class or function of an environment at a path.

  Raises:
    ValueError: there is none, or its module imports a package that is not installed.
  """
  try:
    return resolve.lookup("environments", path, "environment")
  except ImportError as e:
    raise ValueError(f"environment.name={path!r}: {e}") from None


def answer(kind, *args):
  """[items of `reset` or `step`, None], or [message] if it fails."""
  try:
    return [*dict(reset=reset, step=step)[kind](*args), None]
  except MemoryError:
    raise SystemExit(1) from None
  except Exception as e:  # pylint: disable=broad-exception-caught
    return [f"{type(e).__name__}: {e}"[:300]]


def reset(path, options, prompt):
  """(opening, state): the start of an episode. `opening` is a text or messages."""
  environment = factory(path)(**options)
  return environment.reset(prompt), _pickle(environment)


def step(state, reply):
  """(observation, reward, done, info, verdict, state) of a step from a pickled state."""
  environment = pickle.loads(base64.b64decode(state))
  taken = environment.step(reply)
  if not isinstance(taken, interface.Step) or not isinstance(taken.observation, str):
    raise TypeError(f"step returned {type(taken).__name__}, not a Step with a text")
  reward, verdict = (None if x is None else float(x) for x in (taken.reward, taken.verdict))
  info = {str(k): float(v) for k, v in taken.info.items()}
  return taken.observation, reward, bool(taken.done), info, verdict, _pickle(environment)


def _pickle(environment):
  state = pickle.dumps(environment)
  if len(state) > MAX_STATE:
    raise ValueError(f"the pickled environment has {len(state)} bytes; at most {MAX_STATE} are "
                     "kept between steps")
  return base64.b64encode(state).decode()

