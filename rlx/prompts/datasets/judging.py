"""Stored completions with verdicts as questions to a judge: prompts.source=judging:FILE.

  verdict      is the completion right?                       label: its verdict
  pair         which of two completions is better?            label: the one with the higher verdict
  first_error  which step of a completion is the first wrong one?
  step         is the last step of a beginning right?         label: that of the step
  scores       how good are several completions?              label: the best one
  score        how good is a completion? Asked about both of a pair (rewards/judging.py).
  critique     what is good and bad about a completion? Asked about both of a pair; it states no
               verdict, and a head that reads it may learn which one is better (`critiques` of
               rlx/prompts/scored_sets.py).

A row of the file is a completion, as rlx stores them (loops/stored_rows.py, completions.jsonl):

  {"question": "4M7=", "completion": "7#7", "verdict": 1.0}

`question` may also be `problem` or `prompt`. The verdict is a number, right above 1/2, or with
`reads` a word of it. {"chosen", "rejected"} are two completions with the verdicts 1 and 0. Steps
are the list `steps`, or the completion cut by `separator`. Their label is `label`, the index of the
first wrong one or -1, or else `values`, the share of right completions among those sampled after
each. The requests are written by rlx/verifiers/judging.py, which also compares the verdicts.

A row whose column `split` has another name is left out; without that column a hash of the question
decides, so that no question is in both splits.
"""
import collections
from collections.abc import Iterable, Iterator, Mapping, Sequence
import hashlib
import itertools
import re
from typing import Annotated, Any, Literal

import numpy as np

from rlx.core import ranges, records
from rlx.prompts import columns as columns_lib, error_patterns, scored_sets
from rlx.rewards import step_labels

_Text = Annotated[str | None, ranges.TEXT.or_none]
_Patterns = Annotated[tuple, ranges.some_of(error_patterns.PATTERNS)]
_ASKED = ("question", "problem", "prompt")
_SURE = 0.5  # A verdict above it is right.
_VERIFIERS = dict(scores="judging.ranking", score="judging.score", critique="judging.gold")
_OF_ONE = ("verdict", "step", "first_error")  # About one completion, whose label is a word.
_OF_SIDES = ("score", "critique")  # About one completion of a pair.
_DROPPED = "that balanced or per_question leave out"


