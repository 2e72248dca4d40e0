"""Simulates completions of four tokens with five choices each. The first token decides
and is rarely right; the other tokens are right with a probability of about 4/5.

A high temperature at the start finds the right first tokens, and a low one at the end
does not spoil what follows them. One arm anneals the temperature, the other samples at
temperature 1; both weight the loss by the ratio of trainer to sampler, and their
accuracies are compared.
"""
import functools

import jax
import numpy as np

from configs.papers import ead
from experiments.claims.environments import tabular, verdicts
from rlx.build import methods as build_methods

MEASURE = "accuracy learned from annealed samples minus that from samples at temperature 1"
MARGIN, RATE = 0.05, 2.0
FIRST = ("confirmed", None)
DIFFERS = {
    "rollouts.anneal.rate": "5 tokens: the schedule from 1.2 to 0.38 must fit into four tokens",
    "rollouts.anneal.growth": "0: completions do not become longer in training",
    "rollouts.anneal.warmup_steps": "0: the schedule is the same at every step"}
TREE = tabular.Tree(prompts=8, vocab=5, length=4)
DEPTH_N = np.repeat(np.arange(4), 5 ** np.arange(4))


def environment(key, factor_T):
  keys = jax.random.split(key)
  leans_T = tabular.around(keys[0], [-2.0, 2.7, 2.7, 2.7])

  def sampler(key, logits_PNV):
    del key
    return logits_PNV if factor_T is None else logits_PNV / factor_T[DEPTH_N][None, :, None]

  return verdicts.one_right(keys[1], TREE, leans_T)._replace(sampler=sampler)


def arms():
  def arm(**changes):
    c = tabular.changed(ead.get_config(), rollouts__max_tokens=4, **changes)
    anneal_T = build_methods.resolve_methods(c).anneal(0)
    return tabular.arm(c, TREE, functools.partial(environment, factor_T=anneal_T),
                       tabular.mean("accuracy"), steps=150)  # Both may end at 1.
  return {"annealed": arm(rollouts__anneal__rate=5.0, rollouts__anneal__growth=0.0,
                          rollouts__anneal__warmup_steps=0),
          "temperature 1": arm(rollouts__anneal=dict(name=None))}
