"""Pass@k Training for Adaptively Balancing Exploration and Exploitation of
Large Reasoning Models (arXiv:2508.10751): GRPO on the best of k, averaged
over all k of a group in closed form.

  rlx train papers/passk_training workdir=DIR
  rlx train papers/passk_training:smoke workdir=DIR

P the paper and its code (RUCAIBox/Passk_Training), O ours. Its second phase, k
= 1, is not here.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = (
    "pass@k and entropy stay higher than with k = 1",
    "pass@1 after a second phase with k = 1 is not lower",
)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  # P: 4 or 8, less than the group, which smoke cuts to 4.
  k = min(4, c.rollouts.per_prompt - 1)
  c.advantages.outcome = dict(name="group.pass_at_k_training", k=k)
  return c
