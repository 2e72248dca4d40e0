r"""Scores answers to Reasoning Gym tasks with the task's own scorer, in [0, 1].

The three functions differ in where the answer has to stand. A completion without an answer
scores 0; some scorers give 0.01 for any wrong answer.
"""
import functools
import json
import re
from typing import TYPE_CHECKING

from rlx.verifiers import _boxed

if TYPE_CHECKING: from rlx.core import records

_MARK = re.compile(r"answer\s*:", re.IGNORECASE)


def answer(prompt: "records.Prompt", text: str) -> float:
  """Scores the text after the last "answer:", or the last line if there is none."""
  if marks := list(_MARK.finditer(text)):
    return _score(prompt, text[marks[-1].end():].strip(" *\n"))
  return last_line(prompt, text)


def boxed(prompt: "records.Prompt", text: str) -> float:
  r"""Scores the last \boxed{...}."""
  return _score(prompt, _boxed.last(text))


def last_line(prompt: "records.Prompt", text: str) -> float:
  """Scores the last line that is not empty."""
  return _score(prompt, text.strip().rpartition("\n")[2].strip())


def _score(prompt, stated):
  task = _task(prompt.meta["task"], json.dumps(prompt.meta["config"], sort_keys=True))
  if not stated: return 0.0
  return float(task.score_answer(stated, prompt.meta["entry"]))


@functools.lru_cache(maxsize=None)
def _task(name, config):
  import reasoning_gym  # pylint: disable=g-import-not-at-top
  return reasoning_gym.create_dataset(name, seed=0, size=1, **json.loads(config))
