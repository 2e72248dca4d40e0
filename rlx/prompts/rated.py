"""Rows of completions whose worth is known: pairs, solutions with a first error, rated completions.

What is judged with them stands in rlx/tools/judging.py. A row is of one of three kinds:

  {"prompt", "chosen", "rejected"}      a better and a worse completion, or lists of both
  {"prompt", "steps", "label"}          a solution, and the index of its first wrong step, -1: none
  {"prompt", "completions", "gold"}     completions and how good each is, a number, null: unknown

`prompt` may also be `problem`, `question` or `input`: a text, or chat messages. These are the
columns of RewardBench (arXiv:2403.13787), RewardBench 2 (2506.01937), the preference sets beside
it, and ProcessBench (2412.06559). A completion is a text, or a chat that ends with it; the prompt
may then be left out. The kind `gold` may have `completion` with a single number, of which those
with the same `group`, by default the same prompt, belong together. `verdict` may stand for `gold`;
in rows of stored completions (loops/stored_rows.py), which have both `completion` and `prompt`, the
prompt is the text that the model reads.

  subset      of what part of a set a row is; ProcessBench has it in the `id`, as gsm8k-12
  id          ref:K or tied:K in the subset Ties of RewardBench 2
  answer      the reference, for judges that read one
  paraphrase  rows with the same value are wordings of one pair
  contrast    rows with the same value are similar prompts; the `rejected` of each are the `chosen`
              of the others, which fit these and not it (2309.16155)
  kl          of the policy that wrote the completions from the one it started from, in nats
  chosen_model, rejected_model, models   who wrote the completions
"""
import dataclasses
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rlx.core import records
from rlx.prompts import columns

_ASKED = ("prompt", "problem", "question", "input")
_PROCESS_BENCH = re.compile(r"(gsm8k|math|olympiadbench|omnimath)-\d+")
# {kind of a row: what it has}.
SHOWN = dict(pairs="`chosen` and `rejected`", steps="`steps` and `label`",
             gold="completions with `gold`")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Rated:
  """A prompt with completions whose worth is known.

  Attributes:
    kind: one of SHOWN.
    texts: the completions; of `steps` the steps of one.
    gold: how good each text is, of pairs 1 or 0; NaN is unknown. () of steps.
    label: of steps, the index of the first wrong one, -1 if there is none.
    prompt: its meta has "is_rendered" if its text is what the model reads, and no question.
    models: who wrote each text, "" is unknown.
  """
  kind: str
  where: str
  id: str
  prompt: records.Prompt
  texts: tuple[str, ...]
  gold: tuple[float, ...] = ()
  label: int | None = None
  subset: str = ""
  models: tuple[str, ...] = ()
  paraphrase: str | None = None
  contrast: str | None = None
  kl: float | None = None


def read(rows: Iterable[Mapping[str, Any]], renamed: Mapping[str, str] | None = None
         ) -> list[Rated]:
  """Reads rows of one kind; completions of a group are one Rated.

    >>> pair, = rated.read([dict(prompt="2+2?", chosen="4", rejected=["5", "6"])])
    >>> pair.texts, pair.gold
    (('4', '5', '6'), (1.0, 0.0, 0.0))

  Args:
    renamed: {name of a column above: what the rows call it}.
  Raises:
    ValueError: a row is of no kind or of another one than the first, or a column cannot be read;
      one line with the row, what it has and what is needed.
  """
  read_: list[Rated] = []
  for i, row in enumerate(rows):
    where = f"rows: row {i}"
    row = {**row, **{new: columns.find(row, old, where, f"columns.{new}")
                     for new, old in (renamed or {}).items()}}
    read_.append(_read_row({k: x for k, x in row.items() if x is not None}, where))
    if (kind := read_[-1].kind) != read_[0].kind:
      raise ValueError(f"{where} has {SHOWN[kind]}, and row 0 {SHOWN[read_[0].kind]}; needed are "
                       "rows of one kind.")
  if not read_: raise ValueError("rows: there are none.")
  if read_[0].kind != "gold": return read_
  if all(math.isnan(g) for x in read_ for g in x.gold):
    raise ValueError("rows: no row has a known `gold`, nor a `verdict`.")
  return _group(read_)


