"""Rewarding Progress: Scaling Automated Process Verifiers for LLM Reasoning
(arXiv:2410.08146): a step is paid by how much it changes the chance of
another policy, the prover.

  python -m rlx.train --config=configs/papers/pav.py --workdir=DIR
  python -m rlx.train --config=configs/papers/pav.py:smoke --workdir=DIR

M from memory of the paper, O ours. A stand-in: the value after a step is the
exact checker's verdict of it, there the success rate of a prover (best of 4)
from it, predicted by a network.
"""
from configs import quickstart

PAPER = dict(
    title="Rewarding Progress: Scaling Automated Process Verifiers for LLM "
          "Reasoning",
    arxiv="2410.08146",
    claims=(
        "progress as the reward does better than the value itself, and than "
        "outcomes",
        "the policy itself as the prover gives no gain"),
    confidence="medium")


def get_config(arg=""):
  c = quickstart.get_config(arg)
  c.rollouts.keep = dict(name="keep.everything")
  c.verifier.steps = "chain.steps"  # O
  c.rewards = dict(
      outcome=dict(name="outcome.verdict", coef=1.0),
      process=dict(name="steps.refine", coef=5.0,          # M: alpha is 3 to 5
                   kind="advantage", start=1.0))  # O: the question is sound
  c.advantages = dict(
      outcome=dict(name="group.rloo"),                     # O
      process=dict(name="process.reinforce", gamma=1.0),   # O: to go
      whiten=False)
  return c
