"""Published sets of scored completions: what rows of their shapes become, and what is dropped."""
import json
import pathlib

import pytest

from rlx.io import rows as io_rows
from rlx.prompts import scored_sets

KEY = "train_scorer.rollouts"
USER, REPLY = dict(role="user", content="2+2?"), dict(role="assistant", content="4")
OTHER = dict(role="assistant", content="5")
RATED = lambda text, score, honesty: dict(
    response=text, overall_score=score, annotations=dict(honesty=dict(Rating=honesty)))
SHEPHERD = "Ann has 3 pens. How many? Step 1: She has 3. ки\nStep 2: The answer is: 3 ки"
PRM800K = lambda *steps, reason="solution": dict(
    question=dict(problem="1+1?", ground_truth_answer="2"), label=dict(
        finish_reason=reason, steps=list(steps)))
STEP = lambda *ratings, chosen=0: dict(
    chosen_completion=chosen, human_completion=None,
    completions=[dict(text=f" step {r} ", rating=r, flagged=False) for r in ratings])

AT = "policies:rows.jsonl: row 0"
# name -> (row of the published shape, what it becomes: rows, or why it is dropped), ...
CASES = {
    "preferences": [
        (dict(prompt="2+2?", chosen="4", rejected="5", margin=2),
         [dict(question="2+2?", chosen="4", rejected="5", margin=2)]),
        (dict(chosen=[USER, REPLY], rejected=[USER, OTHER]),
         [dict(question=(USER,), chosen="4", rejected="5")]),
        (dict(prompt=[USER], chosen=[REPLY], rejected=[OTHER]),
         [dict(question=[USER], chosen="4", rejected="5")]),
        *((row | dict(chosen=[USER, REPLY], rejected=[USER, OTHER]), [dict(
            question=(USER,), chosen="4", rejected="5")]) for row in (
                dict(prompt=[USER]), dict(prompt="2+2?"))),
        (dict(prompt=[USER], chosen=[USER, REPLY], rejected=[OTHER]),
         [dict(question=(USER,), chosen="4", rejected="5")]),
        *((row | dict(chosen=[USER, REPLY], rejected=[dict(USER, content="3?"), OTHER]),
           "with two different questions") for row in (
               {}, dict(prompt="2+2?"), dict(prompt=[USER]))),
        (dict(prompt="2+2?", chosen="4", rejected="4"), "with two equal completions"),
        (dict(chosen="4", rejected="5"), "without a question")],
    "policies": [
        (dict(question="2+2?", completions=dict(a=["4", "four", "5"], b=["5", "6"])), [
            dict(question="2+2?", reference="4", chosen="four", rejected="5", group=f"{AT}, a 0 b"),
            dict(question="2+2?", reference="4", chosen="5", rejected="6", group=f"{AT}, a 1 b"),
            dict(question="2+2?", reference="5", chosen="6", rejected="4", group=f"{AT}, b 0 a")]),
        (dict(question="2+2?", completions=dict(a=["4", "5"])), "with completions of one policy"),
        (dict(question="2+2?", completions=dict(a=["4"], b=["5"])),
         "without two completions of a policy")],
    "edits": [
        (dict(prompt="2+2?", chosen="It is 4, so yes.", rejected="It is not 4, yes."), [
            dict(question="2+2?", completion="It is 4, so yes.", verdict=1.0,
                 spans=[[0, 6, .5], [6, 9, .5], [9, 12, 1.0], [12, 16, .5]]),
            dict(question="2+2?", completion="It is not 4, yes.", verdict=0.0,
                 spans=[[0, 6, .5], [6, 10, 0.0], [10, 13, .5], [13, 17, .5]])]),
        (dict(prompt="2+2?", chosen="4", rejected="5"), [
            dict(question="2+2?", completion="4", verdict=1.0, spans=[[0, 1, 1.0]]),
            dict(question="2+2?", completion="5", verdict=0.0, spans=[[0, 1, 0.0]])]),
        (dict(prompt="2+2?", chosen="4", rejected="4"), "with two equal completions")],
    "critiques": [
        (dict(prompt="Why?", completion="So.", group="judging/critique/7/better", verdict=0.5,
              finish="length", sampled=3, label=None),
         [dict(prompt="Why?", completion="So.", group="judging/critique/7", verdict=1.0,
               finish="length", sampled=3)]),
        (dict(prompt="Why?", completion="No.", group="judging/critique/7/worse"),
         [dict(prompt="Why?", completion="No.", group="judging/critique/7", verdict=0.0)]),
        (dict(prompt="Why?", completion="No.", group="7"), "that are about no answer of a pair")],
    "hh_rlhf": [
        (dict(chosen="\n\nHuman: 2+2?\n\nAssistant: 4", rejected="\n\nHuman: 2+2?\n\nAssistant: 5"),
         [dict(question=(USER,), chosen="4", rejected="5")]),
        (dict(chosen="4", rejected="5"), "with a dialogue of another form")],
    "ultrafeedback_binarized": [
        (dict(prompt="2+2?", chosen=[USER, REPLY], rejected=[USER, OTHER], score_chosen=9.0,
              score_rejected=6.5),
         [dict(question=(USER,), chosen="4", rejected="5", margin=2.5)]),
        (dict(prompt="2+2?", chosen=[USER, REPLY], rejected=[USER, OTHER], score_chosen=6.0,
              score_rejected=6.0), "without a preference")],
    "ultrafeedback": [
        (dict(instruction="2+2?", completions=[RATED("4", 10, "5"), RATED("5", 1.0, "4"),
                                               RATED("6", "N/A", "1"), RATED("7", 85, "2")]),
         [dict(question="2+2?", completions=["4", "5"], verdicts=[1.0, 0.0])]),
        (dict(instruction="2+2?", completions=[RATED("4", 10, "5")]),
         "with fewer than two rated completions")],
    "ultrafeedback/honesty": [
        (dict(instruction="2+2?", completions=[RATED("4", 10, "5"), RATED("5", 1, "2")]),
         [dict(question="2+2?", completions=["4", "5"], verdicts=[1.0, 0.25])])],
    "helpsteer": [
        (dict(prompt="2+2?", response="4", helpfulness=3, correctness=4),
         [dict(question="2+2?", completion="4", verdict=0.75)]),
        (dict(prompt="2+2?", response="", helpfulness=3), "without a completion")],
    "helpsteer2/correctness": [
        (dict(prompt="1+1?\n<extra_id_1>Assistant\n2\n<extra_id_1>User\n2+2?", response="4",
              helpfulness=0, correctness=4),
         [dict(question=[dict(role="user", content="1+1?"), dict(role="assistant", content="2"),
                         USER], completion="4", verdict=1.0)]),
        (dict(prompt="2+2?", response="4", correctness=5), "without a rating from 0 to 4")],
    "helpsteer2_preference": [
        (dict(prompt="2+2?", response_1="5", response_2="4", preference_strength=2),
         [dict(question="2+2?", chosen="4", rejected="5", margin=2)]),
        (dict(prompt="2+2?", response_1="5", response_2="4", preference_strength=-1),
         [dict(question="2+2?", chosen="5", rejected="4", margin=1)]),
        (dict(prompt="2+2?", response_1="5", response_2="4", preference_strength=0),
         "without a preference")],
    "math_shepherd": [
        (dict(input=SHEPHERD, task="GSM8K",
              label=SHEPHERD.replace("3. ки", "3. +").replace("3 ки", "3 -")),
         [dict(question="Ann has 3 pens. How many?",
               completion="Step 1: She has 3.\nStep 2: The answer is: 3", values=[1.0, 0.0],
               label=1, verdict=0.0)]),
        (dict(input=SHEPHERD, label=SHEPHERD), "with labels of other steps"),
        (dict(input="What? ки", label="What? +"), "without steps"),
        (dict(input="2? Step 1: a\nb ки", label="2? Step 1: a\nb +"),
         r"with '\n' inside of a step")],
    "prm800k": [
        (PRM800K(STEP(1), STEP(-1, 0, chosen=1)),
         [dict(question="1+1?", completion="step 1\nstep 0", values=[1.0, 1.0], label=-1,
               verdict=1.0)]),
        (PRM800K(STEP(1), STEP(-1, chosen=None), reason="found_error"),
         [dict(question="1+1?", completion="step 1\nstep -1", values=[1.0, 0.0], label=1,
               verdict=0.0)]),
        (PRM800K(STEP(1), reason="give_up"), "that were given up"),
        (PRM800K(STEP(None)), "with a step without a rating")],
    "processbench": [
        (dict(id="math-0", problem="1+1?", steps=["1", " 3", "so 3"], label=1),
         [dict(question="1+1?", completion="1\n3\nso 3", values=[1.0, 0.0, 0.0], label=1,
               verdict=0.0)]),
        (dict(problem="1+1?", steps=["1", "2"], label=-1),
         [dict(question="1+1?", completion="1\n2", values=[1.0, 1.0], label=-1, verdict=1.0)]),
        (dict(problem="1+1?", steps=["2"], label=1),
         "with a label that is no index of a step, and not -1"),
        (dict(problem="1+1?", steps=[], label=-1), "with an empty step")]}


