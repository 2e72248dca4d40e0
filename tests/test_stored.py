"""Completions on disk: what is read, what is refused, and how batches are made of it."""
import dataclasses
import json
import types

import numpy as np
import pytest

from configs.papers import implicit_prm
from rlx.build import prompts as build_prompts, run as run_lib
from rlx.io import tokenizer
from rlx.loops import stored

nan = np.nan


@pytest.fixture
def run():
  c = implicit_prm.get_config("smoke")
  c.prompts.per_step, c.rollouts.per_prompt = 2, 3
  return types.SimpleNamespace(
      sizes=run_lib.sizes_of(c),
      passes=types.SimpleNamespace(seed=0, labels="soft", asked_scorer=None), update_prm=None,
      texts=build_prompts.texts_of(c, tokenizer.characters("0123456789Mm+-*=;#")))


def _file(tmp_path, *rows):
  path = tmp_path / "rollouts.jsonl"
  path.write_text("".join(json.dumps(r) + "\n" for r in rows))
  return path


def _row(completion="7;2#2", verdict=1, group="a", **more):
  return dict(prompt="4M7m2=", completion=completion, verdict=verdict, group=group, **more)


def test_reads_texts_as_token_ids(run, tmp_path):
  got = stored.read(_file(
      tmp_path, _row(), _row(verdict=None, finish="length"),
      dict(question="4M7m2=", completion="1", verdict=.5)), run.texts)
  assert [len(x.ids) for x in got] == [6, 5, 2]         # EOS where it ended by itself.
  assert run.texts.tokenizer.decode(got[0].ids) == "7;2#2" and got[0].ids[-1] == 1
  assert got[0].verdict == 1 and np.isnan(got[1].verdict) and got[2].verdict == .5
  assert got[2].prompt == got[0].prompt and [x.group for x in got] == ["a", "a", "4M7m2="]
  assert stored.count_sampled_tokens(got) is None
  assert stored.count_sampled_tokens(stored.read(_file(tmp_path, _row(sampled=40)),
                                                 run.texts)) == 40


def test_a_reference_stands_between_prompt_and_completion(run, tmp_path):
  encode, pair = run.texts.tokenizer.encode, dict(prompt="4M7=", chosen="1", rejected="2")
  plain, _ = stored.read(_file(tmp_path, pair | dict(reference="3")), run.texts)
  run.texts = dataclasses.replace(run.texts, reference="{};")
  got = stored.read(_file(tmp_path, pair | dict(reference="3")), run.texts)
  assert [x.prompt for x in got] == [plain.prompt + encode("3;", add_bos=False)] * 2
  assert [x.ids for x in got] == [[*encode(text, add_bos=False), 1] for text in "12"]
  with pytest.raises(ValueError, match=":1: train_scorer.reference='{};': a text `reference`"):
    stored.read(_file(tmp_path, pair), run.texts)


def test_a_dialogue_has_the_text_of_its_tokens(run, tmp_path):
  ids = run.texts.tokenizer.encode("7;2")
  x, = stored.read(_file(tmp_path, dict(prompt_ids=ids, segments=[["action", ids]], verdict=1)),
                   run.texts)
  assert (x.row["completion"], x.ids, x.prompt) == ("7;2", ids, ids)


def test_a_published_set_drops_what_it_cannot_use_and_says_so(run, tmp_path, capsys):
  rated = lambda text, rating: dict(prompt="4M7m2=", response=text, helpfulness=rating)
  path = _file(tmp_path, rated("7", 4), rated("1", None), rated("2", None), rated("3;" * 20, 1))
  x, = stored.read(f"helpsteer:{path}", run.texts)
  assert (x.row["completion"], x.verdict) == ("7", 1)
  assert x.prompt == run.texts.tokenizer.encode("4M7m2=")
  said = capsys.readouterr().err.splitlines()
  assert [line.partition(".jsonl: ")[2] for line in said] == [
      "1 rows are dropped: with more tokens than rollouts.max_tokens=18.",
      "2 rows are dropped: without a rating from 0 to 4."]
  with pytest.raises(ValueError, match="rollouts.jsonl: no rows that can be used"):
    stored.read(f"helpsteer:{_file(tmp_path, rated('1', None))}", run.texts)


