"""Items of verdicts: what prompts say of them, their fields and metrics, a run that reads them."""
import dataclasses
import json
import re
import types

import numpy as np
import pytest

from rlx import build
from rlx.build import models as build_models, prompts as build_prompts
from rlx.core import records
from rlx.io import metrics as io_metrics
from rlx.loops import rl
from rlx.stages import annotate, host_fields, outcomes
from rlx.tools import view
from rlx.verifiers import chain, code_tests, items, judge, pool
from tests import tiny

nan = np.nan
NAMED = [dict(name="dose", weight=2), dict(name="fault", weight=-1),
         dict(name="cites", threshold=0.5), dict(name="warns", veto=True)]


def prompt(id_="p", named=None):
  meta = {} if named is None else dict(items=named)
  return records.Prompt(id_, "?", "", "mine", meta=meta)


@pytest.mark.parametrize("values, named, expected", [
    ([1., .5, .5, 0.], NAMED, (2 - .5 + 1) / 4), ([1., 1., .4, 1.], NAMED, (2 - 1 + 1) / 4),
    ([nan, 1., 1., 1.], NAMED, (-1 + 1 + 1) / 2),  # What is unknown counts nowhere.
    ([nan, 1., nan, nan], NAMED, nan), ([1., .5], None, .75), ([], None, nan)])
def test_the_mean_of_items(values, named, expected):
  np.testing.assert_allclose(items.average(items.read(prompt(named=named), values)), expected)


@pytest.mark.parametrize("named, count, problem", [
    (NAMED, None, None), (None, None, None), (None, 5, None), (NAMED, 4, None),
    (None, 6, "it has 6 items: at most verifier.max_items=5"),
    (NAMED * 2, None, "it has 8 items: at most verifier.max_items=5"),
    (NAMED, 3, "items names 4 items; its verifier gives 3"),
    ([], None, r"items=\[\]: a list"), ("dose", None, "items='dose': a list of dicts"),
    (["dose"], None, r"items=\['dose'\]: a list of dicts"),
    ([dict(weight=1)], None, r"items\[0\]={'weight': 1}: name: a text"),
    ([dict(name=" ")], None, "name: a text"),
    ([dict(name="a", weight="2")], None, "weight: a number"),
    ([dict(name="a", weight=nan)], None, "weight: a number"),
    ([dict(name="a", threshold=2)], None, "threshold: a number from 0 to 1"),
    ([dict(name="a", veto=1)], None, "veto: true or false"),
    ([dict(name="a", text="?", verifier="format.boxed")], None, None),
    ([dict(name="a", points=5)], None, "'points' is no key of an item, of which it has name, "),
    ([dict(name="a", wieght=5)], None, "'wieght' is no key of an item"),
    ([dict(name="a", weight=-1)], None, "no weight is above 0")])
def test_what_a_prompt_may_say_of_its_items(named, count, problem):
  def find(own): return items.find_problem(prompt(named=named), 5, count and (lambda p: count), own)
  found = find(items.OF_RUBRICS)
  assert found is None if problem is None else re.search(problem, found), found
  assert judge.InProcess("rubric", None).item_keys == judge.rubric.item_keys == items.OF_RUBRICS
  assert find(None) == (None if "is no key" in str(found) else found)  # A verifier of one's own.


def computed(prompts, lists, max_error_rate=0.5, max_items=5):
  options = dict(max_items=max_items)
  of = host_fields.items(prompts, ["x"] * len(prompts), lambda path, *_: lists, verifier="mine",
                         max_error_rate=max_error_rate, **options)
  return {fn.__name__: fn(of, **options) for fn in (
      host_fields.items_BI, host_fields.item_weight_BI, host_fields.item_veto_BI)}, of


