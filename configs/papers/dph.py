"""The Choice of Divergence: A Neglected Key to Mitigating Diversity Collapse in
Reinforcement Learning with Verifiable Reward (arXiv:2509.07430). Prompts that the initial
policy always solves are rehearsed on its own stored completions, and all other prompts
are trained without a KL penalty.

  rlx train papers/dph workdir=DIR
  rlx train papers/dph:smoke workdir=DIR

Letters beside the values: C taken from the released code (seamoke/DPH-RL,
scripts/llama/forward_kl.sh), O our choice.

Differences from the paper: in the paper the number of rehearsed completions in a batch
results from the shuffle, in this config it is fixed. This config has fewer training
prompts than the quickstart, because the initial policy has to answer all of them first.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = ("forward KL on stored answers keeps what was solved, reverse KL forgets it",)


def get_config(arg=""):
  c = quickstart.grpo(arg)  # C: the advantage estimator.
  c.prompts.limit = 128 if arg == "smoke" else 2048                    # O
  c.rollouts.rehearsal = 2 if arg == "smoke" else 8                    # O
  c.rollouts.filter_groups = dict(name="filter_groups.accuracy_band", low=1e-3, high=1 - 1e-3)  # C
  c.learner.auxiliary = dict(name="auxiliary.rehearsal", coef=0.01, kind="forward")  # C
  c.learner.loss.clip_low, c.learner.loss.clip_high = 0.2, 0.28        # C
  c.learner.minibatches = 1 if arg == "smoke" else 2  # C: 128 prompts in minibatches of 64
  # C seamoke/DPH-RL verl/trainer/config/ppo_trainer.yaml, which scripts/llama/forward_kl.sh does
  # not change.
  c.learner.aggregation = "token-mean"
  return c
