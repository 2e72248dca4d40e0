"""Stored completions with verdicts as questions to a judge: prompts.source=judging:FILE.

  verdict      is the completion right?                       label: its verdict
  pair         which of two completions is better?            label: the one with the higher verdict
  first_error  which step of a completion is the first wrong one?

A row of the file is a completion, as rlx stores them (loops/stored.py, completions.jsonl of a run):

  {"question": "4M7=", "completion": "7#7", "verdict": 1.0}

`question` may also be `problem` or `prompt`. The verdict is a number, right above 1/2, or with
`reads` a word of it. {"chosen", "rejected"} are two completions with the verdicts 1 and 0. The label
of `first_error` is `label`, the index of the first wrong step or -1, or else the first of `values`
that is 0; its steps are the list `steps`, or the completion cut by `separator`. The requests are
written by rlx/verifiers/judging.py, which also compares the verdicts.

A row whose column `split` has another name is left out; without that column a hash of the question
decides, so that no question is in both splits.
"""
from collections.abc import Iterable, Iterator, Mapping
import hashlib
import itertools
from typing import Annotated, Any, Literal

from rlx.core import ranges, records
from rlx.prompts import columns as columns_lib

_Text = Annotated[str | None, ranges.TEXT.or_none]
_ASKED = ("question", "problem", "prompt")
_SURE = 0.5  # A verdict above it is right.


def prompts(rows, split, *, form: Literal["verdict", "pair", "first_error"] = "verdict",
            question="", completion="completion", verdict="verdict", reference="", judgement="",
            separator="\n\n", balanced=False, per_question: ranges.Whole = 0, both_orders=False,
            held_out: ranges.Share = 0.25, template: _Text = None, reads: _Text = None):
  """Rows -> Prompts of one form; ids are hashes of the texts, so they do not depend on other rows.

  Args:
    question, completion, verdict: columns; question="" takes the first of `question`, `problem` and
      `prompt` that a row has.
    reference: column of the right answer, which a verdict then compares with; "": none.
    judgement: column of a judgement that ends with a line "Verdict: WORD", for supervised training;
      rows in which it does not state the label are dropped; "": none.
    separator: ends a step of a completion.
    balanced: leaves out prompts of the more frequent labels (of `first_error`: some step or none).
    per_question: most prompts of a question, by a hash; 0: all.
    both_orders: asks each pair in both orders; False: a hash of the two texts decides.
    held_out: share of the questions in the split test, where rows have no column `split`.
    template: of the request, with {question}, {answer}, for pairs {other}, for steps {items}, and
      {reference} and {nonce}; None: that of rlx/verifiers/judge.py.
    reads: how the verdict is read, as verifier.judge.reads; None: yes and no, A and B.
  Raises:
    ValueError: a row lacks what the form needs, or no prompt can be made.
  """
  names = dict(question=question, completion=completion, verdict=verdict, reference=reference,
               judgement=judgement, separator=separator)
  shared = {key: x for key, x in dict(template=template, reads=reads).items() if x is not None}
  made = list(_read_rows(rows, split, form, names, held_out))
  kept = [x for x in made if not isinstance(x, records.Dropped)]
  yield from (x for x in made if isinstance(x, records.Dropped))
  asked = [_ask_alone(x, form) for x in kept] if form != "pair" else list(
      _ask_pairs(kept, both_orders))
  yield from (x for x in asked if isinstance(x, records.Dropped))
  asked = [x for x in asked if not isinstance(x, records.Dropped)]
  if not asked and kept:
    raise ValueError(f"prompts.columns.form={form!r}: no question of split {split!r} has two "
                     f"completions with different verdicts, of {len(kept)} completions.")
  few = _take_few(asked, per_question)
  few &= _take_balanced([x for x in asked if x["id"] in few]) if balanced else few
  for x in asked:
    id_ = f"judging/{form}/{x['id']}"
    if x["id"] not in few:
      yield records.Dropped(id_, "that balanced or per_question leave out")
      continue
    judged = {key: value for key, value in x["judged"].items() if value is not None} | shared
    yield records.Prompt(id=id_, text=x["question"], answer=x["answer"], verifier="judging.verdict",
                         meta=dict(judged=dict(judged, form=form), label=x["answer"]))


def demonstration(prompt, rng):
  """The target of supervised training: the judgement of the row, if it has one, and the verdict."""
  del rng
  judged = prompt.meta["judged"]
  nonce, reasons = judged.get("nonce"), ""
  if judged.get("judgement") is not None:
    reasons = "".join(judged["judgement"].strip().rpartition("\n")[:2])
  return f"{reasons}Verdict {nonce}: {prompt.answer}" if nonce else reasons + prompt.answer


def _read_rows(rows: Iterable[Mapping], split: str, form: str, names: Mapping[str, str],
               held_out: float) -> Iterator[dict[str, Any] | records.Dropped]:
  """What the rows of a split say, each completion of a question once."""
  seen: set[str] = set()
  for i, row in enumerate(rows):
    where = f"row {i}"
    text = _find_question(row, where, names["question"])
    if split != _find_split(row, text, split, held_out): continue
    for part in _split_pair(row, where, names["completion"], names["verdict"]):
      read = _read_row(part, where, form, names)
      if isinstance(read, str): yield records.Dropped(where, read)
      elif (id_ := _hash(text, read["completion"])) in seen:
        yield records.Dropped(where, "repeated completions")
      else:
        seen.add(id_)
        yield dict(read, id=id_, question=text)


def _find_question(row, where, column):
  column = column or next((name for name in _ASKED if name in row), "question")
  value = columns_lib.find(row, column, where, "prompts.columns.question")
  return columns_lib.read_question(value, f"{where}: column {column!r}")[0]


