"""From a config to a run: `build(config)` checks the config and returns a `Run`."""
from rlx.build.run import Run, build

__all__ = ["Run", "build"]
