"""Runs Python solutions against tests, in a sandbox (sandbox/sandbox.py).

`_solution.find` says which block of a completion, behind its thoughts, is the solution, and
`_solution.complete` reads one that continues the question, as in HumanEval.
`prompt.meta["tests"]` has tests of three kinds, and may be the JSON text of what it has:

  {"input": "1 2\\n", "output": "3\\n"}   the stdin of a program and what it has to print.
                                       Trailing spaces and trailing empty lines are ignored;
                                       numbers are compared as text. A list of lines is a text.
  {"input": "1\\n2", "output": "3",      arguments of a function, JSON on each line, and the JSON of
   "testtype": "functional",           its result (LiveCodeBench). The function is
   "fn_name": "add"}                   `prompt.meta["entry_point"]` or what "fn_name" or
                                       "metadata" names; or it is a method of class `Solution`.
  "assert add(1, 2) == 3"              Python, with asserts about functions of the solution.

Instead of a list of the first two kinds there may be a dict of lists (APPS, TACO, CodeContests,
Eurus): {"inputs": [...], "outputs": [...], "fn_name": "add"}, or "input" and "output". With
"fn_name", each input is a list of arguments, and lists of one value as outputs may stand for the
value. Results are compared as JSON, in which tuples are lists and keys are texts; what solutions
for these sets usually do not import (`inside.IMPORTED`) is there. `verifier.test_tolerance`, or
`prompt.meta["tolerance"]`, is how far floats may be from the expected ones, relative or absolute:
of printed words those whose expected text has a point or an exponent. By default they must agree.

A name that a test of the last kind uses but does not define, such as `add`, is a function of
the solution; `from solution import add` is allowed too. If a test uses names of builtins alone,
these are functions of the solution, as in `assert sum(10, 15) == 6`. A test may be a function
`def check(candidate): ...`, which is applied to the function that `prompt.meta["entry_point"]`
names, or functions and classes of pytest or unittest, with parametrize, fixtures, approx and
expected exceptions (sandbox/frameworks.py). `prompt.meta["test_imports"]` and
`prompt.meta["test_setup_code"]` are run first.

A test and the solution run in different processes (sandbox/inside.py). A call has a process of its
own, which receives the solution and the arguments, but neither expected values nor other tests,
and returns plain data. A solution can overwrite everything in its process, but it earns a reward
only if it returns the right values.

Before a run starts, `inspect` runs the tests with functions that return constants. It refuses
tests that call no function of the solution, that pass what one call returns to another, that
compare two objects of the solution or can pass without an assert; and tests that no solution
passes: they expect different results of equal calls or inputs, look at the output, files or names
of the solution, or fail in the same way whatever it returns. Unless `verifier.allow_constant`,
prompts are also refused if a constant passes their tests: functions that always return an obvious
value (True, 0, "", NaN) or raise an exception that the tests name or, for functions that are called
in several ways, return a value in or near the tests; or a program that always prints the same. A
single call or output with any other value is accepted, because finding that value is the task.

A solution fails a test if it crashes, exits early, prints too much or exceeds a limit. If the
sandbox does not start, the verdict is unknown.

`verifier.test_s` and `verifier.test_mb` limit each test, and each call or program. All tests of a
completion share 0.8 `verifier.timeout_s`; tests for which no time is left fail. Without
bubblewrap, the run stops with an error, unless `verifier.unsafe` allows programs to run as this
user, with resource limits but without a sandbox.
"""
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rlx.verifiers import _solution, _test_forms, errors, thoughts
from rlx.verifiers.sandbox import inside, sandbox

if TYPE_CHECKING: from rlx.core import records

OPTIONS = dict(unsafe=False, test_s=4, test_mb=1024, total_s=30.0)  # And the tolerance.
_INSPECTION_S = 600  # Limit of the inspection of all prompts.
_OBVIOUS = ("", "0", "1", "-1", "yes", "no", "true", "false", "none", "possible", "impossible")


def passed(prompt: "records.Prompt", text: str) -> float:
  """Returns 1.0 if all tests pass, else 0.0; stops at the first test that fails."""
  return float(all(_outcomes(prompt, text)))


def fraction(prompt: "records.Prompt", text: str) -> float:
  """Returns the share of tests that pass."""
  outcomes = list(_outcomes(prompt, text))
  return sum(outcomes) / len(outcomes)


def tests(prompt: "records.Prompt", text: str) -> list[float]:
  """Returns for each test whether it passes, for `verifier.by_item`."""
  return [float(passes) for passes in _outcomes(prompt, text)]


