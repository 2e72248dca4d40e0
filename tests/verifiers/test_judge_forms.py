"""Rubrics, comparisons, probabilities, panels and the cache of judges, on an endpoint here."""
import collections
import contextlib
import math

import numpy as np
import pytest

from configs import base
from rlx.build import methods as build_methods, validation
from rlx.core import records
from rlx.learner import hosts
from rlx.stages import outcomes
from rlx.verifiers import _replies, errors, judge, pool as pool_lib, usage
from tests.verifiers import cases, endpoint

nan = np.nan
CASES = cases.read("judge_forms.toml")
OPTIONS = base.get_config().verifier.judge.to_dict() | dict(
    model="m", timeout_s=5.0, retries=0, pause_s=0.01, named={})
ITEMS = [dict(name="a", text="alpha"), dict(name="beta"), dict(name="c", text="gam\nma")]


@pytest.fixture
def server():
  with endpoint.serve(endpoint.judge) as server:
    usage.take()
    yield server


def prompt(server, verifier, *, id_="p", answer="5", answers=(), items=ITEMS, **options):
  return records.Prompt(id_, "2 + 3?", answer, verifier, dict(
      items=items, judge=OPTIONS | dict(url=server.url) | options), answers=answers)


def verdicts(server, form, texts, **options):
  """The verdicts of completions of one prompt."""
  p = prompt(server, f"judge.{form}", **options)
  return [v for v, *_ in getattr(judge, form)([p] * len(texts), texts)]


@pytest.mark.parametrize("reply, scores", CASES["items"])
def test_each_item_has_lines_of_its_own(reply, scores):
  if scores:
    given = _replies.parse(_replies.Reply(reply, "N0"), "yes_no", numbers=(1, 2, 3))
    np.testing.assert_array_equal(given, scores)
  else:
    with pytest.raises(errors.Unknown):
      _replies.parse(_replies.Reply(reply, "N0"), "yes_no", numbers=(1, 2, 3))


def test_items_with_words_and_numbers_of_their_own():
  reply = _replies.Reply("Verdict N0 1: partial_support\nVerdict N0 2: not_support", "N0")
  reads = "support=1 partial_support=0.5 not_support=0"
  assert _replies.parse(reply, reads, numbers=(1, 2)) == [0.5, 0]
  reply = _replies.Reply("Score N0 2: 7\nScore N0 1: 10\nScore N0 3: 11\nScore N0 4: 0", "N0")
  np.testing.assert_array_equal(_replies.parse(
      reply, r"Score {nonce} {item}: (\d+)", 10.0, (1, 2, 3, 4)), [1, 0.7, nan, 0])


@pytest.mark.parametrize("per_item, requests", [(False, 1), (True, 3)])
def test_a_rubric(server, per_item, requests):
  (given,) = verdicts(server, "rubric", ["alpha gam ma"], per_item=per_item)
  assert given == [1, 0, 1] and len(server.bodies) == requests
  listed = [endpoint.block(b["messages"][0]["content"], "criteria") for b in server.bodies]
  lines = ["1. alpha", "2. beta", "3. gam ma"]  # An item has one line and keeps its number.
  assert sorted(listed) == (lines if per_item else ["\n".join(lines)])
  assert verdicts(server, "rubric", ["<think>alpha"]) == [[0, 0, 0]]
  assert len(server.bodies) == requests


def test_an_item_whose_request_fails_is_unknown_alone(server):
  server.reply = lambda q: None if "beta" in q else endpoint.judge(q)
  np.testing.assert_array_equal(verdicts(server, "rubric", ["alpha"], per_item=True), [[1, nan, 0]])
  server.reply = lambda q: "?"
  assert math.isnan(verdicts(server, "rubric", ["alpha"], per_item=True)[0])


