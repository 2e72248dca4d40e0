"""Promoting Efficient Reasoning with Verifiable Stepwise Reward
(arXiv:2508.10293): a step is paid by the change of accuracy it makes, or
that the next ones make.

  rlx train papers/vsrm workdir=DIR
  rlx train papers/vsrm:smoke workdir=DIR

C the released code (1benwu1/VSRM-Efficient-LRMs), O ours. A stand-in: the
score after a step is the exact checker's verdict of it, there the accuracy of
answers sampled from it.

Confidence in the formula: medium.
"""
from rlx.configs import quickstart

CLAIMS = ("completions get shorter at equal accuracy",)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  c.verifier.steps = "chain.steps"  # O
  c.rewards = dict(
      outcome=dict(name="outcome.verdict", coef=1.0),  # C: on the last token
      process=dict(name="steps.refine", coef=1.0, kind="lookahead",
                   gamma=0.7, eps=1e-5, window=4,          # C
                   start=1.0))  # O: a right first step adds 0
  c.advantages = dict(  # C: REINFORCE++, without discount
      total=dict(name="batch.reinforce_pp", gamma=1.0), whiten=False)
  return c
