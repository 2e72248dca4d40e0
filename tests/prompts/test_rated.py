"""Rows of the published formats, by the names of their columns."""
import math

import pytest

from rlx.prompts import rated

USER = dict(role="user", content="2 + 2?")
SAID = {text: dict(role="assistant", content=text) for text in ("4", "5")}


@pytest.mark.parametrize("row, expected", [
    # RewardBench, and the sets beside it, whose prompts are chats.
    (dict(id=0, prompt="2 + 2?", chosen="4", rejected="5", chosen_model="a", rejected_model="b",
          subset="math-prm"), dict(models=("a", "b"), subset="math-prm", id="0")),
    (dict(prompt=[USER], chosen="4", rejected="5"), dict(messages=(USER,))),
    # UltraFeedback as chats with and without the prompt, as TRL reads it.
    (dict(prompt="2 + 2?", chosen=[USER, SAID["4"]], rejected=[USER, SAID["5"]]),
     dict(messages=(USER,))),
    (dict(prompt=[USER], chosen=[SAID["4"]], rejected=[SAID["5"]]), dict(messages=(USER,))),
    (dict(chosen=[USER, SAID["4"]], rejected=[USER, SAID["5"]], score_chosen=8.0),
     dict(messages=(USER,))),
    # RewardBench 2.
    (dict(id="tied:3", prompt="2 + 2?", chosen=["4"], rejected=["5"], num_correct=1,
          num_incorrect=1, total_completions=2, models=["a", "b"], subset="Ties",
          additional_metadata=None),
     dict(id="tied:3", subset="Ties", models=("a", "b")))], ids=range(6))
def test_pairs(row, expected):
  got, = rated.read([row])
  assert (got.kind, got.texts, got.gold) == ("pairs", ("4", "5"), (1.0, 0.0))
  assert got.prompt.text == "2 + 2?" and not got.prompt.meta
  assert got.prompt.messages == expected.pop("messages", ())
  for name, value in expected.items(): assert getattr(got, name) == value, name


def test_solutions_of_process_bench():
  row = dict(id="omnimath-12", generator="m", problem="2 + 2?", steps=["a", "b"],
             final_answer_correct=False, label=1)
  got, = rated.read([row])
  assert (got.kind, got.texts, got.label, got.subset) == ("steps", ("a", "b"), 1, "omnimath")
  assert rated.read([row | dict(id="mine-1")])[0].subset == ""


def test_completions_are_grouped_by_prompt_group_and_kl():
  rows = [dict(question="a", completion="x", verdict=1.0),
          dict(question="a", completion="y", verdict=None),
          dict(question="a", completion="z", gold=-2, kl=1.5),
          dict(question="b", completion="u", gold=3, group="a"),
          dict(question="b", completions=["v", "w"], gold=[0, 1])]
  got = rated.read(rows)
  assert [x.texts for x in got] == [("x", "y"), ("z",), ("u",), ("v", "w")]
  assert got[0].gold[0] == 1 and math.isnan(got[0].gold[1]) and got[1].kl == 1.5
  assert not any(x.prompt.meta for x in got)
  # What train_scorer wrote has the text that the model reads.
  assert rated.read([dict(prompt="<user>a", completion="x", verdict=1)])[0].prompt.meta == dict(
      is_rendered=True)


def test_numbers_may_be_texts_as_in_a_csv_file():
  rows = [dict(prompt="?", completion=text, gold=gold, kl=kl)
          for text, gold, kl in (("x", 0.5, 2), ("y", None, 2), ("z", -1, None))]
  texts = [{k: "" if x is None else str(x) for k, x in r.items()} for r in rows]
  kept = lambda got: [(x.texts, repr(x.gold), x.kl) for x in got]
  assert kept(rated.read(texts)) == kept(rated.read(rows))
  assert rated.read([dict(prompt="?", steps=["a"], label="-1")])[0].label == -1
  assert repr(rated.read([dict(prompt="?", steps=["a"], label=0.0)])[0].label) == "0"


@pytest.mark.parametrize("row, message", [
    (dict(prompt="?", completion="a", gold="good"), "gold='good'; needed is a number"),
    (dict(prompt="?", completion="a", gold="nan"), "gold='nan'; needed is a number"),
    (dict(chosen=[USER, SAID["4"]], rejected=[dict(USER, content="?"), SAID["5"]]),
     "the turns before the last one differ"),
    (dict(chosen=[SAID["4"], USER], rejected="5"), "its last message is of the role user"),
    (dict(chosen=[USER, dict(SAID["4"], content=4)], rejected="5"), "message 1"),
    (dict(chosen="4", rejected="5"), "column 'prompt': there is no text"),
    (dict(prompt="?", chosen=[], rejected="5"), r"chosen=\[\]; needed is a text"),
    (dict(prompt="?", chosen="4", rejected=5), "rejected=5; needed is a text"),
    (dict(prompt="?", steps="a", label=0), "steps='a'; needed is a list of texts"),
    (dict(prompt="?", steps=["a"], label=True), "label=True; needed is the index"),
    (dict(prompt="?", completions=["a"], gold=["good"]), r"gold=\['good'\]; needed is a list of 1"),
    (dict(prompt="?", completion="a", gold=[1]), r"gold=\[1\]; needed is a number")], ids=str)
def test_what_is_refused(row, message):
  with pytest.raises(ValueError, match=f"rows: row 0.*{message}") as e: rated.read([row])
  assert "\n" not in str(e.value)