def _find_split(row, question, split, held_out):
  """The split that a row is in."""
  if "split" in row: return row["split"]
  if split not in ("train", "test"):
    raise ValueError(f"prompts: no split {split!r}; rows without a column `split` are of train or "
                     "test.")
  number = int(_hash(" ".join(question.split())), 16) / 16**16
  return "test" if number < held_out else "train"


def _split_pair(row, where, completion, verdict):
  """The completions of a row: two of {"chosen", "rejected"}."""
  if not {"chosen", "rejected"} <= row.keys(): return [row]
  return [{**row, completion: row[side], verdict: x} for side, x in (
      ("chosen", 1.0), ("rejected", 0.0))]


def _read_row(row, where, form, names):
  """{"completion", "answer", "judged", "verdict"} of a completion, or why it is dropped."""
  judged: dict[str, Any] = {
      key: _read_text(row, names[key], where, key) if names[key] else None
      for key in ("reference", "judgement")}
  if form == "first_error": return _read_steps(row, where, names, judged)
  text = _read_text(row, names["completion"], where, "completion")
  given = columns_lib.find(row, names["verdict"], where, "prompts.columns.verdict")
  if given is None: return "without a verdict"
  if isinstance(given, str) and form == "verdict":
    return dict(completion=text, answer=given, judged=dict(judged, answer=text))
  if given not in ranges.SHARE and not isinstance(given, bool):
    raise ValueError(f"{where}: column {names['verdict']!r}: {given!r:.60} is no verdict, a number "
                     "from 0 to 1, or null.")
  if form == "verdict" and given == _SURE: return "with a verdict of 1/2"
  is_right = given > _SURE
  return dict(completion=text, answer="yes" if is_right else "no", verdict=float(given),
              judged=dict(judged, answer=text, label=float(is_right)))


def _read_steps(row, where, names, judged):
  """As `_read_row`, of `first_error`."""
  steps = row.get("steps")
  if steps is None:
    steps = _read_text(row, names["completion"], where, "completion").split(names["separator"])
    steps = steps[:-1] if steps[-1] == "" else steps
  if not isinstance(steps, list) or not steps or not all(isinstance(s, str) for s in steps):
    raise ValueError(f"{where}: {steps!r:.60} is no list of steps, which are texts.")
  values, n = row.get("values"), len(steps)
  if "label" not in row and values is None:
    raise ValueError(f"{where} has {sorted(row)}; form='first_error' needs `label`, the index of "
                     "the first wrong step or -1, or `values`, one for each step.")
  if row.get("label") is not None: label = row["label"]
  elif not values or None in values: return "without a label"
  elif len(values) != n:
    raise ValueError(f"{where}: {len(values)} values for {n} steps, which "
                     f"prompts.columns.separator={names['separator']!r} ends.")
  else: label = next((j for j, x in enumerate(values) if x == 0), -1)
  if isinstance(label, bool) or label not in range(-1, n):
    raise ValueError(f"{where}: label={label!r}; -1 to {n - 1} are allowed, as it has {n} steps "
                     f"(prompts.columns.separator={names['separator']!r}).")
  return dict(completion=names["separator"].join(steps),
              answer="none" if label == -1 else str(int(label) + 1),
              judged=dict(judged, steps=steps, label=float(label)))


def _read_text(row, column, where, key):
  value = columns_lib.find(row, column, where, f"prompts.columns.{key}")
  if not isinstance(value, str) or key != "completion" and not value.strip():
    raise ValueError(f"{where}: column {column!r}: {value!r:.60} is no text.")
  return value


def _ask_alone(x, form):
  return dict(x, kind=x["answer"] if form == "verdict" else x["answer"] == "none")


def _ask_pairs(completions: list[dict], both_orders: bool) -> Iterator[dict | records.Dropped]:
  """The pairs of completions of each question; those of equal verdicts are ties."""
  groups: dict[str, list[dict]] = {}
  for x in completions: groups.setdefault(x["question"], []).append(x)
  for group in groups.values():
    for pair in itertools.combinations(group, 2):
      # The order says nothing of the verdicts, and is the same in any order of the rows.
      first, second = sorted(pair, key=lambda x: x["id"])
      id_ = _hash(first["id"], second["id"])
      if int(id_, 16) % 2: first, second = second, first
      if first["verdict"] == second["verdict"]:
        yield records.Dropped(f"judging/pair/{id_}", "ties")
        continue
      for a, b, of in ((first, second, id_), (second, first, f"{id_}-"))[:1 + both_orders]:
        answer = "A" if a["verdict"] > b["verdict"] else "B"
        yield dict(id=of, question=a["question"], answer=answer, kind=answer, judged=dict(
            a["judged"], other=b["completion"], label=float(answer == "A")))


def _take_few(asked: list[dict], most: int) -> set[str]:
  """The ids of at most `most` prompts of each question, of all with 0."""
  groups: dict[str, list[str]] = {}
  for x in asked: groups.setdefault(x["question"], []).append(x["id"])
  return {id_ for ids in groups.values() for id_ in sorted(ids)[:most or None]}


def _take_balanced(asked: list[dict]) -> set[str]:
  """The ids of equally many prompts of each kind of label."""
  kinds: dict[Any, list[str]] = {}
  for x in asked: kinds.setdefault(x["kind"], []).append(x["id"])
  n = min(map(len, kinds.values()), default=0)
  return {id_ for ids in kinds.values() for id_ in sorted(ids)[:n]}


def _hash(*texts):
  """16 hex digits of texts."""
  return hashlib.blake2b("\0".join(texts).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
