"""Plain texts as questions about a sentence of them (RLPT): PATH with {split}, or a column `split`.

  next    What does the next sentence say?    the sentences before it are shown
  middle  Which sentence is missing?          so is the one behind it

A row is a text, {"text": "The river is old. The market is near it. It opens at nine."}. Sentences
end with . ! or ? before a space, or with their line. `prompt.answer` is the sentence in question
and, of form next, those behind it: a completion that says more than one sentence may still be a
beginning of it.

Source: Reinforcement Learning on Pre-Training Data, Li et al. 2025, arXiv:2509.19249. Differs from
the paper: the wording of the questions, how many sentences an answer has and how both forms are
mixed are ours.
"""
from collections.abc import Iterator, Mapping
import hashlib
import re
from typing import Literal

from rlx.core import ranges, records
from rlx.prompts import columns as columns_lib

_END = re.compile(r"(?<=[.!?])\s+|\s*\n\s*")
_ASKED = dict(next="What does the next sentence of this text say?",
              middle="Which sentence is missing at [...] in this text?")


def prompts(rows, split, *, text="text", form: Literal["next", "middle", "both"] = "both",
            before: ranges.Count = 8, behind: ranges.Whole = 1, per_text: ranges.Count = 1,
            words: ranges.Count = 3, verifier="judge.chat"
            ) -> Iterator[records.Prompt | records.Dropped]:
  """Rows -> Prompts; which sentences are asked for follows from a hash of the text.

  Args:
    text: column of the text.
    form: both: one or the other, by the hash.
    before: most sentences that are shown before the one in question.
    behind: sentences behind it that belong to the answer, of form next.
    per_text: most sentences that are asked for.
    words: fewest of a sentence that is asked for.
    verifier: judge.chat, whose template asks whether a completion is in meaning a beginning of the
      answer, or coverage.prefix.
  Raises:
    ValueError: a row has no such column, or it is no text.
  """
  for i, row in enumerate(rows):
    where = f"row {i}"
    sentences = _split(row, text, where)
    asked = sorted((_hash(*sentences, str(j)), j) for j in range(1, len(sentences))
                   if len(re.findall(r"\w+", sentences[j])) >= words)
    made = [x for digest, j in asked if (x := _ask(sentences, j, digest, form, before, behind))]
    if not made: yield records.Dropped(f"segments/{split}/{i}", "without a sentence to ask for")
    for j, (kind, question, answer) in enumerate(made[:per_text]):
      yield records.Prompt(id=f"segments/{split}/{i}/{j}", text=question, answer=answer,
                           verifier=verifier, meta=dict(form=kind, words=words))


def _split(row: Mapping, column: str, where: str) -> list[str]:
  value = columns_lib.find(row, column, where, "prompts.columns.text")
  if not isinstance(value, str):
    raise ValueError(f"{where}: column {column!r}: {value!r:.60} is no text.")
  return [s for s in _END.split(value.strip()) if s]


def _ask(sentences, j, digest, form, before, behind):
  """(form, question, answer) about sentence j; None if it is the last one, with form=middle."""
  kind = form if form != "both" else "middle" if int(digest, 16) % 2 else "next"
  if kind == "middle" and j == len(sentences) - 1:
    if form == "middle": return None
    kind = "next"
  shown = " ".join(sentences[max(j - before, 0):j])
  if kind == "middle": shown += f" [...] {sentences[j + 1]}"
  answer = " ".join(sentences[j:j + 1 + (behind if kind == "next" else 0)])
  return kind, f"{_ASKED[kind]}\n\n{shown}", answer


def _hash(*texts):
  whole = "\0".join(texts).encode("utf-8", "surrogatepass")
  return hashlib.blake2b(whole, digest_size=8).hexdigest()
