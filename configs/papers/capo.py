"""CAPO: Towards Enhancing LLM Reasoning through Verifiable Generative Credit Assignment
(arXiv:2508.02298). Every token gets the outcome reward of its completion, tokens of a
wrong step get a penalty in addition, and each token is compared with all tokens of the
group.

  rlx train papers/capo workdir=DIR
  rlx train papers/capo:smoke workdir=DIR

Letters beside the values: P stated in the paper, O our choice.

Differences from the paper: the paper finds wrong steps by votes of a language model, this
config by an exact checker; the paper samples 16 completions per prompt, this config 8.

Confidence in the formula: high.
"""
from rlx.configs import base, quickstart

CLAIMS = ("penalties of steps do better than GRPO with outcomes alone",)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  c.verifier.steps = base.part("checker of steps")  # O
  c.rewards = dict(
      process=dict(name="steps.wrong_step_penalty", coef=1.0, outcome=2.0,
                   penalty=1.0))  # P
  c.advantages = dict(process=dict(name="process.grpo_tokens"), whiten=False)  # P
  return c
