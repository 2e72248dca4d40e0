"""Prompts about a step's own completions: by hand, in a batch, and in runs that are resumed."""
import collections
import dataclasses
import math

import numpy as np
import pytest

from configs import bases
from rlx import build, cli
from rlx.build import load, methods as build_methods, prompts as build_prompts
from rlx.core import records
from rlx.io import tokenizer
from rlx.loops import record, rl
from rlx.prompts import derived
from rlx.rollouts import padding
from rlx.stages import derive, host_fields, host_state
from rlx.verifiers import format as format_lib, judging
from tests import test_resume, tiny

NAN = math.nan
WORDS = dict(request="{question}{answer}", reads="c=1 d=0")
SETS = dict(
    right=dict(name="derived.judging", per_step=2, **WORDS),
    better=dict(name="derived.judging", form="pair", request="{question}{answer}{other}",
                reads="c=1 d=0"),
    again=dict(name="derived.reflection", request="{answer}{question}"))


def completions(*rows):
  """Of (question, text, verdict); the stated answer is the last character, without one None."""
  return [derived.Completion(records.Prompt(f"id {q}", q, "7", "chain.answer"), text,
                             text[-1:] or None, verdict) for q, text, verdict in rows]


GROUPS = completions(("p", "x1", 1.0), ("p", "x2", 0.2), ("p", "y1", NAN), ("p", "x1", 1.0),
                     ("q", "z1", 1.0), ("q", "", 1.0), ("r", "1", 0.0), ("r", "{question}", 0.5))


def made(fn, rows=GROUPS, **options):
  got = list(judging.ask(fn(rows, **options)))
  return [p for p in got if isinstance(p, records.Prompt)]


def test_judgements_of_completions_and_of_answers():
  read = lambda **options: [(p.text, p.answer) for p in made(
      derived.judging, **WORDS, per_question=0, **options)]
  # y1 is unknown, x1 stands twice, a verdict of 1/2 is none; "r{question}" keeps its braces.
  assert read() == [("px1", "c"), ("px2", "d"), ("qz1", "c"), ("q", "c"), ("r1", "d")]
  # p states 1 twice, right and unknown; the empty completion states nothing.
  assert read(shows="answer") == [("p1", "c"), ("p2", "d"), ("q1", "c"), ("r1", "d")]
  assert sorted(x for _, x in read(balanced=True)) == ["c", "c", "d", "d"]
  few = made(derived.judging, **WORDS)
  assert [p.meta["judged"]["question"] for p in few] == ["p", "q", "r"]
  assert {p.verifier for p in few} == {"judging.verdict"}
  assert [judging.verdict(p, "c") for p in few] == [float(p.answer == "c") for p in few]
  # In words, with a code that no completion can know.
  p = made(derived.judging)[0]
  assert p.meta["judged"]["nonce"] in p.text and "[question" in p.text


def test_scores_in_a_box():
  """What papers/rise asks a language model."""
  p = made(derived.judging, **bases.SCORE)[0]
  assert "p\n\nThis is an answer to it.\n\nx1\n" in p.text and p.answer == "1"
  assert [judging.verdict(p, text) for text in (
      r"It is.\n\n$\boxed{1}$.", r"\boxed{0} no, \boxed{1}", r"\boxed{0}", "1", r"\boxed{2}")] == [
          1, 1, 0, 0, 0]


def test_pairs_of_completions_whose_verdicts_differ():
  pairs = made(derived.judging, form="pair", **WORDS | dict(request="{question}{answer}/{other}"))
  # x1 against x2; 1 against {question}, whose verdict is 1/2; all of q are right.
  assert sorted(p.text for p in pairs) in ([a, b] for a in ("px1/x2", "px2/x1")
                                           for b in ("r1/{question}", "r{question}/1"))
  for p in pairs: assert (p.answer == "c") == (p.text in ("px1/x2", "r{question}/1"))
  # A step of which nothing can be asked is no error.
  for rows in (GROUPS[4:6], GROUPS[2:3], []):
    assert not made(derived.judging, rows, form="pair", **WORDS | dict(request="{answer}{other}"))


