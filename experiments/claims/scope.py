"""Which papers are in scope, and what is there of each: docs/scope.tsv and docs/out_of_scope.tsv.

A row of docs/scope.tsv is a paper in scope:

  title, arxiv   arxiv is empty where no source for the number was at hand
  class          reward or algorithm
  before         works, partly or not: the state when the list was compared with rlx for the first
                 time; outside: the list had it as out of scope
  mechanism      what most of the missing parts belong to
  has            functions and modules of rlx, without "rlx.", that a paper without config uses
  missing        what is missing; empty if nothing is

A paper is found among the configs and checks by its number, or else by its title. Its state:

  works    it has a config, a check or functions, and nothing is missing
  partly   it has one of these, and something is missing
  not      it has none of these
"""
import collections
import csv
import pathlib
import re

from rlx.grids import tables

DOCS = pathlib.Path(__file__).parents[2] / "docs"
CLASSES, STATES = ("algorithm", "reward"), ("works", "partly", "not")


def read(name, folder=DOCS):
  """[row] of a table of docs."""
  with (folder / f"{name}.tsv").open(newline="") as lines:
    return list(csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE, strict=True))


def join(rows, papers):
  """The rows with the papers of rlx that they are.

  Args:
    rows: of docs/scope.tsv.
    papers: {key: dict of title and arxiv}.
  Returns:
    [row with keys and state], keys those of `papers`.
  Raises:
    ValueError: a paper that has nothing misses nothing.
  """
  by_title, by_number = collections.defaultdict(set), collections.defaultdict(set)
  for key, paper in papers.items():
    by_title[_letters(paper["title"])].add(key)
    by_number[paper["arxiv"]].add(key)
  joined = []
  for row in rows:
    keys = sorted(by_number.get(row["arxiv"]) or by_title.get(_letters(row["title"]), ()))
    has = bool(keys or row["has"])
    if not has and not row["missing"]:
      raise ValueError(f"docs/scope.tsv, {row['title']!r}: it has no config, check or function; "
                       "say in the column `missing` what it needs.")
    state = "not" if not has else "partly" if row["missing"] else "works"
    joined.append(row | dict(keys=keys, state=state))
  return joined


def _letters(title):
  return re.sub(r"[^a-z0-9]", "", title.lower())


def coverage(joined):
  """The table of states before and now, by class."""
  parts = {c: [r for r in joined if r["class"] == c and r["before"] in STATES] for c in CLASSES}
  parts["all of the list"] = sum(parts.values(), [])
  parts["added to it"] = [r for r in joined if r["before"] == "outside"]
  count = lambda rows, when: [sum(r[when] == s for r in rows) for s in STATES]
  return tables.markdown(
      ("class", "papers", *(f"{s}, before" for s in STATES), *(f"{s}, now" for s in STATES)),
      [(name, len(rows), *(count(rows, "before") if name != "added to it" else ("", "", "")),
        *count(rows, "state")) for name, rows in parts.items()])


def page(papers, has_config):
  """The sections of docs/papers.md about scope, from what `join` takes.

  Args:
    papers: {key: dict of title and arxiv}.
    has_config: function of a key.
  """
  joined = join(read("scope"), papers)
  left = collections.Counter(r["mechanism"] or "a source of the formula"
                             for r in joined if r["missing"])
  def used(row):
    names = row["keys"] + [f"rlx.{name}" for name in re.findall(r"[\w.]+", row["has"])]
    return ", ".join(f"`{name}`" if name not in papers or has_config(name) else f"{name} (check)"
                     for name in names)
  outside = read("out_of_scope")
  others = len(papers) - len({key for r in joined for key in r["keys"]})
  lines = [
      "## Coverage", "",
      f"{len(joined)} papers are in scope, and {len(outside)} were left out or looked at again. "
      f"{others} more papers have a config or a check without being on the list, such as PPO. "
      "works: the method is there, as a config or as functions; the docstring of the config says "
      "what differs from the paper. partly: parts of it are missing. not: nothing of its own is "
      "there. Before is the count when the list was compared with rlx for the first time.", "",
      coverage(joined), "",
      "What the papers with a missing part need: " + ", ".join(
          f"{name} ({n})" for name, n in left.most_common()) + ".", "",
      "## Papers in scope", "",
      "Written from `docs/scope.tsv`. A paper with a check has rows in the table of claims above.",
      "",
      tables.markdown(("paper", "arXiv", "class", "state", "config or functions", "missing"), [
          (r["title"], r["arxiv"], r["class"], r["state"], used(r), ": ".join(
              x for x in (r["mechanism"], r["missing"]) if x) if r["missing"] else "")
          for r in joined]), "",
      "## Papers out of scope", "",
      "Written from `docs/out_of_scope.tsv`: methods for other inputs than text, without a "
      "language model, without a formula, or whose contribution is a toolchain or a set of "
      "environments. Six of them were looked at again, with the formula.", "",
      tables.markdown(("paper", "reason", "decision"), [
          (r["title"], r["reason"], r["decision"]) for r in outside])]
  return "\n".join(lines)
