"""Agentic Reinforcement Learning with Implicit Step Rewards (arXiv:2509.19199), first
called Online Process Reward Learning: an implicit PRM learns the rewards of turns with the DPO
loss from pairs of a right and a wrong episode. Its reference is the policy before the update. A
turn has two advantages: that of its episode among the episodes of the prompt, and that of its own
reward among all of their turns.

  rlx train papers/oprl workdir=DIR
  rlx train papers/oprl:smoke workdir=DIR

The initial model is that of environments/calculator, as are beta and the learning rate. Letters
beside the values: P stated in the paper, C taken from the released code (CharacterRL-iStar of
Tongyi-ConvAI/Tongyi-Character: istar/core_istar.py, and examples/istar_trainer/run_webshop.sh with
beta 0.05). Differences from the code: its loss compares the means of the rewards of turns, this
one their sums; its mean over turns takes the first turn of each episode, this one all, as the
paper says; its penalty of 0.1 for invalid actions is left out.

Confidence in the formula: medium.
"""
from rlx.configs.environments import calculator

CLAIMS = (
    "step rewards learned from pairs of trajectories reach a success rate in fewer samples than "
    "outcomes alone, and than PRIME",
)


def get_config(arg=""):
  c = calculator.get_config(arg)
  c.prm.loss = dict(name="prm.dpo")                       # P trajectory-level DPO
  c.prm.reference = "policy"                              # P
  c.rewards.process = dict(name="implicit.process", coef=1.0, granularity="turn", norm="none")  # C
  c.advantages = dict(
      outcome=dict(name="group.rloo"),                    # C
      process=dict(name="turns.grpo", gamma=0.0, use_std=False),  # P no turn after it
      whiten=False)
  # C Tongyi-ConvAI/Tongyi-Character CharacterRL-iStar/verl/trainer/config/ppo_trainer.yaml.
  c.learner.aggregation = "token-mean"
  return c
