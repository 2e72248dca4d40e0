"""Instructions: the verdicts of the published code of IFEval, and what differs from it."""
import importlib.util
import re

import pytest

from rlx.core import records
from rlx.prompts.datasets import instructions as made
from rlx.verifiers import errors, instructions
from tests.verifiers import cases, long_texts

# Texts with the verdicts of the published code, in the release of lm-evaluation-harness 0.4.13 with
# nltk 3.10 and langdetect 1.0.9. Rows that "differ": see the module's docstring.
ROWS = cases.read("ifeval.jsonl")
RESULTS = ("text", "strict", "loose", "differs")


def prompt(*items, **meta):
  return records.Prompt("i", "?", "", meta=dict(items=list(items)) | meta)


def of_row(row): return {k: x for k, x in row.items() if k not in RESULTS}


@pytest.mark.parametrize("name", instructions.KINDS)
def test_verdicts_are_those_of_the_published_code(name):
  if name.startswith("language"): pytest.importorskip("langdetect")
  rows = [r for r in ROWS if r["name"] == name]
  for row in rows:
    p, seen = prompt(of_row(row)), []
    for fn in (instructions.items, instructions.items_loose): seen += fn(p, row["text"])
    assert (seen == [row["strict"], row["loose"]]) != row.get("differs", False), row
  assert len({r["strict"] for r in rows}) == 2 and len(rows) == 12
  assert any("differs" in r for r in rows) == (
      name in ("length_constraints:number_sentences", "change_case:english_lowercase"))


@pytest.mark.parametrize("item, right, wrong", [
    (dict(name="keywords:existence", keywords=["C++", "a.b"]), "c++ and A.B", "cpp and a-b"),
    (dict(name="keywords:frequency", keyword="ab", frequency=2, relation="at least"), "abAB", "ab"),
    (dict(name="keywords:forbidden_words", forbidden_words=["is"]), "this", "it IS"),
    (dict(name="keywords:letter_frequency", letter="#", let_frequency=2, let_relation="at least"),
     "##", "#"),
    (dict(name="length_constraints:number_sentences", num_sentences=2, relation="less than"),
     "Dr. A. Lee, e.g. at 5 p.m.", "Yes. No."),
    (dict(name="length_constraints:number_paragraphs", num_paragraphs=2), "a\n***\nb", "a *** b ***"
     " c"),
    (dict(name="length_constraints:number_paragraphs", num_paragraphs=2), "a *** b ***",
    "a *** *** b"),
    (dict(name="length_constraints:number_words", num_words=2, relation="less than"), "one!",
    "a b"),
    (dict(name="length_constraints:nth_paragraph_first_word", num_paragraphs=2, nth_paragraph=2,
          first_word="yes"), "a\n\n\"Yes, b", "yes\n\nno"),
    (dict(name="detectable_content:number_placeholders", num_placeholders=1), "[a]", "[a\n]"),
    (dict(name="detectable_content:postscript", postscript_marker="P.S."), "x\np.s. y", "PS y"),
    (dict(name="detectable_format:number_bullet_lists", num_bullets=2), "* a\n\n - b", "** a\n- b"),
    (dict(name="detectable_format:constrained_response"), "My answer is no.", "no."),
    (dict(name="detectable_format:number_highlighted_sections", num_highlights=1), "*a*", "* *"),
    (dict(name="detectable_format:multiple_sections", section_spliter="Day", num_sections=2),
     "Day 1 a Day2 b", "Day 1"),
    (dict(name="detectable_format:json_format"), '```json\n{"a": 1}\n```', "[" * 100_000),
    (dict(name="detectable_format:title"), "<<a>>", "<<>>"),
    (dict(name="combination:two_responses"), "a******b", "a******a"),
    (dict(name="combination:repeat_prompt", prompt_to_repeat="Say Hi"), "say hi: hi", "hi"),
    (dict(name="startend:end_checker", end_phrase="Bye."), '"so bye."', "Bye. So"),
    (dict(name="startend:quotation"), '"a"', "a"),
    (dict(name="change_case:capital_word_frequency", capital_frequency=2,
          capital_relation="at least"), "A-B, C!", "A-B c"),
    (dict(name="change_case:english_capital"), "DIE KATZE", "The"),
    (dict(name="change_case:english_lowercase"), "die katze", "The"),
    (dict(name="punctuation:no_comma"), "a; b", "a, b")], ids=lambda x: str(x)[:60])
def test_kinds_by_hand(item, right, wrong):
  p = prompt(item)
  assert instructions.items(p, right) == [1.0] and instructions.items(p, wrong) == [0.0]
  assert instructions.items(p, f"<think>{wrong}</think>{right}") == [1.0]
  assert instructions.items(p, f"<think>{right}") == instructions.items(p, " ") == [0.0]


