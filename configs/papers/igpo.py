"""Information Gain-based Policy Optimization: A Simple and Effective Approach for
Multi-Turn LLM Agents (arXiv:2510.14967): what each turn adds to the reference
answer's probability, then the verdict.

  rlx train papers/igpo workdir=DIR
  rlx train papers/igpo:smoke workdir=DIR

C (code) GuoqingWang1/IGPO for the reward, KL and gamma = 1 (16 completions). Turns
with tools are here steps of one completion. O (ours) the estimator, the nearest
there is: the paper takes z-scores of all turns of a group, its code a mean of the
group per position.

Confidence in the formula: medium.
"""
from rlx.configs import quickstart

CLAIMS = ("no prompt is left without a gradient, and learning is faster than from outcomes alone",)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  c.likelihood.separator, c.likelihood.max_tokens = "#", 1  # the answer is one digit
  c.likelihood.steps = 7                          # of at most 8, the last has the verdict
  c.rewards = dict(
      gain=dict(name="likelihood.turn_gain", coef=1.0, agg="geo_p"),  # C
      outcome=dict(name="outcome.verdict", coef=1.0))
  c.advantages = dict(total=dict(name="process.rloo_steps", unit="step"), whiten=False)
  c.kl.coef, c.kl.place, c.kl.kind = 0.001, "loss", "k3"              # C
  return c
