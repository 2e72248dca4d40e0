import dataclasses
import functools
import itertools
import pickle
import subprocess
import sys
import time

import numpy as np
import pytest

from rlx.core import records
from rlx.environments.zoo import calculator
from rlx.prompts import generated
from tests.environments import episode


def prompts(n=100, split="train", seed=0, **options):
  return list(calculator.prompts((dict(seed=seed, index=i, **options) for i in range(n)), split))


def play(prompt, replies, copies=False, **options):
  return episode.play(calculator.Calculator(**options), prompt, replies, copies)


@pytest.mark.parametrize("options", [
    dict(), dict(mixed=True), dict(n_min=1, n_max=6, ops="+*"), dict(digits=4, n_max=2)])
def test_an_expert_is_right(options):
  for prompt in prompts(**options):
    assert prompt.answer == str(eval(prompt.text[:-1]))  # Python has the same precedence.
    replies = calculator.expert(prompt, np.random.default_rng(0))
    steps = play(prompt, replies, calls=prompt.meta["operations"])
    assert len(steps) == len(replies) == prompt.meta["operations"] + 1
    assert [(s.reward, s.done) for s in steps] == [(None, False)] * len(steps[1:]) + [(1.0, True)]
    assert set(prompt.text + "".join(replies + [s.observation for s in steps])) <= set(
        calculator.ALPHABET)


def test_longest_texts():
  largest = dataclasses.replace(prompts(1)[0], text="99*99*99*99=", answer="96059601")
  replies = calculator.expert(largest, np.random.default_rng(0))
  observations = [s.observation for s in play(largest, replies)]
  assert {k: max(map(len, texts)) for k, texts in dict(
      prompt=[largest.text], reply=replies, observation=observations).items()} == calculator.LONGEST
  assert all(len(p.text) <= calculator.LONGEST["prompt"] for p in prompts())


@pytest.mark.parametrize("wrong_rate, low, high", [(0.2, 0.3, 0.6), (1.0, 0, 0)])
def test_a_wrong_expert_fails(wrong_rate, low, high):
  rewards, rng = [], np.random.default_rng(0)
  for prompt in prompts(200):
    replies = calculator.expert(prompt, rng, wrong_rate=wrong_rate)
    steps = play(prompt, replies)
    assert "err;" not in [s.observation for s in steps]
    assert steps[-1].reward == (replies[-1] == f"#{prompt.answer}")
    rewards.append(steps[-1].reward)
  assert low <= np.mean(rewards) <= high


@pytest.mark.parametrize("reply, observation", [
    ("[37*4]", "148;"), (" [5-12]\n", "-7;"), ("[-7*-3]", "21;"), ("[5--3]", "8;"),
    ("[007+1]", "8;"),
    (f"[{'9' * 14}*{'9' * 14}]", "9999999999999800000000000001;"),
    (f"[{'9' * 15}+1]", "err;"), ("[1+2+3]", "err;"), ("[1/2]", "err;"), ("[2**9]", "err;"),
    ("1+2", "err;"), ("[1+2", "err;"), ("[1+2]#3", "err;"),
    ("[1+2][3+4]", "err;"), ("[[1+2]+3]", "err;"), ("", "err;"),
    ("[1 + 2]", "err;"), ("[+1+2]", "err;"), ("[1.5+2]", "err;"), ("[١+٢]", "err;"),
    ("[a+1]", "err;")])
def test_calls(reply, observation):
  step, = play(prompts(1)[0], [reply])
  assert (step.observation, step.reward, step.done) == (observation, None, False)


def test_calls_over_the_budget_end_the_episode():
  prompt = prompts(1)[0]
  answer = f"#{prompt.answer}"
  steps = play(prompt, ["[1+1]", "what", "[1+2]", answer], calls=2)
  assert [(s.observation, s.reward, s.done, s.info) for s in steps] == [
      ("2;", None, False, dict(calls=1, right=0)), ("err;", None, False, dict(calls=2, right=0)),
      ("none left;", 0.0, True, dict(calls=2, right=0))]
  assert play(prompt, ["[1+1]", "what", answer], calls=2)[-1].reward == 1.0


