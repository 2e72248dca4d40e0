"""A tenth of 64 completions right, three verdicts of ten wrong, eight passes over each
batch: PACS against the policy gradient with leave-one-out and importance ratios
that nothing clips, which has the same gradient in the first pass."""
from configs.papers import pacs
from experiments.worlds import tabular
from experiments.worlds import verdicts

CLAIM = 1
MEASURE = "accuracy of PACS less that of the unclipped surrogate, eight passes a batch"
REVISED = "both arms started near 1, then seeds differed more than arms"


def effects(seeds):
  world = tabular.Tree(prompts=32, vocab=4, length=3)
  right_PL = verdicts.drawn(world, 0.1)

  def accuracy(**changes):
    c = tabular.changed(pacs.get_config(), learner__epochs=8, **changes)
    found, _ = tabular.train(
        c, world, verdicts.judge(world, right_PL, flip=0.3),
        verdicts.accuracy(world, right_PL), seeds=seeds, steps=100, lr=80.0)
    return found["accuracy"][:, -1]

  surrogate = dict(name="policy.ppo_clip", clip_low=1e6, clip_high=1e6)
  return accuracy() - accuracy(learner__loss=surrogate,
                               learner__aggregation="seq-mean-token-sum")
