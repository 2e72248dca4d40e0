"""Simulates rare right completions of uneven probability
(environments/sparse.py) with four passes over every batch. One arm applies
the penalty of KL-Cov to a twentieth of the tokens, the other has no penalty, and their
entropies are compared where both have the same accuracy. This shows whether the tokens of
large covariance reduce the entropy. Learning rates are tuned for the accuracy.
"""
from configs.papers import entropy_mechanism
from experiments.claims.environments import sparse, tabular

MEASURE = "entropy at an accuracy of 0.7, or the highest that both reach: KL-Cov minus no penalty"
MARGIN, RATE = 0.1, 20.0
FIRST = ("not seen", "the step at which an accuracy is reached was not interpolated")
DIFFERS = {f"learner.loss.{key}": "KL-Cov is the variant `kl` of the config"
           for key in ("name", "kl_coef", "clip_low", "clip_high", "cov_low", "cov_high")} | {
               "learner.loss.fraction": "2e-4 of the 192 tokens of a batch would be no token"}
compare = sparse.matched


def arms():
  problem = sparse.rare(spread=2.0)
  def config(fraction):
    return tabular.changed(entropy_mechanism.get_config("kl"), learner__epochs=4,
                           learner__loss__fraction=fraction)
  return problem.arms({"KL-Cov": config(0.05), "no penalty": config(0.0)},
                      sparse.with_entropy, steps=150)
