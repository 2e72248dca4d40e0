"""Interprets tests that are Python statements; calls of the solution are made elsewhere.

A test is interpreted in this process, on plain values. A function that neither the test nor
the list below defines belongs to the solution. It is called in the sandbox, as the text of a
call with literal arguments; no argument may depend on what another call returned. Everything
else is computed here, with functions that no solution can change (_asserts.toml):

  builtins    such as abs, len, sorted and print
  modules     math, cmath, string, copy, sys.maxsize, collections.Counter
  methods     of strings, lists, tuples, sets, dicts and numbers
  syntax      operators, comparisons, indexing, displays, comprehensions, f-strings, lambda,
              `assert`, assignment, `def`, and `if` and `for` over values that the test states

A name with a capital letter may be a class, so `Solution().f(3)` is one call of the solution.
After `s = Solution()`, `s.f(3)` is one call too, and repeats all earlier calls on `s`. A call
that is a statement, `f(x)`, may change the lists, sets and dicts that are passed as variables;
other calls do not change their arguments. If a test calls builtins alone, these are functions
of the solution with the same names, as in `assert sum(10, 15) == 6`.

Time and memory are bounded whatever a solution returns: see _BUDGET, _GUARDS and _values.py.
"""
import ast
import builtins
import cmath
import collections
import copy
import itertools
import math
import operator
import pathlib
import re
import string
import sys
import textwrap
import tomllib

from rlx.verifiers import _values

_BUDGET = 2_000_000  # Values that a test may visit, which takes about a second.
_STEP = 4            # The cost of an interpreted node, in visited values.
_MAX_CALLS = 200     # Calls of the solution in a test.
_MAX_TRIES = 500     # Combinations that `constants` tries.
_ERRORS = (ValueError, TypeError, LookupError, ArithmeticError, AttributeError, MemoryError)


class Refused(Exception):
  """The test cannot be interpreted, whatever the solution."""


class Failed(Exception):
  """The solution does not pass the test."""


# The value of a call that is not made.
UNKNOWN = type("Unknown", (), {"__repr__": lambda self: "UNKNOWN"})()


def parse(test, *, setup="", entry_point=None):
  """Parses a test into statements.

  Args:
    test: Python source.
    setup: Python source that is run before the test.
    entry_point: the argument of `check`, for a test that defines `check` without calling it.
  Raises:
    Refused: the source is not Python.
  """
  try:
    body = [s for text in (setup, test) for s in ast.parse(textwrap.dedent(text).strip()).body]
    used = {n.id for s in body for n in ast.walk(s) if isinstance(n, ast.Name)}
    for s in [s for s in body if isinstance(s, ast.FunctionDef) and s.name not in used]:
      if s.name == "check" and entry_point:
        body += ast.parse(f"check({entry_point})").body
      elif s.name.startswith("test") and not s.args.args and not (entry_point and "check" in used):
        body += ast.parse(f"{s.name}()").body
    return body
  except (SyntaxError, ValueError, RecursionError, MemoryError) as e:
    raise Refused(f"it is no Python: {e}") from None


def run(body, call, *, own=(), seen=None):
  """Runs a test.

  Args:
    body: the result of `parse`.
    call: (expression, name, kept) -> value of an expression that calls the solution's function
      `name`. If `kept` is a number, the value is the list of that many variables after the
      call. UNKNOWN continues the test without a value; an exception ends it.
    own: names of builtins that are functions of the solution.
    seen: a list to which the values are added that UNKNOWN is compared or combined with.
  Raises:
    Failed: an assert does not hold, or a value has another type than the test needs.
    Refused: the test needs something that cannot be computed here.
  """
  try:
    _Test(call, own, [] if seen is None else seen).run(body)
  except RecursionError:
    raise Refused("it is nested too deeply") from None


def calls(body):
  """Returns ({function of the solution: texts of its calls}, builtins that are such functions).

  Raises:
    Refused: the test cannot be run, calls no function, or fails whatever the solution.
  """
  used = {n.id for s in body for n in ast.walk(s) if isinstance(n, ast.Name)}
  for own in (), sorted(n for n in used & _BUILTINS.keys() if not isinstance(_BUILTINS[n], type)):
    made, problem = collections.defaultdict(set), None
    def call(expression, name, _):
      made[name].add(expression)  # pylint: disable=cell-var-from-loop
      return UNKNOWN
    try:
      run(body, call, own=own)
    except Failed as e:
      problem = e
    if made: break
  if problem: raise Refused(f"no solution passes it: {problem}")
  if not made: raise Refused("it calls no function of the solution")
  for name in made:
    if (parent := name.rpartition(".")[0]) in made:
      raise Refused(f"an object of {parent} is no plain value")
  return dict(made), own