@pytest.mark.parametrize("per_item, requests", [(False, 1), (True, 3)])
def test_each_step_has_a_verdict(server, per_item, requests):
  """All in one request, or each with those before it; here a step is right if it has an x."""
  def reply(q):
    nonce, shown = endpoint.nonce_of(q), [endpoint.block(q, f"step {n}") for n in (1, 2, 3)]
    return "It reads ax;\n" + "\n".join(f"Verdict {nonce} {n}: {'yes' if 'x' in text else 'no'}"
                                        for n, text in enumerate(shown, 1) if text is not None)
  server.reply = reply
  asked = dict(per_item=per_item, step_separator=";")
  assert verdicts(server, "steps", ["ax;b\n[end];;cx", ""], **asked) == [[1, 0, 1], []]
  shown = [q["messages"][0]["content"].count("[end of step ") for q in server.bodies]
  assert sorted(shown) == ([3] if requests == 1 else [1, 2, 3])
  # A judge that stops at the first wrong step says nothing of later ones.
  server.reply = lambda q: "\n".join(reply(q).splitlines()[:3])
  np.testing.assert_array_equal(verdicts(server, "steps", ["ax;b;cx;"], **asked)[0], [1, 0, nan])
  server.reply = lambda q: reply(q) + f"\nVerdict {endpoint.nonce_of(q)} 4: yes"
  assert np.isnan(verdicts(server, "steps", ["a;b;c"], **asked)).all()


@pytest.mark.parametrize("reply, scores", CASES["spans"])
def test_quoted_spans_give_scores_to_their_characters(reply, scores):
  """Of the text "ab cd\nab."; + is 1, - is 0 and . is 1/2."""
  said = _replies.Reply(reply, "N0")
  if scores:
    given = _replies.parse_spans(said, "good=1 bad=0", "ab cd\nab.")
    assert "".join({0: "-", 0.5: ".", 1: "+"}[x] for x in given) == scores
  else:
    with pytest.raises(errors.Unknown): _replies.parse_spans(said, "good=1 bad=0", "ab cd\nab.")


def test_spans_stand_behind_the_thoughts(server):
  server.reply = lambda q: f"Verdict {endpoint.nonce_of(q)} bad: 5"
  assert verdicts(server, "spans", ["<think>5</think>56", "<think>5", "5"]) == [
      [0.5] * 16 + [0, 0.5], [0.5] * 8, [0]]


@pytest.mark.parametrize("items", [None, [], "text", [{}], [dict(name="")], ["a"]])
def test_a_rubric_needs_items(server, items):
  p = prompt(server, "judge.rubric", items=items)
  with pytest.raises(errors.Unknown, match="which a rubric needs"): judge.rubric(p, "x")
  (why, _), = judge.rubric.inspect([p])
  assert "which a rubric needs" in why
  assert judge.rubric.inspect([prompt(server, "judge.rubric")]) == [(None, None)]


# Longer is better: of "x", "xxx", "xx" and "yy" the second beats all, the last two tie.
@pytest.mark.parametrize("options, expected, requests", [
    ({}, [0, 1, .5, .5], 12), (dict(both_orders=False), [0, 1, .5, .5], 6),
    (dict(against="first"), [.5, 1, 1, 1], 6), (dict(against="answer"), [.5, 1, 1, 1], 8),
    (dict(opponents=2), [0, 1, .25, .75], 8)])
def test_shares_of_wins(server, options, expected, requests):
  texts = ["x", "xxx", "xx", "yy"]
  np.testing.assert_allclose(verdicts(server, "pairs", texts, **options), expected)
  assert len(server.bodies) == requests


def test_a_preference_for_a_place_cancels(server):
  server.reply = lambda q: f"Verdict {endpoint.nonce_of(q)}: A"
  assert verdicts(server, "pairs", ["x", "xxx", "xx"]) == [.5] * 3
  assert verdicts(server, "pairs", ["x", "xxx", "xx"], both_orders=False) == [1, .5, 0]
  # Of one order alone nothing is known.
  server.reply = lambda q: None if endpoint.block(q, "answer A") == "x" else endpoint.judge(q)
  np.testing.assert_array_equal(verdicts(server, "pairs", ["x", "xxx", "xx"]), [nan, 1, 0])


