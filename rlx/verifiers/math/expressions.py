r"""Parses tokens into expression trees, evaluates them and compares them.

A tree is a tuple of a name and its parts:

  num value digits      value is a Fraction; digits counts the significant digits of a decimal
                        and is None for a whole number
  sym name              a variable
  pi, e, i, inf         constants
  + * / ^               two trees; * has a third part: was the sign of the product written?
  neg ! binom abs root fn % deg pm mp floor ceil max min gcd lcm
                        one or several trees
"""
import fractions
import functools
import math
import operator
import random
import re
import threading

import mpmath

from rlx.verifiers.math import latex
from rlx.verifiers.math.latex import Unreadable

_MAX_BITS = 200_000  # Largest exact number.
_MAX_WORKING_BITS = 20_000  # Highest precision of numbers that are not rational.
_MAX_FACTORIAL = 2000
_OPERATIONS = {"neg": operator.neg, "abs": abs, "%": lambda a: a / 100, "+": operator.add,
               "*": operator.mul, "/": operator.truediv}
_ARITHMETIC = frozenset(["^", "!", "binom", "root"]) | _OPERATIONS.keys()
_ACCENTS = frozenset([r"\vec", r"\bar", r"\hat", r"\tilde"])
_OF_SEVERAL = frozenset([r"\max", r"\min", r"\gcd", r"\lcm"])
# Tokens behind which a factor may begin without a sign; a letter or number begins one too.
_STARTS = frozenset(["(", "{", "|", r"\frac", r"\sqrt", r"\binom", r"\pi", r"\infty", r"\lfloor",
                     r"\lceil", *(f"\\{name}" for name in latex.FUNCTIONS | latex.LETTERS)]
                    ) | _ACCENTS | _OF_SEVERAL
_CLOSING = {"(": ")", "{": "}", "[": "]", r"\{": r"\}", r"\lfloor": r"\rfloor",
            r"\lceil": r"\rceil"}
_NUMBER = re.compile(r"(\d*)\.?(\d*)(?:[eE]([+-]?\d+))?(?:\\overline\{(\d+)\})?")
_SIGNS = {"+": "+", "-": "neg", r"\pm": "pm", r"\mp": "mp"}
_CONSTANTS = {r"\pi": "pi", r"\infty": "inf"}
_COMPUTING = threading.RLock()


def _in_turn(compute):
  """Lets one thread compute at a time: mpmath's precision and its constants belong to all."""
  @functools.wraps(compute)
  def in_turn(*args):
    with _COMPUTING: return compute(*args)
  return in_turn


def parse(tokens):
  """Returns the tree of the expression that the tokens form.

  Raises:
    Unreadable: the tokens do not form an expression.
  """
  reader = _Reader(["{", *tokens, "}"] if r"\over" in tokens else tokens)
  tree = reader.sum()
  if reader.next(): raise Unreadable(f"{reader.next()!r} behind an expression")
  return tree