def inspect(prompts: Sequence["records.Prompt"], unsafe: bool = False) -> list[tuple]:
  """Inspects the tests of prompts, before any solution exists.

  Args:
    prompts: list of Prompt.
    unsafe: True runs the tests without a sandbox.
  Returns:
    for each prompt, (why its tests cannot be run, or None; a solution that passes them with
    constants, or None).
  Raises:
    ValueError: the sandbox does not start.
  """
  static = list(map(_read, prompts))
  lines = iter(_inspect_tests([[t for t in tests if not isinstance(t, dict)]
                               for problem, tests, _ in static if not problem], unsafe))
  return [(problem, None) if problem else _describe_problem(tests, *next(lines))
          for problem, tests, _ in static]


def _inspect_tests(jobs, unsafe):
  """Returns what `inspect` of sandbox/inside.py prints for each list of tests."""
  results = []
  while len(results) < len(jobs):
    todo = "".join(json.dumps(job) + "\n" for job in jobs[len(results):])
    try:
      printed, _ = sandbox.output(sandbox.INSIDE + "inspect()", todo.encode(), unsafe=unsafe,
                                  cpu_s=_INSPECTION_S, total_s=_INSPECTION_S, memory_mb=1024)
    except (errors.Unknown, ImportError) as e:
      raise ValueError(f"code_tests: {e}") from None
    results += map(json.loads, printed.decode().splitlines())
    if len(results) < len(jobs):
      results.append(({"0": "it takes too long or too much memory"}, None))
  return results


def _describe_problem(tests, problems, constants):
  statements = [i for i, t in enumerate(tests) if not isinstance(t, dict)]
  for i, problem in problems.items():
    place = statements[int(i)]
    return f"tests[{place}] is {tests[place][0][:100]!r}: {problem}", None
  if constants is None: return None, None
  words = [f"{name} that {does}"[:100] for name, does in constants.items()]
  calls: dict = {}
  for test in [t for t in tests if isinstance(t, dict) and "function" in t]:
    calls.setdefault(test["function"], []).append(test)
  for name, of_name in calls.items():
    if (value := _find_constant(of_name)) is None: return None, None
    words.append(f"{name} that returns {value}"[:100])
  if programs := [t for t in tests if isinstance(t, dict) and "input" in t]:
    first, tolerance = programs[0]["output"], programs[0]["tolerance"]
    printed = "\n".join(inside.lines(first))
    is_one = len({t["input"] for t in programs}) == 1
    if not all(inside.is_same_text(first, t["output"], tolerance) for t in programs) or (
        is_one and printed.lower() not in _OBVIOUS): return None, None
    words.append(f"a program that prints {printed!r}"[:100])
  return None, " and ".join(words)


def _find_constant(calls):
  """Returns the text of a value that is right for all calls of a function, or None."""
  common = [v for v in calls[0]["outputs"] if all(v in c["outputs"] for c in calls)]
  values = map(inside.decode, common)
  are_several = len({json.dumps(c["arguments"]) for c in calls}) > 1
  return next((repr(v) for v in values if are_several or not v or v in (1, -1)), None)


def _state(prompt):
  """Returns a completion with the reference solution; None if the prompt has none."""
  return f"```python\n{prompt.answer}\n```" if prompt.answer.strip() else None


for _fn in (passed, fraction, tests): vars(_fn).update(inspect=inspect, state=_state)
vars(tests).update(count_items=lambda prompt: len(_read(prompt)[1]))


def _read(prompt):
  """Returns (why the tests of a prompt are refused or None, its tests, names that they use)."""
  try:
    return None, *_test_forms.read_tests(prompt.meta)
  except ValueError as e:
    return str(e), [], ()


def _outcomes(prompt, text):
  """Returns whether each test passes; a test runs when its result is requested."""
  problem, tests, names = _read(prompt)
  if problem: raise errors.Unknown(problem)
  options = OPTIONS | prompt.meta.get("code", {})
  # Without bubblewrap this raises, even for an empty text.
  if not options["unsafe"]: sandbox.bubblewrap()
  text = thoughts.behind(text, prompt)
  source = _solution.find(text, names, any(isinstance(t, dict) and t.get("input", "").strip()
                                           for t in tests))
  source = _solution.complete(text, source, getattr(prompt, "text", ""), names)
  if not source.strip(): return [False] * len(tests)
  return sandbox.verdicts(source, tests, cpu_s=options["test_s"], total_s=options["total_s"],
                          memory_mb=options["test_mb"], unsafe=options["unsafe"])
