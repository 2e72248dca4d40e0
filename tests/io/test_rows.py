import sys

import numpy as np
import pytest

from rlx.io import rows as io_rows
from rlx.prompts.datasets import gsm8k
from rlx.prompts.datasets import reasoning_gym
from rlx.prompts.datasets import tfds as tfds_dataset


def test_chain():
  assert list(io_rows.rows("chain", "train", size=2, seed=3, ops="+")) == [
      dict(seed=3, index=0, n_min=2, n_max=6, ops="+"),
      dict(seed=3, index=1, n_min=2, n_max=6, ops="+")]


@pytest.mark.parametrize("source, options, message", [
    ("chain", dict(length=3), r"prompts.options.length: chain takes \['size', 'seed',"),
    ("jsonl:x", dict(size=3), r"prompts.options.size: jsonl takes \[\]"),
    ("json:x", {}, "prompts.source='json:x': chain, jsonl:PATH"),
    ("jsonl:", {}, "prompts.source='jsonl:'"),
    ("jsonl", {}, "prompts.source='jsonl'")])
def test_refuses(source, options, message):
  with pytest.raises(ValueError, match=message):
    io_rows.rows(source, "train", **options)


def test_jsonl_a_file_per_split(tmp_path):
  (tmp_path / "my_train.jsonl").write_text('{"a": "é"}\n\n{"a": 2}\n', encoding="utf-8")
  source = f"jsonl:{tmp_path}/my_{{split}}.jsonl"
  assert list(io_rows.rows(source, "train")) == [dict(a="é"), dict(a=2)]
  with pytest.raises(ValueError, match=r"no file .*my_test.jsonl; .* \['my_train.jsonl'\]"):
    io_rows.rows(source, "test")


def test_jsonl_a_split_per_row(tmp_path):
  path = tmp_path / "all.jsonl"
  path.write_text('{"a": 1, "split": "train"}\n{"a": 2, "split": "test"}\n')
  assert list(io_rows.rows(f"jsonl:{path}", "test")) == [dict(a=2, split="test")]
  with pytest.raises(ValueError, match=r"no row of split 'dev'; there are \['test', 'train'\]"):
    list(io_rows.rows(f"jsonl:{path}", "dev"))


@pytest.mark.parametrize("line, message", [
    ("{", "all.jsonl:2: not JSON"), ("[1]", "all.jsonl:2: an object is needed"),
    ('{"a": 1}', "all.jsonl:2: the row has no `split`")])
def test_jsonl_names_the_bad_line(tmp_path, line, message):
  path = tmp_path / "all.jsonl"
  path.write_text('{"a": 1, "split": "train"}\n' + line + "\n")
  with pytest.raises(ValueError, match=message):
    list(io_rows.rows(f"jsonl:{path}", "train"))


@pytest.fixture(scope="module")
def tfds_dir(tmp_path_factory):
  """Registers a tensorflow-datasets set like GSM8K; the first reader prepares it here."""
  import tensorflow_datasets as tfds

  class TinyWords(tfds.core.GeneratorBasedBuilder):
    VERSION = tfds.core.Version("1.0.0")

    def _info(self):
      return tfds.core.DatasetInfo(builder=self, features=tfds.features.FeaturesDict(dict(
          question=tfds.features.Text(), answer=tfds.features.Text(),
          level=tfds.features.Scalar(np.int32))))

    def _split_generators(self, dl_manager):
      return dict(train=self._generate_examples("train", 5),
                  test=self._generate_examples("test", 3))

    def _generate_examples(self, split, n):
      for i in range(n):
        yield i, dict(question=f"{split} é {i}?", answer=f"so\n#### {i}", level=i)

  tfds.disable_progress_bar()
  return tmp_path_factory.mktemp("tfds")


def test_tfds_rows_are_plain_values_in_a_stable_order(tfds_dir):
  found = list(io_rows.rows("tfds:tiny_words", "train", data_dir=tfds_dir))
  assert sorted(r["level"] for r in found) == [0, 1, 2, 3, 4]
  for r in found:
    assert r == dict(question=f"train é {r['level']}?", answer=f"so\n#### {r['level']}",
                     level=r["level"])
    assert type(r["level"]) is int
  assert list(io_rows.rows("tfds:tiny_words", "train", data_dir=tfds_dir)) == found


