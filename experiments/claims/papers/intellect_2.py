"""Right completions are rare and every batch is used for eight passes, so a token that occurs in
a wrong and in a right completion may become many times likelier during the passes. A single
large gradient changes the table of logits permanently, so the gradients are measured by how far
the logits have moved. The arms are INTELLECT-2 with and without the upper bound on the ratio.
"""
import jax.numpy as jnp
import numpy as np

from configs.papers import intellect_2
from experiments.claims.environments import sparse, tabular

MEASURE = ("log10 of the largest sum of a logit's gradients in 50 steps: without the bound minus "
           "with it")
MARGIN, RATE = 0.3, 300.0
FIRST = ("not recorded",
         "no ratio reached the bound; a second version compared logits, whose size also depends on "
         "the learning rate")
compare = lambda values, uncapped: uncapped - values


def arms():
  problem = sparse.rare()

  def environment(key):
    env = problem.environment(key)
    return env._replace(measure=lambda x: env.measure(x) | dict(moved=jnp.abs(x - env.start).max()))

  def moved(c):
    arm = tabular.arm(c, problem.tree, environment, ("moved", "accuracy"), steps=50)
    def per_rate(seeds, rates):
      moved_I, accuracy_I = arm(seeds, rates)
      return np.log10(moved_I / rates), accuracy_I
    return per_rate

  c = tabular.changed(intellect_2.get_config(), learner__epochs=8)
  return {"cap": moved(c), "no cap": moved(tabular.changed(c, learner__loss__ratio_cap=None))}
