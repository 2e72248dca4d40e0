"""Unleashing Implicit Rewards: Prefix-Value Learning for Distribution-Level Optimization
(arXiv:2604.13197). IPVRM: an implicit PRM learns the value of every prefix of a completion from
verdicts, and the rewards are the differences of the values of consecutive prefixes.

  rlx train papers/ipvrm workdir=DIR
  rlx train papers/ipvrm:smoke workdir=DIR

Letters beside the values: C taken from the released code (gaoshiping/IPVRM at b3ddd9a), O our
choice. The code trains the PRM before RL, too, without weights and adaptive margins: `rlx
train_scorer` with this config and prm.loss.balanced=False prm.loss.adaptive=False, then prm.path.

Differences from the paper: its GRPO divides by the biased standard deviation; its reference in RL
is the policy before the update, here the frozen start, as PRMs of whole completions have it.
DistRL, an additional loss on tokens that were likely but not drawn, is papers/distrl (this config
is the rows "GRPO + IPVRM" of its tables).

The advantage of the code subtracts the mean reward per token of the batch before it adds up later
rewards, so that it contains the length term of docs/prime.md.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = (
    "judges steps better than an implicit PRM that is trained on whole completions",
    "with it RL gains more than with GRPO, PRIME and SPRO",
)


def get_config(arg=""):
  c = quickstart.get_config(arg)
  c.rollouts.filter_groups = dict(
      name="filter_groups.accuracy_band", low=0.01, high=0.99, drop_truncated=True)  # C
  c.prm.loss = dict(name="prm.prefix_ce", margin=5.0, balanced=True, adaptive=True)  # C
  c.prm.beta, c.prm.order = 10.0, "double"                                           # C
  c.prm.reference = "frozen"  # O; the code's is the policy (reuse_ref, ref_model_type=old).
  c.rewards = dict(
      outcome=dict(name="outcome.verdict", coef=1.0),   # C reward_gt_coef
      process=dict(name="implicit.process", coef=0.05,  # C reward_gae_coef
                   norm="none", include_last=False))    # C build_step_reward_scores
  c.advantages = dict(
      outcome=dict(name="group.grpo"),                                        # C
      process=dict(name="batch.reinforce_pp", gamma=1.0, centre=True),        # C, lambda = 1
      whiten=False)
  c.learner.loss = dict(name="policy.ppo_clip", clip_low=0.2, clip_high=0.28, dual_clip=3.0)  # C
  return c