def test_tfds_needs_no_tensorflow(tfds_dir):
  list(io_rows.rows("tfds:tiny_words", "test", data_dir=tfds_dir))
  assert "tensorflow" not in sys.modules


def test_tfds_rows_become_prompts(tfds_dir):
  rows = lambda: io_rows.rows("tfds:tiny_words", "test", data_dir=tfds_dir)
  assert sorted(p.answer for p in gsm8k.prompts(rows(), "test")) == ["0", "1", "2"]
  by_columns = tfds_dataset.prompts(rows(), "test", answer="level")
  assert sorted(p.answer for p in by_columns) == ["0", "1", "2"]


def test_tfds_says_what_there_is(tfds_dir):
  with pytest.raises(ValueError, match=r"tfds:tiny_word': no such.*'tiny_words'"):
    io_rows.rows("tfds:tiny_word", "train", data_dir=tfds_dir)
  with pytest.raises(ValueError, match=r"'dev'. Should be one of \['train', 'test'\]"):
    io_rows.rows("tfds:tiny_words", "dev", data_dir=tfds_dir)


@pytest.mark.parametrize("module, source, package", [
    ("reasoning_gym", "gym:chain_sum", "reasoning-gym"),
    ("tensorflow_datasets", "tfds:gsm8k", "tensorflow-datasets")])
def test_a_missing_package_is_named(monkeypatch, module, source, package):
  monkeypatch.setitem(sys.modules, module, None)
  with pytest.raises(ValueError, match=f"'{source}' needs .*: pip install {package}"):
    io_rows.rows(source, "train")


class TestGym:

  @pytest.fixture(autouse=True)
  def needs_gym(self):
    pytest.importorskip("reasoning_gym")

  def test_tasks_take_turns_and_splits_are_disjoint(self):
    rows = lambda split: list(io_rows.rows(
        "gym:chain_sum,gsm_symbolic", split, size=20, config=dict(
            chain_sum=dict(min_terms=2, max_terms=2, min_digits=1, max_digits=1))))
    train, test = rows("train"), rows("test")
    assert [r["task"] for r in train[:4]] == ["chain_sum", "gsm_symbolic"] * 2
    assert len(train) == len(test) == 20
    assert rows("train") == train
    question = lambda r: r["entry"]["question"]
    assert not {question(r) for r in train} & {question(r) for r in test}
    # One-digit sums of two terms, as configured: "4 + 3 =".
    assert all(int(r["entry"]["answer"]) < 19 for r in train if r["task"] == "chain_sum")

  def test_rows_become_prompts_with_their_own_scorer(self):
    from rlx.verifiers import gym_task
    rows = io_rows.rows("gym:chain_sum,gsm_symbolic,mini_sudoku", "train", size=9)
    for prompt in reasoning_gym.prompts(rows, "train"):
      assert gym_task.answer(prompt, f"Answer: {prompt.answer}") == 1.0, prompt
      assert gym_task.answer(prompt, "Answer: ?") < 0.5
      assert gym_task.answer(prompt, "") == 0.0

  def test_says_what_there_is(self):
    with pytest.raises(ValueError, match="no task 'chain_sums'; there are .*'chain_sum'"):
      io_rows.rows("gym:chain_sums", "train")
    with pytest.raises(ValueError, match="no split 'dev'; train or test"):
      io_rows.rows("gym:chain_sum", "dev")
    with pytest.raises(ValueError, match="prompts.options.config.lcm: prompts.source has"):
      io_rows.rows("gym:chain_sum", "train", config=dict(lcm={}))
    with pytest.raises(ValueError, match="prompts.options.config.chain_sum: .*max_trems"):
      io_rows.rows("gym:chain_sum", "train", config=dict(chain_sum=dict(max_trems=3)))

  def test_questions_do_not_repeat(self):
    # a + b and a - b of one digit each: less than 200 questions, a quarter held out.
    small = dict(chain_sum=dict(min_terms=2, max_terms=2, min_digits=1, max_digits=1))
    rows = list(io_rows.rows("gym:chain_sum", "test", size=20, config=small))
    assert len({r["entry"]["question"] for r in rows}) == 20
    with pytest.raises(ValueError, match=r"chain_sum has \d\d different questions of split "
                       "'test'; lower prompts.options.size"):
      list(io_rows.rows("gym:chain_sum", "test", size=200, config=small))
