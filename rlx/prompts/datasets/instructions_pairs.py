"""The instructions of rlx/prompts/datasets/instructions.py, each asked twice: with and without
reasoning.

The second prompt is a chat whose reply begins with an empty thought, so that the policy answers at
once. Both have the same verifier. `prompts.paired` keeps them in one batch.
"""
import dataclasses

from rlx.prompts.datasets import instructions

EMPTY = "<think>\n\n</think>\n\n"  # As released reasoning models write it.


def prompts(rows, split, *, empty=EMPTY, verifier=""):
  """Rows -> Prompts, two per row; `meta["pair"]` is the id of the other one, `meta["bare"]` says
  which has no reasoning.

  Args:
    empty: the beginning of a reply without reasoning.
    verifier: as of instructions.
  """
  for p in instructions.prompts(rows, split, verifier=verifier):
    ids = f"{p.id}/think", f"{p.id}/bare"
    asked = dict(role="user", content=p.text), dict(role="assistant", content=empty)
    yield dataclasses.replace(p, id=ids[0], meta=dict(p.meta, pair=ids[1], bare=False))
    yield dataclasses.replace(p, id=ids[1], messages=asked, meta=dict(
        p.meta, pair=ids[0], bare=True))
