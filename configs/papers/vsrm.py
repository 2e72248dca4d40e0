"""Promoting Efficient Reasoning with Verifiable Stepwise Reward (arXiv:2508.10293).

The reward of a step is the change of accuracy from before it to after it. If a step does not
change the accuracy, it receives the discounted change of the next step that does.

  rlx train papers/vsrm workdir=DIR
  rlx train papers/vsrm:smoke workdir=DIR

Letters beside the values: C taken from the released code (1benwu1/VSRM-Efficient-LRMs), O our
choice. Differences from the paper: its accuracy after a step is that of answers sampled from
there; this config uses the exact checker's verdict on the step as a stand-in.

Confidence in the formula: medium.
"""
from rlx.configs import base, quickstart

CLAIMS = ("completions get shorter at equal accuracy",)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  c.verifier.steps = base.part("checker of steps")  # O
  c.rewards = dict(
      outcome=dict(name="outcome.verdict", coef=1.0),  # C, on the last token
      process=dict(name="steps.refine", coef=1.0, kind="lookahead",
                   gamma=0.7, eps=1e-5, window=4,          # C
                   start=1.0))  # O: a right first step receives 0
  c.advantages = dict(  # C: REINFORCE++ without a discount
      total=dict(name="batch.reinforce_pp", gamma=1.0), whiten=False)
  # C 1benwu1/VSRM-Efficient-LRMs verl/trainer/config/ppo_trainer.yaml, which run_ppo_ju.sh does not
  # change.
  c.learner.aggregation = "token-mean"
  return c
