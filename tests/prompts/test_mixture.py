"""Counts by source follow the weights, and each source is a PromptIterator of its own."""
import collections
import json

import numpy as np
import pytest

from rlx.core import records
from rlx.prompts import iterator, mixture


def prompts(**sizes):
  """Prompts of sources of these sizes."""
  return [records.Prompt(id=f"{name}/{i}", text="", source=name)
          for name, n in sizes.items() for i in range(n)]


def make(weights=None, seed=1, **sizes):
  return mixture.Mixture(prompts(**sizes or dict(a=5, b=40, c=12)), weights, seed=seed)


def ids(taken):
  return [p.id for p in taken]


def _weights():
  draw = np.random.default_rng(0)
  yield from ({"a": 1.0}, dict(a=0.7, b=0.3), dict(a=1, b=1, c=1), dict(a=1e-6, b=1, c=1e6))
  for i in range(40):
    n = int(draw.integers(2, 9))
    w = draw.dirichlet(np.full(n, [0.3, 1, 10][i % 3])) if i % 2 else draw.integers(1, 9, n)
    yield {f"s{j}": max(float(x), 1e-9) for j, x in enumerate(w)}


@pytest.mark.parametrize("weights", list(_weights()), ids=lambda w: str(len(w)))
def test_counts_follow_the_weights_at_every_prefix(weights):
  total, zero = sum(weights.values()), dict.fromkeys(weights, 0)
  order = mixture.choose_sources(weights, zero, 500, dict.fromkeys(weights, 500))
  counts, most = collections.Counter(), 1 - 1 / max(2 * len(weights) - 2, 1)
  for n, name in enumerate(order, 1):
    counts[name] += 1
    for s, w in weights.items(): assert abs(counts[s] - w / total * n) <= most + 1e-9
  # In parts it is the same, because it depends on the counts alone.
  first = mixture.choose_sources(weights, zero, 123, dict.fromkeys(weights, 500))
  done = zero | collections.Counter(first)
  assert first + mixture.choose_sources(weights, done, 377, dict.fromkeys(weights, 500)) == order


def test_what_a_source_lacks_comes_first_once_it_has_prompts():
  weights, none = dict(a=0.5, b=0.5), dict(a=0, b=0)
  assert mixture.choose_sources(weights, none, 6, dict(a=2, b=9)) == list("abab" "bb")
  assert mixture.choose_sources(weights, dict(a=2, b=4), 4, dict(a=9, b=9)) == list("aa" "ab")
  with pytest.raises(ValueError, match="4 asked for, 3 left"):
    mixture.choose_sources(weights, none, 4, dict(a=2, b=1))


def test_draws_follow_the_weights_and_take_the_prompts_of_a_source_equally_often():
  it, counts, seen = make(dict(a=0.2, b=0.3, c=0.5)), collections.Counter(), collections.Counter()
  for n in range(1, 60):
    drawn = it.take(8)
    assert len(set(ids(drawn))) == 8
    counts.update(p.source for p in drawn)
    seen.update(ids(drawn))
    for name, w in dict(a=0.2, b=0.3, c=0.5).items(): assert abs(counts[name] - 8 * n * w) <= 0.75
  epochs = {}
  for name, size in dict(a=5, b=40, c=12).items():
    times = [seen[f"{name}/{i}"] for i in range(size)]
    assert max(times) - min(times) <= 1
    epochs[name] = min(times)
  assert epochs == dict(a=18, b=3, c=19)


def test_without_weights_sources_count_by_their_prompts():
  taken = make().take(57)
  assert collections.Counter(p.source for p in taken) == dict(a=5, b=40, c=12)
  assert len(set(ids(taken))) == 57
  counts = collections.Counter(p.source for p in make().take(19))  # A third.
  for name, size in dict(a=5, b=40, c=12).items(): assert abs(counts[name] - size / 3) <= 0.75


