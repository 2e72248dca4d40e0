"""Let it Calm: Exploratory Annealed Decoding for Verifiable Reinforcement Learning
(arXiv:2510.05251). Completions are sampled at a high temperature at their start and at
lower temperatures later, and the loss is corrected for the difference from the trained
distribution.

  rlx train papers/ead workdir=DIR
  rlx train papers/ead:smoke workdir=DIR

Letters beside the values: C taken from the released code (the schedule, the cap of the
weights and the clips), O our choice.

Differences from the paper: the paper uses d = 25 with a growth of 5 for responses of
thousands of tokens; d, its growth and the number of minibatches are ours.

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
      rate=float(c.rollouts.max_tokens), growth=0.2,   # O: the longest answer of the toy
      warmup_steps=1 if arg == "smoke" else 10)   # C
  c.learner.rollout_correction = dict(name="rollout_correction.tis", cap=2.0, level="token")  # C
  c.learner.loss.clip_low, c.learner.loss.clip_high = 0.2, 0.28  # C
  c.learner.minibatches = 4                       # O: clipping acts off-policy only
  # C yangalan123/EAD-RLVR verl/trainer/config/ppo_trainer.yaml, which
  # recipe/ead/run_annealed_sampling.sh does not change.
  c.learner.aggregation = "token-mean"
  return c
