"""Information Gain-based Policy Optimization: A Simple and Effective Approach for
Multi-Turn LLM Agents (arXiv:2510.14967): the reward of a turn is the increase of the reference
answer's probability by that turn. The last turn receives the verdict.

  rlx train papers/igpo workdir=DIR
  rlx train papers/igpo:smoke workdir=DIR

Letters beside the values: C taken from the released code (GuoqingWang1/IGPO), which gives the
reward, the KL term and gamma = 1 (its groups have 16 completions). The estimator is our choice.
Differences from the paper: the paper's turns call tools; this config uses the steps of one
completion. The paper takes z-scores over all turns of a group, and its code a mean over the
group for each position; this config uses the most similar estimator that rlx has.

Confidence in the formula: medium.
"""
from rlx.configs import quickstart

CLAIMS = ("no prompt is left without a gradient, and learning is faster than from outcomes alone",)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  c.likelihood.separator, c.likelihood.max_tokens = "#", 1  # the answer is one digit
  c.likelihood.steps = 7                          # of at most 8; the last receives the verdict
  c.rewards = dict(
      gain=dict(name="likelihood.turn_gain", coef=1.0, agg="geo_p"),  # C
      outcome=dict(name="outcome.verdict", coef=1.0))
  c.advantages = dict(total=dict(name="process.rloo_steps", unit="step"), whiten=False)
  c.kl.coef, c.kl.place, c.kl.kind = 0.001, "loss", "k3"              # C
  return c
