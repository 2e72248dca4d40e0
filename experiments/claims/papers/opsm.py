"""The logits of the sampler are those of the policy with noise of standard deviation 1, drawn anew
at every step. Every batch is used for eight passes, and right completions are rare at every
length. Training with the mask is compared with training without it. With a sampler that agrees
with the trainer the mask would drop nothing, because PPO's clip already stops the update of
completions that have become unlikely.
"""
from configs.papers import opsm
from experiments.claims.environments import sparse, tabular

MEASURE = "off-policy accuracy in the second half of 60 steps with the mask minus that without it"
MARGIN, RATE = 0.05, 30.0
FIRST = ("not recorded", "PPO's clip had already stopped the updates that the mask would drop")


def arms():
  problem, c = sparse.endings(), tabular.changed(opsm.get_config(), learner__epochs=8)
  return problem.arms(
      {"mask": c, "no mask": tabular.changed(c, learner__rollout_correction=dict(name=None))},
      sparse.late, steps=60, sampler=sparse.noisy)
