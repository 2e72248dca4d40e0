"""Crossing the Reward Bridge: Expanding RL with Verifiable Rewards Across Diverse Domains
(arXiv:2503.23829): a judge with the reference answer says yes or no, and the reward is the
probability of yes.

  rlx train papers/soft_verdicts workdir=DIR
  rlx train papers/soft_verdicts:smoke workdir=DIR
  rlx train papers/soft_verdicts base=gsm8k model.path=MODEL \
      verifier.judge.url=URL verifier.judge.model=NAME
  rlx train papers/soft_verdicts:binary base=gsm8k model.path=MODEL

The variant :binary takes the verdict as it is, 1 or 0.

Letters beside the values: P stated in the paper, O our choice. Differences from the paper: the
judge is a general model, where the paper distils one of 7B parameters; the probability is that
of yes among yes and no. On the toy, whose judge gives no probabilities, both variants are the
same. Rewards are normalised over the tokens of a batch, the paper's over its completions.

Confidence in the formula: medium.
"""
from rlx.configs import base, quickstart

CLAIMS = (
    "soft rewards of a judge do better than rules on answers in free form, and scale to domains "
    "without structured answers",
)


def get_config(arg=""):
  kind, size = base.variant(arg, ("soft", "binary"))
  c = quickstart.grpo(size)
  judge = base.use_judge(c)
  judge.probability = kind == "soft" and judge.url is not None                 # P
  c.verifier.scores = ("judge.chat",)
  c.rewards.outcome = dict(name="outcome.score", coef=1.0)
  c.advantages = dict(outcome=dict(name="batch.reinforce"), whiten=True)       # P: z-scores
  return c
