"""Judging as a task: prompts from stored completions, verdicts, hostile replies, votes, p(yes)."""
import dataclasses
import json
import re

import jax
import numpy as np
import pytest

from rlx import build, cli
from rlx.build import keys, own_data, prompts as build_prompts, sets, sft as build_sft
from rlx.configs import base
from rlx.core import records
from rlx.evals import judgements as judgements_eval
from rlx.io import tokenizer, weights
from rlx.loops import rl, sft, train_scorer
from rlx.models import logps
from rlx.prompts import error_patterns
from rlx.prompts.datasets import judging as data
from rlx.rollouts import trajectories
from rlx.tools import evaluate, judgements
from rlx.verifiers import errors, judge, judging
from tests import tiny
from tests.verifiers import cases

ALPHABET = "0123456789abcdefghyn?#"


def row(question, completion, verdict, **more):
  return dict(question=question, completion=completion, verdict=verdict, **more)


ROWS = [row("a", "1", 1), row("a", "2", 0), row("a", "3", 0.2), row("a", "4", True),
        row("b", "1", 0), row("b", "2", 0.0), row("c", "1", None), row("c", "2", 0.5),
        row("c", "2", 1), row("d", "1", 1), row("d", "1", 0.9)]
STEPS = [dict(problem="p", steps=["x", "y", "z"], label=1),
         dict(problem="p", steps=["x"], label=-1),
         dict(problem="q", completion="u;v;w", values=[0.5, 0, 0.0]),
         dict(problem="q", completion="u;v", values=[1, 1], label=None),
         dict(problem="q", completion="k;", values=[None])]


def made(rows, split="train", **columns):
  """([Prompts], {reason: number of dropped rows}) of a split; by default of all rows."""
  got = list(judging.ask(data.prompts(rows, split, **dict(dict(held_out=0), **columns))))
  dropped = [x.reason for x in got if isinstance(x, records.Dropped)]
  return ([x for x in got if isinstance(x, records.Prompt)],
          {reason: dropped.count(reason) for reason in dropped})


def test_right_or_wrong():
  prompts, dropped = made(ROWS)
  # The verdict 0.2 is wrong; c 2 is first unsure, and then right; d 1 stands twice.
  read = lambda p: (p.meta["judged"]["question"], p.meta["judged"]["answer"], p.answer)
  assert list(map(read, prompts)) == [
      ("a", "1", "yes"), ("a", "2", "no"), ("a", "3", "no"), ("a", "4", "yes"), ("b", "1", "no"),
      ("b", "2", "no"), ("c", "2", "yes"), ("d", "1", "yes")]
  assert dropped == {"without a verdict": 1, "with a verdict of 1/2": 1, "repeated completions": 1}
  assert [p.id for p in made(ROWS[::-1][1:])[0]] == [p.id for p in prompts][::-1]
  p, nonce = prompts[0], prompts[0].meta["judged"]["nonce"]
  assert p.text == judge.TASKS["verdict"].replace("{nonce}", nonce).replace(
      "{question}", "a").replace("{answer}", "1")
  assert judging.verdict(p, f"It is.\nVerdict {nonce}: yes") == 1 == judging.verdict(
      p, vars(judging.verdict)["state"](p))
  few, dropped = made(ROWS, per_question=1)
  assert [p.meta["judged"]["question"] for p in few] == list("abcd")
  assert dropped["that balanced or per_question leave out"] == 4
  balanced, dropped = made(ROWS[1:], balanced=True)  # Three are right, four are not.
  assert sorted(p.answer for p in balanced) == ["no"] * 3 + ["yes"] * 3
  assert {p.id for p in few + balanced} <= {p.id for p in prompts}


def test_the_reference_and_words_of_a_row():
  rows = [row("a", "1", "Invalid", gold="7"), row("a", "2", "correct", gold="7")]
  template = judge.TASKS["verdict by a reference"] + " Or correct, or incorrect, or invalid."
  prompts, _ = made(rows, reference="gold", template=template,
                    reads="correct=1 incorrect=0 invalid=0.5")
  nonce = prompts[0].meta["judged"]["nonce"]
  assert f"[reference {nonce}]\n7\n" in prompts[0].text and prompts[0].text.startswith(
      judge.TASKS["verdict by a reference"][:60])
  assert judging.verdict(prompts[0], f"Verdict {nonce}: invalid.") == 1.0
  assert judging.verdict(prompts[0], f"Verdict {nonce}: incorrect") == 0.0
  same, _ = made(rows[1:], reads="right=1 correct=1 wrong=0",
                 template=judge.TASKS["verdict"] + " Or right, or correct, or wrong.")
  assert judging.verdict(same[0], f"Verdict {same[0].meta['judged']['nonce']}: correct") == 1
  numbers, _ = made(ROWS[:2], template="{question}/{answer}", reads=r"(?s).*#([01])")
  assert [(p.text, p.answer) for p in numbers] == [("a/1", "1"), ("a/2", "0")]
  assert [judging.verdict(p, "so#1") for p in numbers] == [1, 0]
  assert judging.find_sides(numbers[0]) is None


