"""Whether verifiers pay the reference answers of their own prompts."""
import collections
import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from rlx.core import records
from rlx.verifiers import pool as pool_lib, thoughts


def validate(prompts: Sequence[records.Prompt], pool: pool_lib.Pool,
             marks: Sequence[str] = thoughts.MARKS) -> dict[str, Any]:
  """Asks each prompt's verifier about completions that state its reference answers.

  A verifier may have `state(prompt)`, which returns such a completion, or None where the prompt has
  no reference. Of several accepted answers each has to be paid.

  Args:
    marks: of thoughts; one that a prompt's template has opened is closed first.
  Returns:
    dict(paid, unpaid, unknown): the number of prompts whose verdicts are 1; dict(id, verifier,
    answer, completion, verdict) of the first answer of each prompt for which it is lower; and
    {reason: number} of prompts of which nothing is known.
  """
  unknown: collections.Counter[str] = collections.Counter()
  asked: list[tuple[records.Prompt, str]] = []
  for p in prompts:
    completions = list(_state(p, pool, marks)) if p.verifier else []
    if not p.verifier: unknown["their environment judges them"] += 1
    elif not completions: unknown[f"{p.verifier} has no reference to state"] += 1
    asked += completions
  verdicts = pool.verify(*map(list, zip(*asked))) if asked else ()
  worst: dict[str, dict[str, Any]] = {}
  for (p, text), verdict in zip(asked, map(float, verdicts)):
    known = worst.get(p.id, dict(verdict=2.0))["verdict"]
    if verdict < known or verdict != verdict:
      worst[p.id] = dict(id=p.id, verifier=p.verifier, answer=p.answer, completion=text,
                         verdict=verdict)
  for x in worst.values():
    if x["verdict"] != x["verdict"]: unknown[f"{x['verifier']} could not decide"] += 1
  return dict(paid=sum(x["verdict"] >= 1 for x in worst.values()),
              unpaid=[x for x in worst.values() if x["verdict"] < 1], unknown=dict(unknown))


def _state(p: records.Prompt, pool: pool_lib.Pool, marks: Sequence[str]
           ) -> Iterator[tuple[records.Prompt, str]]:
  """(the prompt with one accepted answer, a completion that states it) of each of them."""
  state = getattr(pool.lookup(p.verifier), "state", lambda prompt: None)
  for answer in p.answers or (p.answer,):
    one = dataclasses.replace(p, answer=answer, answers=())
    if (text := state(one)) is not None: yield one, thoughts.close(p, marks) + text
