"""Episodes against brute force: full forward passes over the whole dialogue, a token at a time."""
import functools
import random

import jax
import numpy as np
import pytest

from rlx.core import records, rng
from rlx.rollouts import episodes, padding, sampler
from tests.rollouts import test_sampler
from tests.rollouts.test_sampler import CONFIG, EOS, IDS, PAD, PROMPTS, params  # pylint: disable=unused-import

T, TURN, TURNS, GROUP, STEP = 20, 5, 4, 2, 3
STOP = "10,10"
ROWS = len(PROMPTS) * GROUP


def _answer(row, ids):
  """An environment whose answers depend on the action alone: of 0 to 17 tokens, or the end."""
  draw = random.Random(str((row, ids)))
  reward = draw.choice([float("nan"), 0.0, 1.0])
  kind = draw.random()
  if kind < 0.1: return episodes.Answer(None, reward)
  if kind < 0.2: return episodes.Answer([], reward, is_known=False)
  length = draw.choice([0, 1, 2, 3, 17])
  return episodes.Answer([draw.randrange(1, 11) for _ in range(length)], reward)


class Answers:
  """Answers of which those can be taken that were asked for and not taken yet."""

  def __init__(self): self.waiting, self.actions = {}, []

  def submit(self, row, ids):
    self.actions.append((row, ids))
    self.waiting[row] = _answer(row, ids)

  def take(self, rows):
    return [(row, self.waiting.pop(row)) for row in rows]


@functools.cache
def _sampler(**options):
  return episodes.make(CONFIG, **dict(
      group=GROUP, max_tokens=T, turn_tokens=TURN, turns=TURNS, answer_tokens=17, chunk=4,
      eos_ids=(EOS,), pad_id=PAD, decode=lambda ids: ",".join(map(str, ids)) + ",") | options)


def _sample(params, answers=None, width=5, most_P=None, **options):
  tokens, lengths = padding.pad_left(PROMPTS, width, PAD)
  return _sampler(**options)(params, tokens, lengths, IDS, rng.key(0, "sample", STEP),
                             answers or Answers(), None, None, most_P)


@functools.cache
def _next_token(**rule):
  return test_sampler._next_by_forward(**dict(temperature=1.0) | rule)


def _by_hand(params, p, g, stops=(), stop_ids=(), most=T, **rule):
  """(ids, turns, log-probs, rewards, finish) of an episode, without any cache."""
  key = jax.random.fold_in(jax.random.fold_in(rng.key(0, "sample", STEP), IDS[p]), g)
  row, ids, turns, logps, rewards = PROMPTS[p], [], [], [], []
  for turn in range(TURNS):
    action, finish = [], None
    while finish is None:
      tokens_1S = np.zeros((1, 28), np.int32)
      n = len(row) + len(ids)
      tokens_1S[0, :n] = row + ids
      token, logp = _next_token(**rule)(params, tokens_1S, n, jax.random.fold_in(key, len(ids)))
      action.append(int(token[0]))
      ids, turns, logps = ids + action[-1:], turns + [turn], logps + [float(logp[0])]
      rewards.append(np.nan)
      text = "".join(f"{i}," for i in action)
      if any(stop in text for stop in stops): finish = "stop"
      elif action[-1] == EOS: finish = "eos"
      elif action[-1] in stop_ids: finish = "stop"
      elif len(ids) == most: return ids, turns, logps, rewards, "length"
      elif len(action) == TURN: finish = "length"
    answer = _answer(p * GROUP + g, action)
    rewards[-1] = answer.reward
    if not answer.is_known: return ids, turns, logps, rewards, "environment"
    if answer.ids is None: return ids, turns, logps, rewards, finish
    n = len(answer.ids)
    if turn + 1 == TURNS or len(ids) + n >= most: return ids, turns, logps, rewards, "length"
    ids, turns = ids + answer.ids, turns + [-1] * n
    logps, rewards = logps + [0.0] * n, rewards + [np.nan] * n
  raise AssertionError


@pytest.mark.parametrize("rule, stops, options, most", [
    ({}, (), {}, (T, T, T)), ({}, (STOP,), dict(slots=2), (T, T, T)),
    (dict(temperature=0.7, top_k=3), (), dict(slots=4, chunk=T), (T, T, T)),
    ({}, (), dict(stop_ids=(3, 7)), (8, T, 1)), ({}, (), dict(slots=2, stop_ids=(2,)), (3, 14, T))],
                         ids=["plain", "stops", "moving", "limits", "limits, moving"])
