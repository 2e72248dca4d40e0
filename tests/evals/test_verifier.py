import numpy as np
import pytest

from rlx.core import records
from rlx.evals import verifier
from rlx.verifiers import pool

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
