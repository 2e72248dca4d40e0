r"""Is a completion of the form asked for? About its shape, not what it says.

Options are set with a prompt's `meta`: {"format": {"max_chars": 500}}.
"""
import re

from rlx.verifiers import _boxed


def tags(prompt, text):
  """1.0 if the completion is exactly one block of each tag, in order.

  `meta["format"]["tags"]`, default ("think", "answer"): only white space may
  stand between the blocks, around them, and a tag may not occur in a block.
  """
  names = _option(prompt, "tags", ("think", "answer"))
  if any(text.count(f"<{n}>") != 1 or text.count(f"</{n}>") != 1 for n in names):
    return 0.0
  place = 0
  for n in names:
    start = text.index(f"<{n}>")
    end = text.index(f"</{n}>")
    if end < start or text[place:start].strip(): return 0.0
    place = end + len(f"</{n}>")
  return float(not text[place:].strip())


def boxed(prompt, text):
  r"""1.0 if the completion has a closed \boxed{...} that is not empty."""
  del prompt
  return float(bool(_boxed.last(text)))


def length(prompt, text):
  """1.0 if it has 1 to `meta["format"]["max_chars"]` characters (default 4096)."""
  return float(0 < len(text) <= _option(prompt, "max_chars", 4096))


def ascii_share(prompt, text):
  """Share of its letters that are ASCII; 1.0 = no other script, 0.0 = no letter.

  A cheap measure of mixed languages, for tasks asked in English.
  """
  del prompt
  letters = re.findall(r"[^\W\d_]", text)
  return sum(c.isascii() for c in letters) / len(letters) if letters else 0.0


def _option(prompt, name, default):
  return prompt.meta["format"][name] if name in prompt.meta.get("format", {}) else default
