r"""Compares mathematical answers by kind: 1.0 if the completion's equals the prompt's, else 0.

The reference answer determines the kind (integer, decimal, fraction, closed expression,
expression in variables, equation, inequality or interval, set, family over the integers, tuple,
vector, matrix, list, choice or text), and the completion has to state an answer of that kind:

  kind         equal are                                    not equal are
  number       1/2, 0.5, 3/6, 50%; x = 5 and 5; 5 cm, 50 mm  0.333333 and 1/3, 5 cm and 5 m
  expression   (x+1)^2, x^2+2x+1; 1/sqrt 2, sqrt 2/2         pi r^2 h and pi r^2, 10c and 10d
  equation     y = 2x+3, y-2x = 3                            x = 5 and x+3 = 8
  interval     (-oo,2), x < 2, {x | x < 2}                   (-1,1) and {-1,1}, 3x-1 < 5
  set, list    {1,2}, x = 1 or x = 2, 2 and 1                1,2 and 1,2,3; 3,1,2 and 1,2,3
  family       pi + 2k pi and 2n pi - pi over all integers   k pi over Z and over N
  tuple        (1,2), x = 1, y = 2, i + 2j                   (2,1), {1,2}, [1,2]
  text         Monday, \text{monday}                         BDAC and ABCD

The completion has to state an answer, not a calculation. Sums with an index, integrals, limits,
derivatives, determinants and remainders are not parsed (in lim ... = 3 the answer is 3), and a
text that cannot be parsed equals only the same text. Factorials, floors, gcd, functions of numbers,
and sums and products of numbers are parsed, but accepted only if the reference contains them too.
An answer may not contain a variable that the reference does not contain (5x/x is not 5), and if the
reference is rational, the answer has to be written as a rational number. Nothing is solved: an
equation that still has to be solved is not an answer.

Comparison is exact: rational numbers are fractions. Other numbers are evaluated with enough
digits to distinguish all values that their literals can form, and expressions with variables at
several points. A decimal is the number that it states; with ten or more digits it also equals a
number that agrees with all of these digits. The order of a list matters if it consists of
positive integers that do not increase and the question asks for no solutions or roots, or if the
question has a word such as "respectively".
One of the two answers may omit the unit; otherwise the units have to be equal, and be the unit
that the question asks for ("in km/h", "how many cubic metres"). A letter, or a
word that is not a common unit, is a unit only if the question or the reference contains it. 2e+1
is 2 e + 1 in a reference; 2e1, 2E+1, 2.5e-3, 2e-05 are numbers; a stated 2e+1 is read either way.
Where the question asks to transform an expression, the same expression is no answer, and the
form that it names is required if the reference has it (`math/forms.py`). A condition behind an
answer ("for all x", "n >= 1") is left out unless it leaves out cases. For a reference such as
t = ln 9 = 2 ln 3, each side that is an answer is accepted.

docs/verifiers.md reports the error rates of this module and of other graders.
"""
import functools
import re
from collections.abc import Sequence
from typing import NamedTuple, TYPE_CHECKING

from rlx.verifiers import _boxed, thoughts
from rlx.verifiers.math import agreement, forms, kinds, latex, questions, reading, stated

if TYPE_CHECKING: from rlx.core import records

_ONE_IN_LIST = re.compile(r"""\s*\[\s*(['"])([^'"]*)\1\s*\]\s*""")  # ['12']
_NAMED = re.compile(r"(?<![A-Za-z])([A-Za-z])\s*=\s*$")
# An operation that is not parsed: the answer 3 of \lim_{x \to 0} \frac{\sin 3x}{x} = 3.
_D = r"(?:\\mathrm\s*\{?d\}?|\\partial|d)"
_OPERATION = re.compile(
    r"[\s$]*(?:\\displaystyle\s*)?\\(?:(?:lim|i{0,2}int|oint|sum|prod|det)(?![A-Za-z])"
    r"|begin\s*\{[vV]matrix\}"
    rf"|[dt]?frac\s*\{{?\s*{_D}(?:\s*\^\s*\{{?\d\}}?)?\s*[A-Za-z]?\s*\}}?\s*\{{\s*{_D}\s*[A-Za-z])")
