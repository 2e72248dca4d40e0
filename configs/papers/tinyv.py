"""TinyV: Reducing False Negatives in Verification Improves RL for LLM Reasoning
(arXiv:2505.14625).

A strict verifier checks every completion, and what it rejects is checked by a second, more
lenient verifier. The reward is 1 if either of them accepts.

  rlx train papers/tinyv workdir=DIR
  rlx train papers/tinyv:smoke workdir=DIR

Letters beside the values: C taken from the released code (uw-nsl/TinyV, tinyv.py and
run_grpo_tinyv.sh, with 8 completions per prompt). Differences from the paper: its second
verifier is a model with 1.5B parameters; this config uses a more lenient rule, since the
verdict on chains demands a certain form of the answer.

Confidence in the formula: high.
"""
from rlx.configs import base, quickstart

CLAIMS = ("fewer false negatives: more prompts have a gradient, and the final pass rate is higher",)


def get_config(arg=""):
  # C: the estimator. No filter by accuracy, because it would use the strict verdict.
  c = quickstart.grpo(arg)
  # The verifier of chains rejects "7;2;5;#5" for its form; this one accepts its last number.
  c.verifier.scores = (base.part("strict and a lenient verifier"),)
  c.verifier.workers = max(c.verifier.workers, 1)
  c.rewards.outcome = dict(name="outcome.cascade", coef=1.0, mode="addon", weight=1.0)  # C
  c.kl.coef, c.kl.place, c.kl.kind = 0.001, "loss", "k3"  # C, where it is also in the reward
  c.learner.minibatches = 2                       # C 128 prompts in minibatches of 64
  c.learner.entropy_coef = 0.001                  # C verl/verl/trainer/config/ppo_trainer.yaml
  # C uw-nsl/TinyV verl/verl/trainer/ppo/core_algos.py, which has no other mode.
  c.learner.aggregation = "token-mean"
  return c
