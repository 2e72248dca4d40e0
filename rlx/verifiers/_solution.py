"""Finds the code of a solution in the text of a completion."""
import ast
import re
import textwrap
import warnings
from collections.abc import Collection

_FENCE = re.compile(r"([ \t]*)(`{3,}|~{3,})([^`]*)$")
_PYTHON = re.compile(r"\W*(?:python|py)[\d.]*(?!\w)|.*\.py\W*$", re.IGNORECASE)
_READS = re.compile(r"\binput\s*\(|\bstdin\b|\bopen\(\s*0|\bfileinput\b|\bos\.read\(")
# What may begin or end a string or a comment.
_TOKEN = re.compile(r"""#.*|\"{3}|'{3}|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'""")
_INSIDE = {quote: re.compile(r"\\.|" + quote) for quote in ('"""', "'''")}


def find(text: str, names: Collection[str] = (), reads_input: bool = False) -> str:
  r"""Returns the code of a completion.

  Of the closed blocks, it is the one that defines most of the names that its tests use or, for a
  program, that reads its input; of several the last. Blocks in Python come before those without
  a language; other languages are read only if there are no others. Without a block, it is the
  text.

  A line ``` within a string of the code closes no block. If the prompt has opened the block, the
  text begins with code, which ends at the first ```.

  Args:
    text: of a completion, behind its thoughts.
    names: of functions and classes that its tests use.
    reads_input: the tests give a program something to read.
  Returns:
    The code; "" if a block was opened but none was closed.

  Example:
    >>> find("```python\ndef f(x): return x\n```\nIt prints:\n```\n3\n```", ["f"])
    'def f(x): return x'
  """
  blocks, is_fenced = _split(text.split("\n"))
  if not is_fenced: return text
  readable = [block for block in blocks if block[0] is not None] or blocks
  defines = [re.compile(rf"^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+{name}\b|"
                        rf"^{name}[ \t]*(?::[^=\n]*)?=(?!=)", re.MULTILINE)
             for name in map(re.escape, names)]
  def rank(block):
    is_python, code = block
    n_defined = sum(bool(d.search(code)) for d in defines)
    does = _does_something(code)
    return (n_defined + bool(reads_input and _READS.search(code)), bool(is_python),
            does is not False if is_python else bool(does))
  return max(reversed(readable), key=rank, default=(None, ""))[1]


def _split(lines):
  """Returns [(is it Python? None: another language, code)] of the closed blocks, and whether there
  are fences."""
  i, blocks, knows_strings = 0, [], True
  if (end := _end(lines, 0, "```")) and not _FENCE.match(lines[end])[3].strip() and (
      _does_something(code := "\n".join(lines[:end]))):  # The prompt has opened this block.
    blocks.append((False, code))
    i = end + 1
  is_fenced = bool(blocks)
  while i < len(lines):
    fence = _FENCE.match(lines[i])
    i += 1
    if not fence: continue
    is_fenced, (indent, mark, info) = True, fence.groups()
    is_python = True if _PYTHON.match(info) else None if info.strip() else False
    end = _end(lines, i, mark) if knows_strings and is_python is not None else None
    if end is None:
      # Outside of Python, or with a string that does not end, as in "it's ''' not closed".
      knows_strings &= is_python is None
      end = next((j for j in range(i, len(lines)) if _closes(lines[j], mark)), None)
    if end is None: break
    code = _dedent(lines[i:end], len(indent))
    blocks.append((None if code.startswith(">>>") else is_python, code))
    i = end + (not _FENCE.match(lines[end])[3].strip())  # A fence with a language opens the next.
  return blocks, is_fenced


def _end(lines, start, mark):
  """Returns the first line that closes a block of Python, outside of strings; None without one."""
  quote = None
  for i in range(start, len(lines)):
    if quote is None and _closes(lines[i], mark): return i
    quote = _quote_after(lines[i], quote)
  return None


def _closes(line, mark):
  fence = _FENCE.match(line)
  return bool(fence) and fence[2].startswith(mark)


def _quote_after(line, quote):
  """Returns the quotes of the string that is open behind a line, if `quote` is before it."""
  at = 0
  while token := (_INSIDE[quote] if quote else _TOKEN).search(line, at):
    at = token.end()
    if quote: quote = None if token[0] == quote else quote
    elif token[0] in _INSIDE: quote = token[0]
  return quote


def _dedent(lines, indent):
  """Returns the code of a block whose fence is indented by this many characters."""
  lines = [re.sub(rf"^[ \t]{{0,{indent}}}", "", line) for line in lines] if indent else lines
  code = "\n".join(lines)
  first = next((line for line in lines if line.strip()), "")
  return textwrap.dedent(code) if first[:1].isspace() else code


def _does_something(text):
  """Tells whether Python is more than values, such as `7` or `Answer`; None if it is no Python."""
  try:
    with warnings.catch_warnings(action="ignore"): body = ast.parse(textwrap.dedent(text)).body
  except (SyntaxError, ValueError, RecursionError, MemoryError):
    return None
  return any(not isinstance(node, ast.Expr) or isinstance(node.value, ast.Call) for node in body)
