"""rlx: reinforcement learning of language models with verifiable and process rewards.

The flow, one folder a stage, in the order of the loop in `rlx/loops/rl.py`:

  prompts -> rollouts -> verifiers -> rewards -> advantages -> losses -> learner

`core` and `models` are what the stages compute with; `io` and `evals` serve all of them.
The functions for users are here, and in the command `rlx`; see rlx/api.py.
"""
from rlx.api import evaluate, sample, score, train

__all__ = ["evaluate", "sample", "score", "train"]
