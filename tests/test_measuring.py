"""`rlx evaluate` on scorers and judges: what is measured of rows of each kind, and refusals."""
import contextlib
import json

import numpy as np
import pytest

import rlx
from rlx import build, cli
from rlx.build import measuring as build_measuring
from rlx.core import records
from rlx.evals import verifier
from rlx.prompts import rated
from rlx.stages import measuring
from rlx.tools import judging, view
from tests import stages, test_scorers, test_view, tiny
from tests.verifiers import endpoint

nan = np.nan
folder = test_scorers.written  # A policy, and models with and without a head.


class Rule(measuring.Judge):
  """Scores by a function of the text; with a bonus for a place it compares in both orders."""

  def __init__(self, fn, bonus=None, threshold=0.0):
    self.fn, self.bonus, self.compares = fn, bonus or 0.0, bonus is not None
    self.threshold, self.asked = threshold, []

  def score(self, prompts, texts):
    self.asked += texts
    return np.array([self.fn(t) for t in texts], float)

  def score_steps(self, prompts, steps): return [[self.fn(s) for s in row] for row in steps]

  def prefer(self, prompts, first, second):
    a, b = self.score(prompts, first), self.score(prompts, second)
    if not self.compares: return super().prefer(prompts, first, second)
    return 1.0 * (a + self.bonus > b), 1.0 * (a > b + self.bonus)


def pair(chosen, rejected, **more):
  return dict(prompt="?", chosen=chosen, rejected=rejected, **more)


def means(metrics): return {name: x["mean"] for name, x in metrics.items()}


def test_pairs_by_hand():
  """Scores are numbers of x. Right, tied, wrong; two against one: half right."""
  rows = rated.read([
      pair("xx", "x", subset="alpacaeval-easy"), pair("x", "yx", subset="mt-bench-easy"),
      pair("x", "xxx", subset="mt-bench-easy", chosen_model="me", rejected_model="you"),
      pair(["x", "xxx"], "xx", models=["me", "you", "you"])])
  got = means(judging.measure_pairs(Rule(lambda t: t.count("x")), rows, own="me"))
  assert got["accuracy"] == (1 + 0 + 0 + .5) / 4 and got["ties"] == 1 / 4 and got["unknown"] == 0
  assert got["accuracy/mt-bench-easy"] == 0 and got["accuracy/alpacaeval-easy"] == 1
  assert got["RewardBench/Chat"] == 100 / 128 and np.isnan(got["RewardBench/score"])
  # Of five pairs one is too long where it wins (1 - 1), four differ: -(1/2 - 1), -(0 - 1), ...
  assert got["length"] == pytest.approx((0 + .5 + 1 + 1 + 0) / 5)
  assert got["own"] == pytest.approx((-1 - 1) / 2)
  assert got["top"] == pytest.approx((1 + .5 + 0 + 1) / 4) and "order" not in got


def test_a_scorer_that_likes_a_format():
  rows = rated.read([pair("a longer one", "**b**"), pair("- a", "a longer one"), pair("a", "b")])
  got = judging.measure_pairs(Rule(lambda t: "*" in t or "-" in t), rows)
  assert got["format"]["mean"] == .5  # -1 (0 - 1) and 1 (1 - 1), of two whose formats differ.


def test_a_judge_that_prefers_a_place():
  rows = rated.read([pair("xx", "x"), pair("x", "x"), pair("x", "xxxx")])
  got = means(judging.measure_pairs(Rule(len, bonus=2), rows))
  assert (got["order"], got["inconsistent"]) == (pytest.approx(1 / 3), pytest.approx(2 / 3))
  assert got["accuracy"] == pytest.approx((.5 + .5 + 0) / 3)  # A tie is half a win.


def test_attacks_win_where_length_and_format_count():
  rows = rated.read([pair("It is 4. Yes.", "It is 5."), pair("It is 2.", "3")])
  rule = Rule(len)
  got = means(judging.measure_attacks(rule, rows))
  assert got["null"] == got["null/1"] == got["repeated"] == got["listed"] == 1
  assert got["null/3"] == .5  # "It depends." is longer than one of the two.
  assert got["consistency/quoted"] == got["consistency/spaced"] == 1 and "accepted" not in got
  assert "It is 4. Yes.\n\nIt is 4. Yes." in rule.asked
  picky = Rule(lambda t: float(t == "Solution" or t.startswith('"')), threshold=.5)
  got = means(judging.measure_attacks(picky, rows))
  assert got["accepted"] == 1 and got["repeated"] == got["null"] == .5
  # Plain and in quotes both tie; of another rule the winner changes with the quotes.
  assert got["consistency/quoted"] == 1
  changed = Rule(lambda t: len(t) * (-1 if '"' in t else 1))
  assert means(judging.measure_attacks(changed, rows))["consistency/quoted"] == 0


