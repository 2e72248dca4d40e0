"""Labels, confidence and coverage, by hand."""
import pytest

from rlx.core import records
from rlx.prompts.datasets import decisions, facts
from rlx.verifiers import confidence, coverage, errors, labels
from tests.verifiers import long_texts

META = dict(labels=["safe", "Unsafe"], evidence=["the plan", "a fuse"], min_words=5)
PROMPT = records.Prompt("l", "?", "unsafe", meta=META)


@pytest.mark.parametrize("text, parts", [
    ("It has the plan and a fuse.\nLabel: unsafe", [1, 1, 1, 1]),
    ("The plan.\nlabel: **Unsafe**.\n", [1, 1, 1/2, 0]), ("unsafe", [1, 1, 0, 0]),
    ("the plan a fuse so \\boxed{Unsafe}", [1, 1, 1, 1]), ("Safe", [0, 1, 0, 0]),
    # Neither a label among other words, nor two of them; the last one counts.
    ("It is unsafe.", [0, 0, 0, 0]), ("Label: safe, unsafe", [0, 0, 0, 0]), ("", [0, 0, 0, 0]),
    ("Label: safe\nno, Label: unsafe", [1, 1, 0, 1]), ("<answer>unsafe</answer> safe", [1, 1, 0,
    0]),
    # Evidence in the thoughts counts, the label there does not; whole words.
    ("<think>a fuse, unsafe</think>", [0, 0, 1/2, 0]), ("the plans of a fuses\nunsafe", [1, 1, 0,
    1])])
def test_labels(text, parts):
  assert labels.items(PROMPT, text) == pytest.approx(parts)
  assert labels.label(PROMPT, text) == parts[0]
  assert labels.score(PROMPT, text) == pytest.approx(sum(parts) / 4)


def test_labels_with_weights_and_tags():
  p = records.Prompt("l", "?", "safe", meta=META | dict(
      evidence=["so"], format=dict(tags=["think", "answer"]),
      items=[dict(name="label", weight=3.0), dict(name="format")]))
  text = labels.score.state(p)
  assert labels.score(p, text) == 1 and labels.score(p, "Label: safe") == 3 / 4
  assert labels.items(p, text.replace("safe", "unsafe")) == [0, 1]


@pytest.mark.parametrize("meta, answer, message", [
    ({}, "a", "meta.'labels'. is None; needed is a list"), (dict(labels="ab"), "a", "is 'ab'"),
    (dict(labels=["a"]), "b", "its answer 'b' is none of its labels"),
    (dict(labels=["a"], items=[dict(name="speed")]), "a", "'speed'; there are label, format"),
    (dict(labels=["a"], items=[dict(name="label", weight="2")]), "a", "weight: a number"),
    (dict(labels=["a"], items=[dict(name="label", points=2)]), "a", "'points' is no key of an"),
    (dict(labels=["a"], items=[dict(name="label", weight=0)]), "a", "no weight is above 0"),
    (dict(labels=["a"], evidence="the plan"), "a", "meta.'evidence'. is 'the plan'; needed is a l"),
    (dict(labels=["a"], format="tags"), "a", "meta.'format'. is 'tags'; needed is a dict"),
    (dict(labels=["a"], min_words="5"), "a", "meta.'min_words'. is '5'; needed is a whole")])
def test_prompts_without_labels_are_refused(meta, answer, message):
  p = records.Prompt("l", "?", answer, meta=meta)
  with pytest.raises(errors.Unknown, match=message): labels.score(p, "a")
  assert labels.inspect([PROMPT, p])[0] == (None, None)


@pytest.mark.parametrize("text, refuses", [
    ("I'm sorry, but no.", True), ("I can’t do that.", True), ("Hm.\nI cannot help.", True),
    ("Take it.\nAnd then\nI cannot say.", False), ("I cannotes", False),
    ("<think>I cannot?</think>Yes, take it.", False), ("AS AN AI, no", True)])
