import types

import pytest

from rlx.verifiers import format as format_lib


def prompt(**options):
  return types.SimpleNamespace(meta=dict(format=options) if options else {})


@pytest.mark.parametrize("text, verdict", [
    ("<think>a</think>\n<answer>b</answer>\n", 1.0),
    ("<think></think><answer></answer>", 1.0),
    ("<answer>b</answer><think>a</think>", 0.0),            # Order.
    ("<think>a</think>", 0.0),
    ("<think>a<answer>b</answer></think>", 0.0),            # Nested.
    ("</think>a<think><answer>b</answer>", 0.0),
    ("<think>a</think><think>a</think><answer>b</answer>", 0.0),
    ("x<think>a</think><answer>b</answer>", 0.0),
    ("<think>a</think>x<answer>b</answer>", 0.0),
    ("<think>a</think><answer>b</answer>x", 0.0),
    ("", 0.0),
])
def test_tags(text, verdict):
  assert format_lib.tags(prompt(), text) == verdict


def test_tags_of_another_name():
  assert format_lib.tags(prompt(tags=["a"]), "<a>1</a>") == 1.0
  assert format_lib.tags(prompt(tags=["a"]), "<think>1</think><answer>2</answer>") == 0.0


@pytest.mark.parametrize("text, verdict", [
    (r"so \boxed{5}", 1.0), (r"\boxed{}", 0.0), (r"\boxed{5", 0.0), ("5", 0.0), ("", 0.0)])
def test_boxed(text, verdict):
  assert format_lib.boxed(prompt(), text) == verdict


def test_length():
  assert format_lib.length(prompt(max_chars=3), "abc") == 1.0
  assert format_lib.length(prompt(max_chars=3), "abcd") == 0.0
  assert format_lib.length(prompt(), "a" * 4096) == 1.0
  assert format_lib.length(prompt(), "a" * 4097) == 0.0
  assert format_lib.length(prompt(), "") == 0.0


@pytest.mark.parametrize("text, share", [
    ("plain text, 12 + 3", 1.0), ("abcд", 3 / 4), ("答案", 0.0), ("123 + 4", 0.0), ("", 0.0)])
def test_ascii_share(text, share):
  assert format_lib.ascii_share(prompt(), text) == share
