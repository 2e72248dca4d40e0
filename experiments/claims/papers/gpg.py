"""Simulates rare right completions (environments/sparse.py). The arms are GPG
and complete GRPO, with clip, KL penalty and reference; their accuracies are compared. The
mean over tokens is the same in both, because all completions have the same length.
"""
from configs.papers import gpg, grpo
from experiments.claims.environments import sparse

MEASURE = "accuracy of GPG after 30 steps minus that of GRPO"
MARGIN, RATE = 0.05, 20.0
FIRST = ("not recorded", "both arms ended with an accuracy near 1")


def arms():
  problem = sparse.rare()
  return problem.arms({"GPG": gpg.get_config(), "GRPO": grpo.get_config()}, "accuracy", steps=30)
