"""What is said of a claim, the table of all papers, and what a check may be."""
import inspect
import math
import re
import sys

import numpy as np
import pytest

from experiments.claims import claims
from experiments.claims.environments import own_answers, tabular
from rlx.core import options as options_lib

CHECKS = [key for key in claims.keys() if claims.check_of(key)]
TUNED = [key for key in CHECKS if hasattr(claims.check_of(key), "arms")]
# Where checks of any paper may differ from its config: sizes and rates.
SIZES = re.compile(r"prompts\.per_step|rollouts\.(per_prompt|max_tokens)|eval\..*|.*\.optimizer\..*"
                   r"|learner\.(epochs|minibatches|microbatches)")


@pytest.mark.parametrize("effects, margin, corrected, expected", [
    ([1.0, 1.2, 0.8], 0.1, 0.01, "confirmed"), ([-1.0, -1.2, -0.8], 0.1, 0.01, "opposite"),
    # Significant alone, not after the correction: within the margin or not.
    ([1.0, 1.2, 0.8], 2.0, 0.06, "not seen"), ([1.0, 1.2, 0.8], 1.1, 0.06, "underpowered"),
    ([0.0, 0.0, 0.0], 0.1, 1.0, "not seen"),
    # Mean 1, std 1.732: 4.303 * 1.732 / sqrt(3) = 4.303.
    ([2.0, -1.0, 2.0], 5.4, 0.5, "not seen"), ([2.0, -1.0, 2.0], 5.2, 0.5, "underpowered")])
def test_outcome(effects, margin, corrected, expected):
  assert claims.outcome(effects, margin, corrected) == expected


def test_p_value_by_hand():
  """t = 3 with 1 degree of freedom (Cauchy): 1 - 2 atan(3) / pi."""
  assert claims.p_value([1.0, 2.0]) == pytest.approx(1 - 2 * math.atan(3) / math.pi)
  assert claims.p_value([0.5, 0.5]) == 0 and claims.p_value([0.0, 0.0]) == 1


def test_holm_by_hand():
  """Sorted .005 .01 .03 .04, times 4 3 2 1: .02 .03 .06 .04, and never less than before."""
  assert claims.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
  assert claims.holm([0.6, 0.5]) == [1, 1] and claims.holm([]) == []


def test_arms_are_tuned_on_seeds_of_their_own():
  """The best mean score over the tuning seeds, not the best value; NaN is never chosen."""
  seen = []
  def arm(seeds, rates):
    seen.extend(seeds)
    score = np.where(rates > 5, np.nan, -abs(np.log10(rates) - 0.5) + 0.01 * (seeds % 2))
    return rates, score  # The value is highest at the highest rate.
  assert claims.tuned(arm, 1.0) == pytest.approx(10**0.5)
  assert claims.tuned(arm, 10.0) == pytest.approx(10**0.5)
  assert set(seen) == set(claims.TUNING) and not set(seen) & set(claims.SEEDS)
  assert len(claims.SEEDS) >= 40 and len(seen) == 2 * len(claims.RATES) * len(claims.TUNING)
  with pytest.raises(ValueError, match="no rate of .* has a finite score"):
    claims.tuned(lambda seeds, rates: rates * np.nan, 1.0)


class FakeCheck:
  """Of two arms; the rival's best rate is a tenth of the other's."""
  CLAIM, MEASURE, MARGIN, RATE, FIRST = 0, "this less that", 0.5, 1.0, ("opposite", "too easy")

  @staticmethod
  def arms():
    at = lambda best, gain: lambda seeds, rates: (
        gain + 0.001 * seeds - abs(np.log10(rates / best)))
    return {"new": at(1.0, 2.0), "old": at(0.1, 1.0), "same": at(1.0, 2.0)}


@pytest.fixture
def fake(monkeypatch):
  """The first check of the list is FakeCheck."""
  real = claims.check_of
  monkeypatch.setattr(claims, "check_of", lambda key: FakeCheck if key == CHECKS[0] else real(key))
  return CHECKS[0]


