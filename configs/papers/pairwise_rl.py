"""A Unified Pairwise Framework for RLHF: Bridging Generative Reward Modeling and Policy
Optimization (arXiv:2504.04950): the reward is how likely a judge prefers a completion to the
reference, by the probability of its verdict in both orders, minus a half.

  rlx train papers/pairwise_rl workdir=DIR
  rlx train papers/pairwise_rl:smoke workdir=DIR
  rlx train papers/pairwise_rl base=gsm8k model.path=MODEL \
      verifier.judge.url=URL verifier.judge.model=NAME
  rlx train papers/pairwise_rl:group base=gsm8k model.path=MODEL

The variant :group compares with the other completions of the prompt instead: the share of wins.

Letters beside the values: P stated in the paper, O our choice. Differences from the paper: the
judge is a general model, where the paper trains a generative reward model on preferences in
both orders; the reference is the answer of the row. On the toy, whose judge gives no
probabilities, verdicts count as they are. Its PPO reads the difference of two completions; PPO
here has one reward for each.

Confidence in the formula: medium.
"""
from rlx.configs import base, quickstart

CLAIMS = (
    "rewards relative to a reference are calibrated across prompts, and the policy is better than "
    "with a Bradley-Terry reward model",
)


def get_config(arg=""):
  kind, size = base.variant(arg, ("reference", "group"))
  c = quickstart.ppo(size)
  judge = base.use_judge(c)
  judge.both_orders = True                                                     # P
  judge.probability = judge.url is not None                                    # P
  judge.against = dict(reference="answer", group="group")[kind]           # P
  c.verifier.scores = ("judge.pairs",)
  c.rewards = dict(outcome=dict(
      name="shaping.plain", coef=1.0, kind="linear", k=1.0, centre=0.5))       # P
  return c