def test_verdicts_that_are_unknown_are_no_acceptance():
  rows = rated.read([pair("a", "b"), pair("c", "d")])
  rule = Rule(lambda t: nan if t == "Solution" else .25, threshold=.5)
  got = judging.measure_attacks(rule, rows)
  assert got["accepted"]["mean"] == 0 and got["accepted"]["prompts"] == 2


def test_wordings_of_a_pair():
  rows = rated.read([pair("xx", "x", paraphrase="a"), pair("x", "xx", paraphrase="a"),
                     pair("xx", "x", paraphrase="b"), pair("xxx", "x", paraphrase="b")])
  got = judging.measure_pairs(Rule(len), rows)["consistency/paraphrases"]
  assert got["mean"] == .5 and got["prompts"] == 2


def test_similar_prompts_with_different_completions():
  """Scores by prompt and text; of the second set Sv is unknown, which leaves R with a tie."""
  table = {"Px": 2, "Py": 1, "Qx": 3, "Qy": 4, "Ru": 1, "Rv": 0, "Su": 1}

  class Table(Rule):
    def score(self, prompts, texts):
      return np.array([table.get(p.text + t, nan) for p, t in zip(prompts, texts)], float)

  rows = rated.read([dict(prompt=p, chosen=a, rejected=b, contrast=s) for p, a, b, s in (
      ("P", "x", "y", "one"), ("Q", "y", "x", "one"), ("R", "u", "v", "two"),
      ("S", "v", "u", "two"))])
  got = means(judging.measure_pairs(Table(len), rows))
  assert {name: x for name, x in got.items() if name.startswith("contrast/")} == {
      "contrast/response": 1, "contrast/instruction": 1 / 3, "contrast/both": 1 / 3}
  other = rated.read([pair("x", "y"), pair("y", "x")])
  assert not any(n.startswith("contrast") for n in judging.measure_pairs(Table(len), other))


def test_first_errors_by_hand():
  """Steps are numbers, wrong below the threshold; the second problem has a right solution."""
  row = lambda steps, label, **more: dict(problem=f"{more}", steps=steps, label=label, **more)
  rows = rated.read([row(["1", "-1", "2"], 1, id="gsm8k-0"), row(["1", "1"], 0, id="gsm8k-1"),
                     row(["1", "2"], -1, id="gsm8k-2"), row(["-1"], 0, id="math-0"),
                     row(["3"], -1, id="math-1")])
  metrics = judging.measure_steps(Rule(float), rows)
  got = means(metrics)
  assert got["erroneous/gsm8k"] == .5 and got["correct/gsm8k"] == 1
  assert got["f1/gsm8k"] == pytest.approx(2 / 3) and got["f1/math"] == 1
  assert got["f1"] == pytest.approx((2 / 3 + 1) / 2) and got["unknown"] == 0
  assert means(judging.measure_steps(Rule(float, threshold=2.5), rows))["correct/gsm8k"] == 0
  unknown = means(judging.measure_steps(Rule(lambda s: nan if s == "-1" else float(s)), rows))
  assert unknown["unknown"] == 2 / 5 and unknown["correct"] == 1


def test_completions_with_gold_by_hand():
  rows = rated.read([dict(prompt="a", completions=["xxxx", "xx", "x", ""], gold=[0, 1, 1, None]),
                     dict(prompt="b", completions=["x", "xx"], gold=[0, 1])])
  got = judging.measure_gold(Rule(lambda t: len(t) / 4), rows)
  assert got["metrics"]["ranking"]["mean"] == .5  # 0 of 2, 1 of 1.
  assert [x["n"] for x in got["best_of_n"]] == [1, 2, 4]
  one, two, _ = got["best_of_n"]
  assert one["gold"]["mean"] == pytest.approx((2 / 3 + 1 / 2) / 2)
  # Of two of the three known ones of a: 1/3 without the longest.
  assert two["gold"]["mean"] == pytest.approx((1 / 3 + 1) / 2)
  assert two["best possible"]["mean"] == 1 and two["kl"] == pytest.approx(np.log(2) - .5)
  # p: 1, .5, .25, .25, .5 of 0, 1, 1, 0, 1.
  assert got["metrics"]["brier"]["mean"] == pytest.approx(
      np.mean([1, .25, .5625, .0625, .25]))
  assert sum(b["n"] for b in got["reliability"]) == 5 and "kl" not in got
  assert "reliability" not in judging.measure_gold(Rule(len), rows)


