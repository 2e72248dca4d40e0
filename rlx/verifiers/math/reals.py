"""Sets of real numbers: unions of intervals and points."""
import functools
import itertools

from rlx.verifiers.math import expressions as ex, kinds
from rlx.verifiers.math.latex import Unreadable

_INFINITY, _MINUS_INFINITY = ("inf",), ("neg", ("inf",))
EVERYWHERE = kinds.Reals([(_MINUS_INFINITY, _INFINITY, False, False)])
_TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<=", "!=": "!="}


def as_reals(answer):
  """Converts an interval or a set of numbers to kinds.Reals.

  Raises:
    Unreadable: the answer is neither.
  """
  if isinstance(answer, kinds.Reals): return answer
  if isinstance(answer, kinds.Set):
    return kinds.Reals([(n, n, True, True) for n in map(_number, answer.items)])
  if isinstance(answer, kinds.Group) and len(answer.items) == 2 and (
      answer.opening in "([" and answer.closing in ")]"):
    low, high = map(_number, answer.items)
    if ex.is_less(low, high):
      return kinds.Reals([(low, high, answer.opening == "[", answer.closing == "]")])
  raise Unreadable("no interval")


def solve(relation):
  """Returns the solutions of x < 2, 2 > x, 1 < x <= 3 or x != 2; None for other relations."""
  sides, signs = relation.sides, relation.signs
  if not set(signs) <= _TURNED.keys(): return None
  if not all(isinstance(side, kinds.Value) and side.unit is None for side in sides): return None
  trees = [side.tree for side in sides]
  names = [i for i, tree in enumerate(trees) if tree[0] == "sym"]
  if len(names) != 1: return None
  ends = [tree for i, tree in enumerate(trees) if i != names[0]]
  if any(map(ex.variables, ends)): return None
  if len(trees) == 2:
    sign, (end,) = (signs[0] if names == [0] else _TURNED[signs[0]]), ends
    if sign == "!=": return intersection(map(exclude_number, ex.expand_signs(end)))
    is_closed = sign.endswith("=")
    if sign[0] == ">": return kinds.Reals([(end, _INFINITY, is_closed, False)])
    return kinds.Reals([(_MINUS_INFINITY, end, False, is_closed and end != _INFINITY)])
  if len(trees) != 3 or names != [1] or signs[0][0] != signs[1][0] or "!=" in signs: return None
  closed = [sign.endswith("=") for sign in signs]
  if signs[0][0] == ">": ends, closed = ends[::-1], closed[::-1]
  return kinds.Reals([(*ends, *closed)])


def exclude_number(number):
  """Returns all real numbers except one."""
  return kinds.Reals([(_MINUS_INFINITY, number, False, False), (number, _INFINITY, False, False)])


def exclude_items(answer, items):
  """Returns the real numbers of an answer except those in a list."""
  return intersection([as_reals(answer), *(exclude_number(_number(item)) for item in items)])


def union(answers):
  """Returns the union of several kinds.Reals.

  Raises:
    Unreadable: pieces overlap, or touch so that they form one interval.
  """
  pieces = [piece for answer in answers for piece in answer.pieces]
  pieces.sort(key=functools.cmp_to_key(lambda a, b: -1 if ex.is_less(a[0], b[0]) else 1))
  for a, b in itertools.pairwise(pieces):
    if ex.is_less(b[0], a[1]) or b[0] == a[1] and a[3] and b[2]: raise Unreadable("overlap")
  return kinds.Reals(pieces)


def intersection(answers):
  """Returns the intersection of several kinds.Reals."""
  return functools.reduce(_intersect, answers)


def _intersect(a, b):
  pieces = []
  for p, q in itertools.product(a.pieces, b.pieces):
    low, has_low = (q[0], q[2]) if ex.is_less(p[0], q[0]) else (p[0], p[2])
    high, has_high = (p[1], p[3]) if ex.is_less(p[1], q[1]) else (q[1], q[3])
    if ex.is_equal(p[0], q[0]): has_low = p[2] and q[2]
    if ex.is_equal(p[1], q[1]): has_high = p[3] and q[3]
    if ex.is_less(low, high): pieces.append((low, high, has_low, has_high))
  return kinds.Reals(pieces)


def _number(answer):
  if not isinstance(answer, kinds.Value) or ex.variables(answer.tree) or answer.unit is not None:
    raise Unreadable("no number")
  return answer.tree
