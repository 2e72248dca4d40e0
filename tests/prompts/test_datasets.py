"""The contract of every file in rlx/prompts/datasets, and what each one reads.

The tests list the files; a new data set needs rows in ROWS.
"""
import functools
import importlib
import itertools
import json
import pathlib

import numpy as np
import pytest

from rlx import prompts as prompts_package
from rlx.build import sets
from rlx.core import records, resolve
from rlx.prompts import generated
from rlx.prompts.datasets import chain, chain_horizon, chain_pairs, gsm8k, hendrycks_math, jsonl
from rlx.prompts.datasets import segments, teacher
from rlx.stages import host_fields
from rlx.verifiers import chain as chain_verifier, coverage
from tests.io import strings

NAMES = sorted(p.stem for p in (pathlib.Path(prompts_package.__file__).parent
                                / "datasets").glob("[!_]*.py"))

EXAMPLE = records.Prompt(id="chain/0", text="4M7m2M5=", answer="5")


def qa(split):
  return [dict(question=f"{split} {i}?", answer=a) for i, a in enumerate(["1", "-2", "3/4"])]


PUBLIC = strings.fixture("public_sets")


def public_rows(name, split):
  """The rows of a set's fixture: of the published shape, some of which are dropped."""
  return json.loads(json.dumps(PUBLIC[name]["rows"]).replace("{split}", split))


def gym_rows(split):
  first = dict(train=0, test=1)[split]
  return [dict(task="chain_sum", config={}, seed=0, index=i, entry=dict(
      question=f"{i} + 3 =", answer=str(i + 3), metadata={}))
          for i in range(first, 6, 2)]


def chain_rows(split):
  return [dict(seed=0, index=i, n_min=1, n_max=3, ops="Mm+-*") for i in range(300)]


def judged_rows(split):
  return [dict(question=f"{split} {i}?", completion=str(i), verdict=float(i % 2), split=split)
          for i in range(6)]


def teacher_rows(split):
  return [dict(question=f"{split} {i}?", completions=[f"It is \\boxed{{{i}}}", "I do not know",
                                                      f"\\boxed{{9}} or \\boxed{{{i}}}"])
          for i in range(3)]


def text_rows(split):
  return [dict(text=f"The {split} market {i} is old. It opens at nine. {i} people sell pears.")
          for i in range(6)]


def made_rows(split): return [dict(seed=0, index=i) for i in range(40)]


ROWS = dict(
    {set_.dataset: functools.partial(public_rows, name)
     for name, set_ in reversed(sets.list_sets().items())},
    chain=chain_rows, chain_horizon=chain_rows, chain_pairs=chain_rows, instructions=made_rows,
    instructions_pairs=made_rows,
    decisions=made_rows, facts=made_rows, jsonl=qa, judging=judged_rows,
    teacher=teacher_rows, tool_calls=made_rows,
    reasoning_gym=gym_rows, segments=text_rows, tfds=qa)


def load(name, split):
  module = importlib.import_module(f"rlx.prompts.datasets.{name}")
  return [p for p in module.prompts(ROWS[name](split), split) if isinstance(p, records.Prompt)]


def right_completion(prompt):
  """A completion that states the prompt's answer as its verifier reads it."""
  if prompt.verifier.startswith("chain."):
    return chain.trace(prompt, np.random.default_rng(0), wrong_rate=0.0)
  if prompt.verifier.startswith("code_tests.") and not prompt.answer:
    name, _, i = prompt.id.split("/")
    return PUBLIC[name]["solutions"][i]
  boxed = prompt.verifier.endswith(".boxed")
  return "\\boxed{" + prompt.answer + "}" if boxed else prompt.answer


@pytest.mark.parametrize("name", NAMES)
def test_contract(name):
  assert name in ROWS, f"add rows of {name} to ROWS"
  splits = {split: load(name, split) for split in ("train", "test")}
  ids = [p.id for p in itertools.chain(*splits.values())]
  assert len(set(ids)) == len(ids), "ids must differ, also between splits"
  assert {s: load(name, s) for s in splits} == splits, "not the same when read again"
  texts = {split: {p.text for p in prompts} for split, prompts in splits.items()}
  assert not texts["train"] & texts["test"]
  assert all(p.text and (p.answer or "tests" in p.meta) and p.verifier for p in splits["train"])


