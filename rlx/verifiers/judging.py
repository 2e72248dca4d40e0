"""Judging as a task of the policy: what it is asked, and whether its verdict is the label.

  verdict      is the answer right?                      yes | no, or other words
  pair         which of two answers is better?           A | B, or A3 ... B3 with its strength
  first_error  which step is the first wrong one?        none | 1 | 2 | ...
  step         is the last step right?                   yes | no
  scores       how good are several answers?             a score of each (`ranking`)
  score        how good is an answer?                    a score (`score`)
  critique     what is good and bad about an answer?     none: a text (`gold`)

The data set `judging` (rlx/prompts/datasets/judging.py) makes the prompts, whose meta["judged"] has
the judged texts; `ask` writes the requests. Requests, nonces and the reading of replies are those
of judges (judge.py), so a policy that has learned this can be asked as one. What is judged is an
untrusted text, and so is the reply: a verdict counts only if the last line of the reply states it
with the nonce of the request, or without a nonce if the reply behind its thoughts is nothing else.
"""
import collections
import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rlx.verifiers import _replies, errors, judge, thoughts

if TYPE_CHECKING: from rlx.core import records

# {form: how its verdict is read; None: by the number of steps}
_READS = dict(verdict="yes_no", step="yes_no", pair="A=1 B=0 tie=0.5", first_error=None,
              scores=r"(?i)verdict {nonce} {item}: (\d{1,2})",
              score=r"(?i)verdict {nonce}: (\d{1,2})", critique="better=1 worse=0")
_FULL = dict(scores=10.0, score=10.0)  # The number that means 1.
_CLOSE = 5e-3     # A word has few digits of the score that it stands for.
_SLOTS = dict(pair=("answer", "other"), first_error=("items", "answer"), scores=("items", "nonce"))


def ask(rows: "Iterable[records.Prompt | records.Dropped]"
        ) -> "Iterator[records.Prompt | records.Dropped]":
  """The prompts with the requests of those that judge; others stay as they are.

  Raises:
    ValueError: a template without a slot that it needs, a format that cannot be read, or a label
      that no word of it stands for; one line.
  """
  for p in rows: yield _ask(p) if "judged" in getattr(p, "meta", ()) else p


def verdict(prompt: "records.Prompt", text: str) -> float:
  """1.0 if the verdict that a reply states is the label, else 0.0; without a verdict it is 0.0.

  Source: the reward of RL on verdicts of generative verifiers, such as RM-R1 (Chen et al. 2025,
  arXiv:2505.02387) and RRM (Guo et al. 2025, arXiv:2505.14674). Differs from the papers: theirs is
  1 or -1, which is the same after a baseline of the group; `coef` and `outcome.reward` scale it.

  Example:
    >>> import types
    >>> prompt = types.SimpleNamespace(answer="no", meta={"judged": {"form": "verdict"}})
    >>> judging.verdict(prompt, "Verdict: no."), judging.verdict(prompt, "yes")
    (1.0, 0.0)
  """
  return float(find_stated(prompt, text) == prompt.answer.lower())


def side(prompt: "records.Prompt", text: str) -> float:
  """1.0 if the verdict prefers the answer of a pair that the label does, by whatever strength.

  Source: Think-RM (Hong et al. 2025, arXiv:2505.16265). Differs from the paper: its reward of a
  strength that is not the label is not known to us; here it is 1 on the same side, and `verdict`
  pays the same strength alone.
  """
  words = _replies.words_of(_read_judged(prompt)[1]) or {}
  if (stated := find_stated(prompt, text)) is None: return 0.0
  return float((words[stated] - 0.5) * (words[prompt.answer.lower()] - 0.5) > 0)


def ranking(prompt: "records.Prompt", text: str) -> float:
  """1.0 if the best answer alone has the highest of the scores that a reply states.

    1[S_best > S_j for all j != best]

  Source: the rule of Self-Principled Critique Tuning, Liu et al. 2025, arXiv:2504.02495. Differs
  from the paper: its reward is 1 or -1; a reply that leaves an answer out has none.
  """
  return verdict(prompt, text)


def score(prompt: "records.Prompt", text: str) -> float:
  """The score in [0, 1] that a reply states; 0.0 if it states none, or 0."""
  return (find_scores(prompt, text) or [0.0])[0]


