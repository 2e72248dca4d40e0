"""Simulates questions with 8 possible answers and without labels, each in two wordings.
The initial policy leans towards the right answer, but random noise, which differs between
the wordings, may favour another one more: a question that is answered wrongly in one
wording may be answered rightly in the other. One arm is rewarded for agreement with the
majority of the other wording, the other for agreement with the majority of its own.
Completions are answers alone, without reasoning.
"""
import jax
import jax.numpy as jnp

from configs.papers import co_reward
from experiments.claims.environments import tabular

MEASURE = ("accuracy from the majority of the other wording minus that from the prompt's own "
           "majority")
MARGIN, RATE = 0.05, 20.0
FIRST = ("not seen", None)
TREE = tabular.Tree(prompts=64, vocab=8, length=1)


def environment(key):
  keys = jax.random.split(key, 3)
  right_P = jnp.repeat(jax.random.randint(keys[0], (32,), 0, 8), 2)
  right_PL = jnp.arange(8)[None] == right_P[:, None]
  lean = tabular.around(keys[1], 1.0)  # Nats in favour of the right answer.

  def verify(batch, **_):
    answer_B = batch.tokens_BT[:, 0]
    return dict(outcome_B=1.0 * right_PL[batch.prompt_B, answer_B], answer_B=answer_B,
                pair_B=batch.prompt_B ^ 1)

  return tabular.Environment(verify, TREE.means(accuracy=right_PL),
                             start=TREE.start(keys[2], 1.0) + lean * right_PL[:, None])


def arms():
  def config(reward):
    return tabular.changed(co_reward.get_config(),
                           rewards=dict(outcome=dict(name=reward, coef=1.0)))
  return tabular.arms({"other wording": config("pseudo.paired"), "own": config("pseudo.majority")},
                      TREE, environment, "accuracy", steps=100)
