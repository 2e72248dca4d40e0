"""Hybrid Reward Normalization for Process-supervised Non-verifiable Agentic
Tasks (arXiv:2509.25598): the outcome shifts the rewards of the steps before the
last, so that a failure keeps none above 0.

  rlx train papers/ppr_renorm workdir=DIR
  rlx train papers/ppr_renorm:smoke workdir=DIR

C the released code (Zhuohao-Li/ppr, examples/train_3b.sh), O ours. The scores of steps
are the exact checker's, there a judge's by principles; 8 completions, there one.

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