def gold(prompt: "records.Prompt", text: str) -> float:
  """1.0 if the judged answer is the better one of its pair, else 0.0, whatever a reply says of it.

  It is the label of a critique, from which a head learns to score an answer (form=critique).

  Source: Critique-out-Loud reward models, Ankner et al. 2024, arXiv:2408.11791. Differs from the
  paper: nothing known. It teaches a policy nothing: all replies to a prompt have the same verdict.
  """
  del text
  return float(prompt.meta["label"] == "better")


def similarity(prompt: "records.Prompt", text: str) -> float:
  r"""How similar a reply is to the critique of a human, as the F1 of their words.

    F1 = 2 n / (|a| + |b|)      n the words that a and b share, as often as in both

  a are the words of the reply behind its thoughts, without the line of the verdict, b those of
  `meta["judged"]["critique"]`, of a pair of both critiques. Words are of letters and digits, in any
  case.

  Source: the process reward of RM-NLHF, Wang et al. 2026, arXiv:2601.07349. Differs from the paper:
  there a language model lists the arguments of both critiques, of which the F1 is taken. Words that
  all critiques have, such as "answer", count here, so that it is a second reward beside the
  verdict.

  Example:
    >>> import types
    >>> judged = dict(form="verdict", nonce="5e0c", critique="It is off by one.")
    >>> prompt = types.SimpleNamespace(meta={"judged": judged})
    >>> judging.similarity(prompt, "Off by one.\nVerdict 5e0c: no")
    0.75
  """
  if not (given := _read_critiques(prompt)):
    raise errors.Unknown("meta['judged'] has no critique; prompts.columns.critique names its "
                         "column")
  reply = _read_reply(prompt, text).content
  reasons = reply.rpartition("\n")[0] if find_stated(prompt, text) is not None else reply
  ours, theirs = (collections.Counter(re.findall(r"\w+", x.lower())) for x in (reasons, given))
  return 2 * (ours & theirs).total() / max(ours.total() + theirs.total(), 1)


def is_critiqued(prompt: "records.Prompt", text: str) -> float:
  """1.0 if the row has the critique of a human, with which `similarity` compares, else 0.0."""
  del text
  return float(bool(_read_critiques(prompt)))


def known_similarity(prompt: "records.Prompt", text: str) -> float:
  """`similarity`, and 0.0 where the row has no critique; `is_critiqued` says where."""
  return similarity(prompt, text) if _read_critiques(prompt) else 0.0


def supported(prompt: "records.Prompt", text: str) -> float:
  r"""1.0 if a reply says rightly, on a line of its own, whether documents support the answer.

    Support NONCE: yes, or Support NONCE: no; no such line, or both, is 0.0

  Source: the labels of faithfulness of the Thinking-supervised Reward Model, 2025,
  arXiv:2509.25409. Differs from the paper: its reward is not known to us.

  Example:
    >>> import types
    >>> judged = dict(form="verdict", nonce="5e0c", supported=False)
    >>> prompt = types.SimpleNamespace(meta={"judged": judged})
    >>> judging.supported(prompt, "Support 5e0c: no\nIt is true all the same.\nVerdict 5e0c: yes")
    1.0
  """
  judged, _ = _read_judged(prompt)
  if judged.get("supported") is None:
    raise errors.Unknown("meta['judged'] has no `supported`; prompts.columns.supported names its "
                         "column")
  nonce = judged.get("nonce")
  said = re.findall(rf"(?im)^\W*support{f' {nonce}' if nonce else ''}: (yes|no)\W*$",
                    _read_reply(prompt, text).content)
  return float({x.lower() for x in said} == {"yes" if judged["supported"] else "no"})


def find_scores(prompt: "records.Prompt", reply: str) -> list[float]:
  """The scores in [0, 1] of the answers of a prompt; [] if one is not stated, or stated twice."""
  judged, reads = _read_judged(prompt)
  numbers = range(1, len(judged["answers"]) + 1) if judged["form"] == "scores" else None
  try:
    scores = _replies.parse(_read_reply(prompt, reply), reads, _FULL[judged["form"]], numbers)
  except errors.Unknown:
    return []
  return [] if any(x != x for x in scores) else scores


