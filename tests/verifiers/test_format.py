import itertools
import time
import types

import hypothesis
import pytest
from hypothesis import strategies as st

from rlx.verifiers import format as format_lib


PROMPT = types.SimpleNamespace(meta={})


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
  @hypothesis.settings(max_examples=500, deadline=None, derandomize=True, database=None)
  @hypothesis.given(st.tuples(near, near, near, near, near), st.sets(st.integers(0, 3), max_size=1))
  def check(between, gone):
    tags = [[] if i in gone else [piece] for i, piece in enumerate(pieces[:4])]
    parts = itertools.chain.from_iterable(itertools.zip_longest(between, tags, fillvalue=()))
    text = "".join(itertools.chain.from_iterable(parts))
    verdict = format_lib.tags(PROMPT, text)
    assert verdict == block_parser(text, ("think", "answer")), text
    seen.add(verdict)

  check()
  assert seen == {0.0, 1.0}


@pytest.mark.parametrize("part", ["<", "<think ", "< /", "<think>", "< ", "</think", " "])
def test_tags_takes_linear_time(part):
  start = time.monotonic()
  assert format_lib.tags(PROMPT, part * 100_000) == 0.0
  assert format_lib.tags(PROMPT, "<" + " " * 100_000 + part) == 0.0
  assert time.monotonic() - start < 2
