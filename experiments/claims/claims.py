"""Checks claims of papers in toy environments and writes the table of their outcomes.

  python -m experiments.claims pure simko               # some, printed
  python -m experiments.claims --out docs/papers.jsonl --docs docs/papers.md   # all, recorded

A check is experiments/claims/papers/<key>.py, its key that of configs/papers/<key>.py:

  CLAIM           index of the tested claim in the paper's CLAIMS if it is not the first. CLAIMS
                  are in the paper's config, whose docstring begins with "TITLE (arXiv:NUMBER)";
                  if there is nothing to configure, both are in the check.
  MEASURE         what is measured, one line; above 0 is the direction claimed
  MARGIN          the largest effect that counts as no effect, in units of the measure
  arms()          {name: arm}: the paper's method first, then its rivals. An arm is a
                  function (seeds, rates) -> values_I, or (values_I, scores_I), of runs
                  whose I seeds and learning rates are arrays
  compare         (values, values of a rival) -> effects_I, where it is not the difference;
                  values may then have more axes than I, and an arm must give scores
  RATE            the middle of the list of learning rates that every arm is tuned over
  FIRST           (outcome, reason): the first outcome that this check had, and what was wrong
                  with that version if it was changed afterwards
  VARIANT         of the paper's config that the first arm has, if it is not the default
  DIFFERS         {config key: reason} where the first arm is not the paper's config;
                  sizes and rates need no reason (SIZES)

A paper whose claim follows from its formula has no check; FOLLOWS_FROM_FORMULA names the test
of that formula. NOT_CHECKED says why other papers have none. A check that trains nothing at a
rate has `effects(seeds) -> {rival: effects_I}` in place of `arms` and RATE.

Every arm runs at each of RATES times RATE on the TUNING seeds, which no test uses. The
rate with the best mean score (the value itself if the arm gives no scores) is the arm's.
An effect is the value of the first arm less that of a rival with the same seed (or `compare` of
the two), each at its own rate; with a single arm it is the value of that arm. Each rival is a
row of its own.
An arm draws its environment from the seed, so that intervals cover environments too.

The outcome of a row, after Holm's correction (Holm 1979) of the two-sided t-tests of all rows:

  confirmed       corrected p < 0.05, the mean is above 0
  opposite        corrected p < 0.05, the mean is below 0
  not seen        neither, and the 95% interval lies within MARGIN on both sides of 0
  underpowered    neither, and it does not: SEEDS are too few to tell

What is seen on a table of logits or a small reward model says nothing about size in
language models.
"""
import argparse
import concurrent.futures
import importlib
import json
import multiprocessing
import pathlib
import re
import tempfile
import time

import jax
import numpy as np
from scipy import stats

from experiments.claims import scope
from rlx.grids import tables

ROOT = pathlib.Path(__file__).parents[2]
SEEDS = tuple(range(40))
TUNING = tuple(range(1000, 1005))
RATES = tuple(10 ** (k / 2) for k in range(-11, 13))  # 3e-6 to 1e6, times a check's RATE.
OUTCOMES = ("confirmed", "opposite", "not seen", "underpowered")
# Papers whose claim follows from the formula, which a test computes by hand or from other code.
FOLLOWS_FROM_FORMULA = {
    "clip_delta": "tests/rewards/test_steps.py::test_refine",
    "crew": "tests/rewards/test_likelihood.py::test_rewards_of_the_completion_itself",
    "factuality": "tests/test_papers.py::test_precision_alone_pays_for_saying_little",
    "ftrl": "tests/test_papers.py::test_ftrl",
    "gra": "tests/test_papers.py::test_gra",
    "high_entropy_tokens": "tests/losses/test_token_weight.py::test_top_of_each_completion",
    "jepo": "tests/rewards/test_likelihood.py"
            "::test_jepo_credits_what_a_completion_adds_to_the_bound",
    "job_application": "tests/test_papers.py"
                       "::test_large_penalties_end_in_rejecting_every_application",
    "ll_rew": "tests/rewards/test_likelihood.py::test_reference",
    "pass_at_k": "tests/test_golden.py::test_case",
    "passk_training": "tests/advantages/test_group.py::test_passk_is_grpo_over_all_draws",
    "r1_reward": "tests/losses/test_policy.py::test_stable_reinforce_guards_the_ratio",
    "r_horizon": "tests/prompts/test_datasets.py"
                 "::test_chain_horizon_continues_from_the_previous_answer",
    "rl_plus": "tests/losses/test_policy.py::test_rl_plus",
    "ver_pitfall": "tests/rewards/test_rewards.py::test_cascade",
    "verifree": "tests/rewards/test_likelihood.py::test_reference",
}

