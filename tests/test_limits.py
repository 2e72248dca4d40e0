"""Tokens at which a completion ends: those of a row, and ids that end it."""
import dataclasses
import json

import numpy as np
import pytest

from rlx import build
from rlx.build import own_data, prompts as build_prompts
from rlx.core import records, rng
from rlx.io import tokenizer
from rlx.loops import rl
from rlx.prompts import columns
from rlx.rollouts import padding, sampler
from rlx.stages import host_fields
from tests import test_resume, tiny

LIMITS = [3, 1, None, 2]
LENGTH, STOP, EOS = map(records.FINISH.index, ("length", "stop", "eos"))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
  """A model, and rows with limits in the column `limit`, as numbers and as the text of a CSV."""
  folder = tmp_path_factory.mktemp("limits")
  tiny.write(folder)
  for split, letter, n in (("train", "a", 40), ("test", "b", 8)):
    (folder / f"{split}.jsonl").write_text("".join(json.dumps(dict(
        question=f"{letter}{i:02d}", answer="x", limit=LIMITS[i % 4])) + "\n" for i in range(n)))
  return folder


def config_of(files, **changes):
  return tiny.config(files, **dict(
      steps=3, learner__minibatches=1, eval__every=1, checkpoint__every=1,
      checkpoint__max_to_keep=5, prompts__columns=dict(
          verifier="format.ascii_share", max_tokens="limit")) | changes)


def watch(run, seen):
  """Within it, what is sampled is added to `seen` as (prompt, tokens, finish)."""
  patch = pytest.MonkeyPatch()
  rewards = type(run.outcomes).rewards
  def watched(self, prompts, rollouts, *args, **more):
    group = len(rollouts.finish_B) // len(prompts)
    seen.extend(zip([p for p in prompts for _ in range(group)], padding.completions(rollouts),
                    rollouts.finish_B.tolist()))
    return rewards(self, prompts, rollouts, *args, **more)
  patch.setattr(type(run.outcomes), "rewards", watched)
  return patch


def test_rows_end_at_their_own_limit_and_runs_resume(files, tmp_path):
  """In training and evaluation; nothing else is another: kills and slots."""
  c, seen = config_of(files), []
  run = tiny.build_run(c)
  start = run.prompts.state()
  patch = watch(run, seen)
  try:
    with tiny.building(run): rl.train(c, tmp_path / "whole")
  finally:
    patch.undo()
  kinds = {p.id.split("/")[1] for p, _, _ in seen}
  assert kinds == {"train", "test"}
  cut = 0
  for p, ids, finish in seen:
    most = LIMITS[int(p.text[1:]) % 4] or 4
    assert p.max_tokens == LIMITS[int(p.text[1:]) % 4] and 1 <= len(ids) <= most
    assert finish == (EOS if ids[-1] in run.texts.tokenizer.eos_ids else LENGTH)
    assert finish == EOS or len(ids) == most
    cut += len(ids) == most < 4
  assert cut > 50
  killed = tiny.killed_after(tmp_path / "whole", 1, tmp_path / "killed")
  run.prompts.restore(start)
  with tiny.building(run): rl.train(c, killed)
  test_resume.assert_same(killed, tmp_path / "whole")
  run.prompts.restore(start)
  few = tiny.build_run(config_of(files, rollouts__slots=8, rollouts__chunk=2))
  (_, one, _), (_, two, _) = tiny.sample(run, run.init()), tiny.sample(few, few.init())
  assert padding.completions(one) == padding.completions(two)
  np.testing.assert_array_equal(one.finish_B, two.finish_B)


def test_limits_that_are_those_of_the_run_change_nothing(files):
  """Bit for bit, and without a program more."""
  run = tiny.build_run(config_of(files, prompts__columns=dict(verifier="format.ascii_share")))
  state, prompts = run.init(), run.prompts.take(12)
  sample = lambda prompts: run.sampling.train(state.policy, prompts, rng.key(0, "sample", 0))
  plain, before = sample(prompts), sampler._start._cache_size()
  for limit in (4, 9): tiny.assert_equal_trees(plain, sample(
      [dataclasses.replace(p, max_tokens=limit) for p in prompts]))
  short = sample([dataclasses.replace(p, max_tokens=1) for p in prompts])
  assert (short.completion_len_B == 1).all() and sampler._start._cache_size() == before


