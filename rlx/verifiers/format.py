r"""Checks the format of completions, not their content.

Options are part of a prompt's `meta`: {"format": {"max_chars": 500}}.
"""
import functools
import re
from typing import TYPE_CHECKING

from rlx.verifiers import _boxed

if TYPE_CHECKING: from rlx.core import records


def tags(prompt: "records.Prompt", text: str) -> float:
  """Returns 1.0 if the completion is exactly one block of each tag, in order.

    space <think> inside </think> space <answer> inside </answer> space

  `meta["format"]["tags"]` has the names, default ("think", "answer"). A space is optional white
  space. The inside is any text, also an empty one, without a tag of these names: neither nested
  nor quoted in code, and in no spelling that a lenient parser might accept (upper case, spaces,
  attributes, <think/>). &lt;think&gt; is text.
  """
  names = _option(prompt, "tags", ("think", "answer"))
  tag = _tag(tuple(names))
  return float(tag.findall(text) == [f"<{end}{n}>" for n in names for end in ("", "/")]
               and not "".join(tag.split(text)[::2]).strip())


def boxed(prompt: "records.Prompt", text: str) -> float:
  r"""Returns 1.0 if the completion has a closed \boxed{...} that is not empty."""
  del prompt
  return float(bool(_boxed.last(text)))


def length(prompt: "records.Prompt", text: str) -> float:
  """Returns 1.0 for 1 to `meta["format"]["max_chars"]` characters (default 4096)."""
  return float(0 < len(text) <= _option(prompt, "max_chars", 4096))


def ascii_share(prompt: "records.Prompt", text: str) -> float:
  """Returns the share of letters that are ASCII; 0.0 without letters.

  It is a cheap measure of mixed languages, for tasks in English.
  """
  del prompt
  letters = re.findall(r"[^\W\d_]", text)
  return sum(c.isascii() for c in letters) / len(letters) if letters else 0.0


for _fn in (tags, boxed, length, ascii_share): vars(_fn)["is_bounded"] = True


def _option(prompt, name, default):
  return prompt.meta["format"][name] if name in prompt.meta.get("format", {}) else default


@functools.cache
def _tag(names):
  """Returns a pattern of tags of these names in any spelling, which takes linear time."""
  name = "|".join(map(re.escape, names))
  return re.compile(rf"<\s*(?:/\s*)?(?:{name})\s*(?:/\s*)?>|</?(?:{name})\s[^<>]*>", re.IGNORECASE)
