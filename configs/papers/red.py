"""RED: Unleashing Token-Level Rewards from Holistic Feedback via Reward
Redistribution (arXiv:2411.08302). The reward of a token is the change that it causes in the
score of a reward model, so that the rewards of all tokens add up to the score of the whole.

  rlx train papers/red workdir=DIR
  rlx train papers/red:smoke workdir=DIR

Letters beside the values: P stated in the paper (PPO with a value model of its own), M from
memory of the paper, O our choice.

Differences from the paper: Its scores are those of a reward model that has a head at every token;
this config asks a verifier about every prefix, on chains the share of right steps. Any function of
a text, such as a reward model, can take its place (verifier.scores, verifier.judge). The
paper's KL penalty is left out. Verdicts are only logged. On language models a step is a line, not
a token, since a verifier would be asked about every token.

Confidence in the formula: medium.
"""
from rlx.configs import base, quickstart

CLAIMS = (
    "redistribution leaves the return as it is, for any prediction",
    "it does better than the same reward on the last token",
)


def get_config(arg=""):
  c = quickstart.ppo(arg)  # P. No filter by accuracy: RLHF has no verdicts.
  if base.chosen() in (None, "toy"): c.rollouts.step_separator = ""  # M: every token.
  c.verifier.scores = (base.part("graded verifier"),)  # O: it stands in for a reward model.
  c.rewards = dict(outcome=dict(name="steps.redistribute", coef=1.0, share=1.0))  # O: 0.5 to 1
  return c
