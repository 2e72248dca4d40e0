"""Aligning Large Language Models via Fine-grained Supervision (arXiv:2406.02756): a reward model
gives each token a reward, which it learns from completions and their least edits: what an edit took
away is bad, what it added is good.

  rlx train_scorer papers/implicit_prm train_scorer.labels=spans workdir=SCORER \\
      train_scorer.rollouts=edits:EDITS.jsonl train_scorer.held_out=edits:HELD_OUT.jsonl
  rlx train papers/edit_rewards scorers.trained.path=SCORER/scorer workdir=DIR
  rlx train papers/edit_rewards:critic workdir=DIR
  rlx train papers/edit_rewards:smoke scorers.trained.path=SCORER/scorer workdir=DIR

A row of the file is a completion and its edit:

  {"question": "What is 3 + 4?", "rejected": "It is 8, I think.", "chosen": "It is 7."}

The score of a token is the log-odds h of "good"; its reward is tanh(h / 2), which is 1 of what an
edit added and -1 of what it took away. The variant :critic takes spans of the base's judge in the
place of the model.

Letters beside the values: P stated in the paper, O our choice. Differences from the paper: parts
that stay have the label 1/2, the reward 0; the edits there are by a language model. That PPO has
the rewards of tokens alone is ours; add a term for a score of the whole.

Confidence in the formula: low.
"""
from rlx.configs import base, quickstart

CLAIMS = ("PPO gains more from rewards of tokens than from one reward of the whole, with less data",)


def get_config(arg=""):
  kind, size = base.variant(arg, ("scorer", "critic"))
  c = quickstart.ppo(size)                                                  # P: PPO
  c.rewards = dict(tokens=dict(name="steps.spans", coef=1.0))               # P
  if kind == "critic":
    base.use_judge(c)
    c.verifier.spans = "judge.spans"
  else: c.verifier.spans, = base.scored_by(c, "scorer", "token rewards", gives="probability")
  return c