def test_pairs_that_need_no_request(server):
  # Equal answers tie; what is all thought loses, and two of these tie.
  assert verdicts(server, "pairs", ["x", "x", "<think>x", "<think>"]) == [
      np.mean([.5, 1, 1])] * 2 + [np.mean([0, 0, .5])] * 2
  assert not server.bodies
  assert verdicts(server, "pairs", ["55"]) == [1] and len(server.bodies) == 2
  assert math.isnan(verdicts(server, "pairs", ["55"], answer="")[0])


def test_groups_are_judged_by_prompt(server):
  p, q = (prompt(server, "judge.pairs", id_=x) for x in "pq")
  assert [v for v, *_ in judge.pairs([p, p, q, q], ["x", "xx", "xxx", "xx"])] == [0, 1, 1, 0]


@pytest.mark.parametrize("n, opponents, count", [
    (2, 0, 1), (8, 0, 28), (8, 2, 8), (8, 3, 12), (7, 2, 7), (7, 3, 10), (3, 5, 3), (1, 2, 0)])
def test_meetings(n, opponents, count):
  meetings = judge.find_meetings(n, opponents)
  assert len(meetings) == len(set(meetings)) == count and all(i < j for i, j in meetings)
  met = np.bincount(np.ravel(meetings).astype(int), minlength=n)
  assert set(met) <= ({opponents, opponents - n % 2 * opponents % 2} if 0 < opponents < n - 1
                      else {n - 1})


def test_bradley_terry_has_the_wins_that_it_expects():
  shares = {(0, 1): 1, (1, 2): 1, (2, 3): 1, (3, 4): .5}  # A line: 0 has never met 4.
  wins = shares | {(j, i): 1 - p for (i, j), p in shares.items()}
  fitted = judge.fit_strengths(wins, 5)
  odds = {i: fitted[i, 0] / (1 - fitted[i, 0]) if i else 1.0 for i in range(5)}
  # At the maximum each has won as often as expected, half a win against a strength of 1 included.
  g = next(1 / s for s in [_scale(odds, wins)])
  for i in range(5):
    expected = sum(fitted[i, j] for a, j in wins if a == i) + odds[i] * g / (odds[i] * g + 1)
    np.testing.assert_allclose(expected, .5 + sum(p for (a, _), p in wins.items() if a == i), 1e-6)
  assert fitted[0, 4] > fitted[0, 1] > .5 and fitted[0, 4] + fitted[4, 0] == pytest.approx(1)


def _scale(odds, wins):
  """1/g_0, from sum_i g_i / (g_i + 1) = n / 2, by bisection."""
  low, high = 1e-6, 1e6
  for _ in range(200):
    mid = math.sqrt(low * high)
    low, high = (mid, high) if sum(x / (x + mid) for x in odds.values()) > len(odds) / 2 else (
        low, mid)
  return low


def test_strengths_of_a_tournament(server):
  win, fitted = (verdicts(server, "pairs", ["x" * n for n in (1, 2, 3, 9)], opponents=2,
                          strength=strength) for strength in ("win_rate", "bradley_terry"))
  assert win == [0, .5, .5, 1] and fitted == sorted(fitted) and len(set(fitted)) == 4


def choice(question, tokens, word="yes", content=None):
  """A choice with these log-probs in the place of the verdict, {token: probability}."""
  head = f"So.\nVerdict {endpoint.nonce_of(question)}:"
  place = lambda token, likely: dict(token=token, bytes=list(token.encode()), top_logprobs=[
      dict(token=t, logprob=math.log(p)) for t, p in likely.items()])
  return dict(message=dict(content=content or f"{head} {word}"), logprobs=dict(content=[
      place("<think>é</think>", {}), *(place(c, {c: 1.0}) for c in head),
      place(f" {word}", tokens), place("<eos>", {})]))


@pytest.mark.parametrize("form, word, tokens, score", [
    ("chat", "yes", {" yes": .6, " no": .2, " maybe": .2}, .75),
    ("chat", "yes", {" yes": .5, " Yes": .1, "no": .2}, .75),
    ("chat", "no", {" no": .8, " yes": .2}, .2),
    ("chat", "no", {" no": .9, " never": .1}, 0), ("chat", "yes", {" maybe": 1.}, nan),
    ("chat", "yes", {}, nan), ("pairs", "A", {" A": .5, " B": .3, " tie": .2}, .6)])
