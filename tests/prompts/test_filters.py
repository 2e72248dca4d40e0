import logging
import types

import pytest

from rlx.core import records
from rlx.prompts import filters


def prompts(*texts):
  return [types.SimpleNamespace(id=str(i), text=t, source="") for i, t in enumerate(texts)]


def text(prompt):
  return prompt.text


def ids(prompts):
  return [p.id for p in prompts]


@pytest.fixture
def log(caplog):
  caplog.set_level(logging.WARNING, "absl")
  return caplog


def test_by_length_drops_and_counts(log):
  kept = filters.drop_longer(prompts("abc", "abcd", "a"), lambda p: len(p.text), 3)
  assert ids(kept) == ["0", "2"]
  assert "1 of 3 prompts dropped: longer than prompts.max_tokens=3." in log.text


def test_by_length_refuses_to_drop_all():
  with pytest.raises(ValueError, match="prompts.max_tokens=2: all 2 .* has 3 tokens"):
    filters.drop_longer(prompts("abc", "abcd"), lambda p: len(p.text), 2)
  assert filters.drop_longer([], len, 2) == []


def test_unique_keeps_the_first(log):
  assert ids(filters.drop_duplicates(prompts("a b", "c", "a  b\n", "A b"), text)) == ["0", "1", "3"]
  assert "1 of 4 prompts dropped: duplicates." in log.text


def test_unique_keeps_episodes_that_differ_in_what_is_hidden(log):
  same = [dict(text="a", answer="1", meta=dict(seed=1, rows=2)),
          dict(text="a ", answer="1", meta=dict(rows=2, seed=1)),
          dict(text="a", answer="2", meta=dict(seed=1, rows=2)),
          dict(text="a", answer="1", meta=dict(seed=2, rows=2))]
  made = [records.Prompt(id=str(i), **fields) for i, fields in enumerate(same)]
  assert ids(filters.drop_duplicates(made, text, is_episode=True)) == ["0", "2", "3"]
  assert ids(filters.drop_duplicates(made, text, has_target=True)) == ["0", "2"]
  assert ids(filters.drop_duplicates(made, text)) == ["0"]


def test_not_in_drops_what_is_evaluated(log):
  kept = filters.drop_held_out(prompts("a b", "c", "d"), prompts("a  b", "x"), text)
  assert ids(kept) == ["1", "2"]
  assert "1 of 3 prompts dropped: also in the evaluation split." in log.text
  with pytest.raises(ValueError, match="all 1 training prompts are also in eval.split"):
    filters.drop_held_out(prompts("c"), prompts("c"), text)


def test_nothing_dropped_is_not_mentioned(log):
  filters.drop_duplicates(prompts("a", "b"), text)
  assert not log.text