def test_shares_are_weighted_and_loose_ones_leave_lines_out():
  p = prompt(dict(name="punctuation:no_comma", weight=3.0), dict(name="startend:quotation"))
  assert instructions.share(p, "a") == 3 / 4 and instructions.followed(p, "a") == 0
  text = 'Sure, here:\n*"a"*'
  assert instructions.items(p, text) == [0, 0] and instructions.items_loose(p, text) == [1, 1]
  assert instructions.share_loose(p, text) == instructions.followed_loose(p, text) == 1
  assert instructions.share_loose(p, 'a, b\n"c"\n d') == 1  # Each for another text.
  assert instructions.items(prompt(dict(name="startend:quotation")), '"') == [0]


def test_rows_of_the_published_form_are_read():
  p = records.Prompt("i", "?", "", meta=dict(
      instruction_id_list=["punctuation:no_comma", "length_constraints:number_words"],
      kwargs=[dict(num_words=None), dict(num_words=2.0, relation="at least", letter=None)]))
  assert instructions.inspect([p]) == [(None, None)]
  assert instructions.items(p, "a b") == [1, 1] and instructions.items(p, "a,") == [0, 0]


@pytest.mark.parametrize("meta, message", [
    ({}, "it has no instructions"), (dict(items=[]), "it has no instructions"),
    (dict(items=[dict(name="keywords:all")]), "'keywords:all': there are keywords:existence"),
    (dict(items=["a"]), "cannot be read"), (dict(items=[dict(weight=1)]), "cannot be read"),
    (dict(instruction_id_list=["a"], kwargs=[]), "cannot be read"),
    (dict(items=[dict(name="punctuation:no_comma", letter="a")]), r"it takes \[\], not \['letter'"),
    (dict(items=[dict(name="punctuation:no_comma", weight=0)]), "weight=0; write a number above 0"),
    (dict(items=[dict(name="startend:end_checker", end_phrase=" ")]), "end_phrase=' '; write a t"),
    (dict(items=[dict(name="keywords:existence", keywords="ab")]), "'ab'; write a list of texts"),
    (dict(items=[dict(name="keywords:letter_frequency", letter="ab", let_frequency=1,
                      let_relation="at least")]), "letter='ab'; write one character"),
    (dict(items=[dict(name="length_constraints:number_words", num_words=1.5,
                      relation="at least")]), "num_words=1.5; write a whole number"),
    (dict(items=[dict(name="length_constraints:number_words", num_words=1, relation="about")]),
     "write 'less than' or 'at least'")])
def test_what_cannot_be_checked_is_refused_in_a_line(meta, message):
  p = records.Prompt("i", "?", "", meta=meta)
  ((problem, constant),) = instructions.inspect([p])
  assert re.search(message, problem) and "\n" not in problem and constant is None
  with pytest.raises(errors.Unknown, match=message): instructions.items(p, "a")


def test_a_language_needs_its_package(monkeypatch):
  monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
  p = prompt(dict(name="language:response_language", language="en"))
  assert "install the package langdetect" in instructions.inspect([p])[0][0]


def test_time_is_linear_in_the_text():
  rows = {r["name"]: of_row(r) for r in ROWS if not r["name"].startswith("language")}
  p = prompt(*rows.values(), dict(name="combination:repeat_prompt", prompt_to_repeat="a" * 999))
  long_texts.check_times(lambda text: instructions.items(p, text))


def test_made_answers_follow_their_instructions_and_other_texts_do_not():
  for kind in made.KINDS:
    for i in range(20):
      row = made.generate(1, i, n_min=1, n_max=1, kinds=(kind,))
      p = records.Prompt("i", row["text"], row["answer"], meta=row["meta"])
      assert instructions.followed(p, row["answer"]) == 1.0
      (item,) = row["meta"]["items"]
      if "less than" not in item.values() and kind not in (
          "punctuation:no_comma", "keywords:forbidden_words", "change_case:english_lowercase"):
        assert instructions.followed(p, "so") == 0.0, item
  with pytest.raises(ValueError, match="prompts.options.kinds='a'"): made.generate(0, 0, kinds="a")
  with pytest.raises(ValueError, match="prompts.options.n_max"): made.generate(0, 0, 2, 1)


def test_an_instruction_may_be_a_veto_with_a_threshold():
  item = {"name": "punctuation:no_comma", "veto": True, "threshold": 0.5}
  p = records.Prompt("i", "?", meta={"items": [item]})
  assert instructions.inspect([p]) == [(None, None)]
  assert [instructions.items(p, text) for text in ("So.", "So, so.")] == [[1.0], [0.0]]