def test_the_seed_decides():
  assert ids(make().take(30)) == ids(make().take(30)) != ids(make(seed=2).take(30))
  both = ids(make(dict(a=1, b=1), a=9, b=9).take(18))  # Not the same order in both.
  assert [i[1:] for i in both if i[0] == "a"] != [i[1:] for i in both if i[0] == "b"]


def test_ids_to_skip_and_those_that_are_in_use():
  it = make(dict(a=0.5, b=0.5), a=3, b=9)
  for i in range(3):
    skip = {f"a/{i}", f"b/{i}"}
    left = ids(make(dict(a=0.5, b=0.5), a=3, b=9).take(10, skip=iter([*skip, "other"])))
    assert set(left) == {p.id for p in it.all()} - skip
  drawn = it.take(6, skip=["a/0", "a/1", "a/2"])
  assert {p.source for p in drawn} == {"b"}
  assert [p.source for p in it.take(4)].count("a") == 3  # It lacks 3 of them.
  with pytest.raises(ValueError, match="12 different ones asked for, there are 12 and 1 are"):
    it.take(12, skip=["b/0"])
  assert ids(it.by_id(["b/3", "a/1"])) == ["b/3", "a/1"] and len(it.all()) == 12
  with pytest.raises(ValueError, match="no prompt has the id 'c/0'"): it.by_id(["c/0"])


def test_the_first_ones_do_not_depend_on_what_was_taken():
  it = make()
  it.take(20)
  assert ids(it.first(11)) == ids(make().take(11))


def test_both_wordings_of_a_question_stay_together():
  pairs = [records.Prompt(id=f"{s}/{i}", text="", source=s, meta=dict(pair=f"{s}/{i ^ 1}"))
           for s in "ab" for i in range(8)]
  it = mixture.Mixture(pairs, dict(a=0.75, b=0.25), seed=0, paired=True)
  drawn = it.take(8)
  assert [p.meta["pair"] for p in drawn[::2]] == ids(drawn[1::2])
  assert [p.source for p in drawn[::2]] == list("aaba")
  with pytest.raises(ValueError, match="no multiple of 2 wordings"): it.take(3)


@pytest.mark.parametrize("before", [0, 3, 10, 23])
def test_restoring_continues_identically(before):
  it, weights = make(w := dict(a=0.15, b=0.35, c=0.5)), w
  for i in range(before): it.take(4, skip=["a/0", f"c/{i % 12}"])
  state = json.loads(json.dumps(it.state(), sort_keys=True))  # As it comes back from a checkpoint.
  other = make(weights)
  other.take(9)
  other.restore(state)
  for n in (4, 7, 1, 10, 5) * 3: assert ids(it.take(n)) == ids(other.take(n))
  assert other.state() == it.state()


def test_restore_refuses_other_prompts_and_other_weights():
  one = prompts(a=5, b=40, c=12)
  state, plain = make().state(), iterator.PromptIterator(one, seed=1)
  for it, message in ((make(seed=2), "seed is 2 but was 1"),
                      (make(a=5, b=40), "weights is {'a': 5, 'b': 40} but was"),
                      (make(dict(a=1, b=2, c=1)), "weights is {'a': 1, 'b': 2, 'c': 1} but was")):
    with pytest.raises(ValueError, match=message): it.restore(state)
  with pytest.raises(ValueError, match="weights is {.* but was None in the"):
    make().restore(plain.state())
  with pytest.raises(ValueError, match="weights is None but was {'a': 5,"): plain.restore(state)


def test_the_state_of_an_earlier_version_is_restored():
  """Of one source: it has no entry `weights`."""
  it = iterator.PromptIterator(prompts(a=10), seed=1)
  state = dict(seed=1, epoch=1, position=3, waiting=[2], count=10, ids=it.state()["ids"])
  it.restore(json.loads(json.dumps(state)))
  assert it.state() == state and it.take(1)[0].id == "a/2"