def test_answers():
  prompt = prompts(1)[0]
  for reply, reward in [("#{}", 1), ("  # {} \n", 1), ("#{}0", 0), ("#-{}", 0), ("#0{}", 0),
                        ("#+{}", 0), ("##{}", 0), ("#", 0), ("#{}#{}", 0), ("#{}\n[1+1]", 0),
                        ("#{};", 0), ("#1 #{}", 0)]:
    step, = play(prompt, [reply.replace("{}", prompt.answer)])
    assert (step.reward, step.done) == (reward, True), reply


def question(text="37*4+85-12=", answer="221"):
  """A question of the training split, whose steps are (*, 148), (+, 233) and (-, 221)."""
  assert generated.split_of(text) == "train"
  return dataclasses.replace(prompts(1)[0], text=text, answer=answer)


@pytest.mark.parametrize("replies, rewards", [
    (["[37*4]", "[148+85]", "[233-12]", "#221"], [1/3, 1/3, 1/3, 1]),
    # Other numbers with the same result solve a step, another operation does not; each step once.
    (["[146+2]", "[4*37]", "[37*4]", "[200+33]", "#221"], [0, 1/3, 0, 1/3, 1]),
    (["what", "", "#1"], [0, 0, 0]), (["[37*4]"] * 5, [1/3, 0, 0, 0, 0])])
def test_rewards_of_calls(replies, rewards):
  steps = play(question(), replies, turn_rewards="calls")
  assert [s.reward for s in steps] == pytest.approx(rewards)
  assert [s.info["right"] for s in steps][-1] == (replies[-1] == "#221")


@pytest.mark.parametrize("replies, rewards", [
    # One call, which solves a step: 2 * 1 / 2. No step is left after three: 1 + 0.
    (["[37*4]", "[148+85]", "[233-12]", "#221"], [1, 1, 1, 1]),
    # Two steps with two calls 2 * 2 / 3, one with two 2 / 3, none with one 0.
    (["[37*4][148+85]", "[37*4]", "[233-12]", "#1"], [4/3, 0, 1, 1/2]),
    (["[37*4][1+1]", "#221"], [2/3, 1 + 2]), (["#221"], [1 + 3]), (["#220"], [0]),
    (["", "[37*4", "what", "[1+1][1+1][1+1]", "[37*4]"], [-.5, -.3, -.3, -.3, 0])])
def test_rewards_of_ftrl(replies, rewards):
  steps = play(question(), replies, turn_rewards="ftrl", at_once=2)
  assert [s.reward for s in steps] == pytest.approx(rewards)


@pytest.mark.parametrize("turn_rewards", ["calls", "ftrl"])
def test_held_out_questions_are_rewarded_for_the_answer_alone(turn_rewards):
  for prompt in prompts(20, "test"):
    replies = ["what", *calculator.expert(prompt, np.random.default_rng(0))]
    assert play(prompt, replies, turn_rewards=turn_rewards) == play(prompt, replies)


@pytest.mark.parametrize("reply, observation, calls", [
    ("[1+2][3*4]", "3;12;", 2), ("[1+2]", "3;", 1), ("[1+2][3*4][5-6]", "err;", 1),
    ("[1+2] [3*4]", "err;", 1), ("[1+2];3;[3*4]", "err;", 1), ("[1+2]" * 20_000, "err;", 1)])
def test_several_calls_at_once(reply, observation, calls):
  step, = play(prompts(1)[0], [reply], at_once=2)
  assert (step.observation, step.info["calls"], step.done) == (observation, calls, False)
  assert play(prompts(1)[0], ["[1+1]", "[1+2][3*4]"], at_once=2, calls=2)[-1].done


def test_parsed():
  prompt = prompts(1)[0]
  assert calculator.parsed(prompt, "[1+1]2;#2") == 1 and calculator.parsed(prompt, "xerr;#2") == 0


