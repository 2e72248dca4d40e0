import contextlib

import numpy as np
import pytest

from configs import base
from rlx.core import records
from rlx.evals import verifier
from rlx.verifiers import pool
from tests.verifiers import endpoint

nan = np.nan


def test_report():
  # TP 2, FP 1, FN 1, TN 1, and one unknown.
  verdict_N, label_N = [1., 1., 1., 0., 0., nan], [1., 1., 0., 1., 0., 1.]
  got = verifier.report(verdict_N, label_N, ["a", "a", "b", "b", "b", "b"])
  assert list(got) == ["all", "a", "b"]
  assert got["all"] == pytest.approx(dict(
      count=6, unknown=1/6, accuracy=3/5, precision=2/3, recall=2/3, f1=2/3, fpr=1/2,
      fnr=1/3, youden=2/3 - 1/2))
  # Only right answers: how often wrong ones pass is not known.
  assert got["a"]["recall"] == 1
  assert np.isnan(got["a"]["fpr"]) and np.isnan(got["a"]["youden"])
  assert got["b"] == pytest.approx(dict(
      count=4, unknown=1/4, accuracy=1/3, precision=0, recall=0, f1=0, fpr=1/2, fnr=1,
      youden=-1/2))
  assert list(verifier.report(verdict_N, label_N)) == ["all"]


def test_a_rule_accepts_no_master_key():
  prompt = records.Prompt(id="p", text="4+2=", answer="6", verifier="chain.answer")
  workers = pool.Pool(0, 1.0)
  rates = verifier.false_positive_rates(workers.verify, [prompt])
  assert rates == dict.fromkeys(verifier.MASTER_KEYS, 0.0) and len(rates) == 10


@contextlib.contextmanager
def judge_of_pairs(reply):
  """(verify, prompts) of a judge with this endpoint."""
  with endpoint.serve(reply) as server:
    options = base.get_config().verifier.judge.to_dict() | dict(
        url=server.url, model="m", retries=0, both_orders=False, named={})
    prompts = [records.Prompt("p", "2 + 3?", "five", "judge.pairs")] * 3
    with contextlib.closing(pool.Pool(1, 10.0, options=dict(judge=options))) as workers:
      yield workers.verify, prompts


@pytest.mark.parametrize("winner, expected", [
    # By length, which the label is in one of three; by place; by the letter that is better.
    (lambda a, b: "AB"[len(a) < len(b)], dict(order=0, inconsistent=0, accuracy=1/3, length=2/3,
                                              own=0)),
    (lambda a, b: "A", dict(order=.5, inconsistent=1, accuracy=.5, length=1/6, own=0)),
    (lambda a, b: "AB"["x" in b], dict(order=0, inconsistent=0, accuracy=1, length=0, own=0)),
    (lambda a, b: "?", dict(unknown=1, order=nan, inconsistent=nan, accuracy=nan, length=nan))])
def test_biases_of_a_judge(winner, expected):
  def reply(question):
    a, b = (endpoint.block(question, f"answer {x}") for x in "AB")
    return f"Verdict {endpoint.nonce_of(question)}: {winner(a, b)}"
  with judge_of_pairs(reply) as (verify, prompts):
    orders = verifier.ask_both_orders(verify, prompts, ["xxxx", "yyyy", "x"], ["yy", "x", "yy"])
  got = verifier.measure_biases(*orders, label_N=[1, 0, 1], longer_N=[1, 1, -1], own_N=[0, 1, 1])
  for name, value in expected.items(): np.testing.assert_allclose(got[name], value, err_msg=name)


def test_null_models_win_only_against_a_judge_that_is_deceived():
  def deceived(question):
    by_place = {x: endpoint.block(question, f"answer {x}") for x in "AB"}
    liked = "It depends." if "It depends." in by_place.values() else "five"
    return f"Verdict {endpoint.nonce_of(question)}: " + "BA"[by_place["A"] == liked]
  with judge_of_pairs(deceived) as (verify, prompts):
    rates = verifier.null_win_rates(verify, prompts)
  assert list(rates.values()) == [0, 0, 1] and list(rates) == list(verifier.NULL_ANSWERS)


def test_trip_wires_by_hand():
  """Two of three marks, none of one, one of one: in any case, each mark once."""
  texts, marks = ["Dear [NAME] [name] at [place]", "Hi Ann", "<<T>>"], [
      ["[name]", "[place]", "[x]"], ["[name]"], ["<<t>>"]]
  got = verifier.trip_rates(texts, marks)
  assert got == pytest.approx(dict(share=(2 / 3 + 0 + 1) / 3, any=2 / 3, marks=3 / 5))
  for bad in ((texts, marks[:2]), (["a"], [[]]), ([], [])):
    with pytest.raises(ValueError, match="as many of both"): verifier.trip_rates(*bad)
