"""Beyond Correctness: Harmonizing Process and Outcome Rewards through RL Training
(arXiv:2509.03403): right completions with good steps and wrong ones with bad steps
learn.

  rlx train papers/prof workdir=DIR
  rlx train papers/prof:smoke workdir=DIR

P (paper) the filter, as its summary has it; O (ours) what is kept of each side. 4
of 8 completions learn. Its scores are means of a PRM over steps, here the share of
right steps, the exact one.

Confidence in the formula: medium.
"""
from rlx.configs import quickstart

CLAIMS = (
    "filtering beats blending the scores into the reward, which is hacked",
    "the steps of right completions improve",
)


def get_config(arg=""):
  c = quickstart.get_config(arg)
  c.verifier.scores = ("chain.step_share",)       # stands in for the PRM's mean
  c.rollouts.select_completions = dict(
      name="select_completions.prof", count=c.rollouts.per_prompt // 2, side="both")
  c.rewards = dict(outcome=dict(name="outcome.verdict", coef=1.0))  # P no PRM in it
  c.advantages = dict(outcome=dict(name="group.grpo"), whiten=False)
  return c