def constants(bodies):
  """Searches for functions that pass all tests by always returning the same value.

  The candidates are obvious values (True, 0, "", ...) and, for functions that are called in
  more than one way, the values that the tests compare with.

  Args:
    bodies: results of `parse` that `calls` accepts.
  Returns:
    {function of the solution: value}, or None if no candidates pass.
  """
  ways, owns, seen = collections.defaultdict(set), [], []
  for body in bodies:
    returned, own = calls(body)
    owns.append(own)
    for name, expressions in returned.items(): ways[name] |= expressions
    run(body, lambda *_: UNKNOWN, own=own, seen=seen)

  def passes(values):
    def call(_, name, kept):
      if name not in values: return UNKNOWN
      value = lambda: copy.deepcopy(values[name])
      return value() if kept is None else [value() for _ in range(kept)]
    try:
      for body, own in zip(bodies, owns): run(body, call, own=own)
    except (Failed, Refused):
      return False
    return True

  near = _near(seen)
  fitting = [[v for v in (*_OBVIOUS, *(near if len(expressions) > 1 else ()))
              if passes({name: v})] for name, expressions in ways.items()]
  for values in itertools.islice(itertools.product(*fitting), _MAX_TRIES):
    if passes(returned := dict(zip(ways, values))): return returned
  return None


def _near(seen):
  """Returns values that may equal or lie next to one of `seen`, or share a member or length."""
  values = [v for x in seen for v in (x, *(x if isinstance(x, (list, tuple, set)) else ()))
           if v is None or isinstance(v, _values.PLAIN)]
  numbers = [v for v in values if isinstance(v, (int, float)) and not isinstance(v, bool)]
  values += [[v] for v in values] + [values[:]] + [n + d for n in numbers for d in (-1, 1)]
  values += [list(range(n)) for n in numbers if isinstance(n, int) and 1 < n < 100]
  return list({_values.source(v): v for v in values}.values())[:_MAX_TRIES]


_OBVIOUS = (True, False, None, 0, 1, -1, 0.0, "", [], (), {}, set())


class _Call:
  """A call of the solution, made when its value is needed; or an object of the solution."""

  def __init__(self, expression, name, kept=None):
    self.expression, self.name, self.kept = expression, name, kept
    self.value, self.is_made = None, False
    self.later = []  # Texts of the calls on the object.

  def then(self, attribute, is_kept):
    """Returns the text of an attribute or method call, after earlier calls on a variable."""
    if not self.later or not is_kept: return f"{self.expression}.{attribute}"
    steps = ", ".join(f"_object.{step}" for step in (*self.later, attribute))
    return f"[_object := {self.expression}, {steps}][-1]"


class _Solution:
  """A function or class of the solution, or an attribute `path` of its object `owner`."""

  def __init__(self, name, path, owner=None, is_kept=False):
    self.name, self.path, self.owner = name, path, owner
    self.is_kept = is_kept  # Is the object the value of a variable?

  def text(self, path):
    """Returns the expression of `path`, which is this or a call of it."""
    return path if self.owner is None else self.owner.then(path, self.is_kept)


class _Named:
  """What is not a plain value: a module, a method, a function of the test."""

  def __init__(self, **fields):
    self.__dict__.update(fields)


class _Module(_Named): pass      # members
class _Method(_Named): pass      # receiver, name
class _Function(_Named): pass    # node, scope
class _Absent(_Named): pass      # why


class _Return(Exception):
  """Carries the value that a function of the test returns."""


