"""Python solutions against tests, in a sandbox (_sandbox.py).

The solution is the completion's last closed ``` block, or all of it if it has none. The
tests are a list in `prompt.meta["tests"]`, of two kinds:

  {"input": "1 2\\n", "output": "3\\n"}   a program: what it prints for that stdin. Spaces
                                       at the end of a line and empty lines at the end
                                       do not count; numbers are compared as text.
  "assert add(1, 2) == 3"              statements about functions, after the solution has been
                                       run: asserts, with what they need (_asserts.py).

A test of the second kind may be a whole `def check(candidate): ...`, applied to the function
that `prompt.meta["entry_point"]` names, and has `prompt.meta["test_setup_code"]` before it.

Only calls of the solution's functions run inside, each in a process of its own, which holds
the solution and that call with its literal arguments: nothing of what is expected, and no
other test. A value comes out as plain data, at most 1 MB of it, and everything else in
the test is computed here, within limits: a solution can overwrite whatever runs beside it, but
all that could earn it is to state a value, and it knows none.

A prompt with a test that cannot be run so is refused before the run starts (`check`), and so is,
unless `verifier.allow_constant`, one whose tests pass without a look at what is given
(`constant`): with functions that always return True, 0, "" or another such value or, where a
function is called in more than one way, a value that the tests state; with a program that always
prints the same, where all outputs are the same. A single call or a single output of any other
value is taken: to find that value is the task.

A solution that crashes, exits early, prints too much or exceeds a limit has failed the test. A
sandbox that does not start is no verdict.

Limits are those of the config, `verifier.test_s` and `.test_mb` for each call or program; all
tests of a completion have 0.8 `verifier.timeout_s` together, and those that have no time left
failed. Without bubblewrap there is an error at the start unless `verifier.unsafe`: then
programs run as this user, with limits alone.
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


def check(prompt):
  """Can the tests of a prompt be run?

  Raises:
    ValueError: why not.
  """
  _tests(prompt)


def constant(prompt):
  """What passes all tests whatever it is given, in words; None: nothing that was tried does."""
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
  """Tests of a prompt: dicts of programs, and (body, calls, own) of _asserts.py."""
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
  """Does it pass? Of one test after the other, as they are asked for."""
  try:
    tests = _tests(prompt)
  except ValueError as e:
    raise errors.Unknown(str(e)) from None
  options = _OPTIONS | prompt.meta.get("code", {})
  if not options["unsafe"]: _sandbox.bubblewrap()  # Whatever the text: missing, it ends the run.
  run = functools.partial(_run, options, solution(text), time.monotonic() + options["total_s"])
  for test in tests:
    yield _prints(run, test) if isinstance(test, dict) else _holds(run, *test)


def _run(options, source, end, call=None, stdin=b""):
  """What the sandbox printed; None if the solution failed or no time is left."""
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
  def call(expression, name, kept):
    del kept
    # No more is called than was foreseen without any result, so none can be an argument.
    printed = run(call=expression) if expression in calls.get(name, ()) else None
    if printed is None: raise _asserts.Failed("it did not return")
    try:
      return _values.decode(printed)
    except ValueError as e:
      raise _asserts.Failed(str(e)) from None
  try:
    _asserts.run(body, call, own=own)
  except (_asserts.Failed, _asserts.Refused):
    return False  # `_tests` has taken it: what it cannot compute now is what it was given.
  return True


def _lines(text):
  return [line.rstrip() for line in text.rstrip().split("\n")]
