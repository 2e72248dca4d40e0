"""PACS against the policy gradient without a clip, with wrong verdicts and eight epochs a batch.

Each prompt has 64 possible completions, of which a tenth are right. About three of ten
verdicts are wrong. The other arm has leave-one-out advantages and importance ratios that are
not clipped; its gradient in the first epoch equals that of PACS. The accuracy is measured.
"""
from configs.papers import pacs
from experiments.claims.environments import tabular, verdicts

CLAIM = 1
MEASURE = ("accuracy of PACS minus that of the unclipped surrogate, with eight passes over each "
           "batch")
MARGIN, RATE = 0.05, 80.0
FIRST = ("not recorded",
         "both arms started near 1; in a second version the seeds differed more than the arms")
SURROGATE = dict(name="policy.ppo_clip", clip_low=1e6, clip_high=1e6)


def arms():
  tree, c = tabular.Tree(prompts=16, vocab=4, length=3), tabular.changed(
      pacs.get_config(), learner__epochs=8)
  environment = verdicts.environment(tree, 0.1, flip=0.3)
  unclipped = tabular.changed(c, learner__loss=SURROGATE, learner__aggregation="seq-mean-token-sum")
  return tabular.arms({"PACS": c, "unclipped": unclipped},
                      tree, environment, "accuracy", steps=100)
