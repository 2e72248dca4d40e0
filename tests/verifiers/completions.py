"""Completions as an adversary or a broken sampler writes them, drawn from a random.Random."""
import string

from tests.verifiers import cases

PARTS = cases.read("completions.json")


def draw(rng):
  """One completion; of any kind with the same chance."""
  return rng.choice(_KINDS)(rng)


def _long(rng): return rng.choice((10, 100, 1000, 10_000))


def _empty(rng): return rng.choice(("", " ", "\n", "\0", "\t\r\n", "\ufeff"))


def _nested(rng):
  a, b = rng.choice(PARTS["nested"])
  n = _long(rng)
  nested = a * n + "7" + b * rng.choice((n, n, n - 1, 0))
  return r"\boxed{" * rng.randint(0, 1) + nested + "}" * rng.randint(0, 1)


def _exponents(rng):
  n = rng.choice(("9", "99", "10", "2.5", "(9!)", "x", "-1", "0"))
  tower = n
  for _ in range(rng.randint(1, 6)):
    tower = rng.choice(("{}**{}", "{}^{{{}}}", "({})^({})", "{}^{}")).format(n, tower)
  return rng.choice((r"\boxed{%s}", "answer: %s", "%s", r"\boxed{\frac{1}{%s}}", r"\boxed{(%s)!}",
                     r"\boxed{\sqrt{%s}}")) % tower


def _hang(rng):
  k = rng.choice((50, 500, 5000, 10**6, 10**9))
  numbers = ",".join(map(str, range(min(k, 300))))
  roots = "+".join(rf"\sqrt{{{i}}}" for i in range(2, 2 + min(k, 60)))
  matrix = r"\begin{pmatrix}%s\end{pmatrix}" % r"\\".join(["1&2&3"] * 3)
  return r"\boxed{%s}" % rng.choice((
      rf"\binom{{{k}}}{{{k // 2}}}", f"{k}!", f"{k}!!!", rf"\sum_{{n=1}}^{{{k}}} \frac{{1}}{{n^2}}",
      rf"\prod_{{n=1}}^{{{k}}} n", f"(x+y+z)^{{{k}}}", rf"\int_0^{{{k}}} e^{{x^x}} dx",
      rf"\sqrt{{{roots}}}", rf"\sin(\sin({k}^{{{k}}}))", rf"\gcd({7**min(k, 2000)}, 72)",
      f"x^{{{k}}} = 1", rf"\{{{numbers}\}}", rf"{10**min(k, 900)} \mod 7",
      rf"\lim_{{x \to 0}} \frac{{\sin x^{{{k}}}}}{{x}}", f"0.{'3' * min(k, 900)}",
      f"{matrix}^{{{k}}}"))


def _megabyte(rng):
  unit = rng.choice(PARTS["repeated"])
  end = rng.choice(("", "!", r"\boxed{72}", "#5", "```"))
  return unit * (rng.choice((10**5, 10**6)) // len(unit)) + end


def _latex(rng):
  formula = "".join(rng.choices(PARTS["latex"], k=rng.randint(1, 40)))
  return r"\boxed{" + formula + "}" * rng.randint(0, 3)


def _regex(rng):
  unit = rng.choice(PARTS["repeated_for_patterns"])
  return unit * _long(rng) + rng.choice(("!", "b", "", "#", "\n#5"))


def _unicode(rng): return "".join(chr(rng.randrange(0x110000)) for _ in range(rng.randint(1, 50)))


def _bytes(rng):
  errors = rng.choice(("surrogateescape", "replace", "backslashreplace"))
  return rng.randbytes(rng.randint(1, 200)).decode("utf-8", errors)


def _odd(rng): return "".join(rng.choices(PARTS["odd"] + string.printable, k=rng.randint(1, 80)))


def _words(rng):
  return rng.choice(("", " ")).join(rng.choices(PARTS["words"], k=rng.randint(1, 30)))


def _code(rng):
  lines = "\n".join(rng.choices(PARTS["code"], k=rng.randint(1, 3)))
  return "```python\n" + lines + rng.choice(("\n```", "\n```\n", "", "```"))


def _chain(rng): return "".join(rng.choices("0123456789;#", k=rng.randint(1, 20)))


def _boxed_odd(rng): return r"\boxed{" + rng.choice((_odd, _unicode, _words, _bytes))(rng) + "}"


_KINDS = (_empty, _nested, _exponents, _hang, _megabyte, _latex, _regex, _unicode, _bytes, _odd,
          _words, _code, _chain, _boxed_odd)


def judged(text):
  """What judge.function is pointed at: the text as its own reply."""
  return text


def judged_items(text):
  """The same of judge.rubric with one item."""
  return [float(text == "yes")]