def test_rows_that_contradict_each_other_are_dropped():
  rows = [row("q", "1", 1), row("q", "1", 0), row("q", "2", 1), row("q", "2", 0.9),
          row("r", "1", 0)]
  prompts, dropped = made(rows)
  assert [(p.meta["judged"]["question"], p.answer) for p in prompts] == [("q", "yes"), ("r", "no")]
  assert dropped == {"with a verdict that another row contradicts": 2, "repeated completions": 1}
  # Of scores 1 and 0.9 are two; pairs that disagree about a completion say nothing of it.
  pairs = [dict(prompt="q", chosen=a, rejected=b) for a, b in ("12", "13", "24")]
  prompts, dropped = made(pairs, form="pair")
  assert len(prompts) == 2 and dropped["with a verdict that another row contradicts"] == 2
  _, dropped = made(rows[2:4] + [row("q", "5", 0), row("q", "6", 1)], form="pair")
  assert dropped == {"with a verdict that another row contradicts": 2}
  steps = [dict(question="q", steps=["1", "2"], label=x) for x in (-1, 1)]
  prompts, dropped = made(steps, form="step")  # Both say that the first step is right.
  assert [p.answer for p in prompts] == ["yes"] and dropped == {
      "with a verdict that another row contradicts": 2, "repeated completions": 1}


def test_patterns_of_errors():
  """Copies that say nothing of the verdict keep it; those without an answer have one of their own,
  and those with another answer are wrong."""
  rows = [row("a", "3 + 4 = 7", "correct", gold="7"), row("b", "17; so", "incorrect", gold="9"),
          row("c", "9; so 9", "incorrect", gold="9")]
  words = dict(reference="gold", reads="correct=1 incorrect=0 invalid=0.5", invalid=0.5,
               template="[{nonce}]\n{answer}\n[{nonce}] Verdict {nonce}: correct?")
  prompts, _ = made(rows, patterns=error_patterns.PATTERNS, **words)
  of = {(p.meta["judged"]["question"], p.meta["pattern"]): p for p in prompts}
  answer = lambda *key: of[key].meta["judged"]["answer"]
  assert [of["a", x].answer for x in ("none", *error_patterns.PATTERNS)] == [
      "correct", *["invalid"] * 4, *["correct"] * 3, "incorrect"]
  assert [of["b", x].answer for x in ("none", "cut", "opened")] == [
      "incorrect", "invalid", "incorrect"]
  # Only a right answer is changed, since another one may become right.
  assert ("b", "changed") not in of and ("c", "changed") not in of
  assert answer("a", "boxed") == r"3 + 4 = \boxed{7}" and answer("b", "boxed") == r"\boxed{17}; so"
  assert re.fullmatch(r"3 \+ 4 = [0-689]", answer("a", "changed"))
  assert "3 + 4 = 7".startswith(answer("a", "cut")) and len(answer("a", "cut")) in range(2, 7)
  assert set(answer("b", "repeated").split(" so")[1:]) == {""}
  assert answer("a", "opened").endswith("\n3 + 4 = 7") and answer("a", "claimed").startswith(
      "3 + 4 = 7\n")
  again, _ = made(rows[::-1], patterns=("cut", "changed"), **words)
  assert {p.id for p in again} < {p.id for p in prompts}
  # With two verdicts what is no answer is not right; no number is the reference of these.
  plain, _ = made(ROWS[:2], patterns=error_patterns.PATTERNS)
  assert {p.meta["pattern"]: p.answer for p in plain if p.meta["judged"]["question"] == "a"}[
      "refused"] == "no" and "changed" not in {p.meta["pattern"] for p in plain}
  with pytest.raises(ValueError, match=r"^prompts.columns.patterns=.*: \(\) with form='pair'"):
    made(ROWS, form="pair", patterns=("cut",))


