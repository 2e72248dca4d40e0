"""IMPALA: Scalable Distributed Deep-RL with Importance Weighted Actor-Learner
Architectures (arXiv:1802.01561).

The loss of a token is weighted by the ratio of its probabilities in the trainer and in the
sampler, truncated at a cap.

  rlx train papers/tis workdir=DIR
  rlx train papers/tis:smoke workdir=DIR

The form for language models is truncated importance sampling (TIS), Yao et al. 2025 (Your
Efficient RL Framework Secretly Brings You Off-Policy RL Training, a note without an arXiv
number). Letters beside the values: C the cap in the code of verl and TRL, O our choice.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = ("with a quantised or faster sampler the weight restores the accuracy of one that agrees",)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  c.learner.loss = dict(name="policy.ppo_clip", clip_low=0.2, clip_high=0.2)
  c.learner.rollout_correction = dict(name="rollout_correction.tis", cap=2.0, level="token")  # C
  # O: in float32 sampler and trainer agree up to rounding errors and all weights are 1.
  c.model.dtype = "bfloat16"
  c.learner.minibatches = 4  # O: so that the clip acts, too, which is a separate correction
  # C volcengine/verl verl/trainer/config/actor/actor.yaml and huggingface/trl
  # trl/trainer/grpo_config.py (loss_type dapo), the defaults.
  c.learner.aggregation = "token-mean"
  return c
