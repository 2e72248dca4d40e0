"""Whether this machine can start the sandbox of code_tests, for the tests that need it.

Where RLX_NEEDS_SANDBOX is set, as by .ci/run, they fail without one and are not skipped.
"""
import functools
import os

import pytest

from rlx.verifiers import _sandbox
from rlx.verifiers import errors


@functools.cache
def problem():
  """Why it does not start, or None."""
  try:
    printed = _sandbox.run(dict(source="print(1)"), b"", cpu_s=2, wall_s=5, memory_mb=512, unsafe=False)
  except (ImportError, errors.Unknown) as e:
    return str(e)
  return None if printed == b"1\n" else f"it printed {printed!r}"


def is_left_out():
  """Are the tests that need it skipped?"""
  return problem() is not None and "RLX_NEEDS_SANDBOX" not in os.environ


needed = pytest.mark.skipif(is_left_out(), reason=f"no sandbox: {problem()}")
