"""Hybrid Reward Normalization for Process-supervised Non-verifiable Agentic
Tasks (arXiv:2509.25598). ReNorm adds the outcome less a constant to the score of every step
before the last, so that no step of a failed completion has a reward above 0.

  rlx train papers/ppr_renorm workdir=DIR
  rlx train papers/ppr_renorm:smoke workdir=DIR

Letters beside the values: C taken from the released code (Zhuohao-Li/ppr,
examples/train_3b.sh), O our choice.

Differences from the paper: In the paper a judge scores the steps by principles; this config
uses the exact checker of steps. The paper samples one completion for each prompt; this
config samples 8.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = ("without the shift process rewards rise while accuracy falls",)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  c.verifier.steps = "chain.steps"  # O
  c.rewards = dict(
      outcome=dict(name="outcome.verdict", coef=1.0),
      process=dict(name="steps.mix", coef=1.0, kind="renorm", mu=1.0))  # C
  c.advantages = dict(  # C
      total=dict(name="temporal.gae", gamma=1.0, lam=1.0), whiten=True)
  c.value.optimizer.lr = 10 * c.learner.optimizer.lr  # C
  c.kl.coef, c.kl.kind, c.kl.place = 1e-3, "k1", "reward"  # C
  c.learner.minibatches = 2  # C
  return c
