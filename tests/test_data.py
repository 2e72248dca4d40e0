"""What `rlx data` shows of the prompts of a config."""
import json
import logging
import shutil

import jax
import pytest

from rlx.core import records
from rlx.io import tokenizer
from rlx.loops import record
from rlx.tools import data
from tests import tiny

TEMPLATE = ("{% for m in messages %}{{ '<' if m.role == 'user' else '' }}{{ m.content }}"
            "{{ eos_token if m.role == 'assistant' else '>' }}{% endfor %}")


def write(folder, tiny_files, *, train, test, template=None):
  """The config of rows (question, answer), with a tokenizer of which no weights are there."""
  tokens = tokenizer.characters("0123456789abcdefgh<>\n\x1b")
  tokens.hf.chat_template = template
  tokens.save(folder / "model")
  shutil.copy(tiny_files / "model" / "config.json", folder / "model")
  for split, rows in (("train", train), ("test", test)):
    (folder / f"{split}.jsonl").write_text("".join(
        json.dumps(dict(zip(("question", "answer"), row))) + "\n" for row in rows))
  return tiny.config(folder, prompts__per_step=2, rollouts__oversample=1.0, prompts__max_tokens=6,
                     prompts__limit=3, eval__prompts=1)


@pytest.fixture
def config(tmp_path, tiny_files):
  return write(tmp_path, tiny_files, train=[
      ("a\x1b\nb", "1"), ("c1", ["2", "3"]), ("1234567", "4"), ("c1 ".strip(), "2"), ("b1", "5"),
      ("d1", "6"), ("d2", "7")], test=[("b1", "5"), ("b2", "5"), ("123456789", "5")])


def test_what_is_read_and_what_is_dropped_and_why(config, tmp_path, command, caplog):
  record.record(config, tmp_path / "run")
  caplog.set_level(logging.DEBUG)
  with jax.log_compiles():
    done = command("data", str(tmp_path / "run"), "examples=1", f"json={tmp_path / 'out.json'}")
  assert done.returncode == 0 and "ompiling" not in caplog.text
  assert "train: prompt jsonl/train/0, 4 tokens\n  a\\x1b↵\n  b\n" in done.stdout
  assert "\x1b" not in done.stdout
  assert "reference answer: 1; verifier: format.ascii_share" in done.stdout
  figures = json.loads((tmp_path / "out.json").read_text())
  train, held_out = figures["train"], figures["eval"]
  counts = lambda x: {reason: (d["count"], d["first"][0]["id"]) for reason, d in
                      x["dropped"].items() if d["count"]}
  assert counts(train) == {
      "longer than prompts.max_tokens=6": (1, "jsonl/train/2"), "duplicates": (1, "jsonl/train/3"),
      "also in the evaluation split": (1, "jsonl/train/4"),
      "more than prompts.limit=3": (1, "jsonl/train/6")}
  assert (train["rows"], train["used"], held_out["rows"], held_out["used"]) == (7, 3, 2, 1)
  assert counts(held_out) == {"more than eval.prompts=1": (1, "jsonl/test/1")}
  for reason, (_, name) in counts(train).items():
    assert reason in done.stdout and name in done.stdout
  assert train["tokens"] == dict(prompts=dict(
      {"shortest": 2, "25%": 2, "median": 2, "75%": 4, "95%": 7, "longest": 7}, count=7, limit=6,
      key="prompts.max_tokens"))
  assert [e["text"] for e in held_out["examples"]] == ["b1"]


def test_dialogues_are_shown_with_what_is_learned(tmp_path, tiny_files, capsys):
  say = lambda *turns: ([dict(role=role, content=text) for role, text in turns],)
  c = write(tmp_path, tiny_files, template=TEMPLATE, test=[say(("user", "h"))+("1",)], train=[
      say(("user", "a"), ("assistant", "12"), ("user", "b"), ("assistant", "3")),
      say(("user", "c"), ("assistant", "4"))])
  with pytest.raises(ValueError, match="rollouts.max_tokens=4: the longest .* has 8 tokens"):
    data.main(c)
  c.rollouts.max_tokens = 8
  train = data.main(c)["train"]
  assert train["examples"][0] == dict(
      id="jsonl/train/0", tokens=3, text="<a>", answers=[], verifier="format.ascii_share",
      demonstration=[dict(kind="action", tokens=3, text="12<eos>"),
                     dict(kind="observation", tokens=3, text="<b>"),
                     dict(kind="action", tokens=2, text="3<eos>")])
  assert train["tokens"]["demonstrations"] == dict(
      {"shortest": 2, "25%": 2, "median": 2, "75%": 8, "95%": 8, "longest": 8}, count=2, limit=8,
      key="rollouts.max_tokens")
  assert "action, 3 tokens\n  12<eos>\n" in capsys.readouterr().out


def read_set(rows, split):
  """A set's reader, which drops rows, and one prompt that its verifier cannot judge."""
  for i, row in enumerate(rows):
    name = f"{split}/{i}"
    if row["question"].startswith("d"): yield records.Dropped(name, "proofs")
    else:
      yield records.Prompt(
          id=name, text=row["question"], is_public=True, verifier="math_answer.final",
          answer="nan" if row["question"].startswith("c") else "1")


def test_what_a_set_drops_is_shown(config, capsys):
  config.prompts.columns = {}
  with config.ignore_type(): config.prompts.dataset = "tests.test_data:read_set"
  config.prompts.limit, config.prompts.per_step = None, 1
  train = data.main(config)["train"]
  assert (train["rows"], train["used"]) == (7, 1)
  counts = {reason: (d["count"], d["first"][0]["id"]) for reason, d in train["dropped"].items()
            if d["count"]}
  assert counts == {
      "proofs": (2, "train/5"), "longer than prompts.max_tokens=6": (1, "train/2"),
      "duplicates": (1, "train/3"), "cannot be judged by the verifier": (1, "train/1"),
      "also in the evaluation split": (1, "train/4")}
  assert "proofs" in capsys.readouterr().out


def test_a_refusal_comes_after_what_was_read(config, capsys):
  config.prompts.max_tokens = 1
  with pytest.raises(ValueError, match="^prompts.max_tokens=1: all 2 prompts are longer"):
    data.main(config)
  out = capsys.readouterr().out
  for split, rows in (("train", "7"), ("eval", "2")):
    assert next(line.split() for line in out.splitlines() if line.split()[:1] == [split]
                and "tokens" not in line and "jsonl:" in line)[-3:] == [rows, rows, "-"]
  with pytest.raises(ValueError, match="^examples='x': a number"): data.main(config, examples="x")
