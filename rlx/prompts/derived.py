"""Prompts about the completions that a step has drawn: prompts.derived.NAME.

The policy judges its own completions, or answers again behind a wrong one, in the batch in which
they are trained on. Each function takes the completions of the step's prompts, after they were
verified, and yields prompts; the first `per_step` that are not too long are sampled. The
completions come in a random order, so that no question is preferred. A function of your own,
"package.module:function", is called in the same way.
"""
from collections.abc import Iterable, Iterator, Sequence
import dataclasses
import hashlib
import math
from typing import Annotated, Literal, NamedTuple

from rlx.core import ranges, records
from rlx.prompts.datasets import judging as judging_data

_Text = Annotated[str | None, ranges.TEXT.or_none]
_SURE = 0.5  # A verdict above it is right.
OWN = "derived/"  # What ids of derived prompts begin with.
AGAIN = ("{question}\n\nThis is a former attempt to answer:\n\n{answer}\n\nIt is wrong. Find the "
         "mistake, then answer the question again.")
DRAFT = ("{question}\n\nThis is a draft of an answer:\n\n{answer}\n\nAnswer the question, better "
         "than the draft if you can.")
SPLIT = ("{question}\n\nSplit this problem into smaller ones, solve them one after the other, then "
         "answer the question.")


class Completion(NamedTuple):
  """A completion of a prompt of this step."""
  prompt: records.Prompt
  text: str
  answer: str | None  # that it states (eval.answer); None: it states none
  verdict: float      # in [0, 1]; NaN: unknown

  def show(self, what: str) -> str | None:
    """The text or the answer; None where it states none."""
    return self.text if what == "completion" else self.answer


Made = Iterator[records.Prompt | records.Dropped]


def judging(completions: Sequence[Completion], *,
            form: Literal["verdict", "pair", "scores"] = "verdict",
            shows: Literal["completion", "answer"] = "completion", per_question: ranges.Whole = 1,
            balanced: bool = False, both_orders: bool = False,
            answers: Annotated[int, ranges.whole(2, 64)] = 4, request: _Text = None,
            reads: _Text = None) -> Made:
  """Asks whether a completion is right, or which of several is better; see datasets/judging.py.

    reward of a reply = 1[its verdict is that of the verifier]

  Completions without a verdict and equal ones are left out; of `pair` and `scores` also questions
  whose completions have equal verdicts.

  Source: SPARK, Liu et al. 2025, arXiv:2509.22624, by its published code. Differs: there a
  prompt whose completions differ gives a pair with probability 0.7, else a single judgement; here
  how many prompts are of which form is set.

  Args:
    form, per_question, balanced, both_orders, answers, reads: as prompts.columns of judging:FILE.
      `balanced` may leave none in a step.
    request: its `template`.
    shows: what is judged, the completion or the answer that it states.
  """
  rows = [dict(question=x.prompt.text, completion=shown,
               verdict=None if math.isnan(x.verdict) else x.verdict)
          for x in completions if (shown := x.show(shows)) is not None]
  yield from judging_data.ask_about(
      rows, form, per_question=per_question, balanced=balanced, both_orders=both_orders,
      answers=answers, template=request, reads=reads)


def reflection(completions: Sequence[Completion], *,
               shows: Literal["completion", "answer"] = "completion",
               request: Annotated[str, ranges.TEXT] = AGAIN) -> Made:
  """Asks a question again behind a wrong completion, one of each question that has some.

  The verifier is that of the question, which it reads without the request.

  Source: SPARK, as `judging`. Differs: its requests are not known to us in their words; there half
  of them show the completion and half its answer, here `shows` says which.

  Args:
    shows: what of the wrong completion is shown.
    request: a text with {question} and {answer}.
  Raises:
    ValueError: it lacks one of them.
  """
  wrong = (x for x in completions if x.verdict <= _SURE)
  yield from _ask_again("reflection", wrong, shows, request)


def draft(completions: Sequence[Completion], *,
          shows: Literal["completion", "answer"] = "completion",
          request: Annotated[str, ranges.TEXT] = DRAFT) -> Made:
  """Asks a question again behind its best completion, that with the highest verdict.

    shown = y_j,  j = argmax_i v(y_i)      of equal ones the first in a random order

  Every question gives one prompt, whose best completion may be wrong, unless no verdict is known.
  The verifier is that of the question. Without `select_completions.derived` the drafts are trained
  on, too.

  Source: iGRPO, Hatamizadeh et al. 2026, arXiv:2602.09000. Differs: the request has other words.

  Args:
    shows, request: as `reflection`, of the best completion.
  Raises:
    ValueError: as `reflection`.
  """
  known = [x for x in completions if not math.isnan(x.verdict)]
  best = sorted(known, key=lambda x: -x.verdict)  # Stable: equal ones stay in their order.
  yield from _ask_again("draft", best, shows, request)


def retry(completions: Sequence[Completion], *,
          shows: Literal["completion", "answer"] = "completion",
          request: Annotated[str, ranges.TEXT] = SPLIT) -> Made:
  """Asks a question again in other words if none of its completions is right.

  The verifier is that of the question. A question of which all verdicts are unknown is left out.

  Source: Cog-Rethinker, arXiv:2510.15979: first to split the problem, then, if it is still not
  solved, to find the mistake in a wrong completion. Differs: both are asked in one step if both are
  configured, and right completions are trained on as they were asked for, without a loss that
  carries them over to the question's own prompt.

  Args:
    shows: what of a wrong completion is shown, where the request has {answer}.
    request: a text with {question}.
  Raises:
    ValueError: it has none.
  """
  solved = {x.prompt.id for x in completions if x.verdict > _SURE}
  wrong = (x for x in completions if x.verdict <= _SURE and x.prompt.id not in solved)
  yield from _ask_again("retry", wrong, shows, request, needs=("{question}",))


def _ask_again(kind: str, completions: Iterable[Completion], shows: str, request: str,
               needs: tuple[str, ...] = ("{question}", "{answer}")) -> Made:
  """Questions again, each behind the first of its completions, with the question's verifier."""
  for slot in needs:
    if slot not in request: raise ValueError(f"request={request!r:.80}: a text with {slot}.")
  seen: set[str] = set()
  for x in completions:
    shown = x.show(shows)
    head, slot, tail = request.partition("{answer}")  # What is put in may hold slots, too.
    if (shown is None and slot) or x.prompt.id in seen: continue
    seen.add(x.prompt.id)
    ask = lambda part, text=x.prompt.text: part.replace("{question}", text)
    name = hashlib.blake2b(f"{x.prompt.id}\0{shown}".encode("utf-8", "surrogatepass"),
                           digest_size=8).hexdigest()
    yield dataclasses.replace(x.prompt, id=f"{kind}/{name}", messages=(),
                              request=f"{ask(head)}{shown if slot else ''}{ask(tail)}")
