"""Leveraging Domain Knowledge for Efficient Reward Modelling in RLHF: A Case-Study in E-Commerce
Opinion Summarization (arXiv:2402.15473). The reward is a score of few features that the domain
names, learned from few pairs.

  rlx train papers/opin_rm workdir=DIR
  rlx train papers/opin_rm:network workdir=DIR
  rlx train papers/opin_rm:smoke workdir=DIR

r = sum_e w_e s_e over verifier.scores, or with `network` a network of one hidden layer of these
scores. `reward_model.fit_linear` and `.fit_network` of rlx.losses learn the weights from the
features of pairs; write them into rewards.NAME.coef, or into rewards.NAME.weights. Those of this
config are ours and not learned.

Letters beside the values: P stated in the paper (features of the domain, a network of them, RLHF
with PPO), O our choice (the features, the weights, the linear score). Differences from the paper:
its seven features of opinion summaries are scored by a model; here the features are scores of
verifiers. The layers of its network could not be confirmed.

The figures of CLAIMS are those of the abstract.

Confidence in the formula: medium.
"""
from rlx.configs import base, quickstart

CLAIMS = ("940 pairs are enough for a reward model, 21 times fewer than without features",)


# O: the second score counts for less where the first one is high. Of each hidden unit the weights
# of both scores, the constant and the weight of the unit.
NETWORK = ((2.0, 0.5, 0.0, 1.5), (-2.0, 2.0, 0.0, 0.5))


def get_config(arg=""):
  kind, size = base.variant(arg, ("linear", "network"))
  c = quickstart.ppo(size)  # P: PPO. There is no filter by accuracy: RLHF has no verdict.
  c.verifier.scores = (base.part("verifier of answers"), base.part("graded verifier"))
  c.rewards = (
      dict(quality=dict(name="outcome.network", coef=1.0, weights=NETWORK))         # P, O weights
      if kind == "network" else
      dict(answer=dict(name="outcome.score", coef=1.5, index=0),                    # O
           steps=dict(name="outcome.score", coef=0.5, index=1)))                    # O
  return c