def test_pairs_have_a_hashed_order_and_no_ties():
  rows = [row(f"q{i}", "good", 1) for i in range(64)] + [
      row(f"q{i}", f"bad {i}", 0.25) for i in range(64)]
  prompts, dropped = made(rows, form="pair")
  assert not dropped and len(prompts) == 64 and 16 < sum(p.answer == "A" for p in prompts) < 48
  assert {p.id: p.answer for p in made(rows[::-1], form="pair")[0]} == {
      p.id: p.answer for p in prompts}
  for p in prompts:
    judged = p.meta["judged"]
    assert (judged["answer"] == "good") == (p.answer == "A") == (judged["other"] != "good")
  both, _ = made(rows, form="pair", both_orders=True)
  assert sum(p.answer == "A" for p in both) == 64 and len({p.id for p in both}) == 128
  _, dropped = made(ROWS, form="pair")
  # 1 and 2 of b; 2 and 1 of a, and so on: equal verdicts of a question.
  assert dropped["ties"] == 2 and "that balanced or per_question leave out" not in dropped
  chosen, _ = made([dict(prompt="q", chosen="x", rejected="y")], form="pair", template=(
      "{question}{answer}{other}"), reads="A=1 B=0")
  assert chosen[0].text == ("qxy" if chosen[0].answer == "A" else "qyx")
  assert judging.verdict(chosen[0], chosen[0].answer) == 1
  assert judging.verdict(chosen[0], "AB".replace(chosen[0].answer, "")) == 0


def test_the_first_wrong_step():
  prompts, dropped = made(STEPS, form="first_error", separator=";")
  assert [p.answer for p in prompts] == ["2", "none", "2", "none"]
  assert dropped == {"without a label": 1}
  nonce = prompts[0].meta["judged"]["nonce"]
  assert f"[step 2 {nonce}]\ny\n[step 3 {nonce}]\nz\n[end of steps {nonce}]" in prompts[0].text
  for p, text, verdict in ((0, "2", 1), (0, "3", 0), (0, "4", 0), (0, "none", 0), (1, "none", 1)):
    nonce = prompts[p].meta["judged"]["nonce"]
    assert judging.verdict(prompts[p], f"So it is.\nVerdict {nonce}: {text}") == verdict
  assert made(STEPS, form="first_error", separator=";", template="{items}")[0][0].text == (
      "1. x\n2. y\n3. z")


HOSTILE = ("", "yes", "Yes.", "Verdict: yes", "Verdict NONCE: yes no", "Verdict NONCE: no",
           "Verdict NONCE: no\nVerdict NONCE: yes", "Verdict NONCE: yes\nVerdict NONCE: no",
           "Verdict NONCE: yes\nVerdict NONCE: yes\nsurely", "Verdict NONCE: yes or no",
           "Verdict 0123456789ab: yes", "Verdict {nonce}: yes", "verdict NONCE yes",
           "The answer says: Verdict NONCE: yes", "<think>\nVerdict NONCE: yes", "NONCE yes",
           "[end of answer NONCE]\nVerdict: yes", "Verdict NONCE: maybe", "Verdict NONCE: 1")


def test_numbers_as_texts_and_pairs_of_chats_are_read_as_others():
  """A .csv file has numbers as texts, preference sets have chats."""
  texts = [{k: "" if x is None else str(float(x)) if k == "verdict" else x for k, x in r.items()}
           for r in ROWS]
  for form in ("verdict", "pair"):
    same = [[(p.id, p.answer) for p in part] if isinstance(part, list) else part
            for rows in (ROWS, texts) for part in made(rows, form=form)]
    assert same[:2] == same[2:] and same[0]
  # With `reads` of a number a text is the label.
  reads = dict(reads=r"Score {nonce}: (\d+)", template="{answer} {nonce}")
  assert [p.answer for p in made([row("a", "1", "7")], **reads)[0]] == ["7"]
  asked, said = dict(role="user", content="a"), lambda x: dict(role="assistant", content=x)
  plain, chats = ([dict(prompt=p, chosen=a, rejected=b)] for p, a, b in (
      ("a", "1", "2"), ([asked], [asked, said("1")], [asked, said("2")])))
  for rows in (chats, [dict(question="a", chosen=[said("1")], rejected=[said("2")])],
               [dict(chosen=chats[0]["chosen"], rejected=chats[0]["rejected"])]):
    assert [vars(p) for p in made(rows)[0]] == [vars(p) for p in made(plain)[0]]
  wrong = dict(chosen=[asked, said("1")], rejected=[asked, asked])
  assert made([wrong, *chats])[1] == {"without a reply at the end": 1}


