"""math_answer on cases made against it, and on answers written in other ways."""
import random
import time
import types

import pytest

from rlx.evals import verifier as report_lib
from rlx.verifiers import math_answer
from tests.verifiers import cases as cases_lib

CASES = [case for name in ("math_cases_first", "math_cases", "math_cases_second")
         for case in cases_lib.read(f"{name}.jsonl")]
DISPUTED = cases_lib.read("math_disputed.json")
# How many of the pairs of different answers math_answer takes for equal at most, and of the
# equal ones at least, as shares (docs/verifiers.md); of all other kinds 0 and 1.
BOUNDS = dict(all=(0.0, 0.998), set=(0.0, 0.97))


def prompt(answer, question=""): return types.SimpleNamespace(text=question, answer=answer)


def verdict(case):
  verify = getattr(math_answer, case["verifier"].partition(".")[2])
  return verify(prompt(case["gold"], case.get("question", "")), case["text"])


def boxed(answer, stated): return math_answer.boxed(prompt(answer), rf"\boxed{{{stated}}}")


def test_precision_and_recall_of_every_kind_of_pairs():
  pairs = cases_lib.read("math_pairs.jsonl")
  labels, kinds = [pair["right"] for pair in pairs], [pair["kind"] for pair in pairs]
  assert 500 <= sum(labels) <= len(labels) - 500
  report = report_lib.report([verdict(pair) for pair in pairs], labels, kinds)
  for kind, metrics in report.items():
    fpr, recall = BOUNDS.get(kind, (0.0, 1.0))
    assert metrics["unknown"] == 0 and metrics["fpr"] <= fpr, (kind, metrics)
    assert not metrics["recall"] < recall, (kind, metrics)  # NaN: a kind without equal pairs.


@pytest.mark.parametrize("case", cases_lib.read("math_answer.jsonl"), ids=lambda case: case["text"])
def test_what_counts_as_the_answer(case):
  assert verdict(case) == case["right"], case


@pytest.mark.parametrize("verify", [math_answer.boxed, math_answer.final])
def test_an_unreadable_answer_is_no_verdict(verify):
  with pytest.raises(ValueError, match="no answer: ''"): verify(prompt(""), r"\boxed{3}")


@pytest.mark.parametrize("right", [False, True])
def test_cases(right):
  cases = [c for c in CASES if c["right"] == right and c["name"] not in DISPUTED]
  assert len(cases) >= 340
  missed = [c["name"] for c in cases if verdict(c) != right]
  assert len(missed) <= (0.08 if right else 0.01) * len(cases), missed


def test_every_case_ends_soon():
  for case in CASES:
    start = time.process_time()
    verdict(case)
    assert time.process_time() - start < 1.0, case["name"]


# Expressions in other forms: sums of terms, each of which is a coefficient and a factor.
FACTORS = ("x", "x^2", r"\sqrt{2}", r"\pi", "xy", r"\sqrt{x}", r"e^{x}")
FRACTIONS = (r"\frac{%d}{%d}", r"\dfrac{%d}{%d}", r"\tfrac{%d}{%d}", "(%d/%d)", r"{%d \over %d}")


def term(rng, a, b, factor):
  k = rng.choice([1, 2, 3])
  number = rng.choice(FRACTIONS) % (a * k, b * k) if b > 1 or rng.random() < 0.2 else str(a)
  if not factor: return number
  mark = rng.choice(["", r"\cdot ", r"\times ", " * ", r"\,"])
  # A number does not stand behind a letter.
  return rng.choice([number + mark + factor,
                     factor + rng.choice([r"\cdot ", r" \times "]) + number])


def written(rng, terms):
  parts = [(a, term(rng, abs(a), b, factor)) for a, b, factor in rng.sample(terms, len(terms))]
  text = "".join((" - " if a < 0 else " + ") + part for a, part in parts)
  text = text.removeprefix(" + ")
  for new in (lambda s: rf"\left({s}\right)", lambda s: f"${s}$", lambda s: f"{{{s}}}",
              lambda s: s.replace(" - ", " − "), lambda s: s.replace(r"\pi", "π"),
              lambda s: s.replace(r"\sqrt{2}", "√2"), lambda s: s.replace("x^2", r"x\cdot x")):
    if rng.random() < 0.2: text = new(text)
  return text


@pytest.mark.parametrize("seed", range(40))
def test_other_forms_are_equal_and_other_values_are_not(seed):
  rng = random.Random(seed)
  factors = [""] + rng.sample(FACTORS, rng.randint(1, 3))
  terms = [(rng.choice([1, -1]) * rng.randint(1, 9), rng.choice([1, 1, 2, 3, 7]), factor)
           for factor in factors]
  gold, i = written(rng, terms), rng.randrange(len(terms))
  a, b, factor = terms[i]
  for _ in range(5): assert boxed(gold, again := written(rng, terms)) == 1.0, (gold, again)
  for changed in ((a + 10, b, factor), (a, b + 1, factor), (-a, b, factor)):
    other = written(rng, [*terms[:i], changed, *terms[i + 1:]])
    assert boxed(gold, other) == 0.0, (gold, other)


@pytest.mark.parametrize("answer", [
    "5" * 1500, "(" * 900, "{" * 900, r"\frac{" * 300, "x+" * 700 + "1", "x^" * 500 + "2",
    "|" * 900,
    r"\sqrt{" * 200 + "2" + "}" * 200, "1+" * 900 + "1", r"\text{" * 200, "9^{9^{9^{9}}}",
    "999999999!",
    r"\binom{10^9}{5\cdot 10^8}", "x^{99999999}", r"\sin" * 400 + "x", ",".join("1" * 900),
    "(" + ",".join(["(1,2)"] * 150) + ")", r"\pm" * 300 + "1", "1" + r"\pm 1" * 300,
    "e^{e^{e^{9}}}",
    r"\begin{pmatrix}" + r"1&2\\" * 200 + r"\end{pmatrix}", r"\ln" * 300 + "2", "-" * 1500 + "1"])
@pytest.mark.parametrize("gold", ["5", r"\sqrt{2}+x", r"\{1,2\}", "(1,2)", "Monday"])
def test_what_a_policy_may_write_ends_soon(gold, answer):
  start = time.process_time()
  for text in (rf"\boxed{{{answer}}}", f"The answer is {answer}", answer):
    assert math_answer.final(prompt(gold), text) in (0.0, 1.0)
    assert math_answer.boxed(prompt(gold), text) == 0.0
  assert time.process_time() - start < 1.5


@pytest.mark.parametrize("answer", [
    r"\pmod{7}", "radius:", "radius: 5, center: (1,2)", "7\\ ", ":", r"\text{area}:",
    r"a + k\pi, k \in \mathbb{Z}", r"\overline", "{", r"^\circ", r"5^\circ '", r"\vec{}",
    r"k \in\in \mathbb{Z}"])
@pytest.mark.parametrize("gold", ["5", r"b + k\pi, k \in \mathbb{Z}", r"\vec{a}", "(1,2)", "[1,2)"])
def test_a_text_that_is_no_answer_is_a_zero(gold, answer):
  assert boxed(gold, answer) == 0.0
  assert math_answer.final(prompt(gold), f"The answer is ${answer}$.") == 0.0


@pytest.mark.parametrize("answer", ["i", "-i", "e", r"\infty", "2i", r"\frac{\pi}{2}"])
def test_a_constant_is_stated_without_a_digit(answer):
  assert math_answer.final(prompt(answer), f"The answer is ${answer}$.") == 1.0
