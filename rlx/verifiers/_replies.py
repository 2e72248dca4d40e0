"""What a judge is sent, and what its reply states. Texts in, scores out."""
import dataclasses
import hashlib
import itertools
import json
import math
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Mapping

from rlx.verifiers import errors

if TYPE_CHECKING: from rlx.core import records

YES_NO = "yes=1 no=0"
_SLOT = re.compile(r"{(question|answer|other|reference|items|nonce|step \d+)}")
_WORDS = re.compile(r"[A-Za-z]\w*=[\d.]+(?: [A-Za-z]\w*=[\d.]+)+")
_MARKS = " *_`:.\r\n"  # Around a word that is a verdict.


@dataclasses.dataclass(frozen=True)
class Request:
  """A text for a judge.

  Attributes:
    slots: the texts that are put into the template, without the nonce.
    nonce: None if the template has none.
    numbers: of the items that the reply has a line for; an entry None is the line on the whole.
      None in place of a tuple: the reply has one verdict.
    marks: the text whose spans the reply marks; None: it marks none.
  """
  template: str
  slots: Mapping[str, str]
  nonce: str | None
  numbers: tuple[int | None, ...] | None = None
  marks: str | None = None

  @property
  def text(self) -> str:
    return render(self.template, dict(self.slots, nonce=self.nonce or ""))


@dataclasses.dataclass(frozen=True)
class Reply:
  """A reply, with the nonce of the request that it replies to.

  Attributes:
    tokens: [(bytes of a token, {text: log-prob} of the most likely ones in its place)]; None
      without log-probs.
  """
  content: str
  nonce: str | None = None
  tokens: Sequence[tuple[bytes, Mapping[str, float]]] | None = None


def new_nonce(prompt: "records.Prompt", text: str, key: str = "", more: Sequence[str] = ()) -> str:
  """Returns 12 hex digits that neither question nor answer nor reference contains.

    blake2b_key(count, id, question, answer, reference)     for the smallest count that is valid

  The nonce depends on the request alone, so a resumed run sends the same request.

  Args:
    key: secret of the run, at most 64 characters. Without it, the nonce can be computed from
      the request, but a request cannot contain its own nonce.
    more: further texts of the request, such as another answer.
  """
  texts = (prompt.text, text, prompt.answer, *more)
  def nonce(count):
    request = json.dumps([count, prompt.id, *texts]).encode()
    return hashlib.blake2b(request, key=key.encode(), digest_size=6).hexdigest()
  return next(x for x in map(nonce, itertools.count()) if not any(x in t.lower() for t in texts))


def render(template: str, slots: Mapping[str, str]) -> str:
  """Fills the slots of a template; slots inside the inserted texts stay as they are."""
  return _SLOT.sub(lambda slot: slots.get(slot[1], slot[0]), template)


def words_of(reads: str | Mapping[str, float]) -> Mapping[str, float] | None:
  """{word: score} of a format of words, {"yes": 1.0, "no": 0.0}; None: it is another format."""
  if not isinstance(reads, str): return reads
  if not _WORDS.fullmatch(reads := YES_NO if reads == "yes_no" else reads): return None
  try:
    return {word.lower(): float(score) for word, score in (w.split("=") for w in reads.split())}
  except ValueError:
    return None


def spell_words(reads: str) -> tuple[str, ...]:
  """The words of a format of words, as they are written."""
  return tuple(w.partition("=")[0] for w in (YES_NO if reads == "yes_no" else reads).split())


def read(reply: Reply, request: Request, options: Mapping[str, Any]) -> list[float]:
  """The scores that a reply states: of a request's items, or of the characters of its text.

  Raises:
    errors.Unknown: as `parse` and `parse_spans`.
  """
  if request.marks is not None: return parse_spans(reply, options["reads"], request.marks)
  return parse(reply, options["reads"], options["full"], request.numbers, options["probability"])