class _Test:
  """Interpreter of one test."""

  def __init__(self, call, own, seen):
    self._call, self._own, self._seen = call, own, seen
    self._left, self._calls_left = _BUDGET, _MAX_CALLS
    self._scope = collections.ChainMap({"__name__": "__main__"})

  # Statements.

  def run(self, body):
    for node in body: self._visit("_do_", node)

  def _visit(self, prefix, node, **given):
    self._spend(_STEP)
    method = getattr(self, prefix + type(node).__name__, None)
    if method is None: self._refuse(node)
    return method(node, **given)

  def _do_Pass(self, node): pass

  def _do_Assert(self, node):
    holds = self._apply(bool, self._value(node.test))
    if holds is not UNKNOWN and not holds:
      raise Failed(f"the assert of line {node.lineno} does not hold")

  def _do_Expr(self, node):
    if isinstance(node.value, (ast.Constant, ast.Name)): return  # A docstring, a bare `print`.
    if not isinstance(node.value, ast.Call): self._refuse(node)
    call = self._visit("_eval_", node.value, is_statement=True)
    if not isinstance(call, _Call): return
    changed = self._force(call)
    if changed is UNKNOWN: changed = [UNKNOWN] * len(call.kept)
    if not isinstance(changed, list) or len(changed) != len(call.kept):
      raise Failed("the arguments did not come back")
    for name, value in zip(call.kept, changed): self._scope[name] = value

  def _do_Assign(self, node):
    value = self._eval(node.value)
    for target in node.targets: self._bind(target, value)

  def _do_AnnAssign(self, node):
    if node.value is None: return
    self._bind(node.target, self._eval(node.value))

  def _do_AugAssign(self, node):
    if not isinstance(node.target, ast.Name): self._refuse(node)
    read = ast.Name(node.target.id, ast.Load())
    self._bind(node.target, self._apply(
        self._operator(node), self._value(read), self._value(node.value)))

  def _do_For(self, node):
    items = self._apply(list, self._value(node.iter))
    if items is UNKNOWN or node.orelse: self._refuse(node)
    for item in items:
      self._bind(node.target, item)
      self.run(node.body)

  def _do_If(self, node):
    holds = self._apply(bool, self._value(node.test))
    if holds is UNKNOWN: self._refuse(node)
    self.run(node.body if holds else node.orelse)

  def _do_FunctionDef(self, node):
    if node.decorator_list or node.args.vararg or node.args.kwarg or node.args.kwonlyargs:
      self._refuse(node)
    self._scope[node.name] = _Function(node=node, scope=self._scope)

  def _do_Return(self, node):
    raise _Return(None if node.value is None else self._value(node.value))

  def _do_Import(self, node):
    for alias in node.names:
      self._scope[alias.asname or alias.name.split(".")[0]] = (
          _Module(members=_MODULES[alias.name]) if alias.name in _MODULES
          else _Absent(why=f"import {alias.name}"))

  def _do_ImportFrom(self, node):
    if node.module == "solution": return
    members = _MODULES.get(node.module, {})
    for alias in node.names:
      if alias.name == "*":
        self._scope.update(members)
      else:
        self._scope[alias.asname or alias.name] = members.get(
            alias.name, _Absent(why=f"from {node.module} import {alias.name}"))

  def _bind(self, target, value):
    if isinstance(target, ast.Name):
      self._scope[target.id] = value
    elif isinstance(target, (ast.Tuple, ast.List)):
      n, parts = len(target.elts), self._apply(list, self._force(value))
      if any(isinstance(t, ast.Starred) for t in target.elts): self._refuse(target)
      if parts is UNKNOWN: parts = [UNKNOWN] * n
      if len(parts) != n: raise Failed(f"{len(parts)} values for {n} names")
      for part, t in zip(parts, target.elts): self._bind(t, part)
    else:
      self._refuse(target)

  # Expressions. `_eval` may return one of the classes above, `_value` returns a plain value.

  def _eval(self, node): return self._visit("_eval_", node)

  def _value(self, node): return self._force(self._eval(node))

  def _force(self, x):
    if isinstance(x, _Solution):
      if x.owner is None: raise Refused(f"{x.path!r} is not defined")
      x = _Call(x.text(x.path), x.name)
    if isinstance(x, _Named): raise Refused("a module, method or function is no plain value")
    if not isinstance(x, _Call): return x
    if x.later: raise Refused(f"an object of {x.name} is no plain value")
    if not x.is_made:
      self._calls_left -= 1
      if self._calls_left < 0: raise Refused(f"more than {_MAX_CALLS} calls of the solution")
      kept = None if x.kept is None else len(x.kept)
      x.value, x.is_made = self._call(x.expression, x.name, kept), True
    return x.value

  def _eval_Constant(self, node): return node.value

  def _eval_Name(self, node):
    name = node.id
    if name in self._scope:
      value = self._scope[name]
      if isinstance(value, _Absent): raise Refused(f"it needs `{value.why}`")
      return value
    if name in self._own: return _Solution(name, name)
    if name in _BUILTINS: return _BUILTINS[name]
    if name in ("math", "cmath"): return _Module(members=_MODULES[name])
    if hasattr(builtins, name) or name.startswith("__"): self._refuse(node)
    return _Solution(name, name)

  def _eval_NamedExpr(self, node):
    value = self._value(node.value)
    self._bind(node.target, value)
    return value

  def _eval_List(self, node): return self._whole(list, self._items(node.elts, self._value))

  def _eval_Tuple(self, node): return self._whole(tuple, self._items(node.elts, self._value))

  def _eval_Set(self, node): return self._whole(set, self._items(node.elts, self._value))

  def _eval_Dict(self, node):
    if None in node.keys: self._refuse(node)
    items = [v for pair in zip(node.keys, node.values) for v in map(self._value, pair)]
    if any(v is UNKNOWN for v in items): return self._whole(list, items)
    return self._apply(dict, list(zip(items[::2], items[1::2])))

  def _eval_UnaryOp(self, node): return self._apply(self._operator(node), self._value(node.operand))

  def _eval_BinOp(self, node):
    return self._apply(self._operator(node), self._value(node.left), self._value(node.right))

  def _eval_BoolOp(self, node):
    is_unknown = False
    for n in node.values:
      value = self._value(n)
      holds = self._apply(bool, value)
      if holds is UNKNOWN: is_unknown = True
      elif holds == isinstance(node.op, ast.Or): break
    return UNKNOWN if is_unknown else value

  def _eval_Compare(self, node):
    left, is_unknown = self._value(node.left), False
    for op, n in zip(node.ops, node.comparators):
      right = self._value(n)
      holds = self._apply(_OPERATORS[type(op)], left, right)
      if holds is UNKNOWN: is_unknown = True
      elif not holds: return False
      left = right
    return UNKNOWN if is_unknown else True

  def _eval_IfExp(self, node):
    holds = self._apply(bool, self._value(node.test))
    if holds is not UNKNOWN: return self._value(node.body if holds else node.orelse)
    self._value(node.body)
    self._value(node.orelse)
    return UNKNOWN

  def _eval_Subscript(self, node):
    return self._apply(operator.getitem, self._value(node.value), self._value(node.slice))

  def _eval_Slice(self, node):
    parts = [None if n is None else self._value(n) for n in (node.lower, node.upper, node.step)]
    return UNKNOWN if any(p is UNKNOWN for p in parts) else slice(*parts)

  def _eval_JoinedStr(self, node):
    parts = [self._value(n) for n in node.values]
    return UNKNOWN if any(p is UNKNOWN for p in parts) else self._apply(str.join, "", parts)

  def _eval_FormattedValue(self, node):
    spec = "" if node.format_spec is None else self._value(node.format_spec)
    value = self._value(node.value)
    if node.conversion != -1:
      value = self._apply({115: str, 114: repr, 97: ascii}[node.conversion], value)
    return self._apply(format, value, spec)

  def _eval_ListComp(self, node): return self._whole(list, self._drawn(node, node.elt))

  def _eval_SetComp(self, node): return self._whole(set, self._drawn(node, node.elt))

  def _eval_GeneratorExp(self, node):
    return self._whole(_values.Iterable, self._drawn(node, node.elt))

  def _eval_DictComp(self, node):
    return self._whole(dict, self._drawn(node, ast.Tuple([node.key, node.value])))

  def _eval_Lambda(self, node):
    if node.args.vararg or node.args.kwarg or node.args.kwonlyargs: self._refuse(node)
    return _Function(node=node, scope=self._scope)

  def _eval_Attribute(self, node):
    if node.attr.startswith("_"): self._refuse(node)
    owner = self._eval(node.value)
    if isinstance(owner, _Solution):
      return _Solution(f"{owner.name}.{node.attr}", f"{owner.path}.{node.attr}", owner.owner,
                       owner.is_kept)
    if isinstance(owner, _Call) and owner.name.rpartition(".")[2][:1].isupper():
      return _Solution(f"{owner.name}.{node.attr}", node.attr, owner,
                       isinstance(node.value, ast.Name))
    if isinstance(owner, _Module):
      if node.attr not in owner.members: self._refuse(node)
      return owner.members[node.attr]
    if isinstance(owner, type) and node.attr in _METHODS.get(owner, ()):
      return getattr(owner, node.attr)
    owner = self._force(owner)
    if owner is UNKNOWN and node.attr not in _ANY_METHOD: self._refuse(node)
    return _Method(receiver=owner, name=node.attr)

  def _eval_Call(self, node, is_statement=False):
    fn, args, kwargs = self._eval(node.func), self._items(node.args, self._eval), {}
    for k in node.keywords:
      kwargs.update(self._known(k.value) if k.arg is None else {k.arg: self._eval(k.value)})
    if not is_statement or not isinstance(fn, _Solution):
      return self._called(fn, args, kwargs, node)
    return self._as_statement(fn, args, kwargs, [
        n.id for n in node.args
        if isinstance(n, ast.Name) and isinstance(self._scope.get(n.id), (list, dict, set))])

  def _call_solution(self, fn, args, kwargs):
    text = f"{fn.path}({self._texts(args, kwargs)})"
    whole = fn.text(text)
    if fn.is_kept: fn.owner.later.append(text)
    return _Call(whole, fn.name)

  def _as_statement(self, fn, args, kwargs, names):
    """Returns a _Call whose value is the list of the variables `names` after it."""
    before = [self._scope[name] for name in names]
    places = {id(value): f"_kept[{i}]" for i, value in enumerate(before)}
    text = fn.text(f"{fn.path}({self._texts(args, kwargs, places)})")
    if fn.is_kept: self._call_solution(fn, args, kwargs)  # Later calls on the object repeat it.
    if fn.is_kept and not names: return None
    return _Call(f"[_kept := {self._text(before)}, {text}][0]", fn.name, names)

  def _texts(self, args, kwargs, places=None):
    texts = [(places or {}).get(id(a)) or self._text(a) for a in args]
    return ", ".join(texts + [f"{k}={self._text(v)}" for k, v in kwargs.items()])

  def _text(self, value):
    """Returns the text of an argument of a call of the solution."""
    if isinstance(value, _Call) or self._is_unknown(value):
      raise Refused("an argument of a call of the solution is what another call returns")
    if isinstance(value, _Solution) and value.owner is None: return value.path
    try:
      return _values.source(value)
    except (ValueError, TypeError):
      raise Refused("an argument of a call of the solution is no literal") from None

  def _called(self, fn, args, kwargs, node):
    """Returns the value of a call."""
    if isinstance(fn, _Solution): return self._call_solution(fn, args, kwargs)
    if isinstance(fn, _Function): return self._call_function(fn, args, kwargs)
    if isinstance(fn, _Method): return self._method(fn, args, kwargs)
    if not callable(fn) or isinstance(fn, (_Named, _Call)): self._refuse(node)
    if fn in _TAKE_FUNCTIONS:
      inputs = [a for a in args if not isinstance(a, (_Function, _Solution)) and not callable(a)]
      args = [self._function(a, inputs) for a in args]
      kwargs = {k: self._function(v, inputs) for k, v in kwargs.items()}
    return self._apply(fn, *map(self._force, args),
                       **{k: self._force(v) for k, v in kwargs.items()})

  def _function(self, x, inputs):
    """Wraps an argument that builtins may call on `inputs`; returns other arguments unchanged."""
    if isinstance(x, (_Function, _Solution)) and any(
        map(self._is_unknown, map(self._force, inputs))):
      # The builtin is not called then, so check here that the function could be called.
      n = len(x.node.args.args) if isinstance(x, _Function) else 1
      self._called(x, [UNKNOWN] * n, {}, None)
    if isinstance(x, _Solution): return lambda *a: self._force(self._call_solution(x, a, {}))
    if isinstance(x, _Function): return lambda *a: self._force(self._call_function(x, a, {}))
    if callable(x) and not isinstance(x, (_Named, _Call)): return lambda *a: self._apply(x, *a)
    return x

  def _call_function(self, fn, args, kwargs):
    """Returns the value of a call of a function that the test defines."""
    names = [a.arg for a in fn.node.args.args]
    defaults = fn.node.args.defaults
    given = dict(zip(names[len(names) - len(defaults):], map(self._eval, defaults)))
    given |= dict(zip(names, args)) | kwargs
    if len(args) > len(names) or given.keys() != set(names):
      raise Refused("a function of the test is called with other arguments than it has")
    scope = fn.scope.new_child(given)
    if isinstance(fn.node, ast.Lambda): return self._within(scope, self._value, fn.node.body)
    try:
      self._within(scope, self.run, fn.node.body)
    except _Return as returned:
      return returned.args[0]
    return None

  def _method(self, fn, args, kwargs):
    receiver = fn.receiver
    args = [self._force(a) for a in args]
    if fn.name == "sort": kwargs = {k: self._function(v, [receiver]) for k, v in kwargs.items()}
    kwargs = {k: self._force(v) for k, v in kwargs.items()}
    if fn.name in _CHANGING and isinstance(receiver, (list, set)) and (
        any(map(self._is_unknown, args))):
      return receiver.append(UNKNOWN) if isinstance(receiver, list) else receiver.add(UNKNOWN)
    if receiver is UNKNOWN: return self._apply(bool, UNKNOWN, *args)
    for kind in type(receiver).__mro__:
      if fn.name in _METHODS.get(kind, ()):
        return self._apply(getattr(kind, fn.name), receiver, *args, **kwargs)
    raise Failed(f"{type(receiver).__name__} has no {fn.name}")

  def _known(self, node):
    value = self._value(node)
    if self._is_unknown(value): self._refuse(node)
    return value

  def _items(self, nodes, evaluate):
    """Evaluates items of a display or arguments of a call, of which some may have a star."""
    items = []
    for n in nodes:
      items += (self._apply(list, self._known(n.value)) if isinstance(n, ast.Starred)
                else [evaluate(n)])
    return items

  def _whole(self, kind, items):
    """Returns a container of items, UNKNOWN if one of them is."""
    if any(v is UNKNOWN for v in items): return self._apply(bool, *items)
    return self._apply(kind, items)

  def _drawn(self, node, element):
    """Returns the elements of a comprehension; UNKNOWN counts as one element."""
    drawn = []
    def draw(generators):
      if not generators:
        drawn.append(self._value(element))
        return
      items = self._apply(list, self._value(generators[0].iter))
      if items is UNKNOWN: drawn.append(UNKNOWN)
      for item in [UNKNOWN] if items is UNKNOWN else items:
        self._bind(generators[0].target, item)
        holds = [self._apply(bool, self._value(n)) for n in generators[0].ifs]
        if any(h is UNKNOWN for h in holds): drawn.append(UNKNOWN)
        if all(holds): draw(generators[1:])
    self._within(self._scope.new_child(), draw, node.generators)
    return drawn

  def _within(self, scope, fn, *args):
    outer, self._scope = self._scope, scope
    try:
      return fn(*args)
    finally:
      self._scope = outer

  def _apply(self, fn, *args, **kwargs):
    """Returns fn of plain values, within limits; UNKNOWN if one of them is."""
    values = (*args, *kwargs.values())
    known = [v for v in values if not self._is_unknown(v)]
    if len(known) < len(values):
      self._seen += known
      return UNKNOWN
    try:
      if fn in _GUARDS: _GUARDS[fn](*args, **kwargs)
      if fn not in _EAGER: return fn(*args, **kwargs)
      return _values.Iterable(fn(*args, **kwargs))
    except _ERRORS as e:
      raise Failed(f"{type(e).__name__}: {e}"[:200]) from None

  def _is_unknown(self, value):
    """Tells whether a value depends on a call that is not made."""
    cost, has_unknown = _values.weigh(value, self._left + 1, UNKNOWN)
    self._spend(cost)
    return has_unknown

  def _operator(self, node):
    return _OPERATORS.get(type(node.op)) or self._refuse(node)

  def _spend(self, cost):
    self._left -= cost
    if self._left < 0: raise Failed("it takes too long")

  def _refuse(self, node):
    raise Refused(f"`{ast.unparse(node)[:100]}` cannot be computed outside of the sandbox")