@pytest.mark.parametrize("name", NAMES)
def test_answers_pass_their_own_verifier_and_empty_completions_do_not(name):
  if name == "reasoning_gym": pytest.importorskip("reasoning_gym")
  for prompt in load(name, "train"):
    # A judge would ask a server whether a text is a beginning of another one.
    path = "coverage.prefix" if name == "segments" else prompt.verifier
    verify = resolve.lookup("verifiers", path)
    assert verify(prompt, right_completion(prompt)) == 1.0, prompt
    assert verify(prompt, "") == 0.0, prompt


@pytest.mark.parametrize("lowest, left", [(.5, "bd"), (.4, "bd"), (.1, "d"), (1.0, "abcd")])
def test_rows_of_the_lowest_first_rewards(lowest, left):
  """Of a, b and d: of equal rewards the first; c has none and stays."""
  rows = [dict(question=q, answer="1", r=r) for q, r in zip("abcd", (.5, .25, None, -2))]
  made = list(jsonl.prompts(rows, "train", first_reward="r", lowest=lowest))
  kept = [p.text for p in made if isinstance(p, records.Prompt)]
  assert "".join(kept) == "".join(sorted({*left, "c"})) and len(made) == 4
  assert {p.reason for p in made if isinstance(p, records.Dropped)} <= {"with higher first rewards"}
  ties = [dict(question=q, answer="1", r=1) for q in "ab"]
  assert [getattr(p, "text", "") for p in jsonl.prompts(
      ties, "train", first_reward="r", lowest=.5)] == ["a", ""]
  with pytest.raises(ValueError, match="row 0 of train: column 'r': 'x' is no number"):
    list(jsonl.prompts([dict(rows[0], r="x")], "train", first_reward="r"))


def test_instructions_are_asked_with_and_without_reasoning():
  made = load("instructions_pairs", "train")
  single = load("instructions", "train")
  for p, first, second in zip(single, made[::2], made[1::2]):
    assert first.text == second.text == p.text and first.answer == second.answer == p.answer
    assert (first.meta["pair"], second.meta["pair"]) == (second.id, first.id)
    assert not first.messages and second.messages == (
        dict(role="user", content=p.text),
        dict(role="assistant", content="<think>\n\n</think>\n\n"))
    assert (first.meta["bare"], second.meta["bare"]) == (False, True)
  assert len(made) == 2 * len(single)
  assert host_fields.bare_B(made[:3], group=2).tolist() == [0, 0, 1, 1, 0, 0]


SENTENCES = "Ann is old. Bo is near!\nCy opens at nine. Yes. Di sells ten pears"


def test_segments_by_hand():
  made = lambda text=SENTENCES, **options: [
      (p.text, p.answer) if isinstance(p, records.Prompt) else p.reason
      for p in segments.prompts([dict(text=text)], "train", per_text=9, **options)]
  asks = "What does the next sentence of this text say?\n\n"
  # "Yes." is too short to be asked for, but it is shown and may be part of an answer.
  assert sorted(made(form="next", before=2)) == [
      (asks + "Ann is old.", "Bo is near! Cy opens at nine."),
      (asks + "Ann is old. Bo is near!", "Cy opens at nine. Yes."),
      (asks + "Cy opens at nine. Yes.", "Di sells ten pears")]
  asks = "Which sentence is missing at [...] in this text?\n\n"
  assert sorted(made(form="middle")) == [  # The last one has none behind it.
      (asks + "Ann is old. Bo is near! [...] Yes.", "Cy opens at nine."),
      (asks + "Ann is old. [...] Cy opens at nine.", "Bo is near!")]
  assert made("Ann is old.") == ["without a sentence to ask for"] == made("")
  assert len(list(segments.prompts([dict(text=SENTENCES)] * 2, "train"))) == 2
  both = [p.meta["form"] for i in range(40) for p in segments.prompts(
      [dict(text=f"{i} is old. {SENTENCES}")], "train")]
  assert 8 < both.count("next") < 32
  with pytest.raises(ValueError, match="row 0: column 'text': 3 is no text"):
    list(segments.prompts([dict(text=3)], "train"))


@pytest.mark.parametrize("text, verdict", [
    ("It opens at nine", 1), ("it, OPENS at", 1), ("It opens", 0), ("It opens at ten.", 0),
    ("It opens at nine. Yes. And", 0), ("Opens at nine", 0), ("", 0),
    ("<think>Hm.</think>\nIt opens at", 1), ("It opens at <think>", 0)])
