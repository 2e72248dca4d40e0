"""Which completions are right in the environments that several checks share.

Right completions are drawn from a key; trees have no end token.
"""
import jax
import jax.numpy as jnp
import numpy as np

from experiments.claims.environments import tabular


def drawn(key, tree, share):
  """Returns right_PL, in which each completion is right with this probability."""
  return jax.random.uniform(key, (tree.prompts, tree.vocab**tree.length)) < share


def of_leaves(tree, value_of):
  """Returns values_PL of every completion, for trees with and without end tokens.

  Args:
    value_of: function from a tabular.Batch to values_B.
  """
  tokens_LT, mask_LT = map(jnp.asarray, tree.leaves)
  return jnp.stack([
      value_of(tree.batch(jnp.full(len(tokens_LT), p), tokens_LT, mask_LT))
      for p in range(tree.prompts)])


def verifier(tree, right_PL, flip=0.0):
  """Returns a verifier whose verdicts are inverted with probability `flip`."""
  def verify(batch, key, **_):
    right_B = right_PL[batch.prompt_B, tree.leaf_B(batch)]
    flips_B = jax.random.bernoulli(key, flip, right_B.shape)
    return dict(outcome_B=1.0 * (right_B ^ flips_B))
  return verify


def entropy(tree, logits_PNV):
  """Returns the entropy over completions in nats, the mean over prompts."""
  logps_PL = tree.leaf_logps(logits_PNV)
  return -tree.expected_P(logits_PNV, logps_PL).mean()


def environment(tree, share, *, flip=0.0, spread=0.0):
  """Returns a function from a key to a tabular.Environment that measures the accuracy.

  Each completion is right with probability `share`. Verdicts are inverted with a probability
  that is drawn around `flip`. The initial logits have noise with standard deviation `spread`.
  """
  def draw(key):
    keys = jax.random.split(key, 3)
    right_PL = drawn(keys[0], tree, share)
    return tabular.Environment(
        verifier(tree, right_PL, tabular.around(keys[2], flip)), tree.means(accuracy=right_PL),
        start=tree.start(keys[1], spread))
  return draw


def one_right(key, tree, leans_T, *, flip=0.0):
  """Returns a tabular.Environment with one right completion per prompt, drawn at random.

  At every node, the initial logit of the token that the right completion has at that depth is
  larger by leans_T of the depth, in nats. All logits have noise with standard deviation 0.5. The
  accuracy is measured.
  """
  keys = jax.random.split(key)
  right_PT = jax.random.randint(keys[0], (tree.prompts, tree.length), 0, tree.vocab)
  right_PL = jnp.all(jnp.asarray(tree.leaves[0])[None] == right_PT[:, None], axis=2)
  depth_N = np.repeat(np.arange(tree.length), tree.vocab ** np.arange(tree.length))
  leans_PNV = leans_T[depth_N][None, :, None] * jax.nn.one_hot(right_PT[:, depth_N], tree.vocab)
  return tabular.Environment(verifier(tree, right_PL, flip), tree.means(accuracy=right_PL),
                             start=leans_PNV + tree.start(keys[1], 0.5))


def fork(key, tree, *, flip=0.0):
  """Returns `one_right` with a single token to learn (a fork), at a position drawn at random.

  The logits of all other tokens of the right completion are larger by about 7 nats at the
  start. Verdicts are inverted with a probability that is drawn around `flip`.
  """
  keys = jax.random.split(key, 4)
  leans_T = tabular.around(keys[0], jnp.full(tree.length, 7.0))
  place = jax.random.randint(keys[1], (), 0, tree.length)
  return one_right(keys[2], tree, leans_T.at[place].set(0.0), flip=tabular.around(keys[3], flip))


def noisy(tree, share):
  """Returns `environment` with correct verdicts and the random numbers that rewards.noise reads."""
  drawn_by = environment(tree, share)
  def draw(key):
    env = drawn_by(key)
    def verify(batch, key, **_):
      return env.verify(batch, key=key) | dict(
          noise_B=jax.random.uniform(key, batch.prompt_B.shape))
    return env._replace(verify=verify)
  return draw