def prompts(rows, split, *,
            form: Literal["verdict", "pair", "first_error", "step", "scores", "score",
                          "critique"] = "verdict",
            question="", completion="completion", verdict="verdict", reference="", judgement="",
            critique="", strength="", separator="\n\n",
            labels: Literal["hard", "relative"] = "hard", balanced=False,
            per_question: ranges.Whole = 0, both_orders=False,
            answers: Annotated[int, ranges.whole(2, 64)] = 4, held_out: ranges.Share = 0.25,
            template: _Text = None, reads: _Text = None, verifier="", patterns: _Patterns = (),
            invalid: ranges.Share = 0.0, supported=""):
  """Rows -> Prompts of one form; ids are hashes of the texts, so they do not depend on other rows.

  Args:
    question, completion, verdict: columns; question="" takes the first of `question`, `problem` and
      `prompt` that a row has.
    reference: column of the right answer, which a verdict then compares with; "": none.
    judgement: column of a judgement that ends with a line "Verdict: WORD", for supervised training;
      rows in which it does not state the label are dropped; "": none.
    critique: column of a critique of the completion, or of both of a pair, without a verdict: the
      target of form=critique, and what judging.similarity compares replies with; "": none. It may
      be empty where judging.known_similarity reads it.
    strength: column of `chosen` and `rejected` that says by how much, 1 to 3. A pair then has the
      label (s + 3) / 6 with s = 3, 2, 1 where A is better and -1, -2, -3 where B is; "": 1 or 0.
    separator: ends a step of a completion.
    labels: of steps, from `values`; see rlx/rewards/step_labels.py. relative also reads `start`.
    balanced: leaves out prompts of the more frequent labels (of `first_error`: some step or none).
    per_question: most prompts of a question, by a hash; 0: all.
    both_orders: asks each pair in both orders; False: a hash of the two texts decides.
    answers: most completions of form=scores, of which one is the best.
    held_out: share of the questions in the split test, where rows have no column `split`.
    template: of the request, with {question}, {answer}, for pairs {other}, for steps and several
      answers {items}, and {reference} and {nonce}; None: that of rlx/verifiers/_judge_forms.py.
    reads: how the verdict is read, as verifier.judge.reads; None: yes and no, A and B, a score of
      10.
    verifier: "": judging.verdict, or that of the form.
    patterns: of form=verdict, such as ("cut", "changed"): names of rlx/prompts/error_patterns.py. A
      completion has a copy for each that fits it, and prompts say in meta["pattern"] which theirs
      is, so that eval.difficulty=pattern shows which one a judge errs on.
    invalid: score of the verdict on copies that are no answers, such as that of a third word.
    supported: column that says whether documents support the completion, true or false, which
      judging.supported compares with a line of the reply; "": none.
  Raises:
    ValueError: a row lacks what the form needs, or no prompt can be made.
  """
  names = dict(question=question, completion=completion, verdict=verdict, reference=reference,
               judgement=judgement, critique=critique, strength=strength, separator=separator,
               labels=labels, reads=reads, supported=supported)
  if patterns and form != "verdict":
    raise ValueError(f"prompts.columns.patterns={patterns!r}: () with form={form!r}; they change "
                     "single completions, form='verdict'.")
  read = list(_read_rows(rows, split, form, names, held_out))
  if patterns: read = list(_add_patterns(read, patterns, invalid, reads or ""))
  made = list(_make(read, form, verifier, balanced=balanced, per_question=per_question,
                    both_orders=both_orders, answers=answers, template=template, reads=reads))
  n = sum(not isinstance(x, records.Dropped) for x in read)
  if n and all(isinstance(x, records.Dropped) and x.reason != _DROPPED for x in made):
    raise ValueError(f"prompts.columns.form={form!r}: no question of split {split!r} has two "
                     f"completions with different verdicts, of {n} completions.")
  yield from made


def ask_about(rows: Iterable[Mapping], form: str, **options) -> Iterator[
    records.Prompt | records.Dropped]:
  """As `prompts`, of rows with `question`, `completion` and `verdict` alone; there may be none.

  Args:
    options: balanced, per_question, both_orders, answers, template and reads of `prompts`.
  """
  names = dict(question="question", completion="completion", verdict="verdict",
               reference="", judgement="", critique="", strength="")
  read = _read_rows((dict(row, split="train") for row in rows), "train", form, names, 0.0)
  yield from _make(read, form, "", **options)


def _make(read, form, verifier, *, balanced, per_question, both_orders, answers, template, reads):
  """The Prompts of what `_read_rows` gives, after what is dropped."""
  shared = {key: x for key, x in dict(template=template, reads=reads).items() if x is not None}
  read = list(read)
  formed = list(_ask([x for x in read if not isinstance(x, records.Dropped)], form, both_orders,
                     answers))
  yield from (x for x in (*read, *formed) if isinstance(x, records.Dropped))
  asked = [x for x in formed if not isinstance(x, records.Dropped)]
  chosen = _take_few(asked, per_question)
  if balanced: chosen = _take_balanced([x for x in asked if x["id"] in chosen])
  path = verifier or _VERIFIERS.get(form, "judging.verdict")
  for x in asked:
    id_ = f"judging/{form}/{x['id']}"
    if x["id"] not in chosen:
      yield records.Dropped(id_, _DROPPED)
      continue
    judged = {key: value for key, value in x["judged"].items() if value is not None}
    judged |= dict(shared, form=form)
    plain = records.Prompt(id=id_, text=x["question"], answer=x["answer"], verifier=path,
                           meta=dict(judged=judged, label=x["answer"]) | (
                               dict(pattern=x["pattern"]) if "pattern" in x else {}))
    if form not in _OF_SIDES: yield plain
    else: yield from _split_sides(plain)


