"""Published sets of scored completions, for `train_scorer.rollouts=NAME` or `NAME:SOURCE`.

A reader turns a row of the published shape into rows of rlx/loops/stored_rows.py, or says why it
cannot be used. SOURCE is a file, or hf:OWNER/NAME:CONFIG:SPLIT, with rows of that shape; without it
the set comes from the hub. NAME/ASPECT reads the ratings of another aspect.
"""
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
import difflib
import functools
import re
from typing import Any

from rlx.core import ranges
from rlx.prompts import columns

Read = list[dict[str, Any]] | str  # Rows, or why there are none.
Reader = Callable[[Mapping[str, Any], str, str | None], Read]

# Where a set is, with its training split.
SETS = {
    "preferences": None,  # The shape alone: any pairs `chosen` and `rejected`.
    "policies": None,  # Likewise: completions of several policies, by their names.
    "edits": None,  # Likewise: pairs of which `chosen` is an edit of `rejected`.
    "critiques": None,  # What a run stores of prompts.columns.form=critique.
    "hh_rlhf": "hf:Anthropic/hh-rlhf::train",
    "ultrafeedback_binarized": "hf:HuggingFaceH4/ultrafeedback_binarized::train_prefs",
    "ultrafeedback": "hf:openbmb/UltraFeedback::train",
    "helpsteer": "hf:nvidia/HelpSteer::train",
    "helpsteer2": "hf:nvidia/HelpSteer2::train",
    "helpsteer2_preference": "hf:nvidia/HelpSteer2:preference:train",
    "math_shepherd": "hf:peiyi9979/Math-Shepherd::train",
    "prm800k": None,  # Published as files.
    "processbench": None}  # Four splits, such as hf:Qwen/ProcessBench::math, meant to evaluate.
OF_STEPS = ("math_shepherd", "prm800k", "processbench")


def split_name(path: str, among: Iterable[str] = SETS) -> tuple[str, str, str | None] | None:
  """(set, aspect, source) of a value of train_scorer.rollouts; None: it is a file of rlx's own.

    >>> split_name("helpsteer2/correctness:rows.jsonl"), split_name("rollouts.jsonl")
    (('helpsteer2', 'correctness', 'rows.jsonl'), None)
  """
  first, _, source = path.partition(":")
  name, _, aspect = first.partition("/")
  name = name.lower().replace("-", "_")
  return (name, aspect, source or SETS[name]) if name in among else None


def read(path: str, load: Callable[[str], Iterable[Mapping]], separator: str | None,
         key: str) -> Iterator[tuple[str, Read]]:
  """(where it stands, what is made of it) for each row of a set.

  Args:
    path: as of `split_name`.
    load: source -> its rows.
    separator: rollouts.step_separator, which joins the steps of sets that have some.
    key: what messages call the path.
  Raises:
    ValueError: there is no such source, aspect or column, or a row has another shape; one line.
  """
  name, aspect, source = split_name(path) or ("", "", None)
  if source is None:
    raise ValueError(f"{key}={path!r}: {name}:FILE, with the file of the set.")
  if name in OF_STEPS and not separator:
    raise ValueError(f"rollouts.step_separator={separator!r}: a text with {key}={path!r}, whose "
                     "steps it joins.")
  reader = globals()[f"_read_{name}"]
  if aspect and name not in ASPECTS or aspect and aspect not in ASPECTS[name]:
    raise ValueError(f"{key}={path!r}: aspects are {ASPECTS.get(name, ())}.")
  if name in ASPECTS: reader = functools.partial(reader, aspect=aspect or ASPECTS[name][0])
  if name in OF_STEPS: reader = functools.partial(reader, separator=separator)
  for i, row in enumerate(load(source)):
    where = f"{path}: row {i}"
    try:
      made = reader(row, where)
    except (AttributeError, IndexError, KeyError, TypeError) as e:
      raise ValueError(f"{where} is no row of {name} as it is published: {type(e).__name__}, "
                       f"{e!s:.100}.") from None
    if isinstance(made, list) and any(columns.is_missing(x.get("question", "?")) for x in made):
      made = "without a question"
    yield where, made


