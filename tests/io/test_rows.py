import csv
import json
import sys
import types

import numpy as np
import pyarrow
from pyarrow import parquet
import pytest

from rlx.io import rows as io_rows


def test_chain():
  assert list(io_rows.rows("chain", "train", size=2, seed=3, ops="+")) == [
      dict(seed=3, index=0, n_min=2, n_max=6, ops="+"),
      dict(seed=3, index=1, n_min=2, n_max=6, ops="+")]


ROWS = [dict(a="1", b="é"), dict(a="2", b="x, y\n"), dict(a="3", b='"')]
SPLIT_ROWS = [dict(row, split=split) for row, split in zip(ROWS, ("train", "test", "train"))]


def write_jsonl(path, rows):
  path.write_text("\n\n".join(map(json.dumps, rows)))


def write_csv(path, rows):
  with path.open("w", newline="", encoding="utf-8-sig") as f:  # As Excel writes it.
    writer = csv.DictWriter(f, rows[0])
    writer.writeheader()
    writer.writerows(rows)


def write_parquet(path, rows):
  parquet.write_table(pyarrow.Table.from_pylist(rows), path)


WRITERS = dict(jsonl=write_jsonl, csv=write_csv, parquet=write_parquet,
               json=lambda path, rows: path.write_text(json.dumps(rows)))


@pytest.fixture(params=["list", *WRITERS])
def source_of(request, tmp_path):
  """rows -> a source that holds them: the list itself, or a file of each format."""
  def make(rows, name="rows"):
    if request.param == "list": return rows
    path = tmp_path / f"{name}.{request.param}"
    WRITERS[request.param](path, rows)
    return path
  return make


def test_every_source_gives_the_same_rows(source_of):
  source = source_of(ROWS)
  assert list(io_rows.rows(source)) == ROWS
  assert not io_rows.find_splits(source)
  with pytest.raises(ValueError, match=r"(rows.\w+:|row )\d: the row has no `split`"):
    list(io_rows.rows(source, "train"))
  with pytest.raises(ValueError, match="row 0: the row has no `split`"):
    list(io_rows.rows([dict(split=["train"])], "train"))


def test_a_split_per_row(source_of):
  source = source_of(SPLIT_ROWS)
  assert io_rows.find_splits(source)
  assert list(io_rows.rows(source)) == SPLIT_ROWS
  assert list(io_rows.rows(source, "test")) == SPLIT_ROWS[1:2]
  with pytest.raises(ValueError, match=r"no row of split 'dev'; there are \['test', 'train'\]"):
    list(io_rows.rows(source, "dev"))


def test_a_source_per_split(source_of):
  source = source_of(ROWS, "my_train")
  if source is ROWS: source, message = dict(train=ROWS), r"^rows: no split 'dev'; .* \['train'\]"
  else:
    source = str(source).replace("train", "{split}")
    message = r"^rows='.*': no file .*my_dev.*; .* \['my_train.\w+'\]"
  assert io_rows.find_splits(source)
  assert list(io_rows.rows(source, "train")) == ROWS
  for split, why in (("dev", message), (None, "name a split")):
    with pytest.raises(ValueError, match=why):
      io_rows.rows(source, split, "rows")


@pytest.mark.parametrize("source, options, message", [
    ("chain", dict(length=3), r"prompts.options.length: chain takes \['size', 'seed',"),
    ("jsonl:x", dict(size=3), r"prompts.options.size: jsonl takes \[\]"),
    ([], dict(size=3), r"prompts.options.size: rows takes \[\]"),
    *((source, {}, f"prompts.source='{source}': needed is chain, generated, hf:OWNER/NAME, .* "
       ".parquet") for source in ("txt:x", "jsonl:", "jsonl", "rows.txt", "3")),
    (3, {}, "prompts.source='3': needed is chain"),
    ("jsonl:nowhere", {}, "prompts.source='jsonl:nowhere': no file nowhere")])
def test_refuses(source, options, message):
  with pytest.raises(ValueError, match=message):
    io_rows.rows(source, "train", **options)


