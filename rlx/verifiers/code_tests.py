"""Runs Python solutions against tests, in a sandbox (_sandbox.py).

The solution is the completion's last closed ``` block, or the whole completion if it has none.
`prompt.meta["tests"]` is a list of tests of two kinds:

  {"input": "1 2\\n", "output": "3\\n"}   the stdin of a program and what it has to print.
                                       Trailing spaces and trailing empty lines are ignored;
                                       numbers are compared as text.
  "assert add(1, 2) == 3"              statements about functions of the solution: asserts, and
                                       what they need (_asserts.py).

A test of the second kind may be a function `def check(candidate): ...`, which is applied to the
function that `prompt.meta["entry_point"]` names. `prompt.meta["test_setup_code"]` is run first.

Only calls of the solution's functions run in the sandbox. Each call has a process of its own,
which receives the solution and the call with literal arguments, but neither expected values nor
other tests. The result is returned as plain data of at most 1 MB, and the rest of the test is
computed outside, within limits. A solution can overwrite everything in its process, but it earns
a reward only if it returns the right values.

Before a run starts, `check` refuses prompts whose tests cannot be run in this way. Unless
`verifier.allow_constant`, prompts are also refused if a constant passes their tests
(`constant`): functions that always return an obvious value (True, 0, "") or, for functions that
are called in several ways, a value that the tests contain; or a program that always prints the
same. A single call or output with any other value is accepted, because finding that value is
the task.

A solution fails a test if it crashes, exits early, prints too much or exceeds a limit. If the
sandbox does not start, the verdict is unknown.

`verifier.test_s` and `verifier.test_mb` limit each call or program. All tests of a completion
share 0.8 `verifier.timeout_s`; tests for which no time is left fail. Without bubblewrap, the run
stops with an error, unless `verifier.unsafe` allows programs to run as this user, with resource
limits but without a sandbox.
"""
import functools
import time

from rlx.verifiers import _asserts
from rlx.verifiers import _sandbox
from rlx.verifiers import _values
from rlx.verifiers import errors

_OPTIONS = dict(unsafe=False, test_s=4, test_mb=1024, total_s=30.0)
_OBVIOUS = ("", "0", "1", "-1", "yes", "no", "true", "false", "none", "possible", "impossible")


def passed(prompt, text):
  """Returns 1.0 if all tests pass, else 0.0; stops at the first test that fails."""
  return float(all(_outcomes(prompt, text)))


def fraction(prompt, text):
  """Returns the share of tests that pass."""
  outcomes = list(_outcomes(prompt, text))
  return sum(outcomes) / len(outcomes)


def solution(text):
  """Returns the code of a completion; "" if a block was opened but none was closed."""
  lines, fences = text.split("\n"), []
  for i, line in enumerate(lines):
    if line.lstrip().startswith("```"): fences.append(i)
  if not fences: return text
  last = len(fences) // 2 * 2
  return "\n".join(lines[fences[last - 2] + 1:fences[last - 1]]) if last else ""


def check(prompt):
  """Checks that the tests of a prompt can be run.

  Raises:
    ValueError: they cannot; says why.
  """
  _tests(prompt)


def constant(prompt):
  """Describes a solution that passes all tests with constants, or returns None without one."""
  tests, words = _tests(prompt), []
  programs = [t for t in tests if isinstance(t, dict)]
  bodies = [t[0] for t in tests if not isinstance(t, dict)]
  if bodies:
    values = _asserts.constants(bodies)
    if values is None: return None
    words += [f"{name} that returns {_values.source(value)}"[:100]
              for name, value in values.items()]
  if programs:
    outputs = {tuple(_lines(t["output"])) for t in programs}
    printed = "\n".join(outputs.pop())
    is_one = len({t["input"] for t in programs}) == 1
    if outputs or is_one and printed.lower() not in _OBVIOUS: return None
    words.append(f"a program that prints {printed!r}"[:100])
  return " and ".join(words)


for _fn in (passed, fraction): _fn.check, _fn.constant = check, constant


def _tests(prompt):
  """Returns the tests of a prompt: dicts of programs, and (body, calls, own) of _asserts.py."""
  tests = prompt.meta.get("tests")
  if isinstance(tests, str): tests = [tests]
  if not tests or not isinstance(tests, (list, tuple)):
    raise ValueError(f"a prompt without tests: meta['tests'] is {tests!r}")
  return [_program(i, test) if isinstance(test, dict) else _statements(i, test, prompt.meta)
          for i, test in enumerate(tests)]


def _program(i, test):
  for key in ("input", "output"):
    if not isinstance(test.get(key), str):
      raise ValueError(f"tests[{i}][{key!r}] is {test.get(key)!r}; a text is allowed")
  return test


def _statements(i, test, meta):
  if not isinstance(test, str):
    raise ValueError(f"tests[{i}] is {test!r}; a text or a dict of input and output is allowed")
  try:
    body = _asserts.parse(test, setup=meta.get("test_setup_code") or "",
                          entry_point=meta.get("entry_point"))
    return body, *_asserts.calls(body)
  except _asserts.Refused as e:
    raise ValueError(f"tests[{i}] is {test[:100]!r}: {e}") from None


def _outcomes(prompt, text):
  """Yields whether each test passes; a test runs when its result is requested."""
  try:
    tests = _tests(prompt)
  except ValueError as e:
    raise errors.Unknown(str(e)) from None
  options = _OPTIONS | prompt.meta.get("code", {})
  # Without bubblewrap this raises, even for an empty text.
  if not options["unsafe"]: _sandbox.bubblewrap()
  run = functools.partial(_run, options, solution(text), time.monotonic() + options["total_s"])
  for test in tests:
    yield _prints(run, test) if isinstance(test, dict) else _holds(run, *test)


def _run(options, source, end, call=None, stdin=b""):
  """Returns what the sandbox printed; None if the solution failed or no time is left."""
  left_s = end - time.monotonic()
  if not source.strip() or left_s <= 0: return None
  return _sandbox.run(
      dict(source=source, call=call), stdin, cpu_s=options["test_s"],
      wall_s=min(left_s, 2 * options["test_s"] + 1), memory_mb=options["test_mb"],
      unsafe=options["unsafe"])


def _prints(run, test):
  printed = run(stdin=test["input"].encode())
  return printed is not None and _lines(printed.decode(errors="replace")) == _lines(test["output"])


def _holds(run, body, calls, own):
  def call(expression, name, _):
    # Only calls that were listed without any result are made, so no result is an argument.
    printed = run(call=expression) if expression in calls.get(name, ()) else None
    if printed is None: raise _asserts.Failed("it did not return")
    try:
      return _values.decode(printed)
    except ValueError as e:
      raise _asserts.Failed(str(e)) from None
  try:
    _asserts.run(body, call, own=own)
  except (_asserts.Failed, _asserts.Refused):
    return False  # `_tests` accepted the test, so what cannot be computed is a result.
  return True


def _lines(text):
  return [line.rstrip() for line in text.rstrip().split("\n")]
