"""Learning to Reason for Long-Form Story Generation (arXiv:2503.22828).

The reward grows in steps with how much the sampled reasoning lowers a frozen model's perplexity
of the reference text.

  rlx train papers/vr_cli workdir=DIR
  rlx train papers/vr_cli:smoke workdir=DIR

Letters beside the values: C taken from the released code (Alex-Gurung/ReasoningNCP,
ray_utils.py: thresholds and rewards). All other values, including GRPO as the estimator, are
our choice. Differences from the paper: its reference is the next chapter of a book; in this
config it is a single digit.

Confidence in the formula: high.
"""
from rlx.configs import base, quickstart

CLAIMS = (
    "plans learned without labels are preferred by human readers",
    "thresholds do better than the raw improvement",
)


def get_config(arg=""):
  c = quickstart.grpo(arg)  # No filter by accuracy, because the method needs no verdict.
  c.likelihood.separator, c.likelihood.max_tokens = base.part("mark of the answer")
  c.likelihood.model = "reference"                # C, the frozen model
  c.rewards.outcome = dict(
      name="likelihood.reference", coef=1.0, agg="ppl", baseline="rel_ppl",
      post="thresholds", thresholds=((0.05, 0.5), (1.0, 0.9), (2.0, 1.0)))  # C, in percent
  return c
