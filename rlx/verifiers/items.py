"""Items of a verdict: what a prompt says of them, and what they come to.

A verifier of items (`verifier.by_item`) returns a list with a number in [0, 1] for each item of a
verdict, such as the tests of a program or the items of a rubric; NaN is unknown. How many there
are depends on the prompt. `prompt.meta["items"]`, or else `verifier.default_items`, may say what
they are, in the verifier's order:

  [{"name": "states the dose", "weight": 2},
   {"name": "invents a source", "weight": -1},
   {"name": "cites the question", "threshold": 0.5},
   {"name": "warns of the risk", "veto": true}]

  weight     in means; 1 by default. That of a fault is below 0.
  threshold  from this value on the item counts as 1, else as 0; without it its value counts.
  veto       whether the reward is 0 where the item is 0 (rewards/items.py).

Other keys are the verifier's own, such as "verifier" of `verdicts` here; with an attribute
`item_keys`, a verifier says which, and others are refused. Where nothing says what the items are,
they are "item 1", "item 2", ... of weight 1. A verifier may have `count_items(prompt)`, which says
how many it will give.
"""
import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from rlx.core import resolve

if TYPE_CHECKING: from rlx.core import records

KEYS = ("name", "weight", "threshold", "veto")  # Of an item of any verifier.
# Further ones, so that a judge and verifiers read one rubric; parent: what an item was split from.
OF_RUBRICS = ("text", "verifier", "parent")
_MOST_NAMES = 16  # Names of items whose means are logged.


class Item(NamedTuple):
  """An item of the verdict of a completion; the value NaN is unknown."""
  name: str
  weight: float
  value: float
  is_veto: bool = False


def verdicts(prompt: "records.Prompt", text: str) -> list[float]:
  """Returns for each item of the prompt the verdict of the verifier that it names.

    [{"name": "right", "verifier": "math_answer.final"},
     {"name": "boxed", "verifier": "format.boxed"}]
  """
  return [float(resolve.lookup("verifiers", row["verifier"], "verifier")(prompt, text))
          for row in get_rows(prompt) or ()]


def _inspect(prompts, unsafe=False):
  """Why the items of prompts cannot be judged by `verdicts`; see inspect_prompts of build."""
  del unsafe
  def find_problem(prompt):
    rows = get_rows(prompt)
    if not isinstance(rows, list) or not rows: return "it has no items that name verifiers"
    for row in rows:
      try:
        resolve.lookup("verifiers", row["verifier"], "verifier")
      except (KeyError, TypeError, ValueError) as e:
        return f"an item has no verifier: {row!r:.80}" + f": {e}" * isinstance(e, ValueError)
    return None
  return [(find_problem(prompt), None) for prompt in prompts]


vars(verdicts).update(inspect=_inspect, item_keys=OF_RUBRICS)


def get_rows(prompt: "records.Prompt") -> list[dict] | None:
  """What a prompt says of the items of its verdicts; None: nothing."""
  return prompt.meta.get("items")


def list_names(prompt: "records.Prompt", known: Sequence[str]) -> list:
  """The names of a prompt's items, for a verifier of `known` ones; all of these by default."""
  return [row.get("name") for row in get_rows(prompt) or ()] or [*known]


def find_unknown(prompt: "records.Prompt", known: Sequence[str]) -> str | None:
  """Why a verifier that has only these items cannot judge those of a prompt; None: it can."""
  if (rows := get_rows(prompt)) and (problem := _find_rows_problem(rows, ())): return problem
  return next((f"meta['items']: {name!r:.40}; there are {', '.join(known)}"
               for name in list_names(prompt, known) if name not in known), None)


def read(prompt: "records.Prompt", values: Sequence[float]) -> list[Item]:
  """The items of the verdict of a completion, of as many values as the prompt has items."""
  rows = get_rows(prompt) or [dict(name=f"item {i + 1}") for i in range(len(values))]
  items = []
  for row, value in zip(rows, values, strict=True):
    if row.get("threshold") is not None and not math.isnan(value):
      value = float(value >= row["threshold"])
    items.append(Item(row["name"], float(row.get("weight", 1)), value, row.get("veto", False)))
  return items


def average(items: Iterable[Item]) -> float:
  """sum_j w_j s_j / sum_j max(w_j, 0) over the known items; NaN without any of weight above 0."""
  known = [x for x in items if not math.isnan(x.value)]
  weight = sum(max(x.weight, 0.0) for x in known)
  return sum(x.weight * x.value for x in known) / weight if weight else math.nan


def find_problem(prompt: "records.Prompt", most: int,
                 count: Callable[[Any], int] | None,
                 own: Sequence[str] | None = None) -> str | None:
  """Why the items of a prompt's verdicts cannot be read, in one line; None: they can.

  Args:
    most: items at most (`verifier.max_items`).
    count: `count_items` of the verifier; None: it has none.
    own: `item_keys` of the verifier, the keys of an item that it reads; None: any.
  """
  rows, given = get_rows(prompt), count and count(prompt)
  n = given or 0
  if rows is not None:
    if problem := _find_rows_problem(rows, own): return problem
    if given is not None and given != len(rows):
      return f"items names {len(rows)} items; its verifier gives {given}"
    n = len(rows)
  return f"it has {n} items: at most verifier.max_items={most}; set it higher" if n > most else None


def _find_rows_problem(rows: Any, own: Sequence[str] | None) -> str | None:
  if not are_rows(rows) or not rows: return f"items={rows!r:.60}: a list of dicts"
  for j, row in enumerate(rows):
    if problem := find_row_problem(row, own): return f"items[{j}]={row!r:.80}: {problem}"
  if any(row.get("weight", 1) > 0 for row in rows): return None
  return "items: no weight is above 0, so that no completion could be right"


def are_rows(x: Any) -> bool:
  """Whether this is a list of dicts."""
  return isinstance(x, list | tuple) and all(isinstance(row, dict) for row in x)


def find_row_problem(row: dict, own: Sequence[str] | None = None) -> str | None:
  """Why this cannot be what a prompt says of an item; None: it can. `own`: as of `find_problem`."""
  def is_number(x): return type(x) in (int, float) and math.isfinite(x)
  if not isinstance(row.get("name"), str) or not row["name"].strip(): return "name: a text"
  if not is_number(row.get("weight", 1)): return "weight: a number, 1 by default"
  threshold = row.get("threshold")
  if threshold is not None and not (is_number(threshold) and 0 <= threshold <= 1):
    return "threshold: a number from 0 to 1"
  if not isinstance(row.get("veto", False), bool): return "veto: true or false"
  known = (*KEYS, *(row if own is None else own))
  return next((f"{key!r:.40} is no key of an item, of which it has {', '.join(known)}; rename it "
               "or leave it out"
               for key in row if key not in known), None)


def show(row: Sequence[Item]) -> list[dict[str, Any]]:
  """The items of a completion as in completions.jsonl, where an unknown value is None."""
  return [dict(name=x.name, weight=x.weight, value=None if math.isnan(x.value) else x.value)
          for x in row]


def mean_by_name(rows: Sequence[Sequence[Item]]) -> dict[str, float]:
  """{name: mean of the known values} of the first 16 names that all rows have."""
  if not rows: return {}
  shared = set.intersection(*({x.name for x in row} for row in rows))
  names = [name for name in dict.fromkeys(x.name for x in rows[0]) if name in shared][:_MOST_NAMES]
  values = {name: [x.value for row in rows for x in row
                   if x.name == name and not math.isnan(x.value)] for name in names}
  return {name: sum(x) / len(x) for name, x in values.items() if x}
