"""Changes of a line of a program or of a step of a solution. Pure, host side.

train_scorer.mutate names such a function: (line, text, random) -> the changed line, or None where
there is nothing to change. The text is the whole solution that the line is part of.
"""
import re

import numpy as np

_WORD = re.compile(r"[^\W\d]\w*|\d+|[-+*/%<>=!&|^]+")
# What may stand in the place of a word: the others of its set.
_SETS = ({"<", ">", "<=", ">=", "==", "!="}, {"+", "-", "*", "/", "//", "%"}, {"+=", "-=", "*="},
         {"and", "or"}, {"True", "False"}, {"min", "max"}, {"break", "continue"})
# Words of Python that are no names.
_KEYWORDS = set("""as assert async await class def del elif else except finally for from global if
    import in is lambda nonlocal not pass raise return try while with yield None self""".split())


def swap_words(line: str, text: str, random: np.random.Generator) -> str | None:
  """The line with one word changed: a number, a name or an operator.

  A number becomes one that is larger or smaller by 1, or another one of the text; a name becomes
  another one of the text, and an operator or a constant another one of its kind.

  Source: operators of mutation testing, DeMillo et al. 1978 (Computer 11), in the place of the
  language model that changes lines in Process-Supervised Reinforcement Learning for Code
  Generation, arXiv:2502.01715. Differs from both: a line has one change, without a syntax tree.

    >>> mutations.swap_words("return a", "def f(a, b):", np.random.default_rng(1))
    'return b'
  """
  words = {m[0] for m in _WORD.finditer(text)} | {m[0] for m in _WORD.finditer(line)}
  changes = [(m, sorted(near)) for m in _WORD.finditer(line)
             if (near := _others(m[0], words))]
  if not changes: return None
  match, others = changes[random.integers(len(changes))]
  return line[:match.start()] + others[random.integers(len(others))] + line[match.end():]


def _others(word: str, words: set[str]) -> set[str]:
  """What may stand in the place of a word; `words` are those of the text."""
  for same in _SETS:
    if word in same: return same - {word}
  if word.isdigit():
    near = {str(n) for n in (int(word) - 1, int(word) + 1) if n >= 0}
    return ({x for x in words if x.isdigit()} | near) - {word}
  if not _is_name(word): return set()
  return {x for x in words if _is_name(x)} - {word}


def _is_name(word: str) -> bool:
  return (word[0].isalpha() or word[0] == "_") and word not in _KEYWORDS and not any(
      word in same for same in _SETS)
