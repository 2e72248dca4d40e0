"""Completions as an adversary or a broken sampler writes them, drawn from a random.Random."""
import string

_LATEX = (r"\frac{", r"\sqrt{", r"\boxed{", r"\left(", r"\right)", r"\begin{pmatrix}", r"\end{pmatrix}",
          r"\sum_{n=1}^{\infty}", r"\int_0^1", r"\binom{9}{", r"\text{", r"\{", r"\}", "^{", "_{", "}", "{", "!",
          r"\infty", r"\pi", r"\cdot", r"\pm", r"\cup", "&", r"\\", "$", "=", "<", ",", "(", ")", "[", "]", "x",
          "y", "7", "72", "0", "-", "+", "/", "%", r"\%", r"\def\a{\a\a}\a", r"\newcommand{\x}{\x\x}", r"\input{/etc/passwd}")
_ODD = "\0\x07\x1b\x7f\x85\u2028\u202e\u200b\ufeff\ufffd\ufffe\ud800\udcff\U0010ffffٳ７①²½π∞é\u0301"
_CODE = ("while True: pass", "import os\nos.fork()", "9 ** 9 ** 9", "x = 'a' * 10**10", "exit(0)", "raise SystemExit",
         "import sys\nsys.setrecursionlimit(10**9)\nf = lambda: f()\nf()", "print(72)", "f = lambda *a: 72", "def f(:",
         "import time\ntime.sleep(9)", "input(", "print('7' * 10**7)", "[" * 300 + "]" * 300, "import os\nos.kill(1, 9)")
_WORDS = ("The answer is", "answer:", "####", "<think>", "</think>", "<answer>", "</answer>", "Thought process:",
          "```python", "```", "Yes", "no", "score: 7", "72", "7;2;5#5", "so", "\n", "\n\n", " ", ":")


def draw(rng):
  """One completion; of any kind with the same chance."""
  return rng.choice(_KINDS)(rng)


def _long(rng): return rng.choice((10, 100, 1000, 10_000))


def _empty(rng): return rng.choice(("", " ", "\n", "\0", "\t\r\n", "\ufeff"))


def _nested(rng):
  a, b = rng.choice((("{", "}"), ("(", ")"), ("[", "]"), (r"\frac{", "}{2}"), (r"\boxed{", "}"), (r"\sqrt{", "}"),
                     (r"\left(", r"\right)"), ("<think>", "</think>"), ("^{9", "}"), (r"\{", r"\}"), ("-", ""),
                     (r"\text{", "}"), ("1+(", ")"), (r"\begin{matrix}", r"\end{matrix}")))
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
  return rng.choice((
      r"\boxed{\binom{%d}{%d}}" % (k, k // 2), r"\boxed{%d!}" % k, r"\boxed{%d!!!}" % k, r"\boxed{\sum_{n=1}^{%d} \frac{1}{n^2}}" % k,
      r"\boxed{\prod_{n=1}^{%d} n}" % k, r"\boxed{(x+y+z)^{%d}}" % k, r"\boxed{\int_0^{%d} e^{x^x} dx}" % k,
      r"\boxed{\sqrt{%s}}" % "+".join(rf"\sqrt{{{i}}}" for i in range(2, 2 + min(k, 60))),
      r"\boxed{\sin(\sin(%d^{%d}))}" % (k, k), r"\boxed{\gcd(%d, 72)}" % 7**min(k, 2000), r"\boxed{x^{%d} = 1}" % k,
      r"\boxed{\{%s\}}" % ",".join(map(str, range(min(k, 300)))), r"\boxed{%d \mod 7}" % 10**min(k, 900),
      r"\boxed{\lim_{x \to 0} \frac{\sin x^{%d}}{x}}" % k, r"\boxed{0.%s}" % ("3" * min(k, 900)),
      r"\boxed{\begin{pmatrix}%s\end{pmatrix}^{%d}}" % (r"\\".join(["1&2&3"] * 3), k)))


def _megabyte(rng):
  unit = rng.choice(("a", "9", " ", "\n", "\\", "{", "$", "#", "answer ", "\ud800", "é", ";", "7;", "```\n", "```x\n",
                     "\\boxed", "####", "1,", ".", "<think>", "answer is ", "0" * 50 + "x"))
  end = rng.choice(("", "!", r"\boxed{72}", "#5", "```"))
  return unit * (rng.choice((10**5, 10**6)) // len(unit)) + end


def _latex(rng):
  return r"\boxed{" + "".join(rng.choices(_LATEX, k=rng.randint(1, 40))) + "}" * rng.randint(0, 3)


def _regex(rng):
  unit = rng.choice(("a", "aa", "1,", "1,111", "0 ", " -", "(a", "7;", "7#", "x^", "answer", "<think>"))
  return unit * _long(rng) + rng.choice(("!", "b", "", "#", "\n#5"))


def _unicode(rng): return "".join(chr(rng.randrange(0x110000)) for _ in range(rng.randint(1, 50)))


def _bytes(rng):
  errors = rng.choice(("surrogateescape", "replace", "backslashreplace"))
  return rng.randbytes(rng.randint(1, 200)).decode("utf-8", errors)


def _odd(rng): return "".join(rng.choices(_ODD + string.printable, k=rng.randint(1, 80)))


def _words(rng): return rng.choice(("", " ")).join(rng.choices(_WORDS, k=rng.randint(1, 30)))


def _code(rng):
  lines = "\n".join(rng.choices(_CODE, k=rng.randint(1, 3)))
  return "```python\n" + lines + rng.choice(("\n```", "\n```\n", "", "```"))


def _chain(rng): return "".join(rng.choices("0123456789;#", k=rng.randint(1, 20)))


def _boxed_odd(rng): return r"\boxed{" + rng.choice((_odd, _unicode, _words, _bytes))(rng) + "}"


_KINDS = (_empty, _nested, _exponents, _hang, _megabyte, _latex, _regex, _unicode, _bytes, _odd, _words, _code,
          _chain, _boxed_odd)


def judged(text):
  """What judge.function is pointed at: the text as its own reply."""
  return text
