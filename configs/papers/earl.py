"""EARL: Entropy-Aware RL Alignment of LLMs for Reliable RTL Code Generation
(arXiv:2511.12033). The policy gradient is restricted to the tokens whose entropy is high
within their completion, and a KL penalty is added.

  rlx train papers/earl workdir=DIR
  rlx train papers/earl:smoke workdir=DIR

Letters beside the values: P stated in the paper (its abstract, and its summary at
sciencestack.ai/paper/2511.12033), O our choice (the share of tokens and the coefficient
of the penalty).

Differences from the paper: the task is chains of digits, in the paper code for circuits.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = ("functional pass rates of RTL code rise by up to 14.7%", "training is steadier",)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  c.learner.token_weight = dict(
      name="token_weight.top", over="completion",  # P
      fraction=0.2)  # O
  c.kl.coef = 1e-3  # P that there is a penalty; O its coefficient and estimator
  return c
