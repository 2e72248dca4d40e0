"""A completion is helpful by a normal number, and follows each of two constraints or does not. The
gold score, in [0, 1], depends on both: it is the share of all completions of the prompt that are
less good by the sum of the two. A reward model sees the sum too, but counts the constraints half,
and has an error of its own for each completion with a standard deviation of 1.

A check of a constraint is wrong about one completion in ten, always in the same way, so that the
policy can exploit it. The config's sum of the score and of the checks is compared with the score
alone.
"""
import jax
import jax.numpy as jnp

from configs.papers import reward_agent
from experiments.claims.environments import tabular

MEASURE = "gold score after 150 steps with checks added to the score minus that with the score"
MARGIN, RATE = 0.05, 10.0
FIRST = ("not seen", None)
TREE = tabular.Tree(prompts=8, vocab=8, length=2)


def environment(key):
  keys = jax.random.split(key, 5)
  shape = TREE.prompts, TREE.vocab**TREE.length
  helpful_PL, error_PL = jax.random.normal(keys[0], (2, *shape))
  follows_PL2 = jax.random.bernoulli(keys[1], 0.5, (*shape, 2))
  mistaken_PL2 = jax.random.bernoulli(keys[2], tabular.around(keys[3], 0.1), follows_PL2.shape)
  followed_PL = 1.0 * follows_PL2.sum(axis=2)
  worth_PL = helpful_PL + followed_PL
  gold_PL = jnp.mean(worth_PL[:, :, None] > worth_PL[:, None], axis=2)
  score_PL = jax.nn.sigmoid(helpful_PL + 0.5 * (followed_PL - 1) + error_PL)
  read = TREE.verifier(outcome_B=jnp.zeros(shape), scores_BE=score_PL[..., None],
                       items_BI=follows_PL2 ^ mistaken_PL2)

  def verify(batch, **_):
    columns = read(batch)
    return columns | dict(item_weight_BI=jnp.ones_like(columns["items_BI"]),
                          item_veto_BI=jnp.zeros(columns["items_BI"].shape, bool))

  return tabular.Environment(verify, TREE.means(gold=gold_PL))


def arms():
  c = reward_agent.get_config()
  alone = tabular.changed(c, rewards=dict(preference=c.rewards.preference))
  return tabular.arms({"score and checks": c, "score alone": alone}, TREE, environment, "gold",
                      steps=150)
