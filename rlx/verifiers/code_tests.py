"""Runs Python solutions against tests, in a sandbox (sandbox/sandbox.py).

The solution is the completion's last closed ``` block, or the whole completion if it has none.
`prompt.meta["tests"]` is a list of tests of two kinds:

  {"input": "1 2\\n", "output": "3\\n"}   the stdin of a program and what it has to print.
                                       Trailing spaces and trailing empty lines are ignored;
                                       numbers are compared as text.
  "assert add(1, 2) == 3"              Python, with asserts about functions of the solution.

A name that a test of the second kind uses but does not define, such as `add`, is a function of
the solution; `from solution import add` is allowed too. If a test uses names of builtins alone,
these are functions of the solution, as in `assert sum(10, 15) == 6`. A test may be a function
`def check(candidate): ...`, which is applied to the function that `prompt.meta["entry_point"]`
names. `prompt.meta["test_setup_code"]` is run first.

A test and the solution run in different processes (sandbox/inside.py). A call has a process of its
own, which receives the solution and the arguments, but neither expected values nor other tests,
and returns plain data. A solution can overwrite everything in its process, but it earns a reward
only if it returns the right values.

Before a run starts, `inspect` runs the tests with functions that return constants. It refuses
tests that call no function of the solution, that pass what one call returns to another, that can
pass without an assert, or that catch exceptions, since an exception of the solution ends the
test. Unless `verifier.allow_constant`, prompts are also refused if a constant passes their tests:
functions that always return an obvious value (True, 0, "") or, for functions that are called in
several ways, a value in or near the tests; or a program that always prints the same. A single
call or output with any other value is accepted, because finding that value is the task.

A solution fails a test if it crashes, exits early, prints too much or exceeds a limit. If the
sandbox does not start, the verdict is unknown.

`verifier.test_s` and `verifier.test_mb` limit each test, and each call or program. All tests of a
completion share 0.8 `verifier.timeout_s`; tests for which no time is left fail. Without
bubblewrap, the run stops with an error, unless `verifier.unsafe` allows programs to run as this
user, with resource limits but without a sandbox.
"""
import ast
import builtins
import json
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rlx.verifiers import errors
from rlx.verifiers.sandbox import inside, sandbox

if TYPE_CHECKING: from rlx.core import records

_OPTIONS = dict(unsafe=False, test_s=4, test_mb=1024, total_s=30.0)
_INSPECTION_S = 600  # Limit of the inspection of all prompts.
_OBVIOUS = ("", "0", "1", "-1", "yes", "no", "true", "false", "none", "possible", "impossible")


def passed(prompt: "records.Prompt", text: str) -> float:
  """Returns 1.0 if all tests pass, else 0.0; stops at the first test that fails."""
  return float(all(_outcomes(prompt, text)))


def fraction(prompt: "records.Prompt", text: str) -> float:
  """Returns the share of tests that pass."""
  outcomes = list(_outcomes(prompt, text))
  return sum(outcomes) / len(outcomes)


def solution(text: str) -> str:
  """Returns the code of a completion; "" if a block was opened but none was closed."""
  lines = text.split("\n")
  fences = [i for i, line in enumerate(lines) if line.lstrip().startswith("```")]
  if not fences: return text
  last = len(fences) // 2 * 2
  return "\n".join(lines[fences[last - 2] + 1:fences[last - 1]]) if last else ""


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
                               for problem, tests in static if not problem], unsafe))
  return [(problem, None) if problem else _describe_problem(prompt, tests, *next(lines))
          for prompt, (problem, tests) in zip(prompts, static)]


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


