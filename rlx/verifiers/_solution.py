"""Finds the code of a solution in the text of a completion."""
import ast
import contextlib
import itertools
import re
import textwrap
import warnings
from collections.abc import Collection

_FENCE = re.compile(r"([ \t]*)(`{3,}|~{3,})([^`]*)$")
_PYTHON = re.compile(r"\W*(?:python|py)[\d.]*(?!\w)|.*\.py\W*$", re.IGNORECASE)
_READS = re.compile(r"\binput\s*\(|\bstdin\b|\bopen\(\s*0|\bfileinput\b|\bos\.read\(")
# What may begin or end a string or a comment.
_TOKEN = re.compile(r"""#.*|\"{3}|'{3}|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'""")
# In front of a line that is not indented and no part of a body: any, and one that is no definition.
_ENDS = re.compile(r"\n(?![ \t\n)\]}]|\Z)")
_PROSE = re.compile(r"\n(?![ \t\n)\]}#@]|(?:async|class|def|from|import)\b|\Z)")
# Where code may begin below prose, and how many such lines, and ends of the code, are tried.
_BEGINS = re.compile(r"^(?:@\w|(?:async +def|class|def|import) +\w|from +[\w.]+ +import\b|\w+ *=)",
                     re.MULTILINE)
_MAX_TRIED = 10
_INSIDE = {quote: re.compile(r"\\.|" + quote) for quote in ('"""', "'''")}


def find(text: str, names: Collection[str] = (), reads_input: bool = False) -> str:
  r"""Returns the code of a completion.

  Of the closed blocks, it is the one that defines most of the names that its tests use or, for a
  program, that reads its input; of several the last. Blocks in Python come before those without
  a language; other languages are read only if there are no others. Without a block, it is the
  text, or its part in <answer>...</answer> or [BEGIN]...[DONE], or, if that is no Python, the code
  in it that defines one of the names, without the prose around it.

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
  if not is_fenced: return _drop_prose(_unmark(text), names)
  readable = [block for block in blocks if block[0] is not None] or blocks
  defines = list(map(_define, names))
  def rank(block):
    is_python, code = block
    n_defined = sum(bool(d.search(code)) for d in defines)
    does = _does_something(code)
    return (n_defined + bool(reads_input and _READS.search(code)), bool(is_python),
            does is not False if is_python else bool(does))
  return max(reversed(readable), key=rank, default=(None, ""))[1]


def complete(text: str, code: str, question: str, names: Collection[str]) -> str:
  r"""Returns the code of a completion that may continue the question, as in HumanEval.

  If the code of the question ends with a function without a body that is one of the names, it
  stands before that of the completion, with what it imports and defines. A completion that does
  not define the function is its body; all of its lines, or the first one, may lack the
  indentation. Text behind the body is cut off. A function that stands for a method of the
  question, without its class, is no body.

  Args:
    text: of the completion.
    code: what `find` returns for it.
    question: the prompt's text.
    names: as of `find`.

  Example:
    >>> text, question = "return x + 1\n\nIt adds 1.", "def f(x):\n  'Adds 1.'\n"
    >>> print(complete(text, text, question, ["f"]))
    def f(x):
      'Adds 1.'
      return x + 1
  """
  head, name, method, indent = _read_head(find(question, names).rstrip(), names)
  if not name or method and _define(method).search(code) and _compiles(code): return code
  if _define(name).search(code):
    whole = f"{head}\n{indent}pass\n{code}"
    return whole if _compiles(whole) else code
  for body in dict.fromkeys(t.strip("\n") for t in (code, text.partition("\n```")[0])):
    cuts = [body, *(body[:end.start()] for pattern in (_PROSE, _ENDS)
                    if (end := pattern.search(body)))]
    for cut in filter(str.strip, dict.fromkeys(cuts)):
      below = textwrap.indent(textwrap.dedent(cut), indent)
      for lines in (cut, below) if cut[0].isspace() else (indent + cut, below, cut):
        if _compiles(whole := f"{head}\n{lines.rstrip()}"): return whole
  return code


def _read_head(code, names):
  """Returns (code, name, method, indentation of the body) of the function without a body that ends
  a code.

  The name is that of its class if it is a method, and "" if there is no such function; method is ""
  if it is none.
  """
  trees = (_parse(code), _parse(f"{code} pass"))
  if (tree := next(filter(None, trees), None)) is None or not tree.body: return code, "", "", ""
  outer = node = tree.body[-1]
  while isinstance(node, ast.ClassDef): node = node.body[-1]
  if not isinstance(node, ast.FunctionDef) or outer.name not in names or any(
      not isinstance(s, ast.Pass) and not isinstance(getattr(s, "value", None), ast.Constant)
      for s in node.body): return code, "", "", ""
  line, first = code.split("\n")[node.body[0].lineno - 1], node.body[0]
  is_below = first.lineno > node.lineno and not line[:first.col_offset].strip()
  return (code, outer.name, node.name if node is not outer else "",
          line[:first.col_offset] if is_below else " " * (node.col_offset + 4))


def _parse(code):
  """Returns the syntax tree of Python, None if it is none."""
  with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
    with warnings.catch_warnings(action="ignore"): return ast.parse(code)
  return None


def _compiles(code):
  with contextlib.suppress(SyntaxError, ValueError, RecursionError, MemoryError):
    with warnings.catch_warnings(action="ignore"):
      return bool(compile(code, "solution", "exec", dont_inherit=True))
  return False


def _define(name):
  """Returns a pattern of the definition of a name."""
  return re.compile(rf"^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+{re.escape(name)}\b|"
                    rf"^{re.escape(name)}[ \t]*(?::[^=\n]*)?=(?!=)", re.MULTILINE)


def _unmark(text):
  """Returns what stands between <answer> and </answer>, or [BEGIN] and [DONE] (MBPP), if any."""
  for opening, closing in (("<answer>", "</answer>"), ("[BEGIN]", "[DONE]")):
    if closing in text: text = text.partition(closing)[0].rpartition(opening)[2]
  return text.strip("\r\n")


def _drop_prose(text, names):
  """Returns the code of a text that has prose around a definition of one of the names."""
  defines = list(map(_define, names))
  if not any(d.search(text) for d in defines) or _compiles(text): return text
  for start in itertools.islice(_BEGINS.finditer(text), _MAX_TRIED):
    code = text[start.start():]
    ends = [end.start() for end in _ENDS.finditer(code)][-_MAX_TRIED:]
    for end in (len(code), *reversed(ends)):
      if any(d.search(code[:end]) for d in defines) and _compiles(code[:end]): return code[:end]
  return text


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
  if (tree := _parse(textwrap.dedent(text))) is None: return None
  return any(not isinstance(node, ast.Expr) or isinstance(node.value, ast.Call)
             for node in tree.body)
