"""Pass@k Training for Adaptively Balancing Exploration and Exploitation of
Large Reasoning Models (arXiv:2508.10751). The reward of k completions is that of the best
of them. The advantage of GRPO on this reward is averaged in closed form over all choices of
k completions from a group.

  rlx train papers/passk_training workdir=DIR
  rlx train papers/passk_training:smoke workdir=DIR

Letters beside the values: P stated in the paper or taken from its code
(RUCAIBox/Passk_Training), O our choice.

Differences from the paper: The paper trains in a second phase with k = 1; this config has
the first phase only.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = (
    "pass@k and entropy stay higher than with k = 1",
    "pass@1 after a second phase with k = 1 is not lower",
)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  # P: k is 4 or 8. It has to be less than the group size, which smoke reduces to 4.
  k = min(4, c.rollouts.per_prompt - 1)
  c.advantages.outcome = dict(name="group.pass_at_k_training", k=k)
  return c
