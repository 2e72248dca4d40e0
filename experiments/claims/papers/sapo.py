"""A tenth of the completions of every length is right, and each batch is used for eight passes
with a large learning rate. The gate of SAPO is compared with the two clips that it replaces, of
GSPO's sequence ratio and of GRPO's token ratios, by the mean accuracy in the second half of
training.
"""
from configs.papers import sapo
from experiments.claims.environments import sparse, tabular

MEASURE = "accuracy in the second half of 30 steps: SAPO minus the rival"
MARGIN, RATE = 0.05, 40.0
FIRST = ("not recorded", "both arms ended with an accuracy near 1")
RIVALS = {"GSPO": dict(name="sequence.gspo", clip_low=3e-4, clip_high=4e-4),
          "GRPO": dict(name="policy.ppo_clip", clip_low=0.2, clip_high=0.2)}


def arms():
  problem, c = sparse.endings(), tabular.changed(sapo.get_config(), learner__epochs=8)
  rivals = {name: tabular.changed(c, learner__loss=loss) for name, loss in RIVALS.items()}
  return problem.arms({"SAPO": c} | rivals, sparse.late, steps=30)
