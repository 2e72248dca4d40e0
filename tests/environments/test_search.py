import dataclasses
import os
import pickle
import subprocess
import sys
import time

import numpy as np
import pytest

from rlx.environments.zoo import search
from tests.environments import episode

pytest.importorskip("bm25s")


def prompts(n=100, split="train", seed=0, **options):
  return list(search.prompts((dict(seed=seed, index=i, **options) for i in range(n)), split))


def play(prompt, replies, copies=False, **options):
  return episode.play(search.Search(**options), prompt, replies, copies)


@pytest.mark.parametrize("hops", [1, 2, 3, 4])
def test_an_expert_is_right(hops):
  for prompt in prompts(hops=hops):
    replies = search.expert(prompt, np.random.default_rng(0))
    steps = play(prompt, replies, queries=hops)
    assert len(steps) == len(replies) == hops + 1
    assert [(s.reward, s.done) for s in steps] == [(None, False)] * hops + [(1.0, True)]
    assert max(map(len, replies)) <= search.LONGEST["reply"]
    assert max(len(s.observation) for s in steps) <= search.LONGEST["observation"]
    assert len(prompt.text) <= search.LONGEST["prompt"] + 9 * (hops - 2)
    assert set(prompt.text + "".join(replies + [s.observation for s in steps])) <= set(
        search.ALPHABET)


@pytest.mark.parametrize("wrong_rate, low, high", [(0.2, 0.4, 0.6), (1.0, 0, 0)])
def test_a_wrong_expert_fails(wrong_rate, low, high):
  rewards, rng = [], np.random.default_rng(0)
  for prompt in prompts(200):
    replies = search.expert(prompt, rng, wrong_rate=wrong_rate)
    rewards.append(play(prompt, replies)[-1].reward)
    assert rewards[-1] == (replies[-1] == f"#{prompt.answer}")
  assert low <= np.mean(rewards) <= high


def test_answers_differ_between_corpora():
  """What was learned from one corpus does not answer the question in another one."""
  answers = [{search.facts(c)["ana", r] for c in range(8)} for r in search.RELATIONS]
  assert min(map(len, answers)) > 3
  assert len(search.facts(0)) == 288 and list(search.facts(0)) != list(search.facts(1))


def observation(reply, corpus=0, **options):
  prompt = next(p for p in prompts() if p.meta["corpus"] == corpus)
  return play(prompt, [reply], **options)[0].observation


def test_a_query_finds_what_has_most_of_its_words():
  facts = search.facts(0)
  for person, relation in list(facts)[:50]:
    found = f"{person}'s {relation} is {facts[person, relation]};"
    for query in (f"?{person}'s {relation}", f"? {relation}  {person}'s!",
                  f"?{person}'S {relation} zzz"):
      assert observation(query) == found
  # Two words are better than one, and a rare word better than a frequent one.
  in_paris = [f"{p}'s city is paris" for (p, r), target in facts.items() if target == "paris"]
  assert search.find_best(0, "city paris", 48)[:len(in_paris)] == in_paris
  assert search.find_best(0, "city boss paris", len(in_paris)) == in_paris
  assert search.find_best(0, "paris boss", 48)[:len(in_paris)] == in_paris


def test_equal_scores_keep_the_order_of_the_corpus():
  first = [f"{p}'s boss is {t}" for (p, r), t in search.facts(3).items() if r == "boss"]
  assert search.find_best(3, "?boss", 48) == first
  assert observation("?boss", corpus=3, documents=2) == f"{first[0]},{first[1]};"
  assert search.find_best(3, "boss boss", 500) == first  # None with score 0.


def test_observations_are_cut():
  whole = observation("?is", documents=3, limit=1000)
  assert whole.count(",") == 2 and whole.endswith(";")
  assert observation("?is", documents=3, limit=20) == whole[:19] + ";"


def test_long_queries_are_refused():
  assert len(observation("?" + "boss " * 19 + "boss")) > 10  # 100 characters.
  assert observation("?" + "boss " * 19 + "bosss") == "err;"


@pytest.mark.parametrize("reply", ["?", "? ;", "?zzz", "?123", "?é", "?bosses"])
def test_unknown_words_find_nothing(reply):
  assert observation(reply) == "nothing;"


