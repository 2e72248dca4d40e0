"""CAPO: Towards Enhancing LLM Reasoning through Verifiable Generative Credit
Assignment (arXiv:2508.02298): tokens of a wrong step pay a penalty, beside
the outcome of all.

  python -m rlx.train --config=configs/papers/capo.py --workdir=DIR
  python -m rlx.train --config=configs/papers/capo.py:smoke --workdir=DIR

M from memory of the paper, O ours. The steps are judged by the exact checker,
there by votes of a language model.
"""
from configs import quickstart

PAPER = dict(
    title="CAPO: Towards Enhancing LLM Reasoning through Verifiable "
          "Generative Credit Assignment",
    arxiv="2508.02298",
    claims=("penalties of steps do better than GRPO with outcomes alone",),
    confidence="low")


def get_config(arg=""):
  c = quickstart.get_config(arg)
  c.rollouts.keep = dict(name="keep.everything")
  c.verifier.steps = "chain.steps"  # O
  c.rewards = dict(
      outcome=dict(name="outcome.verdict", coef=2.0),      # M: C
      process=dict(name="steps.wrong_step_penalty", coef=1.0))  # M: P
  # O: z-scores of each term would undo C and P; whitened together they stay.
  c.advantages = dict(
      outcome=dict(name="group.rloo"),
      process=dict(name="process.rloo", gamma=0.0, loo="strict"),
      whiten=True)
  return c
