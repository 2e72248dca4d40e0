"""Python solutions against tests, in a sandbox (_sandbox.py).

The solution is the completion's last closed ``` block, or all of it if it has none. The
tests are a list in `prompt.meta["tests"]`, of two kinds:

  {"input": "1 2\\n", "output": "3\\n"}   a program: what it prints for that stdin. Spaces
                                       at the end of a line and empty lines at the end
                                       do not count; numbers are compared as text.
  "assert add(1, 2) == 3"              a function, after the solution has been run.

Every test has a process of its own, which never holds what is expected. Of an assert
only the call runs inside; its value comes out as plain data (numbers, texts, lists,
tuples, sets, dicts, None) and is compared here. A solution can overwrite whatever runs beside it,
but all that could earn it is to state a value, and it knows none. For that reason an assert has
to be one of

  EXPRESSION == LITERAL    LITERAL == EXPRESSION    abs(EXPRESSION - LITERAL) < LITERAL
  CALL    not CALL    CALL == True (False)    CALL is None (True, False)

where CALL has literal arguments and there is no other comparison. Of any other (`!=`, two
calls compared, `and`, `isclose(f(1), 0.5)`) either the answer would be inside or any
answer would do: it raises, and so does a prompt without tests. That is NaN, as is a
sandbox that does not start. A solution that crashes, exits early, prints too much or
exceeds a limit has failed the test.

Limits are those of the config, `verifier.test_s` and `.test_mb` for each test; all tests
of a completion have 0.8 `verifier.timeout_s` together, and those that have no time left
failed. Without bubblewrap there is an error at the start unless `verifier.unsafe`: then
programs run as this user, with limits alone.
"""
import ast
import json
import time

from rlx.verifiers import _sandbox

_OPTIONS = dict(unsafe=False, test_s=4, test_mb=1024, total_s=30.0)
_KINDS = dict(list=list, tuple=tuple, set=set, frozenset=frozenset, dict=dict,
              bytes=bytes.fromhex, float=float.fromhex, int=lambda x: int(x, 16))


def passed(prompt, text):
  """1.0 if every test passes, else 0.0; no test is run after the first that fails."""
  return float(all(_outcomes(prompt, text)))


def fraction(prompt, text):
  """Tests that pass as a share of all."""
  outcomes = list(_outcomes(prompt, text))
  return sum(outcomes) / len(outcomes)


def solution(text):
  """The code of a completion; "" if a block was opened and none closed."""
  lines, fences = text.split("\n"), []
  for i, line in enumerate(lines):
    if line.lstrip().startswith("```"): fences.append(i)
  if not fences: return text
  last = len(fences) // 2 * 2
  return "\n".join(lines[fences[last - 2] + 1:fences[last - 1]]) if last else ""


def _outcomes(prompt, text):
  """Does it pass? Of one test after the other, as they are asked for."""
  tests = [_test(t) for t in prompt.meta["tests"]]
  if not tests: raise ValueError("a prompt without tests")
  options = _OPTIONS | prompt.meta.get("code", {})
  if not options["unsafe"]: _sandbox.bubblewrap()  # Whatever the text: missing, it ends the run.
  source, end = solution(text), time.monotonic() + options["total_s"]
  for call, stdin, is_right in tests:
    left_s = end - time.monotonic()
    printed = None
    if source.strip() and left_s > 0:
      printed = _sandbox.run(
          dict(source=source, call=call), stdin, cpu_s=options["test_s"],
          wall_s=min(left_s, 2 * options["test_s"] + 1), memory_mb=options["test_mb"],
          unsafe=options["unsafe"])
    yield printed is not None and is_right(printed)


def _test(test):
  """(call, stdin, printed bytes -> is it right) of a test."""
  if isinstance(test, dict):
    expected = _lines(test["output"])
    return None, test["input"].encode(), lambda printed: (
        _lines(printed.decode(errors="replace")) == expected)
  call, is_right = _split(test)
  return call, b"", lambda printed: _agrees(printed, is_right)


def _split(test):
  """("add(1, 2)", value -> is it right) of "assert add(1, 2) == 3"."""
  try:
    (statement,) = ast.parse(test.strip()).body
    node, is_right = _form(statement.test)
  except (SyntaxError, ValueError, TypeError, LookupError, AttributeError):
    node = ast.Compare()
  if any(isinstance(n, ast.Compare) for n in ast.walk(node)):
    raise ValueError(f"not an assert that code_tests can check: {test[:200]!r}")
  return ast.unparse(node), is_right


def _form(test):
  """(expression, value -> is it right); an error or None if it is of no known form."""
  match test:
    case ast.Call() if _is_plain(test):
      return test, bool
    case ast.UnaryOp(ast.Not(), ast.Call() as call) if _is_plain(call):
      return call, lambda value: not value
    case ast.Compare(ast.Call(ast.Name("abs"), [ast.BinOp(left, ast.Sub(), near)]),
                     [ast.Lt()], [within]):
      near, within = ast.literal_eval(near), ast.literal_eval(within)
      return left, lambda value: abs(value - near) < within
    case ast.Compare(left, [ast.Is()], [ast.Constant(None | True | False as expected)]):
      if _is_plain(left): return left, lambda value: value is expected
    case ast.Compare(left, [ast.Eq()], [right]):
      if _is_literal(left): left, right = right, left
      expected = ast.literal_eval(right)
      if not _is_literal(left) and (not isinstance(expected, bool) or _is_plain(left)):
        return left, lambda value: value == expected
  return None


def _is_plain(node):
  """A call with literals: `close(f(1), 0.5)` would hand the solution what is expected."""
  return isinstance(node, ast.Call) and all(
      _is_literal(a) for a in node.args + [k.value for k in node.keywords])


def _is_literal(node):
  try:
    ast.literal_eval(node)
  except (ValueError, TypeError):
    return False
  return True


def _agrees(printed, is_right):
  try:
    return bool(is_right(_decode(json.loads(printed))))
  except (ValueError, TypeError, LookupError, RecursionError, OverflowError):
    return False  # It is no value, or none that can be compared.


def _decode(x):
  """The value of plain types that _solution.py encoded; anything may stand in `x`."""
  if x is None or isinstance(x, (bool, str)): return x
  kind, content = x
  if kind == "dict": return {_decode(k): _decode(v) for k, v in content}
  if isinstance(content, list): content = [_decode(v) for v in content]
  return _KINDS[kind](content)


def _lines(text):
  return [line.rstrip() for line in text.rstrip().split("\n")]