def test_refusals(text, refuses):
  for refuse in (True, False):
    p = records.Prompt("l", "?", "", meta=dict(refuse=refuse))
    assert labels.refusal(p, text) == (refuses == refuse) and labels.refusal(p, "<think>") == 0
    assert labels.answered(p, text) == (not refuses and not refuse)
  for meta, wanted in ((META, "None; needed is true or fal"), (dict(refuse="yes"), "'yes'; needed"),
                       (dict(refuse=True, refusals="no way"), "refusals.*a list of texts")):
    p = records.Prompt("l", "?", "", meta=meta)
    with pytest.raises(errors.Unknown, match=wanted): labels.refusal(p, text)
    assert labels.refusal.inspect([p])[0][0] and not labels.refusal.inspect([records.Prompt(
        "l", "?", "", meta=dict(refuse=False))])[0][0]


@pytest.mark.parametrize("text, stated", [
    ("Confidence: 80%", .8), ("confidence is 0.7", .7), ("<confidence> 8/10 </confidence>", .8),
    ("**Confidence**: 90 %", .9), ("Confidence score: 95/100.", .95), ("confidence = 0", 0),
    ("Confidence: 0.5. No, confidence: 0.25", .25), ("Confidence: 80", None), ("confidence: 1.5",
    None),
    *((f"Confidence: {x}", None) for x in (
        "1/5", "1 out of 5", "1 of 5", "1 in 10", "0,8", "0-10%", "0%-10%", "1 to 10", "1 - 10",
        "0%5")),
    ("Confidence: 1\n2. It is", 1), ("Confidence: 80%, of 5", .8), ("Confidence: 1 - sure", 1),
    ("confidence: 1e5", None), ("confidence: nan", None), ("Confidence: -0.5", None), ("80%", None),
    ("confidence: 0.9\nconfidence: 200%", None), ("<think>Confidence: 1</think>", None), ("",
    None)])
def test_confidence(text, stated):
  assert confidence.stated(PROMPT, text) == pytest.approx(stated or 0)
  assert confidence.form(PROMPT, text) == (stated is not None)


@pytest.mark.parametrize("text, score", [
    ("Bo met Ann in Rome", 1), ("bo and ann", 1/2), ("Ann met Bo in Rome", (1/2 + 1) / 2),
    # Five of six are in order; Annabel is no Ann; the second wording of the second point.
    ("Bo Bo Bo", 1/6), ("Annabel", 0), ("the capital", 1/2), ("", 0)])
def test_points(text, score):
  p = records.Prompt("l", "?", "Bo saw Ann in Rome, the capital.", meta=dict(
      points=[[["Bo", "Ann"]], [["Rome"], ["the capital"]]]))
  assert coverage.points(p, text) == pytest.approx(score)
  assert coverage.points(p, coverage.points.state(p)) == 1
  for points in ([], [[]], [[[]]]):
    with pytest.raises(errors.Unknown, match="a list of points"):
      coverage.points(records.Prompt("l", "?", "", meta=dict(points=points)), text)


@pytest.mark.parametrize("text, least, score", [
    ("Bo is the boss", 1, 4/6), ("so <think>bo boss ann</think>", 1, 3/6), ("Bo", 2, 0), ("", 1, 0),
    # Of four sentences two are different.
    ("Bo is the boss of Ann. Bo is the boss of Ann. So. So", 1, 1/2)])
def test_path(text, least, score):
  p = records.Prompt("l", "?", "", meta=dict(path=["Bo is the", "boss of Ann"], least=least))
  assert coverage.path(p, text) == pytest.approx(score)
  with pytest.raises(errors.Unknown, match="list of texts"): coverage.path(PROMPT, text)


@pytest.mark.parametrize("text, score", [
    ("Cash is an  asset; debt is none.", 1/3), ("<think>debt IS\na claim</think> of a bank", 2/3),
    ("indebt is a claim, debt is a claims", 0), ("Bank cash is an asset debt is a claim", 1),
    ("", 0)])
def test_facts(text, score):
  p = records.Prompt("l", "?", "", meta=dict(
      facts=["cash is an asset", "Debt is a claim", "bank", "Bank"]))
  assert coverage.facts(p, text) == pytest.approx(score)
  with pytest.raises(errors.Unknown, match="list of texts"): coverage.facts(PROMPT, text)


