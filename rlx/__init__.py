"""rlx: reinforcement learning of language models with verifiable and process rewards.

The flow, one folder a stage, in the order of the loop in `rlx/loops/rl.py`:

  prompts -> rollouts -> verifiers -> rewards -> advantages -> losses -> learner

`core` and `models` are what the stages compute with, `io` and `evals` what
stands beside them. Importing `rlx` imports nothing.
"""
