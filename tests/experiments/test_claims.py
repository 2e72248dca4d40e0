"""What is said of a claim, and the table of all papers."""
import inspect
import json
import math
import sys

import pytest

from experiments import claims

CHECKS = [key for key in claims.keys() if claims.check_of(key)]


@pytest.mark.parametrize("effects, expected", [
    ([1.0, 1.2, 0.8], "confirmed"), ([-1.0, -1.2, -0.8], "opposite"),
    # Mean 1, std 1.587: 4.303 * 1.587 / sqrt(3) = 3.94 > 1.
    ([2.0, -1.0, 2.0], "not seen"), ([0.0, 0.0, 0.0], "not seen"),
    ([0.5, 0.5, 0.5], "confirmed")])
def test_seen(effects, expected):
  assert claims.seen(effects) == expected


def test_interval_by_hand():
  """Of two, the half width is t std / sqrt(2) = 12.706 * 1.41421 / 1.41421."""
  assert claims.interval([0.0, 2.0]) == pytest.approx((1.0, -11.706, 13.706), abs=1e-3)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_refuses_what_is_not_finite(bad):
  with pytest.raises(ValueError, match="all must be finite"):
    claims.seen([1.0, bad, 1.0])


@pytest.mark.parametrize("key", CHECKS)
def test_check_says_what_it_measures(key):
  check, paper = claims.check_of(key), claims.paper_of(key)
  assert 0 <= check.CLAIM < len(paper["claims"])
  assert check.MEASURE and "\n" not in check.MEASURE and len(check.MEASURE) < 120
  assert not check.MEASURE[0].isupper() and not check.MEASURE.endswith(".")
  assert list(inspect.signature(check.effects).parameters) == ["seeds"]
  assert check.__doc__


@pytest.mark.parametrize("key", claims.keys())
def test_paper_is_described_once(key):
  paper, check = claims.paper_of(key), claims.check_of(key)
  assert {"title", "arxiv", "claims", "confidence"} == set(paper)
  assert isinstance(paper["claims"], tuple) and paper["claims"]
  if (claims.ROOT / "configs/papers" / f"{key}.py").exists():
    assert not hasattr(check, "PAPER"), "its PAPER is the config's"


def record(key, effects=(1.0, 1.1, 0.9)):
  return dict(key=key, seen=claims.seen(effects), effects=list(effects), seconds=1.0)


def test_table_lists_every_key_once():
  found = {CHECKS[0]: record(CHECKS[0]), CHECKS[1]: record(CHECKS[1], (2.0, -1.0, 2.0))}
  text = claims.table(found)
  assert text == claims.table(dict(reversed(found.items())))
  rows = [l for l in text.splitlines() if l.startswith("| ")][2:]
  assert len(rows) == len(claims.keys()) == len(set(claims.keys()))
  for key, row in zip(claims.keys(), rows):
    assert row.count(" | ") == 7 and claims.paper_of(key)["title"] in row
    assert ("no check" in row) == (key not in found)
  assert "confirmed | 3 | 1 [0.752, 1.25] |" in rows[claims.keys().index(CHECKS[0])]
  assert f"{len(rows)} papers: 1 confirmed, 1 not seen, 0 opposite" in text


def test_newest_record_wins(tmp_path):
  assert claims.read(tmp_path / "none") == {}
  lines = [record("b"), record("a"), record("b", (-1.0, -1.1, -0.9))]
  (tmp_path / "x").write_text("\n".join(map(json.dumps, lines)))
  found = claims.read(tmp_path / "x")
  assert set(found) == {"a", "b"} and found["b"]["seen"] == "opposite"


def test_run_keeps_what_others_recorded(tmp_path, monkeypatch, capsys):
  """One check is run, the record of another stays; the table is of both."""
  key, other = CHECKS[:2]
  monkeypatch.setattr(claims.check_of(key), "effects", lambda seeds: [1.0 + s for s in seeds])
  out, docs = tmp_path / "out.jsonl", tmp_path / "out.md"
  out.write_text(json.dumps(record(other)) + "\n")
  monkeypatch.setattr(sys, "argv", ["claims", key, "--seeds", "3", "--out", str(out),
                                    "--docs", str(docs)])
  claims.main()
  found = claims.read(out)
  assert found[key]["effects"] == [1.0, 2.0, 3.0] and found[other] == record(other)
  assert docs.read_text() == claims.table(found)
  assert capsys.readouterr().out.startswith(key)


@pytest.mark.parametrize("argv, message", [
    (["--seeds", "2"], "--seeds=2: must be >= 3"), (["--docs", "x"], "--docs needs --out"),
    (["no_such"], "no_such: there is no experiments/papers/no_such.py")])
def test_refuses(monkeypatch, argv, message):
  monkeypatch.setattr(sys, "argv", ["claims", *argv])
  with pytest.raises(SystemExit, match=message):
    claims.main()
