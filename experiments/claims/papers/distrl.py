"""IPVRM with DistRL against IPVRM alone and against GRPO, with rare right answers.

One completion in 16 is right: it has four steps, and any wrong one makes it wrong. The arms differ
in the loss of tokens that were likely but not drawn and, GRPO, also in the rewards of the PRM. It
starts as the policy and is trained online. Compared is the number of training steps until an arm
first has the accuracy that both reach. Every arm is best at a rate so high that the first right
completion of a prompt solves it, so that all take the same steps.
"""
import functools

from configs.papers import distrl
from experiments.claims.environments import steps, tabular

MEASURE = "share of the rival's steps that DistRL saves to the accuracy both reach"
MARGIN, RATE = 0.05, 10.0
FIRST = ("not seen", None)
compare = steps.saved
curve = functools.partial(steps.curve, steps=120,
                          tree=tabular.Tree(prompts=8, vocab=4, length=4))


def arms():
  c = distrl.get_config()
  sampled = tabular.changed(c, learner__loss=dict(
      name="policy.ppo_clip", clip_low=0.2, clip_high=0.28, dual_clip=3.0))
  return {"DistRL": curve(c), "drawn tokens alone": curve(sampled),
          "GRPO": curve(steps.outcomes_alone(sampled))}
