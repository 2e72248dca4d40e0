r"""Scores answers to Reasoning Gym tasks with the task's own scorer, in [0, 1].

The three functions differ in where the answer has to stand, behind the thoughts (thoughts.py). A
completion without an answer scores 0; some scorers give 0.01 for any wrong answer.
"""
import functools
import json
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
  stated = text[marks[-1].end():].partition("</answer>")[0].strip(_AROUND)
  reference = prompt.meta["entry"].get("answer")
  if not isinstance(reference, str): return _score(prompt, stated)
  stated = "\n".join(stated.splitlines()[:max(1, len(reference.strip().splitlines()))])
  return _score(prompt, _strip(stated, reference))


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


def _strip(stated, reference):
  """Removes marks around an answer that the task's own answer does not have."""
  stated = stated.strip()
  if not reference.endswith("."): stated = stated.removesuffix(".")
  if reference.strip(_AROUND) == reference: stated = stated.strip(_AROUND)
  return stated if reference.endswith(".") else stated.removesuffix(".")


def _score(prompt, stated):
  task = _task(prompt.meta["task"], json.dumps(prompt.meta["config"], sort_keys=True))
  if not stated: return 0.0
  return float(task.score_answer(stated, prompt.meta["entry"]))


@functools.lru_cache(maxsize=None)
def _task(name, config):
  import reasoning_gym  # pylint: disable=g-import-not-at-top
  return reasoning_gym.create_dataset(name, seed=0, size=1, **json.loads(config))
