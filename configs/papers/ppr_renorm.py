"""Hybrid Reward Normalization for Process-supervised Non-verifiable Agentic
Tasks (arXiv:2509.25598). ReNorm adds the outcome less a constant to the score of every turn
before the last, so that no turn of a failed episode has a reward above 0.

  rlx train papers/ppr_renorm workdir=DIR
  rlx train papers/ppr_renorm:smoke workdir=DIR

The initial model is that of environments/calculator. Letters beside the values: C taken from the
released code (Zhuohao-Li/ppr, examples/train_3b.sh and verl/trainer/config/ppo_trainer.yaml), O
our choice.

Differences from the paper: In the paper a judge scores the turns by principles; this config
uses whether a call solves a step of the question. The paper samples one episode for each
prompt; this config samples 8.

Confidence in the formula: high.
"""
from rlx.configs.environments import calculator

CLAIMS = ("without the shift process rewards rise while accuracy falls",)


def get_config(arg=""):
  c = calculator.get_config(f"outcome-{arg}" if arg else "outcome")
  c.environment.turn_rewards = "calls"  # O
  c.rewards = dict(turns=dict(name="turns.renorm", coef=1.0, mu=1.0, top="last"))  # C
  c.advantages = dict(total=dict(name="turns.gae", gamma=1.0, lam=1.0), whiten=True)  # C
  c.value.optimizer.lr = 10 * c.learner.optimizer.lr  # C
  c.kl.coef, c.kl.kind, c.kl.place = 1e-3, "k1", "reward"  # C
  c.learner.minibatches = c.value.minibatches = 2  # C
  c.learner.optimizer.warmup_steps = round(0.285 * c.steps)  # C
  c.value.optimizer.warmup_steps = round(0.015 * c.steps)    # C
  c.learner.entropy_coef, c.value.clip = 0.001, 0.5  # C
  # C PeterGriffinJin/Search-R1 verl/trainer/ppo/core_algos.py, which has no other mode;
  # Zhuohao-Li/ppr builds on it, and its own copy of this file could not be found.
  c.learner.aggregation = "token-mean"
  return c
