"""Simulates two proxy scores, the shares of two tokens among three. Both are good up to
about one third and bad beyond it, and the initial policy is below that. The exact limits
are drawn from the seed, and the scores are shifted so that the limits coincide with the
thresholds of the config.

The arms are the config, and fixed weights with a KL penalty; the gold score at the end is
compared. The paper's search for thresholds on the gold score is left out.
"""
import jax.numpy as jnp

from configs.papers import cons_rm
from experiments.claims.environments import tabular

MEASURE = "gold score at the end with a threshold for each proxy minus that with fixed weights"
MARGIN, RATE = 0.02, 10.0
FIRST = ("confirmed",
         "the scores were not shifted to fit the config's thresholds; it was taken "
         "to follow from the formula until rates were tuned; then the weights had no memory, and "
         "the check was underpowered")
TREE = tabular.Tree(prompts=2, vocab=8, length=3)


def environment(key):
  best_12 = tabular.around(key, [[1 / 3, 1 / 3]])
  beyond = lambda tokens_XT: jnp.stack(
      [jnp.mean(tokens_XT == t, axis=1) for t in (1, 2)], axis=1) - best_12
  gold_1L = -jnp.sum(beyond(jnp.asarray(TREE.leaves[0]))**2, axis=1)[None]

  def verify(batch, **_):
    return dict(outcome_B=jnp.zeros(len(batch.prompt_B)),
                scores_BE=jnp.array([cons_rm.get_config().rewards.outcome.thresholds])
                + beyond(batch.tokens_BT))

  return tabular.Environment(verify, TREE.means(gold=gold_1L))


def arms():
  c = cons_rm.get_config()
  fixed = dict(name="shaping.ensemble", coef=1.0, kind="mean")
  return tabular.arms(
      {"thresholds": c, "fixed weights": tabular.changed(
          c, rewards__outcome=fixed, kl__coef=0.01, kl__place="reward", kl__kind="k1")},
      TREE, environment, "gold", steps=300)
