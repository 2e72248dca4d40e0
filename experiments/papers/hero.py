"""A tenth of 64 completions are right; the verifier accepts nothing wrong but only one
in seven of these, so many prompts have none that it accepts.

The score ranks right above wrong, with noise, but for a few wrong completions that it
likes best. HERO against GRPO on the verdict and against GRPO on the score, equal steps.
"""
import jax
import jax.numpy as jnp

from configs.papers import hero
from experiments.worlds import tabular

CLAIM = 0
MEASURE = "true accuracy with HERO less the better of verdict only and score only"


def given(key):
  """(right, accepted, scores) of prompts and completions."""
  keys = jax.random.split(key, 4)
  shape = 16, 64
  right_PL = jax.random.bernoulli(keys[0], 0.1, shape)
  accepted_PL = right_PL & jax.random.bernoulli(keys[1], 1 / 7, shape)
  fooled_PL = ~right_PL & jax.random.bernoulli(keys[2], 0.03, shape)
  scores_PL = 0.4 + 0.2 * right_PL + 0.15 * jax.random.normal(keys[3], shape)
  return right_PL, accepted_PL, jnp.where(fooled_PL, 0.95, scores_PL)


def judge(key, logits_PNV, batch, drawn):
  del key, logits_PNV
  at = batch.prompt_B, batch.tokens_BT @ jnp.array([16, 4, 1])
  return dict(outcome_B=1.0 * drawn[1][at], scores_BE=drawn[2][at][:, None])


def effects(seeds):
  world = tabular.Tree(prompts=16, vocab=4, length=3)

  def accuracy(**changes):
    c = tabular.changed(hero.get_config(), **changes)
    found, _ = tabular.train(
        c, world, judge,
        lambda x, drawn: dict(accuracy=world.expected_P(x, drawn[0]).mean()),
        seeds=seeds, steps=200, lr=20.0, given=given)
    return found["accuracy"][:, -1]

  def alone(name):
    return accuracy(rewards=dict(outcome=dict(name=name, coef=1.0)),
                    advantages=dict(outcome=dict(name="group.grpo"), whiten=False))

  return accuracy() - jnp.maximum(alone("outcome.verdict"), alone("shaping.plain"))