def test_a_question_again_behind_a_wrong_completion():
  again = made(derived.reflection, request="{question}|{answer}|{question}")
  assert [p.asked for p in again] == ["p|x2|p", "r|1|r"]
  # What the verifier reads is the question, with its answer.
  assert [(p.text, p.answer, p.verifier) for p in again] == [(q, "7", "chain.answer") for q in "pr"]
  rows = completions(("r{answer}", "{question}", 0.5))
  assert made(derived.reflection, rows, request="{question}{answer}")[0].asked == (
      "r{answer}{question}")
  assert [p.asked for p in made(derived.reflection, shows="answer", request="{answer}{question}")
          ] == ["2p", "1r"]
  chat = [x._replace(prompt=dataclasses.replace(x.prompt, messages=(dict(
      role="user", content="p"),))) for x in GROUPS[1:2]]
  assert made(derived.reflection, chat)[0].messages == ()
  assert made(derived.reflection, chat)[0].asked == derived.AGAIN.format(question="p", answer="x2")


def test_a_question_again_behind_its_best_completion():
  """The first of equal ones; q is right, of r the one with 1/2; without known verdicts none."""
  ask = lambda rows=GROUPS, **options: [(p.asked, p.text, p.id.split("/")[0]) for p in made(
      derived.draft, rows, request="{answer}|{question}", **options)]
  assert sorted(ask()) == [("x1|p", "p", "draft"), ("z1|q", "q", "draft"),
                           ("{question}|r", "r", "draft")]
  assert ("|q", "q", "draft") in ask(GROUPS[::-1]) and not ask(GROUPS[2:3])
  # The best one that states an answer.
  assert ask(GROUPS[4:6][::-1], shows="answer") == [("1|q", "q", "draft")]


def test_questions_without_a_right_completion_again():
  """Of r all are wrong, of s one is and the other unknown, of t nothing is known."""
  rows = [*GROUPS, *completions(("s", "{question}", 0.0), ("s", "1", NAN), ("t", "1", NAN))]
  ask = lambda rows=rows, **options: [(p.asked, p.text) for p in made(
      derived.retry, rows, **options)]
  assert ask(request="2{question}") == [("2r", "r"), ("2s", "s")]
  assert ask(request="{answer}|{question}") == [("1|r", "r"), ("{question}|s", "s")]
  # An answer that is not stated is missing only where it would be shown.
  none = [x._replace(answer=None) for x in rows]
  assert ask(none, request="{answer}{question}", shows="answer") == []
  assert ask(none, request="2{question}", shows="answer") == [("2r", "r"), ("2s", "s")]
  assert derived.SPLIT.format(question="r") == ask()[0][0]


def test_papers_igrpo_learns_from_second_answers_alone():
  """And asks as many questions as GRPO does, with half of the completions each."""
  c, grpo = (load.load_config(f"papers/igrpo{x}") for x in ("", ":grpo"))
  methods = build_methods.resolve_methods(c)
  assert c.prompts.derived.best.per_step == grpo.prompts.per_step == c.prompts.per_step // 2
  assert grpo.rollouts.per_prompt == 2 * c.rollouts.per_prompt
  rows = [records.Prompt(f"{x}0", "p") for x in ("", "derived/best/draft/")]
  is_derived_B = np.repeat(host_fields.derived_B(rows), 2)
  assert methods.select_completions(records.Batch(2, derived_B=is_derived_B)).tolist() == [
      [False, False], [True, True]]


def read_meta(completions):
  """Of prompts that have it; the example of the check has none."""
  for x in completions: yield dataclasses.replace(x.prompt, text=x.prompt.meta["begun"])


def yield_texts(completions):
  yield from (x.text for x in completions)


# -- in a batch


@pytest.fixture(scope="module", name="folder")
def written(tmp_path_factory):
  folder = tmp_path_factory.mktemp("derived")
  tiny.write(folder, train=20)
  return folder


def config_of(folder, sets=None, **changes):
  return tiny.config(folder, prompts__derived=SETS if sets is None else sets, **dict(
      prompts__max_tokens=12, steps=3, rollouts__per_prompt=2, rollouts__oversample=1.0,
      rollouts__filter_groups=dict(name="filter_groups.with_verdict"), eval__answer="([a-h])",
      learner__minibatches=1, eval__prompts=4, eval__batch=4, checkpoint__every=1,
      rewards=dict(outcome=dict(name="outcome.verdict", coef=1.0)), learner__pack=True,
      advantages=dict(outcome=dict(name="group.rloo"), whiten=False)) | changes)


@pytest.fixture(scope="module")
def run(folder): return tiny.build_run(config_of(folder))