class _Reader:
  """Recursive descent parser; `i` is the index of the next token."""

  def __init__(self, tokens):
    self.tokens, self.i, self.bars = tokens, 0, 0

  def next(self, offset=0):
    i = self.i + offset
    return self.tokens[i] if i < len(self.tokens) else ""

  def take(self, *allowed):
    token = self.next()
    if not token or allowed and token not in allowed: raise Unreadable(f"{token!r}")
    self.i += 1
    return token

  def accept(self, *allowed):
    return self.take() if self.next() in allowed else ""

  def sum(self):
    tree = None
    while tree is None or self.next() in _SIGNS:
      sign = _SIGNS[self.take()] if self.next() in _SIGNS else "+"
      if self.next() in _SIGNS and tree is not None: raise Unreadable("two signs")
      term = self.product()
      if sign != "+": term = (sign, term)
      tree = term if tree is None else ("+", tree, term)
    return tree

  def product(self):
    tree = self.read_signed(self.power)
    while True:
      token = self.next()
      if self.accept(r"\cdot", r"\times", "*"):
        tree = ("*", tree, self.read_signed(self.power), True)
      elif self.accept("/", r"\div"):
        tree = ("/", tree, self.read_signed(self.power))
      elif self._starts(token) and not ((token[0].isdigit() or token[0] == ".") and not (
          self.tokens[self.i - 1] == ")" and variables(tree))):
        if token == "{" and self.next(1)[:1].isdigit():  # 1{2} looks like 12.
          raise Unreadable("two numbers")
        right = self.power()
        if token == r"\frac" and tree[0] == "num" and to_fraction(right) is not None:
          raise Unreadable("a number before a fraction")
        tree = ("*", tree, right, False)
      else:
        return tree

  def read_signed(self, read):
    """Reads signs, and with `read` what follows them."""
    if not (sign := self.accept("+", "-")): return read()
    tree = self.read_signed(read)
    return ("neg", tree) if sign == "-" else tree

  def power(self, is_exponent=False):
    tree = self.atom() if is_exponent else self.postfix()
    return ("^", tree, self.exponent()) if self.accept("^") else tree

  def exponent(self):
    return self.read_signed(lambda: self.power(is_exponent=True))

  def postfix(self):
    tree, start = self.atom(), self.i
    if tree[0] == "num" and tree[2] is None and self.accept(r"\frac"):
      part = ("/", self._argument(), self._argument())
      if _is_proper(part): tree = ("+", tree, part, "mixed")
      else: self.i = start
    while True:
      if self.next() in ("!", "%"): tree = (self.take(), tree)
      elif self.next() == "^" and self.next(1) == r"\circ":
        self.i += 2
        for part, mark in ((60, ["'"]), (3600, ["'", "'"])):  # 63 degrees 45 minutes.
          behind = self.i + 1 + len(mark)
          if self.next().isdigit() and self.tokens[self.i + 1:behind] == mark:
            tree = ("+", tree, ("/", self.atom(), make_number(part)), "mixed")
            self.i = behind
        tree = ("deg", tree)
      else: return tree

  def atom(self):
    token = self.take()
    if token[0].isdigit() or token[0] == "." and len(token) > 1: return self._number(token)
    if token in ("(", "{", "["): return self._group(token)
    if token in (r"\lfloor", r"\lceil"): return (token[2:], self._group(token))
    if token in _OF_SEVERAL:
      closing, items = _CLOSING[self.take("(", r"\{")], []
      while not items or self.take(",", closing) == ",": items.append(self.sum())
      return (token[1:], *items)
    if token in _ACCENTS: return self._read_accented(token)
    if token == "|":
      if self.bars: raise Unreadable("bars in bars")
      self.bars += 1
      tree = self.sum()
      self.bars -= 1
      self.take("|")
      return ("abs", tree)
    if token == r"\frac":
      above, below = self._argument(), self._argument()
      if _is_differential(above) and _is_differential(below): raise Unreadable("a derivative")
      return ("/", above, below)
    if token == r"\binom": return ("binom", self._argument(), self._argument())
    if token == r"\sqrt":
      n = self._group(self.take()) if self.next() == "[" else make_number(2)
      return ("root", self.atom() if self.next() == "(" else self._argument(), n)
    if token in _CONSTANTS: return (_CONSTANTS[token],)
    if token[0] == "\\" and token[1:] in latex.FUNCTIONS: return self._function(token[1:])
    if token[0] == "\\" and token[1:] in latex.LETTERS or token.isalpha() and len(token) == 1:
      if token in ("e", "i") and self.next() != "_": return (token,)
      return ("sym", token.lstrip("\\") + self._subscript())
    raise Unreadable(f"{token!r}")

  def _read_accented(self, accent):
    r"""Reads \vec{a} and \hat{a} as the variable a; \vec{i} is not the imaginary unit."""
    name = self._text()
    if not name.isalpha(): raise Unreadable("an accent")
    return ("sym", ("" if accent in (r"\vec", r"\hat") else accent) + name + self._subscript())

  def _starts(self, token):
    if token == "|" and self.bars: return False
    return bool(token) and (token in _STARTS or token[0].isdigit() or token.isalpha())

  def _number(self, token):
    if self.next() == "_": raise Unreadable("a base")
    ones, decimals, power, repeated = _NUMBER.fullmatch(token).groups("")
    if "." in token and not repeated and self.next() == "(" and self.next(1).isdigit() and (
        self.next(2) == ")"): raise Unreadable("repeated digits or a product")
    if len(token) > 400 or abs(int(power or 0)) > 9999: raise Unreadable("a large number")
    value = fractions.Fraction(token.partition("\\")[0])
    if repeated:
      value += fractions.Fraction(int(repeated), 10 ** len(decimals) * (10 ** len(repeated) - 1))
    is_decimal = not repeated and not token.isdigit()
    return ("num", value, len((ones + decimals).lstrip("0")) if is_decimal else None)

  def _group(self, opening):
    tree = self.sum()
    if opening == "{" and self.next() in (r"\over", r"\choose"):
      tree = ("/" if self.take() == r"\over" else "binom", tree, self.sum())
    self.take(_CLOSING[opening])
    return tree

  def _argument(self):
    r"""Reads the argument of a command: a group, or one digit or letter, as in \frac12."""
    token = self.next()
    if token == "{": return self._group(self.take())
    if token.isdigit() and len(token) > 1:
      self.tokens = [*self.tokens[:self.i], token[0], token[1:], *self.tokens[self.i + 1:]]
      if self.i and self.tokens[self.i - 1] == r"\sqrt":  # \sqrt12 means the root of 12.
        self.tokens[self.i:self.i + 2] = [token]
    return self.atom()

  def _function(self, name):
    if name == "exp": return ("^", ("e",), self._operand())
    base = self._argument() if name == "log" and self.accept("_") else None
    power = self.exponent() if self.accept("^") else None
    if power is not None and to_fraction(power) == -1:
      if name not in ("sin", "cos", "tan"): raise Unreadable("an inverse")
      name, power = "arc" + name, None
    tree = ("fn", name, self._operand(), base)
    return tree if power is None else ("^", tree, power)

  def _operand(self):
    """Reads the argument of a function: a group, or factors up to a sign or function."""
    if self.next() == "(": return self.postfix()
    if self.next() in ("+", "-"): return self.read_signed(self._operand)
    tree = self.power()
    while self._starts(token := self.next()) and token != "(" and token[1:] not in latex.FUNCTIONS:
      if token[0].isdigit(): raise Unreadable("two numbers")
      tree = ("*", tree, self.power(), False)
    return tree

  def _subscript(self):
    return "_" + self._text() if self.accept("_") else ""

  def _text(self):
    """Reads one token, or a group of tokens, as the text of a name."""
    if not self.accept("{"): return self.take().strip('"\\')
    name = ""
    while not self.accept("}"): name += self.take().strip('"\\ ')
    return name