def test_a_pair_and_a_list_are_groups_of_their_own(run, tmp_path):
  message = lambda role, text: dict(role=role, content=text)
  pair = dict(question="4M7=", chosen="1", rejected="2")
  ranked = dict(question="4M7=", completions=["3", "4"], verdicts=[.5, None])
  got = stored.read(_file(tmp_path, pair, ranked), run.texts)
  assert [(x.row["completion"], x.verdict) for x in got[:3]] == [("1", 1), ("2", 0), ("3", .5)]
  assert np.isnan(got[3].verdict) and len({x.group for x in got}) == 2
  got = stored.read(_file(tmp_path, pair | dict(margin=3)), run.texts)
  assert [x.row["margin"] for x in got] == [3, 0]
  with pytest.raises(ValueError, match="some rows have a `margin` and others have none"):
    stored.read(_file(tmp_path, pair, pair | dict(margin=3)), run.texts)
  asked, (a, b) = message("user", "4M7="), (message("assistant", x) for x in "12")
  run.texts = dataclasses.replace(run.texts, template=lambda prompt: prompt.messages[0]["content"])
  got = stored.read(_file(tmp_path, dict(chosen=[asked, a], rejected=[asked, b])), run.texts)
  assert [x.row["completion"] for x in got] == ["1", "2"]
  assert run.texts.tokenizer.decode(got[0].prompt) == "4M7="


@pytest.mark.parametrize("row, message", [
    (_row(spans=[[2, 1, 1]]), ":1: spans=.*: a list of .start, end, label., in order"),
    (_row(spans=[[0, 9, 1]]), ":1: spans=.*: ends of at most the length of the completion, 5"),
    (dict(prompt="4M7=", completions=["7"], verdicts=[1, 0]), ":1: `completions` and `verdicts` ar"),
    (_row(segments=[["observation", [3]]]), ":1: segments=.*: a list of .action or observation"),
    (dict(segments=[["action", [3]]], verdict=1), r":1 has \['segments', 'verdict'\]; needed are"),
    (dict(messages="4M7=", verdict=1), ":1: messages='4M7=': a list of chat messages"),
    (_row(margin="much"), ":1: margin='much': a number"),
    (dict(chosen=[dict(role="user", content="?")], rejected="7"),
     ":1: a pair without a reply at the end"),
    (dict(prompt="4M7=", chosen="7", rejected="7"), ":1: a pair with two equal completions; leave"),
    (dict(prompt="4M7="), r":1 has \['prompt'\]; needed are texts `prompt` or `question`"),
    (_row(verdict=2), ":1: verdict=2: a number from 0 to 1, or None"),
    (dict(prompt="4M7=", completion="7"), ":1: verdict='none': a number from 0 to 1, or None"),
    (_row(completion="1;" * 20), ":1 has 41 tokens; rollouts.max_tokens=18"),
    (_row() | dict(prompt="4" * 20), ":1 has 20 tokens; prompts.max_tokens=18"),
], ids=lambda x: str(x)[:40])
def test_a_bad_row_is_one_line(run, tmp_path, row, message):
  with pytest.raises(ValueError, match=message) as e: stored.read(_file(tmp_path, row), run.texts)
  assert "rollouts.jsonl" in str(e.value) and "\n" not in str(e.value)


def test_labels_come_from_values(run, tmp_path):
  completions = stored.read(_file(
      tmp_path, _row(values=[.5, 0.]), _row(values=[0., 1.]), _row(values=[None, 1.])), run.texts)
  got = stored.add_labels(completions, run.texts, "hard")
  assert [x.labels for x in got] == [(1., 0.), (0., 1.)]   # An unknown value: left out.
  assert stored.add_labels(completions, run.texts, "soft")[0].labels == (.5, 0.)
  with pytest.raises(ValueError, match="'7;2#2' has 1 values for 2 steps"):
    stored.add_labels(stored.read(_file(tmp_path, _row(values=[.5])), run.texts), run.texts, "soft")


def test_relative_labels_compare_the_first_step_with_the_prompt(run, tmp_path):
  rows = [_row(values=[v, 1.], start=start) for v, start in (
      (.5, 1.), (.75, .9), (.25, 0.), (.75, None))]
  got = stored.add_labels(stored.read(_file(tmp_path, *rows), run.texts), run.texts, "relative")
  # .5 < .8 * 1, .75 >= .8 * .9; after 0 every value has risen. An unknown start: left out.
  assert [x.labels for x in got] == [(0., 1.), (1., 1.), (1., 1.)]
  without = stored.read(_file(tmp_path, _row(values=[.5, 1.])), run.texts)
  with pytest.raises(ValueError, match="labels='relative': '7;2#2' was labelled without"):
    stored.add_labels(without, run.texts, "relative")