def split_pair(chosen: Any, rejected: Any, prompt: Any, where: str) -> dict[str, Any] | str:
  """A row with `question`, `chosen` and `rejected` of a pair whose sides are texts or messages.

    >>> split_pair([{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "4"}],
    ...            [{"role": "user", "content": "2+2?"}, {"role": "assistant", "content": "5"}],
    ...            None, "row 0")["chosen"]
    '4'

  Args:
    prompt: a text or messages; None: both sides begin with it.
  Returns:
    the row, or why there is none.
  """
  sides, asked = [], []
  for x in (chosen, rejected):
    if columns.is_missing(x): return "without two completions"
    if isinstance(x, str):
      sides.append(x)
      continue
    messages = columns.read_messages(x, where)
    if messages[-1]["role"] != "assistant": return "without a reply at the end"
    sides.append(messages[-1]["content"])
    asked.append(messages[:-1])
  if asked and prompt is None:
    if len(asked) < 2 or asked[0] != asked[1]: return "with two different questions"
    prompt = asked[0]
  elif before := [x for x in asked if x]:  # They have it too.
    if not isinstance(prompt, str): before.append(columns.read_messages(prompt, where))
    if before[1:] != before[:-1]: return "with two different questions"
    prompt = before[0]
  if columns.is_missing(prompt): return "without a question"
  if sides[0] == sides[1]: return "with two equal completions"
  return dict(question=prompt, chosen=sides[0], rejected=sides[1])


def _read_preferences(row, where):
  """{"prompt"?, "chosen", "rejected", "margin"?}: texts or messages, as TRL has them."""
  made = split_pair(row.get("chosen"), row.get("rejected"), row.get("prompt", row.get("question")),
                    where)
  if isinstance(made, str): return made
  return [made | {key: row[key] for key in ("margin",) if row.get(key) is not None}]


def _read_policies(row, where):
  """Dou et al. 2025, arXiv:2507.05197: a completion of a policy is the reference, of which another
  of the same policy is closer than one of another policy. Differs from the paper: each completion
  after the first of a policy is compared once with each other policy."""
  question = row.get("prompt", row.get("question"))
  if columns.is_missing(question): return "without a question"
  by_name = columns.find(row, "completions", where)
  if len(by_name) < 2: return "with completions of one policy"
  rows = []
  for name, (first, *others) in by_name.items():
    for other, texts in by_name.items():
      for i, same in enumerate(others if other != name else ()):
        if same == texts[i % len(texts)]: continue  # Nothing tells them apart.
        rows.append(dict(question=question, reference=first, chosen=same,
                         rejected=texts[i % len(texts)], group=f"{where}, {name} {i} {other}"))
  return rows or "without two completions of a policy"


def _read_edits(row, where):
  """Xu et al. 2024, arXiv:2406.02756 (from memory, unverified): parts that an edit took away have
  the label 0, parts that it added 1, and the others 1/2."""
  made = split_pair(row.get("chosen"), row.get("rejected"), row.get("prompt", row.get("question")),
                    where)
  if isinstance(made, str): return made
  chosen, rejected = (re.findall(r"\s+|\w+|[^\w\s]", made.pop(side))
                      for side in ("chosen", "rejected"))
  blocks = difflib.SequenceMatcher(None, rejected, chosen, autojunk=False).get_opcodes()
  def label(words, changed, at):
    spans, end = [], 0
    for kind, *places in blocks:
      start, end = end, end + len("".join(words[slice(*places[2 * at:2 * at + 2])]))
      if end > start: spans.append([start, end, 0.5 if kind == "equal" else changed])
    return dict(made, completion="".join(words), spans=spans)
  return [label(chosen, 1.0, 1) | dict(verdict=1.0), label(rejected, 0.0, 0) | dict(verdict=0.0)]


