"""Med-PRM: Medical Reasoning Models with Stepwise, Guideline-verified Process Rewards
(arXiv:2506.11474): a PRM learns labels of steps by a judge that reads guidelines, and the score of
a completion is that of its worst step.

  rlx train_scorer papers/med_prm workdir=DIR
  rlx train_scorer papers/med_prm:smoke workdir=DIR
  rlx train_scorer papers/med_prm base=gsm8k model.path=MODEL verifier.judge.url=URL \\
      verifier.judge.model=NAME prompts.source=ROWS.jsonl prompts.dataset=jsonl workdir=DIR

The guidelines stand in the question of a row, so that judge, PRM and policy read them; finding
those that belong to a question is done outside of rlx. The score of the worst step is `min` of `rlx
evaluate`.

Letters beside the values: P stated in the paper, O our choice. Differences from the paper: its PRM
alone reads the guidelines, and its policy does not; the toy has none, and its judge is an exact
checker.

Confidence in the formula: low.
"""
from rlx.configs import base
from rlx.configs.papers import implicit_prm

CLAIMS = ("labels by guidelines train a better PRM than those of rollouts",)


def get_config(arg=""):
  c = implicit_prm.get_config(arg)
  base.use_judge(c)
  c.verifier.steps = "judge.steps"                                          # P
  c.train_scorer.labels, c.train_scorer.labelled_by = "hard", "verifier"    # P
  return c
