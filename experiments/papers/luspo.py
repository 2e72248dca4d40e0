"""Right completions are as frequent among long as among short ones. LUSPO against GSPO
with the same clip, which divides by the length. Rates are tuned by accuracy; completions
are three tokens long at the start."""
from configs.papers import luspo
from experiments.environments import sparse
from experiments.environments import tabular

CLAIM = 0
MEASURE = "length of completions after 150 steps, LUSPO less GSPO"
MARGIN, RATE = 0.15, 20.0
FIRST = ("confirmed", None)


def arms():
  problem, c = sparse.endings(), tabular.changed(luspo.get_config(), learner__epochs=4)
  return problem.arms({
      "LUSPO": c,
      "GSPO": tabular.changed(c, learner__loss__name="sequence.gspo",
                              learner__aggregation="seq-mean-token-mean"),
  }, ("length", "accuracy"), steps=150)
