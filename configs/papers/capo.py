"""CAPO: Towards Enhancing LLM Reasoning through Verifiable Generative Credit
Assignment (arXiv:2508.02298): tokens of a wrong step pay a penalty, beside
the outcome of all, and are compared with all tokens of the group.

  rlx train papers/capo workdir=DIR
  rlx train papers/capo:smoke workdir=DIR

P the paper, O ours. The steps are judged by the exact checker, there by votes of a
language model; 8 completions, there 16.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = ("penalties of steps do better than GRPO with outcomes alone",)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  c.verifier.steps = "chain.steps"  # O
  c.rewards = dict(
      process=dict(name="steps.wrong_step_penalty", coef=1.0, outcome=2.0,
                   penalty=1.0))  # P
  c.advantages = dict(process=dict(name="process.grpo_tokens"), whiten=False)  # P
  return c