def test_items_are_padded_and_what_is_unknown_does_not_learn():
  a, b, c = prompt("a", NAMED), prompt("b"), prompt("c")
  columns, of = computed([a, a, a, b, b, b, c], [
      [1., 0., .7, 1.], 0.0, [1.], [.5, 1.], [], 0.0, []])
  np.testing.assert_array_equal(columns["items_BI"], [
      [1, 0, 1, 1, 0], [0] * 5, [nan] * 4 + [0],      # Four items; a list of one is wrong.
      [.5, 1, 0, 0, 0], [nan, nan, 0, 0, 0], [0] * 5,  # As many as the longest list of the prompt.
      [nan, 0, 0, 0, 0]])
  np.testing.assert_array_equal(columns["item_weight_BI"], [
      *[[2, -1, 1, 1, 0]] * 3, *[[1, 1, 0, 0, 0]] * 3, [1, 0, 0, 0, 0]])
  np.testing.assert_array_equal(columns["item_veto_BI"][[0, 3]], [[0, 0, 0, 1, 0], [0] * 5])
  batch = records.Batch(action_BT=np.ones((7, 1), bool), outcome_B=np.ones(7), **columns)
  assert batch.learn_B.tolist() == [True, True, False, True, False, True, False]
  assert records.Batch(action_BT=np.ones((7, 1), bool), outcome_B=np.ones(7)).learn_B.all()
  # Of the names that all completions have, of those that have tokens.
  annotated = annotate.Annotated(types.SimpleNamespace(completion_len_B=np.array([1, 0, 1, 0])),
                                 None, dict(items=of[:4]), [host_fields.items.field])
  assert annotated.measure() == {
      "items/dose": 1, "items/fault": 0, "items/cites": 1, "items/warns": 1}
  assert annotated.show(2)["items"][:2] == [dict(name="dose", weight=2.0, value=None),
                                            dict(name="fault", weight=-1.0, value=None)]
  assert items.mean_by_name(of) == items.mean_by_name([]) == {}
  many = [[items.Item(f"{i}", 1.0, 1.0) for i in range(40)]] * 2
  assert len(items.mean_by_name(many)) == 16


@pytest.mark.parametrize("lists, more, message", [
    ([[1.] * 6, [1.]], dict(), "verifier.max_items=5: mine gave 6 items for a completion"),
    ([[1., 1.], [1.]], dict(max_error_rate=0.1),
     "verifier.by_item: mine gives another number of values than there are items for 1 of 2 "
     "completions, such as 'x', which has 2")])
def test_lists_that_do_not_fit_are_refused(lists, more, message):
  with pytest.raises(ValueError, match=message): computed([prompt()] * 2, lists, **more)


def test_a_verifier_of_items_is_the_verdict_too_and_is_called_once():
  calls = []
  def mine(prompt, text):
    calls.append(text)
    return [nan if x == "?" else float(x == "1") for x in text]
  verifiers = outcomes.Verifiers(pool.Pool(0, 1.0, functions=dict(mine=mine)), (), "mine")
  named = [dict(name="a", weight=3), dict(name="b")]
  texts, prompts = ["10", "?1", "??", "1", "x"], [prompt(str(i), named) for i in range(5)]
  # Nothing known, and another number of items: unknown.
  np.testing.assert_array_equal(verifiers.rewards(prompts, texts, keep=True),
                                [.75, 1, nan, nan, nan])
  calls.clear()
  np.testing.assert_equal(verifiers.lists("mine", prompts, texts),
                          [[1, 0], [nan, 1], [], [1], [0]])
  assert not calls
  # By the number of letters if the prompt does not say; a list for steps has no weights.
  np.testing.assert_array_equal(
      verifiers.rewards([dataclasses.replace(p, meta={}) for p in prompts], texts)[:2], [.5, 1])
  by_step = outcomes.Verifiers(pool.Pool(0, 1.0, functions=dict(mine=mine)), ("mine",))
  np.testing.assert_array_equal(by_step.rewards(prompts, texts)[:2], [.5, 1])


def test_tests_are_items():
  meta = dict(tests=["assert f(1) == 2", "assert f(2) == 3", "assert f(3) == 4"],
              code=dict(unsafe=True))
  p = records.Prompt("p", "?", "", "code_tests.tests", meta=meta)
  assert code_tests.tests(p, "```python\ndef f(x): return 2 if x == 1 else 4\n```") == [1, 0, 1]
  assert code_tests.tests(p, "no code") == [0, 0, 0] and code_tests.tests.count_items(p) == 3


def test_items_that_name_their_verifiers():
  named = [dict(name="right", verifier="math_answer.final"),
           dict(name="box", verifier="format.boxed")]
  p = records.Prompt("p", "?", "72", meta=dict(items=named))
  assert items.verdicts(p, "72") == [1, 0] and items.verdicts(p, r"\boxed{7}") == [0, 1]
  wrong = [dict(name="right"), dict(name="box", verifier="format.square")]
  (none, _), (missing, _), (unknown, _), (empty, _) = items.verdicts.inspect([
      p, *(records.Prompt("p", "?", meta=dict(items=x)) for x in (wrong, wrong[1:])),
      records.Prompt("p", "?")])
  assert none is None and missing.startswith("an item has no verifier: {'name': 'right'}")
  assert "rlx/verifiers/format.py has" in unknown and empty == "it has no items that name verifiers"


def test_checks_of_a_chain_are_items():
  p = records.Prompt("c", "3M5m2=", "2", "chain.checks")
  for text, expected in (("5;2#2", [1, 1, 1]), ("5;3#2", [1, 0, 1]), ("4;2#3", [0, 1, 0]),
                         ("5", [1, 0, 0]), ("", [0] * 3), ("5;2;2#2", [1, 1, 0])):
    assert chain.checks(p, text) == expected, text
  assert chain.checks.count_items(p) == 3


