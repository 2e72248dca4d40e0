"""The study of scorers on held-out pairs: the pairs that a scorer learns from, and its arms."""
import json
import pathlib

import pytest

from experiments.scorers import held_out_pairs
from rlx.build import methods as build_methods, validation

RESULTS = (pathlib.Path(__file__).parents[3] / "RESULTS.md").read_text()


def test_pairs_are_of_one_question_finished_and_surely_right_or_wrong(tmp_path):
  rows = [("a", "right", 1.0), ("a", "wrong", 0.0), ("a", "partly", 0.5), ("a", "unknown", None),
          ("b", "alone", 1.0), ("a", "right 2", 1.0), ("a", "wrong 2", 0.0), ("a", "right 3", 1.0),
          ("a", "wrong 3", 0.0), ("c", "other", 0.0)]
  rows = [dict(group=group, prompt=f"{group}?", completion=text, verdict=verdict, finish="eos")
          for group, text, verdict in rows]
  rows.insert(0, dict(rows[0], completion="cut", finish="length"))
  sampled, pairs = tmp_path / "sampled.jsonl", tmp_path / "pairs.jsonl"
  sampled.write_text("".join(json.dumps(row) + "\n" for row in rows))
  assert held_out_pairs.write_pairs(sampled, pairs) == 2
  assert list(map(json.loads, pairs.read_text().splitlines())) == [
      dict(prompt="a?", chosen=f"right{x}", rejected=f"wrong{x}") for x in ("", " 2")]


@pytest.mark.parametrize("arm, head, loss", [
    ("own", "plain", "bradley_terry"), ("smollm2", "plain", "bradley_terry"),
    ("yes_no", "yes_no", "bce")])
def test_arms_are_accepted(tmp_path, arm, head, loss):
  c = held_out_pairs.configure(arm, tmp_path, "model")
  validation.check(c, build_methods.resolve_methods(c))
  assert (c.train_scorer.head, c.train_scorer.loss.name) == (head, f"reward_model.{loss}")
  # Only the third arm learns from the completions of another one.
  assert (c.train_scorer.rollouts is not None) == (arm == "yes_no")


def test_the_figures_of_the_page_are_those_of_the_record():
  record = [json.loads(line) for line in held_out_pairs.RECORDED.read_text().splitlines()]
  assert [row["arm"] for row in record] == ["own", "smollm2"]
  assert held_out_pairs.tabulate(record) in RESULTS
  own, smollm2 = ({name: x["mean"] for name, x in row["best"].items()} for row in record)
  text = " ".join(RESULTS.split())
  for numbers, said in (
      (smollm2, "for {best@8/sum:.3f} of the questions (one drawn completion: {pass@1:.3f}; by the "
       "best possible choice: {pass@8:.3f})"),
      (own, "for {best@8/sum:.3f} (one completion: {pass@1:.3f}; best possible: {pass@8:.3f})"),
      (record[1], "({learned_right:.2f} and {right:.2f} of the completions right)")):
    assert said.format(**numbers) in text, said


def test_measures_by_hand(tmp_path):
  """Two questions of which one has pairs; a verdict of at most 1/2 is wrong, none is neither."""
  def write(name, verdicts):
    (tmp_path / name).write_text("".join(json.dumps(dict(
        group=i // 3, verdict=v, completion="x" * n)) + "\n" for i, (v, n) in enumerate(verdicts)))
    return tmp_path / name
  pair = dict(mean=0.5, low=0.0, high=1.0, prompts=2)
  row = held_out_pairs.summarise(
      {"completions": 4, "sampled_tokens": 9, "prm": {"held out": {"pair/sum": pair}},
       "pass@1": pair, "pass@8": pair, "best@8/sum": pair},
      write("held_out", [(1.0, 3), (0.5, 1), (0.0, 5), (1.0, 1), (1.0, 2), (None, 9)]),
      write("sampled", [(1.0, 1), (0.1, 1), (None, 1), (0.9, 1)]))
  assert row["pair"] == pair and row["learned_right"] == row["right"] == 0.5
  assert (row["held_out_questions"], row["questions_with_pairs"]) == (2, 1)
  assert row["longer"]["mean"] == row["shorter"]["mean"] == 0.5
