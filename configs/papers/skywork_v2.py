"""Skywork-Reward-V2: Scaling Preference Data Curation via Human-AI Synergy (arXiv:2507.01352): in
rounds a reward model learns pairs that the last ones agree on, and those that all of them
contradict the other way round.

  rlx train_scorer papers/skywork_v2 train_scorer.rollouts=VERIFIED.jsonl workdir=ROUND0
  rlx train_scorer papers/skywork_v2:round train_scorer.rollouts=PAIRS.jsonl workdir=ROUND1 \\
      scorers.trained1.path=ROUND0/scorer scorers.trained2.path=JUDGE
  rlx train_scorer papers/skywork_v2:round train_scorer.rollouts=PAIRS.jsonl workdir=ROUND2 \\
      scorers.trained1.path=ROUND1/scorer scorers.trained2.path=JUDGE
  rlx train_scorer papers/skywork_v2:smoke workdir=DIR

VERIFIED is a small file of pairs that people labelled, PAIRS a large one of the wild; JUDGE is
another reward model. Each round writes the pairs that it learns to <workdir>/curated.jsonl.

Letters beside the values: P stated in the paper, O our choice. Differences from the paper: a second
reward model stands in for the judgements of language models that people guide; how sure they must
be for a new label is ours.

Confidence in the formula: low.
"""
from rlx.configs import base
from rlx.configs.papers import implicit_prm

CLAIMS = ("pairs that are curated train a better reward model than many more that are not",)


def get_config(arg=""):
  kind, size = base.variant(arg, ("verified", "round"))
  c = implicit_prm.get_config(size)
  c.train_scorer.labels = "outcome"                                         # P
  c.train_scorer.loss = dict(name="reward_model.bradley_terry")             # P
  if kind == "round":
    c.verifier.scores = base.scored_by(c, "scorer", models=2)               # O
    c.train_scorer.curate = dict(name="preferences.keep_agreed")            # P
  return c
