"""Back to Basics: Revisiting REINFORCE Style Optimization for Learning from
Human Feedback in LLMs (arXiv:2402.14740): REINFORCE of the whole completion
against the mean of the others.

  rlx train papers/rloo workdir=DIR
  rlx train papers/rloo:smoke workdir=DIR

P the paper (appendix C), O ours. A verdict in place of a reward model; 8
completions, there 2 or 4.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = (
    "does better than PPO and DPO on summaries and dialogue, without a critic",
    "the clip of PPO is hardly ever active",
)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  c.advantages = dict(total=dict(name="group.rloo"), whiten=False)
  c.learner.loss = dict(name="policy.reinforce")
  c.learner.aggregation = "seq-mean-token-sum"  # P: log-prob of the completion
  c.kl.coef, c.kl.kind, c.kl.place = 0.03, "k1", "reward"  # P
  return c