def find_stated(prompt: "records.Prompt", reply: str) -> str | None:
  r"""The verdict that a reply states, in lower case; None if it states none, or several.

  Example:
    >>> import types
    >>> meta = {"judged": {"form": "pair", "nonce": "5e0c"}}
    >>> prompt = types.SimpleNamespace(answer="A", meta=meta)
    >>> judging.find_stated(prompt, "The second one is off by one.\nVerdict 5e0c: A")
    'a'
    >>> judging.find_stated(prompt, "Verdict: A") is None
    True
  """
  judged, reads = _read_judged(prompt)
  if judged["form"] == "critique": return None
  if judged["form"] == "scores":
    scores = find_scores(prompt, reply)
    best = [i for i, x in enumerate(scores) if x == max(scores)]
    return str(1 + best[0]) if len(best) == 1 else None
  try:
    value, = _replies.parse(_read_reply(prompt, reply), reads, _FULL.get(judged["form"], 1.0))
  except errors.Unknown:
    return None
  return _name(value, reads)


def find_sides(prompt: "records.Prompt") -> tuple[str, str] | None:
  """The words of the highest and the lowest score, such as (yes, no); None where the verdict is a
  number, or the number of a step."""
  judged, reads = _read_judged(prompt)
  words = _replies.words_of(reads)
  if words is None or _READS[judged["form"]] is None: return None
  return max(words, key=words.__getitem__), min(words, key=words.__getitem__)


def write_sides(prompt: "records.Prompt") -> list[str]:
  """The words of `find_sides` as a reply writes them."""
  sides = find_sides(prompt)
  assert sides, prompt.id
  return [_write(prompt.meta["judged"]["form"], word) for word in sides]


def start_verdict(prompt: "records.Prompt") -> str:
  """The text of a reply between its reasons and the word of the verdict."""
  nonce = _read_judged(prompt)[0].get("nonce")
  return f"Verdict {nonce}: " if nonce else ""


def find_head(prompt: "records.Prompt", reply: str) -> str | None:
  """What stands before the word of the verdict in a reply; None if it states no verdict.

  Example:
    >>> import types
    >>> prompt = types.SimpleNamespace(answer="no", meta={"judged": {"form": "verdict"}})
    >>> judging.find_head(prompt, "Verdict: **no**.")
    'Verdict: **'
  """
  if (word := find_stated(prompt, reply)) is None: return None
  *_, last = re.finditer(rf"(?ai){re.escape(word)}", reply)
  return reply[:last.start()]


def inspect(prompts: "Sequence[records.Prompt]", unsafe: bool = False) -> list[tuple]:
  """[(why a verdict cannot be compared, or None; None)] of prompts."""
  del unsafe
  def why(prompt):
    try:
      _read_judged(prompt)
    except errors.Unknown as e:
      return str(e)
    return None
  return [(why(p), None) for p in prompts]


for _fn in (verdict, side, ranking, score, gold, similarity, is_critiqued, known_similarity,
            supported):
  vars(_fn).update(is_bounded=True, inspect=inspect)
for _fn in (verdict, side):
  vars(_fn)["state"] = lambda prompt: start_verdict(prompt) + prompt.answer


def _read_judged(prompt) -> tuple[Mapping[str, Any], Any]:
  """(meta["judged"], the format of its verdict: a text, or {word: score})."""
  judged = prompt.meta.get("judged")
  if not isinstance(judged, Mapping) or judged.get("form") not in _READS:
    raise errors.Unknown("meta['judged'] is missing; prompts.source=judging:FILE makes it")
  if _READS[judged["form"]] is None:
    return judged, dict(none=-1.0) | {str(n): n - 1.0 for n in range(1, len(judged["steps"]) + 1)}
  return judged, judged.get("reads") or _READS[judged["form"]]


def _read_critiques(prompt) -> str:
  """The critiques of a human, "" without one."""
  judged, _ = _read_judged(prompt)
  critiques = dict.fromkeys(judged.get(key) for key in ("critique", "other_critique"))
  return " ".join(x for x in critiques if x)


def _read_reply(prompt, text):
  return _replies.Reply(thoughts.behind(text, prompt), prompt.meta["judged"].get("nonce"))


def _name(value, reads):
  """The class of a score: its first word, or the number."""
  words = _replies.words_of(reads)
  return f"{value:g}" if words is None else next(w for w, x in words.items() if x == value)


