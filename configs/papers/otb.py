"""The Optimal Token Baseline: Variance Reduction for Long-Horizon LLM-RL
(arXiv:2602.07078): completions whose gradients are large so far count more in the
baseline of a token.

  rlx train papers/otb workdir=DIR
  rlx train papers/otb:smoke workdir=DIR

P (paper): the baseline, four completions a prompt; O (ours): the quickstart's prompts.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = (
    "four completions a prompt reach what group baselines reach with 32",
    "gradient norms stay where they explode under group baselines",
)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  c.rollouts.per_prompt = 4                                            # P
  c.advantages.outcome = dict(name="batch.optimal_token_baseline")  # P
  c.learner.loss = dict(name="policy.reinforce")                       # P: on-policy
  c.learner.aggregation = "seq-mean-token-sum"                         # P
  return c
