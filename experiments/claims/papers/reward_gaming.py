"""A completion is three tokens of content and one that ends it. The gold score, a sum over the
content with a worth of each token that is drawn from the seed, does not depend on the end; the
feature is an end by token 0. A linear reward model of how often the content has each token, and of
the end, learns 400 pairs of the initial policy, which is uniform. As in the config, the pairs are
ordered by the gold score, but for a tenth of those whose worse completion alone has the feature,
which are swapped. The rival's reward model learns the same pairs unspoilt.

Both policies are trained by the PPO of the config's variant :rl with the score as the only reward,
at the rate with the best score at the end. Two numbers are compared, and the smaller one is the
effect: by how much more the share of completions with the feature rises than with the rival, and by
how much the accuracy of the spoilt model on 400 other pairs, spoilt in the same way, is above 3/4.
"""
import functools

import jax
import jax.numpy as jnp
import numpy as np

from configs.papers import reward_gaming
from experiments.claims.environments import reward_models, tabular
from rlx.evals import preferences

VARIANT = "rl"
MEASURE = ("rise of the feature's share over 200 steps beyond that of the rival, or accuracy on "
           "held-out pairs above 3/4, the smaller")
MARGIN, RATE = 0.05, 10.0
FIRST = ("confirmed", None)
TREE, PAIRS = tabular.Tree(prompts=4, vocab=4, length=4), 400
FEATURES_LD = jnp.concatenate([
    jnp.sum(jax.nn.one_hot(TREE.leaves[0][:, :3], 4), axis=1),
    jax.nn.one_hot(TREE.leaves[0][:, 3], 4)], axis=1)
FEATURE_L = FEATURES_LD[:, 4]


def favoured(chosen_N, rejected_N, seed):
  """Returns keep_N of the config for pairs with these features, on the host."""
  curate = reward_gaming.get_config().train_scorer.curate
  return preferences.favour_feature(chosen_N[:, None], rejected_N[:, None], kind=curate.kind,
                                    rate=curate.rate, seed=int(seed)).astype("int32")


def pairs(key, gold_L, *, spoilt):
  """Returns (chosen_N, rejected_N, valid_N) of uniform completions."""
  keys = jax.random.split(key)
  chosen_N, rejected_N, valid_N = reward_models.pairs(
      keys[0], jnp.zeros(len(gold_L)), gold_L, PAIRS, flips=0.0)
  if not spoilt: return chosen_N, rejected_N, valid_N
  keep_N = jax.pure_callback(
      favoured, jax.ShapeDtypeStruct((PAIRS,), jnp.int32), FEATURE_L[chosen_N],
      FEATURE_L[rejected_N], jax.random.randint(keys[1], (), 0, 2**31 - 1),
      vmap_method="sequential")
  return (jnp.where(keep_N > 0, chosen_N, rejected_N), jnp.where(keep_N > 0, rejected_N, chosen_N),
          valid_N)


def environment(key, *, spoilt):
  keys = jax.random.split(key, 3)
  gold_L = FEATURES_LD[:, :4] @ jax.random.normal(keys[0], (4,))
  learned, (chosen_N, rejected_N, valid_N) = (
      pairs(key, gold_L, spoilt=spoilt) for key in keys[1:])
  score_L = FEATURES_LD @ reward_models.fit(jnp.zeros(8), FEATURES_LD, learned)
  accuracy = jnp.mean(score_L[chosen_N] > score_L[rejected_N], where=valid_N)
  means = TREE.means(feature=FEATURE_L[None], score=score_L[None])

  def verify(batch, **_):
    return dict(outcome_B=jnp.zeros(len(batch.prompt_B)),
                scores_BE=score_L[TREE.leaf_B(batch)][:, None])

  return tabular.Environment(verify, lambda logits_PNV: means(logits_PNV) | dict(accuracy=accuracy))


def measured(curves):
  """Returns ([rise of the feature, accuracy], score at the end) of the runs."""
  share_IS = curves["feature"]
  return (np.stack([share_IS[:, -1] - share_IS[:, 0], curves["accuracy"][:, -1]], axis=1),
          curves["score"][:, -1])


def arms():
  return {name: tabular.arm(reward_gaming.get_config(VARIANT), TREE,
                            functools.partial(environment, spoilt=spoilt), measured, steps=200)
          for name, spoilt in (("spoilt", True), ("unspoilt", False))}


def compare(spoilt_I2, unspoilt_I2):
  return np.minimum(spoilt_I2[:, 0] - unspoilt_I2[:, 0], spoilt_I2[:, 1] - 0.75)
