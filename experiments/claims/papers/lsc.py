"""Two reward models give independent scores to 256 completions: some completions are very good
by one model, few are good by both. Good means above the config's thresholds, which are the
85% quantile of the initial policy; the config's k turns scores into logits whose standard
deviation is about 2.

Adding the log-sigmoids of the scores is compared with averaging the scores themselves. The
number of steps, the KL term and everything else are equal.
"""
import jax
import jax.numpy as jnp

from configs.papers import lsc
from experiments.claims.environments import tabular

CLAIM = 1
MEASURE = ("share of completions that are good by both models: log-sigmoids added minus scores "
           "averaged")
MARGIN, RATE = 0.05, 20.0
FIRST = ("not seen", None)
QUANTILE = 1.036  # the 85% quantile, in standard deviations


def arms():
  tree, c = tabular.Tree(prompts=8, vocab=4, length=4), lsc.get_config()
  k, (threshold, _) = c.rewards.outcome.k, c.rewards.outcome.thresholds

  def environment(key):
    keys = jax.random.split(key)
    spread = tabular.around(keys[0], 2.0)
    scores_PLE = threshold + spread / k * (jax.random.normal(keys[1], (8, 256, 2)) - QUANTILE)

    def verify(batch, **_):
      leaf_B = tree.leaf_B(batch)
      return dict(outcome_B=jnp.zeros(len(leaf_B)), scores_BE=scores_PLE[batch.prompt_B, leaf_B])

    return tabular.Environment(verify, lambda x: dict(good=tree.expected_P(
        x, jnp.all(scores_PLE > threshold, axis=2)).mean()))
  mean = dict(name="shaping.ensemble", coef=1.0, kind="mean")
  return tabular.arms({"log-sigmoids": c, "mean": tabular.changed(c, rewards__outcome=mean)},
                      tree, environment, "good", steps=200)