def test_the_probability_of_a_verdict(server, form, word, tokens, score):
  server.reply = lambda q: choice(q, tokens, word)
  given = verdicts(server, form, ["6"], probability=True, both_orders=False, against="answer")
  np.testing.assert_allclose(given, [score])
  assert {(b["logprobs"], b["top_logprobs"]) for b in server.bodies} == {(True, 20)}


@pytest.mark.parametrize("break_", [
    lambda c: c.pop("logprobs"), lambda c: c.update(logprobs=None),
    lambda c: c["logprobs"]["content"].pop(3), lambda c: c["logprobs"].update(content=[]),
    lambda c: c["logprobs"]["content"][-2].pop("top_logprobs"),
    lambda c: c["logprobs"]["content"][-2]["top_logprobs"][0].update(logprob="x"),
    lambda c: c["logprobs"]["content"][-2]["top_logprobs"][0].update(logprob=math.nan)])
def test_broken_logprobs_are_unknown(server, break_):
  def reply(question):
    break_(given := choice(question, {" yes": 1.0}))
    return given
  server.reply = reply
  p = prompt(server, "judge.chat", probability=True)
  with pytest.raises(errors.Unknown, match="logprobs"): judge.chat(p, "5")


@pytest.mark.parametrize("vote, score", [
    ("mean", 2 / 3), ("median", 1), ("majority", 1), ("minimum", 0)])
def test_a_panel_of_judges(server, vote, score):
  named = dict(one={}, other=dict(model="n"), strict=dict(template="{nonce}\n{answer}\n{nonce}"),
               panel=dict(of=("one", "other", "strict"), vote=vote),
               with_unknown=dict(of=("one", "silent")), silent=dict(url="http://127.0.0.1:9/v1"))
  server.reply = lambda q: endpoint.judge(q) if "carry" in q else (
      f"Verdict {q.splitlines()[0]}: no")
  p = prompt(server, "judge.chat/panel", named=named)
  assert judge.chat(p, "5") == pytest.approx(score)
  assert collections.Counter(b["model"] for b in server.bodies) == dict(m=2, n=1)
  with pytest.raises(errors.Unknown, match="URLError"):
    judge.chat(prompt(server, "judge.chat/with_unknown", named=named), "5")
  with pytest.raises(errors.Unknown, match="verifier.judges has no 'nobody'"):
    judge.chat(prompt(server, "judge.chat/nobody", named=named), "5")


@pytest.mark.parametrize("vote", judge.VOTES)
def test_a_panel_does_not_know_what_one_of_it_does_not(vote):
  assert math.isnan(judge.join_votes([1.0, nan, 0.0, 1.0], vote))
  assert math.isnan(judge.join_votes([nan, 0.0, 1.0, 1.0], vote))


def test_of_several_answers_the_best_counts(server):
  assert verdicts(server, "chat", ["6"], answers=("5", "6")) == [1]
  assert verdicts(server, "chat", ["7"], answers=("5", "6")) == [0]


def test_replies_are_kept(server, tmp_path):
  options = dict(cache=str(tmp_path / "replies"))
  def ask(texts=("5", "6"), **more):
    server.bodies.clear()
    return verdicts(server, "chat", texts, **options | more), len(server.bodies)
  assert ask() == ([1, 0], 2)
  # The nonce of another run or another prompt is no other request.
  assert ask() == ask(key="another") == ask(id_="q") == ([1, 0], 0)
  for change in (dict(temperature=1.0), dict(model="n"), dict(answer="4"), dict(texts=("5", "7"))):
    assert ask(**change)[1] > 0
  assert usage.take()["judge/cached"] == 7
  for damage in (b"", b"{}", b"\xff", lambda c: c[:-3], lambda c: c.replace(b"yes", b"no ")):
    for path in (tmp_path / "replies").glob("*/*.json"):
      path.write_bytes(damage(path.read_bytes()) if callable(damage) else damage)
    assert ask(texts=("5",)) == ([1], 1) and ask(texts=("5",)) == ([1], 0)
  # What cannot be read is asked again, and a folder that cannot be written stops nothing.
  server.reply = lambda q: "?"
  assert [math.isnan(ask(("8",))[0][0]) and len(server.bodies) for _ in range(2)] == [1, 1]
  server.reply = endpoint.judge
  (tmp_path / "file").write_text("")
  assert ask(cache=str(tmp_path / "file")) == ([1, 0], 2)
  assert not list(tmp_path.glob("replies/*/tmp*"))