def test_rivals_are_compared_one_by_one_at_their_own_rates(fake):
  old, same = claims.run(fake, (0, 1, 2))
  assert (old["rival"], same["rival"]) == ("old", "same")
  assert old["rates"] == pytest.approx(dict(new=1.0, old=0.1, same=1.0))
  np.testing.assert_allclose(old["effects"], [1, 1, 1], atol=1e-6)
  np.testing.assert_allclose(same["effects"], [0, 0, 0], atol=1e-6)


def test_a_measure_of_pairs(fake, monkeypatch):
  monkeypatch.setattr(FakeCheck, "compare", lambda mine, other: mine / other, raising=False)
  np.testing.assert_allclose(claims.run(fake, (0, 1))[0]["effects"], [2, 2.001 / 1.001], rtol=1e-6)


def test_refuses_what_is_not_finite(fake, monkeypatch):
  monkeypatch.setattr(FakeCheck, "effects", lambda seeds: {"old": seeds * math.nan}, raising=False)
  with pytest.raises(ValueError, match="old: .*must be finite"):
    claims.run(fake, (0, 1))


@pytest.mark.parametrize("key", CHECKS)
def test_check_says_what_it_measures(key):
  check = claims.check_of(key)
  assert 0 <= getattr(check, "CLAIM", 0) < len(claims.paper(key)["claims"]) and check.MARGIN > 0
  assert check.MEASURE and "\n" not in check.MEASURE and len(check.MEASURE) < 160
  assert not check.MEASURE[0].isupper() and not check.MEASURE.endswith(".")
  first, reason = check.FIRST
  assert first in (*claims.OUTCOMES, "not recorded")
  assert reason is None or reason
  assert reason or first != "not recorded"
  if hasattr(check, "effects"):
    assert list(inspect.signature(check.effects).parameters) == ["seeds"]
    assert not hasattr(check, "arms")
  else:
    assert not inspect.signature(check.arms).parameters and check.RATE > 0


@pytest.mark.parametrize("path", sorted(
    path for folder in ("papers", "environments") for path in
    (claims.ROOT / "experiments/claims" / folder).glob("*.py")),
    ids=lambda p: f"{p.parent.name}/{p.name}")
def test_environments_are_drawn_from_the_seed(path):
  """No key or generator of its own, which would be the same for all seeds."""
  assert not re.findall(r"random\.key\(\d|default_rng\(\d|Random\(\d", path.read_text())


class Handed(Exception):
  """What a check handed first to what trains."""


@pytest.mark.parametrize("key", [key for key in TUNED if claims.has_config(key)])
def test_first_arm_is_the_papers_config(key, monkeypatch):
  """But for sizes and rates, and what the check says of itself."""
  def train(c, *args, **options):
    raise Handed(c)
  monkeypatch.setattr(tabular, "train", train)
  monkeypatch.setattr(own_answers, "trainer", train)
  check = claims.check_of(key)
  try:
    arm = next(iter(check.arms().values()))
    arm(np.arange(2), np.ones(2, np.float32))
  except Handed as handed:
    differs = differences(handed.args[0], paper_config(key, getattr(check, "VARIANT", "")))
    reasons = getattr(check, "DIFFERS", {})
    assert {k for k in differs if not SIZES.fullmatch(k)} == set(reasons)
    assert all(reasons.values())


def paper_config(key, variant):
  return __import__(f"configs.papers.{key}", fromlist=["get_config"]).get_config(variant)


def differences(c, other):
  """Keys whose values differ, or that one of both lacks."""
  one, two = (options_lib.flatten(config.to_dict()) for config in (c, other))
  return {key for key in one.keys() | two.keys() if one.get(key, "none") != two.get(key, "none")}


