"""A sampler whose logits are the policy's with noise of 1, other at every step, and eight
passes over every batch; right completions are rare at every length. From a sampler that
agrees the mask does nothing: PPO's clip has stopped what was left behind."""
from configs.papers import opsm
from experiments.environments import sparse
from experiments.environments import tabular

CLAIM = 0
MEASURE = "accuracy in the second half of 60 steps with the mask less that without, off-policy"
MARGIN, RATE = 0.05, 30.0
FIRST = ("not recorded", "PPO's clip left the mask nothing to do")


def arms():
  problem, c = sparse.endings(), tabular.changed(opsm.get_config(), learner__epochs=8)
  return problem.arms({
      "mask": c,
      "no mask": tabular.changed(c, learner__rollout_correction=dict(name=None)),
  }, sparse.late, steps=60, sampler=sparse.noisy)
