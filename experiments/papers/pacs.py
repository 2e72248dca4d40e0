"""A tenth of 64 completions right, about three verdicts of ten wrong, eight passes over each
batch: PACS against the policy gradient with leave-one-out and importance ratios
that nothing clips, which has the same gradient in the first pass."""
from configs.papers import pacs
from experiments.environments import tabular
from experiments.environments import verdicts

CLAIM = 1
MEASURE = "accuracy of PACS less that of the unclipped surrogate, eight passes a batch"
MARGIN, RATE = 0.05, 80.0
FIRST = ("not recorded", "both arms started near 1, then seeds differed more than arms")
SURROGATE = dict(name="policy.ppo_clip", clip_low=1e6, clip_high=1e6)


def arms():
  tree, c = tabular.Tree(prompts=16, vocab=4, length=3), tabular.changed(
      pacs.get_config(), learner__epochs=8)
  environment = verdicts.environment(tree, 0.1, flip=0.3)
  return tabular.arms({
      "PACS": c,
      "unclipped": tabular.changed(c, learner__loss=SURROGATE,
                                   learner__aggregation="seq-mean-token-sum"),
  }, tree, environment, "accuracy", steps=100)
