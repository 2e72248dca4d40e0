"""Helpers for tests of the sandbox of code_tests; `needed` skips them if it does not start.

If RLX_NEEDS_SANDBOX is set, as in .ci/run, the tests fail instead of being skipped.
"""
import concurrent.futures
import functools
import os
import types

import pytest

from rlx.verifiers import errors
from rlx.verifiers.sandbox import sandbox


LIMITS = dict(cpu_s=10, total_s=60, memory_mb=512, unsafe=False)


@functools.cache
def problem():
  """Returns why the sandbox does not start, None if it does."""
  try:
    printed = sandbox.output("print(1)", b"", **LIMITS)
  except (ImportError, errors.Unknown) as e:
    return str(e)
  return None if printed == (b"1\n", True) else f"it printed {printed!r}"


def is_left_out():
  """Tells whether tests that need the sandbox are skipped."""
  return problem() is not None and "RLX_NEEDS_SANDBOX" not in os.environ


needed = pytest.mark.skipif(is_left_out(), reason=f"no sandbox: {problem()}")


def prompt(tests, meta=None, **options):
  """Returns a prompt of code_tests with these tests, options of its limits and more `meta`."""
  code = dict(unsafe=False, test_s=1, test_mb=512, total_s=30.0) | options
  return types.SimpleNamespace(id="p", text="?", answer="", verifier="code_tests.passed",
                               meta=dict(meta or {}, tests=list(tests), code=code))


def at_once(fn, items):
  """Returns [fn(item)] of all items, four at a time, since attacks mostly wait for limits."""
  with concurrent.futures.ThreadPoolExecutor(4) as threads: return list(threads.map(fn, items))
