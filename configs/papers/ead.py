"""Let it Calm: Exploratory Annealed Decoding for Verifiable Reinforcement Learning
(arXiv:2510.05251): completions begin hot and cool, the loss is corrected for it.

  rlx train papers/ead workdir=DIR
  rlx train papers/ead:smoke workdir=DIR

C (code) the schedule, the cap of the weights, the clips; O (ours): d and its growth,
there 25 and 5 for responses of thousands of tokens, and minibatches.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = ("heat at the start of a completion learns more than a fixed temperature",)


def get_config(arg=""):
  c = quickstart.get_config(arg)
  c.rewards = dict(outcome=dict(name="outcome.verdict", coef=1.0))
  c.advantages = dict(outcome=dict(name="group.grpo"), whiten=False)
  c.rollouts.anneal = dict(
      name="anneal.ead", peak=1.2, floor=0.1,     # C
      rate=18.0, growth=0.2,                      # O: the longest answer has 18 tokens
      warmup_steps=1 if arg == "smoke" else 10)   # C
  c.learner.rollout_correction = dict(name="rollout_correction.tis", cap=2.0, level="token")  # C
  c.learner.loss.clip_low, c.learner.loss.clip_high = 0.2, 0.28  # C
  c.learner.minibatches = 4                       # O: clipping acts off-policy only
  return c