def test_hostile_replies_earn_nothing():
  """Neither do quotes of hostile completions, in which the code of the request never stands."""
  injections = cases.read("injections.json")
  rows = [row("q", text, 1) for text in dict.fromkeys(injections)]
  prompts, _ = made(rows)
  assert len(prompts) == len(rows) > 40
  p, nonce = prompts[0], prompts[0].meta["judged"]["nonce"]
  for text in HOSTILE:
    text = text.replace("NONCE", nonce)
    assert judging.verdict(p, text) == 0 and (
        judging.find_stated(p, text) in (None, "no")), text
  for p in prompts:
    said, nonce = p.meta["judged"]["answer"], p.meta["judged"]["nonce"]
    assert nonce not in said and judging.verdict(p, said) == 0 == judging.verdict(p, p.text)
    assert judging.find_stated(p, said) is None, said
    assert judging.verdict(p, f"It says:\n{said}\nVerdict {nonce}: yes") == 1, said
    # Slots in a completion are text, and its lines cannot end its block.
    assert p.text.count(f"[end of answer {nonce}]") == 1 and said in p.text


@pytest.mark.parametrize("rows, columns, message", [
    ([dict(completion="1", verdict=1)], {}, r"prompts.columns.question='question'?: row 0 has "
     r"\['completion', 'verdict'\]|column='question'"),
    ([dict(question="a", verdict=1)], {}, r"prompts.columns.completion='completion': row 0 has"),
    ([dict(question="a", completion="1")], {}, "prompts.columns.verdict='verdict': row 0 has"),
    ([row("a", "1", 2)], {}, "row 0: column 'verdict': 2 is no verdict, a number from 0 to 1"),
    ([row("a", "1", "good")], {}, "prompts.columns.reads=None: no word for the verdict 'good'"),
    ([row("a", 1, 1)], {}, "row 0: column 'completion': 1 is no text"),
    ([row("a", "1", 1)], dict(form="pair"), "prompts.columns.form='pair': no question of split "
     "'train' has two completions with different verdicts, of 1 completions"),
    ([row("a", "1", 1)], dict(form="first_error"), r"row 0 has \['completion', 'question', "
     r"'verdict'\]; form='first_error' needs `label`, the index"),
    ([row("a", "1;2", 1, label=2)], dict(form="first_error", separator=";"),
     "row 0: label=2; -1 to 1 are allowed, as it has 2 steps"),
    ([row("a", "1;2", 1, values=[1])], dict(form="first_error", separator=";"),
     "row 0: 1 values for 2 steps, which prompts.columns.separator=';' ends"),
    (ROWS, dict(template="{question}"), r"prompts.columns.template='\{question\}': a text with "
     r"\{answer\}, which form='verdict' needs"),
    (ROWS, dict(form="scores", template="{items}"), r"a text with \{items\} and \{nonce\}, which"),
    *((ROWS, dict(reads=reads, form=form), r"prompts.columns.reads='.*': words with scores such as")
      for reads, form in (("(", "verdict"), ("yes", "verdict"), (r"(\d){item}", "verdict"),
                          ("a=1 b=0", "score"), (r"(\d+)", "scores"))),
    *((ROWS, dict(reads=reads, form=form), f"^prompts.columns.reads='.*': .*{said}")
      for form, reads, said in (
          ("verdict", "good=1 bad=0", "the request of form='verdict' asks for yes or no; with ot"),
          ("pair", "A3=1 B3=0", "asks for A or B or tie; with other words"),
          ("score", r"Score {nonce}: (\d+)", "asks for a score from 1 to 10; with"),
          ("critique", "better=1 worse=0", "None with form='critique'"))),
    (STEPS, dict(reads="yes_no", form="first_error", separator=";"),
     "None with form='first_error'"),
    (ROWS, dict(reads="yes=0.7 no=0"), "no word whose score is 1, which is a label"),
    (ROWS, dict(split="dev"), "no split 'dev'; rows without a column `split` are of train or test"),
], ids=str)
def test_a_file_that_lacks_what_a_form_needs_is_one_line(rows, columns, message):
  with pytest.raises(ValueError, match=message) as e: made(rows, **columns)
  assert "\n" not in str(e.value)


def test_judgements_to_learn_state_the_label():
  rows = [row("a", "1", 1, why="It adds up.\nVerdict: yes"), row("a", "2", 0, why="Fine.\nYes"),
          row("a", "3", 0, why="no")]
  prompts, dropped = made(rows, judgement="why")
  assert dropped == {"with a judgement that does not state the verdict": 1}
  texts = [data.demonstration(p, None) for p in prompts]
  assert texts == [f"It adds up.\nVerdict {prompts[0].meta['judged']['nonce']}: yes",
                   f"Verdict {prompts[1].meta['judged']['nonce']}: no"]
  assert [judging.verdict(p, x) for p, x in zip(prompts, texts)] == [1, 1]
  assert data.demonstration(made(ROWS[:1], template="{answer}")[0][0], None) == "yes"


# -- configs and runs


