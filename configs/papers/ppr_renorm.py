"""Hybrid Reward Normalization for Process-supervised Non-verifiable Agentic
Tasks (arXiv:2509.25598): the outcome shifts the rewards of all steps, so
that a failure keeps none above 0.

  python -m rlx.train --config=configs/papers/ppr_renorm.py --workdir=DIR
  python -m rlx.train --config=configs/papers/ppr_renorm.py:smoke --workdir=DIR

P the paper's abstract, M from memory, O ours; the exact form is assumed. The
scores of steps are the exact checker's, there a judge's by principles.
"""
from configs import quickstart

PAPER = dict(
    title="Hybrid Reward Normalization for Process-supervised Non-verifiable "
          "Agentic Tasks",
    arxiv="2509.25598",
    claims=("without the shift process rewards rise while accuracy falls",),
    confidence="low")


def get_config(arg=""):
  c = quickstart.get_config(arg)
  c.rollouts.keep = dict(name="keep.everything")
  c.verifier.steps = "chain.steps"  # O
  c.rewards = dict(
      outcome=dict(name="outcome.verdict", coef=1.0),
      process=dict(name="steps.mix", coef=1.0, kind="renorm", mu=1.0))  # M
  c.advantages = dict(  # M: PPO
      total=dict(name="temporal.gae", gamma=1.0, lam=1.0), whiten=True)
  c.value.optimizer.lr = c.learner.optimizer.lr  # O: as the policy
  return c