def _read_row(row: dict, where: str) -> Rated:
  read_kind = next((fn for key, fn in (("chosen", _read_pair), ("steps", _read_steps),
                                       ("completions", _read_gold), ("completion", _read_gold))
                    if key in row), None)
  if read_kind is None:
    raise ValueError(f"{where} has {sorted(row)!s:.200}; needed are `chosen` and `rejected`, "
                     "`steps` and `label`, or `completions` and `gold`.")
  fields = read_kind(row, where)
  asked = fields.pop("asked", None) or next((row[k] for k in _ASKED if k in row), None)
  text, messages = columns.read_question(asked, f"{where}: column 'prompt'")
  meta = {key: row[key] for key in ("items",) if key in row}
  if "completion" in row and "prompt" in row and not messages: meta["is_rendered"] = True
  answers = columns.read_answers(row["answer"], f"{where}: column 'answer'") if not (
      columns.is_missing(row.get("answer"))) else ()
  kl = columns.read_number(row.get("kl"))
  if kl is not None and (not _is_number(kl) or not 0 <= kl < math.inf):
    raise ValueError(f"{where}: kl={kl!r:.40}; a number from 0, or null.")
  name = fields.pop("group", None) or str(row.get("id", ""))
  in_id = _PROCESS_BENCH.fullmatch(name)
  return Rated(
      where=where, id=name, kl=kl, prompt=records.Prompt(
          where, text, messages=messages, answer=answers[0] if answers else "", meta=meta,
          answers=answers if len(answers) > 1 else ()),
      subset=str(row.get("subset", in_id[1] if in_id else "")),
      paraphrase=str(row["paraphrase"]) if "paraphrase" in row else None,
      contrast=str(row["contrast"]) if "contrast" in row else None, **fields)


def _read_pair(row: dict, where: str) -> dict[str, Any]:
  sides: list[str] = []
  asked, counts = None, []
  for side in ("chosen", "rejected"):
    value = row.get(side)
    listed: Any = value if columns.is_list(value) and not _is_chat(value) else [value]
    texts: list[Any] = []
    for x in listed:
      if _is_chat(x): x, asked = _end_of_chat(x, asked, f"{where}: column {side!r}")
      texts.append(x)
    if not texts or not all(isinstance(x, str) and x for x in texts):
      raise ValueError(f"{where}: {side}={value!r:.60}; needed is a text, a chat that ends with "
                       "the assistant's turn, or a list of texts.")
    sides += texts
    counts.append(len(texts))
  models: Any = row.get("models") or [
      *[row.get("chosen_model", "")] * counts[0], *[row.get("rejected_model", "")] * counts[1]]
  known = models if columns.is_list(models) and len(models) == len(sides) else [""] * len(sides)
  return dict(kind="pairs", texts=tuple(sides), gold=(1.0,) * counts[0] + (0.0,) * counts[1],
              models=tuple(map(str, known)), asked=asked)


def _read_steps(row: dict, where: str) -> dict[str, Any]:
  steps, label = row["steps"], columns.read_number(row.get("label"))
  if not columns.is_list(steps) or not steps or not all(isinstance(x, str) and x for x in steps):
    raise ValueError(f"{where}: steps={steps!r:.60}; needed is a list of texts, at least one.")
  if isinstance(label, bool) or label not in range(-1, len(steps)):  # A table with a gap has 1.0.
    raise ValueError(f"{where}: label={label!r:.40}; needed is the index of the first wrong step, "
                     f"0 to {len(steps) - 1}, or -1.")
  return dict(kind="steps", texts=tuple(steps), label=int(label))


def _read_gold(row: dict, where: str) -> dict[str, Any]:
  is_one, gold = "completion" in row, row.get("gold", row.get("verdict"))
  texts: Any = [row["completion"]] if is_one else row["completions"]
  given: Any = [columns.read_number(gold)] if is_one else gold
  if not columns.is_list(texts) or not texts or not all(isinstance(x, str) for x in texts):
    raise ValueError(f"{where}: completions={texts!r:.60}; needed is a list of texts.")
  if (not columns.is_list(given) or len(given) != len(texts)
      or not all(x is None or _is_number(x) and math.isfinite(x) for x in given)):
    raise ValueError(f"{where}: gold={gold!r:.60}; needed is "
                     + ("a number" if is_one else f"a list of {len(texts)} numbers") + ", or null.")
  return dict(kind="gold", texts=tuple(texts), group=str(row.get("group", "")),
              gold=tuple(math.nan if x is None else float(x) for x in given))


def _group(rows: list[Rated]) -> list[Rated]:
  """Rows of the same group, or the same prompt, and the same kl, as one."""
  groups: dict[Any, list[Rated]] = {}
  for x in rows: groups.setdefault((x.kl, x.id or (x.prompt.text, str(x.prompt.messages))),
                                   []).append(x)
  return [dataclasses.replace(
      part[0], texts=tuple(t for x in part for t in x.texts),
      gold=tuple(g for x in part for g in x.gold)) for part in groups.values()]


def _end_of_chat(messages: Sequence, asked: Any, where: str) -> tuple[str, list[dict] | None]:
  """(the last turn's text, the turns before it or None) of a chat that ends with the assistant's.

  Args:
    asked: the turns before that of another completion, which are the same; None: not known.
  """
  *before, last = columns.read_messages(messages, where)
  if last["role"] != "assistant":
    raise ValueError(f"{where}: its last message is of the role {last['role']}; needed is the "
                     "assistant's.")
  if asked is not None and before not in ([], asked):
    raise ValueError(f"{where}: the turns before the last one differ from those of `chosen`.")
  return last["content"], before or asked


def _is_chat(value: Any) -> bool:
  return columns.is_list(value) and bool(value) and all(isinstance(x, Mapping) for x in value)


def _is_number(value: Any) -> bool:
  return isinstance(value, int | float) and not isinstance(value, bool)