def test_equals_full_forward_passes(params, rule, stops, options, most):
  answers = Answers()
  out = _sample(params, answers, **rule, stops=stops, keeps=True, **options,
                most_P=np.array(most, np.int32))
  test_sampler.compare_with_trainer(params, out, **rule)
  seen = set()
  for p in range(len(PROMPTS)):
    for g in range(GROUP):
      b = p * GROUP + g
      ids, turns, logps, rewards, finish = _by_hand(
          params, p, g, stops, options.get("stop_ids", ()), most[p], **rule)
      n = out.completion_len_B[b]
      assert out.completions_BT[b, :n].tolist() == ids
      assert out.turn_BT[b, :n].tolist() == turns and (out.turn_BT[b, n:] == -1).all()
      np.testing.assert_allclose(out.sampler_logps_BT[b, :n], logps, atol=2e-5)
      np.testing.assert_array_equal(out.turn_rewards_BT[b, :n], rewards)
      assert records.FINISH[out.finish_B[b]] == finish
      assert (out.completions_BT[b, n:] == PAD).all()
      seen |= {("turns", max(turns)), finish}
  assert len(seen) > 2 + (min(most) == T)  # Episodes of several lengths and ends.


@pytest.mark.parametrize("change", [
    dict(slots=2), dict(slots=4, chunk=2, width=9), dict(overlap=0.0), dict(overlap=0.9)], ids=str)
def test_results_do_not_depend_on_slots_or_on_how_many_rows_wait(params, change):
  base, other = _sample(params), _sample(params, **change)
  for name in ("completions_BT", "turn_BT", "turn_rewards_BT", "completion_len_B", "finish_B"):
    np.testing.assert_array_equal(getattr(base, name), getattr(other, name), err_msg=name)
  np.testing.assert_allclose(base.sampler_logps_BT, other.sampler_logps_BT, atol=2e-5)


@pytest.mark.parametrize("overlap", [0.0, 0.5, 0.9])
def test_rows_that_wait(params, overlap):
  """As many as may wait do, the answers of those that have waited longest are taken first."""
  class Watched(Answers):
    most = 0
    def submit(self, row, ids):
      super().submit(row, ids)
      self.most = max(self.most, len(self.waiting))
    def take(self, rows):
      assert rows == list(self.waiting)[:len(rows)]  # In the order in which they have ended.
      return super().take(rows)
  answers = Watched()
  _sample(params, answers, overlap=overlap)
  assert answers.most >= overlap * ROWS and not answers.waiting


def test_results_do_not_depend_on_how_much_of_the_history_is_read(params, monkeypatch):
  base, read = _sample(params), set()
  monkeypatch.setattr(episodes, "_SHORT", 4)
  advance = episodes._advance
  monkeypatch.setattr(episodes, "_advance", lambda *args, width, **static: (
      read.add(width), advance(*args, width=width, **static))[1])
  narrow = _sample(params, slots=4)
  assert {0, T} < read and len(read) > 4
  for name in ("completions_BT", "turn_BT", "completion_len_B", "finish_B"):
    np.testing.assert_array_equal(getattr(base, name), getattr(narrow, name), err_msg=name)
  np.testing.assert_allclose(base.sampler_logps_BT, narrow.sampler_logps_BT, atol=2e-5)


def test_what_was_drawn_is_what_the_environment_gets(params):
  answers = Answers()
  out = _sample(params, answers)
  submitted = sorted(answers.actions)
  # An action that is cut at the end of the trajectory gets no answer.
  full = [b for b in range(ROWS) if out.completion_len_B[b] == T
          and out.finish_B[b] == records.FINISH.index("length")]
  drawn = sorted((b, out.completions_BT[b][out.turn_BT[b] == k].tolist())
                 for b in range(ROWS) for k in range(out.turn_BT[b].max() + 1)
                 if not (b in full and k == out.turn_BT[b].max()))
  assert [x for x in drawn if x not in submitted] == []


def test_one_turn_is_what_the_sampler_draws(params):
  """Without answers, the same tokens with the same keys."""
  class Ends(Answers):
    def submit(self, row, ids): self.waiting[row] = episodes.Answer(None)
  out = _sample(params, Ends(), turn_tokens=12, max_tokens=12)
  whole = jax.device_get(sampler.make(
      CONFIG, group=GROUP, max_tokens=12, chunk=12, eos_ids=(EOS,), pad_id=PAD)(
          *test_sampler._arguments(params)))
  np.testing.assert_array_equal(out.tokens_BS, whole.tokens_BS)
  np.testing.assert_array_equal(out.finish_B, whole.finish_B)
  np.testing.assert_allclose(out.sampler_logps_BT, whole.sampler_logps_BT, atol=1e-5)


def test_programs_do_not_depend_on_lengths(params):
  """One program for each width and number of slots, whatever is drawn and answered."""
  sample = _sampler(slots=2, chunk=4)
  run = lambda seed: sample(
      params, *padding.pad_left(PROMPTS, 5, PAD), IDS, rng.key(0, "sample", seed), Answers())
  run(0), run(1)
  sizes = episodes._advance._cache_size(), episodes._read._cache_size()
  for seed in range(2, 6): run(seed)
  assert (episodes._advance._cache_size(), episodes._read._cache_size()) == sizes
