r"""Pairs of answers that are equal, or not, in many formats; what math_answer says of them."""
import random
import types

from rlx.evals import verifier as report_lib
from rlx.verifiers import math_answer

# Written by hand: (kind, answer, stated, are they equal).
HARD = [
    ("integer", "1000", "1{,}000", True), ("integer", "1000", r"1\,000", True),
    ("integer", "1000", r"1\ 000", True), ("integer", "7", "007", True), ("integer", "0", "-0", True),
    ("integer", "12", "1,2", False), ("integer", "1000", "1,00", False), ("integer", "5", "5x", False),
    ("integer", "5", "5!", False), ("integer", "10", "1 0", False), ("integer", "3", "3, 3", False),
    ("integer", "2", "2 or 3", False), ("integer", "2", r"2 \text{ or } 3", False),
    ("integer", "2", "x", False), ("integer", "2", "n = 2 + 3", False), ("integer", "6", "5 < 6", False),
    ("decimal", "0.5", ".5", True), ("decimal", "0.5", "0,5", False), ("decimal", "0.333", r"\frac{1}{3}", False),
    ("decimal", r"\frac{1}{3}", "0.33", False), ("decimal", r"\frac{1}{3}", "0.333333", False),
    ("decimal", "3.14", r"\pi", False), ("decimal", r"\pi", "3.14159", False), ("decimal", r"\pi", r"\frac{22}{7}", False),
    ("decimal", r"\sqrt{2}", "1.41", False), ("decimal", r"\sqrt{2}", "1.414214", False), ("decimal", "1.5", "1.50", True),
    ("decimal", r"0.\overline{3}", r"\frac{1}{3}", True), ("decimal", "2.5", "2,5", False),
    ("fraction", "3.5", r"3\frac{1}{2}", True), ("fraction", r"\frac{7}{2}", r"3 \frac12", True),
    ("fraction", r"\frac{1}{2}", r"\frac{1}{2}x", False),
    ("fraction", r"\frac{1}{2}", "1/2/1", True), ("fraction", r"\frac{a}{b}", r"\frac{b}{a}", False),
    ("fraction", r"\frac{x+1}{x}", r"1+\frac{1}{x}", True), ("fraction", r"\frac{1}{2}", r"\frac{1}{2}\%", False),
    ("percent", r"50\%", "0.5", True), ("percent", r"50\%", r"\frac{1}{2}", True), ("percent", "50%", r"50\%", True),
    ("percent", r"50\%", r"50 \text{ percent}", True), ("percent", r"12.5\%", r"\frac{1}{8}", True),
    ("percent", r"0.5\%", "0.5", False), ("percent", "0.5", r"0.5\%", False),
    ("surd", r"\sqrt{3}/3", r"\frac{1}{\sqrt 3}", True), ("surd", r"\sqrt{3+2\sqrt{2}}", r"1+\sqrt{2}", True),
    ("surd", r"\frac{1}{\sqrt{2}-1}", r"\sqrt{2}+1", True), ("surd", r"\sqrt[3]{2}", r"3\sqrt{2}", False),
    ("surd", r"\sqrt{8}", r"\sqrt 8", True), ("surd", r"2\sqrt{5}", r"\pm 2\sqrt{5}", False),
    ("surd", r"\sqrt{2}+\sqrt{3}", r"\sqrt{5}", False), ("surd", r"\sqrt{x^2}", "x", False),
    ("polynomial", "(x+1)^2", "x^2+2x+1", True), ("polynomial", "x^2-1", "(x-1)(x+1)", True),
    ("polynomial", "x^2-1", "(x-1)^2", False), ("polynomial", "2x+3", "2y+3", False), ("polynomial", "xy", "yx", True),
    ("polynomial", "x^2", "2x", False), ("polynomial", "x^{10}", "x^{1}0", False), ("polynomial", "x+1", "x + 1 = 0", False),
    ("polynomial", "3(x+2)(x-1)", "3x^2+3x-6", True), ("polynomial", "-(x-1)", "1-x", True),
    ("power", "2^{10}", "1024", True), ("power", "2^{3^2}", "512", True), ("power", "2^{3^2}", "64", False),
    ("power", "x^{-1}", r"\frac{1}{x}", True), ("power", "e^{2}", "e^2", True), ("power", "2^{100}", "2^{99}", False),
    ("power", r"\frac{1}{2^{10}}", "2^{-10}", True), ("power", "5!", "120", True), ("power", r"\binom{5}{2}", "10", True),
    ("power", r"\log_2 8", "3", True), ("power", r"\ln 2", r"\log 2", False), ("power", r"\log_{10} 2", r"\log_2 10", False),
    ("power", r"\ln 8", r"3\ln 2", True), ("power", "10^{100}", "10^{101}", False),
    ("trigonometry", r"\sin^2 x + \cos^2 x", "1", True), ("trigonometry", r"\sin 30^\circ", r"\frac{1}{2}", True),
    ("trigonometry", r"\tan x", r"\frac{\sin x}{\cos x}", True), ("trigonometry", r"\sin x", r"\cos x", False),
    ("trigonometry", r"\frac{\pi}{4}", r"45^\circ", True), ("trigonometry", r"2\pi", r"360", False),
    ("trigonometry", r"\pi", "180", False), ("trigonometry", r"2\pi", r"\pi^2", False),
    ("interval", r"[0, \infty)", r"[0, +\infty)", True), ("interval", r"(-\infty, 2)", r"x < 2", True),
    ("interval", r"[1, 2]", r"1 \le x \le 2", True), ("interval", "(1, 2)", r"1 \le x \le 2", False),
    ("interval", r"(0,1) \cup (2,3)", r"(2,3)\cup(0,1)", True), ("interval", r"(0,1) \cup (2,3)", r"(0,3)", False),
    ("interval", r"(0,1) \cup (2,3)", "(0,1)", False), ("interval", r"x > 3", r"x \ge 3", False),
    ("interval", r"x > 3", "x < 3", False), ("interval", "x > 3", "3 < x", True), ("interval", r"(0, 1]", r"x \in (0, 1]", True),
    ("set", r"\{1, 2\}", r"\{2, 1\}", True), ("set", "1, 2", "2, 1", True), ("set", r"\{1,2\}", r"\{1,2,2\}", True),
    ("set", r"\emptyset", r"\{\}", True), ("set", r"\emptyset", r"\{0\}", False), ("set", r"\{1,2\}", r"\{1\}", False),
    ("set", r"\{1,2\}", r"1 \text{ and } 2", True), ("set", "1, 2", "1", False), ("set", "1, 2", "1, 2, 3", False),
    ("set", r"\{1,2\}", "12", False), ("set", r"x = \pm 2", "x = 2, -2", True), ("set", r"\pm 2", "2", False),
    ("set", r"1 \pm \sqrt{2}", r"1+\sqrt{2}, 1-\sqrt{2}", True), ("set", r"1 \pm \sqrt{2}", r"1+\sqrt{2}", False),
    ("tuple", "(1,2)", "(2,1)", False), ("tuple", "(1,2)", r"(1, 2, 0)", False), ("tuple", "(1,2)", r"\{1,2\}", False),
    ("tuple", r"(3, \frac{\pi}{2})", r"\left( 3, \frac{\pi}{2} \right)", True), ("tuple", "(1,2)", "12", False),
    ("tuple", r"(1, \frac12)", "(1, 0.5)", True), ("tuple", "(1,2)", "x=1, y=2", True), ("tuple", "(1,2)", "3", False),
    ("units", "5", r"5\text{ cm}", True), ("units", r"5\text{ cm}", "5", True), ("units", r"5\text{ cm}", r"5\text{ m}", False),
    ("units", r"10 \mathrm{~kg}", r"10\text{ kg}", True), ("units", r"5 \text{ cm}^2", r"25", False),
    ("units", r"\$5", "5", True), ("units", "5", r"5 \text{ dollars}", True), ("units", r"30^\circ", "30", True),
    ("units", r"30^\circ", r"30 \text{ degrees}", True), ("units", r"5\text{ cm}", r"50\text{ mm}", True),
    ("text", r"\text{even}", "even", True), ("text", r"\text{even}", "odd", False), ("text", "A", "(A)", True),
    ("text", "A", r"\text{A}", True), ("text", r"\text{(A)}", "A", True), ("text", "A", "B", False), ("text", "C", r"\textbf{(C)}", True),
    ("text", r"\text{Yes}", "yes", True), ("text", r"\text{Yes}", "no", False), ("text", r"\text{no solution}", "0", False),
    ("text", r"\text{Alice}", "Alice and Bob", False), ("text", r"\text{east}", r"\text{west}", False),
    ("text", r"\text{true}", "1", False), ("text", r"\text{odd}", r"\text{not odd}", False), ("text", "A", "A, B", False),
    ("matrix", r"\begin{pmatrix}1\\2\end{pmatrix}", r"\begin{pmatrix}1&2\end{pmatrix}", False),
    ("matrix", r"\begin{pmatrix}1&2\\3&4\end{pmatrix}", r"\begin{pmatrix}1&3\\2&4\end{pmatrix}", False),
    ("matrix", r"\begin{pmatrix}1\\2\end{pmatrix}", "(1, 2)", False),
    ("equation", "x = 5", "5", True), ("equation", "5", "x = 5", True), ("equation", "5", "x = 6", False),
    ("equation", "y = 2x + 3", "y - 2x = 3", True), ("equation", "y = 2x + 3", "y = 3x + 2", False),
    ("equation", "x + y = 1", "2x + 2y = 2", True), ("equation", "x = y", "y = x", True), ("equation", "x^2 + y^2 = 1", "x + y = 1", False),
    ("equation", "f(x) = x^2", "x^2", True), ("equation", "a = 1, b = 2", "a = 2, b = 1", False),
    ("complex", "3+2i", "2i+3", True), ("complex", "3+2i", "3-2i", False), ("complex", "i^2", "-1", True), ("complex", "e^{i\\pi}", "-1", True),
    ("complex", r"\frac{1}{i}", "-i", True), ("complex", "2i", "2", False),
    # What is no answer.
    ("nothing", "5", "", False), ("nothing", "5", " ", False), ("nothing", "5", "?", False), ("nothing", "5", ":", False),
    ("nothing", "5", r"\text{answer}", False), ("nothing", "5", r"\ldots", False), ("nothing", "5", r"\square", False),
    ("nothing", "0", r"\emptyset", False), ("nothing", "0", "", False), ("nothing", "1", r"\text{the answer}", False),
    ("nothing", "5", "1, 2, 3, 4, 5, 6", False), ("nothing", "5", r"\{1, 2, 3, 4, 5\}", False), ("nothing", "5", r"0 \le x \le 9", False),
    ("nothing", "5", r"(-\infty, \infty)", False), ("nothing", "5", "x = x", False), ("nothing", "5", "5 = 5 = 6", False),
    ("nothing", "5", r"\frac{0}{0}", False), ("nothing", "5", r"\infty", False), ("nothing", "5", "NaN", False),
    ("nothing", "5", "5 ± 100", False), ("nothing", "5", r"\approx 5.4", False), ("nothing", "5", r"\neq 5", False),
    # Several answers, or another one, where one is asked for.
    ("hedge", "5", "5 or 6", False), ("hedge", "5", r"5 \text{ or } 6", False),
    ("hedge", "5", r"5 \lor 6", False), ("hedge", "5", "5; 6", False),
    ("hedge", "5", r"5 \quad 6", False), ("hedge", "5", r"5 \\ 6", False),
    ("hedge", "5", "5 / 6", False), ("hedge", "5", r"\text{either } 5 \text{ or } 6", False),
    ("hedge", "5", r"5 \neq 6", False), ("hedge", "5", "6, 5", False),
    ("hedge", "5", "x = 5 = 6", False), ("hedge", "5", "x = 5, x = 6", False),
    ("hedge", "5", r"x \in \{5, 6\}", False), ("hedge", "5", r"5 \pm 1", False),
    ("hedge", "5", "5 (or 6)", False), ("hedge", "5", "5?6", False), ("hedge", "5", "6 -> 5", False),
    ("hedge", "5", r"6 \to 5", False), ("hedge", "5", r"6 \Rightarrow 5", False),
    ("hedge", "5", "5 and 6", False), ("hedge", "5", r"\frac{5}", False),
    ("hedge", "5", r"5 \text{ is wrong, it is } 6", False),
    ("hedge", "x = 5", r"x = 5 \text{ or } x = 6", False), ("hedge", "x = 5", "x = 5, 6", False),
    ("hedge", "A", "A or B", False), ("hedge", "A", "ABCD", False), ("hedge", "A", "A/B", False),
    ("hedge", "A", r"\text{A or B}", False), ("hedge", "A", r"\text{(A) or (B)}", False),
    ("hedge", "A", "A B C D", False), ("hedge", "x^2", "x^2 + C", False),
    ("hedge", r"\frac{1}{2}", r"\frac{1}{2}, \frac{1}{3}", False),
    ("hedge", "(1, 2)", "(1, 2), (2, 1)", False),
    ("hedge", "(1, 2)", r"(1, 2) \text{ or } (2, 1)", False),
    ("hedge", "5", r"\begin{cases} 5 \\ 6 \end{cases}", False),
    ("hedge", "5", r"\begin{pmatrix} 5 & 6 \end{pmatrix}", False), ("hedge", "5", "f(5)", False),
    ("hedge", "5", r"\sqrt{5}", False), ("hedge", "5", "|5| + 1", False),
    ("hedge", "5", r"\{5, 6\}", False), ("hedge", "5", "[4, 6]", False), ("hedge", "5", "5..6", False),
    ("hedge", "5", "5-6", False), ("hedge", "5", "5 6", False), ("hedge", "5", r"5 \text{ } 6", False),
    ("hedge", "5", "5e1", False), ("hedge", "5", "5.5.5", False), ("hedge", "5", "0x5", False),
    ("hedge", "5", "5_6", False), ("hedge", "101_2", "101_3", False),
]


