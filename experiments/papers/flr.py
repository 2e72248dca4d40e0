"""Completions of twelve features, of which the quality is a sum. A model of six follow-ups
(two thanks, two complaints, two that tell nothing and are said most) is learned from what
users said after 200 completions; thanks also follow a pleasant tone, which is no quality.
Its follow-up likelihoods against Bradley-Terry on as many pairs, a quarter of them the
wrong way round, both on held-out pairs."""
import jax
import jax.numpy as jnp

from configs.papers import flr
from experiments.worlds import reward_models
from rlx.core import records
from rlx.rewards import likelihood

CLAIM = 0
MEASURE = "pairs ranked right by follow-ups less 95% of those by a trained reward model"
COUNT, HELD_OUT, TONE = 200, 2000, 0  # TONE: the feature that is pleasant.
SIGN_R = jnp.array([1.0, 1.0, -1.0, -1.0, 0.0, 0.0])


def effects(seeds):
  positive = flr.get_config().rewards.outcome.positive

  def one(key):
    keys = jax.random.split(key, 6)
    quality_D = jax.random.normal(keys[0], (12,)).at[TONE].set(0.0) / 12**0.5
    features_LD = jax.random.normal(keys[1], (COUNT + HELD_OUT, 12))
    gold_L, seen = features_LD @ quality_D, slice(0, COUNT)
    said_LR = (SIGN_R * (gold_L + 0.5 * features_LD[:, TONE])[:, None]
               + jnp.where(SIGN_R == 0, 1.0, 0.0))
    said_L = jax.random.categorical(keys[2], said_LR[seen])

    def loss(weights_DR):
      logps_LR = jax.nn.log_softmax(features_LD[seen] @ weights_DR)
      return records.Weighted(-logps_LR[jnp.arange(COUNT), said_L].sum(), COUNT)

    model_DR = reward_models.learned(jnp.zeros((12, 6)), loss)
    follow_L = likelihood.follow_up(
        jax.nn.log_softmax(features_LD @ model_DR)[:, :4], jnp.ones(len(gold_L), bool),
        positive=positive)
    trained_L = reward_models.bradley_terry(
        jnp.zeros(12), features_LD, reward_models.pairs(
            keys[3], jnp.where(jnp.arange(len(gold_L)) < COUNT, 0.0, -jnp.inf), gold_L,
            COUNT))

    def ranked(scores_L):
      first_N, second_N = COUNT + jax.random.randint(keys[4], (2, HELD_OUT), 0, HELD_OUT)
      return jnp.mean((scores_L[first_N] > scores_L[second_N])
                      == (gold_L[first_N] > gold_L[second_N]))

    return ranked(follow_L) - 0.95 * ranked(trained_L)

  return jax.jit(jax.vmap(lambda s: one(jax.random.key(s))))(jnp.asarray(seeds))
