"""Reads tests of code in the forms of public data sets; code_tests.py describes them."""
import ast
import base64
import builtins
import contextlib
import io
import json
import math
import pickle
import sys
import textwrap
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

from rlx.verifiers.sandbox import inside

# Dicts of programs and calls, or (source, names of builtins that are functions of the solution).
Tests = list[Any]
_SHOWN = 150  # Characters of a value in a message.
_UNPACKED = 2**28  # Bytes of tests that are compressed.
# What the test's process does not share with the solution.
_UNSHARED = {"tempfile", "subprocess", "inspect", "mock", "redirect_stdout", "redirect_stderr",
             "sys.stdin", "sys.stdout", "sys.stderr", "open()", "input()"}


def read_tests(meta: Mapping[str, Any]) -> tuple[Tests, set[str]]:
  """Returns the tests of a prompt's `meta`, and the names that they use of the solution.

  A program is {"input", "output", "tolerance"}. A call is {"function", "arguments", "outputs"
  (any of which is right), "tolerance"}, values as JSON of `inside.encode`.

  Raises:
    ValueError: they cannot be run; one line that says why, with the beginning of the value.
  """
  with _any_digits():
    try:
      given = list(_list(meta.get("tests"), meta))
    except RecursionError:
      raise ValueError(f"tests that are nested too deeply: {_show(meta['tests'])}") from None
    if not given: raise ValueError(f"a prompt without tests: meta['tests'] is "
                                   f"{_show(meta.get('tests'))}")
    tests: Tests = []
    names: set[str] = set()
    for where, test in given:
      if isinstance(test, str):
        source, own, used = _statements(where, test, meta)
        test, names = (source, own), names | used
      elif "function" in test:
        names |= {test["function"], "Solution"}
      tests.append(test)
  _check_agreement([(where, test) for (where, _), test in zip(given, tests)])
  return tests, names


def _list(tests, meta) -> Iterator[tuple[str, Any]]:
  """Yields (where, test) of all tests: Python, or the dict of a program or call."""
  tests = _load(tests)
  if isinstance(tests, str): tests = [tests] if tests.strip() else []
  if isinstance(tests, Mapping):
    keys = next((keys for keys in (("inputs", "outputs"), ("input", "output"))
                 if all(isinstance(tests.get(k), (list, tuple)) for k in keys)), None)
    if keys:
      yield from _pairs(tests, *keys, meta)
      return
    tests = [tests]
  if not isinstance(tests, (list, tuple)): return
  # The text of a list is a part of them, as the public and the private tests of LiveCodeBench.
  parts = (part if isinstance(part := _load(x), list) and isinstance(x, str) else [part]
           for x in tests)
  for i, test in enumerate(test for part in parts for test in part):
    where, test = f"tests[{i}]", _load(test)
    if isinstance(test, Mapping):
      yield where, _dict(where, test, meta)
    elif isinstance(test, str):
      yield where, test
    else:
      raise ValueError(f"{where} is {_show(test)}; a text or a dict of input and output is read")


def _load(tests):
  """Returns what a text stands for if it is JSON, or Python, of a list or dict; else the text."""
  if isinstance(tests, str) and tests.startswith("eJ"): tests = _unpack(tests)
  if not isinstance(tests, str) or tests.lstrip()[:1] not in ("[", "{"): return tests
  for load in (json.loads, ast.literal_eval):
    with contextlib.suppress(ValueError, SyntaxError, MemoryError, TypeError):
      return load(tests.strip())
  return tests


class _Text(pickle.Unpickler):
  """Reads a text, and refuses whatever names code."""

  def find_class(self, module, name): raise pickle.UnpicklingError


def _unpack(text):
  """Returns the JSON in a private test of LiveCodeBench: base64 of zlib of a pickled text."""
  with contextlib.suppress(ValueError, zlib.error, pickle.UnpicklingError, EOFError):
    packed = base64.b64decode(text, validate=True)
    return _Text(io.BytesIO(zlib.decompressobj().decompress(packed, _UNPACKED))).load()
  return text