def to_fraction(tree):
  """Returns the exact value of a tree as a Fraction; None if its form is not rational.

  Raises:
    Unreadable: the tree has no value, or one that is too large.
  """
  return exact_values(tree)[id(tree)]


@_in_turn
def is_equal(a, b):
  """Tells whether two trees have the same value wherever the first one has a value.

  Rational numbers are compared exactly. Other numbers are evaluated with enough digits to
  distinguish all values that their literals can form; expressions with variables are
  evaluated at several points. A decimal with ten or more digits also equals a number that
  agrees with all of these digits.

  Raises:
    Unreadable: one of the trees has no value.
  """
  signs = find_infinity(a), find_infinity(b)
  if signs != (None, None): return signs[0] == signs[1]
  x, y = to_fraction(a), to_fraction(b)
  is_same = _same_function(a, b) if None in (x, y) else x == y
  return is_same or _agrees(a, b) or _agrees(b, a)


def find_infinity(tree):
  """Returns 1 or -1 for an infinity, else None.

  Raises:
    Unreadable: the tree contains an infinity among other parts.
  """
  if tree == ("inf",): return 1
  if tree == ("neg", ("inf",)): return -1
  if any(node == ("inf",) for node in nodes(tree)): raise Unreadable("infinity in an expression")
  return None