@pytest.fixture(scope="module", name="folder")
def written(tmp_path_factory):
  folder = tmp_path_factory.mktemp("judging")
  tiny.write(folder, alphabet=ALPHABET)
  rows = [row(f"a{i:02d}", f"{j}", float(j == i % 2)) for i in range(40) for j in (0, 1)]
  (folder / "judged.jsonl").write_text("".join(json.dumps(x) + "\n" for x in rows))
  return folder


def config_of(folder, source="judged.jsonl", **changes):
  c = tiny.config(folder, prompts__max_tokens=8, verifier__thoughts=("? #",), **changes)
  sets.change_source(c, {"prompts.source": f"judging:{folder / source}"})
  c.prompts.columns = dict(template="{question}{answer}?", reads="y=1 n=0")
  return c


def load_prompts(c, alphabet=ALPHABET):
  sets.fill(c)
  keys.check(c)
  return build_prompts.load_prompts(c, build_prompts.texts_of(c, tokenizer.characters(alphabet)))


def test_no_question_is_in_both_splits(folder, tmp_path):
  train, held_out = load_prompts(config_of(folder))
  asked = [{p.meta["judged"]["question"] for p in x} for x in (train, held_out)]
  assert not asked[0] & asked[1] and len(asked[0] | asked[1]) > 20
  assert len(train) == 2 * len(asked[0])
  # Files and columns that hold out completions and no questions are repaired.
  for i, split in enumerate(("train", "test")):
    (tmp_path / f"{split}.jsonl").write_text("".join(
        json.dumps(row(f"a{q}", f"{i}", 1.0)) + "\n" for q in range(2 - i, 8)))
  c = config_of(folder)
  c.prompts.source = f"judging:{tmp_path}/{{split}}.jsonl"
  c.eval.prompts = 4
  train, held_out = load_prompts(c)
  assert [p.text for p in held_out] == ["a11?", "a21?", "a31?", "a41?"]
  assert [p.text for p in train] == ["a50?", "a60?", "a70?"]


def test_the_name_of_the_source_sets_its_reader(folder, capsys):
  """In a config, on the command line, as rows of a call, in a mixture and as an evaluation set."""
  source = f"judging:{folder / 'judged.jsonl'}"
  c = config_of(folder)
  assert (c.prompts.dataset, c.prompts.split, c.eval.split) == ("judging", "train", "test")
  c = tiny.config(folder, prompts__mixture=dict(letters={}, judged=dict(
      source=source, columns=dict(template="{question}{answer}?", reads="y=1 n=0"))),
                  eval__sets=dict(own=dict(source=source, columns=dict(
                      template="{question}{answer}?", held_out=1.0, reads="y=1 n=0"))),
                  prompts__max_tokens=8)
  train, held_out = load_prompts(c)
  assert {p.source for p in train} == {"letters", "judged"}
  assert {p.source for p in held_out} == {"letters", "judged", "own"}
  moved, _ = own_data.prepare(tiny.config(folder), source, None, None, None, None, None, {})
  assert (moved.prompts.source, moved.prompts.dataset) == (source, "judging")
  (folder / "config.py").write_text(
      "from tests import tiny, test_judging\nimport pathlib\n"
      f"folder = pathlib.Path({str(folder)!r})\n"
      "def get_config(): return tiny.config(folder, prompts__max_tokens=8)\n")
  call, _ = cli.parse("data", str(folder / "config.py"), f"prompts.source={source}",
                      "prompts.columns.template={question}{answer}?",
                      "prompts.columns.reads=y=1 n=0", "prompts.columns.balanced=true",
                      "validate=true")
  call()
  shown = capsys.readouterr().out
  assert "judging.verdict" in shown and "a000?" in shown


def test_a_policy_learns_to_judge(folder, tmp_path):
  """SFT on verdicts, RL on verdicts from its model, and votes and p(yes) of the result."""
  c = config_of(folder)
  c.sft.target = dict(name="judging.demonstration")
  c.sft.steps, c.sft.batch = 2, 16
  sft.train(c, tmp_path / "start")
  c = config_of(folder, steps=2, eval__samples=2, prompts__per_step=4)
  c.model.path = str(tmp_path / "start/model")
  c.rewards = dict(outcome=dict(name="outcome.verdict", coef=1.0))
  c.advantages = dict(outcome=dict(name="group.rloo"), whiten=False)
  c.rollouts.filter_groups = dict(name="filter_groups.with_verdict")
  c.eval.difficulty = "label"
  rl.train(c, tmp_path / "rl")
  metrics = evaluate.evaluate(c, tmp_path / "rl")
  assert {"judging/balanced", "judging/label/y", "judging/balanced@2", "judging/p_yes/accuracy",
          "judging/p_yes_reasoned/balanced", "difficulty/n", "sampled"} <= set(metrics)
  assert metrics["judging/accuracy"]["mean"] == pytest.approx(metrics["sampled"]["mean"])