@pytest.mark.parametrize("source, message", [
    ([dict(a=1), "a"], "row 1: a dict is needed, not 'a'"),
    ('json:[{"a": 1}, 2]', "rows:1: a dict is needed, not 2"),
    ('json:{"a": 1}', "a list is needed"), ("json:[", "not JSON"),
    ("csv:a,b\nx,y,z\n", "rows: .* line 2: a row does not have the header's 2 fields"),
    ("csv:a,b\nx\n", "rows: .* line 2: a row does not have the header's 2 fields"),
    ('csv:a,b\n"x\n', "line 1: unexpected end of data"), ("csv:a,b\nx,\xff\n", "can't decode"),
    ("csv:a,a\n1,2\n", r"the header has a column twice: \['a', 'a'\]"),
    ("parquet:PAR1 and no more", "not a Parquet file: ")])
def test_a_source_that_cannot_be_read(tmp_path, source, message):
  if isinstance(source, str):
    kind, _, text = source.partition(":")
    (tmp_path / "rows").write_text(text, encoding="latin-1")
    source = f"{kind}:{tmp_path / 'rows'}"
  with pytest.raises(ValueError, match=f"^.*{message}.*$"):
    list(io_rows.rows(source))


def test_hugging_face(monkeypatch):
  def load_dataset(*args, **options):
    if args[0] == "o/none": raise FileNotFoundError("Dataset 'o/none' doesn't exist\non the Hub")
    return [dict(args=args) | options]
  monkeypatch.setitem(sys.modules, "datasets", types.SimpleNamespace(load_dataset=load_dataset))
  assert list(io_rows.rows("hf:openai/gsm8k", "test", config="main")) == [
      dict(args=("openai/gsm8k", "main"), split="test", revision=None)]
  with pytest.raises(ValueError, match="prompts.source='hf:o/none': Dataset .* doesn't exist$"):
    io_rows.rows("hf:o/none", "test")


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
  rows = list(io_rows.rows("tfds:tiny_words", "train", data_dir=tfds_dir))
  assert sorted(rows, key=lambda row: row["level"]) == [
      dict(question=f"train é {i}?", answer=f"so\n#### {i}", level=i) for i in range(5)]
  assert all(type(row["level"]) is int for row in rows)
  assert list(io_rows.rows("tfds:tiny_words", "train", data_dir=tfds_dir)) == rows
  assert "tensorflow" not in sys.modules


def test_tfds_says_what_there_is(tfds_dir):
  with pytest.raises(ValueError, match=r"tfds:tiny_word': no such.*'tiny_words'"):
    io_rows.rows("tfds:tiny_word", "train", data_dir=tfds_dir)
  with pytest.raises(ValueError, match=r"'dev'. Should be one of \['train', 'test'\]"):
    io_rows.rows("tfds:tiny_words", "dev", data_dir=tfds_dir)


@pytest.mark.parametrize("module, source, package", [
    ("reasoning_gym", "gym:chain_sum", "reasoning-gym"),
    ("datasets", "hf:openai/gsm8k", "datasets"),
    ("tensorflow_datasets", "tfds:gsm8k", "tensorflow-datasets")])
def test_a_missing_package_is_named(monkeypatch, module, source, package):
  monkeypatch.setitem(sys.modules, module, None)
  with pytest.raises(ValueError, match=f"'{source}': it needs .*: pip install {package}"):
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
    assert train[0].keys() == {"task", "config", "seed", "index", "entry"}
    assert [r["task"] for r in train[:4]] == ["chain_sum", "gsm_symbolic"] * 2
    assert len(train) == len(test) == 20
    assert rows("train") == train
    question = lambda r: r["entry"]["question"]
    assert not {question(r) for r in train} & {question(r) for r in test}
    # One-digit sums of two terms, as configured: "4 + 3 =".
    assert all(int(r["entry"]["answer"]) < 19 for r in train if r["task"] == "chain_sum")

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