def test_a_beginning_of_the_reference(text, verdict):
  prompt = records.Prompt("p", "?", "It opens at nine. Yes.",
                          meta=dict(thoughts=("<think> </think>",)))
  assert coverage.prefix(prompt, text) == verdict


def test_chain_by_hand():
  # max(4, 7) = 7, min(7, 2) = 2, max(2, 5) = 5.
  assert chain.solve("4M7m2M5=") == [7, 2, 5]
  # 8 + 7 = 15, 5 - 6 = -1, 9 * 9 = 81, all mod 10.
  assert chain.solve("8+7-6*9=") == [5, 9, 1]
  assert chain.trace(EXAMPLE, np.random.default_rng(0), wrong_rate=0.0) == "7;2;5#5"


def test_chain_questions_are_within_their_options():
  prompts = load("chain", "train")
  assert {(len(p.text) - 2) // 2 for p in prompts} == {1, 2, 3}
  assert {c for p in prompts for c in p.text if not c.isdigit()} == set("Mm+-*=")
  assert [p.answer for p in prompts] == [str(chain.solve(p.text)[-1]) for p in prompts]
  # Stable across runs and versions: checkpoints name prompts by id.
  assert prompts[0].id == "chain/train/0/0"
  assert chain.generate(0, 0) == dict(text="8M6m5M9m9m1M1=", answer="1", verifier="chain.answer",
                                      meta=dict(operations=6))


def test_chain_split_depends_on_the_text_alone():
  for split in ("train", "test"):
    drawn = [chain.generate(seed, i, split=split)["text"] for seed in (0, 1) for i in range(100)]
    assert {generated.split_of(t) for t in drawn} == {split}
  texts = [f"{a}M{b}m{c}=" for a in range(10) for b in range(10) for c in range(10)]
  share = np.mean([generated.split_of(t) == "test" for t in texts])
  assert 0.15 < share < 0.35


def test_chain_trace_is_wrong_at_the_given_rate():
  rng = np.random.default_rng(0)
  checks, states = [], []
  for prompt in load("chain", "train") * 5:
    text = chain.trace(prompt, rng, wrong_rate=0.2)
    stated = text.replace("#", ";").split(";")
    checks += chain_verifier.steps(prompt, text)
    states.append(stated[-1] == stated[-2])
  # About 3000 steps: three standard errors of 0.2 are 0.02. Every wrong digit
  # is really wrong, and the steps after it are right given it.
  assert abs(1 - np.mean(checks) - 0.2) < 0.022
  assert all(states)
  for _ in range(50):
    always = chain.trace(EXAMPLE, rng, wrong_rate=1.0)
    assert not any(chain_verifier.steps(records.Prompt("", "4M7m2M5="), always))


@pytest.mark.parametrize("options, message", [
    (dict(ops="Mx"), "prompts.options.ops='Mx': one or more of Mm"),
    (dict(ops=""), "prompts.options.ops=''"),
    (dict(n_min=0), "1 <= n_min=0"),
    (dict(n_min=3, n_max=2), "n_min=3 <= n_max=2"),
    (dict(split="validation"), "no split 'validation'; train or test")])
def test_chain_refuses(options, message):
  with pytest.raises(ValueError, match=message):
    chain.generate(0, 0, **options)


def test_chain_pairs_are_two_wordings_of_one_question():
  by_id = {p.id: p for p in load("chain_pairs", "train")}
  for p in by_id.values():
    other = by_id[p.meta["pair"]]
    assert other.meta["pair"] == p.id and other.text == chain_pairs.other_wording(p.text)
    assert (other.text != p.text and other.answer == p.answer
            and chain.solve(other.text) == chain.solve(p.text))
  assert chain_pairs.other_wording("4M7m2M5=") == "7M4m2M5="
  # 4 - 7 is not 7 - 4, and 4 M 4 has no other wording.
  assert chain_pairs.other_wording("4-7m2=") is chain_pairs.other_wording("4M4m2=") is None


def test_chain_horizon_continues_from_the_previous_answer():
  prompts = load("chain_horizon", "train")
  singles = [chain.generate(**r)["text"] for r in chain_rows("train")]
  assert len(prompts) > 80
  for p in prompts:
    i, ends = 2 * int(p.id.rpartition("/")[2]), p.meta["ends"]
    first, second = singles[i:i + 2]
    assert p.text == first[:-1] + second[1:]
    solved = chain.solve(p.text)
    assert solved[ends[0]] == chain.solve(first)[-1] and ends[1] == len(solved) - 1
    assert solved[ends[1]] == chain.solve(f"{solved[ends[0]]}{second[1:]}")[-1]
  three = list(chain_horizon.prompts(chain_rows("train"), "train", problems=3))
  assert {len(p.meta["ends"]) for p in three} == {3} and len(three) <= 100


def test_gsm8k_reads_the_number_after_the_mark():
  one, two = load("gsm8k", "train")
  assert (one.answer, two.answer) == ("8", "1200")
  assert one.meta["worked"] == "She has 4 + 4 = <<4+4=8>>8 pens."
  with pytest.raises(ValueError, match=r"'question': gsm8k: row 0 of test has \['answer'"):
    list(gsm8k.prompts([dict(answer="8")], "test"))


def test_hendrycks_math_reads_the_last_box():
  assert load("hendrycks_math", "train")[0].meta == dict(level="Level 1", type="Algebra")
  texts = {r"So $\boxed 5$.": "5", r"It is \fbox{x^2 + 1}.": "x^2 + 1",
           r"$x=\boxed{3}$ or $x=\boxed{4}$.": "3 or 4", r"\boxed{A}, \boxed{C}": "A, C",
           r"$\boxed{1}$, and $\boxed{2}$": "1, and 2", r"\boxed{1} so $\boxed{2}$": "2",
           r"so $\boxed{\left\{ 1 \right.}$ and more {text}.": r"\left\{ 1 \right."}
  assert [p.answer for p in hendrycks_math.prompts(
      [dict(problem="?", solution=s) for s in texts], "train")] == list(texts.values())
  dropped, _ = hendrycks_math.prompts(
      [dict(problem="?", solution=s) for s in ("no box", r"\boxed{open")], "test")
  assert dropped == records.Dropped("hendrycks_math/test/0", r"without a closed \boxed{}")
  with pytest.raises(ValueError, match=r"'solution': hendrycks_math: row 0 of test has \['p"):
    list(hendrycks_math.prompts([dict(problem="?")], "test"))


def test_columns_are_named_by_options():
  rows = [dict(q="2 + 3?", a=5, how="math_answer.boxed")]
  (prompt,) = jsonl.prompts(rows, "train", question="q", answer="a", verifier="how")
  assert (prompt.text, prompt.answer, prompt.verifier) == ("2 + 3?", "5", "math_answer.boxed")
  more = [dict(rows[0], reference="five", items=None, left="out")]
  assert next(jsonl.prompts(more, "train", question="q", answer="a")).meta == dict(reference="five")
  with pytest.raises(ValueError, match=(
      r"prompts.columns.question='question': row 0 of train has \['a', 'how', 'q'\]")):
    list(jsonl.prompts(rows, "train"))
  with pytest.raises(ValueError, match="row 0 of train: column 'a': there is no answer"):
    list(jsonl.prompts([dict(q="?", a=None)], "train", question="q", answer="a"))


def test_the_majority_of_a_teacher_is_the_answer():
  rows = [dict(question="3 + 4?", completions=[r"\boxed{8}", r"\boxed{6}, no: \boxed{7}",
                                               r"\boxed{7}", "7"]),
          dict(question="1 + 1?", completions=["2", r"\boxed{2}", r"\boxed{3}"]),
          dict(question="2 + 2?", completions=["4"])]
  of = lambda **options: list(teacher.prompts(rows, "train", **options))
  first, *others = of()
  assert (first.answer, first.meta["shown"]) == ("7", rows[0]["completions"][1:3])
  assert [x.reason for x in others] == ["without a majority"] * 2
  assert [x.answer for x in of(least=.3)[:2]] == ["7", "2"]
  assert [x.answer for x in of(pattern=r"(\d)\D*$", least=1 / 3)] == ["7", "2", "4"]
  shown = {teacher.demonstration(first, np.random.default_rng(i)) for i in range(9)}
  assert shown == set(rows[0]["completions"][1:3])
  with pytest.raises(ValueError, match="row 0 of train: column 'completions': a list of texts"):
    list(teacher.prompts([dict(question="?", completions="7")], "train"))
  with pytest.raises(ValueError, match=r"prompts.columns.pattern='\(': no regular expression"):
    of(pattern="(")
