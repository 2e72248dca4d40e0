"""Reinforcement Learning for Reasoning in Large Language Models with One Training
Example (arXiv:2504.20571): GRPO trains on a single prompt in every step.

  rlx train papers/one_shot workdir=DIR
  rlx train papers/one_shot:smoke workdir=DIR

Letters beside the values: P stated in the paper (one prompt, the coefficients of entropy and
KL), O our choice (the prompt, which is the first one, and 64 completions of it). Differences
from the paper: the paper's batch has 128 copies of the prompt with 8 completions each. For two
prompts set prompts.limit=2 prompts.per_step=2.

Confidence in the formula: medium.
"""
from rlx.configs import quickstart

CLAIMS = (
    "one example nearly matches a data set of thousands (Qwen2.5-Math-1.5B, MATH-500: 36.0 to "
    "73.6)",
    "accuracy on other prompts keeps rising after that on the one has reached 100%",
    "the policy gradient is what helps, not weight decay or KL; an entropy bonus adds to it",
)


def get_config(arg=""):
  c = quickstart.grpo(arg)  # No filter by accuracy: it would end the run at 90%.
  c.prompts.limit = c.prompts.per_step = 1                                      # P
  c.learner.microbatches = c.prm.microbatches = c.value.microbatches = 1
  c.rollouts.per_prompt = 4 if arg == "smoke" else 64                           # O
  c.learner.entropy_coef = 1e-3                                                 # P
  c.kl.coef, c.kl.kind, c.kl.place = 1e-3, "k3", "loss"                         # P
  return c
