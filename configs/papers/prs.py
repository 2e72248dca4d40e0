"""Enhancing Agentic RL with Progressive Reward Shaping and Value-based Sampling Policy
Optimization (arXiv:2512.07478). The reward of an episode has stages, each of which counts only
after those before it: calls that can be parsed, an answer that resembles the reference, then a
right answer. How much an answer resembles the reference is a BLEU that is fair to short answers.

  rlx train papers/prs workdir=DIR
  rlx train papers/prs:smoke workdir=DIR

The initial model is that of environments/calculator. Letters beside the values: P stated in the
paper's abstract, O our choice.

Differences from the paper: the reward alone is here. VSPO, its other part, replaces prompts whose
completions all have the same reward. The abstract has the stages and their order, but not their
sizes, which are ours, as is the form of BLEU (rlx/verifiers/overlap.py), of characters here. No
released code could be found, and with it no learner.aggregation, which is that of base.py.

Confidence in the formula: medium.
"""
from rlx.configs.environments import calculator

CLAIMS = ("rewards in stages do better than binary ones",)


def get_config(arg=""):
  c = calculator.get_config(f"outcome-{arg}" if arg else "outcome")
  c.verifier.scores = ("rlx.environments.zoo.calculator:parsed",  # P
                       "rlx.environments.zoo.calculator:overlap")  # P, O
  c.rewards = dict(stages=dict(name="outcome.stages", coef=1.0, weights=(0.1, 0.4, 0.5),  # O
                               thresholds=(1.0, 0.0)))  # P, O
  c.advantages = dict(total=dict(name="group.grpo"), whiten=False)  # O
  return c
