"""NOVER: Incentive Training for Language Models via Verifier-Free Reinforcement
Learning (arXiv:2505.16022): ranks of the reference answer's perplexity in the
group, and efficiency.

  rlx train papers/nover workdir=DIR
  rlx train papers/nover:smoke workdir=DIR

C (code) thinkwee/NOVER, reward_functions.py, utils.py, config.py (8 completions).
Without its format reward and gate: on chains the verdict is about the answer. Its
proxy model, the policy's moving average (0.9), is here the policy. A prompt's
completions mostly have one length here, so that the efficiency term says little.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = (
    "ranks are stable where the raw perplexity explodes",
    "the efficiency term shortens the reasoning",
)


def get_config(arg=""):
  c = quickstart.grpo(arg)  # No filter by accuracy: the method needs no verdict.
  c.likelihood.separator, c.likelihood.max_tokens = "#", 1  # the answer is one digit
  c.rewards = dict(
      reasoning=dict(name="likelihood.reference", coef=1.0, agg="ppl", len_norm="log10",
                     post="rank"),                # C
      efficiency=dict(name="likelihood.efficiency", coef=1.0, use_gate=False))  # C
  c.advantages = dict(total=dict(name="group.mean_baseline"), whiten=False)     # C no std
  c.kl.coef, c.kl.place, c.kl.kind = 0.1, "loss", "k3"                          # C
  return c
