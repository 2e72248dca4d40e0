"""Data as people have it: each case is read as it is meant, or refused in one line with what to
write. Most are from public reports about trainers (data_cases.json names them)."""
import base64
import datetime
import json

import pyarrow
from pyarrow import parquet
import pytest

from rlx.build import load, own_data, prompts as build_prompts, verifiers as build_verifiers
from rlx.io import tokenizer
from tests.io import strings

CASES = strings.fixture("data_cases")


def rows_of(case):
  """The rows of a case; {"float": "nan"}, {"date": ...} and {"base64": ...} stand for what JSON
  does not have."""
  def plain(value):
    if isinstance(value, list): return [plain(x) for x in value]
    if not isinstance(value, dict): return value
    if "float" in value: return float(value["float"])
    if "date" in value: return datetime.datetime.fromisoformat(value["date"])
    if "base64" in value: return base64.b64decode(value["base64"])
    return {k: plain(x) for k, x in value.items()}
  return [row for row in plain(case["rows"]) for _ in range(case.get("times", 1))]


def file_of(case, folder):
  path = folder / f"train{case['file']}"
  if "text" in case:
    path.write_bytes(case["text"].encode(case.get("encoding", "utf-8")))
  elif case["file"] == ".parquet":
    parquet.write_table(pyarrow.Table.from_pylist(rows_of(case)), path)
  else:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows_of(case)))
  return path


def asks(completions, answer=None): return [0.0 for _ in completions]


def prompts_of(case, folder):
  c = load.load_config("quickstart:smoke")
  if case.get("call") == "train":
    rows = file_of(case, folder) if "text" in case else rows_of(case)
    c, _ = own_data.prepare(c, rows, None, asks if case.get("reward") else None, None, None,
                            str(folder / "run"), {}, columns=case.get("columns"))
    made = [p for split in ("train", "test") for p in build_prompts.read_prompts(c, split)]
  else:
    with c.unlocked():
      c.prompts.source = str(file_of(case, folder)).replace("train", "{split}")
      c.prompts.dataset, c.prompts.options = case.get("dataset", "jsonl"), {}
      c.prompts.columns = case.get("columns", {})
    made = list(build_prompts.read_prompts(c, "train"))
  if not case.get("reward"): build_verifiers.check_prompts(c, made)
  return sorted(made, key=lambda p: p.id)


@pytest.mark.parametrize("name", CASES)
def test_is_read_or_refused_in_one_line(name, tmp_path):
  case = CASES[name]
  if "refused" in case:
    with pytest.raises(ValueError, match=case["refused"]) as error: prompts_of(case, tmp_path)
    said = str(error.value).replace(str(tmp_path), "")
    assert "\n" not in said and len(said) < 500
    return
  made = prompts_of(case, tmp_path)
  for key, value in case["read"].items():
    got = getattr(made[0], key)
    assert (list(got) if isinstance(got, tuple) else got) == value, key
  assert not case.get("left_out") or case["left_out"] not in made[0].meta


def passage(prompt): return f"{prompt.meta['passage']}M{prompt.text}"


def test_what_the_model_reads_decides_what_is_a_duplicate(tmp_path):
  """Not the column that is asked: a template may read other columns too."""
  rows = dict(train=[("1", "2M3="), ("2", "2M3="), ("1", "2M3= "), ("3", "2M3=")],
              test=[("3", "2M3="), ("4", "2M3=")])
  for split, part in rows.items():
    (tmp_path / f"{split}.jsonl").write_text("".join(
        json.dumps(dict(question=q, answer="3", passage=p)) + "\n" for p, q in part))
  c = load.load_config("quickstart:smoke")
  with c.unlocked():
    c.prompts.source, c.prompts.dataset = f"{tmp_path}/{{split}}.jsonl", "jsonl"
    c.prompts.options, c.prompts.columns = {}, dict(meta=("passage",))
    c.prompts.template = dict(name="tests.io.test_data_cases:passage")
  texts = build_prompts.texts_of(c, tokenizer.characters("0123456789M= "))
  train, held_out = build_prompts.load_prompts(c, texts)
  assert [p.meta["passage"] for p in train] == ["1", "2"] and len(held_out) == 2

  with c.unlocked(): c.environment.name, c.prompts.columns.answer = "zoo.calculator", "several"
  (tmp_path / "train.jsonl").write_text(
      json.dumps(dict(question="2M3=", several=[3, 4], passage="")))
  with pytest.raises(ValueError, match="2 accepted answers; an environment reads one"):
    build_prompts.load_and_check_prompts(c, 1, texts, ("train",))


