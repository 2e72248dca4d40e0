"""PRIME on longer chains with noisier steps.

The ablations of experiments/prime/ablations.py use this task.

  rlx sft sft_long_chain workdir=runs/starts/same
  rlx train long_chain workdir=DIR

Chains have 8 to 10 operations instead of the 5 to 8 of the quickstart. The initial model was
trained on chains of the same length, in which half of the steps were wrong. Therefore few
completions are right, and a dense reward can tell which of their steps were good.
"""
from rlx.configs import base, quickstart


def get_config(arg=""):
  c = quickstart.get_config()
  c.steps = 60
  c.model.path = "runs/starts/same/model"
  c.prompts.options.update(n_min=8, n_max=10)
  c.prompts.max_tokens = 22
  c.rollouts.per_prompt = 4                    # As in PRIME.
  c.rollouts.max_tokens = c.rollouts.chunk = c.rollouts.bucket = 22
  # At the policy's rate of 5e-4 the loss of the PRM is mostly above ln 2 (RESULTS.md).
  c.prm.optimizer.lr = 2e-5
  c.value.optimizer.lr = c.learner.optimizer.lr
  c.eval.every, c.eval.prompts, c.eval.batch, c.eval.final_samples = 0, 256, 256, 2
  c.checkpoint.every = 60
  return base.sized(c, arg)
