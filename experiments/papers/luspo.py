"""Right completions are as frequent among long as among short ones. LUSPO against GSPO
with its clip, which divides by the length; steps are a third for a completion is three
tokens long at the start. Accuracy is not measured."""
from configs.papers import luspo
from experiments.worlds import tabular
from experiments.worlds import sparse

CLAIM = 0
MEASURE = "length of completions after 150 steps, LUSPO less GSPO"


def effects(seeds):
  world, c = sparse.endings(), tabular.changed(luspo.get_config(), learner__epochs=4)
  length = lambda c, lr: world.learned(c, seeds, steps=150, lr=lr)["length"][:, -1]
  gspo = tabular.changed(c, learner__loss__name="sequence.gspo",
                         learner__aggregation="seq-mean-token-mean")
  return length(c, 10.0) - length(gspo, 30.0)