@pytest.mark.parametrize("names, held_out", [
    (("train", "validation"), "validation row 0"), (("train", "test", "validation"), "test row 0"),
    (("train",), "train row ")])
def test_the_split_that_is_held_out(tmp_path, names, held_out):
  """Of a dict of splits, such as a DatasetDict, as of rows with a column `split`."""
  rows = lambda name: [dict(prompt=f"{i}M{len(name)}=", answer="4") for i in range(3)]
  for given in ({name: rows(name) for name in names},
                [row | dict(split=name) for name in names for row in rows(name)]):
    c, _ = own_data.prepare(load.load_config("quickstart:smoke"), given, None, asks, None, None,
                            str(tmp_path), {})
    test = list(build_prompts.read_prompts(c, "test"))
    assert test[0].id.startswith(held_out)
    assert {p.id for p in test}.isdisjoint(p.id for p in build_prompts.read_prompts(c, "train"))


class Frame:
  """What is read of a pandas.DataFrame."""
  itertuples = None

  def __init__(self, *names): self.columns = type("Index", (list,), dict(
      is_unique=len(set(names)) == len(names)))(names)

  def __iter__(self): return iter(self.columns)

  def to_dict(self, orient):
    assert orient == "records"
    return [dict(prompt=f"{i}M4=", answer=float(i)) for i in range(3)]


def test_data_frames(tmp_path):
  prepare = lambda rows: own_data.prepare(load.load_config("quickstart:smoke"), rows, None, asks,
                                          None, None, str(tmp_path), {})[0]
  for rows in (Frame("prompt", "answer"), dict(train=Frame("prompt", "answer"))):
    first, *_ = build_prompts.read_prompts(prepare(rows), "train")
    assert first.text in ("0M4=", "1M4=") and first.answer in "01"
  with pytest.raises(ValueError, match=r"rows: a column stands twice in \['answer', 'answer'\]"):
    prepare(Frame("answer", "answer"))


@pytest.mark.parametrize("kind, start", [
    ("Dataset", "row"), ("IterableDataset", "row"), ("train", "train row"),
    ("validation", "validation row"), ("test", "test row")])
def test_objects_of_the_library_datasets(tmp_path, kind, start):
  """Those of the library itself, of which io/rows.py knows the form alone; a date is left out."""
  datasets = pytest.importorskip("datasets")
  rows = [dict(prompt=f"{i}M4=", answer=str(i), kind=i % 2, at=datetime.datetime(2024, 5, 1 + i))
          for i in range(3)]
  features = datasets.Features(
      prompt=datasets.Value("string"), answer=datasets.Value("string"),
      kind=datasets.ClassLabel(names=["even", "odd"]), at=datasets.Value("timestamp[us]"))
  table = datasets.Dataset.from_list(rows, features=features)
  given = table if kind == "Dataset" else table.to_iterable_dataset()
  if kind not in ("Dataset", "IterableDataset"):
    given = datasets.DatasetDict({name: table for name in {"train", kind}})
  c, _ = own_data.prepare(load.load_config("quickstart:smoke"), given, None, asks, None, None,
                          str(tmp_path), {})
  splits = {split: list(build_prompts.read_prompts(c, split)) for split in ("train", "test")}
  assert splits["test"][0].id.startswith(start)
  for p in splits["train"] + splits["test"]:
    assert p.text == f"{p.answer}M4=" and p.meta["row"]["kind"] == int(p.answer) % 2
    assert "at" not in p.meta["row"]