_TABLES = tomllib.loads(pathlib.Path(__file__).with_name("_asserts.toml").read_text())
_OPERATORS = {getattr(ast, node): getattr(operator, name)
              for node, name in _TABLES["operators"].items()}
_OPERATORS |= {ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b}
_BUILTINS = {name: getattr(builtins, name) for name in _TABLES["builtins"].split()}
_BUILTINS["print"] = lambda *args, **kwargs: None
_MODULES = {name: {k: v for k, v in vars(module).items() if k[0] != "_"}
            for name, module in (("math", math), ("cmath", cmath))}
_MODULES["string"] = {k: v for k, v in vars(string).items() if isinstance(v, str) and k[0] != "_"}
_MODULES["copy"] = dict(copy=copy.copy, deepcopy=copy.deepcopy)
_MODULES["collections"] = dict(Counter=collections.Counter)
_MODULES["sys"] = dict(maxsize=sys.maxsize)
_TAKE_FUNCTIONS = (map, filter, sorted, min, max)
_EAGER = (map, filter, zip, enumerate, reversed)
_CHANGING = ("append", "extend", "add")
_METHODS = {_BUILTINS.get(name, collections.Counter): frozenset(methods.split())
            for name, methods in _TABLES["methods"].items()}
_ANY_METHOD = frozenset().union(*_METHODS.values())


