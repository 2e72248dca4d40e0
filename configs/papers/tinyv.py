"""TinyV: Reducing False Negatives in Verification Improves RL for LLM Reasoning
(arXiv:2505.14625): a second verifier is asked about what the strict one rejects.

  rlx train papers/tinyv workdir=DIR
  rlx train papers/tinyv:smoke workdir=DIR

C (code) uw-nsl/TinyV, tinyv.py and run_grpo_tinyv.sh (8 completions). Its second
verifier is a model of 1.5B; here it is a looser rule, since the verdict on chains
demands their form.

Confidence in the formula: high.
"""
from rlx.configs import quickstart

CLAIMS = ("fewer false negatives: more prompts have a gradient, and the final pass rate is higher",)


def get_config(arg=""):
  # C: the estimator. No filter by accuracy: it would use the strict verdict.
  c = quickstart.grpo(arg)
  # Rejected here for its form, accepted there by its last number: "7;2;5;#5".
  c.verifier.scores = ("math_answer.final",)
  c.verifier.workers = 1
  c.rewards.outcome = dict(name="outcome.cascade", coef=1.0, mode="addon", weight=1.0)  # C
  c.kl.coef, c.kl.place, c.kl.kind = 0.001, "loss", "k3"  # C also in the reward there
  c.learner.minibatches = 2                       # C 128 prompts in parts of 64
  return c