@_in_turn
def ratio(a, b):
  """Returns the float c with a = c b for all values of the variables, None if there is none.

  Raises:
    Unreadable: one of the trees has no value.
  """
  quotient = None
  for x, y, eps in _points(a, b):
    if not y or not x: return None
    if quotient is not None and abs(x / y - quotient) > eps * abs(quotient): return None
    quotient = x / y
  if quotient is None or abs(mpmath.im(quotient)) > 1e-20: return None
  return float(mpmath.re(quotient))


@_in_turn
def is_less(a, b):
  """Tells whether a < b, for real numbers and infinities.

  Raises:
    Unreadable: one of the trees has no real value.
  """
  x, y = find_infinity(a), find_infinity(b)
  if x is not None or y is not None: return (x or 0) < (y or 0)
  return _real(a, 200) < _real(b, 200)


def variables(tree):
  """Returns the names of the variables in a tree."""
  return {node[1] for node in nodes(tree) if node[0] == "sym"}


def nodes(tree):
  """Yields the tree and all trees inside it."""
  waiting = [tree]
  while waiting:
    yield (node := waiting.pop())
    waiting += [part for part in node[1:] if isinstance(part, tuple)]


@_in_turn
def exact_values(tree):
  """Returns {id of a node: its exact value, or None} of all nodes of a tree.

  Raises:
    Unreadable: a node has no value, or one that is too large.
  """
  values = {}
  def add(node):
    parts = [add(part) for part in node[1:] if isinstance(part, tuple)]
    value = node[1] if node[0] == "num" else None
    if parts and node[0] in _ARITHMETIC and None not in parts:
      value = _calculate_exactly(node[0], *parts)
    values[id(node)] = value
    return value
  add(tree)
  return values


def expand_signs(tree):
  """Returns the two trees that a tree with +- stands for, or [tree] without +-."""
  trees = [_with_sign(tree, sign) for sign in ("pm", "mp")]
  return trees[:1] if trees[0] == trees[1] else trees


def _with_sign(tree, positive):
  """Returns the tree with a plus in place of the sign `positive` (pm or mp), else a minus."""
  kind, *parts = tree
  parts = [_with_sign(p, positive) if isinstance(p, tuple) else p for p in parts]
  if kind in ("pm", "mp"): return parts[0] if kind == positive else ("neg", parts[0])
  return (kind, *parts)


def simplify(tree):
  """Returns a rational tree as one number, any other tree as it is."""
  exact = to_fraction(tree)
  return tree if exact is None else ("num", exact, None)


def substitute(part, name, by):
  """Returns a tree, or an answer with its trees, with the tree `by` in place of a variable."""
  if part == ("sym", name): return by
  if not isinstance(part, (tuple, list)): return part
  parts = [substitute(p, name, by) for p in part]
  return type(part)(*parts) if hasattr(part, "_fields") else type(part)(parts)


@_in_turn
def round_to_whole(tree):
  """Returns the whole number that is nearest to the value of a tree.

  Raises:
    Unreadable: the tree has no real value, or variables.
  """
  if variables(tree): raise Unreadable("variables")
  with mpmath.workprec(400): return int(mpmath.nint(_real(tree, 400)))


def _same_function(a, b):
  """Compares expressions at several points, or numbers once."""
  n = 0
  for n, (x, y, eps) in enumerate(_points(a, b), 1):
    if abs(x - y) > eps * max(abs(x), abs(y)) and not (abs(x) < eps and abs(y) < eps): return False
  if n < (3 if variables(a) | variables(b) else 1): raise Unreadable("no values")
  return True


