"""Stop Summation: Min-Form Credit Assignment Is All Process Reward Model Needs
for Reasoning (arXiv:2504.15275): the value of a completion is its worst
step, not the sum of its steps.

  rlx train papers/pure workdir=DIR
  rlx train papers/pure:smoke workdir=DIR

C the released code (CJReinforce/PURE), O ours. The scores of steps are the
exact checker's, there a trained PRM's; every prompt has a verdict, there about
one in ten.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = (
    "step rewards that are summed collapse early, softmin ones train stably",
    "with verdicts on a tenth of the prompts the rest of the reward hacking is gone",
)


def get_config(arg=""):
  c = quickstart.grpo(arg)  # C: no filter by accuracy.
  c.verifier.steps = "chain.steps"  # O
  c.rewards = dict(
      outcome=dict(name="outcome.verdict", coef=1.0),      # C
      process=dict(name="steps.refine", coef=1.0, kind="softmin",
                   signed=True, temperature=0.1))          # C
  c.advantages = dict(
      outcome=dict(name="group.rloo"),                     # C
      process=dict(name="process.rloo_steps", unit="token"),  # C
      kl=dict(name="process.reinforce"),  # C: to go, no baseline
      whiten=False)
  c.kl.coef, c.kl.kind, c.kl.place = 1e-3, "k1", "reward"  # C
  return c
