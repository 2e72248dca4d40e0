"""Learn Your Reference Model for Real Good Alignment (arXiv:2404.09656). The reference model of
the KL penalty is updated at regular intervals to a weighted mean of its own weights and the
policy's.

  rlx train papers/ref_ema workdir=DIR
  rlx train papers/ref_ema:smoke workdir=DIR

Letters beside the values: C taken from TRL's sync_ref_model (alpha 0.6 every 512 optimizer
steps), O our choice (every 10th of 100 iterations, and the coefficient of the KL).

Differences from the paper: The paper updates the reference of DPO and related losses; this
config trains with GRPO.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = ("a reference that follows the policy learns more than a fixed one",)


def get_config(arg=""):
  c = quickstart.get_config(arg)
  c.rewards = dict(outcome=dict(name="outcome.verdict", coef=1.0))
  c.advantages = dict(outcome=dict(name="group.grpo"), whiten=False)
  c.kl.coef, c.kl.kind = 0.04, "k3"              # O
  c.kl.sync_every = 1 if arg == "smoke" else 10  # O; C has 512
  c.kl.sync_mix = 0.6                            # C
  return c
