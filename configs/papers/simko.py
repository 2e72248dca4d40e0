"""SimKO: Simple Pass@K Policy Optimization (arXiv:2510.14807).

At tokens of high entropy (forks), a right completion shares its gradient with the K most likely
tokens. A wrong completion that chose the most likely token at a fork is penalised more.

  rlx train papers/simko workdir=DIR
  rlx train papers/simko:smoke workdir=DIR

Letters beside the values: C taken from the released code (CLR-Lab/SimKO,
run_qwen2.5-math-7b_SimKO.sh). All other values are our choice. Differences from the paper: the
released script uses 1024 prompts per step, this config those of the quickstart.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = (
    "pass@K grows with pass@1 no lower than GRPO's",
    "the most likely token gathers less probability",
)


def get_config(arg=""):
  c = quickstart.grpo(arg)  # C: the estimator.
  c.distribution.top = 3  # C
  c.learner.loss = dict(name="distribution.simko", alpha=0.01, penalty=1.1,
                        quantile=0.8, clip_low=0.2, clip_high=0.2)  # C
  c.learner.aggregation = "token-mean"  # C
  c.learner.minibatches = 4  # C
  return c