def _points(a, b):
  """Yields (value of a, value of b, relative tolerance) at points where a has a value.

  If a has real values at some points, only these count: ln x^2 and 2 ln x are equal for x > 0.
  """
  names = sorted(variables(a) | variables(b))
  bits = 300 + _literal_bits(a, b)  # Significant bits; the computation uses twice as many.
  rng = random.Random(repr((a, names)))
  reals, others = [], []
  for k in range(12 if names else 1):
    signs = [1 if k % 3 == 0 else rng.choice([1, -1]) for _ in names]
    size = (10, 70, 4)[k % 3]
    at = {name: fractions.Fraction(sign * size * rng.randint(10**8, 10**9), 5 * 10**9)
          for name, sign in zip(names, signs)}
    try:
      x = _value(a, at, 2 * bits)
    except Unreadable:
      continue
    (reals if abs(mpmath.im(x)) <= mpmath.ldexp(abs(x), -bits) else others).append((x, at))
  for x, at in reals if len(reals) >= 4 else reals + others:
    with mpmath.workprec(2 * bits): yield x, _value(b, at, 2 * bits), mpmath.ldexp(1, -bits)


def _agrees(decimal, tree):
  """Tells whether a decimal of ten or more digits is the other number, rounded or truncated."""
  sign = 1
  while decimal[0] == "neg": sign, decimal = -sign, decimal[1]
  if decimal[0] != "num" or (decimal[2] or 0) < 10 or variables(tree): return False
  # Numbers that can be written as a decimal have to be equal.
  if any(node[0] == "num" and node[2] is not None for node in nodes(tree)): return False
  if (exact := to_fraction(tree)) is not None and 10 ** 400 % exact.denominator == 0: return False
  value = _value(tree, {}, 400)
  with mpmath.workprec(400):
    unit = abs(_number(decimal[1])) * mpmath.mpf(10) ** (1 - decimal[2])
    return abs(value - sign * _number(decimal[1])) < unit


def _value(tree, at, bits):
  """Returns the complex value of a tree at a point, {variable: Fraction}."""
  with mpmath.workprec(bits):
    try:
      value = _number(_calculate(tree, at))
    except (ZeroDivisionError, ValueError, OverflowError, TypeError) as e:
      raise Unreadable(str(e)) from None
  if not mpmath.isfinite(value): raise Unreadable("no number")
  return value


def _real(tree, bits):
  value = _value(tree, {}, bits)
  if abs(mpmath.im(value)) > 1e-30: raise Unreadable("no real number")
  return mpmath.re(value)


def _calculate(tree, at):
  """Returns a Fraction if every step is exact, else a number of the working precision.

  Args:
    at: {variable: Fraction}.
  Raises:
    Unreadable: the tree has no value, or one that is too large.
  """
  kind, *parts = tree
  if kind == "num": return parts[0]
  if kind not in _ARITHMETIC: return _calculate_inexactly(kind, parts, at)
  a, *rest = [_calculate(p, at) for p in parts if isinstance(p, tuple)]
  if all(isinstance(x, fractions.Fraction) for x in (a, *rest)) and (
      (exact := _calculate_exactly(kind, a, *rest)) is not None): return exact
  a, *floats = [_number(x) for x in (a, *rest)]
  if kind in _OPERATIONS: return _OPERATIONS[kind](a, *floats)
  if kind == "!": return mpmath.gamma(a + 1)
  if kind == "binom": return mpmath.binomial(a, floats[0])
  if kind == "root":
    n = rest[0]
    is_real = isinstance(n, fractions.Fraction) and n.denominator == 1 and n % 2
    if is_real and mpmath.im(a) == 0 and mpmath.re(a) < 0:
      return -mpmath.root(-mpmath.re(a), int(n))
    return mpmath.power(a, 1 / floats[0])
  if abs(floats[0]) > 1e5: raise Unreadable("a large power")
  if isinstance(rest[0], fractions.Fraction) and rest[0].denominator == 1: return a ** int(rest[0])
  return mpmath.power(a, floats[0])


