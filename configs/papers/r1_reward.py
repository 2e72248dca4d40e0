"""R1-Reward: Training Multimodal Reward Model Through Stable Reinforcement
Learning (arXiv:2505.02835): StableReinforce, PPO with guards on the ratio
and on outliers among advantages.

  rlx train papers/r1_reward workdir=DIR
  rlx train papers/r1_reward:smoke workdir=DIR

C the released code (yfzhang114/r1_reward), O ours. No images and no reward for
consistency; 8 completions, there one.

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
  # C: 1e-3; O: its place
  c.kl.coef, c.kl.kind, c.kl.place = 1e-3, "k1", "reward"
  c.learner.minibatches = 4  # O: on-policy the rule does nothing
  return c
