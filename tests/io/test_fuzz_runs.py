"""Damaged workdirs, checkpoints and flags; see tests/io/fuzz_runs.py."""
import pathlib
import re
import subprocess
import sys

import pytest


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc, sets RLIMIT_AS")
def test_every_damaged_workdir_works_or_is_one_line(request):
  """A fiftieth here, all with --soak."""
  share = 1.0 if request.config.getoption("--soak") else 0.02
  done = subprocess.run(
      [sys.executable, "-m", "tests.io.fuzz_runs", f"--share={share}"],
      cwd=pathlib.Path(__file__).parent.parent.parent, capture_output=True, text=True, check=False)
  assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
  refused, worked = (sum(map(int, re.findall(rf"'{kind}': (\d+)", done.stdout)))
                     for kind in ("refused", "worked"))
  assert refused > 300 * share and worked > 500 * share  # Neither all damaged nor none.