@pytest.mark.parametrize("key", claims.keys())
def test_paper_is_described_once(key):
  described = claims.paper(key)  # Refuses a docstring without title, number or confidence.
  assert isinstance(described["claims"], tuple) and all(described["claims"])
  assert described["claims"]
  check = claims.check_of(key)
  if check and claims.has_config(key):
    assert not hasattr(check, "CLAIMS") and described["title"] not in check.__doc__


def record(key, effects=(1.0, 1.1, 0.9), rival="old"):
  return dict(key=key, rival=rival, effects=list(effects), rates=dict(new=1.0, old=0.01),
              seconds=1.0)


def test_table_has_a_row_for_each_rival(fake):
  records = [record(fake), record(fake, (2.0, -1.0, 2.0), "same")]
  text = claims.table(records).partition("## Coverage")[0]
  rows = [l for l in text.splitlines() if l.startswith("| ")][2:]
  assert len(rows) == len(claims.keys()) + 1
  assert all(row.count(" | ") == 13 for row in rows)
  mine = [row for row in rows if claims.paper(fake)["title"] in row]
  # p of t = 1 / (0.1 / sqrt(3)) with two degrees of freedom, alone and times 2.
  assert "| old | confirmed | 3 | 1 [0.752, 1.25] | 0.5 | 0.0033 | 0.0066 |" in mine[0]
  assert "| same | underpowered | 3 |" in mine[1] and "opposite: too easy" in mine[1]
  papers = len(claims.keys())
  assert f"{papers} papers, 2 rows: 1 confirmed, 0 opposite, 0 not seen, 1 under" in text
  assert sum("no check" in row for row in rows) == papers - 1 - len(claims.FOLLOWS_FROM_FORMULA)


@pytest.mark.parametrize("key, test", claims.FOLLOWS_FROM_FORMULA.items())
def test_a_claim_that_follows_from_the_formula_names_its_test(key, test, fake):
  assert claims.has_config(key) and claims.check_of(key) is None
  file, name = test.split("::")
  assert re.search(rf"^def {name}\(", (claims.ROOT / file).read_text(), re.M)
  row = next(l for l in claims.table([record(fake)]).splitlines() if f"| `{key}` |" in l)
  assert f"follows from the formula: `{test}`" in row


def test_papers_say_why_they_are_not_checked(fake):
  """Once, and none that has a check."""
  named = [key for names in claims.NOT_CHECKED.values() for key in names]
  without = {key for key in claims.keys() if claims.check_of(key) is None}
  assert len(set(named)) == len(named) and set(named) <= without - set(claims.FOLLOWS_FROM_FORMULA)
  page = claims.table([record(fake)])
  for reason, names in claims.NOT_CHECKED.items():
    assert page.count(f"| no check: {reason} |") == len(names)


def test_newest_record_wins(tmp_path):
  path = tmp_path / "x"
  assert claims.read(path) == []
  claims.written([record("b"), record("b", rival="other")], path)
  claims.written([record("a")], path)
  claims.written([record("b", (2.0, 2.1, 2.2))], path)
  assert claims.read(path) == [record("a"), record("b", (2.0, 2.1, 2.2))]


@pytest.mark.parametrize("argv, message", [
    (["--jobs", "0"], "--jobs=0: must be >= 1"), (["--docs", "x"], "--docs needs --out"),
    (["no_such"], "no_such: there is no experiments/claims/papers/no_such.py")])
def test_refuses(monkeypatch, argv, message):
  monkeypatch.setattr(sys, "argv", ["claims", *argv])
  with pytest.raises(SystemExit, match=message):
    claims.main()


def test_recorded_table_is_that_of_the_records(request):
  """docs/papers.md is what docs/papers.jsonl and docs/*.tsv say, every check has a row."""
  records, page = claims.read(claims.ROOT / "docs/papers.jsonl"), claims.ROOT / "docs/papers.md"
  if request.config.getoption("--record"): page.write_text(claims.table(records))
  assert claims.table(records) == page.read_text(), "run this test with --record"
  assert {r["key"] for r in records} == set(CHECKS)