def _pairs(tests, inputs, outputs, meta):
  """Yields the tests of two lists, as APPS, TACO, CodeContests and Eurus have them."""
  given, expected = tests[inputs], tests[outputs]
  if len(given) != len(expected):
    raise ValueError(f"tests have {len(given)} {inputs} and {len(expected)} {outputs}")
  is_program = not tests.get("fn_name") and all(_join(x) is not None for x in given)
  name = None if is_program else _function_of(tests, meta)
  # The results of some functions stand in a list each.
  is_listed = all(isinstance(x, (list, tuple)) and len(x) == 1 for x in expected)
  for i, pair in enumerate(zip(given, expected)):
    places = f"tests[{inputs!r}][{i}]", f"tests[{outputs!r}][{i}]"
    yield places[0], (_call(places, name, *pair, meta, is_listed) if name else
                      _program(places, *pair, meta))


def _dict(where, test, meta):
  places = [f"{where}[{key!r}]" for key in ("input", "output")]
  if missing := [key for key in ("input", "output") if key not in test]:
    raise ValueError(f"{where} is {_show(test)}: no {missing[0]!r}")
  kind = test.get("testtype") or test.get("type")
  if kind in ("functional", "function_call") or test.get("fn_name"):
    if not (name := _function_of(test, meta)): raise ValueError(
        f"{where} is {_show(test)}: no function is named, by the column entry_point, or in the "
        "test by fn_name or metadata.func_name")
    return _call(places, name, test["input"], test["output"], meta, False)
  return _program(places, test["input"], test["output"], meta)


def _function_of(test, meta):
  """Returns the name of the function that a test calls, None if nothing names it."""
  of_test, of_row = (_load(x.get("metadata")) for x in (test, meta))
  named = [test.get("fn_name"), *(x.get("func_name") for x in (of_test, of_row)
                                  if isinstance(x, Mapping)),
           *(meta.get(key) for key in ("entry_point", "fn_name", "func_name"))]
  name = next((name for name in named if name), None)
  return name.rpartition(".")[2] if isinstance(name, str) else None


def _program(places, given, expected, meta):
  texts = [_join(x) for x in (given, expected)]
  for place, value, text in zip(places, (given, expected), texts):
    if text is None: raise ValueError(f"{place} is {_show(value)}; a text is allowed")
    try:
      size = len(text.encode())
    except UnicodeError:
      raise ValueError(f"{place} is {_show(text)}, which is no UTF-8") from None
    limit = inside.MAX_INPUT if place == places[0] else inside.MAX_BYTES
    if size > limit: raise ValueError(f"{place} has {size:,} bytes; at most {limit:,} are read")
  return dict(input=texts[0], output=texts[1], tolerance=_tolerance(meta))


def _join(value):
  """Returns a text, which a list of its lines may stand for; None for another value."""
  if isinstance(value, (list, tuple)) and all(isinstance(x, str) for x in value):
    return "\n".join(value)
  return value if isinstance(value, str) else None


def _call(places, name, given, expected, meta, is_listed):
  if isinstance(given, str):  # A line of JSON for each argument, and JSON of the result.
    given = [_json(places[0], line) for line in given.strip().split("\n")] if given.strip() else []
    expected = _json(places[1], expected)
  elif isinstance(given, (list, tuple)):
    # JSON has no other keys than texts.
    given = [_with_numbers(a) if isinstance(a, Mapping) else a for a in given]
  else:
    raise ValueError(f"{places[0]} is {_show(given)}; a list of arguments is allowed")
  outputs = [expected, *(expected if is_listed else ())]
  try:
    arguments, outputs = inside.encode(given), [inside.encode(inside.as_json(x)) for x in outputs]
  except TypeError:
    raise ValueError(f"{places[0]} or its result is no JSON: {_show([given, expected])}") from None
  if not inside.is_same(expected, expected, 0):
    raise ValueError(f"{places[1]} is {_show(expected)}; NaN equals nothing")
  return dict(function=name, arguments=arguments, outputs=outputs, tolerance=_tolerance(meta))


def _json(place, text):
  try:
    return json.loads(text)
  except (TypeError, ValueError):
    raise ValueError(f"{place} is {_show(text)}; JSON of an argument on each line, and of the "
                     "result, is allowed") from None


def _with_numbers(argument):
  try:
    return {int(k): v for k, v in argument.items()}
  except ValueError:
    return argument


