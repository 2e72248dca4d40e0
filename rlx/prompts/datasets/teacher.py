r"""Questions with completions of a teacher, whose majority is the answer: nobody knows a right one.

  {"question": "What is 3 + 4?", "completions": ["3 + 4 = \\boxed{7}", "\\boxed{7}", "\\boxed{8}"]}

The verifier then says of a completion whether it agrees with the teacher. The target of supervised
training (sft.target.name=teacher.demonstration) is one of the completions with that answer.
"""
import collections
import re
from typing import Annotated

from rlx.core import ranges, records
from rlx.prompts import columns as columns_lib

BOXED = r"\\boxed\{((?:[^{}]|\{[^{}]*\})*)\}"


def prompts(rows, split, *, question="question", completions="completions",
            pattern: Annotated[str, ranges.TEXT] = BOXED, least: ranges.Share = 0.5,
            verifier="math_answer.boxed"):
  """Rows -> Prompts; ids are teacher/<split>/<row number>.

  Source: labels by agreement with the majority of a teacher, Zhang et al. 2025, arXiv:2502.19557
  (Distill Not Only Data but Also Rewards; from memory, unverified).

  Args:
    question, completions: columns; the latter is a list of texts.
    pattern: a regular expression with at most one group, whose last match is the answer that a
      completion states, as of eval.answer.
    least: the share of the completions that has to state the answer; other rows are dropped.
    verifier: that compares a completion with the answer.
  Raises:
    ValueError: a pattern, a column or a value that cannot be read.
  """
  try:
    if re.compile(pattern).groups > 1: raise re.error("more than one group")
  except re.error as e:
    raise ValueError(f"prompts.columns.pattern={pattern!r}: no regular expression with at most one "
                     f"group: {e}.") from None
  for i, row in enumerate(rows):
    where, id_ = f"row {i} of {split}", f"teacher/{split}/{i}"
    text, messages = columns_lib.read_question(
        columns_lib.find(row, question, where, "prompts.columns.question"), where)
    said = columns_lib.find(row, completions, where, "prompts.columns.completions")
    if not isinstance(said, list) or not all(isinstance(x, str) for x in said):
      raise ValueError(f"{where}: column {completions!r}: a list of texts, not {said!r:.80}.")
    stated = [(re.findall(pattern, x) or [None])[-1] for x in said]
    (answer, votes), = collections.Counter(filter(None, stated)).most_common(1) or [("", 0)]
    if not votes or votes < least * len(said):
      yield records.Dropped(id_, "without a majority")
      continue
    yield records.Prompt(
        id=id_, text=text, messages=messages, answer=answer, verifier=verifier, meta=dict(
            shown=[x for x, own in zip(said, stated) if own == answer]))


def demonstration(prompt, rng):
  """The target of supervised training: a completion of the teacher that states the answer."""
  return prompt.meta["shown"][int(rng.integers(len(prompt.meta["shown"])))]