def test_a_batch_has_groups_about_its_own_completions(run):
  """By hand: their texts, verdicts and metrics, from those of the groups before them."""
  state = run.init()
  collected, metrics = run.collect(state, host_state.HostState(), 0, tiny.CLOCK)
  assert [p.source for p in collected.prompts] == [""] * 8 and len(collected.texts) == 16
  assert host_fields.derived_B(collected.prompts) == [False] * 4 + [True] * 4
  tokens = run.texts.tokenizer
  shown = [tokens.show(ids) for ids in padding.completions(collected.rollouts)]
  read = [tokens.decode(row[run.texts.prompt_tokens - n:run.texts.prompt_tokens].tolist())
          for row, n in zip(collected.rollouts.tokens_BS, collected.rollouts.prompt_len_B)][::2]
  assert len(shown) == 16
  groups = [(p.text, collected.texts[2 * i:2 * i + 2]) for i, p in enumerate(
      collected.prompts[:4])]
  assert read[:4] == [q for q, _ in groups]
  worth = lambda text: format_lib.ascii_share(None, text)
  by_set = collections.defaultdict(list)
  for i in range(4, 8):
    p, texts = collected.prompts[i], collected.texts[2 * i:2 * i + 2]
    name, verdict_G = p.id.split("/")[1], collected.reward_B[2 * i:2 * i + 2]
    by_set[name] += verdict_G.tolist()
    q, (one, two) = next(x for x in groups if x[0] in read[i])
    if name == "again":
      assert read[i] in (one + q, two + q) and worth(read[i][:-3]) <= 0.5
      want = [worth(text) for text in texts]
    else:
      asked, = (x for x in (f"{q}{one}", f"{q}{two}", f"{q}{one}{two}", f"{q}{two}{one}")
                if x == read[i])
      label = (worth(asked[3:]) > 0.5 if name == "right" else
               worth(p.meta["judged"]["answer"]) > worth(p.meta["judged"]["other"]))
      assert p.answer == "dc"[label]
      want = [float(text == p.answer) for text in texts]
    np.testing.assert_allclose(verdict_G, want, atol=1e-6)
  assert {name: len(x) // 2 for name, x in by_set.items()} == dict(right=2, better=1, again=1)
  for name, x in by_set.items():
    assert metrics[f"derived/{name}/accuracy"] == pytest.approx(np.mean(x))
    assert metrics[f"derived/{name}/prompts"] == len(x) / 2
  assert metrics["rollouts/accuracy"] == pytest.approx(np.mean(collected.reward_B[:8]))
  assert metrics["rollouts/tokens"] == collected.rollouts.action_BT.sum()


def test_where_completions_give_too_few_their_prompts_are_asked_again(folder, run):
  """All are right, so that there is no pair and nothing to reflect on; groups fail the filter."""
  made = dataclasses.replace(run.collect, fill="drop", derive=dataclasses.replace(
      run.collect.derive, sets={name: x for name, x in run.collect.derive.sets.items()
                                if name != "right"}))
  class Right:
    """Verdicts of task prompts are 1, of those asked again 0."""
    def hold(self, state): pass
    def rewards(self, prompts, rollouts, texts=None, keep=False):
      return np.float64([[1.0, 1.0] if "/again" not in p.id else [0.0, NAN] for p in prompts])
  made = dataclasses.replace(made, outcomes=Right(), filter_groups=(
      lambda batch: (batch.outcome_PG == 1).all(axis=1)))
  collected, metrics = made(run.init(), host_state.HostState(), 0, tiny.CLOCK)
  ids = [p.id for p in collected.prompts]
  assert ids[4:] == [f"{x}/again0" for x in ids[:4]]
  assert metrics["derived/better/prompts"] == metrics["derived/again/prompts"] == 0
  assert not {"derived/better/accuracy", "derived/again/accuracy"} & set(metrics)
  assert collected.excluded_B.tolist() == [0] * 8 + [records.EXCLUDED.index("filtered")] * 8
  # New completions, not the same once more.
  texts = padding.completions(collected.rollouts)
  assert texts[:8] != texts[8:]


def test_prompts_that_are_too_long_are_left_out(run):
  few = dataclasses.replace(run.collect.derive, texts=dataclasses.replace(
      run.texts, prompt_tokens=4), sets={"right": run.collect.derive.sets["right"]})
  prompts = run.prompts.first(2)
  made = few(prompts, ["1", "12", "123", ""], np.float32([0, 1, 1, 1]), 0)["right"]
  assert {p.text for p in made} <= {f"{prompts[0].text}1", prompts[1].text} and made
  # Another step has another order, and the same step the same.
  many = dataclasses.replace(run.collect.derive, sets={"right": (
      run.collect.derive.sets["right"][0], 1)})
  args = run.prompts.first(8), ["1", "2"] * 8, np.float32([0, 1] * 8)
  picks = [many(*args, step)["right"][0].id for step in (0, 0, *range(1, 9))]
  assert picks[0] == picks[1] and len(set(picks)) > 3


@pytest.fixture(scope="module")
def whole(folder, run, tmp_path_factory):
  """(state of the prompts at the start, the workdir of a run that nothing happens to)."""
  start, workdir = run.prompts.state(), tmp_path_factory.mktemp("whole")
  with tiny.building(run): rl.train(config_of(folder), workdir)
  return start, workdir


@pytest.mark.parametrize("k", [1, 2])
def test_a_killed_run_resumes_bit_for_bit(k, folder, run, whole, tmp_path):
  start, workdir = whole
  killed = tiny.killed_after(workdir, k, tmp_path / "killed")
  run.prompts.restore(start)
  with tiny.building(run): rl.train(config_of(folder), killed)
  test_resume.assert_same(killed, workdir)
  (state, host), (expected, expected_host) = (tiny.restored(run, w) for w in (killed, workdir))
  tiny.assert_equal_trees(state, expected)
  assert host.prompts == expected_host.prompts and host.buffer == expected_host.buffer == []
  assert all(line["derived/right/prompts"] == 2 for line in tiny.lines(killed))


# -- configs


@pytest.mark.parametrize("sets, changes, message", [
    (dict(a=dict(name="derived.judging")), {}, "prompts.derived.a.request: The tokenizer cannot "
     "encode 'Is an answer"),
    (SETS, dict(prompts__max_tokens=3), "prompts.max_tokens=3: a prompt of prompts.derived.again "
     "has at least 4 tokens, with the shortest completion."),
    (dict(a=dict(name="tests.test_derived:yield_texts")), {},
     "prompts.derived.a.name: it yields a str; records.Prompt is needed."),
    (dict(a=dict(name="tests.test_derived:read_meta", per_step=9)), {},
     "prompts.derived: 9 prompts a step (per_step); at most 4"),
    (dict(a=dict(SETS["again"], per_step=3)), dict(mesh=dict(data=2, fsdp=1, tensor=1)),
     "the sum of prompts.derived.*.per_step=3: must be a multiple of mesh.data x mesh.fsdp = 2."),
], ids=str)
def test_refusals_are_one_line(folder, sets, changes, message):
  """Those of the tokenizer, the mesh and functions of one's own; others are in refused.toml."""
  with pytest.raises(ValueError) as e: build.build(config_of(folder, sets, **changes))
  assert str(e.value).startswith(message) and "\n" not in str(e.value)


def test_on_the_command_line_and_in_a_record(folder, tmp_path, monkeypatch, command):
  made = []
  monkeypatch.setattr(rl, "train", lambda config, workdir: made.append(config))
  name = "prompts.derived"
  words = [f"{name}.right.name=derived.judging", f"{name}.right.per_step=2",
           f"{name}.right.form=pair", f"{name}.right.both_orders=true",
           f"{name}.right.template.name=chat", f"{name}.right.template.enable_thinking=false"]
  cli.parse("train", "quickstart:smoke", f"workdir={tmp_path}", *words)[0]()
  sets = made[0].prompts.derived.to_dict()
  assert sets == dict(right=dict(
      name="derived.judging", per_step=2, form="pair", both_orders=True,
      template=dict(name="chat", enable_thinking=False)))
  record.record(made[0], tmp_path)
  assert load.load_config(str(tmp_path)).prompts.derived.to_dict() == sets
  for word, message in (
      (f"{name}.a=x", "prompts.derived.a='x': a section of keys, such as prompts.derived.a.name."),
      (f"{name}.a-b.name=x", "prompts.derived.a-b: another name for the set of prompts, of lett")):
    error = command("train", "quickstart:smoke", word).stderr
    assert message in error and error.count("\n") == 1


def test_requests_may_have_a_template_of_their_own(folder):
  """Judgements; a question that is asked again has that of its source unless it is named."""
  shots = dict(name="few_shot", examples=(("0", "c"),), question="", answer="")
  c = config_of(folder, dict(SETS, right=dict(SETS["right"], template=shots)))
  texts = build_prompts.texts_of(c, tokenizer.characters("0123456789abcdefgh\n"))
  made = derive.Derive(sets=build_prompts.bind_derived(c), texts=texts, seed=0)
  rows = completions(("a00", "1", 0.0), ("a00", "2", 1.0))
  shown = {name: {texts.prompt(p) for p in made.make(name, rows)} for name in made.sets}
  assert shown["right"] <= {f"0\nc\n\na00{x}" for x in "12"} and shown["again"] == {"1a00"}
  assert shown["better"] <= {"a0012", "a0021"} and all(shown.values())
