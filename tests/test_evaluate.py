import itertools
import math

import numpy as np
import pytest

from rlx import evaluate
from rlx.core import records
from rlx.evals import pass_at_k

nan = np.nan


def test_at_k_is_the_mean_over_all_sets():
  """Every number by enumeration; the third prompt has an unknown verdict."""
  outcome_PG = np.array([[0, 1, 1, 0], [0, 0, 0, 1.], [1, nan, 0, 0]])
  answers = ["a", "b", "b", "c", None, "x", "x", "y", "r", "r", "s", None]
  score_B = np.array([1, 0, 2, 3, 0, 1, 2, 9., 4, 9, -1, 5])
  found = evaluate.at_k(outcome_PG, answers, {"sum": score_B})
  names = {kind + "@" + str(k) for kind in ("pass", "maj") for k in (1, 2, 4)} | {
      f"{kind}@{k}/sum" for kind in ("weighted", "best") for k in (1, 2, 4)}
  assert set(found) == names

  def one(kind, order, p):
    rows = [p * 4 + i for i in order]
    o = outcome_PG[p, order]
    if kind == "pass": return o.max()
    if kind == "best": return o[np.argmax(score_B[rows])]
    weights = 1 / (1 + np.exp(-score_B[rows])) if kind == "weighted" else None
    won = pass_at_k.majority([answers[i] for i in rows], weights)
    known = ~np.isnan(outcome_PG[p])
    return float(any(answers[p * 4 + i] == won and outcome_PG[p, i] == 1
                     for i in np.flatnonzero(known)))

  for name in names:
    kind, rest = name.split("@")
    k = int(rest.split("/")[0])
    means = []
    for p in range(3):
      there = np.flatnonzero(~np.isnan(outcome_PG[p])).tolist()
      orders = list(itertools.permutations(there, k))
      if orders: means.append(np.mean([one(kind, list(o), p) for o in orders]))
    assert found[name]["mean"] == pytest.approx(np.mean(means)), name
    assert found[name]["prompts"] == len(means) == (2 if k == 4 else 3)


def test_what_completions_are_like():
  outcome_PG = np.array([[1., 0.], [nan, 1.]])
  eos, length = records.FINISH.index("eos"), records.FINISH.index("length")
  found = evaluate.of_texts(outcome_PG, ["5", None, "3", None],
                            [eos, length, eos, eos], [2, 10, 4, 6])
  assert found["no_answer"]["mean"] == .5 and found["truncated"]["mean"] == .25
  # Of prompts: 6 and 5. Of right ones: 2 and 6; wrong: 10; one is unknown.
  assert found["length"]["mean"] == 5.5
  assert (found["length"]["right"], found["length"]["wrong"]) == (4, 10)
  quantiles = found["length"]["quantiles"]
  assert (quantiles["0.5"], quantiles["1.0"]) == (5, 10)
  assert (found["length"]["low"], found["length"]["high"]) == (5, 6)


def test_a_field_of_meta_that_is_not_there_is_named():
  p = records.Prompt(id="a/0", text="?", meta=dict(level=3))
  assert evaluate._meta([p], "level") == [3]
  with pytest.raises(ValueError, match=r"eval.difficulty='hard': .*'a/0' has \['level'\]"):
    evaluate._meta([p], "hard")


def test_the_tables_have_every_number(capsys):
  x = dict(mean=.5, low=.25, high=.75, prompts=7)
  evaluate.show({"greedy": x, "pass@1": x, "pass@2": dict(x, mean=.625),
                 "best@1/min/no_ref": x, "best@2/min/no_ref": dict(x, mean=math.nan),
                 "prm": {"chain.steps": {"f1/step": dict(x, mean=.125)}}})
  out = capsys.readouterr().out
  rows = {tuple(line.split()) for line in out.splitlines()}
  assert ("greedy", "0.500", "[0.250,", "0.750]", "7") in rows
  assert ("chain.steps", "f1/step", "0.125", "[0.250,", "0.750]", "7") in rows
  assert ("k", "1", "2") in rows
  assert ("pass", "0.500", "[0.250,", "0.750]", "0.625", "[0.250,", "0.750]") in rows
  assert ("best", "min/no_ref", "0.500", "[0.250,", "0.750]", "nan", "[0.250,",
          "0.750]") in rows
