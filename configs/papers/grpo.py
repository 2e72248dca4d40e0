"""DeepSeekMath: Pushing the Limits of Mathematical Reasoning in Open Language Models
(arXiv:2402.03300). The advantage of a completion is the z-score of its reward among the
completions of its prompt.

  rlx train papers/grpo workdir=DIR
  rlx train papers/grpo:smoke workdir=DIR

Letters beside the values: P stated in the paper (section 4), O our choice.

Differences from the paper: the paper uses a reward model and 64 completions per prompt;
this config uses the verdict of a verifier and 8 completions.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = ("reaches PPO's accuracy without a critic",)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  # O: has no effect in on-policy updates
  c.learner.loss = dict(name="policy.ppo_clip", clip_low=0.2, clip_high=0.2)
  c.learner.aggregation = "seq-mean-token-mean"  # P eq. 3
  c.kl.coef, c.kl.kind, c.kl.place = 0.04, "k3", "loss"  # P
  return c
