"""rlx/core/typed_keys.py: the keys of a config with their types, for editors and type checkers."""
import ast
import inspect
import io
import json
import pathlib
import re
import subprocess
import sys
import textwrap
import tokenize
import typing

from ml_collections.config_dict import FieldReference

import rlx
from configs import base
from rlx.core import options, typed_keys

ROOT = pathlib.Path(__file__).parent.parent
PATH = ROOT / "rlx/core/typed_keys.py"
HEAD = '''"""The keys of a config with the types of their values, for editors and type checkers.

`python -m pytest tests/test_typed_keys.py --record` writes this file from configs/base.py. Keys
that a config adds, such as options of another method or rewards of other names, are not here; a
plain dict may have them.
"""
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypedDict

Function = str | Callable[..., Any]  # A function, or its name.
Keys = TypedDict("Keys", {
'''


def type_of(key, default, allowed):
  """The type of a key's values, as text, by its default and what else is allowed."""
  none = ""
  if isinstance(default, FieldReference): default, none = default.get_type()(), " | None"
  if allowed is not None and None in allowed: none = " | None"
  if key.endswith(".name") or key == "verifier.steps": return f"Function{none}"
  if isinstance(default, bool): return f"bool{none}"
  if isinstance(default, int | float): return f"{type(default).__name__}{none}"
  if isinstance(default, tuple):
    return f"Sequence[{'int' if key == 'rollouts.stop_ids' else 'str'}]{none}"
  if chosen := re.fullmatch(r"one of (\(.*\))(, or None)?", str(allowed)):
    return f"Literal[{', '.join(map(json.dumps, ast.literal_eval(chosen[1])))}]{none}"
  return f"str{none}"


def find_comments(source):
  """{key: its comment} of the tree that `declared` returns, from the lines beside and above it."""
  functions = {f.name: f for f in ast.parse(source).body if isinstance(f, ast.FunctionDef)}
  comments, codes = {}, set()
  for token in tokenize.generate_tokens(io.StringIO(source).readline):
    if token.type == tokenize.COMMENT: comments[token.start[0]] = token.string.lstrip("# ")
    elif token.type not in (tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT):
      codes |= set(range(token.start[0], token.end[0] + 1))
  found = {}

  def read(first, last):
    above = first
    while above - 1 in comments and above - 1 not in codes: above -= 1
    return " ".join(comments[n] for n in range(above, last + 1) if n in comments)

  def walk(node, prefix, line=0):
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
      if node.func.id in functions:
        made = next(n.value for n in functions[node.func.id].body if isinstance(n, ast.Return))
        walk(made, prefix, node.lineno)
      for k in node.keywords if node.func.id in (*functions, "dict") else ():
        if k.arg is None: walk(k.value, prefix)
        else:
          is_section = isinstance(k.value, ast.Call) and k.value.func.id in (*functions, "dict")
          found[prefix + k.arg] = "" if k.lineno == line else read(
              k.lineno, k.lineno if is_section else k.end_lineno)
          walk(k.value, f"{prefix}{k.arg}.", k.lineno)

  for node in functions["declared"].body:
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute):
      found[node.targets[0].attr] = read(node.lineno, node.lineno)
      walk(node.value, f"{node.targets[0].attr}.", node.lineno)
  return found


def write_keys():
  """The text of the file."""
  comments = find_comments((ROOT / "configs/base.py").read_text())
  rows = {}
  for key, declared in options.flatten(base.declared()).items():
    default = declared.default if isinstance(declared, base.Option) else declared
    rows[key] = type_of(key, default, base.allowed().get(key))
    if key.endswith(".name"): rows[key.removesuffix(".name")] = "Function | dict[str, Any]"
  # Sections whose parts have names of their own, or whose keys another file defines.
  rows |= dict.fromkeys(("prompts.options", "prompts.columns", "prompts.mixture",
                         "prompts.derived", "eval.sets", "rewards", "advantages", "sft.fresh"),
                        "dict[str, Any]")
  lines = []
  for key, kind in sorted(rows.items()):
    if text := comments.get(key): lines += textwrap.wrap(text, 98, initial_indent="    # ",
                                                         subsequent_indent="    # ")
    lines += textwrap.wrap(f'    "{key}": {kind},', 100, subsequent_indent=" " * 8,
                           break_on_hyphens=False)
  return HEAD + "\n".join(lines) + "\n}, total=False)\n"


def test_the_file_is_up_to_date(request):
  text = write_keys()
  if request.config.getoption("--record"): PATH.write_text(text)
  assert PATH.read_text() == text, "run this test with --record"
  assert max(map(len, text.splitlines())) <= 100
  assert find_comments('''
def _part(): return dict(b=1)  # b
def declared():
  # Above
  # both.
  c.a = dict(  # Beside.
      x=1,  # x
      # y
      **_part(), z=_part())
''') == {"a": "Above both. Beside.", "a.x": "x", "a.b": "b", "a.z": "y", "a.z.b": "b"}


def test_the_functions_take_them():
  for call in (rlx.train, rlx.evaluate):
    changes = inspect.signature(call).parameters["changes"]
    assert changes.annotation == typing.Unpack[typed_keys.Keys] == typing.Unpack[rlx.Keys]


USES = """
import rlx
changes: rlx.Keys = {"steps": 20, "learner.optimizer.lr": 1e-4, "rollouts.stops": ("a",)}
rlx.train("quickstart", workdir="runs/a", **changes)
rlx.train("quickstart", seed=1, memory_check="off")
rlx.train("quickstart", **{"rewards.mine.coef": 0.5})  # type: ignore[arg-type]
def mine(scores_B): return scores_B
rlx.evaluate("quickstart", **rlx.Keys({"rewards.outcome.name": mine, "kl.kind": "k3"}))
"""
WRONG = [('{"learner.optimizer.lrr": 1e-4}', 'Extra key "learner.optimizer.lrr"'),
         ('{"steps": "20"}', '"steps" has type "int"'), ('{"kl.kind": "k9"}', '"kl.kind" has type')]


def test_mypy_takes_right_uses_and_refuses_wrong_ones(tmp_path):
  """Of the files that a user's file reads; the rest of rlx is left out."""
  uses = USES + "".join(f"wrong{i}: rlx.Keys = {text}\n" for i, (text, _) in enumerate(WRONG)) + (
      'rlx.train("quickstart", stepz=1)\nrlx.train("quickstart", steps="1")\n')
  (tmp_path / "uses.py").write_text(uses)
  done = subprocess.run(
      [sys.executable, "-m", "mypy", "--follow-imports=skip", "--config-file=",
       "--no-error-summary", f"--cache-dir={tmp_path / 'cache'}", "rlx/__init__.py", "rlx/api.py",
       PATH, tmp_path / "uses.py"], cwd=ROOT, capture_output=True, text=True, check=False)
  lines = [line for line in done.stdout.splitlines() if "error:" in line]
  wanted = [*(message for _, message in WRONG), 'Unexpected keyword argument "stepz"',
            'Argument "steps" to "train" has incompatible type "str"']
  assert len(lines) == len(wanted) and all(
      message in line for message, line in zip(wanted, lines)), done.stdout