def _ask(prompt):
  judged, reads = _read_judged(prompt)
  form, more = judged["form"], {k: judged.get(k, "") for k in ("answer", "other", "reference")}
  template = judged.get("template") or judge.TASKS[
      form + " by a reference" * (form == "verdict" and bool(more["reference"]))]
  slots = _SLOTS.get(form, ("answer",))
  if not (any if form == "first_error" else all)(f"{{{x}}}" in template for x in slots):
    raise ValueError(f"prompts.columns.template={template!r:.80}: a text with "
                     f"{' and '.join(f'{{{x}}}' for x in slots)}, which form={form!r} needs.")
  if not _is_format(reads, form):
    raise ValueError(f"prompts.columns.reads={judged.get('reads')!r:.60}: words with scores such "
                     "as 'yes=1 no=0', or a regular expression with one group, a number; with "
                     "{item} for form='scores' and only there.")
  if (problem := _find_unasked(judged)) is not None:
    raise ValueError(f"prompts.columns.reads={judged['reads']!r:.60}: {problem}.")
  answer = _choose_word(judged, reads, prompt.answer)
  listed, nonce = judged.get("steps") or judged.get("answers", ()), None
  if "{nonce}" in template:
    nonce = _replies.new_nonce(dataclasses.replace(prompt, answer=more["reference"]),
                               more["answer"], more=(more["other"], *listed))
  what = "step" if form == "first_error" else "answer"
  more["items"] = "\n".join(f"[{what} {n} {nonce}]\n{text}" if nonce else f"{n}. {text}"
                            for n, text in enumerate(listed, 1))
  text = _replies.render(template, dict(more, question=prompt.text, nonce=nonce or ""))
  made = dataclasses.replace(prompt, text=text, answer=answer, meta=prompt.meta | dict(
      label=answer, judged=dict(judged, question=prompt.text) | (
          dict(nonce=nonce) if nonce else {})))
  if (judgement := judged.get("judgement")) is None: return made
  # It was written without this nonce.
  plain = dataclasses.replace(prompt, answer=answer)
  if verdict(plain, judgement.strip().rpartition("\n")[2]) == 1.0: return made
  from rlx.core import records  # Worker processes do not import jax.
  return records.Dropped(prompt.id, "with a judgement that does not state the verdict")


def _is_format(reads, form):
  """Whether the format of a verdict can be read."""
  if _replies.words_of(reads) is not None: return form not in _FULL
  try:
    return re.compile(reads).groups == 1 and ("{item}" in reads) == (form == "scores")
  except re.error:
    return False


def _find_unasked(judged):
  """Why no reply would state a verdict in the format that a config names; None: one may."""
  form, default = judged["form"], _READS[judged["form"]]
  if judged.get("reads") is None: return None
  if default is None: return f"None with form={form!r}, whose verdict is the number of a step"
  if form == "critique": return f"None with form={form!r}, which states no verdict"
  if judged.get("template") or judged["reads"] == default: return None
  own, asked = (_replies.words_of(x) for x in (judged["reads"], default))
  if own is not None and asked is not None and own.keys() <= asked.keys(): return None
  said = "a score from 1 to 10" if asked is None else " or ".join(_replies.spell_words(default))
  return (f"the request of form={form!r} asks for {said}; with other words or formats, a "
          "prompts.columns.template that asks for them")


def _choose_word(judged, reads, given):
  """The word of the format that stands for the label of a row."""
  words, key = _replies.words_of(reads), f"prompts.columns.reads={judged.get('reads')!r:.60}"
  if judged["form"] in (*_FULL, "critique"): return given
  if "label" not in judged:
    if words is not None and given.lower() not in words:
      raise ValueError(f"{key}: no word for the verdict {given!r:.60} of a row; it has "
                       f"{list(words)}.")
    return given if words is None else _name(words[given.lower()], reads)
  if words is None: return f"{judged['label']:g}"
  chosen = next((w for w, x in words.items() if abs(x - judged["label"]) < _CLOSE), None)
  if chosen is None:
    raise ValueError(f"{key}: no word whose score is {judged['label']:.3g}, which is a label.")
  return _write(judged["form"], chosen)


def _write(form, word):
  """A word as the templates have it: A and B."""
  return word.upper() if form == "pair" and word[0] in "ab" and len(word) < 3 else word
