"""math_answer on cases made against it, and on answers written in other ways."""
import json
import pathlib
import random
import time
import types

import pytest

from rlx.verifiers import math_answer

HERE = pathlib.Path(__file__).parent
CASES = [json.loads(line) for name in ("math_cases_first", "math_cases", "math_cases_second")
         for line in (HERE / f"{name}.jsonl").read_text().splitlines()]
DISPUTED = json.loads((HERE / "math_disputed.json").read_text())


def verdict(case):
  prompt = types.SimpleNamespace(text=case.get("question", ""), answer=case["gold"])
  return getattr(math_answer, case["verifier"].partition(".")[2])(prompt, case["text"])


def boxed(answer, stated):
  prompt = types.SimpleNamespace(text="", answer=answer)
  return math_answer.boxed(prompt, rf"\boxed{{{stated}}}")


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


# Expressions in other forms. A sum of terms; each a coefficient and what it is of.
OF = ("", "x", "x^2", r"\sqrt{2}", r"\pi", "xy", r"\sqrt{x}", r"e^{x}")
FRACTIONS = (r"\frac{%d}{%d}", r"\dfrac{%d}{%d}", r"\tfrac{%d}{%d}", "(%d/%d)", r"{%d \over %d}")


def term(rng, a, b, of):
  k = rng.choice([1, 2, 3])
  number = rng.choice(FRACTIONS) % (a * k, b * k) if b > 1 or rng.random() < 0.2 else str(a)
  if not of: return number
  mark = rng.choice(["", r"\cdot ", r"\times ", " * ", r"\,"])
  # A number does not stand behind a letter.
  return rng.choice([number + mark + of, of + rng.choice([r"\cdot ", r" \times "]) + number])


def written(rng, terms):
  parts = [(a, term(rng, abs(a), b, of)) for a, b, of in rng.sample(terms, len(terms))]
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
  ofs = [""] + rng.sample(OF[1:], rng.randint(1, 3))
  terms = [(rng.choice([1, -1]) * rng.randint(1, 9), rng.choice([1, 1, 2, 3, 7]), of) for of in ofs]
  gold, i = written(rng, terms), rng.randrange(len(terms))
  a, b, of = terms[i]
  for _ in range(5): assert boxed(gold, again := written(rng, terms)) == 1.0, (gold, again)
  for changed in ((a + 10, b, of), (a, b + 1, of), (-a, b, of)):
    other = written(rng, [*terms[:i], changed, *terms[i + 1:]])
    assert boxed(gold, other) == 0.0, (gold, other)


@pytest.mark.parametrize("answer", [
    "5" * 1500, "(" * 900, "{" * 900, r"\frac{" * 300, "x+" * 700 + "1", "x^" * 500 + "2", "|" * 900,
    r"\sqrt{" * 200 + "2" + "}" * 200, "1+" * 900 + "1", r"\text{" * 200, "9^{9^{9^{9}}}", "999999999!",
    r"\binom{10^9}{5\cdot 10^8}", "x^{99999999}", r"\sin" * 400 + "x", ",".join("1" * 900),
    "(" + ",".join(["(1,2)"] * 150) + ")", r"\pm" * 300 + "1", "1" + r"\pm 1" * 300, "e^{e^{e^{9}}}",
    r"\begin{pmatrix}" + r"1&2\\" * 200 + r"\end{pmatrix}", r"\ln" * 300 + "2", "-" * 1500 + "1"])
@pytest.mark.parametrize("gold", ["5", r"\sqrt{2}+x", r"\{1,2\}", "(1,2)", "Monday"])
def test_what_a_policy_may_write_ends_soon(gold, answer):
  start = time.process_time()
  for text in (rf"\boxed{{{answer}}}", f"The answer is {answer}", answer):
    prompt = types.SimpleNamespace(text="", answer=gold)
    assert math_answer.final(prompt, text) in (0.0, 1.0) and math_answer.boxed(prompt, text) == 0.0
  assert time.process_time() - start < 1.5


@pytest.mark.parametrize("answer", [
    r"\pmod{7}", "radius:", "radius: 5, center: (1,2)", "7\\ ", ":", r"\text{area}:",
    r"a + k\pi, k \in \mathbb{Z}", r"\overline", "{", r"^\circ", r"5^\circ '", r"\vec{}"])
@pytest.mark.parametrize("gold", ["5", r"b + k\pi, k \in \mathbb{Z}", r"\vec{a}", "(1,2)", "[1,2)"])
def test_a_text_that_is_no_answer_is_a_zero(gold, answer):
  prompt = types.SimpleNamespace(text="", answer=gold)
  assert math_answer.boxed(prompt, rf"\boxed{{{answer}}}") == 0.0
  assert math_answer.final(prompt, f"The answer is ${answer}$.") == 0.0


@pytest.mark.parametrize("answer", ["i", "-i", "e", r"\infty", "2i", r"\frac{\pi}{2}"])
def test_a_constant_is_stated_without_a_digit(answer):
  prompt = types.SimpleNamespace(text="", answer=answer)
  assert math_answer.final(prompt, f"The answer is ${answer}$.") == 1.0
