"""The study of over-optimisation: its arms, its measures by hand, its record, its page."""
import pathlib

import numpy as np
import pytest

from experiments.scorers import overoptimisation
from rlx.build import methods as build_methods, validation
from rlx.core import options
from rlx.rewards import shaping

RATES = overoptimisation.RATES, (overoptimisation.MIDDLE,)
ROOT = pathlib.Path(__file__).parents[3]
SCORES_BE = np.float32([[-6, 2, 0, 4], [4, -2, 0, 2]])  # Of two completions of one prompt.


@pytest.mark.parametrize("arm", overoptimisation.ARMS)
def test_arms_are_accepted_and_differ_in_rewards_and_scorers_alone(arm):
  flat = []
  for name in (arm, "gold"):
    number = overoptimisation.ARMS[name][-1]
    c = overoptimisation.configured(name, 3e-4, number, pathlib.Path("folder"))
    validation.check(c, build_methods.resolve_methods(c))
    flat.append(options.flatten(c.to_dict()))
  changed = {k for k in flat[0].keys() | flat[1].keys() if flat[0].get(k) != flat[1].get(k)}
  assert all(k.startswith(("rewards.outcome.", "scorers.", "verifier.scores", "kl.coef"))
             for k in changed) and bool(changed) == (arm != "gold")


@pytest.mark.parametrize("arm, number, expected", [
    ("one", None, [-3, 2]), ("kl", 0.2, [-3, 2]), ("threshold", 0.5, [-3, 0.5]),
    ("bound", 2.0, [1 / (1 + np.exp(4)), 1 / (1 + np.exp(-6))]), ("mean", None, [0, 1]),
    ("least", None, [-6, -2])])
def test_rewards_by_hand(arm, number, expected):
  """With beta 1/2 the log-odds of the first scorer are -3 and 2; ensembles join the scores.

  Rewards of a prompt's completions are compared with each other, so that a constant is left out.
  """
  given = overoptimisation._reward(arm, number)
  name = given.pop("name").removeprefix("shaping.")
  scores = SCORES_BE if name == "ensemble" else SCORES_BE[None, :, 0]
  got = getattr(shaping, name)(scores, np.ones(2 if name == "ensemble" else (1, 2), bool), **given)
  np.testing.assert_allclose(np.diff(got), np.diff(expected), atol=2e-5)


def test_measures_by_hand():
  chance = lambda *z: np.mean(1 / (1 + np.exp(-np.array(z))))
  z_BE = SCORES_BE / 2
  for arm, own in dict(gold=(-3, 2), threshold=(-3, 2), mean=(0, 0.5), least=(-3, -1)).items():
    got = overoptimisation.mean_chances(arm, z_BE)
    assert got["proxy"] == pytest.approx(chance(*own))
    assert got["one"] == pytest.approx(chance(-3, 2))
    assert got["others"] == pytest.approx(chance(1, 0, 2, -1, 0, 1))
  got = overoptimisation.summarise(dict(
      gold=[0.2, 0.4, 0.6, 0.3, 0.1], proxy=[0.2, 0.3, 0.5, 0.7, 0.8], kl=[0, 1, 2], form=[1, 0]))
  assert got == pytest.approx(dict(final=0.2, run=0.32, over=0.3, gap=0.55, kl=2, form=0))


def run(final, steps=60):
  """A made-up run whose gold accuracy ends at `final`."""
  curve = np.linspace(0.25, final, 3).tolist()
  return dict(steps=steps, seconds=1.0, cpu_seconds=1.0, **dict.fromkeys(
      overoptimisation.CURVES, curve))


