"""Let's Reinforce Step by Step (arXiv:2311.05821): the reward of PPO is the
product of the scores of the steps.

  python -m rlx.train --config=configs/papers/rsbs.py --workdir=DIR
  python -m rlx.train --config=configs/papers/rsbs.py:smoke --workdir=DIR

M from memory of the paper, O ours. The scores of steps are the exact
checker's, there a trained PRM's; kind is prod, min, mean or max.
"""
from configs import quickstart

PAPER = dict(
    title="Let's Reinforce Step by Step",
    arxiv="2311.05821",
    claims=(
        "how scores are aggregated decides what is learned",
        "process rewards help on simple problems and hurt on hard ones"),
    confidence="medium")


def get_config(arg=""):
  c = quickstart.get_config(arg)
  c.rollouts.keep = dict(name="keep.everything")
  c.verifier.steps = "chain.steps"  # O
  c.rewards = dict(process=dict(name="steps.completion", coef=1.0, kind="prod"))
  c.advantages = dict(  # PPO
      total=dict(name="temporal.gae", gamma=1.0, lam=1.0), whiten=True)
  c.value.optimizer.lr = c.learner.optimizer.lr  # O: as the policy
  return c