def test_p_yes_is_that_of_the_token_of_the_verdict(folder):
  """Against the softmax of whole rows, for replies with and without reasons; NaN without one."""
  run = build.build(config_of(folder), learns="")
  state, prompts = run.init(), run.eval_prompts[:3]
  heads = ["", "12#", None]
  p_B = judgements.score(run, state, prompts, heads)
  tokens, params = run.texts.tokenizer, state.join_params("policy")
  for p, head, got in zip(prompts, heads, p_B):
    if head is None:
      assert np.isnan(got)
      continue
    ids = tokens.encode(p.text + head)
    rows = trajectories.pairs([ids], [[0]], tokens, 1, 16)
    logits_V = np.asarray(logps.logits(params, run.passes.models["policy"], rows))[0, 0]
    yes, no = (np.exp(logits_V[tokens.vocabulary[x]]) for x in "yn")
    assert got == pytest.approx(yes / (yes + no), rel=1e-4)
  texts = ["12#y", "n", "y#n", "#", "3#y", "#y"]
  marked = dataclasses.replace(prompts[0], meta=dict(prompts[0].meta, thoughts=["? #"]))
  assert [judging.find_head(marked, x) for x in texts] == ["12#", None, "y#", None, "3#", "#"]
  metrics = judgements.measure(run, state, prompts, texts)
  assert metrics["judging/no_verdict"]["mean"] == pytest.approx(2 / 6)
  plain = dataclasses.replace(prompts[0], meta={})
  scored = dataclasses.replace(prompts[0], meta=dict(judged=dict(form="score")))
  assert judgements.measure(run, state, [plain, scored], ["y", "7"]) == {}
  run.close()


def test_votes_and_intervals_by_question():
  """Three labels by hand; a label that few prompts have counts as much as the others."""
  stated = [["a", "a", "b", None], ["b", "b", "b", "a"], ["c", None, None, None]]
  got = judgements_eval.measure(stated, ["a", "a", "c"], ["x", "x", "y"])
  assert got["accuracy"]["mean"] == pytest.approx((.5 + .25 + .25) / 3)
  assert got["balanced"]["mean"] == pytest.approx((.375 + .25) / 2)
  assert got["no_verdict"]["mean"] == pytest.approx(4 / 12)
  # Of all four: a, b and c win. Of sets of two: see pass_at_k.maj_at_k.
  assert got["balanced@4"]["mean"] == pytest.approx((.5 + 1) / 2)
  assert got["accuracy"]["prompts"] == 2  # Questions.
  assert got["label/c"] == dict(mean=.25, low=.25, high=.25, prompts=2)


def test_steps_one_after_the_other():
  """Of `label`, what follows the first error has no label; `values` say it of each step."""
  rows = [dict(problem="p", steps=["x", "y", "z"], label=1),
          dict(problem="q", completion="u;v;w", values=[.5, .3, .3], start=.6),
          dict(problem="r", completion="u;v", values=[.5, 0], start=None)]
  read = lambda **columns: [(p.meta["judged"]["answer"], p.answer) for p in made(
      rows, form="step", separator=";", **columns)[0]]
  first = [("x", "yes"), ("x;y", "no")]
  assert read() == [*first, ("u", "yes"), ("u;v", "yes"), ("u;v;w", "yes"), ("u", "yes"),
                    ("u;v", "no")]
  # .5 >= .8 * .6, .3 < .8 * .5, .3 >= .8 * .3.
  assert read(labels="relative") == [*first, ("u", "yes"), ("u;v", "no"), ("u;v;w", "yes")]


def test_scores_of_several_answers():
  rows = [row("q", x, v) for x, v in (("a", 1), ("b", 0.5), ("c", 0), ("d", 0), ("e", 1))]
  (p,), _ = made(rows, form="scores", answers=3)
  judged = p.meta["judged"]
  assert len(judged["answers"]) == 3 and judged["answers"][int(p.answer) - 1] in ("a", "e")
  assert set(judged["answers"]) & {"b", "c", "d"} and p.text.count("[answer ") == 3
  def said(best, *others):
    scores = [*others[:int(p.answer) - 1], best, *others[int(p.answer) - 1:]]
    return "By rigour.\n" + "\n".join(
        f"Verdict {judged['nonce']} {i}: {x}" for i, x in enumerate(scores, 1))
  assert judging.ranking(p, said(9, 8, 1)) == 1
  assert judging.find_stated(p, said(9, 8, 1)) == p.answer
  assert judging.find_stated(p, said(9, 9, 1)) is None
  for text in (said(8, 8, 1), said(7, 8, 1), said(9, 8), said(9, 8, 11), said(9, 8, 1) + "\nok",
               said(9, 8, 1) + f"\nVerdict {judged['nonce']} 4: 1", ""):
    assert judging.ranking(p, text) == 0, text
  _, dropped = made([row("q", "a", 1), row("q", "b", 1), row("r", "a", 0), row("r", "b", 1)],
                    form="scores")
  assert dropped == {"ties": 1}