@pytest.mark.parametrize("name", CASES)
def test_rows_of_published_shapes(name, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  pathlib.Path("rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row, _ in CASES[name]))
  got = [made for _, made in scored_sets.read(f"{name}:rows.jsonl", io_rows.rows, "\n", KEY)]
  assert got == [made for _, made in CASES[name]]


def test_every_set_has_a_case_and_a_source_or_none():
  assert {name.partition("/")[0] for name in CASES} == set(scored_sets.SETS)
  assert scored_sets.split_name("Math-Shepherd") == (
      "math_shepherd", "", "hf:peiyi9979/Math-Shepherd::train")
  for path in ("/tmp/rollouts.jsonl", "rows/helpsteer.jsonl", "other:rows.jsonl"):
    assert scored_sets.split_name(path) is None


@pytest.mark.parametrize("name, row", [
    ("prm800k", dict(label=3)), ("prm800k", dict(label=dict(finish_reason="solution"))),
    ("processbench", dict(problem="?", steps=["4"])),
    ("ultrafeedback", dict(instruction="?", completions=["4", "5"])), ("hh_rlhf", dict(chosen=4)),
    ("math_shepherd", dict(input="2? Step 1: a ки", label=2)),
    ("preferences", dict(chosen=[4], rejected="5")),
], ids=str)
def test_a_row_of_another_shape_is_one_line(name, row):
  with pytest.raises(ValueError, match=f"^({KEY}|column=.*: )?{name}:rows: row 0") as e:
    next(scored_sets.read(f"{name}:rows", lambda source: [row], "\n", KEY))
  assert "\n" not in str(e.value)


def rated(rating): return dict(question=dict(problem="?"), label=dict(
    finish_reason="solution", steps=[dict(completions=[dict(text="4", rating=rating)],
                                          chosen_completion=0)]))


@pytest.mark.parametrize("name, row, reason", [
    *(("processbench", dict(problem="?", steps=["4"], label=label), "with a label that is no index")
      for label in (None, True, 0.5, "0", 1)),
    *(("processbench", dict(problem="?", steps=steps, label=-1), "without a list of texts as steps")
      for steps in ("abc", None, ["4", 4])),
    *(("prm800k", rated(rating), "with a rating that is not -1, 0 or 1")
      for rating in (True, 0.3, 5, "good")),
    ("prm800k", rated(None), "with a step without a rating"),
    *((name, dict(row, prompt=asked, instruction=asked), "without a question")
      for name, row in (
          ("helpsteer", dict(response="4", helpfulness=4)),
          ("helpsteer2_preference", dict(response_1="4", response_2="5", preference_strength=1)),
          ("ultrafeedback", dict(completions=[dict(response=x, overall_score=5) for x in "45"])))
      for asked in (None, "", " ")),
], ids=str)
def test_a_row_with_a_wrong_value_is_dropped_with_the_reason(name, row, reason):
  (_, made), = scored_sets.read(f"{name}:rows", lambda source: [row], "\n", KEY)
  assert isinstance(made, str) and made.startswith(reason)


@pytest.mark.parametrize("path, separator, message", [
    ("prm800k", "\n", "train_scorer.rollouts='prm800k': prm800k:FILE, with the file of the set"),
    ("math_shepherd:rows.jsonl", None, "rollouts.step_separator=None: a text with train_scorer"),
    ("helpsteer2/charm:rows.jsonl", "\n", "train_scorer.rollouts=.*: aspects are .'helpfulness'"),
    ("hh_rlhf/charm:rows.jsonl", "\n", "train_scorer.rollouts=.*: aspects are ()"),
    ("helpsteer:/nowhere.jsonl", "\n", "no file /nowhere.jsonl"),
], ids=str)
def test_what_cannot_be_read_is_one_line(path, separator, message):
  with pytest.raises(ValueError, match=message) as e:
    next(scored_sets.read(path, io_rows.rows, separator, KEY))
  assert "\n" not in str(e.value)