def _tolerance(meta):
  options = [meta.get("tolerance"), meta.get("code", {}).get("tolerance"), 0.0]
  tolerance = next(t for t in options if t is not None)
  if isinstance(tolerance, bool) or not isinstance(tolerance, (int, float)) or not (
      0 <= tolerance < math.inf):
    raise ValueError(f"the tolerance is {_show(tolerance)}; a number from 0 is allowed")
  return tolerance


def _statements(where, test, meta):
  """Returns the source of a test, builtins' names that the solution defines, and all of these."""
  setup = [meta.get(key) or "" for key in ("test_imports", "test_setup_code")]
  setup = ["\n".join(text) if isinstance(text, (list, tuple)) else text for text in setup]
  try:
    source = "\n".join(textwrap.dedent(text).strip() for text in (*setup, test) if text)
    return _complete(source, meta.get("entry_point"))
  except (SyntaxError, ValueError, RecursionError, MemoryError, TypeError) as e:
    problem = e if type(e) is ValueError else f"it is no Python: {e}"
    raise ValueError(f"{where} is {_show(test)}: {problem}") from None


def _complete(source, entry_point):
  tree = ast.parse(source)
  nodes = list(ast.walk(tree))
  names = {n.id for n in nodes if isinstance(n, ast.Name)}
  tests = []
  for s in [s for s in tree.body if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef,
                                                   ast.ClassDef)) and s.name not in names]:
    if s.name == "check" and entry_point:
      source += f"\ncheck({entry_point})"
      names |= {n.id for n in ast.walk(ast.parse(entry_point)) if isinstance(n, ast.Name)}
    elif not (entry_point and "check" in names) and (
        isinstance(s, ast.ClassDef) or s.name.startswith("test")): tests.append(s.name)
  if tests: source += f"\n_collect({', '.join(tests)})"
  bound = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
  bound |= {n.arg for n in nodes if isinstance(n, ast.arg)}
  bound |= {n.asname or n.name for n in nodes if isinstance(n, ast.alias)}
  own = sorted(n for n in names - bound - {"eval", "exec", "print"}
               if not isinstance(getattr(builtins, n, int), type))
  imported = {a.name for n in nodes if isinstance(n, (ast.Import, ast.ImportFrom))
              for a in n.names if "solution" in (a.name, getattr(n, "module", None))}
  if imported or not names <= {*bound, *dir(builtins)}: own = []
  _check_shared(nodes, {f"{name}()" for name in own})
  bound |= {n.name for n in nodes if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
  used = {*own, *imported, *(names - bound - {*dir(builtins)})}
  return source, own, used


def _check_shared(nodes, own):
  """Refuses a test that looks at what it does not share with the solution."""
  for node in nodes:
    match node:
      case ast.Import(names=aliases): used = {w for a in aliases for w in a.name.split(".")}
      case ast.ImportFrom(module=str(module), names=aliases):
        used = {*module.split("."), *(a.name for a in aliases),
                *(f"{module}.{a.name}" for a in aliases)}
      case ast.Attribute(value=ast.Name(id="sys"), attr=name): used = {f"sys.{name}"}
      case ast.Attribute(attr="redirect_stdout" | "redirect_stderr" as name): used = {name}
      case ast.Call(func=ast.Name(id="open" | "input" as name)): used = {f"{name}()"} - own
      case _: continue
    for name in sorted(used & _UNSHARED):
      raise ValueError(f"it uses {name}, but the solution has a process of its own, with other "
                       "files, output and names")


def _check_agreement(tests):
  """Refuses tests that expect different things of the same input."""
  seen: dict = {}
  for where, test in tests:
    if not isinstance(test, dict): continue
    key = test["input"] if "input" in test else json.dumps([test["function"], test["arguments"]])
    expected = inside.lines(test["output"]) if "output" in test else test["outputs"]
    other, old = seen.setdefault(key, (where, expected))
    if old != expected:
      raise ValueError(f"{other} and {where} are the same, {_show(key)}, with different outputs")


@contextlib.contextmanager
def _any_digits():
  """Numbers of rows may have more than the 4,300 digits that Python reads by default."""
  limit = sys.get_int_max_str_digits()
  sys.set_int_max_str_digits(0)
  try:
    yield
  finally:
    sys.set_int_max_str_digits(limit)


def _show(value):
  if isinstance(value, str): return repr(value[:_SHOWN])
  text = repr(value)
  return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."