def pairs(seed=0):
  """(kind, answer, stated, are they equal) of the rules, and those written by hand."""
  rng = random.Random(seed)
  found = [(rule.__name__[1:], *pair) for rule in _RULES for _ in range(10)
           for pair in rule(rng)]
  return list(dict.fromkeys(found + HARD))


def report():
  """({kind: counts, precision, recall, ...}, pairs, verdicts) of math_answer.boxed."""
  all_pairs = pairs()
  verdicts = [_verdict(answer, stated) for _, answer, stated, _ in all_pairs]
  labels = [equal for *_, equal in all_pairs]
  kinds = [kind for kind, *_ in all_pairs]
  return report_lib.report(verdicts, labels, kinds), all_pairs, verdicts


def _verdict(answer, stated):
  try:
    return math_answer.boxed(types.SimpleNamespace(text="", answer=answer), "\\boxed{" + stated + "}")
  except Exception:  # pylint: disable=broad-exception-caught
    return float("nan")


def _separated(n, mark): return f"{n:,}".replace(",", mark)


def _integer(rng):
  n = rng.choice([1, -1]) * rng.randint(1000, 10**rng.randint(4, 9))
  for mark in (",", "{,}", r"\,"): yield str(n), _separated(n, mark), True
  yield str(n), f"{n}.0", True
  yield _separated(n, ","), str(n), True
  for wrong in (-n, n + 1, n * 10, n // 10): yield str(n), _separated(wrong, ","), False


def _decimal(rng):
  n, digits = rng.randint(1, 9999) * 10 + rng.randint(1, 9), rng.randint(1, 3)
  text, below = f"{n / 10**digits:.{digits}f}", 10**digits
  yield text, text + "0", True
  yield text, rf"\frac{{{n}}}{{{below}}}", True
  yield text, f"{n}/{below}", True
  for wrong in (f"{(n + 1) / below:.{digits}f}", f"{n / below / 10:.{digits + 1}f}", f"-{text}"):
    yield text, wrong, False


def _fraction(rng):
  a, b, k = rng.randint(1, 40), rng.choice([3, 7, 9, 11, 13, 17]), rng.randint(2, 5)
  sign = rng.choice(["", "-"])
  if a % b == 0: a += 1
  answer = rf"{sign}\frac{{{a}}}{{{b}}}"
  for form in (r"\dfrac{%d}{%d}", r"\tfrac{%d}{%d}", "%d/%d", r"\frac{%d}{%d}"):
    yield answer, sign + form % (a * k, b * k), True
  yield answer, (r"\frac{-%d}{%d}" if sign else r"\frac{%d}{%d}") % (a, b), True
  for c, d in ((b, a), (a + 1, b), (a, b + 1)): yield answer, rf"{sign}\frac{{{c}}}{{{d}}}", False
  yield answer, rf"{'' if sign else '-'}\frac{{{a}}}{{{b}}}", False
  yield answer, f"{sign}{a / b:.2f}", False


def _percent(rng):
  n = rng.randint(1, 99)
  yield rf"{n}\%", f"{n}%", True
  yield rf"{n}\%", f"{n / 100:g}", True
  yield rf"{n}\%", rf"{n} \%", True
  yield rf"{n}\%", rf"{n + 1}\%", False
  yield rf"{n}\%", f"{n / 1000:g}", False


def _scientific(rng):
  a, e = rng.randint(11, 99), rng.randint(3, 30)
  m = f"{a // 10}.{a % 10}"
  answer = rf"{m} \times 10^{{{e}}}"
  yield answer, str(a * 10**(e - 1)), True
  yield answer, rf"{m}\cdot 10^{{{e}}}", True
  yield str(a * 10**(e - 1)), answer, True
  yield answer, rf"{m} \times 10^{{{e + 1}}}", False
  yield answer, rf"{m} \times 10^{{-{e}}}", False
  yield answer, str(a * 10**e), False
  yield answer, m, False
  small = rf"{m} \times 10^{{-{e}}}"
  yield small, rf"{m}\cdot10^{{-{e}}}", True
  yield small, f"{a / 10}e-{e}".replace("e", r" \cdot 10^{") + "}", True
  yield small, rf"{m} \times 10^{{-{e + 1}}}", False
  yield small, rf"{(a + 7) / 10} \times 10^{{-{e}}}", False
  yield small, "0", False


def _surd(rng):
  a, b = rng.randint(2, 12), rng.choice([2, 3, 5, 6, 7, 10])
  yield rf"{a}\sqrt{{{b}}}", rf"\sqrt{{{a * a * b}}}", True
  yield rf"\frac{{{a}}}{{\sqrt{{{b}}}}}", rf"\frac{{{a}\sqrt{{{b}}}}}{{{b}}}", True
  yield rf"{a}+\sqrt{{{b}}}", rf"\sqrt{{{b}}} + {a}", True
  yield rf"{a}\sqrt{{{b}}}", rf"{a}\sqrt{{{b + 1}}}", False
  yield rf"{a}\sqrt{{{b}}}", rf"{b * b}\sqrt{{{a * a + 1}}}", False
  yield rf"{a}+\sqrt{{{b}}}", rf"{a}-\sqrt{{{b}}}", False
  yield rf"{a}\sqrt{{{b}}}", f"{a * b ** 0.5:.2f}", False


def _polynomial(rng):
  a, b, c = rng.randint(1, 9), rng.randint(1, 9), rng.randint(2, 5)
  answer = f"{c}x^2+{c * (a + b)}x+{c * a * b}"
  yield answer, f"{c}(x+{a})(x+{b})", True
  yield answer, f"{c * a * b} + {c * (a + b)}x + {c}x^{{2}}", True
  yield f"{c}(x+{b})(x+{a})", answer, True
  yield answer, f"{c}(x-{a})(x-{b})", False
  yield answer, f"{c}x^2+{c * (a + b) + 1}x+{c * a * b}", False
  yield answer, f"{c}x^3+{c * (a + b)}x+{c * a * b}", False
  yield answer, answer.replace("x", "y"), False


def _interval(rng):
  a = rng.randint(-20, 20)
  b = a + rng.randint(1, 20)
  yield f"[{a}, {b})", f"[{a},{b})", True
  yield f"[{a}, {b})", rf"\left[{a}, {b}\right)", True
  yield rf"(-\infty, {a}] \cup ({b}, \infty)", rf"(-\infty,{a}]\cup({b},+\infty)", True
  for wrong in (f"({a}, {b})", f"[{a}, {b}]", f"[{a}, {b + 1})"): yield f"[{a}, {b})", wrong, False
  yield rf"({a}, \infty)", rf"[{a}, \infty)", False


def _set(rng):
  xs = rng.sample(range(-30, 30), 3)
  show = lambda xs: r"\{" + ", ".join(map(str, xs)) + r"\}"
  yield show(xs), show(xs[::-1]), True
  yield show(xs), r"\left\{" + ",".join(map(str, xs)) + r"\right\}", True
  yield ", ".join(map(str, xs)), ",".join(map(str, xs[::-1])), True
  for wrong in (xs[:2], xs + [31], xs[:2] + [xs[2] + 60]): yield show(xs), show(wrong), False
  yield show(xs), str(xs[0]), False


def _tuple(rng):
  a, b, c = rng.sample(range(-30, 30), 3)
  yield f"({a}, {b})", f"({a},{b})", True
  yield f"({a}, {b}, {c})", rf"\left({a}, {b}, {c}\right)", True
  yield rf"({a}, \frac{{1}}{{2}})", f"({a}, 0.5)", True
  yield f"({a}, {b})", f"({b}, {a})", False
  yield f"({a}, {b})", f"({a}, {b}, {c})", False
  yield f"({a}, {b}, {c})", f"({a}, {c}, {b})", False
  yield f"({a}, {b})", f"({a}, {b + 1})", False


def _units(rng):
  n, unit = rng.randint(2, 500), rng.choice(["cm", "kg", "hours", "miles", "square feet"])
  yield str(n), rf"{n}\text{{ {unit}}}", True
  yield rf"{n} \text{{ {unit}}}", str(n), True
  yield rf"{n}\text{{ {unit}}}", rf"{n}\ \mathrm{{{unit}}}", True
  yield rf"\${n}", str(n), True
  yield str(n), rf"{n + 1}\text{{ {unit}}}", False
  yield rf"{n} \text{{ {unit}}}", str(10 * n), False


_WORDS = ("Monday", "Tuesday", "even", "odd", "red", "blue", "ellipse", "circle", "hyperbola", "Evelyn")


def _text(rng):
  a, b = rng.sample(_WORDS, 2)
  yield rf"\text{{{a}}}", a, True
  yield a, rf"\text{{{a}}}", True
  yield a, rf"\textbf{{{a}}}", True
  yield rf"\text{{{a}}}", b, False
  yield rf"\text{{{a}}}", rf"\text{{{b}}}", False
  yield rf"\text{{{a}}}", rf"\text{{{a} or {b}}}", False


def _matrix(rng):
  a, b, c, d = rng.sample(range(-9, 10), 4)
  show = lambda *x, kind="pmatrix": r"\begin{%s} %s & %s \\ %s & %s \end{%s}" % (kind, *x, kind)
  yield show(a, b, c, d), show(a, b, c, d).replace(" ", "").replace(r"\\", r"\\ "), True
  yield show(a, b, c, d), show(a, b, c, d, kind="bmatrix"), True
  yield show(a, b, c, d), show(a, c, b, d), False
  yield show(a, b, c, d), show(a, b, c, d + 1), False


def _equation(rng):
  a, b = rng.randint(2, 9), rng.randint(1, 20)
  yield f"y = {a}x + {b}", f"y={b}+{a}x", True
  yield f"x = {b}", f"x={b}", True
  yield str(b), f"x = {b}", True
  yield f"y = {a}x + {b}", f"y = {a}x - {b}", False
  yield f"x = {b}", f"x = {b + 1}", False
  yield f"y = {a}x + {b}", f"y = {a + 1}x + {b}", False


_RULES = (_integer, _decimal, _fraction, _percent, _scientific, _surd, _polynomial, _interval,
          _set, _tuple, _units, _text, _matrix, _equation)