def demonstration(prompt, rng):
  """The target of supervised training: the judgement of the row, if it has one, and the verdict.

  Of other prompts it is the answer, so that a mixture learns to solve and to judge (GenRM).
  """
  del rng
  if (judged := prompt.meta.get("judged")) is None: return prompt.answer
  if judged["form"] == "critique":
    if "critique" in judged: return judged["critique"].strip()
    raise ValueError("prompts.columns.critique: the column with the critiques that "
                     "form='critique' learns, of which none may be empty.")
  nonce, reasons = judged.get("nonce"), ""
  if judged.get("judgement") is not None:
    reasons = "".join(judged["judgement"].strip().rpartition("\n")[:2])
    if nonce: reasons = re.sub(r"(?m)^Support: ", f"Support {nonce}: ", reasons)
  return f"{reasons}Verdict {nonce}: {prompt.answer}" if nonce else reasons + prompt.answer


def _read_rows(rows: Iterable[Mapping], split: str, form: str, names: Mapping[str, str],
               held_out: float) -> Iterator[dict[str, Any] | records.Dropped]:
  """What the rows of a split say, each completion of a question once, and none about which they
  contradict each other."""
  parts, verdicts = [], collections.defaultdict(set)
  said = "answer" if form in _OF_ONE else "verdict"
  for where, x in _read_parts(rows, split, form, names, held_out):
    parts.append((where, x))
    if not isinstance(x, str): verdicts[x["id"]].add(x[said])
  seen: set[str] = set()
  for where, x in parts:
    if isinstance(x, str): yield records.Dropped(where, x)
    elif len(verdicts[x["id"]]) > 1:
      yield records.Dropped(where, "with a verdict that another row contradicts")
    elif x["id"] in seen: yield records.Dropped(where, "repeated completions")
    else:
      seen.add(x["id"])
      yield x


def _read_parts(rows: Iterable[Mapping], split: str, form: str, names: Mapping[str, str],
                held_out: float) -> Iterator[tuple[str, dict[str, Any] | str]]:
  """(the row, a completion or a beginning of one, or why it is dropped) of the rows of a split."""
  for i, row in enumerate(rows):
    where = f"row {i}"
    row = _read_chats(row, where, names["question"])
    if isinstance(row, str):
      yield where, row
      continue
    text = _find_question(row, where, names["question"])
    if split != _find_split(row, text, split, held_out): continue
    for part in _split_pair(row, where, names["completion"], names["verdict"]):
      read = _read_row(part, where, form, names)
      for x in [read] if isinstance(read, str | dict) else read:
        yield where, x if isinstance(x, str) else dict(
            x, id=_hash(text, x["completion"]), question=text)


def _add_patterns(read: Sequence[dict | records.Dropped], patterns: Sequence[str], invalid: float,
                  reads: str) -> Iterator[dict | records.Dropped]:
  """Completions with their copies, each text of a question once."""
  seen = {x["id"] for x in read if isinstance(x, dict)}
  for x in read:
    if isinstance(x, records.Dropped):
      yield x
      continue
    yield dict(x, pattern="none")
    word = re.search(rf"(?i)(?<!\S){re.escape(x['answer'])}=(\S+)", reads)
    is_right = x.get("verdict", float(word[1]) if word else 0.0) > _SURE
    for name in patterns:
      made = error_patterns.write(name, x["completion"], is_right, x["judged"]["reference"])
      if made is None or (id_ := _hash(x["question"], made[0])) in seen: continue
      seen.add(id_)
      judged = dict(x["judged"], answer=made[0], judgement=None, critique=None,
                    supported=None) | (
          {} if made[1] == "kept" else dict(label=invalid if made[1] == "invalid" else 0.0))
      yield dict(x, id=id_, completion=made[0], judged=judged, pattern=name, answer=(
          x["answer"] if made[1] == "kept" else "no"))


