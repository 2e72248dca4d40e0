"""Texts that say the same as another one, in another form. Pure, host side.

A scorer or judge that prefers one of them to the text itself has a bias; the names in `PADDED` and
`REWORDED` are those of the metrics of rlx/tools/judging.py. No model is needed to make them, so
they are cruder than those of the papers that they follow.
"""
import re

_MARKS = re.compile(r"^#{1,6} |^\s*(?:[-*+]|\d+[.)]) |\*\*|__|`", re.MULTILINE)
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")


def repeat(text: str) -> str:
  """The text, and itself once more: longer without saying more.

  Source: the "repetitive list" of Zheng et al. 2023, arXiv:2306.05685, section 3.3. Differs from
  the paper: there a language model rephrases a list of the answer and puts it before it.

    >>> rewordings.repeat("Yes.")
    'Yes.\\n\\nYes.'
  """
  return f"{text}\n\n{text}"


def make_list(text: str) -> str:
  """The sentences or lines of a text as a list, each of which begins in bold.

  Source: the formats of Zhang et al. 2024, arXiv:2409.11704. Differs from the paper: there a
  language model writes answers in such a format.

    >>> rewordings.make_list("It is 4. Why not?")
    '- **It** is 4.\\n- **Why** not?'
  """
  def line(sentence):
    first, gap, rest = sentence.partition(" ")
    return f"- **{first}**{gap}{rest}"
  return "\n".join(line(x.strip()) for x in _SENTENCE.split(text) if x.strip())


def quote(text: str) -> str:
  """The text in quotes.

  Source: one of the transformations of reWordBench, Wu et al. 2025, arXiv:2503.11751, that keep
  the meaning. Differs from the paper: one pair of quotes.

    >>> rewordings.quote("It is 4.")
    '"It is 4."'
  """
  return f'"{text}"'


def space_punctuation(text: str) -> str:
  """The text with a space before commas, full stops and the like that end a word.

  Source and differences: as `quote`; a decimal point is left.

    >>> rewordings.space_punctuation("No, it is 4.5!")
    'No , it is 4.5 !'
  """
  return re.sub(r"(?<=\w)([.,;:!?])(?=\s|$)", r" \1", text)


PADDED = {"repeated": repeat, "listed": make_list}
REWORDED = {"quoted": quote, "spaced": space_punctuation}


def count_marks(text: str) -> int:
  """The number of marks of Markdown in a text: headings, items of lists, bold, code.

    >>> rewordings.count_marks("# Sum\\n- **4**")
    4
  """
  return len(_MARKS.findall(text))
