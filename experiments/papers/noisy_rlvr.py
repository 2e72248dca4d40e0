"""Rare right completions of 64 and a verifier that calls one wrong answer in ten right
and one right answer in five wrong: the rates of the config.

Plain REINFORCE, since a baseline of the prompt takes both corrections off again. Adam,
so that the factor 1 / (1 - fp - fn) alone is no gain, and few enough steps that noise
still costs something. Forward weights and noisy verdicts have the same mean update.
"""
import jax
import numpy as np
import optax

from configs.papers import noisy_rlvr
from experiments.worlds import tabular

CLAIM = 0
MEASURE = ("accuracy learned from noisy verdicts under the worse of both corrections less "
           "that without one")
REVISED = ("all arms were at 0.97 at the end, and "
           "SGD paid for the factor of the backward correction")


def effects(seeds):
  world = tabular.Tree(prompts=8, vocab=8, length=2)
  right_PL = jax.random.uniform(jax.random.key(0), (8, 64)) < 0.1

  def judge(key, logits_PNV, batch):
    del logits_PNV
    return dict(outcome_B=1.0 * right_PL[batch.prompt_B, world.leaf_B(batch)],
                noise_B=jax.random.uniform(key, batch.prompt_B.shape))

  def accuracy(correction):
    c = tabular.changed(noisy_rlvr.get_config(), rewards__outcome__correction=correction)
    found, _ = tabular.train(
        c, world, judge, lambda x: dict(accuracy=world.expected_P(x, right_PL).mean()),
        seeds=seeds, steps=100, lr=0.05, optimizer=optax.adam)
    return found["accuracy"][:, -1]

  return np.minimum(accuracy("backward"), accuracy("forward")) - accuracy("none")
