import itertools
import time
import types

import hypothesis
import pytest
from hypothesis import strategies as st

from rlx.verifiers import format as format_lib


def prompt(**options):
  return types.SimpleNamespace(meta=dict(format=options) if options else {})


@pytest.mark.parametrize("text, verdict", [
    ("<think>a</think>\n<answer>b</answer>\n", 1.0),
    ("<think></think><answer></answer>", 1.0),
    ("<answer>b</answer><think>a</think>", 0.0),            # Order.
    ("<think>a</think>", 0.0),
    ("<think>a<answer>b</answer></think>", 0.0),            # Nested.
    ("<think>a<answer>b</think></answer>", 0.0),            # Overlapping.
    ("<think><answer></think></answer>", 0.0),
    ("<think>a</think><answer>b</answer></answer>", 0.0),
    ("<think>a</think><answer>b<answer></answer>", 0.0),
    ("<think>a<think>b</think></think><answer>c</answer>", 0.0),
    ("</think>a<think><answer>b</answer>", 0.0),
    ("<think>a</think><think>a</think><answer>b</answer>", 0.0),
    ("x<think>a</think><answer>b</answer>", 0.0),
    ("<think>a</think>x<answer>b</answer>", 0.0),
    ("<think>a</think><answer>b</answer>x", 0.0),
    ("", 0.0),
    # In other spellings they are no tags of the form, and may not stand in a block.
    ("<Think>a</Think><answer>b</answer>", 0.0), ("< think>a</think><answer>b</answer>", 0.0),
    ("<think>a</think><answer id=1>b</answer>", 0.0), ("<think/><answer>b</answer>", 0.0),
    ("&lt;think&gt;a&lt;/think&gt;<answer>b</answer>", 0.0),
    ("<think>a</ think ></think><answer>b</answer>", 0.0),
    ("<think>a<ANSWER></think><answer>b</answer>", 0.0),
    ("<think>a</think><answer>b<think/></answer>", 0.0),
    ("<think>a</think><answer>b<answer\nx='1'></answer>", 0.0),
    ("<think>`</think>` ends it</think><answer>b</answer>", 0.0),  # In code, too.
    # What a block may hold.
    ("<think>&lt;answer&gt;</think><answer>b</answer>", 1.0),
    ("<think>if a <answer: pass</think><answer>3 < 4 > 2</answer>", 1.0),
    ("<think><thinking></think><answer><b>1</b></answer>", 1.0),
    ("<think>a\u200b</think> \u3000\t<answer>b</answer>", 1.0),
    ("<think>a</think>\u200b<answer>b</answer>", 0.0),             # No white space.
])
def test_tags(text, verdict):
  assert format_lib.tags(prompt(), text) == verdict


def test_tags_of_another_name():
  assert format_lib.tags(prompt(tags=["a"]), "<a>1</a>") == 1.0
  assert format_lib.tags(prompt(tags=["a"]), "<think>1</think><answer>2</answer>") == 0.0


def block_parser(text, names):
  """`tags` with an explicit state: whose block is open, which one is next."""
  is_open, wanted, i = False, list(names), 0
  while i < len(text):
    end = text.find(">", i)
    inside = text[i + 1:end].strip().lower() if text[i] == "<" and end > 0 else ""
    name = inside.strip("/").split()[0] if inside.strip("/").strip() else ""
    if name in names:
      if text[i:end + 1] != (f"</{wanted[0]}>" if is_open else f"<{(wanted or ['-'])[0]}>"):
        return 0.0
      if is_open: wanted.pop(0)
      is_open, i = not is_open, end + 1
    elif is_open or text[i].isspace():
      i += 1
    else:
      return 0.0
  return float(not is_open and not wanted)


def test_tags_agrees_with_a_parser():
  pieces = ["<think>", "</think>", "<answer>", "</answer>", "<Think>", "< answer>", "<answer/>",
            "</think >", "<think x>", "a", " ", "\n", "<b>", "&lt;", "/"]
  block = st.sampled_from(pieces)
  near = st.lists(block, max_size=2)
  seen = set()

  # Right completions with a few pieces put in or taken away.
  @hypothesis.settings(max_examples=1500, deadline=None, derandomize=True, database=None)
  @hypothesis.given(st.tuples(near, near, near, near, near), st.sets(st.integers(0, 3), max_size=1))
  def check(between, gone):
    tags = [[] if i in gone else [piece] for i, piece in enumerate(pieces[:4])]
    parts = itertools.chain.from_iterable(itertools.zip_longest(between, tags, fillvalue=()))
    text = "".join(itertools.chain.from_iterable(parts))
    verdict = format_lib.tags(prompt(), text)
    assert verdict == block_parser(text, ("think", "answer")), text
    seen.add(verdict)

  check()
  assert seen == {0.0, 1.0}


@pytest.mark.parametrize("part", ["<", "<think ", "< /", "<think>", "< ", "</think", " "])
def test_tags_takes_linear_time(part):
  start = time.monotonic()
  assert format_lib.tags(prompt(), part * 100_000) == 0.0
  assert format_lib.tags(prompt(), "<" + " " * 100_000 + part) == 0.0
  assert time.monotonic() - start < 2


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
