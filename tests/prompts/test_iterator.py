import collections
import json
import types

import pytest

from rlx.prompts import iterator


def prompts(n, prefix="p"):
  return [types.SimpleNamespace(id=f"{prefix}{i}") for i in range(n)]


def ids(prompts):
  return [p.id for p in prompts]


def make(n=10, seed=1):
  return iterator.PromptIterator(prompts(n), seed=seed)


def test_an_epoch_is_a_permutation_and_every_epoch_another():
  it = make()
  first, second = ids(it.take(10)), ids(it.take(10))
  everything = ids(prompts(10))
  assert sorted(first) == sorted(second) == everything
  assert first != second and first != everything
  assert ids(make().take(10)) == first
  assert ids(make(seed=2).take(10)) != first


def test_draws_cross_the_end_of_an_epoch_without_loss_or_repeats():
  it, counts = make(), collections.Counter()
  for _ in range(100):
    draw = ids(it.take(7))
    assert len(set(draw)) == 7
    counts.update(draw)
  # 700 turns over 10 prompts; one of a prompt may be waiting.
  assert max(counts.values()) - min(counts.values()) <= 2


def test_a_prompt_that_waits_comes_first_in_the_next_draw():
  it = make()
  first = ids(it.take(10))
  skipped = ids(it.take(8, skip=first[:2]))
  assert not set(skipped) & set(first[:2])
  waiting = [i for i in it.state()["waiting"]]
  assert waiting
  assert ids(it.take(len(waiting))) == [f"p{i}" for i in waiting]


@pytest.mark.parametrize("before", [0, 3, 10, 23])
def test_restoring_continues_identically(before):
  it = make()
  for _ in range(before): it.take(4, skip=["p0"])
  state = json.loads(json.dumps(it.state()))  # As it comes back from a checkpoint.
  other = make()
  other.take(9)
  other.restore(state)
  for n in (4, 7, 1, 10, 5): assert ids(it.take(n)) == ids(other.take(n))


def test_restore_refuses_other_data():
  state = make().state()
  with pytest.raises(ValueError, match="seed is 2 but was 1"):
    make(seed=2).restore(state)
  with pytest.raises(ValueError, match="count is 9 but was 10"):
    make(9).restore(state)
  with pytest.raises(ValueError, match="ids is"):
    iterator.PromptIterator(prompts(10, "q"), seed=1).restore(state)


def test_by_id():
  it = make()
  assert ids(it.by_id(["p3", "p1"])) == ["p3", "p1"]
  with pytest.raises(ValueError, match="no prompt has the id 'q1'"):
    it.by_id(["q1"])


def test_refuses_more_than_there_is():
  assert len(make().take(8, skip=["p1", "p2", "unknown"])) == 8
  with pytest.raises(ValueError, match="9 different ones asked for, there are 10 and 2"):
    make().take(9, skip=["p1", "p2"])
  with pytest.raises(ValueError, match="3 prompts have 2 different ids"):
    iterator.PromptIterator(prompts(2) + prompts(1), seed=0)
  with pytest.raises(ValueError, match="0 prompts"):
    iterator.PromptIterator([], seed=0)


def pairs(n):
  return [types.SimpleNamespace(id=f"p{i}", meta=dict(pair=f"p{i ^ 1}")) for i in range(n)]


def paired(prompts):
  return iterator.PromptIterator(prompts, seed=1, paired=True)


def test_pairs_are_taken_together():
  it, other, seen = paired(pairs(12)), paired(pairs(12)), collections.Counter()
  for _ in range(3):
    drawn = ids(it.take(8))
    assert [f"p{int(i[1:]) ^ 1}" for i in drawn[::2]] == drawn[1::2] and len(set(drawn)) == 8
    seen.update(drawn)
  assert len(seen) == 12 and set(seen.values()) == {2}
  other.restore(json.loads(json.dumps(it.state())))
  assert ids(other.take(4)) == ids(it.take(4)) and ids(it.by_id(["p3"])) == ["p3"]
  assert ids(it.first(4)) == ids(paired(pairs(12)).take(4))
  assert not {"p0", "p1"} & set(ids(it.take(10, skip=["p1"])))


@pytest.mark.parametrize("prompts, n, message", [
    (pairs(3), 2, r"prompts.paired=True: 'p2' has no other wording"),
    ([types.SimpleNamespace(id="p0", meta={})], 2, "'p0' has no other"),
    (pairs(4), 3, "3 prompts are no multiple of 2 wordings"),
    (pairs(4), 6, "6 different ones asked for, there are 4 and 0")])
def test_pairs_refuse(prompts, n, message):
  with pytest.raises(ValueError, match=message):
    paired(prompts).take(n)
