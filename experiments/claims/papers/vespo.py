"""A tenth of the completions of every length is right, and each batch is used for sixteen passes
with a large learning rate. VESPO is compared with GRPO's clip of token ratios and with GSPO's
ratio, which is normalised by length. Measured is the mean accuracy in the second half of
training.
"""
from configs.papers import vespo
from experiments.claims.environments import sparse, tabular

MEASURE = ("accuracy in the second half of training, with 16 passes over each batch: VESPO minus "
           "the rival")
MARGIN, RATE = 0.05, 40.0
FIRST = ("confirmed", None)
RIVALS = {"GRPO": dict(name="policy.ppo_clip", clip_low=0.2, clip_high=0.2),
          "GSPO": dict(name="sequence.gspo", clip_low=3e-4, clip_high=4e-4)}


def arms():
  problem, c = sparse.endings(), tabular.changed(vespo.get_config(), learner__epochs=16)
  rivals = {name: tabular.changed(c, learner__loss=loss) for name, loss in RIVALS.items()}
  return problem.arms({"VESPO": c} | rivals, sparse.late, steps=20)
