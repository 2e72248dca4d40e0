r"""Checks of a completion by programs that its prompt has, in the sandbox of code_tests.

  {"question": "...", "answer": "...", "items": [
    {"name": "short", "weight": 2, "code": "def check(text):\n  return len(text.split()) < 80"},
    {"name": "a list", "code": "def check(text):\n  return text.lstrip().startswith('- ')"}]}

A program defines `check`, which gets the completion behind its thoughts and returns True where it
passes. One that fails, is too slow or returns something else has not passed. Programs are as
untrusted as those of completions: they run with the same limits (`verifier.test_s`, `.test_mb`),
and share 0.8 `verifier.timeout_s`.
"""
import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rlx.verifiers import _test_forms, code_tests, errors, items as items_lib, thoughts
from rlx.verifiers.sandbox import sandbox

if TYPE_CHECKING: from rlx.core import records


def items(prompt: "records.Prompt", text: str) -> list[float]:
  """Returns for each program of prompt.meta["items"] whether the completion passes it.

  Source: the checks of style of RLVRR, Jiang et al. 2026, arXiv:2601.18533, in its released code
  (YJiangcm/RLVRR, reward_fn.py) sum_j w_j check_j(y), which `rewards.items.weighted` with kind=sum
  gives. Differs from the code: there they run in the trainer's process.
  """
  if problem := _describe(prompt): raise errors.Unknown(problem)
  options = code_tests.OPTIONS | prompt.meta.get("code", {})
  rows, answer = items_lib.get_rows(prompt) or (), thoughts.behind(text, prompt)
  tests, _ = _test_forms.read_tests(dict(
      tests=dict(fn_name="check", inputs=[[answer]], outputs=[True])))
  return [float(all(sandbox.verdicts(
      row["code"], tests, cpu_s=options["test_s"], total_s=options["total_s"] / len(rows),
      memory_mb=options["test_mb"], unsafe=options["unsafe"]))) for row in rows]


def share(prompt: "records.Prompt", text: str) -> float:
  """Returns the weighted share of the programs that the completion passes."""
  return items_lib.average(items_lib.read(prompt, items(prompt, text)))


def inspect(prompts: Sequence["records.Prompt"], unsafe: bool = False) -> list[tuple]:
  """[(why a completion cannot be checked, or None; None)] of prompts. Nothing is run."""
  del unsafe
  return [(_describe(p), None) for p in prompts]


for _fn in (items, share):
  vars(_fn).update(inspect=inspect, state=lambda prompt: prompt.answer or None)
vars(items)["count_items"] = lambda prompt: len(items_lib.get_rows(prompt) or ())


def _describe(prompt):
  rows = items_lib.get_rows(prompt)
  if not rows or not items_lib.are_rows(rows):
    return "its items are no list of dicts with `code`, a program that defines check(text)"
  for row in rows:
    try:
      parts = ast.parse(row["code"]).body
    except (KeyError, TypeError, ValueError, SyntaxError, RecursionError, MemoryError) as e:
      return f"item {row.get('name')!r:.40}: `code` cannot be read: {type(e).__name__}: {e!s:.80}"
    if not any(getattr(x, "name", None) == "check" for x in parts):
      return f"item {row.get('name')!r:.40}: `code` defines no check(text): {row['code']!r:.60}"
  return None