def _limit(size, most):
  if size > most: raise ValueError(f"{size} is more than {most}")


def _power(a, b, modulus=None):
  if not isinstance(a, int) or not isinstance(b, int): return
  if modulus is None: return _limit(a.bit_length() * max(b, 0), _values.MAX_BITS)
  _limit(b.bit_length() * modulus.bit_length(), _values.MAX_BITS)


def _product(a, b):
  if isinstance(a, int) and isinstance(b, int):
    return _limit(a.bit_length() + b.bit_length(), _values.MAX_BITS)
  for x, n in ((a, b), (b, a)):
    if hasattr(x, "__len__") and isinstance(n, int): _limit(len(x) * n, _values.MAX_LENGTH)


def _formatted(template, _):
  if isinstance(template, int | float): return
  _limit(len(template), 1000)
  _spec(None, template if isinstance(template, str) else template.decode("latin-1"))


def _spec(_, spec=""):
  if re.search(r"\d{4}|\*", spec): raise ValueError("a wide format")


def _hashed(*containers):
  for items in containers:
    if not isinstance(items, (str, range, dict)): _values.check_hashes(items)


def _pairs(items=(), **_):
  if not isinstance(items, dict): _values.check_hashes(k for k, _ in items)


def _added(items, *_, **__):
  if not all(isinstance(v, (int, float, complex)) for v in items): _limit(len(list(items)), 1000)


