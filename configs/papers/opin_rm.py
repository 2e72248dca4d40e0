"""Leveraging Domain Knowledge for Efficient Reward Modelling in RLHF: A Case-Study in E-Commerce
Opinion Summarization (arXiv:2402.15473). The reward is a score of few features that the domain
names, learned from few pairs.

  rlx train papers/opin_rm workdir=DIR
  rlx train papers/opin_rm:smoke workdir=DIR

r = sum_e w_e s_e over verifier.scores. `reward_model.fit_linear` of rlx.losses learns the weights
from the features of pairs; write them into rewards.NAME.coef. Those of this config are ours and not
learned.

Letters beside the values: P stated in the paper (features of the domain, RLHF with PPO), O our
choice (the features, the weights). Differences from the paper: its seven features of opinion
summaries are scored by a model, and a network makes one score of them; here the features are scores
of verifiers, and the score is linear.

The figures of CLAIMS are those of the abstract.

Confidence in the formula: medium.
"""
from rlx.configs import base, quickstart

CLAIMS = ("940 pairs are enough for a reward model, 21 times fewer than without features",)


def get_config(arg=""):
  c = quickstart.ppo(arg)  # P: PPO. There is no filter by accuracy: RLHF has no verdict.
  c.verifier.scores = (base.part("verifier of answers"), base.part("graded verifier"))
  c.rewards = dict(answer=dict(name="outcome.score", coef=1.5, index=0),         # O
                   steps=dict(name="outcome.score", coef=0.5, index=1))          # O
  return c