def test_a_batch_is_whole_groups_filled_up(run, tmp_path):
  completions = stored.add_labels(stored.read(_file(
      tmp_path, *[_row("7;2#2", 1, "a", values=[.25, 1.])] * 2,
      *[_row("3#3", None, "b", values=[.75])]), run.texts), run.texts, "soft")
  groups = stored.split_groups(stored.group_completions(completions), 3)
  rollouts, outcome_B, columns = stored.batch(groups, 0, run)
  labels_BT = columns["labels_BT"]
  a = 0 if rollouts.completion_len_B[0] == 6 else 3
  assert rollouts.completion_len_B[[a, a + 1, a + 2]].tolist() == [6, 6, 0]
  assert rollouts.completion_len_B[[3 - a, 4 - a, 5 - a]].tolist() == [4, 0, 0]
  np.testing.assert_array_equal(outcome_B[[a, a + 1, a + 2]], [1, 1, nan])
  # On the token that ends the step, not on EOS: "7;" "2#2" <eos>.
  np.testing.assert_array_equal(labels_BT[a, :7], [nan, .25, nan, nan, 1, nan, nan])
  assert np.isnan(labels_BT[a + 2]).all()
  assert np.nansum(labels_BT[3 - a]) == .75


def test_the_verdict_is_a_label_beside_those_of_steps(run, tmp_path):
  """On EOS: the last step of a completion that is cut ends in its last token."""
  groups = [stored.add_labels(stored.read(_file(tmp_path, row), run.texts), run.texts, "soft")
            for row in (_row("7;2#2", 0, values=[.25, 1.]),
                        _row("3#3", None, values=[.75]),
                        _row("7;2#2", 0, finish="length", values=[.5, .75]))]
  _, _, columns = stored.batch(groups[:2], 0, run, add_outcome=True)
  labels_BT = columns["labels_BT"][:, :6]
  first = np.array([nan, .25, nan, nan, 1, 0])
  a = int(not np.array_equal(labels_BT[0], first, equal_nan=True))
  np.testing.assert_array_equal(labels_BT[[3 * a, 3 * (1 - a)]],
                                [first, [nan, nan, .75, nan, nan, nan]])
  _, _, columns = stored.batch(groups[2:], 0, run, add_outcome=True)
  np.testing.assert_array_equal(columns["labels_BT"][0, :6], [nan, .5, nan, nan, .75, nan])


def test_an_epoch_has_every_group_once_in_an_order_of_its_own(run, tmp_path):
  rows = [_row(f"{i}#{i}", 1, str(i)) for i in range(8)]
  groups = stored.split_groups(stored.group_completions(stored.read(_file(tmp_path, *rows),
                                                                    run.texts)), 3)
  first = lambda step: [run.texts.tokenizer.decode(ids) for ids in
                        stored.batch(groups, step, run)[0].completions_BT[::3, :1]]
  epochs = [sum((first(4 * e + s) for s in range(4)), []) for e in range(2)]
  assert [sorted(e) for e in epochs] == [list("01234567")] * 2
  assert epochs[0] != epochs[1]


def test_what_is_affordable(run, tmp_path):
  rows = [_row(f"{i}#{i}", 1, g) for i, g in enumerate("aabbb")]     # 4 tokens each.
  completions = stored.read(_file(tmp_path, *rows), run.texts)
  texts = lambda completions_: [x.row["completion"][0] for x in completions_]
  assert texts(stored.limit_tokens(completions, None, spread=True)) == list("01234")
  assert texts(stored.limit_tokens(completions, 12, spread=False)) == list("012")
  assert texts(stored.limit_tokens(completions, 15, spread=True)) == list("021")
  with pytest.raises(ValueError, match="train_scorer.max_sampled=3: the first completion took 4"):
    stored.limit_tokens(completions, 3, spread=False)


def test_a_file_left_off_is_completed_by_whole_blocks(tmp_path):
  asked, path = [], tmp_path / "x.jsonl"
  def make(start, stop):
    asked.append((start, stop))
    if len(asked) == 3: raise KeyboardInterrupt
    return [dict(i=i) for i in range(start, stop)]
  with pytest.raises(KeyboardInterrupt): stored._complete(path, 7, 2, make)
  with path.open("a") as f: f.write('{"i": 4}\n{"i"')     # What a kill may leave.
  stored._complete(path, 7, 2, make)
  assert asked == [(0, 2), (2, 4), (4, 6), (4, 6), (6, 7)]
  assert [json.loads(l)["i"] for l in path.read_text().splitlines()] == list(range(7))
  stored._complete(path, 7, 2, None)                      # Nothing is missing.
  with pytest.raises(ValueError, match="has 7 rows, this config makes it 6"):
    stored._complete(path, 6, 2, make)
