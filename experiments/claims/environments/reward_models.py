"""Small reward models, and an environment in which they are overoptimised.

  L completions   D features   N pairs   E models

A completion of TREE is a bag of tokens. The initial policy seldom samples eight of the twelve
tokens, and these have a low quality. A reward model that is learned from few pairs of the
initial policy scores them by its own initial weights. If there were fewer such tokens, or more
pairs, a single reward model would be enough.
"""
import jax
import jax.numpy as jnp
import optax

from experiments.claims.environments import learn, tabular
from rlx.losses import reward_model

TREE = tabular.Tree(prompts=2, vocab=12, length=3)
COUNTS_LV = jnp.sum(jax.nn.one_hot(TREE.leaves[0], 12), axis=1)
WORTH_V = jnp.array([-1.0, -1 / 3, 1 / 3, 1.0] + [-1.0] * 8)
GOLD_L = COUNTS_LV @ WORTH_V / 3
LOGITS_V = jnp.array([0.0] * 4 + [-3.5] * 8)  # Each of the last eight is one token in 140.
PAIRS = 50


def start(key):
  """Returns logits_PNV of the initial policy, from which the pairs are sampled."""
  del key
  return jnp.broadcast_to(LOGITS_V, (TREE.prompts, TREE.nodes, 12))


def pairs(key, logps_L, gold_L, count, *, flips=0.25):
  """Returns (chosen_N, rejected_N, valid_N) of sampled pairs, ordered by gold except for flips."""
  keys = jax.random.split(key)
  drawn_N2 = jax.random.categorical(keys[0], logps_L, shape=(count, 2))
  gap_N = gold_L[drawn_N2[:, 0]] - gold_L[drawn_N2[:, 1]]
  is_first_N = (gap_N > 0) ^ jax.random.bernoulli(keys[1], flips, (count,))
  return (jnp.where(is_first_N, drawn_N2[:, 0], drawn_N2[:, 1]),
          jnp.where(is_first_N, drawn_N2[:, 1], drawn_N2[:, 0]), gap_N != 0)


def fit(start_D, features_LD, pairs_N, steps=300):
  """Returns weights_D of a linear model learned from pairs."""
  chosen_N, rejected_N, valid_N = pairs_N
  def loss(weights_D, _):
    scores_L = features_LD @ weights_D
    return reward_model.bradley_terry(scores_L[chosen_N], scores_L[rejected_N], valid_N)
  return learn.descend(start_D, loss, optax.sgd(0.5), steps=steps)


def bradley_terry(start_D, features_LD, pairs_N):
  """Returns scores_L of a linear model learned from pairs; the mean over the pairs is 0."""
  chosen_N, rejected_N, _ = pairs_N
  scores_L = features_LD @ fit(start_D, features_LD, pairs_N)
  return scores_L - (scores_L[chosen_N].mean() + scores_L[rejected_N].mean()) / 2


def ensemble(key, *, members=5):
  """Returns scores_LE of linear models of the counts that differ only in their initial weights."""
  pairs_key, key = jax.random.split(key)
  pairs_N = pairs(pairs_key, TREE.leaf_logps(start(None))[0], GOLD_L, PAIRS)
  starts_ED = jax.random.normal(key, (members, 12))
  return jax.vmap(bradley_terry, in_axes=(0, None, None), out_axes=1)(starts_ED, COUNTS_LV, pairs_N)


def arms(configs, measure, *, drawn=ensemble, steps=400):
  """Returns {name: arm} for {name: config}; "gold" is the expected true quality of completions.

  Args:
    measure: as in `tabular.arm`; its name is "gold".
    drawn: function from a key to scores_LE of the reward models, which are the only rewards;
      all verdicts are 0.
  """
  def environment(key):
    scores_LE = drawn(key)
    def verify(batch, **_):
      return dict(outcome_B=jnp.zeros(len(batch.prompt_B)), scores_BE=scores_LE[TREE.leaf_B(batch)])
    return tabular.Environment(verify, TREE.means(gold=GOLD_L), start=start(None))

  return tabular.arms(configs, TREE, environment, measure, steps=steps)
