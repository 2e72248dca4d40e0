"""Which papers are in scope: their states, and the counts of the table."""
import importlib

import pytest

from experiments.claims import claims, scope

ROWS = scope.read("scope")


def row(title, arxiv="", before="not", has="", missing="", kind="reward"):
  return dict(title=title, arxiv=arxiv, before=before, mechanism="", has=has, missing=missing,
              **{"class": kind})


def test_states_by_hand():
  """A number comes before a title; signs, spaces and case of a title do not matter."""
  papers = dict(a=dict(title="One: a Title", arxiv="2501.00001"),
                b=dict(title="Renamed", arxiv="2501.00002"))
  joined = scope.join([
      row("ONE - A title"), row("Old name", "2501.00002", missing="x"), row("Three", missing="y"),
      row("Four", has="evals.accuracy"), row("One: a Title", "2501.00002")], papers)
  assert [(r["keys"], r["state"]) for r in joined] == [
      (["a"], "works"), (["b"], "partly"), ([], "not"), ([], "works"), (["b"], "works")]
  with pytest.raises(ValueError, match="'Five': it has no config, .* in the column `missing`"):
    scope.join([row("Five")], papers)


def test_coverage_by_hand():
  joined = scope.join([
      row("1", before="works", has="x", kind="algorithm"), row("2", missing="y"),
      row("3", has="x"), row("4", before="outside", has="x", missing="y")], {})
  assert scope.coverage(joined).splitlines()[2:] == [
      "| algorithm | 1 | 1 | 0 | 0 | 1 | 0 | 0 |", "| reward | 2 | 0 | 0 | 2 | 1 | 0 | 1 |",
      "| all of the list | 3 | 1 | 0 | 2 | 2 | 0 | 1 |", "| added to it | 1 |  |  |  | 0 | 1 | 0 |"]


def test_the_list_is_whole():
  """Papers, and states before, as they were counted when the list was made."""
  before = [r["before"] for r in ROWS]
  assert [before.count(s) for s in scope.STATES] == [58, 35, 124]
  assert set(before) <= {*scope.STATES, "outside"} and {r["class"] for r in ROWS} == set(
      scope.CLASSES)
  outside = scope.read("out_of_scope")
  assert len(outside) == 122 and all(r["reason"] for r in outside)
  moved = {r["title"] for r in outside if r["decision"].startswith("in scope: ")}
  assert moved == {r["title"] for r in ROWS if r["before"] == "outside"}
  titles = [r["title"].lower() for r in ROWS]
  assert titles == sorted(set(titles)), "docs/scope.tsv is sorted by title, each once"
  numbers = [r["arxiv"] for r in ROWS if r["arxiv"]]
  assert len(numbers) == len(set(numbers))


def test_a_paper_has_one_row():
  """No two rows name the same config or check."""
  joined = scope.join(ROWS, {key: claims.paper(key) for key in claims.keys()})
  keys = [key for r in joined for key in r["keys"]]
  assert len(keys) == len(set(keys)) > 90


@pytest.mark.parametrize("name", sorted(
    {name for r in ROWS for name in r["has"].split(", ") if name}))
def test_what_a_paper_has_exists(name):
  module, _, function = f"rlx.{name}".rpartition(".")
  try:
    importlib.import_module(f"rlx.{name}")
  except ModuleNotFoundError:
    assert callable(getattr(importlib.import_module(module), function))
