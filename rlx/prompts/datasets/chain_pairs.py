"""The chain task with each question in two wordings: "4M7m2M5=" and "7M4m2M5=".

The other wording exchanges the first two digits if the first operation is commutative: other
tokens, the same steps and the same answer.
"""
from rlx.core import records
from rlx.prompts import generated
from rlx.prompts.datasets import chain

COMMUTE = "Mm+*"


def prompts(rows, split):
  """Rows -> Prompts, two per row; none for a row without a second wording in its split.

  `meta["pair"]` is the id of the other wording.
  """
  for row in rows:
    drawn = chain.generate(split=split, **row)
    texts = drawn["text"], other_wording(drawn["text"])
    if texts[1] is None or generated.split_of(texts[1]) != split: continue
    name = f"chain_pairs/{split}/{row['seed']}/{row['index']}"
    ids = f"{name}/0", f"{name}/1"
    for id_, text, pair in zip(ids, texts, ids[::-1]):
      yield records.Prompt(id=id_, text=text, answer=drawn["answer"],
                           verifier="chain.answer", meta=dict(pair=pair))


def other_wording(text: str) -> str | None:
  """The question with its first digits exchanged; None if that is another question or none.

  Example:
    >>> chain_pairs.other_wording("4M7m2M5=")
    '7M4m2M5='
  """
  first, op, second = tuple(text[:3])
  if op not in COMMUTE or first == second: return None
  return second + op + first + text[3:]
