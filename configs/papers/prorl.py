"""Scaling Up RL: Unlocking Diverse Reasoning in LLMs via Prolonged Training
(arXiv:2507.12507). ProRL trains with a small KL penalty and resets its reference model to
the current policy, together with the optimizer's state, from time to time.

  rlx train papers/prorl workdir=DIR
  rlx train papers/prorl:smoke workdir=DIR

Letters beside the values: P stated in the paper, O our choice (the interval between resets
and the number of minibatches).

Differences from the paper: The paper resets when validation stagnates or the KL grows; this
config resets every 25 steps. The paper's stages of increasing context length are left out.

Confidence in the formula: medium.
"""
from rlx.configs import quickstart

CLAIMS = (
    "without resets of the reference the KL term comes to dominate and progress stalls",
    "without a KL term long runs collapse",
)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  c.rollouts.filter_groups = dict(name="filter_groups.accuracy_band", low=1e-3, high=1 - 1e-3)  # P
  c.rollouts.decoding.temperature = 1.2                     # P
  c.learner.loss.clip_low, c.learner.loss.clip_high = 0.2, 0.4  # P
  c.learner.aggregation = "token-mean"                      # P
  c.learner.minibatches = 4                                 # O: no effect of clipping on-policy
  c.kl.coef, c.kl.kind = 1e-4, "k3"                         # P
  c.kl.sync_every = 1 if arg == "smoke" else 25             # O
  c.kl.reset_optimizer = True                               # P
  return c
