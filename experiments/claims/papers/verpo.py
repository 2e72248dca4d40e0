"""A completion is checked by eight unit tests. Six of them are easy and nearly the same: they check
mainly the first token. One first token passes all six, but then neither of the two hard tests
can pass. Another first token passes three to five of the easy tests and the last token decides
the others; after it the two hard tests check the tokens in between.

Measured is the probability of passing all tests after 150 steps. VeRPO, with tests and verdict,
is compared with the verdict alone and with the plain share of tests passed.
"""
import jax
import jax.numpy as jnp

from configs.papers import verpo
from experiments.claims.environments import tabular, verdicts

MEASURE = "probability of passing all tests with VeRPO minus that with the rival"
MARGIN, RATE = 0.05, 10.0
FIRST = ("confirmed", None)
TREE = tabular.Tree(prompts=8, vocab=4, length=4)


def environment(key):
  keys = jax.random.split(key)
  easy_P = jax.random.randint(keys[0], (TREE.prompts,), 3, 6)

  def passed(batch):
    """Returns items_BI, the result of each of the eight tests for each completion."""
    first_B1, second_B1, third_B1, last_B1 = jnp.split(batch.tokens_BT, 4, axis=1)
    good_B1 = first_B1 == 2
    is_easy_B6 = (jnp.arange(6) < easy_P[batch.prompt_B][:, None]) | (last_B1 == 1)
    hard_B1 = good_B1 & (second_B1 == 3)
    return 1.0 * jnp.concatenate([(first_B1 == 1) | good_B1 & is_easy_B6, hard_B1,
                                  hard_B1 & (third_B1 == 0)], axis=1)

  def verify(batch, **_):
    items_BI = passed(batch)
    return dict(outcome_B=jnp.min(items_BI, axis=1), items_BI=items_BI,
                item_weight_BI=jnp.ones_like(items_BI))

  all_PL = verdicts.of_leaves(TREE, lambda batch: jnp.min(passed(batch), axis=1))
  return tabular.Environment(verify, TREE.means(all=all_PL), start=TREE.start(keys[1], 0.5))


def arms():
  c = verpo.get_config()
  def alone(name, term):
    return tabular.changed(c, rewards={name: term}, advantages={
        name: c.advantages[name], "whiten": False})
  verdict = alone("outcome", c.rewards.outcome)
  share = alone("tests", dict(name="items.unit_tests", coef=1.0, weight="uniform"))
  return tabular.arms({"VeRPO": c, "verdict": verdict, "plain share": share},
                      TREE, environment, "all", steps=150)