def test_a_record_is_tuned_on_its_own_seeds_and_continued(monkeypatch, tmp_path):
  """The best rate is the smallest one, and for `gold` the largest; `one` has ten seeds at all."""
  asked = []
  def train(lab, arm, rate, number, seed, steps):
    asked.append((arm, rate, number, seed))
    noise = seed % 7 / 100
    return run(0.5 + noise - abs(np.log10(rate / (3e-4 if arm == "gold" else 3e-5))) / 5, steps)
  monkeypatch.setattr(overoptimisation.Lab, "train", train)
  call = lambda seeds, limit=1e9: overoptimisation.run_all(tmp_path, seeds, limit)
  with pytest.raises(ValueError, match="add --seeds 100 101 first"): call([0])
  call([100, 101], limit=-1)
  assert not asked
  for _ in range(2): call([100, 101])  # The second time nothing is missing.
  settings = sum(3 * len(numbers) for numbers in overoptimisation.ARMS.values())
  assert len(asked) == len(set(asked)) == 2 * settings
  asked.clear()
  record = tmp_path / "runs.jsonl"
  call([0])
  record.write_text(record.read_text()[:-9])  # Cut while it was written.
  call([0, 1])
  assert len(asked) == 14 + 1 + 14 and asked.count(asked[13]) == 2
  assert {key[:2] for key in asked} == {("gold", 3e-4), ("one", 3e-4), *(
      (arm, rate) for arm in overoptimisation.ARMS for rate in (3e-5, 1e-4) if arm != "gold")}
  known = overoptimisation.study.read(record, overoptimisation.KEY)
  overoptimisation.write_table(known, tmp_path / "runs.csv")
  table = overoptimisation.read_table(tmp_path / "runs.csv")
  assert table.keys() == known.keys()
  text = {rates: overoptimisation.tabulate(table, rates) for rates in RATES}
  assert text == {rates: overoptimisation.tabulate(known, rates) for rates in RATES}
  assert f"| `{overoptimisation.FAST}` | 0.0003 |  | 0." in text[RATES[0]]
  assert "| `one` | 0.0001 |  | 0." in text[RATES[1]] and "gold`" not in text[RATES[1]]


@pytest.mark.parametrize("rates", RATES)
def test_the_tables_of_the_page_are_those_of_the_recorded_runs(rates):
  known = overoptimisation.read_table(overoptimisation.TABLE)
  arms = overoptimisation.of_arms(known, rates)
  assert {len(of_seed) for _, _, of_seed in arms.values()} == {len(overoptimisation.study.SEEDS)}
  for make, page in ((overoptimisation.tabulate, "docs/overoptimisation.md"),
                     (overoptimisation.compare, "RESULTS.md")):
    assert make(known, rates) in (ROOT / page).read_text()


def test_how_well_scorers_rank_is_that_of_the_record(tmp_path):
  ranks = overoptimisation.mean_ranks(overoptimisation.RANKED)
  assert sorted(ranks) == list(overoptimisation.study.SEEDS)
  said = (f"rank {np.mean(list(ranks.values())):.2f} correctly ({min(ranks.values()):.2f} to "
          f"{max(ranks.values()):.2f}")
  assert said in (ROOT / "docs/overoptimisation.md").read_text()
  for seed in overoptimisation.study.SEEDS:
    for i, name in enumerate(overoptimisation.SCORERS):
      (folder := tmp_path / str(seed) / name).mkdir(parents=True)
      (folder / "summary.json").write_text(
          '{"prm": {"held out": {"pair/sum": {"mean": %f}}}}' % (i / 4 + seed / 100))
  overoptimisation.write_ranks(tmp_path, tmp_path / "ranks.csv")
  assert overoptimisation.mean_ranks(tmp_path / "ranks.csv")[3] == pytest.approx(0.375 + 0.03)


def test_a_run_measures_the_policy_by_all_scorers(monkeypatch, tmp_path):
  """Scorers that equal the initial policy have log-odds of 0, and no policy learns from them."""
  monkeypatch.setattr(overoptimisation, "PROMPTS", 4)
  monkeypatch.setattr(overoptimisation, "EVERY", 1)
  for seed in (0, overoptimisation.study.TUNING[0]):
    for name in overoptimisation.SCORERS:
      (tmp_path / str(seed) / name).mkdir(parents=True)
      (tmp_path / str(seed) / name / "model").symlink_to(ROOT / "configs/models/chain")
  row = overoptimisation.Lab(tmp_path).train("kl", 1e-3, 0.6, seed=0, steps=1)
  assert len(row["gold"]) == 2 and 0 < row["form"][0] <= 1
  assert row["proxy"] == row["one"] == row["others"] == [0.5, 0.5]
  np.testing.assert_allclose(row["kl"], 0, atol=1e-4)
