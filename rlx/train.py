"""The RL loop from the command line.

  python -m rlx.train --config=configs/quickstart.py --workdir=/tmp/rlx/quickstart

`rlx train` is shorter (rlx/__main__.py). Run again with the same workdir to resume, also after a
kill or SIGTERM. Any key of the config can be set: `--config.learner.optimizer.lr=1e-4`.
"""
import sys

from rlx import api

if __name__ == "__main__":
  from rlx import cli
  cli.main("train")
else:
  # Importing a module binds its name in the package: `rlx.train` stays the function.
  sys.modules[__name__] = api.train  # type: ignore[assignment]