def parse(reply: Reply, reads: str | Mapping[str, float], full: float = 1.0,
          numbers: Sequence[int | None] | None = None, probability: bool = False) -> list[float]:
  """Returns the scores that the lines of a reply state, divided by `full`.

  The last line states one. The lines before it may hold reasoning, if the request has a nonce.
  Without one, the whole reply has to be the score, and an answer that the judge repeats may be
  read as one.

  Each item has lines of its own. One without a line, or with lines that differ, is NaN and the
  others count; a line of an item that does not exist makes all unknown, because the judge has
  counted otherwise than the request.

  Args:
    reads: format of a line that states a score.
      WORD=SCORE WORD=SCORE ...: "Verdict NONCE: yes" has the score of `yes`, in any case, with or
        without a full stop and the Markdown marks `*_; without a nonce also the word alone. The
        number of an item stands behind the nonce. yes_no is "yes=1 no=0"; {word: score} is the
        same, of words in lower case, which may be numbers, and of scores on any scale.
      Otherwise a regular expression with one group, a number; {nonce} stands for the nonce and
        {item} for the number of an item.
    numbers: as of Request; the line on the whole has no number.
    probability: a format of words; each counts with the probability of its token in the place
      of the one that was drawn: sum_w p_w s_w / sum_w p_w. A word that is not among the
      log-probs has p_w = 0.
  Returns:
    a score in [0, 1] for each item, or the one.
  Raises:
    errors.Unknown: the last line has another format, or no score is known.
  """
  nonce, words = reply.nonce, words_of(reads)
  item = "" if numbers is None else r" (?P<item>\d{1,4})"
  if numbers is not None and None in numbers: item = f"(?:{item})?"
  pattern = re.compile(_pattern(reads, words, nonce, item))
  lines = list(_lines(reply.content)) if nonce else [(0, reply.content.strip())]
  stated: dict[int | None, dict[float, int]] = {}  # Of each item: its scores, and where one stands.
  for start, line in lines:
    if not (m := pattern.fullmatch(line)): continue
    number = int(m["item"]) if numbers is not None and m["item"] else None
    if numbers is not None and number not in numbers:
      raise errors.Unknown(f"a verdict on item {number}, which the request does not have")
    group = "score" if words else next(
        g for g in range(1, pattern.groups + 1) if g != pattern.groupindex.get("item"))
    try:
      score = words[m[group].lower()] if words else score_of(m[group], full)
    except errors.Unknown:
      if numbers is None: raise
      score = math.nan
    stated.setdefault(number, {})[score] = start + m.start(group)
  if not lines or not pattern.fullmatch(lines[-1][1]) or numbers is None and len(stated[None]) > 1:
    raise errors.Unknown(f"{'the last line' if nonce else 'the whole'} of a reply has to match "
                         f"{pattern.pattern!r} and state the only score: {reply.content[-80:]!r}")
  def value(of_item):
    if len(of_item) != 1: return math.nan
    (score, start), = of_item.items()
    return _expect(reply, start, words) if probability and words else score
  values = [value(stated.get(n, {})) for n in ([None] if numbers is None else numbers)]
  if all(map(math.isnan, values)):
    raise errors.Unknown(f"no item has one verdict: {reply.content[-80:]!r}")
  return values


def parse_spans(reply: Reply, reads: str, text: str) -> list[float]:
  """Returns a score for each character of a text from the spans that a reply quotes.

  A line "Verdict NONCE WORD: QUOTE" gives the characters of a quote the score of a word, and the
  last line of a reply is such a line, or "Verdict NONCE: none" where there is no span. Where spans
  meet, a character has the highest plus the lowest of its scores and 1/2, minus 1/2; with none it
  has 1/2. Equal quotes stand for one occurrence after the other, then for the last one; runs of
  whitespace are equal, and marks of quotation around a quote are left out, as is a quote that does
  not occur.

  Args:
    reads: a format of words, see `parse`.
  Returns:
    len(text) scores in [0, 1].
  Raises:
    errors.Unknown: the last line has another format, or quotes are given and none occurs.
  Example:
    >>> reply = _replies.Reply("Verdict N0 bad: b", "N0")
    >>> _replies.parse_spans(reply, "good=1 bad=0", "ab")
    [0.5, 0.0]
  """
  words = words_of(reads) or {}
  any_word = "|".join(sorted(words, key=len, reverse=True))
  pattern = re.compile(
      rf"(?ai)[*_`]*verdict {reply.nonce}(?: (?P<word>{any_word})[*_`]*:[*_` ]*(?P<quote>\S.*)"
      "|[*_`]*:[*_` ]*none[*_`.]*)")
  lines = [pattern.fullmatch(line) for _, line in _lines(reply.content)]
  if not lines or not lines[-1]:
    raise errors.Unknown(f"the last line of a reply has to match {pattern.pattern!r}: "
                         f"{reply.content[-80:]!r}")
  scored, taken = [], dict[tuple, tuple[int, int]]()
  quoted = [(m["word"].lower(), m["quote"]) for m in lines if m and m["word"]]
  for word, quote in quoted:
    parts = tuple(quote.strip("\"'`*_\u201c\u201d ").split())
    if not parts: continue
    place = re.compile(r"\s+".join(map(re.escape, parts))).search(
        text, taken[parts][1] if parts in taken else 0)
    if place is not None: taken[parts] = place.span()
    if parts in taken: scored.append((*taken[parts], words[word]))
  if quoted and not scored:
    raise errors.Unknown(f"the answer has none of the quotes, such as {quoted[0][1]!r:.80}")
  high, low = [0.5] * len(text), [0.5] * len(text)
  for start, end, score in scored:
    for i in range(start, end): high[i], low[i] = max(high[i], score), min(low[i], score)
  return [h + l - 0.5 for h, l in zip(high, low)]


