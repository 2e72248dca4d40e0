"""DeepSeek-V3.2: Pushing the Frontier of Open Large Language Models
(arXiv:2512.02556): off-policy sequence masking drops completions that have a negative
advantage and have become much less likely under the policy than under the sampler.

  rlx train papers/opsm workdir=DIR
  rlx train papers/opsm:smoke workdir=DIR

Letters beside the values: P stated in the paper (eq. 9), C a value that TRL suggests, because
the paper gives none, O our choice.

Confidence in the formula: medium.
"""
from rlx.configs import quickstart

CLAIMS = ("the mask stabilises training that is otherwise off-policy too far",)


def get_config(arg=""):
  c = quickstart.grpo(arg)  # P: the estimator
  c.learner.loss = dict(name="policy.ppo_clip", clip_low=0.2, clip_high=0.2)
  c.learner.rollout_correction = dict(name="rollout_correction.opsm", delta=0.5)  # C
  c.learner.minibatches = 4  # O: with one minibatch the mask drops nothing
  return c