_EQUALITY = re.compile(r"\\.|[{}()\[\]=]", re.DOTALL)
_MAX_CHARS = 2000  # A longer text is not an answer.
_MAX_WORDS = 8     # Of a reference: with more it is prose.
# A solution, a missing value, or the text that Python or JSON has for a list or object.
_NO_ANSWER = re.compile(
    r"####|\\(boxed|fbox)|(?i:^\W*(nan|null|((see|the) )*(solution|proof))\W*$)|"
    r"""^\s*[\[{]\s*['"]""")


def boxed(prompt: "records.Prompt", text: str) -> float:
  r"""Compares what is in boxes, \boxed{...}, with the prompt's answer.

  The last box counts, and those before it that only "and", "or" or commas separate from it. If
  the reference has several values, the boxes of the last paragraph with a box may also state
  them together; if it has one, boxes that differ are no answer. A text behind the boxes that
  takes the answer back ("But that is wrong") leaves none.

  Raises:
    ValueError: the prompt has no answer.
  """
  reference = _reference(prompt.answer, prompt.text)
  return _boxes_verdict(reference, latex.compose(thoughts.behind(text, prompt)))[0]


def final(prompt: "records.Prompt", text: str) -> float:
  """Compares the completion's final answer with the prompt's answer.

  The final answer is in the last box, see `boxed`, unless "answer:" and an answer stand behind
  it. Without a box, it is the text after the last "answer is", "answer:" or "####", or in the
  last line with a number (`math/stated.py`).

  Raises:
    ValueError: the prompt has no answer.
  """
  reference = _reference(prompt.answer, prompt.text)
  gold, question = reference.gold, reference.question
  text = latex.compose(thoughts.behind(text, prompt))
  verdict, end = _boxes_verdict(reference, text)
  if end is not None and not (behind := stated.behind_boxes(
      text[end:], isinstance(gold, kinds.Choice))): return verdict
  if end is not None: text = behind
  is_words = isinstance(gold, kinds.Text)
  if isinstance(gold, kinds.Choice) and (letter := stated.choice(text)):
    return float(letter == gold.letter)
  texts = stated.answer(text, prompt.text, agreement.is_number(gold), is_words)
  if is_words: return float(any(_verdict(reference, t) for t in texts))
  # Takes the first text that can be parsed, right or wrong.
  texts = [t for t in texts if t and len(t) <= _MAX_CHARS]
  readable = [t for t in texts if not isinstance(reading.parse_answer(t, question), kinds.Text)]
  return _verdict(reference, next(iter(readable or texts), None))


def inspect(prompts: Sequence["records.Prompt"], unsafe: bool = False) -> list[tuple]:
  r"""Finds references that are no answers: missing ones, whole solutions, proofs, lists as texts.

  Returns:
    for each prompt, (why nothing can be compared with its answer, or None; None).
  """
  del unsafe
  return [(_describe_reference(p.answers or (p.answer,)), None) for p in prompts]


def _describe_reference(answers):
  for answer in answers:
    words = re.findall(r"[^\W\d_]{2,}", re.sub(r"\\[a-zA-Z]+", " ", answer))
    if not answer.strip(): return "it has no answer to compare with"
    if len(words) > _MAX_WORDS or _NO_ANSWER.search(answer):
      return (f"its answer is {answer!r:.80}, a solution, proof or list as text, with which "
              "math_answer cannot compare: the column has to hold the answer alone; "
              "prompts.dataset=gsm8k takes what stands after ####, hendrycks_math what is in "
              "\\boxed{}")
  return None


for _fn, _form in ((boxed, r"\boxed{%s}"), (final, "The answer is %s")):
  vars(_fn).update(timeout_s=2.0, memory_mb=512, inspect=inspect,
                   state=lambda prompt, form=_form: form % prompt.answer)


