"""A tree in which right completions are rare at every length; every batch is used for four
passes. GSPO is compared with a clip of each token's ratio, with the bounds that GSPO's paper
gives GRPO. The measure is the accuracy averaged over training, which is higher for faster
learning. How many tokens are clipped, the other part of the claim, is not measured.
"""
from configs.papers import gspo
from experiments.claims.environments import sparse, tabular

MEASURE = "accuracy averaged over 150 steps: GSPO minus the clip of token ratios"
MARGIN, RATE = 0.05, 30.0
FIRST = ("opposite", None)


def arms():
  problem, c = sparse.endings(), tabular.changed(gspo.get_config(), learner__epochs=4)
  token = dict(name="policy.ppo_clip", clip_low=0.2, clip_high=0.27)
  return problem.arms({"GSPO": c, "token ratios": tabular.changed(c, learner__loss=token)},
                      tabular.mean("accuracy"), steps=150)