def _read_chats(row, where, column):
  """A row whose `chosen` and `rejected` are chats with their last turns in their place, or why it
  is dropped; other rows as they are."""
  sides = [row.get(side) for side in ("chosen", "rejected")]
  if not any(map(columns_lib.is_list, sides)): return row
  asked = next((row[name] for name in (column, *_ASKED) if name in row), None)
  pair = scored_sets.split_pair(*sides, asked, where)
  return pair if isinstance(pair, str) else {**row, **pair} | (
      {column: pair["question"]} if column else {})


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
  """{"completion", "answer", "judged", "verdict"} of a completion, or of each beginning of it, or
  why it is dropped."""
  judged: dict[str, Any] = {
      key: _read_text(row, names[key], where, key) if names[key] else None
      for key in ("reference", "judgement", "critique")}
  if column := names.get("supported"):
    judged["supported"] = columns_lib.find(row, column, where, "prompts.columns.supported")
    if not isinstance(judged["supported"], bool):
      raise ValueError(f"{where}: column {column!r}: {judged['supported']!r:.60}; true or false.")
  if form in ("first_error", "step"): return _read_steps(row, where, form, names, judged)
  text = _read_text(row, names["completion"], where, "completion")
  given = columns_lib.find(row, names["verdict"], where, "prompts.columns.verdict")
  if form != "verdict" or names.get("reads") is None: given = columns_lib.read_number(given)
  if given is None: return "without a verdict"
  if isinstance(given, str) and form == "verdict":
    return dict(completion=text, answer=given, judged=dict(judged, answer=text))
  if given not in ranges.SHARE and not isinstance(given, bool):
    raise ValueError(f"{where}: column {names['verdict']!r}: {given!r:.60} is no verdict, a number "
                     "from 0 to 1, or null.")
  if form == "verdict" and given == _SURE: return "with a verdict of 1/2"
  is_right = given > _SURE
  strength = columns_lib.read_number(columns_lib.find(
      row, names["strength"], where, "prompts.columns.strength")) if names["strength"] else 3
  if strength not in (1, 2, 3):
    raise ValueError(f"{where}: column {names['strength']!r}: {strength!r:.60}; 1, 2 or 3.")
  return dict(completion=text, answer="yes" if is_right else "no", verdict=float(given),
              strength=strength, judged=dict(judged, answer=text, label=float(is_right)))


def _read_steps(row, where, form, names, judged):
  """As `_read_row`, of the forms about steps."""
  separator, steps = names["separator"], row.get("steps")
  if steps is None:
    steps = _read_text(row, names["completion"], where, "completion").split(separator)
    steps = steps[:-1] if steps[-1] == "" else steps
  if not isinstance(steps, list) or not steps or not all(isinstance(s, str) for s in steps):
    raise ValueError(f"{where}: {steps!r:.60} is no list of steps, which are texts.")
  error = _find_error(row, where, form, names, len(steps))
  if isinstance(error, str): return error
  if form == "first_error":
    return dict(completion=separator.join(steps), answer="none" if error == -1 else str(error + 1),
                judged=dict(judged, answer=separator.join(steps), steps=steps, label=float(error)))
  right = error if isinstance(error, list) else [True] * len(steps) if error == -1 else (
      [True] * error + [False])  # What follows an error has no label.
  beginnings = list(itertools.accumulate(steps, lambda a, z: f"{a}{separator}{z}"))
  return [dict(completion=text, answer="yes" if x else "no",
               judged=dict(judged, answer=text, label=float(x)))
          for text, x in zip(beginnings, right)]


def _find_error(row, where, form, names, n):
  """The index of the first wrong step, -1 without one; of form=step from `values` a list that says
  of each whether it is right; or why the row is dropped."""
  values, said = row.get("values"), f"prompts.columns.separator={names['separator']!r}"
  if "label" not in row and values is None:
    raise ValueError(f"{where} has {sorted(row)}; form={form!r} needs `label`, the index of the "
                     "first wrong step or -1, or `values`, one for each step.")
  if (label := columns_lib.read_number(row.get("label"))) is not None:
    if isinstance(label, bool) or label not in range(-1, n):
      raise ValueError(f"{where}: label={label!r}; -1 to {n - 1} are allowed, as it has {n} steps "
                       f"({said}).")
    return int(label)
  start = row.get("start") if names["labels"] == "relative" else 1.0
  if not values or None in values or start is None: return "without a label"
  if len(values) != n:
    raise ValueError(f"{where}: {len(values)} values for {n} steps, which {said} ends.")
  right_J = np.asarray(step_labels.from_values(
      np.float32([values]), np.ones((1, n), bool), np.float32([start]), kind=names["labels"]))[0]
  right = [bool(x) for x in right_J]
  return right if form == "step" else right.index(False) if False in right else -1