def _bits(items, *more, **_):
  numbers = (*(items if not isinstance(items, int) else [items]), *more)
  _limit(sum(v.bit_length() for v in numbers if isinstance(v, int)), _values.MAX_BITS)


def _replaced(text, old, new, *_):
  _limit((text.count(old) + 1) * len(new), _values.MAX_LENGTH)


# Checks of the arguments of functions that may need much time or memory for small arguments.
_GUARDS = {
    operator.pow: _power, pow: _power, operator.mul: _product, operator.mod: _formatted,
    operator.lshift: lambda a, b: _limit(b, _values.MAX_BITS), format: _spec,
    range: lambda *a: _limit(len(range(*a)), 100_000),
    round: lambda x, digits=None: _limit(abs(digits or 0), 400),
    bytes: lambda *a: _limit(isinstance(a[0], int), False) if a else None,
    type: lambda *a: _limit(len(a), 1), sum: _added, dict: _pairs,
    **{fn: _hashed for fn in (set, frozenset, collections.Counter)},
    **{getattr(kind, name): _hashed for kind in (set, frozenset) for name in _METHODS[kind]
       if name not in ("add", "copy")},
    math.factorial: lambda n: _limit(n, 2000), math.comb: lambda n, k: _limit(n, 2000),
    math.perm: lambda n, k=None: _limit(n, 2000), math.prod: _bits, math.lcm: _bits,
    str.join: lambda text, items: _limit(len(text) * len(list(items)), _values.MAX_LENGTH),
    str.replace: _replaced, collections.Counter.elements: lambda x: _limit(
        sum(x.values()), 100_000),
    **{getattr(str, name): lambda text, width, *_: _limit(width, 10_000)
       for name in ("center", "ljust", "rjust", "zfill")}}