@pytest.mark.parametrize("text, score", [
    ("abcdef", 1), ("abc\n def", 0), ("xabcd", 1/2), ("abcdefg", 3/4), ("abc", 0), ("ABCD", 0),
    ("<think>zzzzzz</think>cdef", 1), ("", 0), ("w  x\ny", 1)])
def test_quotes(text, score):
  p = records.Prompt("l", "?", "", meta=dict(sources=["abcdef", "w x y z"], characters=4))
  assert coverage.quotes(p, text) == pytest.approx(score)
  assert coverage.quotes(records.Prompt("l", "?", "", meta=dict(sources=["a" * 25])), "a" * 26) == 1
  with pytest.raises(errors.Unknown, match="list of texts"): coverage.quotes(PROMPT, text)


@pytest.mark.parametrize("fn, key, value", [
    (coverage.points, "points", [3]), (coverage.points, "points", [["a"], "b"][1:]),
    (coverage.path, "path", "a b"), (coverage.path, "path", [3]),
    (coverage.facts, "facts", ["a", "."]), (coverage.facts, "facts", "abc"),
    (coverage.quotes, "sources", "abc"),
    (coverage.quotes, "sources", None)])
def test_prompts_that_nothing_can_cover_are_refused(fn, key, value):
  ((problem, _),) = fn.inspect([records.Prompt("l", "?", "", meta={key: value})])
  assert f"meta[{key!r}] is {value!r}; needed is a list of" in problem


def test_the_longest_common_subsequence_is_that_of_the_table():
  for ours, theirs, length in (("abcab", "bcba", 3), ("aaa", "a" * 70, 3), ("", "a", 0), ("ab", "",
      0),
                               ("ba" * 40, "ab" * 40, 79)):
    assert coverage._subsequence(list(ours), list(theirs)) == length


def test_time_is_linear_in_the_text():
  p = records.Prompt("l", "?", "a a", meta=META | dict(
      labels=["a a"], path=["a b"], facts=["a b", "a a."], sources=["abc" * 20],
      points=[[["a", "b"], [".", "a"]]], refuse=True))
  for fn in (labels.items, labels.refusal, confidence.stated, coverage.points, coverage.path,
             coverage.facts, coverage.quotes):
    long_texts.check_times(lambda text, fn=fn: fn(p, text))


def test_made_decisions_and_facts():
  for i in range(60):
    row = decisions.generate(0, i, kinds=decisions.KINDS, min_words=3,
        items=[dict(name="evidence")])
    p = records.Prompt("l", row["text"], row["answer"], meta=row["meta"])
    if "refuse" in p.meta:
      assert labels.refusal(p, p.answer) == 1
    else:
      assert labels.items(p, p.text + "\n" + p.answer) == [1]  # The evidence is in the question.
      assert set(p.meta["labels"]) > {p.answer}
    row = facts.generate(0, i)
    p = records.Prompt("l", row["text"], row["answer"], meta=row["meta"])
    told = " ".join(p.meta["path"])
    assert coverage.facts(p, told) == coverage.facts(p, p.text) == 1
    assert p.text.startswith(p.meta["sources"][0]) and labels.items(p,
        f"{told}\n{p.answer}") == [1] * 4
    assert coverage.path(p, told) == coverage.quotes(p, p.meta["path"][0] * 1) == 1 or len(
        p.meta["path"][0]) < coverage.CHARACTERS
    # Following the relations of the question through the facts leads to the answer.
    known = {f.split(" is ")[1].rstrip("."): f.split(" is ")[0] for f in p.meta["sources"]}
    *asked, person = p.text.split(" Who is ")[1].rstrip("?").split(" of ")
    for relation in reversed(asked): person = known[f"{relation} of {person}"]
    assert person == p.answer
  with pytest.raises(ValueError, match="prompts.options.kinds='job'"): decisions.generate(
      0, 0, kinds="job")
