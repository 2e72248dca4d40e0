"""NOVER: Incentive Training for Language Models via Verifier-Free Reinforcement
Learning (arXiv:2505.16022): the rewards are the rank, within the group, of the reference
answer's perplexity after the reasoning, and an efficiency term for short reasoning.

  rlx train papers/nover workdir=DIR
  rlx train papers/nover:smoke workdir=DIR

Letters beside the values: C taken from the released code (thinkwee/NOVER, reward_functions.py,
utils.py, config.py; its groups have 8 completions). Differences from the paper: its format
reward and its gate are left out, because the verdict on this task is about the answer. The
paper reads the perplexity from a proxy model, a moving average (0.9) of the policy; this config
uses the policy. The completions of a prompt mostly have the same length on this task, so the
efficiency term has little effect.

Confidence in the formula: high.
"""
from rlx.configs import base, quickstart

CLAIMS = (
    "ranks are stable where the raw perplexity explodes",
    "the efficiency term shortens the reasoning",
)


def get_config(arg=""):
  c = quickstart.grpo(arg)  # No filter by accuracy: the method needs no verdict.
  c.likelihood.separator, c.likelihood.max_tokens = base.part("mark of the answer")
  c.rewards = dict(
      reasoning=dict(name="likelihood.reference", coef=1.0, agg="ppl", len_norm="log10",
                     post="rank"),                # C
      efficiency=dict(name="likelihood.efficiency", coef=1.0, use_gate=False))  # C
  c.advantages = dict(total=dict(name="group.mean_baseline"), whiten=False)     # C no std
  c.kl.coef, c.kl.place, c.kl.kind = 0.1, "loss", "k3"                          # C
  # C thinkwee/NOVER trainer.py, TRL with a loss of its own.
  c.learner.aggregation = "token-mean"
  return c