def _read_text(row, column, where, key):
  value = columns_lib.find(row, column, where, f"prompts.columns.{key}")
  if key == "critique" and value in (None, ""): return None  # Not all rows may have one.
  if not isinstance(value, str) or key != "completion" and not value.strip():
    raise ValueError(f"{where}: column {column!r}: {value!r:.60} is no text.")
  return value


def _ask(completions: list[dict], form: str, both_orders: bool,
         most: int) -> Iterator[dict | records.Dropped]:
  """What is asked of completions: {"id", "question", "answer", "judged", "kind" of the label}."""
  if form in _OF_ONE:
    for x in completions:
      yield dict(x, kind=x["answer"] == "none" if form == "first_error" else x["answer"])
    return
  groups: dict[str, list[dict]] = {}
  for x in completions: groups.setdefault(x["question"], []).append(x)
  for group in groups.values():
    group = sorted(group, key=lambda x: x["id"])
    if form == "scores": yield from _ask_best(group, most)
    else: yield from _ask_pairs(group, both_orders, is_once=form in _OF_SIDES)


def _ask_pairs(group: list[dict], both_orders: bool,
               is_once: bool) -> Iterator[dict | records.Dropped]:
  """The pairs of completions of a question; those of equal verdicts are ties.

  Args:
    is_once: each completion is in one pair.
  """
  taken: set[str] = set()
  for first, second in itertools.combinations(group, 2):
    # The order says nothing of the verdicts, and is the same in any order of the rows.
    id_ = _hash(first["id"], second["id"])
    if int(id_, 16) % 2: first, second = second, first
    if first["verdict"] == second["verdict"]:
      yield records.Dropped(f"judging/pair/{id_}", "ties")
    elif is_once and taken & {first["id"], second["id"]}:
      yield records.Dropped(f"judging/pair/{id_}", "pairs with a completion of another pair")
    else:
      taken |= {first["id"], second["id"]}
      for a, b, pair_id in ((first, second, id_), (second, first, f"{id_}-"))[:1 + both_orders]:
        sign = 1 if a["verdict"] > b["verdict"] else -1
        answer, strength = "A" if sign == 1 else "B", max(a["strength"], b["strength"])
        yield dict(id=pair_id, question=a["question"], answer=answer, kind=answer, judged=dict(
            a["judged"], other=b["completion"], other_critique=b["judged"]["critique"],
            label=(sign * strength + 3) / 6))


def _ask_best(group: list[dict], most: int) -> Iterator[dict | records.Dropped]:
  """The first of the best completions of a question among worse ones, `most` in all."""
  best = max(group, key=lambda x: x["verdict"])
  worse = [x for x in group if x["verdict"] < best["verdict"]][:most - 1]
  if not worse:
    yield records.Dropped(f"judging/scores/{best['id']}", "ties")
    return
  shown = sorted([best, *worse], key=lambda x: x["id"])
  answer = str(1 + shown.index(best))
  yield dict(id=_hash(*(x["id"] for x in shown)), question=best["question"], answer=answer,
             kind=answer, judged=dict(answers=[x["completion"] for x in shown],
                                      label=float(answer) - 1))


def _split_sides(pair: records.Prompt) -> Iterator[records.Prompt]:
  """The two prompts about the completions of a pair, with the id of the other in meta["pair"]."""
  judged = pair.meta["judged"]
  own = {k: x for k, x in judged.items() if k not in ("other", "critique", "other_critique")}
  shown = [{k: judged[name] for k, name in (("answer", a), ("critique", b)) if name in judged}
           for a, b in (("answer", "critique"), ("other", "other_critique"))]
  shown = shown if pair.answer == "A" else shown[::-1]
  for side, other, texts in (("better", "worse", shown[0]), ("worse", "better", shown[1])):
    yield records.Prompt(
        id=f"{pair.id}/{side}", text=pair.text, answer=side, verifier=pair.verifier,
        meta=dict(label=side, pair=f"{pair.id}/{other}", judged=own | texts))


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
  whole = "\0".join(texts).encode("utf-8", "surrogatepass")
  return hashlib.blake2b(whole, digest_size=8).hexdigest()
