"""The study of scorers on held-out pairs: the pairs that a scorer learns from, and its arms."""
import json

import pytest

from experiments.scorers import held_out_pairs
from rlx.build import methods as build_methods, validation


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
