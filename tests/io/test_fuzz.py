"""Damaged files of every family, through the entry points; see tests/io/fuzz.py."""
import pathlib
import re
import subprocess
import sys

import pytest


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc, sets RLIMIT_AS")
def test_every_damaged_file_works_or_is_refused_in_one_line(request):
  """A hundredth of the inputs here, all of them with --soak."""
  share = 1.0 if request.config.getoption("--soak") else 0.01
  done = subprocess.run(
      [sys.executable, "-m", "tests.io.fuzz", str(share)],
      cwd=pathlib.Path(__file__).parent.parent.parent, capture_output=True, text=True, check=False)
  assert done.returncode == 0, done.stdout[-1000:] + done.stderr[-6000:]
  n_refused, n_worked = (sum(map(int, re.findall(rf"'{kind}': (\d+)", done.stdout)))
                         for kind in ("refused", "worked"))
  assert n_refused > 2000 * share and n_worked > 800 * share  # Neither all damaged nor none.