def test_workers_share_replies_and_counts(server, tmp_path):
  options = OPTIONS | dict(url=server.url, cache=str(tmp_path), concurrent=4)
  prompts = [records.Prompt(str(i), f"{i}?", "5", "judge.chat") for i in range(24)]
  texts = ["5", "6"] * 12
  server.delay_s = 0.02
  with contextlib.closing(pool_lib.Pool(2, 30.0, options=dict(judge=options))) as pool:
    for _ in range(2):
      np.testing.assert_array_equal(pool.verify(prompts, texts), [1, 0] * 12)
    assert len(server.bodies) == 24 and 4 < server.most <= 8  # Of two workers.
    counts = {"judge/cached": 24, "judge/completion_tokens": 240, "judge/prompt_tokens": 2400,
              "judge/requests": 24}
    assert pool.take_usage() == counts and pool.take_usage() == dict.fromkeys(counts, 0)


def test_a_judge_that_is_down_is_not_asked_for_ever(server):
  server.reply = lambda q: None
  given = verdicts(server, "chat", [str(i) for i in range(500)], concurrent=4, retries=1)
  assert np.isnan(given).all() and len(server.bodies) <= 2 * (8 + 4)


def test_a_verifier_that_never_knows_stops_a_run(server):
  server.reply = lambda q: None
  prompts = [records.Prompt(str(i), "2 + 3?", "5", "hostile.calm" if i % 20 else "judge.chat")
             for i in range(5120)]
  options = dict(judge=OPTIONS | dict(url=server.url))
  functions = {"hostile.calm": lambda prompt, text: 1.0}
  with contextlib.closing(pool_lib.Pool(1, 30.0, options=options, functions=functions)) as pool:
    pool.verify(prompts[:5000], [str(i) for i in range(5000)])
    pool.check(0.1)  # 250 of 5000, in a row of the judge's own.
    pool.verify(prompts[5000:], [str(i) for i in range(120)])
    with pytest.raises(RuntimeError, match="none of the last 256 verdicts of judge.chat is known"):
      pool.check(0.1)
    pool.check(1.0)


@pytest.mark.parametrize("is_shared, parts", [(False, ["aaa", "bbb"]), (True, ["aaabbb"])])
def test_hosts_do_not_share_a_group_or_what_runs_on_all_devices(monkeypatch, is_shared, parts):
  """Each of two hosts has a group, or both have all."""
  def share_work(fn, n, count=2):
    results = [None] * n
    for i in range(count): results[i::count] = fn(range(i, n, count))
    return results
  monkeypatch.setattr(hosts, "share_work", share_work)
  asked = []
  def compare(prompts, texts):
    asked.append([p.id for p in prompts])
    return [[float(len(text)), None, None] for text in texts]
  compare.is_group = compare.is_batch = compare.is_bounded = True
  compare.is_shared = is_shared
  prompts = [records.Prompt(id_, "?", "", "mine") for id_ in "aaabbb"]
  with contextlib.closing(pool_lib.Pool(0, 1.0, functions=dict(mine=compare))) as pool:
    verifiers = outcomes.Verifiers(pool, ())
    assert verifiers.scores("mine", prompts, ["x", "", "x", "", "", "x"]) == [1, 0, 1, 0, 0, 1]
  assert asked == list(map(list, parts))