def _calculate_exactly(kind, a, *others):
  """Applies an operation to Fractions; returns None if its value is not rational."""
  b = others[0] if others else 0
  if kind == "/" and b == 0: raise Unreadable("division by zero")
  if kind in _OPERATIONS:
    value = _OPERATIONS[kind](a, *others)
    if _bits(value) > _MAX_BITS: raise Unreadable("a large number")
    return value
  if kind == "root":
    return _root(a, int(b)) if b.denominator == 1 and b >= 1 else None
  if kind in ("!", "binom"):
    if a.denominator != 1 or b.denominator != 1: return None
    if not 0 <= b <= a <= _MAX_FACTORIAL: raise Unreadable("a factorial or a binomial")
    return fractions.Fraction(
        math.comb(int(a), int(b)) if kind == "binom" else math.factorial(int(a)))
  if a == 0 and b <= 0: raise Unreadable("zero to this power")
  if b.denominator != 1:
    root = _root(a, b.denominator)
    return None if root is None else _calculate_exactly("^", root, fractions.Fraction(b.numerator))
  if a not in (0, 1, -1) and _bits(a) * abs(b.numerator) > _MAX_BITS:
    raise Unreadable("a large power")
  return a ** int(b)


def _calculate_inexactly(kind, parts, at):
  """Evaluates variables, constants and functions, which have no exact value in general."""
  if kind == "sym": return at[parts[0]]
  if kind in ("pi", "e"): return +getattr(mpmath, kind)
  if kind == "i": return mpmath.mpc(0, 1)
  if kind == "fn":
    name, argument, base = parts
    x = _number(_calculate(argument, at))
    if name in ("log", "lg"):
      return mpmath.log(x, _number(_calculate(base, at)) if base else 10)
    return getattr(mpmath, name.replace("arc", "a"))(x)
  values = [_number(_calculate(p, at)) for p in parts]
  if kind == "deg": return values[0] * mpmath.pi / 180
  if kind in ("floor", "ceil"): return getattr(mpmath, kind)(values[0])
  if kind in ("gcd", "lcm"):
    exact = [_calculate(p, at) for p in parts]
    if not all(isinstance(x, fractions.Fraction) for x in exact): raise Unreadable(kind)
    scale = math.lcm(*(x.denominator for x in exact))
    return fractions.Fraction(getattr(math, kind)(*(int(scale * x) for x in exact)), scale)
  if kind in ("max", "min"): return (max if kind == "max" else min)(map(mpmath.re, values))
  raise Unreadable(kind)


def _number(x):
  return mpmath.mpf(x.numerator) / x.denominator if isinstance(x, fractions.Fraction) else x


def make_number(n):
  """Returns the tree of a whole number."""
  return ("num", fractions.Fraction(n), None)


def _is_proper(tree):
  """Tells whether a tree is a fraction of two whole numbers that is below 1."""
  return (tree[0] == "/" and all(p[0] == "num" and p[2] is None for p in tree[1:])
          and 0 < tree[1][1] < tree[2][1])


def _is_differential(tree):
  while tree[0] in "*^": tree = tree[1]
  return tree == ("sym", "d")


def _root(a, n):
  """Returns the n-th root of a Fraction if it is rational, else None."""
  if n > 64 or a < 0 and n % 2 == 0: return None
  parts = []
  for x in (abs(a.numerator), a.denominator):
    with mpmath.workprec(x.bit_length() // n + 60): guess = int(mpmath.nint(mpmath.root(x, n)))
    if guess ** n != x: return None
    parts.append(guess)
  return fractions.Fraction(*parts) * (1 if a >= 0 else -1)


def _bits(x): return x.numerator.bit_length() + x.denominator.bit_length()


def _literal_bits(*trees):
  """Returns the bits of the exact numbers and large powers in trees, which no sum may lose."""
  bits, waiting, exact = 0, list(trees), {}
  for tree in trees: exact |= exact_values(tree)
  while waiting:
    tree = waiting.pop()
    if (value := exact[id(tree)]) is not None:
      bits += _bits(value)
      continue
    waiting += [part for part in tree[1:] if isinstance(part, tuple)]
    is_power = tree[0] == "^" or tree[0] == "fn" and tree[1] in ("sinh", "cosh", "tanh")
    if is_power and not variables(tree[2]):
      bits += 8 * int(min(abs(_value(tree[2], {}, 60)), _MAX_WORKING_BITS))
  if bits > _MAX_WORKING_BITS: raise Unreadable("large numbers")
  return bits