def _read_critiques(row, where):
  """A critique that `rlx train_scorer` sampled for a prompt of prompts/datasets/judging.py: with
  those of the other answer of its pair in a group, a head learns which answer is better."""
  pair, _, side = columns.find(row, "group", where).rpartition("/")
  if not pair or side not in ("better", "worse"): return "that are about no answer of a pair"
  own = {key: row[key] for key in ("prompt", "completion", "finish", "sampled") if key in row}
  return [own | dict(group=pair, verdict=float(side == "better"))]


def _read_hh_rlhf(row, where):
  """Bai et al. 2022, arXiv:2204.05862: two dialogues as text that differ in the last reply."""
  sides = []
  for side in ("chosen", "rejected"):
    parts = re.split(r"\n\n(Human|Assistant):", columns.find(row, side, where))
    if parts[0].strip() or len(parts) < 5: return "with a dialogue of another form"
    sides.append([dict(role={"Human": "user"}.get(who, "assistant"), content=text.strip())
                  for who, text in zip(parts[1::2], parts[2::2])])
  return _read_preferences(dict(chosen=sides[0], rejected=sides[1]), where)


def _read_ultrafeedback_binarized(row, where):
  """Tunstall et al. 2023, arXiv:2310.16944: the best of four and another one, with their scores."""
  made = split_pair(row.get("chosen"), row.get("rejected"), None, where)
  gap = (columns.find(row, "score_chosen", where) or 0) - (
      columns.find(row, "score_rejected", where) or 0)
  if not isinstance(made, str) and gap <= 0: return "without a preference"
  return made if isinstance(made, str) else [made | dict(margin=gap)]


ASPECTS = dict(
    ultrafeedback=("overall_score", "helpfulness", "honesty", "instruction_following",
                   "truthfulness"),
    helpsteer=(_OF_HELPSTEER := ("helpfulness", "correctness", "coherence", "complexity",
                                 "verbosity")),
    helpsteer2=_OF_HELPSTEER)


def _read_ultrafeedback(row, where, *, aspect):
  """Cui et al. 2023, arXiv:2310.01377: four completions, rated 1 to 10 or, by aspect, 1 to 5."""
  texts, verdicts = [], []
  for x in columns.find(row, "completions", where) or ():
    rating, top = x.get("overall_score"), 10
    if aspect != "overall_score":
      rating, top = (x.get("annotations") or {}).get(aspect, {}).get("Rating"), 5
    try:
      share = (float(rating) - 1) / (top - 1)
    except (TypeError, ValueError):  # N/A
      continue
    if share not in ranges.SHARE or columns.is_missing(x.get("response")): continue
    texts.append(x["response"])
    verdicts.append(share)
  if len(texts) < 2: return "with fewer than two rated completions"
  return [dict(question=columns.find(row, "instruction", where), completions=texts,
               verdicts=verdicts)]


def _read_helpsteer(row, where, *, aspect):
  """Wang et al. 2023, arXiv:2311.09528: a completion rated 0 to 4."""
  rating = columns.find(row, aspect, where)
  if columns.is_missing(row.get("response")): return "without a completion"
  if isinstance(rating, bool) or rating not in range(5): return "without a rating from 0 to 4"
  question = _turns(columns.find(row, "prompt", where))
  return [dict(question=question, completion=row["response"], verdict=rating / 4)]


_read_helpsteer2 = _read_helpsteer  # Wang et al. 2024, arXiv:2406.08673: the same columns.


