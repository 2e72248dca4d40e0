"""R1-Reward: Training Multimodal Reward Model Through Stable Reinforcement
Learning (arXiv:2505.02835). Its algorithm, StableReinforce, is PPO that bounds the
probability ratio before it is used and sets outliers among the advantages to 0.

  rlx train papers/r1_reward workdir=DIR
  rlx train papers/r1_reward:smoke workdir=DIR

Letters beside the values: C taken from the released code (yfzhang114/r1_reward), O our
choice.

Differences from the paper: The paper trains on images and has a reward for consistency;
this config has neither. The paper samples one completion for each prompt; this config
samples 8.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = ("one large log-ratio makes PPO's loss infinite, and not this one",)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  c.advantages = dict(total=dict(name="batch.reinforce_pp", gamma=1.0), whiten=False)  # C
  c.learner.loss = dict(  # C
      name="policy.stable_reinforce", clip_low=0.2, clip_high=0.2,
      ratio_max=1e3, width=3.0)
  c.learner.aggregation = "seq-mean-token-mean"  # C
  # C: the coefficient 1e-3; O: as part of the reward
  c.kl.coef, c.kl.kind, c.kl.place = 1e-3, "k1", "reward"
  c.learner.minibatches = 4  # O: the bounds on the ratio have no effect on-policy
  return c