class _Reference(NamedTuple):
  """A reference answer: as a text, parsed, and what the question says about it.

  `layout` is its text without layout if nothing but the same formula equals it, else None.
  """
  text: str
  gold: object
  question: kinds.Question
  layout: str | None


def _boxes_verdict(reference, text):
  """Returns (verdict of the boxes of a text, where the last one ends or None without one)."""
  if not (boxes := _boxed.find(text)): return 0.0, None
  end = boxes[-1][2]
  if stated.is_taken_back(text[end:]): return 0.0, end
  joined = _boxed.find_joined(text, boxes)
  if isinstance(reference.gold, kinds.List | kinds.Set):
    groups = joined, _boxed.find_last_paragraph(text, boxes)
    texts = dict.fromkeys(", ".join(content for content, *_ in group) for group in groups)
    return max(_verdict(reference, t) for t in texts), end
  if isinstance(reference.gold, kinds.Group) and len(joined) == len(reference.gold.items) > 1:
    names = [_NAMED.search(text[max(0, start - 40):start]) for _, start, _ in joined]
    if all(names) and sorted(named := [name[1] for name in names]) == named:  # x = 12 and y = 15
      return _verdict(reference, f"({', '.join(content for content, *_ in joined)})"), end
  return min(_verdict(reference, t) for t in dict.fromkeys(c for c, *_ in joined)), end


def _verdict(reference, text):
  answer, gold, question, layout = reference
  if not text or len(text) > _MAX_CHARS: return 0.0
  if text.split() == answer.split(): return 1.0  # Even if it is too large to evaluate.
  if isinstance(gold, kinds.Choice) and (letter := reading.choice_of(text)):
    return float(letter == gold.letter)
  if isinstance(gold, kinds.Text) and gold.words and gold.words in (
      reading.normalize(text), reading.word_of(text)): return 1.0
  if layout is not None and latex.layout_free(text) == layout: return 1.0
  if isinstance(gold, kinds.Text): return 0.0
  texts = [(text := _behind_operation(text), False)]
  # 100,200 may be two numbers.
  if isinstance(gold, kinds.List): texts.append((text.replace(",", ", "), False))
  if latex.has_signed_exponent(text): texts.append((text, True))
  for text, is_e_constant in texts:
    parsed = reading.parse_answer(text, question, is_e_constant)
    if agreement.agree(gold, parsed, question):
      has_form = question.forms or question.copies
      return float(not has_form or forms.are_met(question, gold, parsed, answer, text))
  return 0.0


def _behind_operation(text):
  r"""Returns what stands behind a limit, sum, integral or derivative and "=", else the text."""
  if not _OPERATION.match(text): return text
  depth = 0
  for match in _EQUALITY.finditer(text):
    depth += (match[0] in "{([") - (match[0] in "})]")
    if match[0] == "=" and not depth and text[match.end():].strip(): return text[match.end():]
  return text


@functools.lru_cache(maxsize=4096)
def _reference(answer, question_text):
  """Returns the _Reference of a prompt's answer and question."""
  if not answer.strip(): raise ValueError(f"the prompt has no answer: {answer!r}")
  if only := _ONE_IN_LIST.fullmatch(answer): answer = only[2]
  answer = latex.compose(answer)
  question = questions.read(latex.compose(question_text), answer)
  # 2e+1 is 2 e + 1; 2.5e-3 and 1e-07 are numbers, unless the stated answer is one in e.
  parsed = [reading.parse_answer(answer, question, is_e_constant)
            for is_e_constant in ([latex.has_short_exponent(answer)] + [True] * (
                latex.has_signed_exponent(answer) and not latex.has_short_exponent(answer)))]
  golds = [agreement.reference(p) for p in parsed]
  gold = golds[0] if len(golds) == 1 else kinds.Either(golds)
  is_opaque = isinstance(gold, kinds.Text) or answer.count("^") > 1 and (
      not agreement.agree(gold, parsed[0], question))  # It is too large to evaluate.
  return _Reference(answer, gold, question, latex.layout_free(answer) if is_opaque else None)
