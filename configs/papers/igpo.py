"""Information Gain-based Policy Optimization: A Simple and Effective Approach for
Multi-Turn LLM Agents (arXiv:2510.14967): the reward of a turn is the increase of the reference
answer's probability by that turn and what it let the policy read. The last turn receives the
verdict.

  rlx train papers/igpo workdir=DIR
  rlx train papers/igpo:smoke workdir=DIR

The initial model is that of environments/calculator. Letters beside the values: C taken from the
released code (GuoqingWang1/IGPO), O our choice. Differences from the paper: its agents search the
web, this one uses a calculator; its outcome is the F1 score of the answer, here it is right or
wrong; its groups have 16 episodes, these have 8. The answer whose probability is taken begins
with "#", the sign of an answer, so the reward includes that the policy is ready to answer. For
the differences of the estimator see turns.grpo.

Confidence in the formula: high.
"""
from rlx.configs.environments import calculator

CLAIMS = ("no prompt is left without a gradient, and learning is faster than from outcomes alone",)


def get_config(arg=""):
  c = calculator.get_config(f"outcome-{arg}" if arg else "outcome")
  c.likelihood.answer, c.likelihood.max_tokens = "#{}", 8  # O
  c.likelihood.steps = 4                          # of at most 5 turns; the last has the verdict
  c.rewards = dict(
      gain=dict(name="likelihood.turn_gain", coef=1.0, agg="geo_p"),  # C
      outcome=dict(name="outcome.verdict", coef=1.0))                 # C
  c.advantages = dict(  # C
      total=dict(name="turns.grpo", gamma=1.0, norm="joint", use_std=True), whiten=False)
  c.kl.coef, c.kl.place, c.kl.kind = 0.001, "loss", "k3"              # C
  # C GuoqingWang1/IGPO verl/trainer/ppo/core_algos.py, the default; ppo_trainer.yaml and
  # policy_optimization.sh do not set it.
  c.learner.aggregation = "token-mean"
  return c
