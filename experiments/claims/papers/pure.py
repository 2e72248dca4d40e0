"""PURE's softmin of step scores against their sum, where additional steps raise the sum.

A completion has at most four steps: end (0), fill (1), work (2) and err (3). It is right if it
ends after work and without err. The step verifier scores fill almost as high as work. Under
the sum every further step therefore increases the reward; under the minimum it adds nothing.
Both arms have the verdict's reward, too. The accuracy is measured.
"""
import jax
import jax.numpy as jnp

from configs.papers import pure
from experiments.claims.environments import tabular

MEASURE = "accuracy learned from the softmin of step scores minus that from their sum"
MARGIN, RATE = 0.05, 10.0
FIRST = ("confirmed",
         "there were no verdicts and no KL, and the baseline was the mean of the other "
         "completions, because the sum did not fail with the paper's own baseline")
TREE = tabular.Tree(prompts=4, vocab=4, length=4, eos=True)
SCORES_5 = jnp.array([0.75, 0.7, 0.75, 0.3, 0.3])  # of end after work, fill, work, err; end


def is_right(tokens_BT, mask_BT):
  ends_B = jnp.any((tokens_BT == 0) & mask_BT, axis=1)
  return ends_B & jnp.any(tokens_BT == 2, axis=1) & ~jnp.any(tokens_BT == 3, axis=1)


def environment(key):
  scores_5 = SCORES_5 + jax.random.uniform(key, (5,), minval=-0.05, maxval=0.05)
  right_1L = is_right(*map(jnp.asarray, TREE.leaves))[None]

  def verify(batch, **_):
    worked_BT = jnp.cumsum(batch.tokens_BT == 2, axis=1) > 0
    kind_BT = jnp.where((batch.tokens_BT == 0) & ~worked_BT, 4, batch.tokens_BT)
    return dict(outcome_B=1.0 * is_right(batch.tokens_BT, batch.mask_BT),
                step_scores_BT=scores_5[kind_BT], step_ends_BT=batch.mask_BT)

  return tabular.Environment(verify, TREE.means(accuracy=right_1L))


def arms():
  c = pure.get_config()
  return tabular.arms({"softmin": c, "sum": tabular.changed(c, rewards__process__kind="raw")},
                      TREE, environment, "accuracy", steps=300)
