"""Writing-Zero: Bridge the Gap Between Non-verifiable Tasks and Verifiable Rewards
(arXiv:2506.00103): a judge compares each completion with one of the same group, and the
advantage is 1 if it wins and -1 if it loses (BRPO).

  rlx train papers/writing_zero workdir=DIR
  rlx train papers/writing_zero:smoke workdir=DIR
  rlx train papers/writing_zero base=gsm8k model.path=MODEL \
      verifier.judge.url=URL verifier.judge.model=NAME

Letters beside the values: P stated in the paper (its title in the first version ends with
"Problems and Verifiable Rewards"), O our choice. Differences from the paper: the judge is a
general model, where the paper trains one that writes principles first; the reference is the
first completion of the group, which is as random as any other; a tie gives 0. Prompts whose
mean reward is far from 0 are not dropped. On base=gsm8k the questions have answers that could
be verified; prompts.source names others.

Confidence in the formula: medium.
"""
from rlx.configs import base, quickstart

CLAIMS = (
    "rewards from comparisons within the group resist the hacking of scalar reward models, such as "
    "long explanations",
)


def get_config(arg=""):
  c = quickstart.grpo(arg)
  judge = base.use_judge(c)
  judge.against = "first"                                           # P
  c.verifier.scores = ("judge.pairs",)
  # P: 1 and -1; the first completion, whose score is 1/2, gets 0.
  c.rewards.outcome = dict(name="shaping.plain", coef=1.0, kind="linear", k=2.0, centre=0.5)
  c.advantages = dict(outcome=dict(name="batch.reinforce"), whiten=False)      # P
  c.rollouts.per_prompt = max(c.rollouts.per_prompt, 16)                       # P
  return c
