"""Reward Shaping to Mitigate Reward Hacking in RLHF (arXiv:2502.18770). PAR replaces the reward
model's score by the mean probability that the completion is preferred to reference
completions: the sigmoid of the difference of their scores.

  rlx train papers/par workdir=DIR
  rlx train papers/par:smoke workdir=DIR
  rlx train papers/par:scorer scorers.trained.path=SCORER workdir=DIR

The variant :scorer takes the score from a trained model with a head instead, such as
<workdir>/scorer of `rlx train_scorer`.

Letters beside the values: C taken from the released code (PorUna-byte/PAR, reward_shaper.py
configs/config.py, and trainers/ppo_trainer.py), O our choice (k, among others).

Differences from the paper: Its references are 10 completions of the initial policy; this
config uses the other completions of the same prompt. Its scores come from a reward model;
this config uses the share of right steps, and verdicts are only logged.

Confidence in the formula: high.
"""
from rlx.configs import base, quickstart

CLAIMS = ("a bounded, centred reward that grows fast and then slowly resists hacking the longest",)


def get_config(arg=""):
  kind, size = base.variant(arg, base.SCORED)
  # C: gamma, lambda and whitening; O: the value model's learning rate. Prompts are not
  # filtered by accuracy, because RLHF has no verdicts.
  c = quickstart.ppo(size)
  # The graded verifier stands in for a reward model.
  c.verifier.scores = base.scored_by(c, kind, "graded verifier")
  # C: k = 1, for logits with a range of several units; a share has a range of one.
  c.rewards = dict(outcome=dict(
      name="shaping.par", coef=1.0, k=dict(checked=4.0, scorer=1.0)[kind]))
  c.kl.coef, c.kl.place, c.kl.kind = 0.005, "reward", "k1"  # C
  # C PorUna-byte/PAR trainers/ppo_trainer.py, not verl: a mean over tokens.
  c.learner.aggregation = "token-mean"
  return c