def letters(prompt, text):
  """Whether a text has each letter of the item."""
  return [float(item["letter"] in text) for item in prompt.meta["items"]]


letters.is_bounded = True
RUN = dict(rewards=dict(outcome=dict(name="items.weighted", coef=1.0)), advantages=dict(
    outcome=dict(name="group.grpo"), whiten=False), verifier__by_item=f"{__name__}:letters",
           rollouts__filter_groups=dict(name="filter_groups.with_verdict"), steps=2)


def write_rows(folder, of=lambda split, i: [dict(name="a", letter="a", weight=3),
                                            dict(name=f"{split}{i}", letter="b")]):
  for split, n in (("train", 32), ("test", 8)):
    letter = "a" if split == "train" else "b"
    (folder / f"{split}.jsonl").write_text("".join(json.dumps(dict(
        question=f"{letter}{i:02d}", answer="x", items=of(split, i))) + "\n" for i in range(n)))
  return f"jsonl:{folder}/{{split}}.jsonl"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
  folder = tmp_path_factory.mktemp("model")
  tiny.write(folder)
  return folder


@pytest.mark.parametrize("verifier", ["format.ascii_share", f"{__name__}:letters"])
def test_a_run_learns_from_items_and_shows_them(files, tmp_path, verifier):
  source = write_rows(tmp_path)
  rl.train(tiny.config(files, prompts__source=source, prompts__columns=dict(
      verifier=verifier, meta="items"), **RUN), tmp_path / "run")
  lines = io_metrics.read(tmp_path / "run")
  assert [name for name in lines[0] if name.startswith("items/")] == ["items/a"]
  assert lines[0]["rewards/outcome"] > 0 and lines[0]["policy/grad_norm"] > 0
  rows = io_metrics.tables(tmp_path / "run")
  for row in rows:
    a, b = row["items"]
    assert (a["name"], a["weight"], a["value"]) == ("a", 3, float("a" in row["completion"]))
    assert b["name"].startswith("train") and b["value"] == float("b" in row["completion"])
    if verifier == "format.ascii_share": continue
    assert row["verdict"] == .75 * a["value"] + .25 * b["value"]
  assert "; a (weight 3.00): 1.00; train" in view.render(tmp_path / "run")


def test_rows_have_their_own_items_whether_or_not_they_are_named(files, tmp_path):
  """Also as a table has them, with nulls or as JSON text; others have verifier.default_items."""
  given = dict(default=None, own=[dict(name="own", weight=2, veto=None)],
               text=json.dumps([dict(name="own", weight=2)]))
  source = write_rows(tmp_path, lambda split, i: [*given.values()][i % 3])
  for meta in ("", "items"):
    c = tiny.config(files, prompts__source=source, prompts__columns=dict(
        verifier="format.ascii_share", **(dict(meta=meta) if meta else {})),
                    verifier__default_items=(dict(name="base"),), **RUN)
    prompts, _ = build_prompts.load_prompts(c, build_prompts.texts_of(
        c, build_models.load_tokenizer(c)))
    assert [p.meta["items"] for p in prompts[:3]] == [
        [dict(name="base")], *[[dict(name="own", weight=2)]] * 2], meta


@pytest.mark.parametrize("changes, of, message", [
    (dict(verifier__max_items=1), None, "^prompt '.*': it has 2 items: at most verifier.max_items"),
    (dict(), lambda *_: [dict(name="a", weight="2")], r"^prompt '.*': items\[0\]="),
    (dict(verifier__default_items=(dict(weight=1),)), None,
     r"^verifier.default_items\[0\]={'weight': 1}: name: a text"),
    (dict(verifier__by_item="items.verdicts", verifier__workers=1), None,
     "^prompt '.*': an item has no verifier: {'name': 'a'"),
    (dict(verifier__by_item="judge.rubric", verifier__workers=1, verifier__judge__model="m",
          verifier__judge__url="http://localhost/v1"), lambda *_: [dict(name="a", points=2)],
     r"^prompt '.*': items\[0\]=.*'points' is no key of an item"),
    (dict(verifier__by_item="nothing.here"), None, "^verifier.by_item.*nothing.here")])
def test_refused_before_anything_compiles(files, tmp_path, changes, of, message):
  source = write_rows(tmp_path, *filter(None, [of]))
  c = tiny.config(files, prompts__source=source, prompts__columns=dict(
      verifier="format.ascii_share", meta="items"), **RUN | changes)
  with pytest.raises(ValueError, match=message): build.build(c)
