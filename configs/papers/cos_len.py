"""Demystifying Long Chain-of-Thought Reasoning in LLMs (arXiv:2502.03373). The reward
follows a cosine of the length: right completions get more if they are short, wrong ones
get more if they are long.

  rlx train papers/cos_len workdir=DIR
  rlx train papers/cos_len:smoke workdir=DIR

Letters beside the values: C taken from the released code (eddycmu/demystify-long-cot, the
cosine script of section_4.2), O our choice, which covers the lengths and the value
model's learning rate.

Differences from the paper: this config omits the paper's repetition penalty. All right
completions of a prompt have the same length in this task, so the cosine only
distinguishes right completions of different prompts, and wrong completions.

Confidence in the formula: high.
"""
from rlx.configs import base, quickstart

CLAIMS = (
    "the cosine reward keeps the length of completions stable where the plain reward lets it "
    "explode",
)


def get_config(arg=""):
  # C: OpenRLHF's PPO; O: the value model's rate (C: 9e-6, the policy's 5e-7).
  c = quickstart.ppo(arg, lam=1.0)
  # The longest right chain has 18 tokens; reaching max_length gets the reward `exceeded`.
  base.at_least(c, 20)
  c.rewards = dict(outcome=dict(
      name="length.cosine", coef=1.0, max_length=c.rollouts.max_tokens, right=(2.0, 1.0),
      wrong=(-10.0, 0.0), exceeded=-10.0))          # C
  c.kl.coef, c.kl.place, c.kl.kind = 0.01, "reward", "k1"          # C init_kl_coef
  c.learner.epochs = 2                              # C max_epochs
  # C eddycmu/demystify-long-cot openrlhf/openrlhf/models/loss.py, OpenRLHF, not verl.
  c.learner.aggregation = "seq-mean-token-mean"
  return c