def test_overlap():
  prompt = records.Prompt(id="p", text="2*2=", answer="45")
  score = functools.partial(calculator.overlap, prompt)
  assert (score("[2*2]4;#45"), score("[2*2]45;"), score("#7"), score("#")) == (1, 0, 0, 0)
  # One of two characters, one of two pairs with one added: "4" and then another.
  assert score("[2*2]45;#46") == pytest.approx((1/2 * 1/2) ** (1/2))


def test_questions_depend_on_seed_and_index_alone():
  assert [p.text for p in prompts(3)] == ["97*20*46+31=", "83*42-47=", "26-12+16="]
  assert prompts() == prompts() and prompts() != prompts(seed=1)
  assert prompts(8)[3:] == list(calculator.prompts(
      (dict(seed=0, index=i) for i in range(3, 8)), "train"))


def test_splits_have_no_question_in_common():
  options = dict(n_max=2, digits=1, ops="+")
  train, test = ({p.text for p in prompts(1000, split, **options)} for split in ("train", "test"))
  assert len(train) > 300 and len(test) > 100 and not train & test


def test_copies_go_on():
  for prompt, turn_rewards in itertools.product(prompts(20), ("outcome", "calls", "ftrl")):
    replies = calculator.expert(prompt, np.random.default_rng(1), wrong_rate=0.3)
    replies, options = ["?", *replies], dict(turn_rewards=turn_rewards)
    assert play(prompt, replies, copies=True, **options) == play(prompt, replies, **options)
  environment = calculator.Calculator()
  environment.reset(prompt)
  assert len(pickle.dumps(environment)) < 500


HOSTILE = ["", " ", "\0", "[", "]", "[]", "#" * 100_000, "[" * 100_000, "[1+1]" * 20_000,
           "[" + "9" * 100_000 + "*" + "9" * 100_000 + "]", "[9**9**9**9]", "[2*-]", "[--1+1]",
           "[__import__('os').system('ls')]", "[open('/etc/passwd').read()+1]", "\ud800",
           "[１+１]",
           "[1+1];2;", "148;", "err;", "none left;", "[1+1]#{}", "[1+1];#{}", "{}", "x#{}", "#1#{}",
           "#{}#{}", "#{}\n#{}", "#{};\n", "=#{}", "<|im_end|>#{}", "＃{}", "#{}\0", "\u202e#{}"]


@pytest.mark.parametrize("reply", HOSTILE, ids=lambda x: ascii(x)[:20])
def test_hostile_replies_are_never_rewarded(reply):
  prompt = prompts(1)[0]
  for before in ([], ["[1+1]"], ["[1+1]"] * 4):
    start = time.process_time()
    step = play(prompt, [*before, reply.replace("{}", prompt.answer)])[-1]
    assert time.process_time() - start < 10
    assert not step.reward and step.done == (step.reward is not None)
    assert len(step.observation) <= 30 and set(step.observation) <= set(calculator.ALPHABET)


@pytest.mark.parametrize("options, message", [
    (dict(ops="/"), r"ops='/': one or more of \+-\*"), (dict(ops=""), "ops=''"),
    (dict(n_min=0), "n_min=0"), (dict(n_min=4), "n_max=3"), (dict(digits=4), "digits=4: .* 14"),
    (dict(digits=0), "digits=0"), (dict(split="dev"), "no split 'dev'")])
def test_wrong_options_are_refused(options, message):
  with pytest.raises(ValueError, match=message): calculator.generate(0, 0, **options)


@pytest.mark.parametrize("name, environment", [
    ("calculator", "Calculator"), ("search", "Search"), ("sql", "Sql")])
def test_an_episode_without_jax(name, environment):
  if name == "search": pytest.importorskip("bm25s")
  code = f"""
import sys, types
from rlx.environments.zoo import {name} as module
first = sorted(sys.modules)
import numpy as np
prompt = types.SimpleNamespace(**module.generate(0, 0))
environment = module.{environment}()
environment.reset(prompt)
for reply in module.expert(prompt, np.random.default_rng(0)): step = environment.step(reply)
heavy = {{"jax", "jaxlib", "flax", "ml_collections", "rlx.core.records"}}
print(step.reward, heavy & set(sys.modules), "bm25s" in first)"""
  out = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
  assert out.stdout.split("\n")[0] == "1.0 set() False"
