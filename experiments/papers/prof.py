"""One in 25 of 256 completions is right. The judge of steps likes one token, filler,
best, whatever it leads to; other steps it scores as they are, with noise, better where
the completion is right.

PROF against the mean score of steps added to the verdict. Both draw eight
completions a prompt, of which PROF learns from four; no prompt is filtered out.
"""
import jax
import jax.numpy as jnp

from configs.papers import prof
from experiments.worlds import tabular

CLAIM = 0
MEASURE = "accuracy with scores as a filter less with scores added to the verdict"


def given(key):
  """(right, scores) of prompts and completions."""
  keys = jax.random.split(key)
  right_PL = jax.random.bernoulli(keys[0], 0.04, (8, 256))
  steps_PLT = (0.4 + 0.2 * right_PL[..., None]
               + 0.15 * jax.random.normal(keys[1], (8, 256, 4)))
  filler_LT = jnp.asarray(tabular.Tree(vocab=4, length=4).leaves[0]) == 1
  return right_PL, jnp.mean(jnp.where(filler_LT, 0.9, steps_PLT), axis=2)


def judge(key, logits_PNV, batch, drawn):
  del key, logits_PNV
  at = batch.prompt_B, batch.tokens_BT @ jnp.array([64, 16, 4, 1])
  return dict(outcome_B=1.0 * drawn[0][at], scores_BE=drawn[1][at][:, None])


def effects(seeds):
  world = tabular.Tree(prompts=8, vocab=4, length=4)

  def accuracy(**changes):
    c = tabular.changed(prof.get_config(), rollouts__keep=dict(name="keep.everything"),
                        **changes)
    found, _ = tabular.train(
        c, world, judge,
        lambda x, drawn: dict(accuracy=world.expected_P(x, drawn[0]).mean()),
        seeds=seeds, steps=200, lr=20.0, given=given)
    return found["accuracy"][:, -1]

  blend = dict(outcome=dict(name="outcome.verdict", coef=1.0),
               score=dict(name="shaping.plain", coef=1.0))
  return accuracy() - accuracy(
      rollouts__thin=dict(name="thin.nothing"), rewards=blend,
      advantages=dict(total=dict(name="group.grpo"), whiten=False))