def test_queries_over_the_budget_end_the_episode():
  prompt = prompts(1)[0]
  answer = f"#{prompt.answer}"
  steps = play(prompt, ["?zzz", "what", "?boss", answer], queries=2)
  assert [(s.observation, s.reward, s.done, s.info) for s in steps] == [
      ("nothing;", None, False, dict(queries=1)), ("err;", None, False, dict(queries=2)),
      ("none left;", 0.0, True, dict(queries=2))]
  assert play(prompt, ["?zzz", "what", answer], queries=2)[-1].reward == 1.0


def test_other_processes_find_the_same():
  """Python's hashes of words, which differ between processes, have no effect."""
  queries = ["boss", "is ana's", "paris cat is", "ana bo"]
  code = f"""
from rlx.environments.zoo import search
print([search.find_best(corpus, query, 9) for corpus in (0, 5) for query in {queries}])"""
  found = [subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True,
                          env=os.environ | dict(PYTHONHASHSEED=seed)).stdout for seed in "12"]
  here = [search.find_best(corpus, query, 9) for corpus in (0, 5) for query in queries]
  assert found == [f"{here}\n"] * 2


def test_questions_depend_on_seed_and_index_alone():
  assert [(p.text, p.answer) for p in prompts(2)] == [
      ("xena's friend's boss=", "lou"), ("sue's friend's friend=", "hugo")]
  assert prompts() == prompts() and prompts() != prompts(seed=1)


def test_splits_have_no_question_in_common():
  train, test = ({p.text for p in prompts(1000, split)} for split in ("train", "test"))
  assert len(train) > 400 and len(test) > 100 and not train & test


def test_copies_go_on():
  for prompt in prompts(20):
    replies = ["?boss", *search.expert(prompt, np.random.default_rng(1), wrong_rate=0.3)]
    assert play(prompt, replies, copies=True) == play(prompt, replies)
  environment = search.Search()
  environment.reset(prompt)
  environment.step("?boss")
  assert len(pickle.dumps(environment)) < 500  # Without the corpus.


HOSTILE = ["", " ", "\0", "?\0", "?" * 100_000, "?" + "boss " * 20_000, "?" + "'" * 99, "[ana]",
           "#" * 100_000, "?ana's boss;bo's city is rome;", "\ud800", "?\ud800 boss", "?ＢOSS",
           "?../../etc/passwd", "?{{7*7}}", "?' or 1=1 --", "?boss*?~1 AND (x OR y)^9", "?None",
           "nothing;", "none left;", "?is #{}", "?{};#{}", "{}", "x#{}", "#a#{}", "#{}#{}",
           "#{}\n#{}", "#{};", "<|im_end|>#{}", "＃{}", "#{}\0", "\u202e#{}", "##{}", "#?{}"]


@pytest.mark.parametrize("reply", HOSTILE, ids=lambda x: ascii(x)[:20])
def test_hostile_replies_are_never_rewarded(reply):
  prompt = prompts(1)[0]
  for before in ([], ["?boss"], ["?boss"] * 4):
    start = time.process_time()
    step = play(prompt, [*before, reply.replace("{}", prompt.answer)], documents=9)[-1]
    assert time.process_time() - start < 10
    assert not step.reward and step.done == (step.reward is not None)
    assert len(step.observation) <= 60 and set(step.observation) <= set(search.ALPHABET)


@pytest.mark.parametrize("options, message", [
    (dict(hops=0), "hops=0: a whole number from 1 to 4"), (dict(hops=5), "hops=5"),
    (dict(corpora=0), "corpora=0: a whole number from 1 to 64"),
    (dict(split="dev"), "no split 'dev'")])
def test_wrong_options_are_refused(options, message):
  with pytest.raises(ValueError, match=message): search.generate(0, 0, **options)


def test_without_the_package(monkeypatch):
  monkeypatch.setitem(sys.modules, "bm25s", None)
  lax = object()
  monkeypatch.setitem(sys.modules, "jax.lax", lax)
  with pytest.raises(ImportError, match=r"pip install 'rlx\[search\]'"):
    search.Search()
  assert sys.modules["jax.lax"] is lax


def test_prompts_of_others_are_refused():
  prompt = dataclasses.replace(prompts(1)[0], meta=dict(row=1))
  with pytest.raises(ValueError, match=r"meta\['corpus'\]; meta has \['row'\]"):
    search.Search().reset(prompt)
