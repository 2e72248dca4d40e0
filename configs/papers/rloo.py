"""Back to Basics: Revisiting REINFORCE Style Optimization for Learning from
Human Feedback in LLMs (arXiv:2402.14740). RLOO treats the whole completion as one action of
REINFORCE. The baseline is the mean reward of the other completions of the prompt.

  rlx train papers/rloo workdir=DIR
  rlx train papers/rloo:smoke workdir=DIR

Letters beside the values: P stated in the paper (appendix C), O our choice.

Differences from the paper: The paper's reward is a reward model's score; this config's is a
verdict. The paper samples 2 or 4 completions for each prompt; this config samples 8.

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
  c.learner.aggregation = "seq-mean-token-sum"  # P: log-prob of the whole completion
  c.kl.coef, c.kl.kind, c.kl.place = 0.03, "k1", "reward"  # P
  return c
