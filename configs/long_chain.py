"""PRIME on longer chains with noisier steps.

The ablations of experiments/papers/prime.py use this task.

  rlx sft sft_long_chain workdir=runs/starts/same
  rlx train long_chain workdir=DIR

8 to 10 operations instead of the quickstart's 5 to 8, from a start that saw as many, with
half of its steps wrong: few completions are right, and which of their steps were good is
what a dense reward could tell.
"""
from rlx.configs import base
from rlx.configs import quickstart


def get_config(arg=""):
  c = quickstart.get_config()
  c.steps = 60
  c.model.path = "runs/starts/same/model"
  c.prompts.options.update(n_min=8, n_max=10)
  c.prompts.max_tokens = 22
  c.rollouts.per_prompt = 4                    # PRIME's own
  c.rollouts.max_tokens = c.rollouts.chunk = c.rollouts.bucket = 22
  # At the policy's 5e-4 its loss is mostly above ln 2 (RESULTS.md).
  c.prm.optimizer.lr = 2e-5
  c.value.optimizer.lr = c.learner.optimizer.lr
  c.eval.every, c.eval.prompts, c.eval.batch, c.eval.final_samples = 0, 256, 256, 2
  c.checkpoint.every = 60
  return base.sized(c, arg)