# Why the claims of other papers are not checked: {reason: keys}.
NOT_CHECKED = {
    "the claim is a figure of language models": (
        "bag_of_tricks", "cloud", "critic_rm", "if_decorator", "orbit", "raif", "rgr", "rlpt",
        "rlver", "search_gen_v", "sql_rlvr", "tool_rm"),
    "the claim is about the reasoning of language models": (
        "rm_r1", "rrm", "think_prm", "think_rm"),
    "a toy environment would assume how much is transferred to other tasks": (
        "fover", "high_precision_if", "kg_path", "polar"),
    "a toy environment would assume what the features of a reward model say of its errors": (
        "ebrm",),
    "a toy environment would assume what texts and their similarity say": (
        "ref_align", "rlvrr", "sem_cos", "srm_pairs"),
    "a toy environment would assume what a judge or its documents know": (
        "agent_rrm", "fin_prm", "med_prm", "rlbff", "tango", "trm"),
    "a toy environment would assume how often the majority of a teacher is right": (
        "distill_rewards",),
    "a toy environment would assume how much of a draft a policy copies": ("igrpo",)}


def p_value(effects):
  """Returns p of the two-sided t-test that the mean is 0; 0 or 1 if all effects are equal."""
  if np.ptp(effects) == 0: return float(effects[0] == 0)
  return float(stats.ttest_1samp(effects, 0.0).pvalue)


def holm(p_values):
  """Holm's corrected p-values, in the order given.

    p'_(i) = max_{j <= i} min(1, (m - j + 1) p_(j))     p_(1) <= ... <= p_(m)

  Source: Holm 1979, A simple sequentially rejective multiple test procedure. Differs
  from the paper: nothing known.
  """
  p = np.asarray(p_values, float)
  order = np.argsort(p, kind="stable")
  corrected = np.empty_like(p)
  corrected[order] = np.minimum(1, np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)))
  return corrected.tolist()


def outcome(effects, margin, corrected):
  """Returns one of OUTCOMES, see the docstring of this module."""
  mean, low, high = tables.interval(effects)
  if corrected < 0.05: return "confirmed" if mean > 0 else "opposite"
  return "not seen" if -margin <= low and high <= margin else "underpowered"


def keys():
  """Returns the keys of all papers, which have a config, a check, or both."""
  return sorted({p.stem for folder in ("configs", "experiments/claims")
                 for p in (ROOT / folder / "papers").glob("*.py")} - {"__init__"})


def check_of(key):
  """Returns the module of a check, or None."""
  if not (ROOT / "experiments/claims/papers" / f"{key}.py").exists(): return None
  return importlib.import_module(f"experiments.claims.papers.{key}")


def has_config(key):
  return (ROOT / "configs/papers" / f"{key}.py").exists()


def paper(key):
  """A paper as its config or check describes it: dict of title, arxiv, confidence and claims."""
  module = importlib.import_module(f"configs.papers.{key}") if has_config(key) else check_of(key)
  text = " ".join(module.__doc__.split())
  described = re.fullmatch(r"(?P<title>.+?) \(arXiv:(?P<arxiv>\d{4}\.\d{5})\).* "
                           r"Confidence in the formula: (?P<confidence>high|medium|low)\.", text)
  if not described:
    raise ValueError(f"{module.__file__}: its docstring must begin with 'TITLE (arXiv:NUMBER)' and "
                     "end with 'Confidence in the formula: high.', 'medium.' or 'low.'")
  return described.groupdict() | dict(claims=module.CLAIMS)


