r"""Scores answers to Reasoning Gym tasks with the task's own scorer, in [0, 1].

The three functions differ in where the answer has to stand, behind the thoughts (thoughts.py). A
completion without an answer scores 0; some scorers give 0.01 for any wrong answer. If a scorer
raises or gives NaN, the pool decides as for any verifier: 0, unless the task's own answer fails
too.
"""
import functools
import json
import math
import re
from typing import TYPE_CHECKING

from rlx.verifiers import _boxed, thoughts

if TYPE_CHECKING: from rlx.core import records

_MARK = re.compile(r"answer\s*[:：]|<answer>", re.IGNORECASE)
_AROUND = " *_`$\n\t"  # Marks of Markdown and LaTeX around an answer.


def answer(prompt: "records.Prompt", text: str) -> float:
  """Scores what stands after the last "answer:" or <answer>, or the last line if there is none.

  That is as many lines as the task's own answer has, without a closing tag, Markdown marks and a
  full stop. Where the task has no single answer, it is the whole text after the mark.
  """
  text = thoughts.behind(text, prompt)
  if not (marks := list(_MARK.finditer(text))): return last_line(prompt, text)
  stated = text[marks[-1].end():].partition("</answer>")[0]
  reference = prompt.meta["entry"].get("answer")
  if not isinstance(reference, str): return _score(prompt, stated.strip(_AROUND))
  ends = reference.strip()[:1] + reference.strip()[-1:]  # The board of n_queens begins with "_".
  around = "".join(c for c in _AROUND if c not in ends)
  lines = stated.strip(around).splitlines()[:max(1, len(reference.strip().splitlines()))]
  return _score(prompt, _strip("\n".join(lines), reference, around))


def boxed(prompt: "records.Prompt", text: str) -> float:
  r"""Scores the last \boxed{...}."""
  return _score(prompt, _boxed.last(thoughts.behind(text, prompt)))


def last_line(prompt: "records.Prompt", text: str) -> float:
  """Scores the last line that is not empty."""
  return _score(prompt, thoughts.behind(text, prompt).strip().rpartition("\n")[2].strip())


def _state(form):
  """Returns the function that states the task's own answer; None if it has none."""
  def state(prompt):
    reference = prompt.meta["entry"].get("answer")
    return None if reference is None else form % reference
  return state


for _fn, _form in ((answer, "Answer: %s"), (boxed, r"\boxed{%s}"), (last_line, "%s")):
  vars(_fn)["state"] = _state(_form)


def _strip(stated, reference, around):
  """Removes marks around an answer that the task's own answer does not have."""
  stated = stated.strip()
  if not reference.endswith("."): stated = stated.removesuffix(".")
  stated = stated.strip(around)
  return stated if reference.endswith(".") else stated.removesuffix(".")


def _score(prompt, stated):
  task = _task(prompt.meta["task"], json.dumps(prompt.meta["config"], sort_keys=True))
  if not stated: return 0.0
  score = float(task.score_answer(stated, prompt.meta["entry"]))
  if math.isnan(score): raise ValueError("the task's scorer gives NaN")
  return score


@functools.lru_cache(maxsize=None)
def _task(name, config):
  import reasoning_gym  # pylint: disable=g-import-not-at-top
  return reasoning_gym.create_dataset(name, seed=0, size=1, **json.loads(config))