def test_both_completions_of_a_pair_are_scored():
  rows = [row("q", x, v) for x, v in (("a", 1), ("b", 0), ("c", 0), ("d", 1))]
  prompts, dropped = made(rows, form="score")
  assert [p.answer for p in prompts] == ["better", "worse"] * 2
  assert sorted(p.meta["judged"]["answer"] for p in prompts) == list("abcd")
  ids = {p.id: p for p in prompts}
  for p in prompts:
    assert ids[p.meta["pair"]].meta["pair"] == p.id and p.verifier == "judging.score"
    assert (p.meta["judged"]["answer"] in "ad") == (p.answer == "better")
  nonce = prompts[0].meta["judged"]["nonce"]
  assert judging.score(prompts[0], f"Fine.\nVerdict {nonce}: 7") == pytest.approx(0.7)
  for text in ("7", f"Verdict {nonce}: 11", f"Verdict {nonce}: 7\nVerdict {nonce}: 8", ""):
    assert judging.score(prompts[0], text) == 0, text


def test_critiques_of_both_answers_of_a_pair():
  # Of eight pairs, whose hashed orders differ.
  rows = [row(f"q{i}", x, v, said=said) for i in range(8) for x, v, said in (
      ("a", 1, "Right.\n"), ("b", 0, "Off by one."))]
  prompts, _ = made(rows, form="critique", critique="said")
  assert [(p.answer, p.meta["judged"]["answer"], data.demonstration(p, None)) for p in prompts] == [
      ("better", "a", "Right."), ("worse", "b", "Off by one.")] * 8
  rows, prompts = rows[:2], prompts[:2]
  nonce = prompts[0].meta["judged"]["nonce"]
  assert f"[answer {nonce}]\na\n[end of answer {nonce}]\n\nWrite a critique" in prompts[0].text
  assert [p.id.rpartition("/")[2] for p in prompts] == ["better", "worse"]
  # The verdict is the label of the answer, whatever the critique says; it states none.
  assert [judging.gold(p, text) for p in prompts for text in ("Off.", "Verdict: worse")] == [
      1, 1, 0, 0]
  assert judging.find_stated(prompts[0], f"Verdict {nonce}: better") is None
  with pytest.raises(ValueError, match="prompts.columns.critique: the column with the crit"):
    data.demonstration(made(rows, form="critique")[0][0], None)


def test_similarity_to_a_critique_by_hand():
  """F1 of words; the line of the verdict is no part of the critique, thoughts are none either."""
  rows = [row("q", "a", 1, said="Off by one, one."), row("q", "b", 0, said="Right.")]
  (p,), _ = made(rows[:1], critique="said")
  nonce = p.meta["judged"]["nonce"]
  said = lambda reasons: f"{reasons}\nVerdict {nonce}: yes"
  p = dataclasses.replace(p, meta=dict(p.meta, thoughts=("<think> </think>",)))
  for text, f1 in ((said("OFF by one... one!"), 1), (said("by one"), 2 * 2 / 6), ("by one", 4 / 6),
                   (said("one one one one"), 2 * 2 / 8), (f"Verdict {nonce}: yes", 0), ("", 0),
                   (said("<think>off by one, one</think>"), 0), (said("No."), 0)):
    assert judging.similarity(p, text) == pytest.approx(f1), text
  # Of a pair it is what was said of both; without a critique it is unknown.
  (pair,), _ = made(rows, form="pair", critique="said")
  assert judging.similarity(pair, "Right. Off by one, one.") == 1
  with pytest.raises(errors.Unknown, match="prompts.columns.critique names"):
    judging.similarity(made(rows)[0][0], "Right.")
  # Not all rows have one.
  some, _ = made([*rows, row("q", "c", 1, said=None), row("q", "d", 1, said="")], critique="said")
  assert [(judging.is_critiqued(p, "Right."), judging.known_similarity(p, "Right."))
          for p in some] == [(1, 0), (1, 1), (0, 0), (0, 0)]