def tuned(arm, middle):
  """The rate, of RATES times `middle`, with the best mean score over the TUNING seeds.

  As many runs at once as there are SEEDS, so that tuning and test share a compiled program.
  """
  rates, together = np.asarray(RATES) * middle, len(SEEDS) // len(TUNING)
  scores = np.stack([
      _measured(arm, np.tile(TUNING, together), np.repeat(part, len(TUNING)))[1]
      for part in rates.reshape(-1, together)]).reshape(len(rates), -1)
  means = np.where(np.isfinite(scores), scores, -np.inf).mean(axis=1)
  if not np.isfinite(means).any():
    raise ValueError(f"no rate of {rates.tolist()} has a finite score on all seeds.")
  return float(rates[np.argmax(means)])


def _measured(arm, seeds, rates):
  measured = arm(np.asarray(seeds), np.asarray(rates, np.float32))
  values, scores = measured if isinstance(measured, tuple) else (measured, measured)
  return np.asarray(values, float), np.asarray(scores, float)


def run(key, seeds=SEEDS):
  """[record] of a check, one for each rival."""
  start, check, rates = time.perf_counter(), check_of(key), {}
  if hasattr(check, "effects"):
    by_rival = check.effects(np.asarray(seeds))
  else:
    arms = check.arms()
    rates = {name: tuned(arm, check.RATE) for name, arm in arms.items()}
    values = {name: _measured(arm, seeds, np.full(len(seeds), rates[name]))[0]
              for name, arm in arms.items()}
    first, *rivals = values
    compare = getattr(check, "compare", np.subtract)
    by_rival = ({name: compare(values[first], values[name]) for name in rivals} if rivals else
                {first: values[first]})
  seconds = round(time.perf_counter() - start, 1)
  records = []
  for rival, effects in by_rival.items():
    effects = [float(e) for e in effects]
    if not np.isfinite(effects).all():
      raise ValueError(f"{key}, {rival}: effects={effects}: all must be finite.")
    records.append(dict(key=key, rival=rival, effects=effects, rates=rates, seconds=seconds))
  return records


def judged(records):
  """{(key, rival): (p, corrected p, outcome)} of all records."""
  p_values = [p_value(r["effects"]) for r in records]
  return {(r["key"], r["rival"]): (
      p, corrected, outcome(r["effects"], check_of(r["key"]).MARGIN, corrected))
          for r, p, corrected in zip(records, p_values, holm(p_values))}


def table(records):
  """docs/papers.md from records, docs/scope.tsv and docs/out_of_scope.tsv."""
  tests = judged(records)
  outcomes = [seen for *_, seen in tests.values()]
  without = {key: "no check" for key in keys()} | {
      key: f"no check: {reason}" for reason, names in NOT_CHECKED.items() for key in names} | {
      key: f"follows from the formula: `{test}`" for key, test in FOLLOWS_FROM_FORMULA.items()}
  for r in records: without.pop(r["key"], None)
  rows = []
  for key in keys():
    described, check = paper(key), check_of(key)
    head = [described["title"], described["arxiv"], f"`{key}`" if has_config(key) else "",
            described["claims"][getattr(check, "CLAIM", 0)]]
    mine = [[check.MEASURE, *_row(r, check, *tests[key, r["rival"]])]
            for r in records if r["key"] == key]
    rows += [head + row for row in mine or [["", "", without[key]] + [""] * 7]]
  lines = [
      "# Claims of papers, checked in toy environments", "",
      "Written by `python -m experiments.claims --out docs/papers.jsonl --docs docs/papers.md`, "
      "and by `python -m pytest -k recorded tests/experiments/claims --record` after changes.",
      "[Coverage](#coverage) lists all papers in scope, with what is missing, and those out of it.",
      "",
      "A check is `experiments/claims/papers/<key>.py`. It tests one claim in a toy environment "
      "that runs in seconds, such as a table of logits or a small reward model. It can show the "
      "direction of the claimed effect; it says nothing about the size of the effect in language "
      "models.", "",
      "Each row compares the paper's method with one rival. The effect is the mean of the measure "
      "over seeds with its 95% interval (Student's t); above 0 is the direction that the paper "
      "claims. Every seed draws its own environment. The learning rate of every arm is tuned over "
      f"the same list of {len(RATES)} rates, half a decade apart, on {len(TUNING)} other seeds. A "
      "rate marked with * is at an end of the list, so the best rate may lie beyond it: "
      f"{sum('*' in rates for *_, rates, _ in rows)} rows.", "",
      "- confirmed, opposite: p < 0.05 after Holm's correction over all rows, with the mean above "
      "or below 0.",
      "- not seen: neither of these, and the interval lies within the margin, which was fixed "
      "beforehand.",
      "- underpowered: neither of these, and the interval exceeds the margin.", "",
      "A claim that follows from the formula is not tested here; the row names the test of the "
      "formula.", "",
      "The first outcome is that of the first version of the check, with five seeds, one "
      "environment for all seeds and one learning rate for all arms. If the check was changed "
      "afterwards, the reason follows: what was wrong with that version.", "",
      f"{len(keys())} papers, {len(records)} rows: " + ", ".join(
          f"{outcomes.count(s)} {s}" for s in OUTCOMES)
      + f"; {len(FOLLOWS_FROM_FORMULA)} papers whose claim follows from the formula, "
      f"{sum(x.startswith('no check') for x in without.values())} without a check.", ""]
  return "\n".join([*lines, tables.markdown(
      ("paper", "arXiv", "config", "claim", "measured", "against", "outcome", "seeds", "effect",
       "margin", "p", "p, corrected", "rates", "first outcome"), rows), "",
      scope.page({key: paper(key) for key in keys()}, has_config)]) + "\n"