def _read_helpsteer2_preference(row, where):
  """Wang et al. 2024, arXiv:2410.01257: -3 to -1, the first is better; 1 to 3, the second."""
  strength = columns.find(row, "preference_strength", where)
  if strength == 0: return "without a preference"
  if strength not in (-3, -2, -1, 1, 2, 3): return "without a strength from -3 to 3"
  first, second = (columns.find(row, f"response_{i}", where) for i in (1, 2))
  better, worse = (second, first) if strength > 0 else (first, second)
  made = split_pair(better, worse, _turns(columns.find(row, "prompt", where)), where)
  return made if isinstance(made, str) else [made | dict(margin=abs(strength))]


def _turns(prompt: str | None) -> str | Sequence[dict] | None:
  """Turns after the first are marked by <extra_id_1>User and <extra_id_1>Assistant."""
  if prompt is None: return None
  first, *rest = re.split(r"\s*<extra_id_1>(User|Assistant)\n", prompt)
  if not rest: return prompt
  return [dict(role="user", content=first), *(
      dict(role=who.lower(), content=text) for who, text in zip(rest[::2], rest[1::2]))]


def _read_math_shepherd(row, where, *, separator):
  """Wang et al. 2023, arXiv:2312.08935: "ки" ends a step of `input`, + or - of `label`."""
  text, labelled = (columns.find(row, key, where) for key in ("input", "label"))
  parts, signs, at = text.split("ки"), [], 0
  if parts[-1].strip(): return "with a step without a label"
  for part in parts[:-1]:
    at += len(part)
    if labelled[at - len(part):at] != part or labelled[at:at + 1] not in ("+", "-"):
      return "with labels of other steps"
    signs.append(labelled[at])
    at += 1
  question, _, first = parts[0].partition("Step 1:")
  if not first: return "without steps"
  steps = [("Step 1:" + first).strip(), *(part.strip() for part in parts[1:-1])]
  return _join(question.strip(), steps, [float(sign == "+") for sign in signs], separator)


def _read_prm800k(row, where, *, separator):
  """Lightman et al. 2023, arXiv:2305.20050: the chosen texts, rated -1 to 1, up to the first -1."""
  label, steps, values = columns.find(row, "label", where), [], []
  if label.get("finish_reason") not in ("solution", "found_error"): return "that were given up"
  for step in label["steps"]:
    rated = step.get("completions") or []
    chosen = step.get("chosen_completion")
    wrong = next((x for x in rated if x.get("rating") == -1), None)
    x = (rated[chosen] if chosen is not None else
         dict(step["human_completion"], rating=1) if step.get("human_completion") else wrong)
    if x is None or x.get("rating") is None: return "with a step without a rating"
    if isinstance(x["rating"], bool) or x["rating"] not in (-1, 0, 1):
      return "with a rating that is not -1, 0 or 1"
    steps.append(x["text"].strip())
    values.append(float(x["rating"] >= 0))  # 0 is neutral, which the paper counts as right.
    if not values[-1]: break
  return _join(columns.find(row, "question.problem", where), steps, values, separator)


def _read_processbench(row, where, *, separator):
  """Zheng et al. 2024, arXiv:2412.06559: steps, and the index of the first wrong one or -1."""
  steps, label = (columns.find(row, key, where) for key in ("steps", "label"))
  if not columns.is_list(steps) or not all(isinstance(x, str) for x in steps):
    return "without a list of texts as steps"
  if isinstance(label, bool) or label not in range(-1, len(steps)):
    return "with a label that is no index of a step, and not -1"
  values = [float(label < 0 or j < label) for j in range(len(steps))]
  return _join(columns.find(row, "problem", where), [x.strip() for x in steps], values, separator)


def _join(question: str, steps: Sequence[str], values: list[float], separator: str) -> Read:
  """The row of a solution whose steps have values; its verdict is that of the last one."""
  if not steps or not all(steps): return "with an empty step"
  if any(separator in step for step in steps): return f"with {separator!r} inside of a step"
  error = next((j for j, value in enumerate(values) if value == 0), -1)
  return [dict(question=question, completion=separator.join(steps), values=values, label=error,
               verdict=values[-1])]
