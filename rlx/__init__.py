"""rlx: reinforcement learning of language models with verifiable and process rewards.

The flow, one folder a stage, in the order of the loop in `rlx/loops/rl.py`:

  prompts -> rollouts -> verifiers -> rewards -> advantages -> losses -> learner

`core` and `models` are what the stages compute with; `io` and `evals` serve all of them.
The functions for users are here, and in the command `rlx`; see rlx/api.py.
"""
import os
import re

from rlx.api import evaluate, sample, score, train
from rlx.core.typed_keys import Keys
from rlx.core.version import __version__

__all__ = ["Keys", "__version__", "evaluate", "sample", "score", "train"]

# With operations that must be deterministic, XLA leaves out its Triton products only after it has
# chosen them, and then finds no other routine for some. Without them it starts with cuBLAS.
_FLAGS = os.environ.get("XLA_FLAGS", "")
if (re.search(r"--xla_gpu_(deterministic|exclude_nondeterministic)_ops(=true|=1)?(\s|$)", _FLAGS)
    and "--xla_gpu_enable_triton_gemm" not in _FLAGS):
  os.environ["XLA_FLAGS"] = f"{_FLAGS} --xla_gpu_enable_triton_gemm=false"