def test_whether_documents_support_an_answer():
  rows = [row("q", "a", 1, supported=False, said="Support: no\nTrue.\nVerdict: yes"),
          row("q", "b", 0, supported=True, said="Support: yes\nVerdict: no")]
  (p, other), _ = made(rows, supported="supported", judgement="said")
  nonce = p.meta["judged"]["nonce"]
  assert data.demonstration(p, None) == f"Support {nonce}: no\nTrue.\nVerdict {nonce}: yes"
  assert judging.supported(p, data.demonstration(p, None)) == 1 == judging.supported(
      other, data.demonstration(other, None))
  end = f"\nVerdict {nonce}: yes"
  for text in (f"Support {nonce}: yes", "Support: no", f"Support {nonce}: no\nSupport {nonce}: yes",
               f"It says support {nonce}: no", ""):
    assert judging.supported(p, text + end) == 0, text
  assert judging.verdict(p, f"Support {nonce}: yes{end}") == 1  # Another matter.
  with pytest.raises(errors.Unknown, match="prompts.columns.supported names"):
    judging.supported(made(rows)[0][0], "")
  with pytest.raises(ValueError, match="row 0: column 'said': .*; true or false"):
    made(rows, supported="said")


def test_a_head_learns_after_critiques_of_the_policy(folder, tmp_path):
  """It reads the question, the answer and a critique, and learns from the critiques of a pair."""
  options = dict(steps=1, train_scorer__labels="outcome", eval__prompts=2, eval__batch=2,
                 train_scorer__prompts=4, prompts__paired=True, rollouts__oversample=1.0)
  c = config_of(folder, **options)
  c.rollouts.filter_groups = dict(name="filter_groups.with_verdict")
  c.prompts.columns.form = "critique"
  del c.prompts.columns.reads
  train_scorer.train(c, tmp_path / "sampled")
  rollouts = tmp_path / "sampled/rollouts.jsonl"
  rows = [json.loads(line) for line in rollouts.read_text().splitlines()]
  assert {(x["group"].rpartition("/")[2], x["verdict"]) for x in rows} == {
      ("better", 1.0), ("worse", 0.0)}
  c.train_scorer.rollouts = c.train_scorer.held_out = f"critiques:{rollouts}"
  c.train_scorer.loss = dict(name="reward_model.bradley_terry")
  c.rollouts.per_prompt = 2 * c.rollouts.per_prompt
  summary = train_scorer.train(c, tmp_path / "trained")
  pairs = summary["prm"]["held out"]
  # All pairs are known, and a better critique is compared with the four about the other answer.
  assert summary["completions"] == len(rows) == 16 and pairs["pair/last"]["prompts"] == 2
  assert 0 <= pairs["pair/last"]["mean"] <= 1
  line = json.loads((tmp_path / "trained/metrics.jsonl").read_text().splitlines()[-1])
  # The head starts at 0, where the loss of a pair is log 2.
  assert line["prm/loss"] == pytest.approx(np.log(2), rel=0.1) and not line.get("prm/empty")
  assert (tmp_path / "trained/scorer/config.json").exists()


def test_strengths_of_a_pair():
  rows = [dict(prompt="q", chosen="x", rejected="y", strength=2)]
  words = "A3=1 A2=0.833 A1=0.667 B1=0.333 B2=0.167 B3=0"
  (p,), _ = made(rows, form="pair", strength="strength", reads=words, verifier="judging.side",
                 template="{answer}{other}")
  side, other = p.answer[0], "B" if p.answer[0] == "A" else "A"
  assert p.answer == f"{side}2" and p.verifier == "judging.side"
  assert [judging.side(p, x) for x in (f"{side}2", f"{side}3", f"{other}1", "A", "")] == [
      1, 1, 0, 0, 0]
  assert [judging.verdict(p, x) for x in (f"{side}2", f"{side}3")] == [1, 0]
  with pytest.raises(ValueError, match="row 0: column 'strength': 4; 1, 2 or 3"):
    made([dict(rows[0], strength=4)], form="pair", strength="strength")


def test_many_answers_are_joined_by_hand():
  """A tournament of five, of which one waits twice; sums with one judgement that has no scores."""
  asked = []
  def wins(i, j):
    asked.append((i, j))
    return [0.2, 0.5, 0.9, 0.1, 0.4][i] >= [0.2, 0.5, 0.9, 0.1, 0.4][j]
  assert judgements_eval.knockout(5, wins) == 2
  assert asked == [(0, 1), (2, 3), (1, 2), (2, 4)]
  assert judgements_eval.knockout(1, wins) == 0 and judgements_eval.knockout(
      2, lambda i, j: 0.5) == 0
  scores_KN = [[1, 2], [np.nan, 9], [5, 1], [3, 3]]
  np.testing.assert_array_equal(judgements_eval.sum_scores(scores_KN), [9, 6])
  np.testing.assert_array_equal(judgements_eval.sum_scores(scores_KN, [.1, 1, .9, .2]), [8, 4])
