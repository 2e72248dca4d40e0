"""Reward Shaping to Mitigate Reward Hacking in RLHF (arXiv:2502.18770): a score
becomes the chance of being preferred to reference completions.

  rlx train papers/par workdir=DIR
  rlx train papers/par:smoke workdir=DIR

C (code) PorUna-byte/PAR, reward_shaper.py and configs/config.py; O (ours) k. Its
references are 10 completions of the start, here the prompt's others; its reward
model is here the share of right steps, and verdicts are only measured.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = ("a bounded, centred reward that grows fast and then slowly resists hacking the longest",)


def get_config(arg=""):
  # C: gamma and lambda; O: whitening and the value model's rate. RLHF has no verdict.
  c = quickstart.ppo(arg)
  c.verifier.scores = ("chain.step_share",)       # stands in for a reward model
  # C k = 1 on logits that spread over several units; a share spreads over one.
  c.rewards = dict(outcome=dict(name="shaping.par", coef=1.0, k=4.0))
  c.kl.coef, c.kl.place, c.kl.kind = 0.005, "reward", "k1"  # C
  return c
