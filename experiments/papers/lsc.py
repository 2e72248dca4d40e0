"""Two reward models of independent scores over 256 completions, in logits: some
completions are very good by one, few are good by both.

Log-sigmoids, centred at the start's 85% quantile, are added, or the scores themselves
are averaged; steps, KL and all else are equal. k = 1 is the paper's, on logits.
"""
import jax
import jax.numpy as jnp

from configs.papers import lsc
from experiments.worlds import tabular

CLAIM = 1
MEASURE = "share good by both models from log-sigmoids added less from scores averaged"
SPREAD, QUANTILE = 2.0, 1.036  # standard deviation of scores; their 85% quantile over it


def effects(seeds):
  world = tabular.Tree(prompts=8, vocab=4, length=4)
  threshold = SPREAD * QUANTILE

  def given(key):
    return SPREAD * jax.random.normal(key, (8, 256, 2))

  def judge(key, logits_PNV, batch, scores_PLE):
    del key, logits_PNV
    leaf_B = world.leaf_B(batch)
    return dict(outcome_B=jnp.zeros(len(leaf_B)),
                scores_BE=scores_PLE[batch.prompt_B, leaf_B])

  def measure(logits_PNV, scores_PLE):
    return dict(good=world.expected_P(
        logits_PNV, jnp.all(scores_PLE > threshold, axis=2)).mean())

  def good(**outcome):
    c = tabular.changed(lsc.get_config(), rewards__outcome=dict(
        name="shaping.ensemble", coef=1.0, **outcome))
    found, _ = tabular.train(c, world, judge, measure, seeds=seeds, steps=300, lr=20.0,
                             given=given)
    return found["good"][:, -1]

  return (good(kind="logsig_sum", k=1.0, thresholds=(threshold, threshold))
          - good(kind="mean"))
