"""RED: Unleashing Token-Level Rewards from Holistic Feedback via Reward
Redistribution (arXiv:2411.08302). The reward of a token is the change that it causes in the
predicted outcome, so that the rewards of all tokens add up to the outcome less a constant
of the prompt.

  rlx train papers/red workdir=DIR
  rlx train papers/red:smoke workdir=DIR

Letters beside the values: M from memory of the paper, O our choice.

Differences from the paper: The paper predicts the outcome with a reward model that has a
head at every token; this config uses the value model in its place. PPO's critic would be
the same network, so this config has no critic.

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
  # Rewards to go plus the value are the outcome, which is therefore the target of the value.
  c.advantages = dict(outcome=dict(name="process.reinforce", gamma=1.0), whiten=True)
  c.value.optimizer.lr = c.learner.optimizer.lr  # O: as for the policy
  return c
