"""Shows the indented equations of docstrings as written; mkdocs.yml names this file."""
import re

import griffe

_SECTION = re.compile(r"(Args|Attributes|Errors|Example|Examples|Raises|Returns|Yields):$")


class Equations(griffe.Extension):
  """Puts fences around indented blocks that belong to no section of a docstring."""

  def on_object(self, *, obj, **kwargs):
    if obj.docstring: obj.docstring.value = fence(obj.docstring.value)


def fence(text):
  """The docstring with ```text around each block that is indented and outside all sections."""
  out, block, in_section = [], [], False

  def close():
    while block and not block[-1].strip(): block.pop()
    if block: out.extend(["", "```text", *(line[2:] for line in block), "```", ""])
    block.clear()

  for line in text.splitlines():
    if line.startswith("  ") and not in_section or block and not line.strip():
      block.append(line)
      continue
    close()
    if line[:1].strip(): in_section = bool(_SECTION.match(line))
    out.append(line)
  close()
  return "\n".join(out)
