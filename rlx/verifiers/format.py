r"""Checks the format of completions, not their content.

`tags` and `boxed` read where an answer stands, behind the thoughts; `length` and `ascii_share`
measure the whole completion, and are 0 if nothing stands behind its thoughts. Options are part of
a prompt's `meta`: {"format": {"max_chars": 500}}.
"""
import functools
import re
from typing import TYPE_CHECKING

from rlx.verifiers import _boxed, thoughts

if TYPE_CHECKING: from rlx.core import records


def tags(prompt: "records.Prompt", text: str) -> float:
  """Returns 1.0 if the completion is exactly one block of each tag, in order.

    space <think> inside </think> space <answer> inside </answer> space

  Where the prompt has already opened the first tag (`meta["begun"]`, see thoughts.py), the block
  begins there. Where it is not known what the prompt has of the reply, both forms are accepted.

  `meta["format"]["tags"]` has the names, default ("think", "answer"). A space is optional white
  space. The inside is any text, also an empty one, without a tag of these names: neither nested
  nor quoted in code, and in no spelling that a lenient parser might accept (upper case, spaces,
  attributes, <think/>). &lt;think&gt; is text.
  """
  names = _option(prompt, "tags", ("think", "answer"))
  tag, begun = _tag(tuple(names)), thoughts.opening(prompt, names[0])
  return float(any(
      tag.findall(reply) == [f"<{end}{n}>" for n in names for end in ("", "/")]
      and not "".join(tag.split(reply)[::2]).strip()
      for reply in ([text, f"<{names[0]}>{text}"] if begun is None else [begun + text])))


def boxed(prompt: "records.Prompt", text: str) -> float:
  r"""Returns 1.0 if a closed \boxed{...} that is not empty stands behind the thoughts."""
  return float(bool(_boxed.last(thoughts.behind(text, prompt))))


def length(prompt: "records.Prompt", text: str) -> float:
  """Returns 1.0 for 1 to `meta["format"]["max_chars"]` characters (default 4096)."""
  return float(0 < len(text) <= _option(prompt, "max_chars", 4096)
               and bool(thoughts.behind(text, prompt)))


def ascii_share(prompt: "records.Prompt", text: str) -> float:
  """Returns the share of letters that are ASCII; 0.0 without letters.

  It is a cheap measure of mixed languages, for tasks in English.
  """
  letters = re.findall(r"[^\W\d_]", text) if thoughts.behind(text, prompt) else []
  return sum(c.isascii() for c in letters) / len(letters) if letters else 0.0


for _fn in (tags, boxed, length, ascii_share): vars(_fn)["is_bounded"] = True


def _option(prompt, name, default):
  return prompt.meta["format"][name] if name in prompt.meta.get("format", {}) else default


@functools.cache
def _tag(names):
  """Returns a pattern of tags of these names in any spelling, which takes linear time."""
  name = "|".join(map(re.escape, names))
  return re.compile(rf"<\s*(?:/\s*)?(?:{name})\s*(?:/\s*)?>|</?(?:{name})\s[^<>]*>", re.IGNORECASE)
