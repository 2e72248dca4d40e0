"""The chain task with each question in two wordings: "4M7m2M5=" and "7M4m2M5=".

The other wording has the first two digits the other way round, where the first
operation allows that: other tokens, the same steps and the same answer.
"""
from rlx.core import records
from rlx.prompts.datasets import chain

SOURCE = "chain"
COMMUTE = "Mm+*"


def prompts(rows, split):
  """Rows -> Prompts, two a row; a row without a second wording of its split gives none.

  `meta["pair"]` is the id of the other one.
  """
  for row in rows:
    drawn = chain.generate(split=split, **row)
    texts = drawn["text"], other_wording(drawn["text"])
    if texts[1] is None or chain.split_of(texts[1]) != split: continue
    name = f"chain_pairs/{split}/{row['seed']}/{row['index']}"
    ids = f"{name}/0", f"{name}/1"
    for id_, text, pair in zip(ids, texts, ids[::-1]):
      yield records.Prompt(id=id_, text=text, answer=drawn["answer"],
                           verifier="chain.answer", meta=dict(pair=pair))


def other_wording(text):
  """The same question in other words; None where there are none. Its own inverse."""
  first, op, second = text[:3]
  if op not in COMMUTE or first == second: return None
  return second + op + first + text[3:]
