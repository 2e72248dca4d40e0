"""Judging as a task of the policy: what it is asked, and whether its verdict is the label.

  verdict      is the answer right?                      yes | no, or other words
  pair         which of two answers is better?           A | B
  first_error  which step is the first wrong one?        none | 1 | 2 | ...

The data set `judging` (rlx/prompts/datasets/judging.py) makes the prompts, whose meta["judged"] has
the judged texts; `ask` writes the requests. Requests, nonces and the reading of replies are those
of judges (judge.py), so a policy that has learned this can be asked as one. What is judged is an
untrusted text, and so is the reply: a verdict counts only if the last line of the reply states it
with the nonce of the request, or without a nonce if the reply behind its thoughts is nothing else.
"""
import dataclasses
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rlx.verifiers import _replies, errors, judge, thoughts

if TYPE_CHECKING: from rlx.core import records

_WORDS = dict(verdict="yes_no", pair="A=1 B=0 tie=0.5")


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


def find_stated(prompt: "records.Prompt", text: str) -> str | None:
  """The verdict that a reply states, in lower case; None if it states none, or several.

  Example:
    >>> import types
    >>> meta = {"judged": {"form": "pair", "nonce": "5e0c"}}
    >>> prompt = types.SimpleNamespace(answer="A", meta=meta)
    >>> judging.find_stated(prompt, "The second one is off by one.\\nVerdict 5e0c: A")
    'a'
    >>> judging.find_stated(prompt, "Verdict: A") is None
    True
  """
  judged, reads = _read_judged(prompt)
  reply = _replies.Reply(thoughts.behind(text, prompt), judged.get("nonce"))
  try:
    score, = _replies.parse(reply, reads)
  except errors.Unknown:
    return None
  return _name(score, reads)


def find_sides(prompt: "records.Prompt") -> tuple[str, str] | None:
  """The words of the highest and the lowest score, such as (yes, no); None where the verdict is a
  number, or the number of a step."""
  judged, reads = _read_judged(prompt)
  words = _replies.words_of(reads)
  if words is None or judged["form"] == "first_error": return None
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


def find_head(prompt: "records.Prompt", text: str) -> str | None:
  """What stands before the word of the verdict in a reply; None if it states no verdict.

  Example:
    >>> import types
    >>> prompt = types.SimpleNamespace(answer="no", meta={"judged": {"form": "verdict"}})
    >>> judging.find_head(prompt, "Verdict: **no**.")
    'Verdict: **'
  """
  if (word := find_stated(prompt, text)) is None: return None
  *_, last = re.finditer(rf"(?ai){re.escape(word)}", text)
  return text[:last.start()]


def inspect(prompts: "Sequence[records.Prompt]", unsafe: bool = False) -> list[tuple]:
  """[(why a verdict cannot be compared, or None; None)] of prompts."""
  del unsafe
  def why(prompt):
    try:
      return _read_judged(prompt) and None
    except errors.Unknown as e:
      return str(e)
  return [(why(p), None) for p in prompts]


vars(verdict).update(is_bounded=True, inspect=inspect,
                     state=lambda prompt: start_verdict(prompt) + prompt.answer)


def _read_judged(prompt) -> tuple[Mapping[str, Any], Any]:
  """(meta["judged"], the format of its verdict: a text, or {word: score})."""
  judged = prompt.meta.get("judged")
  if not isinstance(judged, Mapping) or judged.get("form") not in (*_WORDS, "first_error"):
    raise errors.Unknown("meta['judged'] is missing; prompts.source=judging:FILE makes it")
  if judged["form"] == "first_error":
    return judged, dict(none=-1.0) | {str(n): n - 1.0 for n in range(1, len(judged["steps"]) + 1)}
  return judged, judged.get("reads") or _WORDS[judged["form"]]


def _name(score, reads):
  """The class of a score: its first word, or the number."""
  words = _replies.words_of(reads)
  return f"{score:g}" if words is None else next(w for w, x in words.items() if x == score)


def _ask(prompt):
  judged, reads = _read_judged(prompt)
  form, more = judged["form"], {k: judged.get(k, "") for k in ("answer", "other", "reference")}
  template = judged.get("template") or judge.TASKS[
      form + " by a reference" * (form == "verdict" and bool(more["reference"]))]
  needed = dict(pair=("answer", "other"), first_error=("items",)).get(form, ("answer",))
  if missing := [x for x in needed if f"{{{x}}}" not in template]:
    raise ValueError(f"prompts.columns.template={template!r:.80}: a text with {{{missing[0]}}}, "
                     f"which form={form!r} needs.")
  answer = _choose_word(judged, reads, prompt.answer)
  steps, nonce = judged.get("steps", ()), None
  if "{nonce}" in template:
    nonce = _replies.new_nonce(dataclasses.replace(prompt, answer=more["reference"]),
                               more["answer"], more=(more["other"], *steps))
  more["items"] = "\n".join(f"[step {n} {nonce}]\n{step}" if nonce else f"{n}. {step}"
                            for n, step in enumerate(steps, 1))
  text = _replies.render(template, dict(more, question=prompt.text, nonce=nonce or ""))
  made = dataclasses.replace(prompt, text=text, answer=answer, meta=prompt.meta | dict(
      label=answer, judged=dict(judged, question=prompt.text, **dict(nonce=nonce) if nonce else {})))
  if (judgement := judged.get("judgement")) is None: return made
  # It was written without this nonce.
  plain = dataclasses.replace(prompt, answer=answer)
  if verdict(plain, judgement.strip().rpartition("\n")[2]) == 1.0: return made
  from rlx.core import records  # Worker processes do not import jax.
  return records.Dropped(prompt.id, "with a judgement that does not state the verdict")


def _choose_word(judged, reads, given):
  """The word of the format that stands for the label of a row."""
  words, key = _replies.words_of(reads), f"prompts.columns.reads={judged.get('reads')!r:.60}"
  if "label" not in judged:
    if words is not None and given.lower() not in words:
      raise ValueError(f"{key}: no word for the verdict {given!r:.60} of a row; it has "
                       f"{list(words)}.")
    return given
  if words is None: return f"{judged['label']:g}"
  chosen = next((w for w, x in words.items() if x == judged["label"]), None)
  if chosen is None:
    raise ValueError(f"{key}: no word whose score is {judged['label']:g}, which is a label.")
  return _write(judged["form"], chosen)


def _write(form, word):
  """A word as the templates have it: A and B."""
  return word.upper() if form == "pair" and word in ("a", "b") else word
