"""DeepSeek-V3.2: Pushing the Frontier of Open Large Language Models
(arXiv:2512.02556): off-policy sequence masking, failures that the policy
left behind are dropped.

  rlx train papers/opsm workdir=DIR
  rlx train papers/opsm:smoke workdir=DIR

P the paper (eq. 9), C a value suggested by TRL, as the paper has none, O ours.

Confidence in the formula: medium.
"""
from rlx.configs import quickstart

CLAIMS = ("the mask stabilises training that is otherwise off-policy too far",)


def get_config(arg=""):
  c = quickstart.grpo(arg)  # P: the estimator.
  c.learner.loss = dict(name="policy.ppo_clip", clip_low=0.2, clip_high=0.2)
  c.learner.rollout_correction = dict(name="rollout_correction.opsm", delta=0.5)  # C
  c.learner.minibatches = 4  # O: on-policy the rule does nothing
  return c