def _row(record, check, p, corrected, seen):
  mean, low, high = tables.interval(record["effects"])
  ends = (RATES[0] * check.RATE, RATES[-1] * check.RATE) if record["rates"] else ()
  rates = ", ".join(f"{name} {rate:.3g}{'*' * any(np.isclose(rate, ends, atol=0))}"
                    for name, rate in record["rates"].items()
                    if name in (next(iter(record["rates"])), record["rival"]))
  first, reason = check.FIRST
  return [record["rival"], seen, str(len(record["effects"])),
          f"{mean:.3g} [{low:.3g}, {high:.3g}]", f"{check.MARGIN:g}", f"{p:.2g}",
          f"{corrected:.2g}", rates, first + (f": {reason}" if reason else "")]


def read(path):
  """[record] of a file of lines."""
  return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def written(records, path):
  """Records of the same keys replace those in the file; it is sorted by key."""
  new = {r["key"] for r in records}
  kept = [r for r in read(path) if r["key"] not in new] + records
  path.write_text("".join(json.dumps(r) + "\n" for r in sorted(kept, key=lambda r: r["key"])))


def _in_process():
  """Each process keeps what it compiled: tuning and test run the same programs."""
  jax.config.update("jax_compilation_cache_dir",
                    str(pathlib.Path(tempfile.gettempdir()) / "rlx-claims-cache"))
  jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)


def main():
  args = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  args.add_argument("keys", nargs="*", help="checks to run; none: all")
  args.add_argument("--out", type=pathlib.Path, help="JSON lines, one for each row; those "
                    "of other checks stay")
  args.add_argument("--docs", type=pathlib.Path, help="table of all that --out holds")
  args.add_argument("--jobs", type=int, default=1, help="checks that run at once")
  args = args.parse_args()
  if args.docs and not args.out: raise SystemExit("--docs needs --out.")
  if args.jobs < 1: raise SystemExit(f"--jobs={args.jobs}: must be >= 1.")
  if unknown := [k for k in args.keys if check_of(k) is None]:
    raise SystemExit(f"{unknown[0]}: there is no experiments/claims/papers/{unknown[0]}.py.")
  todo, failed = args.keys or [key for key in keys() if check_of(key)], []
  with concurrent.futures.ProcessPoolExecutor(
      args.jobs, multiprocessing.get_context("spawn"), _in_process) as pool:
    jobs = {pool.submit(run, key): key for key in todo}
    for done in concurrent.futures.as_completed(jobs):
      if error := done.exception():
        failed.append(jobs[done])
        print(f"{jobs[done]}: {error}", flush=True)
        continue
      for r in (records := done.result()):
        mean, low, high = tables.interval(r["effects"])
        print(f"{r['key']:22} {r['rival']:28} {mean:8.3g} [{low:.3g}, {high:.3g}]  "
              f"{r['seconds']} s", flush=True)
      if args.out: written(records, args.out)
  if args.docs: args.docs.write_text(table(read(args.out)))
  if failed: raise SystemExit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
  main()
