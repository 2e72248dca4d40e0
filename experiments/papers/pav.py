"""Chains (experiments/worlds/chains.py) and the exact value of every prefix under a prover,
the best of 4 of the policy as it is.

Beside the verdict each step is paid by its change, by itself, or not at all: as in the
paper's gradient, Q + alpha A, not summed to go as in the config, where the changes add
up to a baseline and it does not matter whose they are. The first step's change is from
0: the question's own value is no option.
"""
import itertools

import jax
import jax.numpy as jnp
import numpy as np

from configs.papers import pav
from experiments.worlds import chains
from experiments.worlds import tabular

CLAIM = 0
MEASURE = ("mean accuracy over 200 steps paid for progress less the better of for "
           "value and for neither")
REVISED = ("with the config's gamma of 1 the sum of progress is the "
           "outcome less a baseline for any prover; the first form was opposite")


def values(logits_PNV, right_PL):
  """Chance of a right answer from every node and, after all tokens, of every leaf."""
  values, (prompts, nodes, vocab) = [right_PL], logits_PNV.shape
  while nodes:
    count = values[0].shape[1] // vocab
    chance_PNV = jax.nn.softmax(logits_PNV[:, nodes - count:nodes])
    values.insert(0, jnp.sum(
        chance_PNV * values[0].reshape(prompts, count, vocab), axis=2))
    nodes -= count
  return jnp.concatenate(values, axis=1)


def effects(seeds):
  world = chains.WORLD
  tokens_LT = np.array(list(itertools.product(range(world.vocab), repeat=world.length)))
  right_PL = 1.0 * chains.over_prompts(
      tokens_LT, np.cumsum(tokens_LT == 0, axis=1) - (tokens_LT == 0) == 0)

  def judge(key, logits_PNV, batch):
    prover_PN = 1 - (1 - values(logits_PNV, right_PL)) ** 4
    after_BT = batch.nodes_BT * world.vocab + batch.tokens_BT + 1
    return chains.judge(key, logits_PNV, batch) | dict(
        step_scores_BT=prover_PN[batch.prompt_B[:, None], after_BT])

  def accuracy(**process):
    c = tabular.changed(pav.get_config(), rewards__process__start=0.0,
                        advantages__process__gamma=0.0, **{
        f"rewards__process__{k}": v for k, v in process.items()})
    return chains.accuracy(c, seeds, judge=judge, steps=200).mean(axis=1)

  return accuracy(kind="advantage") - np.maximum(accuracy(kind="raw"), accuracy(coef=0.0))