def write_verdict(nonce: str | None, number: int | None, word: str) -> str:
  """The line that states a word as the verdict, which `parse` reads."""
  if nonce is None: return word
  return f"Verdict {nonce}{'' if number is None else f' {number}'}: {word}"


def score_of(number: Any, full: float) -> float:
  """A number divided by `full`.

  Raises:
    errors.Unknown: it is no number, or not in [0, full].
  """
  try:
    score = float(number) / full
  except (TypeError, ValueError):
    raise errors.Unknown(f"not a number: {number!r:.80}") from None
  if not 0 <= score <= 1: raise errors.Unknown(f"{score * full:g} is not in [0, {full:g}]")
  return score


def _pattern(reads, words, nonce, item):
  if words is None:
    return reads.replace("{nonce}", nonce or "").replace("{item}", r"(?P<item>\d{1,4})")
  head = rf"verdict {nonce}{item}[*_`]*:" if nonce else "(?:verdict:)?"
  any_word = "|".join(sorted(words, key=len, reverse=True))
  return rf"(?ai)[*_`]*{head}[*_` ]*(?P<score>{any_word})[*_`.]*"


def _lines(content: str) -> Iterable[tuple[int, str]]:
  """(start, stripped line) of the lines of a reply, without blank ones at the end."""
  start = 0
  for line in content.rstrip().splitlines(keepends=True):
    yield start + len(line) - len(line.lstrip()), line.strip()
    start += len(line)


def _expect(reply, start, words):
  """The score that is expected of the token in which the verdict at a character begins."""
  if reply.tokens is None:
    raise errors.Unknown("the endpoint gives no logprobs; without them, leave "
                         "verifier.judge.probability at False")
  whole = b"".join(piece for piece, _ in reply.tokens)
  # Thoughts and the token that ends the reply may stand around its content.
  place = whole.rfind(reply.content.encode(errors="replace"))
  if place < 0: raise errors.Unknown("the tokens of logprobs are not the text of the reply")
  place += len(reply.content[:start].encode(errors="replace"))
  for piece, likely in reply.tokens:
    if place < len(piece): break
    place -= len(piece)
  chosen = piece.decode(errors="replace")
  said = reply.content[start:].lower()
  if (word := _word_of(chosen, words)) is None or not said.startswith(word):
    raise errors.Unknown(f"the verdict begins in the token {chosen!r}, which is no verdict")
  mass: dict[str, float] = {}
  for text, logp in likely.items():
    if (word := _word_of(text, words)) is not None: mass[word] = mass.get(word, 0) + math.exp(logp)
  if not sum(mass.values()) > 0: raise errors.Unknown("no verdict among the logprobs")
  return min(sum(p * words[w] for w, p in mass.items()) / sum(mass.values()), 1.0)


def _word_of(token: str, words: Iterable[str]) -> str | None:
  """The word that a token is, or that it alone begins; None of other tokens."""
  text = token.strip(_MARKS).lower()
  begun = [w for w in words if w.startswith(text)] if text else []
  return text if text in begun else begun[0] if len(begun) == 1 else None
