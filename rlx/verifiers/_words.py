"""Finds phrases in a text as whole words."""
import functools
import re


@functools.lru_cache(maxsize=4096)
def compile_phrases(phrases: tuple[str, ...]) -> re.Pattern:
  """A pattern of phrases in lower case; of two that begin at one place it finds the longer one."""
  longest = sorted(map(str.lower, phrases), key=len, reverse=True)
  return re.compile("|".join(rf"(?<!\w){re.escape(p)}(?!\w)" for p in longest))
