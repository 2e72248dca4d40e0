"""Right completions are equally frequent among long and short ones. LUSPO is compared with GSPO,
which divides by the length, with the same clip. The learning rates are tuned for accuracy;
completions are three tokens long at the start.
"""
from configs.papers import luspo
from experiments.claims.environments import sparse, tabular

MEASURE = "length of completions after 150 steps: LUSPO minus GSPO"
MARGIN, RATE = 0.15, 20.0
FIRST = ("confirmed", None)


def arms():
  problem, c = sparse.endings(), tabular.changed(luspo.get_config(), learner__epochs=4)
  gspo = tabular.changed(c, learner__loss__name="sequence.gspo",
                         learner__aggregation="seq-mean-token-mean")
  return problem.arms({"LUSPO": c, "GSPO": gspo}, ("length", "accuracy"), steps=150)