@pytest.mark.parametrize("value, limit", [
    (3, 3), (3.0, 3), ("3", 3), (" 12 ", 12), (None, None), ("", None), (float("nan"), None)])
def test_values_of_a_limit(value, limit):
  assert columns.read_limit(value, "row 0") == limit


@pytest.mark.parametrize("value", [0, -1, 2.5, True, "3.5", "many", [3], "-2", "9" * 20], ids=str)
def test_no_limits(value):
  with pytest.raises(ValueError, match="^row 0: .* is no number of tokens, a whole number from 1"):
    columns.read_limit(value, "row 0")


def test_a_longer_limit_than_that_of_the_run_is_refused(files):
  """With the row; each of training, evaluation and a set has its own."""
  with pytest.raises(ValueError, match="^prompts.columns.max_tokens: 3 tokens for 'jsonl/train/0'; "
                     "at most rollouts.max_tokens=2, which"):
    build.build(config_of(files, rollouts__max_tokens=2, eval__max_tokens=4))
  with pytest.raises(ValueError, match="3 tokens for 'jsonl/test/0'; at most eval.max_tokens=2"):
    build.build(config_of(files, eval__max_tokens=2))
  with pytest.raises(ValueError, match="3 tokens for 'a/jsonl/test/0'; at most eval.sets.a.max_to"):
    build.build(config_of(files, eval__sets=dict(a=dict(max_tokens=2))))
  with pytest.raises(ValueError, match="^prompts.columns.max_tokens='lmit': row 0 of test has"):
    build.build(config_of(files, prompts__columns=dict(
        verifier="format.ascii_share", max_tokens="lmit")))


def test_rows_of_a_call_have_limits(files, tmp_path):
  rows = [dict(prompt=f"c{i}", answer="7", verifier="format.ascii_share", n=1 + i % 2)
          for i in range(6)]
  c, _ = own_data.prepare(config_of(files), rows, rows[:2], None, None, None, str(tmp_path), {},
                          columns={"max_tokens": "n"})
  assert c.prompts.columns.max_tokens == "max_tokens"
  read = list(build_prompts.read_prompts(c, "train"))
  assert [p.max_tokens for p in read] == [1, 2] * 3
  c, _ = own_data.prepare(tiny.config(files), [x | dict(max_tokens=1) for x in rows], rows[:2],
                          None, None, None, str(tmp_path / "b"), {})
  assert {p.max_tokens for p in build_prompts.read_prompts(c, "train")} == {None}


# Ids.


def test_ids_end_completions_in_training_and_evaluation(files):
  c, seen = config_of(files, rollouts__stop_ids=(5, 9)), []
  run = tiny.build_run(c)
  patch = watch(run, seen)
  try:
    tiny.sample(run, run.init())
    rl.measure_accuracy(run, run.init(), "curve", 1)
  finally:
    patch.undo()
  stopped = [ids for _, ids, finish in seen if finish == STOP]
  assert len(stopped) > 5
  for _, ids, finish in seen:
    assert (finish == STOP) == (ids[-1] in (5, 9)) and not {5, 9} & set(ids[:-1])


@pytest.mark.parametrize("ids, message", [
    ((20,), "rollouts.stop_ids=(20,): 20 is no token of the model, which has 0 to 19."),
    ((-1,), "rollouts.stop_ids=(-1,): a list of token ids."),
    (("a",), "rollouts.stop_ids=('a',): a list of token ids."),
    ((True,), "rollouts.stop_ids=(True,): a list of token ids."),
    (5, "rollouts.stop_ids=5: a list of token ids.")], ids=str)
def test_other_ids_are_refused(files, ids, message):
  with pytest.raises(ValueError) as e: build.build(config_of(files, rollouts__stop_ids=ids))
  assert str(e.value) == message


def test_special_tokens_are_texts_that_stop_and_separate():
  """As the text of a completion has them; those that end it are in no text."""
  hf = tokenizer.characters("ab\n").hf
  hf.add_special_tokens({"additional_special_tokens": ["<step>", "</answer>"]})
  t = tokenizer.wrap(hf)
  step, answer = (hf.convert_tokens_to_ids(x) for x in ("<step>", "</answer>"))
  ids = [2, step, 3, step, 2, answer, 3, t.eos_ids[0]]
  assert sampler.stop_length(ids, ("</answer>",), t.decode) == 6
  assert host_fields.columns_of_steps([ids], t, "<step>") == [[1, 3, 6]]