def _describe_problem(prompt, tests, problems, constants):
  statements = [i for i, t in enumerate(tests) if not isinstance(t, dict)]
  for i, problem in problems.items():
    given = prompt.meta["tests"]
    test = given if isinstance(given, str) else given[statements[int(i)]]
    return f"tests[{statements[int(i)]}] is {test[:100]!r}: {problem}", None
  if constants is None: return None, None
  words = [f"{name} that returns {value}"[:100] for name, value in constants.items()]
  if programs := [t for t in tests if isinstance(t, dict)]:
    outputs = {tuple(inside.lines(t["output"])) for t in programs}
    printed = "\n".join(outputs.pop())
    is_one = len({t["input"] for t in programs}) == 1
    if outputs or is_one and printed.lower() not in _OBVIOUS: return None, None
    words.append(f"a program that prints {printed!r}"[:100])
  return None, " and ".join(words)


for _fn in (passed, fraction): vars(_fn)["inspect"] = inspect


def _read(prompt):
  """Returns (why the tests of a prompt are refused or None, `_tests`)."""
  try:
    return None, _tests(prompt)
  except ValueError as e:
    return str(e), []


def _tests(prompt):
  """Returns the tests of a prompt: dicts of programs, and (source, own) for sandbox/inside.py.

  Raises:
    ValueError: they cannot be run; says why.
  """
  tests = prompt.meta.get("tests")
  if isinstance(tests, str): tests = [tests]
  if not tests or not isinstance(tests, (list, tuple)):
    raise ValueError(f"a prompt without tests: meta['tests'] is {tests!r:.100}")
  return [_program(i, test) if isinstance(test, dict) else _statements(i, test, prompt.meta)
          for i, test in enumerate(tests)]


def _program(i, test):
  for key in ("input", "output"):
    if not isinstance(test.get(key), str):
      raise ValueError(f"tests[{i}][{key!r}] is {test.get(key)!r:.100}; a text is allowed")
  return test


def _statements(i, test, meta):
  """Returns the source of a test, and the names of builtins that are functions of the solution."""
  if not isinstance(test, str):
    raise ValueError(f"tests[{i}] is {test!r:.100}; a text or a dict of input and output is read")
  try:
    source = "\n".join(textwrap.dedent(text).strip() for text in (
        meta.get("test_setup_code") or "", test))
    return _complete(source, meta.get("entry_point"))
  except (SyntaxError, ValueError, RecursionError, MemoryError) as e:
    problem = e if type(e) is ValueError else f"it is no Python: {e}"
    raise ValueError(f"tests[{i}] is {test[:100]!r}: {problem}") from None


def _complete(source, entry_point):
  tree = ast.parse(source)
  nodes = list(ast.walk(tree))
  names = {n.id for n in nodes if isinstance(n, ast.Name)}
  for s in [s for s in tree.body if isinstance(s, ast.FunctionDef) and s.name not in names]:
    if s.name == "check" and entry_point:
      source += f"\ncheck({entry_point})"
      names.add(entry_point)
    elif s.name.startswith("test") and not s.args.args and not (entry_point and "check" in names):
      source += f"\n{s.name}()"
  if any(isinstance(n, ast.Try) for n in nodes):
    raise ValueError("it catches exceptions, which do not leave the solution's process")
  bound = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
  bound |= {n.arg for n in nodes if isinstance(n, ast.arg)}
  bound |= {n.asname or n.name for n in nodes if isinstance(n, ast.alias)}
  own = sorted(n for n in names - bound - {"eval", "exec", "print"}
               if not isinstance(getattr(builtins, n, int), type))
  return source, own if names <= {*bound, *dir(builtins)} else ()


def _outcomes(prompt, text):
  """Returns whether each test passes; a test runs when its result is requested."""
  problem, tests = _read(prompt)
  if problem: raise errors.Unknown(problem)
  options = _OPTIONS | prompt.meta.get("code", {})
  # Without bubblewrap this raises, even for an empty text.
  if not options["unsafe"]: sandbox.bubblewrap()
  source = solution(text)
  if not source.strip(): return [False] * len(tests)
  return sandbox.verdicts(source, tests, cpu_s=options["test_s"], total_s=options["total_s"],
                          memory_mb=options["test_mb"], unsafe=options["unsafe"])
