"""Demystifying Long Chain-of-Thought Reasoning in LLMs (arXiv:2502.03373): short
completions pay if right, long ones if wrong, along a cosine.

  rlx train papers/cos_len workdir=DIR
  rlx train papers/cos_len:smoke workdir=DIR

C (code) eddycmu/demystify-long-cot, section_4.2 cosine script; O (ours) the lengths
and the value model's rate. Without its repetition penalty. Right completions of a
prompt all have one length here: the cosine acts across prompts and on wrong ones.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = (
    "the cosine reward keeps the length of completions stable where the plain reward lets it "
    "explode",
)


def get_config(arg=""):
  # C: OpenRLHF's PPO; O: the value model's rate (C: 9e-6, the policy's 5e-7).
  c = quickstart.ppo(arg, lam=1.0)
  # The longest right chain has 18 tokens; one that reaches max_length is exceeded.
  c.rollouts.max_tokens = c.rollouts.chunk = c.rollouts.bucket = 20
  c.rewards = dict(outcome=dict(
      name="length.cosine", coef=1.0, max_length=20, right=(2.0, 1.0), wrong=(-10.0, 0.0),
      exceeded=-10.0))                              # C
  c.kl.coef, c.kl.place, c.kl.kind = 0.01, "reward", "k1"          # C init_kl_coef
  c.learner.epochs = 2                              # C max_epochs
  return c