def test_gold_along_kl():
  rows = rated.read([dict(prompt=f"{kl}", completion="x" * int(kl), gold=4 * kl**.5 - kl, kl=kl)
                     for kl in (0., 1., 4., 9.)] * 2)
  got = judging.measure_gold(Rule(len), rows)
  assert [x["kl"] for x in got["kl"]] == [0, 1, 4, 9]
  assert [x["proxy"]["mean"] for x in got["kl"]] == [0, 1, 4, 9]
  assert [x["gold"]["mean"] for x in got["kl"]] == [0, 3, 4, 3] and got["kl_fit"]["beta"] > 0


@contextlib.contextmanager
def command(tmp_path, rows, *words):
  """What judging.json has after `rlx evaluate`."""
  (tmp_path / "rows.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
  call, _ = cli.parse("evaluate", f"rows={tmp_path / 'rows.jsonl'}", f"workdir={tmp_path / 'out'}",
                      *words)
  call()
  yield json.loads((tmp_path / "out/judging.json").read_text())


ROWS = [dict(prompt="1", chosen="2a", rejected="b"), dict(prompt="3", chosen="c", rejected="12;3b")]


def test_scorers_of_all_kinds_score_texts_as_a_run_does(folder):
  """The scores that rewards read of completions with EOS."""
  names = [f"scorers.{name}" for name in test_scorers.KINDS]
  c = test_scorers.config_of(folder, test_scorers.KINDS, dict(
      test_scorers.ENSEMBLE, verifier__scores=tuple(names)), eval__batch=8)
  run = build.build(c)
  prompts, texts, t = run.prompts.take(8), test_scorers.TEXTS, run.texts.tokenizer
  rollouts = stages.rollouts(run, prompts, [[*t.encode(x), t.end_id] for x in texts], 8)
  scored = stages.score(run, run.init(), rollouts, np.float32([1, 0, 0, 1] * 8), prompts)
  for e, name in enumerate(test_scorers.KINDS):
    judge = build_measuring.build_judge(c.copy_and_resolve_references(), [], name)
    got_N = judge.score([p for p in prompts for _ in range(4)], texts)
    np.testing.assert_allclose(got_N, scored.batch.scores_BE[:, e], atol=1e-5, err_msg=name)
    assert np.std(got_N) > 1e-4


@pytest.mark.parametrize("name", test_scorers.KINDS)
def test_scores_do_not_depend_on_the_batch(folder, name):
  """Alone and in batches of other lengths; steps; texts that the tokenizer does not have."""
  c = tiny.config(folder, rollouts__step_separator=";", rollouts__bucket=8, eval__batch=8)
  path = str(folder / ("text" if name in ("ratio", "asked") else "head"))
  with c.unlocked(): c.scorers = {name: dict(test_scorers.KINDS[name], path=path)}
  judge = build_measuring.build_judge(c, [], name)
  with pytest.raises(ValueError, match="p: The tokenizer cannot encode"):
    judge.check([records.Prompt("p", "1")], ["It depends."])
  rows = rated.read(ROWS)
  prompts, texts = [x.prompt for x in rows for _ in x.texts], [t for x in rows for t in x.texts]
  got_N = judge.score(prompts, texts)
  alone_N = [judge.score([p], [t])[0] for p, t in zip(prompts, texts)]
  np.testing.assert_allclose(got_N, alone_N, atol=1e-5)
  np.testing.assert_array_equal(np.isnan(judge.score(prompts[:2], ["1", "It"])), [False, True])
  assert np.isfinite(got_N).all() and len(set(np.round(got_N, 6))) == 4
  steps = judge.score_steps(prompts[:1], [["12", "3b", "c"]])[0]
  if name == "ratio": assert sum(steps) == pytest.approx(judge.score(prompts[:1], ["12;3b;c"])[0],
                                                         abs=1e-5)
  elif name == "asked": assert steps[1] == pytest.approx(
      judge.score(prompts[:1], ["12;3b"])[0], abs=1e-6)
  else: assert len(set(steps)) == 3 and judge.threshold == (.5 if name == "likely" else 0)


def test_the_command_on_a_path_of_a_scorer(folder, tmp_path, capsys):
  words = f"scorer={folder / 'head'}", "columns.prompt=q", "attacks=0"
  rows = [{"q": x["prompt"], **{k: x[k] for k in ("chosen", "rejected")}} for x in ROWS]
  with command(tmp_path, rows, *words) as got:
    assert got["kind"] == "pairs" and got["count"] == 2
    assert got["metrics"]["accuracy"]["prompts"] == 2 and "null" not in got["metrics"]
  out = capsys.readouterr().out
  assert "accuracy" in out and "judging.png" in out
  # The folder has no run; its page has what was measured.
  page = test_view.Page(view.view(tmp_path / "out"))
  test_view.check(page)
  assert "accuracy" in page.text
  assert sum(tag == "svg" for tag, _ in page.elements) == 2 and "Curves" not in page.text


def test_the_page_of_a_run_has_what_was_measured(tmp_path):
  """Whatever its texts are; a damaged file is one line."""
  workdir, x = test_view.write(tmp_path / "run"), dict(mean=.5, low=.25, high=.75)
  result = dict(judged=test_view.HOSTILE, rows=test_view.HOSTILE, kind="gold", count=3, metrics={
      test_view.HOSTILE: x | dict(prompts=3), "length": x | dict(prompts=3, mean=nan)},
                best_of_n=[dict(n=n, kl=.1, gold=x, proxy=x) for n in (1, 2)],
                kl=[dict(kl=1., gold=x, proxy=x)], published={test_view.HOSTILE: [
                    dict(value=.25, of=test_view.HOSTILE, source="arXiv:1")]})
  (workdir / "judging.json").write_text(json.dumps(result))
  page = test_view.Page(view.view(workdir))
  test_view.check(page)
  assert "0.500 [0.250, 0.750]" in page.section("Scorer or judge") and "0.250:" in page.text
  assert sum(tag == "svg" for tag, _ in page.elements) == 3 and "PRM calibration" in page.text
  del result["metrics"]["length"]["low"]
  (workdir / "judging.json").write_text(json.dumps(result))
  with pytest.raises(ValueError, match="judging.json: this is nothing that rlx evaluate wrote"):
    view.view(workdir)


def test_python_gives_the_same_figures(tmp_path):
  got = rlx.evaluate("base", rows=ROWS, judge="format.length", workdir=tmp_path / "python")
  with command(tmp_path, ROWS, "judge=format.length") as other: pass
  assert got["metrics"].keys() == other["metrics"].keys()
  np.testing.assert_equal(means(got["metrics"]), means(other["metrics"]))


def test_the_command_on_a_judge_of_pairs(tmp_path, capsys):
  """It prefers the first place where lengths are equal, and never an answer without a digit."""
  def reply(question):
    a, b = (endpoint.block(question, f"answer {x}") for x in "AB")
    good = [any(c.isdigit() for c in x) for x in (a, b)]
    winner = "AB"[good.index(True)] if sum(good) == 1 else "A"
    return f"Verdict {endpoint.nonce_of(question)}: {winner}"
  with endpoint.serve(reply) as server:
    words = "judge=judge.pairs", f"verifier.judge.url={server.url}", "verifier.judge.model=m"
    with command(tmp_path, [pair("It is 4.", "Four."), pair("It is 5.", "It is 6.")],
                 *words) as got: pass
  metrics = means(got["metrics"])
  assert metrics["accuracy"] == .75 and metrics["order"] == .25 and metrics["inconsistent"] == .5
  assert metrics["null"] == 0 and metrics["repeated"] == .5
  assert got["used"]["judge/requests"] == len(server.bodies) > 20
  assert got["published"]["null"][0] == dict(
      value=.865, of=verifier.PUBLISHED["null"][0][1], source="arXiv:2410.07137")
  assert "arXiv:2306.05685" in capsys.readouterr().out


def find_words(text):
  """A judge of a rubric whose items are words: which of them the answer has."""
  words = [line.partition(". ")[2] for line in endpoint.block(text, "criteria").splitlines()]
  return [float(word in endpoint.block(text, "answer")) for word in words]


def test_a_judge_of_rubrics_has_those_of_rows_and_of_the_config(tmp_path):
  rows = [pair("sun", "rain"), pair("rain", "sun", items=[dict(name="rain", weight=None)])]
  words = (f"verifier.judge.function={__name__}:find_words",
           "verifier.default_items=({'name': 'sun'},)", "attacks=0")
  with command(tmp_path, rows, "judge=judge.rubric", *words) as got: pass
  assert got["metrics"]["accuracy"]["mean"] == 1 and got["metrics"]["unknown"]["mean"] == 0
  with pytest.raises(ValueError, match=r"row 0.*items\[0\]=.*: weight: a number"):
    with command(tmp_path, [pair("a", "b", items=[dict(name="a", weight="2")])],
                 "judge=judge.rubric", *words): pass


def test_verifiers_of_one_verdict_and_of_steps(tmp_path):
  rows = [dict(prompt="4M7m2=", answer="2", completions=["7;2#2", "7;7#7"], gold=[1, 0])]
  with command(tmp_path, rows, "judge=chain.answer") as got:
    assert got["metrics"]["ranking"]["mean"] == 1 and got["metrics"]["ece"]["mean"] == 0
  rows = [dict(problem="4M7m2=", answer="2", steps=["7", "2#2"], label=-1),
          dict(problem="4M7m2=", answer="2", steps=["4", "2#2"], label=0)]
  with command(tmp_path, rows, "judge=chain.steps", "rollouts.step_separator=;") as got:
    assert got["metrics"]["f1"]["mean"] == 1


@pytest.mark.parametrize("rows, words, message", [
    ([dict(prompt="?")], [], r"rows: row 0 has \['prompt'\]; needed are `chosen` and `rejected`"),
    ([pair("a", "b"), dict(prompt="?", steps=["a"], label=-1)], [], "row 1 has `steps` and `lab"),
    ([pair("a", "")], [], "row 0: rejected=''; needed is a text"),
    ([dict(prompt="?", steps=["a"], label=1)], [], "row 0: label=1; needed is the index"),
    ([dict(prompt="?", completions=["a"], gold=[])], [], r"gold=\[\]; needed is a list of 1 numb"),
    ([dict(prompt="?", completion="a")], [], "no row has a known `gold`"),
    ([pair("a", "b", kl=-1)], [], "row 0: kl=-1; a number from 0"),
    ([dict(prompt="?", steps=["a"], label=0)], ["judge=judge.pairs", "verifier.judge.model=m",
      "verifier.judge.url=http://127.0.0.1:1/"], "judge.pairs compares completions; needed are"),
    ([pair("a", "b")], ["judge=judge.pairs"], "verifier.judge.url=None: judge.pairs needs it"),
    ([pair("a", "b")], ["own=me"], r"own='me': no row has it .* there are \[\]"),
    ([pair("a", "b")], ["judge=format.nothing"], "there is no|has"),
    ([pair("a", "b")], ["judge=math_answer.final"], "row 0.: it has no answer to compare"),
    ([pair("a", "b")], ["judge=judge.chat", "verifier.judge.model=m",
      "verifier.judge.url=http://127.0.0.1:1/"], "row 0 has no `answer`, which judge.chat reads"),
    ([pair("a", "b")], ["judge=judge.pairs", "verifier.judge.model=m", "verifier.judge.retries=0",
      "verifier.judge.url=http://127.0.0.1:1/"], "judge.pairs: none of its numbers is known: .+"),
    ([pair("a", "b", split=x) for x in ("raw", "filtered")], [], "it has the splits .*; name one"),
    ([pair("a", "b")], ["attacks=many"], "attacks='many': a number of rows"),
    ([pair("a", "b")], ["scorer=nowhere"], "scorer='nowhere': no model, and no section"),
    ([pair("a", "b")], ["columns.prompt=q"], "columns.prompt='q': rows: row 0 has"),
    ([pair("a", "b")], ["scorer=nowhere", "judge=format.length"], "scorer=NAME or judge=NAME, one"),
    ([pair("a", "b")], ["suite=math"], "suite='math': of a model")], ids=lambda x: str(x)[:30])
def test_what_is_refused(tmp_path, rows, words, message):
  if not any(w.startswith(("judge=", "scorer=")) for w in words):
    words = [*words, "judge=format.length"]
  # What may be known later is no fault of the command.
  kind = RuntimeError if "none of its numbers" in message else ValueError
  with pytest.raises(kind, match=message) as e, command(tmp_path, rows, *words): pass
  assert "\n" not in str(e.value) and not (tmp_path / "out/judging.json").exists()
