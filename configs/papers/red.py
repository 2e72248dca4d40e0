"""RED: Unleashing Token-Level Rewards from Holistic Feedback via Reward
Redistribution (arXiv:2411.08302): a token is paid by what it adds to the
predicted outcome.

  rlx train papers/red workdir=DIR
  rlx train papers/red:smoke workdir=DIR

M from memory of the paper, O ours. A stand-in: the value model predicts the
outcome, there a reward model with a head at every token; PPO's critic would be
the same network, so there is none.

Confidence in the formula: medium.
"""
from rlx.configs import quickstart

CLAIMS = (
    "redistribution leaves the return as it is, for any prediction",
    "it does better than the same reward on the last token",
)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  c.rewards.outcome = dict(name="steps.redistribute", coef=1.0, share=1.0)  # O: 0.5 to 1
  # Rewards to go and the value add up to the outcome: it is the value target.
  c.advantages = dict(outcome=dict(name="process.reinforce", gamma=1.0), whiten=True)
  c.value.optimizer.lr = c.learner.optimizer.lr  # O: as the policy
  return c