@pytest.mark.parametrize("path, changes, message", [
    ("judge.rubric", dict(url=None), "^verifier.judge.url=None: judge.rubric needs"),
    ("judge.rubric", dict(template="[{nonce}]\n{answer}\n[{nonce}]"), "with {answer} and {items}"),
    ("judge.pairs", dict(template="[{nonce}]\n{answer}\n[{nonce}]\n{other}\n"), "so has {other}"),
    ("judge.chat", dict(reads="good=1 bad"), "^verifier.judge.reads='good=1 bad': .*one group"),
    ("judge.chat", dict(reads="good=2 bad=0"), "scores from 0 to 1"),
    ("judge.rubric", dict(reads=r"Score {nonce}: (\d)"), "{item} stands for the number"),
    ("judge.chat", dict(reads=r"Score {nonce} {item}: (\d)"), "{item} stands for the number"),
    ("judge.chat", dict(probability=True, reads=r"{nonce} (\d)"), "True with words in `reads`"),
    ("judge.spans", dict(probability=True), "not with judge.spans"),
    ("judge.spans", dict(reads=r"{nonce} (\d)"), "words with scores, such as 'good=1 bad=0'"),
    ("judge.steps", dict(template="{nonce}\n{answer}\n{nonce}"), r"a text with \{steps\}"),
    ("judge.steps", dict(template="{steps}"), r"a text with \{nonce\} for judge.steps"),
    ("judge.pairs", dict(strength="bradley_terry", against="first"), "win_rate, unless"),
    ("judge.chat", dict(of=("a",)), r"judge.chat='a': the name of a judge; .* has \[\]"),
    ("judge.chat/b", {}, "judge.chat/b='b': the name of a judge"),
    ("judge.chat/c", dict(judges=dict(c=dict(model=""))), "^verifier.judges.c.model='': the endp"),
    ("judge.chat/c", dict(model="", judges=dict(c={})), "^verifier.judge.model='': the endpoint"),
    ("judge.chat/c", dict(judges=dict(c=dict(of=("d",)), d=dict(url="x"))),
     "^verifier.judges.d.url='x': such as"),
    ("format.boxed/c", {}, "format.boxed has no names")])
def test_refused_at_startup(path, changes, message):
  c = base.get_config()
  c.verifier.workers, c.rollouts.step_separator = 1, ";"
  with c.unlocked():
    c.verifier.judges = changes.pop("judges", {}) if "judges" in changes else {}
  c.verifier.judge.update(dict(url="http://localhost/v1", model="m") | changes)
  c.verifier.scores = (path,)
  with pytest.raises(ValueError, match=message) as e:
    validation.check(c, build_methods.resolve_methods(c))
  assert "\n" not in str(e.value)


@pytest.mark.parametrize("form, head, good, bad", [
    ("chat", "Verdict N0", "yes", "no"), ("rubric", "Verdict N0 1", "yes", "no"),
    ("pairs", "Verdict N0", "A", "B")])
def test_broken_replies_are_no_verdict(server, form, head, good, bad):
  def reply(question):
    filled = text.replace("HEAD", head).replace("GOOD", good).replace("BAD", bad)
    return filled.replace("N0", endpoint.nonce_of(question))
  options = dict(items=ITEMS[:1], against="answer")
  for text in ["So.\nHEAD: GOOD", *CASES["broken"]]:
    server.reply = reply
    given = np.ravel(verdicts(server, form, ["6"], both_orders=False, **options))
    assert np.isnan(given).all() == (text != "So.\nHEAD: GOOD"), text
  assert len(set(CASES["broken"])) >= 50


def test_a_judge_may_read_the_thoughts(server):
  text = "<think>5</think>6"
  assert verdicts(server, "chat", [text], answer="6") == [1]
  assert verdicts(server, "chat", [text], answer=text, thoughts=True) == [1]


def test_one_reply_gives_several_scores(server, tmp_path):
  server.reply = lambda q: f"Facts {q.split()[0]}: 3 of 4"
  named = {name: dict(reads=reads, template="{nonce}\n{answer}\n{nonce}", full=8.0,
                      cache=str(tmp_path))
           for name, reads in (("some", r"Facts {nonce}: (\d+) of \d+"),
                               ("all", r"Facts {nonce}: \d+ of (\d+)"))}
  for name, score in (("some", 3 / 8), ("all", 4 / 8)):
    assert judge.chat(prompt(server, f"judge.chat/{name}", named=named), "x") == score
  assert len(server.bodies) == 1
