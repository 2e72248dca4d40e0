"""About a tenth of 64 completions are right; the verifier accepts nothing wrong but only
one in seven of these, so many prompts have none that it accepts.

The score ranks right above wrong, with noise, but for a few wrong completions that it
likes best. HERO against GRPO on the verdict and against GRPO on the score, equal steps.
"""
import jax
import jax.numpy as jnp

from configs.papers import hero
from experiments.environments import tabular
from experiments.environments import verdicts

CLAIM = 0
MEASURE = "true accuracy with HERO less that with the rival"
MARGIN, RATE = 0.05, 20.0
FIRST = ("not seen", None)
WORLD = tabular.Tree(prompts=16, vocab=4, length=3)


def environment(key):
  keys = jax.random.split(key, 5)
  share, found, fooled, gap, noise = tabular.around(keys[0], [0.1, 1 / 7, 0.03, 0.2, 0.15])
  right_PL = verdicts.drawn(keys[1], WORLD, share)
  accepted_PL = right_PL & verdicts.drawn(keys[2], WORLD, found)
  fooled_PL = ~right_PL & verdicts.drawn(keys[3], WORLD, fooled)
  scores_PL = 0.4 + gap * right_PL + noise * jax.random.normal(keys[4], right_PL.shape)
  scores_PL = jnp.where(fooled_PL, 0.95, scores_PL)

  def judge(key, logits_PNV, batch):
    del key, logits_PNV
    at = batch.prompt_B, WORLD.leaf_B(batch)
    return dict(outcome_B=1.0 * accepted_PL[at], scores_BE=scores_PL[at][:, None])

  return tabular.Environment(judge, verdicts.accuracy(WORLD, right_PL))


def arms():
  c = hero.get_config()
  def accuracy(c):
    return lambda seeds, rates: tabular.train(
        c, WORLD, environment, seeds=seeds, lr=rates, steps=150)[0]["accuracy"][:, -1]
  def alone(name):
    return accuracy(tabular.changed(
        c, rewards=dict(outcome=dict(name=name, coef=1.0)),
        advantages=dict(outcome=dict(name="group.grpo"), whiten=False)))
  return {"HERO": accuracy(c), "verdict only": alone("outcome.verdict"),
          "score only": alone("shaping.plain")}
