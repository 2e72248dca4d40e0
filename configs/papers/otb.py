"""The Optimal Token Baseline: Variance Reduction for Long-Horizon LLM-RL
(arXiv:2602.07078): every token has its own baseline, a mean of the rewards of the group in
which completions whose gradients up to this token are larger have more weight.

  rlx train papers/otb workdir=DIR
  rlx train papers/otb:smoke workdir=DIR

Letters beside the values: P stated in the paper (the baseline, four completions per prompt).
The prompts are those of the quickstart, which is our choice.

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
