"""Data as people have it: each case is read as it is meant, or refused in one line with what to
write. Most are from public reports about trainers (data_cases.json names them)."""
import base64
import json

import pyarrow
from pyarrow import parquet
import pytest

from rlx.build import load, own_data, prompts as build_prompts, verifiers as build_verifiers
from tests.io import strings

CASES = strings.fixture("data_cases")


def rows_of(case):
  """The rows of a case; {"float": "nan"} and {"base64": ...} stand for what JSON does not have."""
  def plain(value):
    if isinstance(value, list): return [plain(x) for x in value]
    if not isinstance(value, dict): return value
    if "float" in value: return float(value["float"])
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
                            str(folder / "run"), {}, case.get("columns"))
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
